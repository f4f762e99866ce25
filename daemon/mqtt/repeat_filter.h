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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mqtt/broker_answers.h"
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

// Recognises copies of one message that a broker delivers once for each subscription that matches
// it. Filters that another one covers are never asked for, so these are filters that overlap in
// part, `a/+` and `+/b`.
//
// In MQTT 5 each subscription has an identifier, and each copy says whose it is: a message that
// says what an earlier one said, through another subscription, is its copy; through the same one it
// is another message. In 3.1.1 nothing tells copies from messages that say the same: those count as
// copies that follow each other at once, as many as subscriptions match. A broker that is seen to
// deliver such a message once is none that delivers copies. Not thread-safe.
class CopyFilter {
 public:
  static constexpr std::size_t kWaitingMax = 1'024;           // messages whose copies may come
  static constexpr std::int64_t kCopyNs = 30'000'000'000;     // so long after them
  static constexpr std::int64_t kUntoldCopyNs = 100'000'000;  // the same in 3.1.1

  // Every filter that the session may have.
  void set_filters(const std::vector<std::string>& filters);
  bool has_overlaps() const { return !filters_.empty(); }
  void new_connection();

  // Whether the message is the copy of one that came before; else copies of it may come.
  bool is_copy(std::string_view topic, std::string_view payload,
               const SubscriptionIds& subscriptions, std::int64_t now_ns);

 private:
  struct Waiting {
    std::uint64_t hash = 0;
    SubscriptionIds seen;
    std::size_t copies = 0;
    std::size_t copies_max = 0;
    std::int64_t since_ns = 0;
  };
  bool is_told_copy(const Waiting& message);
  bool is_untold_copy(const Waiting& message);

  std::vector<std::string> filters_;  // those that overlap another one
  std::deque<Waiting> waiting_;
  Waiting last_;
  bool delivers_once_ = false;
};

}  // namespace edgecase::mqtt
