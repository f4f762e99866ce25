// Everything of a running daemon: built in order, stopped in reverse.
//
// Use: start(), then check_alive() from time to time, then destroy it. Logger, metrics and the
// configuration must outlive it. start() and the destructor belong to one thread; the others are
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/configuration.h"
#include "observe/logger.h"
#include "observe/metrics.h"

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

}  // namespace edgecase::app
