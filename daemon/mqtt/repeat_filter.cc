#include "mqtt/repeat_filter.h"

#include <algorithm>
#include <functional>

#include "mqtt/topic_names.h"

namespace edgecase::mqtt {
namespace {

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

}  // namespace

std::uint64_t content_hash(std::string_view topic, std::string_view payload) {
  const std::uint64_t first = std::hash<std::string_view>{}(topic);
  const std::uint64_t second = std::hash<std::string_view>{}(payload);
  return (first ^ (second + 0x9E3779B97F4A7C15u + (first << 6) + (first >> 2))) + payload.size();
}

void RedeliveryFilter::new_session() {
  for (const std::uint16_t packet_id : packet_ids_) mark(packet_id, false);
  packet_ids_.clear();
  hashes_.clear();
  next_ = 0;
  ids_seen_ = 0;
  ids_are_reused_ = false;
}

std::size_t RedeliveryFilter::find(std::uint16_t packet_id) const {
  return static_cast<std::size_t>(std::find(packet_ids_.begin(), packet_ids_.end(), packet_id) -
                                  packet_ids_.begin());
}

bool RedeliveryFilter::keeps(std::uint16_t packet_id) const {
  return is_kept_.empty() ? find(packet_id) < packet_ids_.size() : is_kept_[packet_id];
}

void RedeliveryFilter::mark(std::uint16_t packet_id, bool kept) {
  if (!is_kept_.empty()) is_kept_[packet_id] = kept;
}

bool RedeliveryFilter::is_redelivery(std::uint16_t packet_id, std::uint64_t hash) const {
  if (ids_are_reused_ || ids_seen_ < kIdsBeforeTrust) return false;
  const std::size_t at = find(packet_id);
  return at < hashes_.size() && hashes_[at] == hash;
}

void RedeliveryFilter::stored(std::uint16_t packet_id, std::uint64_t hash) {
  if (ids_are_reused_) return;
  if (keeps(packet_id)) {
    ids_are_reused_ = true;
    return;
  }
  if (ids_seen_ < kIdsBeforeTrust) ++ids_seen_;
  mark(packet_id, true);
  if (packet_ids_.size() < messages_max_) {
    packet_ids_.push_back(packet_id);
    hashes_.push_back(hash);
    return;
  }
  mark(packet_ids_[next_], false);
  packet_ids_[next_] = packet_id;
  hashes_[next_] = hash;
  next_ = (next_ + 1) % messages_max_;
}

bool RepeatFilter::is_redelivery(std::uint16_t packet_id, std::string_view topic,
                                 std::string_view payload) const {
  return redelivery_.is_redelivery(packet_id, content_hash(topic, payload));
}

bool RepeatFilter::is_retained_repeat(std::string_view topic, std::string_view payload) const {
  const auto found = by_topic_.find(hash_of(topic));
  return found != by_topic_.end() && found->second == hash_of(payload);
}

void RepeatFilter::stored(std::uint16_t packet_id, std::string_view topic,
                          std::string_view payload) {
  const std::uint64_t topic_hash = hash_of(topic);
  const auto [entry, added] = by_topic_.insert_or_assign(topic_hash, hash_of(payload));
  if (added) {
    topics_.push_back(entry->first);
    if (topics_.size() > kTopicsMax) {
      by_topic_.erase(topics_.front());
      topics_.pop_front();
    }
  }
  if (packet_id != 0) redelivery_.stored(packet_id, content_hash(topic, payload));
}

void CopyFilter::set_filters(const std::vector<std::string>& filters) {
  filters_.clear();
  for (const std::string& filter : filters) {
    const bool overlaps =
        std::any_of(filters.begin(), filters.end(), [&filter](const std::string& other) {
          return &other != &filter && filters_overlap(filter, other);
        });
    if (overlaps) filters_.push_back(filter);
  }
}

// Copies of what came over the last one may still come; but what follows at once does not.
void CopyFilter::new_connection() {
  last_ = {};
  delivers_once_ = false;
}

bool CopyFilter::is_copy(std::string_view topic, std::string_view payload,
                         const SubscriptionIds& subscriptions, std::int64_t now_ns) {
  if (filters_.empty()) return false;
  Waiting message{.seen = subscriptions, .copies = 1, .copies_max = 0, .since_ns = now_ns};
  for (const std::string& filter : filters_) {
    if (filter_matches(filter, topic)) ++message.copies_max;
  }
  message.hash = content_hash(topic, payload);
  if (subscriptions.count == 0) return is_untold_copy(message);
  return message.copies_max >= 2 && is_told_copy(message);
}

bool CopyFilter::is_told_copy(const Waiting& message) {
  while (!waiting_.empty() && message.since_ns - waiting_.front().since_ns > kCopyNs) {
    waiting_.pop_front();
  }
  const auto original =
      std::find_if(waiting_.begin(), waiting_.end(), [&message](const Waiting& other) {
        const auto* const ids = message.seen.ids.data();
        return other.hash == message.hash &&
               std::none_of(ids, ids + message.seen.count,
                            [&other](std::uint32_t id) { return other.seen.has(id); });
      });
  if (original != waiting_.end()) {
    for (std::size_t i = 0; i < message.seen.count; ++i) original->seen.add(message.seen.ids[i]);
    ++original->copies;
    const std::size_t most = std::min(original->copies_max, SubscriptionIds::kMax);
    if (original->seen.count >= most) waiting_.erase(original);
    return true;
  }
  // One that names all of its subscriptions has no copies.
  if (message.seen.count >= std::min(message.copies_max, SubscriptionIds::kMax)) return false;
  waiting_.push_back(message);
  if (waiting_.size() > kWaitingMax) waiting_.pop_front();
  return false;
}

bool CopyFilter::is_untold_copy(const Waiting& message) {
  const bool follows = message.hash == last_.hash && last_.copies < last_.copies_max &&
                       message.since_ns - last_.since_ns <= kUntoldCopyNs;
  if (follows && !delivers_once_) {
    ++last_.copies;
    return true;
  }
  if (last_.copies_max >= 2 && last_.copies == 1) delivers_once_ = true;
  last_ = message;
  return false;
}

}  // namespace edgecase::mqtt
