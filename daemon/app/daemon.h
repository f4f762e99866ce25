// Everything of a running daemon: built in order, stopped in reverse (Daemon). And its parts, as
// its settings say (setup.cc): the audit log, the forwarder, moves of undated readings, the
// listeners, the clock (StoreClock).
//
// Use: start(), then check_alive() from time to time, then destroy it. Logger, metrics and the
// configuration must outlive it. start() and the destructor belong to one thread; the others are
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "audit/audit_log.h"
#include "auth/token_store.h"
#include "config/configuration.h"
#include "config/settings.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"
#include "forward/forwarding.h"
#include "ingest/redating.h"
#include "net/channel.h"
#include "observe/logger.h"
#include "observe/metrics.h"
#include "retention/eviction.h"
#include "sign/signature.h"
#include "tiers/tier_maker.h"
#include "tls/tls_ends.h"

namespace edgecase::mqtt {
class MqttSource;
}

namespace edgecase::app {

class Daemon {
 public:
  // Directories are prepared already (store_faults.h). Errors: the engine's, the listeners', the
  // MQTT source's. A broker that is down is none: the source goes on trying.
  static Result<std::unique_ptr<Daemon>> start(const config::Configuration& configuration,
                                               observe::Logger& logger, observe::Metrics& metrics);
  // Listeners first, then the broker, then the store. Requests under way finish.
  ~Daemon();

  // Takes from `fresh`, which check_parts() has passed, what may change while it runs: the broker
  // of [mqtt], the rules, certificates, names and proxies. The log says what did, and what else
  // needs a restart. After an error nothing has changed. By the thread of check_alive().
  Status reload(const config::Configuration& fresh);

  // Passes through the locks of every part and returns; a part that hangs never lets it return, so
  // that the watchdog of the service manager does its work. Does no I/O: a slow drive is no reason
  // to be restarted. Returns one line for people, what systemctl status shows.
  std::string check_alive();

 private:
  struct State;
  explicit Daemon(std::unique_ptr<State> state);
  // The steps of start(), in their order.
  static Status open_store(State& state, const config::Configuration& configuration);
  static Status make_services(State& state, const config::Configuration& configuration);
  static Status start_forwarding(State& state);
  static std::string mqtt_status_json(const State& state);
  static Status start_mqtt_listener(State& state, observe::Logger& logger);
  static Result<std::unique_ptr<mqtt::MqttSource>> make_source(
      State& state, const config::MqttSettings& settings);
  static void make_tiers(State& state);
  static void make_eviction(State& state);
  static Status make_redating(State& state);
  std::unique_ptr<State> state_;
};

// The audit log of a daemon: opened as the settings say, with the records of its start and stop,
// and of evictions.

// Says that the daemon starts.
Result<std::unique_ptr<audit::AuditLog>> open_audit_log(const config::Settings& settings,
                                                        Engine& engine, Clock& clock,
                                                        observe::Logger& logger);
// The last record; ends the log.
void note_stop(audit::AuditLog& log);

// What a daemon says of tiers: where settings do not go with them, and what did not become windows.
void tell_tiers(const config::StorageSettings& storage, bool has_tiers, observe::Logger& logger);
tiers::TierEvents tier_events(observe::Logger& logger);
// What a daemon says of evictions: log lines and records. Both outlive the events.
retention::EvictionEvents eviction_events(audit::AuditLog& audit, observe::Logger& logger);

// Forwarding as the daemon has it: with the audit log's records of which targets there are, and of
// how much went where.

// The files of [[forward]] can be used. Errors begin with the setting's place.
Status check_forwarding(const config::Configuration& configuration);

// `parts` without its functions; `audit` outlives what is made.
Result<std::unique_ptr<forward::Forwarding>> open_forwarding(forward::ForwardingParts parts,
                                                             const config::Settings& settings,
                                                             audit::AuditLog& audit,
                                                             sign::SigningKey& key);

// Sets up the dating of undated readings: the id of this boot, and the log lines and audit records
// when readings are dated later.

// The kernel's. Where that cannot be read, one of this process alone: then a restart of the daemon
// counts as one of the board, and what waits for the clock is dated by estimate.
std::string this_boot_id(Random& random);

// Both outlive the events.
ingest::RedatingEvents redating_events(audit::AuditLog& audit, observe::Logger& logger);

// The listeners of HTTP and MQTT at the start: their certificates, who may reach them, and what the
// log says of them.

// The files of http.tls-* and mqtt.tls-* can be used. Errors begin with the setting's place.
Status check_certificates(const config::Configuration& configuration);

// What the listener of `section` ("http", "mqtt") makes channels by: plain where `files` are "".
// A certificate that ends soon, and later one that cannot be renewed, is logged. `logger` must
// outlive the channels.
struct ListenerTls {
  net::ChannelMaker channels;
  std::shared_ptr<tls::TlsServer> server;  // whose files may change; null: plain
};
// While `clock` is not trusted, clients' certificates need only hold after the build of the
// program.
Result<ListenerTls> listener_tls(const std::string& section, const tls::TlsFiles& files,
                                 const Clock& clock, observe::Logger& logger);
tls::TlsFiles tls_files(const config::HttpSettings& settings);
tls::TlsFiles tls_files(const config::MqttSettings& settings);

// Nobody reaches the daemon from another machine who could not show a token: the error names the
// setting that would let them. Listeners that others reach without TLS or a token are logged.
Status check_reach(const config::Configuration& configuration, const auth::TokenStore& tokens,
                   observe::Logger& logger);

// Logs where HTTP listens, with the port that the system chose where the setting says 0.
void log_listeners(const config::HttpSettings& settings, std::uint16_t tcp_port,
                   observe::Logger& logger);

// Compares a configuration that is read again with the one in force.

// What differs between two configurations, and what of it holds without a restart.
struct SettingChanges {
  bool of_rules = false;
  bool of_source = false;       // rules included
  std::string now, at_restart;  // keys, with commas between them
};
SettingChanges changes_of(const config::Settings& before, const config::Settings& after);

// The store's clock, and the watch over what it makes expire.

// The machine's clock, as far as what the store knows bears it out: behind the latest time that it
// has known it is not trusted, unless a time server confirms it. The engine itself has
// forward::HeldClock. Thread-safe once follow() was called.
class StoreClock final : public Clock {
 public:
  // How exactly the store knows it over a crash.
  static constexpr std::int64_t kBehindMaxNs = 60'000'000'000;

  explicit StoreClock(Clock& machine) : machine_(machine) {}
  // From now on; the engine outlives whoever asks for trust().
  void follow(Engine& engine) { engine_ = &engine; }

  std::int64_t wall_ns() const override { return machine_.wall_ns(); }
  std::int64_t boot_ns() const override { return machine_.boot_ns(); }
  bool synchronised() const override { return machine_.synchronised(); }

  ClockTrust trust() const override {
    if (machine_.trust() == ClockTrust::Untrusted || engine_ == nullptr) return machine_.trust();
    std::int64_t latest_ns = 0;
    const bool is_behind = !__builtin_add_overflow(machine_.wall_ns(), kBehindMaxNs, &latest_ns) &&
                           latest_ns < engine_->expiry_now_ns();
    return is_behind && !synchronised() ? ClockTrust::Untrusted : ClockTrust::Trusted;
  }

 private:
  Clock& machine_;
  Engine* engine_ = nullptr;
};

// Says in the log, and of what is held in the audit log too, when expiry stops to go with the clock
// and when it does again. One thread.
class ExpiryWatch {
 public:
  // Both outlive it.
  ExpiryWatch(observe::Logger& logger, audit::AuditLog& audit) : logger_(logger), audit_(audit) {}

  void look(const ExpiryStats& stats);

 private:
  void note(const char* operation, std::uint64_t bytes);

  observe::Logger& logger_;
  audit::AuditLog& audit_;
  ExpiryWait wait_ = ExpiryWait::None;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace edgecase::app
