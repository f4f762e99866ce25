#include "mqtt/repeat_filter.h"

#include <functional>

namespace edgecase::mqtt {
namespace {

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

}  // namespace

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

}  // namespace edgecase::mqtt
