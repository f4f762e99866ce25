// The one door from the command line into the daemon; and the process it runs in: its memory,
// shared out, kept small and out of core dumps, and what the service manager is told of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "config/configuration.h"
#include "config/settings.h"

namespace edgecase::app {

// Runs the daemon until SIGTERM or SIGINT, then stops it in order. Returns the exit code: 0
// stopped as asked; 2 the configuration does not fit this machine (a directory that is missing or
// cannot be written); 7 the store is damaged; 1 everything else, another daemon on the store and a
// port in use included. Says why on stderr. Credentials are those
// of this process (config/configuration.h).
//
// On SIGHUP, unless that was ignored from the start, it takes what may change from what `read`
// answers (Daemon::reload()); where that is wrong the log says so, and nothing changes.
using ReadAgain = std::function<Result<config::Configuration>()>;
int serve(config::Configuration configuration, const ReadAgain& read);

// Says on stderr, and to the service manager, why there is nothing to serve with; 2. A process that
// ends at once may be gone before the journal knows whose line it was: what `systemctl status`
// shows as the status stays.
int refuse_to_serve(const Status& configuration);

// What the parts would refuse at start, worded as by load_configuration(): an [[mqtt.rule]] that
// does not compile, a certificate that cannot be used.
Status check_parts(const config::Configuration& configuration);

// The memory of the process.

// How the memory of the whole process is shared out.
struct MemoryShares {
  std::uint64_t engine_bytes = 0;
  std::uint64_t catalog_bytes = 0;         // of these, the most that names may take
  std::uint64_t in_flight_bytes = 0;       // request bodies, connections' TLS
  std::uint64_t mqtt_in_flight_bytes = 0;  // the same of mqtt.listen: packets not whole yet, TLS
};
// Five eighths for the engine, which makes do with less of it as the catalog takes more, and up to
// three for what is in flight; what is neither (code, stacks, answers that are being sent) fits
// into what both leave unused. Where mqtt.listen is on, one of the three eighths is its own, half
// of it for packets, the rest for messages on their way to the drive; where it speaks TLS, half an
// eighth of the engine's is for that. The settings say what is allowed at most.
MemoryShares share_memory(const config::Settings& settings);

// Tells the allocator to serve all threads from few arenas and to return what is free. Before
// threads start.
void keep_memory_small();
// Returns what is free now: what lies between what is in use, too. Takes milliseconds.
void give_free_memory_back();
// The same, and the pages of code and constants that were read so far: most were
// for starting, the libraries' own above all.
void give_memory_back();
// Keys and readings are not to be found in a core dump. To look for a fault, allow one for a daemon
// that runs: prlimit --core.
void dump_no_core();

// Tells systemd how the daemon is (sd_notify protocol, Type=notify): one datagram a message to the
// socket that NOTIFY_SOCKET names. Silent where there is none. Thread-safe.
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
