// Processes that the bench starts, what they use, and how they end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::cli::bench {

// A private server for a measurement: a process of ours that ends with us, whatever way we end.
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

// Ctrl-C, asked for instead of suffered: a workload looks between two operations, returns, and its
// directories and processes are cleared away as at any other end.

// From now on SIGINT and SIGTERM only set the flag.
void watch_for_interrupt();
bool interrupted();
// Cancelled once interrupted.
Status check_interrupt();

// Reads from the kernel what a process uses: memory, and bytes it made the drives write.
struct ProcessUsage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t resident_anonymous_bytes = 0;  // without mapped files
  std::uint64_t peak_resident_bytes = 0;
  std::uint64_t written_bytes = 0;     // pages made dirty and written back, not system calls
  std::uint64_t write_call_bytes = 0;  // handed to write() and its like
  std::uint64_t cpu_ns = 0;            // user and system; of threads that are there
  std::uint64_t waits = 0;             // how often its threads have given up the processor to wait
};

// Zeros where the kernel does not tell.
ProcessUsage usage_of(pid_t process);
ProcessUsage own_usage();
// Processor time of the calling thread, user and system.
std::uint64_t thread_cpu_ns();
// The peak counts from here on.
void reset_own_peak();

}  // namespace edgecase::cli::bench
