#include "mqtt/listener/mqtt_listener.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

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

// The poller's sessions that come back after a restart of the daemon, and go.

// Loads sessions without a connection, and those that had one when the daemon ended.
Status MqttListener::Poller::load_sessions() {
  const std::size_t sessions_max = SessionTable::kKeptMax + options_.connections;
  EC_ASSIGN_OR_RETURN(const SessionRecords::Loaded loaded,
                      records_->load(sessions_, sessions_max, parts_.clock.boot_ns()));
  {
    const MutexLock lock(mutex_);
    status_.sessions = sessions_.size();
  }
  if (parts_.logger == nullptr || loaded.unreadable + loaded.surplus == 0) return ok();
  parts_.logger->warning("mqtt",
                         "of the sessions of MQTT clients " + std::to_string(loaded.unreadable) +
                             " records cannot be read and " + std::to_string(loaded.surplus) +
                             " are too many: what they tell of comes again as if it were new");
  return ok();
}

// Where their clients do not come again, nothing else has their records removed.
void MqttListener::Poller::forget_ended() {
  if (!sessions_.has_ended()) return;
  std::unique_ptr<MessageGroup> group = committer_->take();
  add_ended_sessions(sessions_, *records_, *group);
  committer_->offer(std::move(group));
}

void MqttListener::Poller::publish_wills() {
  if (!sessions_.has_due_wills()) return;
  std::unique_ptr<MessageGroup> group = committer_->take();
  const std::size_t wills = add_due_wills(conversation_parts_, *group);
  committer_->offer(std::move(group));
  const MutexLock lock(mutex_);
  status_.wills += wills;
}

void MqttListener::Poller::set_rules(std::vector<TopicRule> rules) {
  const MutexLock lock(fresh_mutex_);
  fresh_rules_ = std::move(rules);
  wake();
}

// Nothing that was decoded by the old ones leads to them any more.
void MqttListener::Poller::take_rules() {
  const MutexLock lock(fresh_mutex_);
  if (fresh_rules_) rules_ = *std::exchange(fresh_rules_, std::nullopt);
}

void MqttListener::Poller::note_end(const Connection& connection) {
  const Conversation& conversation = connection.conversation;
  if (conversation.failure().empty() || stopping_) return;
  {
    const MutexLock lock(mutex_);
    ++(conversation.is_connected() ? status_.failed : status_.refused);
  }
  if (parts_.logger == nullptr) return;
  const std::string who =
      conversation.is_connected() ? "client \"" + conversation.client_id() + "\" of " : "";
  parts_.logger->log_keyed(observe::LogLevel::Notice, "mqtt", "listener ended",
                           "closed " + who + connection.address + ": " + conversation.failure());
}

// Connections that have been too slow, or silent for too long.

void MqttListener::Poller::sweep() {
  next_sweep_ns_ = now_ns_ + options_.sweep_ns;
  if (accept_again_ns_ != 0 && now_ns_ >= accept_again_ns_) {
    accept_again_ns_ = 0;
    watch_listeners(EPOLLIN);
  }
  sessions_.remove_expired(now_ns_);
  std::vector<std::uint64_t> gone;
  for (const auto& [id, each] : connections_) {
    Connection& connection = *each;
    const bool unread = !connection.conversation.output().empty() &&
                        now_ns_ - connection.written_ns > options_.write_grace_ns;
    const bool closed =
        connection.closing_ns != 0 && now_ns_ - connection.closing_ns > options_.close_ns;
    if (unread || closed) {
      gone.push_back(id);
      continue;
    }
    std::string why;
    ReasonCode reason = ReasonCode::Unspecified;
    if (is_overdue(connection, why, reason)) end(connection, reason, why);
  }
  for (const std::uint64_t id : gone) {
    end(*find(id), ReasonCode::Unspecified, "it does not read what is sent to it");
    close(id);
  }
  send_touched();
  const MutexLock lock(mutex_);
  status_.sessions = sessions_.size();
}

bool MqttListener::Poller::is_overdue(Connection& connection, std::string& why,
                                      ReasonCode& reason) const {
  const Conversation& conversation = connection.conversation;
  // Nobody is late while it is not read.
  if (conversation.has_ended() || (connection.events & EPOLLIN) == 0) return false;
  if (!conversation.is_connected() && now_ns_ - connection.opened_ns > options_.connect_ns) {
    why = "no CONNECT in time";
    reason = ReasonCode::NotAuthorized;
    return true;
  }
  if (conversation.partial_since_ns() != 0) {
    const std::int64_t extra_seconds = static_cast<std::int64_t>(
        conversation.partial_bytes() / options_.packet_bytes_per_second_min);
    // A client that sends, however slowly, is waited for; one that has stopped is not, nor any for
    // ever.
    const std::int64_t paid_until_ns =
        conversation.partial_since_ns() + extra_seconds * 1'000'000'000;
    if (now_ns_ - std::min(paid_until_ns,
                           std::max(connection.heard_ns, conversation.partial_since_ns())) >
        options_.packet_grace_ns) {
      why = "a packet came too slowly";
      reason = ReasonCode::Unspecified;
      return true;
    }
  }
  const std::int64_t keep_alive_ns = conversation.keep_alive_ns();
  if (keep_alive_ns != 0 && now_ns_ - connection.heard_ns > keep_alive_ns) {
    why = "nothing was heard for one and a half times its keep-alive";
    reason = ReasonCode::KeepAliveTimeout;
    return true;
  }
  return false;
}

// Connections that are not read for a while, and are read again.

// Nobody is late for what was not read.
void MqttListener::Poller::resume(Connection& connection) {
  if (connection.owes_until_ns > now_ns_) {
    owing_.push_back(connection.id);
    next_paid_ns_ = next_paid_ns_ == 0 ? connection.owes_until_ns
                                       : std::min(next_paid_ns_, connection.owes_until_ns);
    return;
  }
  const std::int64_t pause_ns = now_ns_ - std::exchange(connection.paused_ns, 0);
  connection.heard_ns += pause_ns;
  connection.conversation.excuse(pause_ns);
  watch(connection);
}

// What it has sent by now is stored, and acknowledged; the rest waits on its way.
void MqttListener::Poller::hold_back(std::uint64_t id, std::int64_t owed_ns) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->conversation.has_ended()) return;
  connection->owes_until_ns = std::max(connection->owes_until_ns, now_ns_ + owed_ns);
  if (connection->paused_ns != 0) return;
  connection->paused_ns = now_ns_;
  resume(*connection);
  watch(*connection);
}

void MqttListener::Poller::resume_paid() {
  next_paid_ns_ = 0;
  for (const std::uint64_t id : std::exchange(owing_, {})) {
    if (Connection* const connection = find(id)) resume(*connection);
  }
}

}  // namespace edgecase::mqtt
