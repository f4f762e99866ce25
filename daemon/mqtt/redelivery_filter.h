// Recognises a message that comes a second time (DUP flag) because the acknowledgement of the first
// was lost with the connection: the same packet id and content, stored earlier in this session, is
// the same message - if its sender does not give a freed packet id to a new message soon. Whether
// it does is observed: an id that comes again while it is still remembered turns recognition off
// for the session; and it stays off until kIdsBeforeTrust different ids were seen. When in doubt a
// message counts as new. Not thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace edgecase::mqtt {

// The hash of topic and payload, for the two functions below.
std::uint64_t content_hash(std::string_view topic, std::string_view payload);

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

}  // namespace edgecase::mqtt
