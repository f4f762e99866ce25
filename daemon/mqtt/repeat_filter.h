// Recognises messages that the broker sends a second time, so that a reading which is stamped on
// arrival is not stored twice. Only for messages without a time of their own: with one, storing
// again changes nothing. When in doubt a message counts as new. Not thread-safe.
//
// Redelivery (DUP flag): redelivery_filter.h. Retained: a broker sends retained messages again at
// every subscription. One that equals the last payload of its topic is a repetition. Topics beyond
// kTopicsMax are forgotten, oldest first.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "mqtt/redelivery_filter.h"

namespace edgecase::mqtt {

class RepeatFilter {
 public:
  static constexpr std::size_t kMessagesMax = 1'024;
  static constexpr std::size_t kTopicsMax = 16'384;

  // The broker kept nothing of the session: its packet ids start anew.
  void new_session() { redelivery_.new_session(); }

  bool is_redelivery(std::uint16_t packet_id, std::string_view topic,
                     std::string_view payload) const;
  bool is_retained_repeat(std::string_view topic, std::string_view payload) const;

  // After a message without a time of its own was stored. `packet_id` 0: QoS 0.
  void stored(std::uint16_t packet_id, std::string_view topic, std::string_view payload);

 private:
  RedeliveryFilter redelivery_{kMessagesMax};
  std::unordered_map<std::uint64_t, std::uint64_t> by_topic_;
  std::deque<std::uint64_t> topics_;
};

}  // namespace edgecase::mqtt
