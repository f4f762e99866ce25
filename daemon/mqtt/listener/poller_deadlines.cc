// Connections that have been too slow, or silent for too long.
#include <sys/epoll.h>

#include <vector>

#include "mqtt/listener/poller.h"

namespace edgecase::mqtt {

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

}  // namespace edgecase::mqtt
