// Filters that tell a message that comes again from a new one: redeliveries (RedeliveryFilter),
// repetitions of retained messages (RepeatFilter), copies for several subscriptions (CopyFilter).
// Used by the message sink, and the first by the listener's sessions. None of them is thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mqtt/broker.h"

namespace edgecase::mqtt {

// The hash of topic and payload, for the two functions below.
std::uint64_t content_hash(std::string_view topic, std::string_view payload);

// Recognises a message that comes a second time (DUP flag) because the acknowledgement of the first
// was lost with the connection: the same packet id and content, stored earlier in this session, is
// the same message - if its sender does not give a freed packet id to a new message soon. Whether
// it does is observed: an id that comes again while it is still remembered turns recognition off
// for the session; and it stays off until kIdsBeforeTrust different ids were seen. When in doubt a
// message counts as new. Not thread-safe.
class RedeliveryFilter {
 public:
  static constexpr std::size_t kIdsBeforeTrust = 64;

  // Remembers this many messages, at ten bytes each once they came; from kBitsFrom on it takes 8
  // KiB more, and stored() takes the same time however many they are.
  static constexpr std::size_t kBitsFrom = 512;
  explicit RedeliveryFilter(std::size_t messages_max)
      : messages_max_(messages_max), is_kept_(messages_max >= kBitsFrom ? kPacketIds : 0) {}

  void new_session();
  bool is_redelivery(std::uint16_t packet_id, std::uint64_t hash) const;
  // After a message was stored.
  void stored(std::uint16_t packet_id, std::uint64_t hash);

 private:
  static constexpr std::size_t kPacketIds = 65'536;
  std::size_t find(std::uint16_t packet_id) const;
  bool keeps(std::uint16_t packet_id) const;
  void mark(std::uint16_t packet_id, bool kept);

  std::size_t messages_max_;
  std::vector<bool> is_kept_;  // by packet id; empty: not told
  // A ring: `next_` is the oldest once it is full.
  std::vector<std::uint16_t> packet_ids_;
  std::vector<std::uint64_t> hashes_;
  std::size_t next_ = 0;
  std::size_t ids_seen_ = 0;  // no more than kIdsBeforeTrust are counted
  bool ids_are_reused_ = false;
};

// Recognises messages that the broker sends a second time, so that a reading which is stamped on
// arrival is not stored twice. Only for messages without a time of their own: with one, storing
// again changes nothing. When in doubt a message counts as new. Not thread-safe.
//
// Redelivery (DUP flag): RedeliveryFilter. Retained: a broker sends retained messages again at
// every subscription. One that equals the last payload of its topic is a repetition. Topics beyond
// kTopicsMax are forgotten, oldest first.
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
