// A real mosquitto on a port of its own choice and in a private directory, with persistence on.
// Ends with the test, also when the test dies. Not thread-safe.
//
//   if (!MosquittoBroker::is_installed()) { MESSAGE("skipped: mosquitto is not installed"); return;
//   } MosquittoBroker broker; REQUIRE(broker.start()); broker.publish("s/k/t", {"1", "2"});
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/temp_directory.h"

namespace edgecase::test {

class MosquittoBroker {
 public:
  static bool is_installed();

  // `extra` are more lines of mosquitto.conf.
  explicit MosquittoBroker(std::string extra = "");
  ~MosquittoBroker();
  MosquittoBroker(const MosquittoBroker&) = delete;
  MosquittoBroker& operator=(const MosquittoBroker&) = delete;

  // Returns once it takes connections. The port stays the same after stop() or kill().
  bool start();
  void stop();  // saves its state
  void kill();  // SIGKILL; what it saved last is what it knows afterwards
  // SIGSTOP and SIGCONT; for a broker that is slow to be given a processor.
  void pause();
  void go_on();

  std::string url() const;  // "mqtt://127.0.0.1:PORT"
  std::uint16_t port() const { return port_; }
  std::string log() const;  // what it has said so far; each packet with "log_type all"

  // One message a line, in order, over one connection; true once the broker has acknowledged all
  // (QoS 1). Payloads hold no line breaks.
  bool publish(const std::string& topic, const std::vector<std::string>& payloads, int qos = 1);
  // Any bytes, and the retain flag.
  bool publish_one(const std::string& topic, const std::string& payload, bool retain, int qos = 1);

 private:
  bool takes_connections() const;
  std::vector<std::string> publisher(const std::string& topic, int qos) const;

  TempDirectory directory_;
  const std::string extra_;
  std::uint16_t port_ = 0;
  pid_t process_ = -1;
};

// Starts `arguments` (argv[0] is looked up in PATH), gives it `input`, and waits. -1: not started.
int run_process(const std::vector<std::string>& arguments, const std::string& input);
// Starts it and returns its process id; it dies with this process. Output goes to `log_path`.
pid_t start_process(const std::vector<std::string>& arguments, const std::string& log_path);

// Looks every few milliseconds whether `condition` holds, for at most `seconds`.
bool eventually(const std::function<bool()>& condition, double seconds = 60);

}  // namespace edgecase::test
