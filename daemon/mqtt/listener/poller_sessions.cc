// Sessions that come back after a restart of the daemon, and go.
#include "mqtt/listener/poller.h"

#include <utility>

namespace edgecase::mqtt {

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

}  // namespace edgecase::mqtt
