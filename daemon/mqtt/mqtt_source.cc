#include "mqtt/mqtt_source.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "mqtt/connection.h"
#include "wire/names.h"
#include "wire/reading_format.h"

namespace edgecase::mqtt {
namespace {

constexpr std::size_t kClientIdMaxBytes = 256;

Result<ConnectionPlan> make_plan(const config::MqttSettings& settings,
                                 const config::LimitSettings& limits) {
  ConnectionPlan plan;
  plan.settings = settings;
  plan.limits = limits;
  EC_ASSIGN_OR_RETURN(plan.address, parse_broker_address(settings.broker));
  if (plan.address.secure) {
    const auto client =
        tls::TlsClient::load(settings.tls_ca, {settings.tls_cert, settings.tls_key});
    if (!client.ok()) return invalid_argument("mqtt.tls-ca: " + client.status().message());
    plan.tls = *client;
  } else if (!settings.tls_ca.empty()) {
    return invalid_argument("mqtt.tls-ca: is set, but mqtt.broker is not mqtts://");
  }
  if (settings.client_id.empty() || settings.client_id.size() > kClientIdMaxBytes ||
      !wire::is_valid_utf8(settings.client_id)) {
    return invalid_argument("mqtt.client-id: 1 to 256 bytes of UTF-8");
  }
  if (settings.client_id.find('\0') != std::string::npos) {
    return invalid_argument("mqtt.client-id: must not hold a NUL");
  }
  if (settings.username.empty() && !settings.password_file.empty()) {
    return invalid_argument("mqtt.password-file: needs mqtt.username");
  }
  EC_ASSIGN_OR_RETURN(plan.rules, compile_rules(settings.rules));
  plan.subscriptions = subscriptions_of(plan.rules);
  return plan;
}

}  // namespace

MqttSource::MqttSource(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
MqttSource::~MqttSource() = default;

Result<std::unique_ptr<MqttSource>> MqttSource::create(const config::MqttSettings& settings,
                                                       const config::LimitSettings& limits,
                                                       const MqttSourceParts& parts) {
  if (settings.broker.empty()) return std::unique_ptr<MqttSource>();
  EC_TRY(PahoClient::check_version());
  EC_ASSIGN_OR_RETURN(ConnectionPlan plan, make_plan(settings, limits));
  EC_TRY(read_password(settings.password_file).status());
  EC_ASSIGN_OR_RETURN(
      std::unique_ptr<SubscribedFilters> filters,
      SubscribedFilters::open(parts.engine, settings.client_id, plan.address.text()));
  auto connection = std::make_unique<Connection>(std::move(plan), parts, std::move(filters));
  EC_TRY(connection->open_gate());
  return std::unique_ptr<MqttSource>(new MqttSource(std::move(connection)));
}

void MqttSource::start() {
  connection_->start();
}
void MqttSource::stop() {
  connection_->stop();
}
MqttStatus MqttSource::status() const {
  return connection_->status();
}

Status check_mqtt_settings(const config::MqttSettings& settings) {
  EC_TRY(compile_rules(settings.rules).status());
  if (settings.broker.empty()) return ok();
  return make_plan(settings, {}).status();
}

namespace {

// What the broker has said that is not what its silence would mean.
nlohmann::ordered_json terms_json(const BrokerTerms& terms) {
  const BrokerTerms none;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (terms.is_session_shorter) json["session_expiry_seconds"] = terms.session_expiry_seconds;
  if (terms.has_keep_alive) json["keep_alive_seconds"] = terms.keep_alive_seconds;
  if (terms.receive_maximum != none.receive_maximum) {
    json["receive_maximum"] = terms.receive_maximum;
  }
  if (terms.maximum_qos != none.maximum_qos) json["maximum_qos"] = terms.maximum_qos;
  if (terms.maximum_packet_bytes != 0) json["maximum_packet_bytes"] = terms.maximum_packet_bytes;
  if (!terms.retain) json["retain"] = false;
  if (!terms.wildcards) json["wildcards"] = false;
  if (!terms.subscription_ids) json["subscription_ids"] = false;
  if (!terms.shared_subscriptions) json["shared_subscriptions"] = false;
  if (!terms.assigned_client_id.empty()) json["client_id"] = terms.assigned_client_id;
  return json;
}

std::size_t refused_count(const MqttStatus& status) {
  return static_cast<std::size_t>(
      std::count_if(status.poor_subscriptions.begin(), status.poor_subscriptions.end(),
                    [](const PoorSubscription& each) { return !each.granted_qos; }));
}

}  // namespace

std::string status_json(const MqttStatus& status) {
  const auto time_text = [](std::int64_t time_ns) {
    std::string text;
    wire::append_time(time_ns, text);
    return text;
  };
  nlohmann::ordered_json json = {{"broker", status.broker}, {"connected", status.connected}};
  json["acknowledged_means"] = "held by the broker; it lets go once it is durable here";
  json["qos0_means"] = "not acknowledged: the broker keeps no copy, so it is lost with the daemon";
  json["since"] = time_text(status.since_ns);
  if (!status.last_error.empty()) {
    json["last_error"] = status.last_error;
    json["last_error_time"] = time_text(status.last_error_ns);
  }
  if (status.last_message_ns != 0) json["last_message_time"] = time_text(status.last_message_ns);
  if (!status.protocol.empty()) json["protocol"] = status.protocol;
  if (auto terms = terms_json(status.terms); !terms.empty()) json["broker_terms"] = terms;
  json["connects"] = status.connects;
  json["subscriptions"] = status.subscriptions;
  json["subscriptions_refused"] = refused_count(status);
  json["subscriptions_lowered"] = status.poor_subscriptions.size() - refused_count(status);
  for (const PoorSubscription& each : status.poor_subscriptions) {
    nlohmann::ordered_json poor = {{"filter", each.filter}, {"qos", each.asked_qos}};
    if (each.granted_qos) {
      poor["granted"] = *each.granted_qos;
    } else {
      poor["granted"] = "refused";
      poor["reason"] = each.reason;
    }
    poor["since"] = time_text(each.since_ns);
    json["poor_subscriptions"].push_back(poor);
  }
  json["sessions_lost"] = status.sessions_lost;
  json["overdue"] = status.overdue;
  json["unacknowledged"] = status.unacknowledged;
  json["gate_connected"] = status.gate_connected;
  json["acknowledged"] = status.released;
  json["lag_seconds"] = static_cast<double>(status.lag_ns) / 1e9;
  status.counters.add_to(json);
  json["withheld"] = status.counters.withheld;
  json["lost_at_qos0"] = status.counters.lost_at_qos0;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void register_metrics(const MqttSource& source, observe::Metrics& metrics) {
  using observe::MetricKind;
  metrics.callback(MetricKind::Gauge, "edgecase_mqtt_connected", "1 while the broker is there.", {},
                   [&source] { return source.status().connected ? 1.0 : 0.0; });
  metrics.callback(MetricKind::Gauge, "edgecase_mqtt_lag_seconds",
                   "How long the messages at hand have waited for the drive.", {},
                   [&source] { return static_cast<double>(source.status().lag_ns) / 1e9; });
  metrics.callback(MetricKind::Gauge, "edgecase_mqtt_unacknowledged",
                   "Messages whose acknowledgement is held back until they are durable.", {},
                   [&source] { return static_cast<double>(source.status().unacknowledged); });
  metrics.callback(MetricKind::Gauge, "edgecase_mqtt_gate_connected",
                   "1 while a connection to the broker goes through the gate.", {},
                   [&source] { return source.status().gate_connected ? 1.0 : 0.0; });
  metrics.callback(MetricKind::Counter, "edgecase_mqtt_acknowledged_total",
                   "Acknowledgements that have left for the broker.", {},
                   [&source] { return static_cast<double>(source.status().released); });
  metrics.callback(MetricKind::Gauge, "edgecase_mqtt_subscriptions_refused",
                   "Subscriptions that the broker refuses: what they would bring does not come.",
                   {}, [&source] { return static_cast<double>(refused_count(source.status())); });
  metrics.callback(
      MetricKind::Gauge, "edgecase_mqtt_subscriptions_lowered",
      "Subscriptions that the broker grants at a lower QoS than was asked.", {}, [&source] {
        const MqttStatus status = source.status();
        return static_cast<double>(status.poor_subscriptions.size() - refused_count(status));
      });
  struct Row {
    const char* name;
    const char* help;
    std::uint64_t SinkCounters::*member;
  };
  for (const Row& row :
       {Row{"messages", "Messages received.", &SinkCounters::messages},
        Row{"readings", "Readings stored.", &SinkCounters::readings},
        Row{"rejected", "Messages kept in _rejected.", &SinkCounters::rejected},
        Row{"rejected_lost", "Rejected messages not kept.", &SinkCounters::rejected_lost},
        Row{"ignored", "Messages with nothing to store.", &SinkCounters::ignored},
        Row{"times_unbelievable",
            "Messages dated by arrival: theirs is no time of a clock that runs.",
            &SinkCounters::times_unbelievable},
        Row{"times_repeated", "Readings dated by arrival: another value has the time they say.",
            &SinkCounters::times_repeated},
        Row{"times_stale", "Readings dated by arrival: last heard before the newest reading.",
            &SinkCounters::times_stale},
        Row{"redelivered", "Messages with the DUP flag.", &SinkCounters::redelivered},
        Row{"repeats_dropped", "Messages stored before.", &SinkCounters::repeats_dropped},
        Row{"withheld", "Acknowledgements dropped, so that the broker sends again.",
            &SinkCounters::withheld},
        Row{"lost_at_qos0", "QoS 0 messages that came while the daemon stopped.",
            &SinkCounters::lost_at_qos0}}) {
    metrics.callback(MetricKind::Counter, "edgecase_mqtt_" + std::string(row.name) + "_total",
                     row.help, {}, [&source, member = row.member] {
                       return static_cast<double>(source.status().counters.*member);
                     });
  }
  metrics.callback(MetricKind::Counter, "edgecase_mqtt_connects_total", "Connections made.", {},
                   [&source] { return static_cast<double>(source.status().connects); });
}

namespace {

// By their number. A topic may hold the names of devices, so it is not told.
std::vector<std::string> actors_of(const std::vector<TopicRule>& rules, const std::string& source) {
  std::vector<std::string> actors(1, source);
  for (const TopicRule& rule : rules) {
    actors.resize(std::max(actors.size(), rule.number + 1));
    actors[rule.number] = source + " rule " + std::to_string(rule.number);
  }
  return actors;
}

}  // namespace

MessageSink::MessageSink(SinkParts parts)
    : parts_(std::move(parts)),
      actors_(actors_of(parts_.rules, parts_.source)),
      committer_({.pipeline = parts_.pipeline,
                  .rejected = parts_.rejected,
                  .clock = parts_.clock,
                  .logger = parts_.logger,
                  .thread_name = "mqtt-store",
                  .source = {auth::PrincipalKind::Mqtt, parts_.source},
                  .while_owed = WhileOwed::Hold},
                 [this] { on_committer(); }) {}

MessageSink::~MessageSink() {
  stop();
}

void MessageSink::stop() {
  {
    const MutexLock lock(take_mutex_);
    stopped_ = true;
  }
  committer_.stop();
}

void MessageSink::new_session() {
  const MutexLock lock(take_mutex_);
  repeats_.new_session();
}

void MessageSink::set_filters(const std::vector<std::string>& filters) {
  const MutexLock lock(take_mutex_);
  copies_.set_filters(filters);
}

bool MessageSink::has_overlaps() {
  const MutexLock lock(take_mutex_);
  return copies_.has_overlaps();
}

void MessageSink::new_connection() {
  const MutexLock lock(take_mutex_);
  copies_.new_connection();
}

SinkCounters MessageSink::counters() const {
  SinkCounters counters = committer_.counters();
  counters.lost_at_qos0 = lost_at_qos0_.load(std::memory_order_relaxed);
  return counters;
}

// A group is done, or the one that was full was taken.
void MessageSink::on_committer() {
  for (std::unique_ptr<MessageGroup>& group : committer_.take_done()) {
    durable_.fetch_add(group->messages().size(), std::memory_order_release);
    committer_.reuse(std::move(group));
  }
  full_.store(false, std::memory_order_relaxed);
  parts_.wake();
}

void MessageSink::take(std::span<const IncomingMessage> messages) {
  const MutexLock lock(take_mutex_);
  if (stopped_) {
    const auto lost = std::ranges::count(messages, 0, &IncomingMessage::qos);
    lost_at_qos0_.fetch_add(static_cast<std::uint64_t>(lost), std::memory_order_relaxed);
  } else {
    std::unique_ptr<MessageGroup> group = committer_.take();
    for (const IncomingMessage& message : messages) add(message, *group);
    if (group->full()) full_.store(true, std::memory_order_relaxed);
    committer_.offer(std::move(group));
  }
  // Refused ones leave a hole that durable() never passes.
  appended_.fetch_add(messages.size(), std::memory_order_release);
}

void MessageSink::add(const IncomingMessage& message, MessageGroup& group) {
  IncomingPublish publish;
  publish.topic = message.topic;
  publish.payload = message.payload;
  publish.packet_id = message.packet_id;
  publish.qos = static_cast<std::uint8_t>(message.qos);
  publish.duplicate = message.redelivered;
  publish.retained = message.retained;
  if (message.oversized_bytes != 0) {
    return group.add_oversized(publish, message.oversized_bytes, parts_.limits);
  }
  const bool again =
      (message.redelivered &&
       repeats_.is_redelivery(message.packet_id, message.topic, message.payload)) ||
      (message.retained && repeats_.is_retained_repeat(message.topic, message.payload)) ||
      (copies_.has_overlaps() && copies_.is_copy(message.topic, message.payload,
                                                 message.subscriptions, parts_.clock.boot_ns()));
  // The first one is in this group or in one before it, so both are durable together.
  if (again) return group.add_repeat(publish);
  const DecodeResult decoded =
      group.add(publish, parts_.rules, parts_.limits, parts_.pipeline, 0, parts_.names);
  const std::size_t number = decoded.rule == nullptr ? 0 : decoded.rule->number;
  group.messages().back().publisher = actors_[std::min(number, actors_.size() - 1)];
  if (decoded.outcome == DecodeOutcome::Readings) {
    repeats_.stored(message.packet_id, message.topic, message.payload);
  }
}

}  // namespace edgecase::mqtt
