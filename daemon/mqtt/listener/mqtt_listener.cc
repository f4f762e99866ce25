#include "mqtt/listener/mqtt_listener.h"

#include <nlohmann/json.hpp>

#include "mqtt/listener/poller.h"

namespace edgecase::mqtt {

Result<std::unique_ptr<MqttListener>> MqttListener::start(const ListenerOptions& options,
                                                          const ListenerParts& parts) {
  EC_ASSIGN_OR_RETURN(std::vector<net::Socket> sockets,
                      net::listen_on_all(options.host, options.port));
  EC_ASSIGN_OR_RETURN(std::unique_ptr<SessionRecords> records,
                      SessionRecords::open(parts.engine, parts.random));
  auto poller = std::make_unique<Poller>(options, parts, std::move(records), std::move(sockets));
  EC_TRY(poller->start());
  if (options.grant_subscriptions && parts.logger != nullptr) {
    parts.logger->notice("mqtt",
                         "mqtt.subscriptions = \"grant\": clients that subscribe are told yes, and "
                         "nothing is ever delivered to them");
  }
  return std::unique_ptr<MqttListener>(new MqttListener(std::move(poller)));
}

MqttListener::MqttListener(std::unique_ptr<Poller> poller) : poller_(std::move(poller)) {}
MqttListener::~MqttListener() = default;

void MqttListener::stop() {
  poller_->stop();
}
void MqttListener::set_rules(std::vector<TopicRule> rules) {
  poller_->set_rules(std::move(rules));
}
std::uint16_t MqttListener::port() const {
  return poller_->port();
}
ListenerStatus MqttListener::status() const {
  return poller_->status();
}

std::string status_json(const ListenerStatus& status) {
  nlohmann::ordered_json json = {{"address", status.address}};
  json["acknowledged_means"] = "durable on the drive";
  json["qos0_means"] = "not acknowledged: lost with the daemon until its group is stored";
  json["connections"] = status.connections;
  json["connects"] = status.connects;
  json["refused"] = status.refused;
  json["failed"] = status.failed;
  json["taken_over"] = status.taken_over;
  json["sessions"] = status.sessions;
  json["wills"] = status.wills;
  json["lag_seconds"] = static_cast<double>(status.lag_ns) / 1e9;
  status.counters.add_to(json);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void register_metrics(const MqttListener& listener, observe::Metrics& metrics) {
  using observe::MetricKind;
  const auto add = [&](MetricKind kind, const char* name, const char* help, auto value) {
    metrics.callback(kind, std::string("edgecase_mqtt_listener_") + name, help, {},
                     [&listener, value] { return static_cast<double>(value(listener.status())); });
  };
  using S = const ListenerStatus&;
  add(MetricKind::Gauge, "connections", "Connections open.", [](S s) { return s.connections; });
  add(MetricKind::Gauge, "sessions", "Sessions kept.", [](S s) { return s.sessions; });
  add(MetricKind::Gauge, "lag_seconds", "How long acknowledgements have waited for the drive.",
      [](S s) { return static_cast<double>(s.lag_ns) / 1e9; });
  add(MetricKind::Counter, "connects_total", "Clients taken.", [](S s) { return s.connects; });
  add(MetricKind::Counter, "refused_total", "Connections refused.", [](S s) { return s.refused; });
  add(MetricKind::Counter, "failed_total", "Connections ended for what they did.",
      [](S s) { return s.failed; });
  add(MetricKind::Counter, "wills_total", "Wills of clients that were lost.",
      [](S s) { return s.wills; });
  add(MetricKind::Counter, "times_unbelievable_total",
      "Messages dated by arrival: theirs is no time of a clock that runs.",
      [](S s) { return s.counters.times_unbelievable; });
  add(MetricKind::Counter, "times_repeated_total",
      "Readings dated by arrival: another value has the time they say.",
      [](S s) { return s.counters.times_repeated; });
  add(MetricKind::Counter, "times_stale_total",
      "Readings dated by arrival: last heard before the newest reading.",
      [](S s) { return s.counters.times_stale; });
  add(MetricKind::Counter, "messages_total", "Messages received.",
      [](S s) { return s.counters.messages; });
  add(MetricKind::Counter, "readings_total", "Readings stored.",
      [](S s) { return s.counters.readings; });
  add(MetricKind::Counter, "rejected_total", "Messages kept in _rejected.",
      [](S s) { return s.counters.rejected; });
  add(MetricKind::Counter, "rejected_lost_total", "Rejected messages not kept.",
      [](S s) { return s.counters.rejected_lost; });
  add(MetricKind::Counter, "redelivered_total", "Messages with the DUP flag.",
      [](S s) { return s.counters.redelivered; });
  add(MetricKind::Counter, "repeats_dropped_total", "Messages stored before.",
      [](S s) { return s.counters.repeats_dropped; });
}

}  // namespace edgecase::mqtt
