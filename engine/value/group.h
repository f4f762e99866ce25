// A group: many entries of one namespace and one scope, written and read as one item. Layout:
// group_format.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"
#include "base/value_pointer.h"
#include "edgecase/engine.h"
#include "value/plain_group.h"
#include "value/series_columns.h"
#include "value/series_group_reader.h"

namespace edgecase::engine {

// Appends the group of `entries`: at least one, at most kGroupEntriesMax, of one namespace, in
// strictly ascending key order. The checksums of a plain group's pages are left open
// (item_checksums.h). Without a packer nothing is packed.
void append_group(Bytes& out, GroupCodec codec, std::span<const EntryView> entries,
                  SequenceColumn sequences, Packer* packer = nullptr);

// The same of a series group that was gathered as columns; it has a sequence column where entries
// keep sequences of their own.
void append_group(Bytes& out, SeriesColumns& columns, Packer* packer = nullptr);

constexpr ItemType item_type_of(GroupCodec codec) {
  return codec == GroupCodec::Series ? ItemType::SeriesGroup : ItemType::PlainGroup;
}

// Walks and searches one group; reusable for the next. Owned by one thread. A function that answers
// false has found the group malformed: the caller says where it came from.
class GroupReader {
 public:
  // `group` stays where it is while it is read. `type` is that of a group.
  [[nodiscard]] bool open(ItemType type, ByteView group);

  std::size_t entry_count() const { return entries_; }
  // The first entry at or after `full_key`; entry_count() if there is none.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  // `index` is below entry_count().
  [[nodiscard]] bool move_to(std::size_t index);
  // Plain groups: the entries from `index` on, where move_to() went, that are decoded already.
  // Others: none. Views as those of entry().
  std::span<const EntryView> decoded_from(std::size_t index) const {
    if (type_ == ItemType::SeriesGroup) return {};
    return plain_.decoded_from(index);
  }
  // SeriesGroupReader::add_numbers(), with their sequences. Plain groups have none.
  std::size_t add_numbers(std::size_t index, Direction direction, ByteView lower, ByteView upper,
                          NumberRun& run) const;
  // Where move_to() went. Its views hold until the next move_to(), lower_bound() or open().
  const EntryView& entry() const { return entry_; }

 private:
  [[nodiscard]] bool open_series(ByteView group);

  ItemType type_ = ItemType::PlainGroup;
  std::size_t entries_ = 0;
  PlainGroupReader plain_;
  std::uint64_t sequence_ = 0;            // of a series group, as is what follows
  std::vector<std::uint64_t> sequences_;  // empty without a sequence column
  SeriesGroupReader series_;
  EntryView entry_;
};

}  // namespace edgecase::engine
