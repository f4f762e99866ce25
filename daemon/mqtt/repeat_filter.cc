#include "mqtt/repeat_filter.h"

#include <functional>

namespace edgecase::mqtt {
namespace {

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

std::uint64_t hash_of(std::string_view topic, std::string_view payload) {
  const std::uint64_t first = hash_of(topic);
  const std::uint64_t second = hash_of(payload);
  return (first ^ (second + 0x9E3779B97F4A7C15u + (first << 6) + (first >> 2))) + payload.size();
}

}  // namespace

void RepeatFilter::new_session() {
  by_packet_id_.clear();
  packet_ids_.clear();
  ids_are_reused_ = false;
  ids_seen_ = 0;
}

bool RepeatFilter::is_redelivery(std::uint16_t packet_id, std::string_view topic,
                                 std::string_view payload) {
  if (ids_are_reused_ || ids_seen_ < kIdsBeforeTrust) return false;
  const auto found = by_packet_id_.find(packet_id);
  return found != by_packet_id_.end() && found->second == hash_of(topic, payload);
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
  if (packet_id == 0) return;
  if (!by_packet_id_.insert_or_assign(packet_id, hash_of(topic, payload)).second) {
    ids_are_reused_ = true;
    return;
  }
  ++ids_seen_;
  packet_ids_.push_back(packet_id);
  if (packet_ids_.size() > kMessagesMax) {
    by_packet_id_.erase(packet_ids_.front());
    packet_ids_.pop_front();
  }
}

}  // namespace edgecase::mqtt
