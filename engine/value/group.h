// A group: many entries of one namespace and one scope, written and read as one item. Layout:
// value_format.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "value/plain_group.h"
#include "value/series_columns.h"
#include "value/value_format.h"

namespace edgecase::engine {

// Reads the body of a group with GroupCodec::Series: columns; layout: value_format.h.

// Decodes a run when an entry of it is asked for. Owned by one thread. What it answers views the
// body and its own memory, until the next move_to(). The functions answer false when the body is
// malformed; then the reader is finished.
class SeriesGroupReader {
 public:
  // `body` stays where it is while the reader is used; `prefix` is the namespace's.
  [[nodiscard]] bool open(ByteView body, ByteView prefix, std::size_t entries);
  // The first entry at or after `full_key`; the number of entries if there is none.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  // Fills full_key, kind and value of `entry`.
  [[nodiscard]] bool move_to(std::size_t index, EntryView& entry);
  // The numbers of the run's series and class from entry `index` on, where move_to() went, as far
  // as their full keys lie within [lower, upper), either of which may be empty, and they lie in one
  // run here: adds their ordinals and bits. How many they were.
  std::size_t add_numbers(std::size_t index, Direction direction, ByteView lower, ByteView upper,
                          NumberRun& run) const;

 private:
  struct Run {
    std::size_t first = 0;  // index of its first entry
    std::size_t count = 0;
    unsigned char flags = 0;
    std::size_t prefix_offset = 0;  // in prefixes_; namespace and key without ordinal
    std::size_t prefix_size = 0;
    ByteView body;

    bool short_keys() const { return (flags & kRunFlagShortKeys) != 0; }
  };

  [[nodiscard]] bool take_run(ByteView& input, Run& run);
  // Whether run `index` starts at or before `full_key`.
  [[nodiscard]] bool starts_at_or_before(std::size_t index, ByteView full_key, bool& answer);
  [[nodiscard]] bool load(std::size_t index);
  [[nodiscard]] bool load_keys(const Run& run, ByteView& rest);
  [[nodiscard]] bool load_classes(const Run& run, ByteView& rest);
  [[nodiscard]] bool load_values(const Run& run, ByteView rest);
  [[nodiscard]] bool search(const Run& run, ByteView full_key, std::size_t& index) const;
  bool is_of_class(std::size_t in_run, ValueClass wanted) const {
    return one_class_ ? class_ == wanted : classes_[in_run] == static_cast<std::uint64_t>(wanted);
  }
  void show_key(const Run& run, std::size_t in_run, EntryView& entry);
  void show_value(std::size_t in_run, EntryView& entry);

  Bytes namespace_prefix_;
  Bytes prefixes_;
  std::vector<Run> runs_;
  std::size_t entries_ = 0;

  // What belongs to the loaded run.
  std::size_t loaded_ = SIZE_MAX;
  std::vector<std::uint64_t> ordinals_;
  std::vector<ByteView> short_keys_;
  bool one_class_ = true;
  ValueClass class_ = ValueClass::Delete;
  std::vector<std::uint64_t> classes_;  // empty when there is one
  std::vector<std::uint64_t> numbers_;  // bits of a Double or Integer, index in others_
  std::vector<ByteView> others_;
  Bytes unpacked_keys_;  // what short_keys_ and others_ view, where it was packed
  Bytes unpacked_others_;
  std::vector<std::uint64_t> scratch_;

  Bytes key_;  // full key of the current entry
  std::size_t key_run_ = SIZE_MAX;
  char value_[kTaggedNumberBytes] = {};
};

// Appends the group of `entries`: at least one, at most kGroupEntriesMax, of one namespace, in
// strictly ascending key order. The checksums of a plain group's pages are left open
// (value_item.h). Without a packer nothing is packed.
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
