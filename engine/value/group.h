// A group: many entries of one namespace and one scope, written and read as one item. Layout:
// value_format.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "value/packing.h"
#include "value/series_columns.h"
#include "value/value_format.h"

namespace edgecase::engine {

// With GroupCodec::Plain a group is a directory of pages and the pages (plain_group.cc); a get
// reads one page of it (plain_page.cc).

enum class SequenceColumn : unsigned char { None, Written };

// A page of `entries`, of one namespace, in key order, at least one, in two steps. What stands
// before the values is appended to `heads`; the answer is how many bytes the page will have.
// `largest` is the largest sequence of the group.
std::size_t append_page_heads(Bytes& heads, std::span<const EntryView> entries,
                              SequenceNumber largest, SequenceColumn sequences);
// Appends the page with these heads, its own alone. Its checksum is left open (value_item.h).
void append_page(Bytes& out, ByteView heads, std::span<const EntryView> entries,
                 SequenceColumn sequences);

// The page, packed where that pays. Its checksum is left open.
void append_packed_page(Bytes& out, ByteView page, Packer& packer);
inline bool is_packed_page(ByteView page) {
  return page.size() > kPageChecksumBytes && page[kPageChecksumBytes] == kPackedPageMark;
}
// Fills `unpacked`, a view of `page` or, where that is packed, of `room`, which only grows; it has
// no checksum then. What follows takes no packed page. False when it is malformed.
[[nodiscard]] bool unpack_page(ByteView page, Bytes& room, ByteView& unpacked);

// Looks for one key in the bytes of a page without keeping what is on the way. Fills sequence, kind
// and value of `entry` when it is `found`. False when the page is malformed.
[[nodiscard]] bool find_in_page(ByteView page, ByteView user_key, SequenceNumber largest,
                                EntryView& entry, bool& found);
// The first key of a page. False when the page is malformed.
[[nodiscard]] bool first_key_of_page(ByteView page, ByteView& user_key);

// Decodes a page, all of it or from a key on, a stretch at a time; reusable for the next. Owned by
// one thread.
class PlainPageReader {
 public:
  // `page` stays where it is while the entries are used; `prefix` is the namespace's. All functions
  // answer false when the page is malformed; there are no entries then.
  [[nodiscard]] bool open(ByteView page, ByteView prefix, SequenceNumber largest);
  // Only what lies at or after `full_key`, of the same namespace, and of that the first few: a scan
  // that looks into many pages wants little of each.
  [[nodiscard]] bool open_from(ByteView page, ByteView prefix, SequenceNumber largest,
                               ByteView full_key);
  // The entries that are decoded, until the next call that is not const: after open() all, at least
  // one.
  std::span<const EntryView> entries() const { return {entries_.data(), count_}; }
  // Whether the page has others behind them, and: those in their place.
  bool has_more() const { return !heads_.empty(); }
  [[nodiscard]] bool decode_more() { return decode(kGroupEntriesMax); }
  // The first at or after `full_key`; their number if there is none.
  std::size_t lower_bound(ByteView full_key) const;
  std::size_t memory_bytes() const {
    return entries_.capacity() * sizeof(EntryView) + keys_.capacity();
  }

 private:
  static constexpr std::size_t kFirstStretch = 4;

  [[nodiscard]] bool begin(ByteView page, ByteView prefix, SequenceNumber largest);
  [[nodiscard]] bool decode(std::size_t count_max);
  [[nodiscard]] bool fail();
  void grow_keys(std::size_t wanted);

  ByteView page_;
  ByteView heads_;  // of what is not decoded
  ByteView values_;
  bool with_sequences_ = false;
  SequenceNumber largest_ = 0;
  std::size_t prefix_bytes_ = 0;
  bool at_first_ = true;
  std::vector<EntryView> entries_;  // the first count_; their keys view keys_
  std::size_t count_ = 0;
  // The key before what is not decoded lies at key_begin_ and ends at key_end_.
  std::vector<char> keys_;
  std::size_t key_begin_ = 0;
  std::size_t key_end_ = 0;
};

// A page, as the group's directory tells of it.
struct PlainPage {
  std::size_t first_entry = 0;
  std::size_t entries = 0;
  std::size_t offset = 0;  // from the start of the group
  std::size_t size = 0;
};

// Appends directory and pages of `entries`: of one namespace, in key order, at least one. Without a
// packer no page is packed.
void append_plain_body(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                       SequenceColumn sequences, Packer* packer = nullptr);

// The pages of a whole group, what stands before its body included; the first begins where its head
// ends. Nothing when it is malformed.
std::optional<std::vector<PlainPage>> plain_pages(ByteView group);

// How many bytes the pages of a group have that begins with `head`, which ends where they begin.
// Nothing when it is malformed.
std::optional<std::vector<std::size_t>> plain_page_sizes(ByteView head);

// Reads a group, one page at a time. Owned by one thread. What it answers views the group and its
// own memory, until another page is asked for. The functions answer false when the group is
// malformed; then the reader is finished.
class PlainGroupReader {
 public:
  // `group` stays where it is while the reader is used.
  [[nodiscard]] bool open(ByteView group);
  std::size_t entry_count() const { return head_.entries; }
  // The first entry at or after `full_key`; the number of entries if there is none.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  // Fills `entry`.
  [[nodiscard]] bool move_to(std::size_t index, EntryView& entry);
  // The entries from `index` on, where move_to() went, that are decoded already.
  std::span<const EntryView> decoded_from(std::size_t index) const {
    return page_.entries().subspan(index - pages_[loaded_].first_entry);
  }

 private:
  ByteView bytes_of(std::size_t page) const {
    return group_.substr(pages_[page].offset, pages_[page].size);
  }
  [[nodiscard]] bool first_key_of(std::size_t page, ByteView& user_key);
  // The last page that starts at or before `user_key`, or the first one.
  [[nodiscard]] bool find_page(ByteView user_key, std::size_t& page);
  [[nodiscard]] bool load(std::size_t page);

  ByteView group_;
  GroupHead head_;  // views group_
  std::vector<PlainPage> pages_;
  std::size_t loaded_ = SIZE_MAX;  // which page page_ holds
  PlainPageReader page_;
  Bytes unpacked_;  // that page, where it was packed
};

// The index of a plain group: the places of its pages, and the keys that they hold. A metadata
// record has it, so that a get reads one page of a group. It goes with the record from table to
// table; places count from the start of the item. A group of one page has none.
//
//   varint: offset of the first page in the item
//   for each page but the last:
//     varint, zigzag: its bytes - those of the page before (of the first: - 0)
//     length-prefixed: a key that no key of this page reaches and none of the next lies before, as
//     short as it can be, without what the first and the last key of the group share
//   The last page ends with the item.
struct PagePlace {
  std::size_t number = 0;
  std::size_t offset = 0;  // from the start of the item
  std::size_t size = 0;
};

// What an item is longer by in the file than in memory, before its first page and in each.
struct SealOverhead {
  std::size_t head_bytes = 0;
  std::size_t page_bytes = 0;
};

// Appends the page index of the group that `item` holds, with these `entries`; nothing for groups
// of one page.
void append_page_index(Bytes& out, ByteView item, std::span<const EntryView> entries,
                       const SealOverhead& overhead = {});

// Where the entry of `full_key` is if the group has it; it lies between the group's `first` and
// `last` key. Nothing when the index does not fit an item of `item_bytes`.
std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, ByteView first,
                                   ByteView last, ByteView full_key);
// The same where it is known how many bytes these two begin with.
std::optional<PagePlace> find_page(ByteView index, std::size_t item_bytes, std::size_t shared,
                                   ByteView full_key);
// All of them. False when the index does not fit an item of `item_bytes`.
[[nodiscard]] bool list_pages(ByteView index, std::size_t item_bytes,
                              std::vector<PagePlace>& pages);
// Both at once: `number` is of the page that find_page() finds.
[[nodiscard]] bool list_pages(ByteView index, std::size_t item_bytes, ByteView first, ByteView last,
                              ByteView full_key, std::vector<PagePlace>& pages,
                              std::size_t& number);

// Where some runs of a series group begin, a mark every few runs. A group of thousands of series
// has thousands of runs, which follow each other without an index; with marks a reader that wants
// one series parses the runs of one stretch. Made once, for a group that is kept in memory.
struct SeriesMarks {
  struct Mark {
    std::uint32_t offset = 0;  // of the run, in the body
    std::uint32_t entry = 0;   // index of its first entry
    // In `keys`: its first full key; of the first mark none, since every key belongs behind it.
    std::uint32_t key_offset = 0;
    std::uint32_t key_size = 0;
  };

  // The marks of the series group with these `contents`; it has none where its runs are few, or it
  // is malformed.
  static std::shared_ptr<const SeriesMarks> of(ByteView contents);

  ByteView key(const Mark& mark) const {
    return ByteView(keys).substr(mark.key_offset, mark.key_size);
  }
  std::size_t memory_bytes() const {
    return sizeof *this + marks.capacity() * sizeof(Mark) + keys.capacity();
  }

  std::vector<Mark> marks;
  Bytes keys;
};

// Reads the body of a group with GroupCodec::Series: columns; layout: value_format.h. Decodes a run
// when an entry of it is asked for. Owned by one thread. What it answers views the body and its own
// memory, until the next move_to(), lower_bound() or open(). The functions answer false when the
// body is malformed; then the reader is finished.
class SeriesGroupReader {
 public:
  // `body` stays where it is while the reader is used, and so do `marks`, which are of it; without
  // them, or where there are none, all runs are parsed at once. `prefix` is the namespace's.
  [[nodiscard]] bool open(ByteView body, ByteView prefix, std::size_t entries,
                          const SeriesMarks* marks = nullptr);
  // The first entry at or after `full_key`; the number of entries if there is none.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  // Fills full_key, kind and value of `entry`.
  [[nodiscard]] bool move_to(std::size_t index, EntryView& entry);
  // The numbers of the run's series and class from entry `index` on, where move_to() went, as far
  // as their full keys lie within [lower, upper), either of which may be empty, and they lie in one
  // run here: adds their ordinals and bits. How many they were.
  std::size_t add_numbers(std::size_t index, Direction direction, ByteView lower, ByteView upper,
                          NumberRun& run) const;
  // Marks every few of the runs, which were all parsed.
  void mark_runs(SeriesMarks& marks) const;

 private:
  struct Run {
    std::size_t first = 0;  // index of its first entry
    std::size_t count = 0;
    std::size_t offset = 0;  // in the body
    unsigned char flags = 0;
    std::size_t prefix_offset = 0;  // in prefixes_; namespace and key without ordinal
    std::size_t prefix_size = 0;
    ByteView body;

    bool short_keys() const { return (flags & kRunFlagShortKeys) != 0; }
  };

  [[nodiscard]] bool take_run(ByteView& input, Run& run);
  // The runs of `input`, in place of those that are parsed: entries [first, end).
  [[nodiscard]] bool take_runs(ByteView input, std::size_t first, std::size_t end);
  // The runs from a mark to the next one, unless they are parsed.
  [[nodiscard]] bool take_stretch(std::size_t mark);
  // The first full key of a run without short keys.
  Bytes first_key(const Run& run) const;
  // Parses the runs around entry `index`, unless they are.
  [[nodiscard]] bool hold_run_of(std::size_t index);
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
  ByteView body_;
  const SeriesMarks* marks_ = nullptr;  // null: runs_ are all there are
  std::size_t stretch_ = SIZE_MAX;      // else those from this mark on; SIZE_MAX: none are parsed
  Bytes prefixes_;
  std::vector<Run> runs_;
  std::size_t entries_ = 0;

  // What belongs to the loaded run.
  std::size_t loaded_ = SIZE_MAX;
  std::vector<std::uint64_t> ordinals_;
  std::vector<ByteView> short_keys_;
  bool one_class_ = true;
  ValueClass class_ = ValueClass::Delete;
  std::vector<std::uint64_t> classes_;  // unused when there is one
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
  // `group` stays where it is while it is read, and so do its `marks`, if there are any. `type` is
  // that of a group.
  [[nodiscard]] bool open(ItemType type, ByteView group, const SeriesMarks* marks = nullptr);

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
  [[nodiscard]] bool open_series(ByteView group, const SeriesMarks* marks);

  ItemType type_ = ItemType::PlainGroup;
  std::size_t entries_ = 0;
  PlainGroupReader plain_;
  std::uint64_t sequence_ = 0;            // of a series group, as is what follows
  std::vector<std::uint64_t> sequences_;  // empty without a sequence column
  SeriesGroupReader series_;
  EntryView entry_;
};

}  // namespace edgecase::engine
