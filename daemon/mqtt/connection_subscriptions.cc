#include <algorithm>

#include "mqtt/connection.h"
#include "mqtt/topic_names.h"

namespace edgecase::mqtt {

// Subscriptions of a connection: what it asks of the broker, and what the broker makes of it.

namespace {

// The same over restarts: what waits at the broker still names it.
std::uint32_t id_of(const std::string& filter) {
  std::uint32_t hash = 2'166'136'261;
  for (const char byte : filter) hash = (hash ^ static_cast<unsigned char>(byte)) * 16'777'619;
  return 1 + hash % (kSubscriptionIdMax - 1);
}

}  // namespace

// False: the connection is gone, or the daemon stops.
bool MqttSource::Connection::subscribe_to_rules() {
  for (const Subscription& each : plan_.subscriptions) {
    if (const Status status = filters_->add(each.filter); !status.ok()) {
      note_error("cannot remember the filter " + each.filter + ": " + status.message());
      return false;
    }
    if (subscribe_to(each) == Reply::Gone) return false;
  }
  next_ask_ns_ = clock_.boot_ns() + ask_again_ns_;
  return true;
}

MqttSource::Connection::Reply MqttSource::Connection::subscribe_to(const Subscription& each) {
  if (const std::string why = forbidden_by_terms(each); !why.empty()) {
    note_error("subscribe to " + each.filter + ": " + why, "subscription");
    note_subscription(each, {}, why);
    return Reply::No;
  }
  Subscription asked = each;
  if (has_overlaps_ && gate_->terms().subscription_ids) asked.id = id_of(each.filter);
  expect_answer();
  const Reply reply = reply_to(client_->subscribe(asked), "subscribe to " + each.filter);
  if (reply == Reply::Gone) return reply;
  std::optional<int> granted;
  std::string why;
  {
    const MutexLock lock(mutex_);
    if (reply == Reply::Yes) granted = granted_qos_;
    if (reply == Reply::No) why = answer_text_;
  }
  note_subscription(each, granted, why);
  return reply;
}

// What may not be asked at all (MQTT 5, 3.2.2.3); "" for what may.
std::string MqttSource::Connection::forbidden_by_terms(const Subscription& each) const {
  const BrokerTerms terms = gate_->terms();
  if (!terms.wildcards && each.filter.find_first_of("+#") != std::string::npos) {
    return "the broker says that it takes no filter with a wildcard";
  }
  // Fixed header, packet id, properties, the filter's length, its options.
  constexpr std::size_t kAroundFilterBytes = kFixedHeaderMaxBytes + 2 + 8 + 2 + 1;
  if (terms.maximum_packet_bytes != 0 &&
      each.filter.size() + kAroundFilterBytes > terms.maximum_packet_bytes) {
    return "the broker says that it takes packets of " +
           std::to_string(terms.maximum_packet_bytes) + " bytes at most";
  }
  return {};
}

// Refused, or granted at less than was asked, it is shown until that is mended.
void MqttSource::Connection::note_subscription(const Subscription& each,
                                               std::optional<int> granted_qos,
                                               const std::string& why) {
  const bool is_poor = !granted_qos || *granted_qos < each.qos;
  bool was_poor = false;
  {
    const MutexLock lock(mutex_);
    auto& all = status_.poor_subscriptions;
    const auto known = std::find_if(all.begin(), all.end(), [&](const PoorSubscription& other) {
      return other.filter == each.filter;
    });
    was_poor = known != all.end();
    if (was_poor && !is_poor) all.erase(known);
    if (is_poor) {
      const std::int64_t since_ns = was_poor ? known->since_ns : clock_.wall_ns();
      const PoorSubscription poor{each.filter, each.qos, granted_qos, why, since_ns};
      if (was_poor) {
        *known = poor;
      } else {
        all.push_back(poor);
      }
    }
  }
  if (logger_ == nullptr || (!is_poor && !was_poor)) return;
  const std::string what = plan_.address.text() + ": " + each.filter;
  if (!is_poor) {
    logger_->notice("mqtt", what + " is granted as it was asked now");
  } else if (granted_qos) {
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "subscription " + each.filter,
                       what + " is granted at QoS " + std::to_string(*granted_qos) + ", QoS " +
                           std::to_string(each.qos) +
                           " was asked: what it brings may get lost on the way");
  } else {
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "subscription " + each.filter,
                       what + " is refused, and what it would bring does not come: " + why);
  }
}

// Looks for overlaps among the rules' filters, and those that the session may have from before.
void MqttSource::Connection::look_for_overlaps() {
  std::set<std::string> all = filters_->filters();
  for (const Subscription& each : plan_.subscriptions) all.insert(each.filter);
  const std::vector<std::string> filters(all.begin(), all.end());
  sink_.set_filters(filters);
  has_overlaps_ = sink_.has_overlaps();
}

// While connected. False: the connection is gone, or the daemon stops.
bool MqttSource::Connection::ask_again() {
  if (clock_.boot_ns() < next_ask_ns_) return true;
  std::set<std::string> poor;
  {
    const MutexLock lock(mutex_);
    for (const PoorSubscription& each : status_.poor_subscriptions) poor.insert(each.filter);
  }
  next_ask_ns_ = clock_.boot_ns() + ask_again_ns_;
  for (const Subscription& each : plan_.subscriptions) {
    if (!poor.contains(each.filter)) continue;
    if (subscribe_to(each) == Reply::Gone) return false;
  }
  return true;
}

void MqttSource::Connection::note_terms() {
  const BrokerTerms terms = gate_->terms();
  {
    const MutexLock lock(mutex_);
    status_.terms = terms;
  }
  if (logger_ == nullptr || !terms.is_session_shorter) return;
  logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "session expiry",
                     plan_.address.text() + " keeps the session for " +
                         std::to_string(terms.session_expiry_seconds) +
                         " s without a connection: what comes later is not kept for us");
}

bool MqttSource::Connection::unsubscribe_from_removed_rules() {
  std::set<std::string> removed = filters_->filters();
  for (const Subscription& each : plan_.subscriptions) removed.erase(each.filter);
  for (const std::string& filter : removed) {
    expect_answer();
    const Reply reply = reply_to(client_->unsubscribe(filter), "unsubscribe from " + filter);
    if (reply == Reply::Gone) return false;
    if (reply == Reply::No) continue;  // it is there still, and asked again at the next session
    if (const Status status = filters_->remove(filter); !status.ok()) {
      note_error("cannot forget the filter " + filter + ": " + status.message());
    } else if (logger_ != nullptr) {
      logger_->info("mqtt", "unsubscribed from " + filter + ", which no rule needs any more");
    }
  }
  return true;
}

namespace {

constexpr char kFilterRecord = 'F';
constexpr char kRecordVersion = 1;

}  // namespace

Result<std::unique_ptr<SubscribedFilters>> SubscribedFilters::open(Engine& engine,
                                                                   std::string_view client_id,
                                                                   std::string_view broker) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, open_record_namespace(engine));
  std::string prefix(1, kFilterRecord);
  prefix.append(client_id).push_back('\0');
  prefix.append(broker).push_back('\0');
  std::unique_ptr<SubscribedFilters> filters(new SubscribedFilters(engine, id, std::move(prefix)));
  EC_TRY(filters->load());
  return filters;
}

Status SubscribedFilters::load() {
  KeyRange range;
  range.lower = prefix_;
  range.upper = prefix_;
  range.upper.back() = '\1';
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each,
                      engine_.scan(namespace_id_, range, without_damaged()));
  for (; each->valid(); each->next()) {
    filters_.insert(std::string(each->key().substr(prefix_.size())));
  }
  return each->status();
}

Status SubscribedFilters::add(const std::string& filter) {
  if (filters_.contains(filter)) return ok();
  WriteBatch batch;
  batch.put(namespace_id_, prefix_ + filter, std::string(1, kRecordVersion));
  EC_TRY(engine_.write(batch, Durability::Sync));
  filters_.insert(filter);
  return ok();
}

Status SubscribedFilters::remove(const std::string& filter) {
  WriteBatch batch;
  batch.remove(namespace_id_, prefix_ + filter);
  EC_TRY(engine_.write(batch, Durability::Sync));
  filters_.erase(filter);
  return ok();
}

}  // namespace edgecase::mqtt
