// A private server for a measurement: a process of ours that ends with us, whatever way we end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/result.h"

namespace edgecase::cli::bench {

class ChildProcess {
 public:
  // Runs `arguments` (the first is the program, looked for in PATH); what it prints goes to
  // `log_path`. An error only when nothing could be started; a program that is not there is seen
  // as a process that has ended.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& arguments,
                                                     const std::string& log_path);
  // Asks it to end, waits, and makes it end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t id() const { return id_; }
  bool running();
  void stop();  // SIGTERM, then SIGKILL after kStopSeconds
  void kill();  // SIGKILL
  // The last lines it printed, for messages.
  std::string last_words() const;

  static constexpr int kStopSeconds = 20;

 private:
  ChildProcess(pid_t id, std::string log_path) : id_(id), log_path_(std::move(log_path)) {}
  bool wait_for_end(double seconds);

  pid_t id_;
  std::string log_path_;
  bool ended_ = false;
};

// A TCP port of the loopback interface that nobody had a moment ago.
Result<std::uint16_t> free_port();

// Calls `ready` until it is true, at most for `seconds`; Unavailable with the child's last words
// when it ends or the time does.
template <typename Ready>
Status wait_until_ready(ChildProcess& child, double seconds, const Ready& ready);

void sleep_ms(int milliseconds);

template <typename Ready>
Status wait_until_ready(ChildProcess& child, double seconds, const Ready& ready) {
  for (int waited_ms = 0; waited_ms < static_cast<int>(seconds * 1000); ++waited_ms) {
    if (ready()) return ok();
    if (!child.running()) break;
    sleep_ms(1);
  }
  return unavailable("the server did not start: " + child.last_words());
}

}  // namespace edgecase::cli::bench
