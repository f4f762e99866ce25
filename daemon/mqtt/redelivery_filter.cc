#include "mqtt/redelivery_filter.h"

#include <algorithm>
#include <functional>

namespace edgecase::mqtt {

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

}  // namespace edgecase::mqtt
