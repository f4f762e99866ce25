// Tells systemd how the daemon is (sd_notify protocol, Type=notify): one datagram a message to the
// socket that NOTIFY_SOCKET names. Silent where there is none. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace edgecase::app {

class Notifier {
 public:
  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of the environment.
  static Notifier from_environment();
  Notifier(std::string socket_path, std::int64_t watchdog_interval_ns)
      : socket_path_(std::move(socket_path)), watchdog_interval_ns_(watchdog_interval_ns) {}

  // "READY=1", "STATUS=...", several split by line breaks. Never waits.
  void send(std::string_view message) const;
  // How often WATCHDOG=1 is due: half of what systemd waits. 0: no watchdog.
  std::int64_t watchdog_interval_ns() const { return watchdog_interval_ns_; }

 private:
  std::string socket_path_;
  std::int64_t watchdog_interval_ns_ = 0;
};

}  // namespace edgecase::app
