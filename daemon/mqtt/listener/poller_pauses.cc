// Connections that are not read for a while, and are read again.
#include <algorithm>

#include "mqtt/listener/poller.h"

namespace edgecase::mqtt {

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
