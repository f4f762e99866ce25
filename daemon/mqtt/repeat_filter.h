// Recognises messages that the broker sends a second time, so that a reading which is stamped on
// arrival is not stored twice. Only for messages without a time of their own: with one, storing
// again changes nothing. When in doubt a message counts as new. Not thread-safe.
//
// Redelivery (DUP flag): the broker did not see our PUBACK before the connection broke. The same
// packet id and content, stored earlier in this session, is the same message - if the broker does
// not give a freed packet id to a new message soon. Whether it does is observed: an id that comes
// again, without DUP, while it is still remembered turns recognition off for the session; and it
// stays off until kIdsBeforeTrust different ids were seen.
//
// Retained: a broker sends retained messages again at every subscription. One that equals the last
// payload of its topic is a repetition. Topics beyond kTopicsMax are forgotten, oldest first.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>

namespace edgecase::mqtt {

class RepeatFilter {
 public:
  static constexpr std::size_t kMessagesMax = 1'024;
  static constexpr std::size_t kIdsBeforeTrust = 64;
  static constexpr std::size_t kTopicsMax = 16'384;

  // The broker kept nothing of the session: its packet ids start anew.
  void new_session();

  bool is_redelivery(std::uint16_t packet_id, std::string_view topic, std::string_view payload);
  bool is_retained_repeat(std::string_view topic, std::string_view payload) const;

  // After a message without a time of its own was stored. `packet_id` 0: QoS 0.
  void stored(std::uint16_t packet_id, std::string_view topic, std::string_view payload);

 private:
  std::unordered_map<std::uint16_t, std::uint64_t> by_packet_id_;
  std::deque<std::uint16_t> packet_ids_;  // oldest first
  bool ids_are_reused_ = false;
  std::size_t ids_seen_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> by_topic_;
  std::deque<std::uint64_t> topics_;
};

}  // namespace edgecase::mqtt
