#include "app/serve.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "app/daemon.h"
#include "app/directories.h"
#include "app/notify.h"
#include "app/process_memory.h"
#include "app/remedy.h"
#include "config/credentials.h"
#include "observe/logger.h"
#include "observe/metrics.h"
#include "wire/errors.h"
#include "wire/version.h"

namespace edgecase::app {
namespace {

constexpr mode_t kFileModeMask = 0027;
// How often the line that `systemctl status` shows is renewed, at least.
constexpr std::int64_t kStatusIntervalNs = 10'000'000'000;

// Signals that mean "stop" are taken by sigtimedwait() alone; threads started later inherit the
// mask.
sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

int report_start(observe::Logger& logger, const Notifier& notifier, const Status& status) {
  const std::string line = with_remedy(status);
  logger.error("start", line);
  notifier.send("STATUS=" + line);
  if (status.code() == StatusCode::Corruption) return wire::kExitCorruption;
  if (status.code() == StatusCode::InvalidArgument) return wire::kExitUsage;
  return wire::kExitFailed;
}

// Until a stop signal comes: renews the status line and, while everything is alive, the watchdog.
void wait_for_stop(Daemon& daemon, const Notifier& notifier, const sigset_t& signals) {
  const std::int64_t watchdog_ns = notifier.watchdog_interval_ns();
  const std::int64_t interval_ns =
      watchdog_ns > 0 ? std::min(watchdog_ns, kStatusIntervalNs) : kStatusIntervalNs;
  const timespec interval{.tv_sec = interval_ns / 1'000'000'000,
                          .tv_nsec = interval_ns % 1'000'000'000};
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &interval);
    if (signal > 0) return;
    if (errno == EINTR) continue;
    const std::string line = daemon.check_alive();
    notifier.send("STATUS=" + line + (watchdog_ns > 0 ? "\nWATCHDOG=1" : ""));
  }
}

// The socket's directory, where its parent exists: /run is empty after every boot.
void make_socket_directory(const std::string& socket) {
  const std::size_t slash = socket.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  // What goes wrong here shows when the socket is bound, with its name.
  [[maybe_unused]] const int made = mkdir(socket.substr(0, slash).c_str(), 0755);
}

}  // namespace

int refuse_to_serve(const Status& configuration) {
  std::fprintf(stderr, "%s\n", configuration.message().c_str());
  Notifier::from_environment().send("STATUS=" + configuration.message());
  return wire::kExitUsage;
}

int serve(config::Configuration configuration) {
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  umask(kFileModeMask);
  keep_memory_small();
  dump_no_core();

  const Notifier notifier = Notifier::from_environment();
  observe::Logger logger(STDERR_FILENO, observe::log_style_of(STDERR_FILENO), system_clock());
  observe::Metrics metrics;
  const char* const credentials = std::getenv(config::kCredentialsVariable);
  if (const Status status = config::resolve_credentials(credentials, configuration); !status.ok()) {
    return refuse_to_serve(status);
  }
  if (const Status status = check_parts(configuration); !status.ok()) {
    return refuse_to_serve(status);
  }
  if (const Status status = prepare_directories(configuration); !status.ok()) {
    return refuse_to_serve(status);
  }
  make_socket_directory(configuration.settings.http.socket);
  logger.info("start", "edgecase " + std::string(wire::version()) + ", " +
                           (configuration.file.empty() ? "without a configuration file"
                                                       : configuration.file));

  Result<std::unique_ptr<Daemon>> daemon = Daemon::start(configuration, logger, metrics);
  if (!daemon.ok()) return report_start(logger, notifier, daemon.status());
  give_memory_back();  // what opening the store needed

  notifier.send("READY=1\nSTATUS=" + (*daemon)->check_alive());
  logger.info("start", "ready");
  wait_for_stop(**daemon, notifier, signals);

  notifier.send("STOPPING=1\nSTATUS=stopping");
  logger.info("start", "stopping");
  // A second signal ends the process at once: nothing acknowledged depends on an orderly end.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::move(daemon).value().reset();
  logger.info("start", "stopped");
  return wire::kExitOk;
}

}  // namespace edgecase::app
