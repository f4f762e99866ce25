// Sessions that come back after a restart of the daemon, and go.
#include "mqtt/listener/poller.h"

namespace edgecase::mqtt {

// Those without a connection, and those that had one when the daemon ended.
Status MqttListener::Poller::load_sessions() {
  const std::size_t sessions_max = SessionTable::kKeptMax + options_.connections;
  EC_ASSIGN_OR_RETURN(const SessionRecords::Loaded loaded,
                      records_->load(sessions_, sessions_max, parts_.clock.boot_ns()));
  status_.sessions = sessions_.size();
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
  const std::lock_guard lock(mutex_);
  status_.wills += wills;
}

}  // namespace edgecase::mqtt
