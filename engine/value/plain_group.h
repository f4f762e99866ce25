// The body of a group with GroupCodec::Plain; layout: group_format.h.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"
#include "value/group_format.h"

namespace edgecase::engine {

// `entries` are of one namespace, in key order, at least one.
void append_plain_body(Bytes& out, std::span<const EntryView> entries);

// Reads a body, one restart interval at a time. Owned by one thread. What it answers views the body
// and its own memory, until the next move_to(). The functions answer false when the body is
// malformed; then the reader is finished.
class PlainGroupReader {
 public:
  PlainGroupReader() = default;
  PlainGroupReader(PlainGroupReader&&) = default;
  PlainGroupReader& operator=(PlainGroupReader&&) = default;

  // `body` stays where it is while the reader is used; `prefix` is the namespace's.
  [[nodiscard]] bool open(ByteView body, ByteView prefix, std::size_t entries);
  // The first entry at or after `full_key`; the number of entries if there is none.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  // Looks for one key without keeping what is on the way: `index` is its entry's, or the number of
  // entries if there is none. Fills kind and value of `entry`.
  [[nodiscard]] bool find(ByteView full_key, std::size_t& index, EntryView& entry) const;
  // Fills `entry`.
  [[nodiscard]] bool move_to(std::size_t index, EntryView& entry);
  // The entries from `index` on, where move_to() went, that are decoded already; their sequences
  // are those set_sequences() was told.
  std::span<const EntryView> decoded_from(std::size_t index) const {
    return std::span(slots_).subspan(index % kPlainRestartInterval,
                                     slot_count_ - index % kPlainRestartInterval);
  }
  // One for each entry, or, when there are none, `sequence` for all. They stay where they are.
  void set_sequences(SequenceNumber sequence, std::span<const SequenceNumber> sequences) {
    sequence_ = sequence;
    sequences_ = sequences;
  }

 private:
  // The last interval that starts at or before `user_key`, or the first one.
  [[nodiscard]] bool find_interval(ByteView user_key, std::size_t& interval) const;
  [[nodiscard]] bool restart_key(std::size_t interval, ByteView& user_key) const;
  [[nodiscard]] bool load(std::size_t interval);
  [[nodiscard]] bool entries_from(std::size_t interval, ByteView& rest) const;

  ByteView items_;  // entries, without the restart table
  ByteView restarts_;
  Bytes prefix_;
  std::size_t entries_ = 0;
  SequenceNumber sequence_ = 0;
  std::span<const SequenceNumber> sequences_;
  std::size_t loaded_ = SIZE_MAX;  // which interval slots_ holds
  std::size_t slot_count_ = 0;
  std::array<EntryView, kPlainRestartInterval> slots_;  // their keys view keys_
  std::vector<char> keys_;
};

}  // namespace edgecase::engine
