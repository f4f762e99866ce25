#include "app/serve.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "app/daemon.h"
#include "app/store_faults.h"
#include "config/configuration.h"
#include "config/settings.h"
#include "mqtt/mqtt_source.h"
#include "mqtt/topic_rule.h"
#include "observe/logger.h"
#include "observe/metrics.h"
#include "tls/tls_ends.h"
#include "wire/contract.h"

namespace edgecase::app {
namespace {

constexpr mode_t kFileModeMask = 0027;
// How often the line that `systemctl status` shows is renewed, at least.
constexpr std::int64_t kStatusIntervalNs = 10'000'000'000;

// Open files that the daemon needs at least: its log, tables, listeners and a few connections.
constexpr rlim_t kFilesMin = 64;

// Signals that mean something here are taken by sigtimedwait() alone; threads started later inherit
// the mask. A SIGHUP that was ignored when the process began (nohup) stays ignored.
sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGXCPU);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
    sigaddset(&signals, SIGHUP);
  return signals;
}

// Before anything is made that would have to stay half made.
Status check_limits() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max >= kFilesMin) return ok();
  return io_error("the limit RLIMIT_NOFILE (ulimit -n, LimitNOFILE) is " +
                  std::to_string(files.rlim_max) + ", the daemon needs at least " +
                  std::to_string(kFilesMin));
}

int report_start(observe::Logger& logger, const Notifier& notifier, const Status& status) {
  const std::string line = with_remedy(status);
  logger.error("start", line);
  notifier.send("STATUS=" + line);
  if (status.code() == StatusCode::Corruption) return wire::kExitCorruption;
  if (status.code() == StatusCode::InvalidArgument) return wire::kExitUsage;
  return wire::kExitFailed;
}

// What is wrong with a configuration before anything is done by it.
Status take_credentials(config::Configuration& configuration) {
  EC_TRY(config::resolve_credentials(std::getenv(config::kCredentialsVariable), configuration));
  return check_parts(configuration);
}

Status reload(Daemon& daemon, const ReadAgain& read) {
  EC_ASSIGN_OR_RETURN(config::Configuration fresh, read());
  EC_TRY(take_credentials(fresh));
  return daemon.reload(fresh);
}

// As systemd counts.
std::int64_t monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

// The service manager waits for READY=1 after it was told of a reload.
void reload_and_tell(Daemon& daemon, const ReadAgain& read, const Notifier& notifier,
                     observe::Logger& logger) {
  notifier.send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_us()) +
                "\nSTATUS=reading the configuration again");
  const Status status = reload(daemon, read);
  if (!status.ok())
    logger.error("start", "the configuration is not read again, nothing changes: " +
                              std::string(status.message()));
  notifier.send("READY=1\nSTATUS=" + daemon.check_alive());
}

// Until a stop signal comes, which it answers: renews the status line and, while everything is
// alive, the watchdog.
int wait_for_stop(Daemon& daemon, const Notifier& notifier, const sigset_t& signals,
                  const std::function<void()>& reload) {
  const std::int64_t watchdog_ns = notifier.watchdog_interval_ns();
  const std::int64_t interval_ns =
      watchdog_ns > 0 ? std::min(watchdog_ns, kStatusIntervalNs) : kStatusIntervalNs;
  const timespec interval{.tv_sec = interval_ns / 1'000'000'000,
                          .tv_nsec = interval_ns % 1'000'000'000};
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &interval);
    if (signal == SIGHUP) {
      reload();
      continue;
    }
    if (signal > 0) return signal;
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

int serve(config::Configuration configuration, const ReadAgain& read) {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  umask(kFileModeMask);
  keep_memory_small();
  dump_no_core();

  if (const Status status = check_limits(); !status.ok()) {
    static_cast<void>(refuse_to_serve(status));
    return wire::kExitFailed;
  }

  const Notifier notifier = Notifier::from_environment();
  observe::Logger logger(STDERR_FILENO, observe::log_style_of(STDERR_FILENO), system_clock());
  observe::Metrics metrics;
  if (const Status status = take_credentials(configuration); !status.ok()) {
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
  const auto reload = [&] { reload_and_tell(**daemon, read, notifier, logger); };
  const int signal = wait_for_stop(**daemon, notifier, signals, reload);
  const bool is_out_of_time = signal == SIGXCPU;
  if (is_out_of_time) {
    logger.error("start",
                 "no processor time is left: the limit RLIMIT_CPU (ulimit -t, LimitCPU) or "
                 "RLIMIT_RTTIME is reached");
  }

  notifier.send("STOPPING=1\nSTATUS=stopping");
  logger.info("start", "stopping");
  // A second signal ends the process at once: nothing acknowledged depends on an orderly end.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::move(daemon).value().reset();
  logger.info("start", "stopped");
  return is_out_of_time ? wire::kExitFailed : wire::kExitOk;
}

namespace {

// tidy: allow-file message-text: the key in front of a setting's error finds its place in the file

// "mqtt.username: is missing" with the place of the setting before it.
Status with_place(const config::Configuration& configuration, const Status& status) {
  const std::string_view message = status.message();
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return status;
  const std::string_view key = message.substr(0, colon);
  if (config::find_setting(key) == nullptr) return status;
  return configuration.error(key, message.substr(colon + 2));
}

// "mqtt.rule 2 (line 14): topic: …" as "e.toml:15:9: mqtt.rule.topic: …"; of no key in particular,
// the rule's own place.
Status with_rule_place(const config::Configuration& configuration, std::size_t number,
                       const Status& status) {
  std::string_view what = status.message();
  what.remove_prefix(what.find(": ") + 2);
  const std::string_view key = what.substr(0, what.find(": "));
  const config::Origin origin = configuration.origin_of(config::rule_origin(number, key));
  if (origin.kind == config::OriginKind::File) {
    return invalid_argument(origin.where + ": mqtt.rule." + std::string(what));
  }
  const std::string& where = configuration.settings.mqtt.rules[number - 1].where;
  return invalid_argument((where.empty() ? "default" : where) +
                          ": mqtt.rule: " + std::string(what));
}

}  // namespace

Status check_parts(const config::Configuration& configuration) {
  EC_TRY(check_certificates(configuration));
  EC_TRY(check_forwarding(configuration));
  EC_TRY(config::load_master_keys(configuration).status());
  std::size_t number = 0;
  for (const config::MqttRuleSettings& rule : configuration.settings.mqtt.rules) {
    const Result<mqtt::TopicRule> compiled = mqtt::compile_rule(rule, ++number);
    if (!compiled.ok()) return with_rule_place(configuration, number, compiled.status());
  }
  const Status status = mqtt::check_mqtt_settings(configuration.settings.mqtt);
  return status.ok() ? ok() : with_place(configuration, status);
}

}  // namespace edgecase::app

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace edgecase::app {
namespace {

// For dl_iterate_phdr(). Only what cannot be written and therefore is as in the file: such a page
// comes back from there when it is touched.
int forget_pages(dl_phdr_info* object, std::size_t, void* page_bytes) {
  const std::uintptr_t page = *static_cast<const std::uintptr_t*>(page_bytes);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    // Whole pages of this segment alone.
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t end = (begin + segment.p_filesz) / page * page;
    if (first >= end) continue;
    // What cannot be let go of, the kernel's own page among it, stays.
    static_cast<void>(madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED));
  }
  return 0;
}

}  // namespace

MemoryShares share_memory(const config::Settings& settings) {
  const std::uint64_t eighth = settings.storage.memory_limit_bytes / 8;
  const bool listens = !settings.mqtt.listen.empty();
  const std::uint64_t mqtt_tls_bytes =
      listens && !settings.mqtt.tls_cert.empty()
          ? std::min(settings.mqtt.connections * tls::kTlsChannelBytes, eighth / 2)
          : 0;
  const std::uint64_t engine_bytes = eighth * 5 - mqtt_tls_bytes;
  return {
      .engine_bytes = engine_bytes,
      .catalog_bytes = eighth * 2,
      .in_flight_bytes = std::min(settings.http.in_flight_limit_bytes, eighth * (listens ? 2 : 3)),
      .mqtt_in_flight_bytes =
          std::min(settings.mqtt.in_flight_limit_bytes, eighth / 2) + mqtt_tls_bytes};
}

void keep_memory_small() {
#ifdef __GLIBC__
  // Up to eight arenas a core are the default, each of which keeps what it once needed. What
  // requests take and give back in turn is kept for the next one: asking the kernel each time cost
  // a quarter of the processor time of ingest, in page faults.
  constexpr int kArenas = 2;
  constexpr int kReturnFromBytes = 4 << 20;
  mallopt(M_ARENA_MAX, kArenas);
  mallopt(M_TRIM_THRESHOLD, kReturnFromBytes);
  mallopt(M_MMAP_THRESHOLD, kReturnFromBytes);
#endif
}

void give_free_memory_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void give_memory_back() {
  give_free_memory_back();
  auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  dl_iterate_phdr(forget_pages, &page_bytes);
}

void dump_no_core() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  // One byte is less than any dump, as none is; but where dumps are piped to a program, the kernel
  // heeds one alone. A process that may not be dumped (PR_SET_DUMPABLE) could not be looked at by
  // its own user either: `bench` does.
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1);
  static_cast<void>(setrlimit(RLIMIT_CORE, &limit));
}

namespace {

std::int64_t whole_number(const char* text) {
  std::int64_t value = 0;
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end && value > 0 ? value : 0;
}

}  // namespace

Notifier Notifier::from_environment() {
  const char* socket_path = std::getenv("NOTIFY_SOCKET");
  std::int64_t microseconds = whole_number(std::getenv("WATCHDOG_USEC"));
  // The variables may have been meant for our parent.
  const std::int64_t pid = whole_number(std::getenv("WATCHDOG_PID"));
  if (pid != 0 && pid != getpid()) microseconds = 0;
  return {socket_path == nullptr ? "" : socket_path, microseconds * 1000 / 2};
}

void Notifier::send(std::string_view message) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // abstract
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path_.size());
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  // Nobody to tell when systemd does not listen.
  [[maybe_unused]] const ssize_t sent = sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
                                               reinterpret_cast<const sockaddr*>(&storage), size);
  close(fd);
}

}  // namespace edgecase::app
