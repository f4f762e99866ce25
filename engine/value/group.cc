#include "value/group.h"

#include <algorithm>

#include "base/check.h"
#include "value/group_head.h"
#include "value/integers_block.h"
#include "value/series_columns.h"

namespace edgecase::engine {

void append_group(Bytes& out, GroupCodec codec, std::span<const EntryView> entries,
                  SequenceColumn sequences, Packer* packer) {
  EC_CHECK(!entries.empty() && entries.size() <= kGroupEntriesMax);
  GroupHead head;
  head.prefix = entries.front().full_key.substr(0, kNamespacePrefixBytes);
  head.entries = entries.size();
  for (const EntryView& entry : entries)
    head.sequence_max = std::max(head.sequence_max, entry.sequence);
  if (codec == GroupCodec::Plain) {
    append_group_head(out, head);
    append_plain_body(out, entries, head.sequence_max, sequences, packer);
    return;
  }
  const bool with_column = sequences == SequenceColumn::Written;
  head.flags = with_column ? kGroupFlagSequences : 0;
  append_group_head(out, head);
  if (with_column) {
    std::vector<std::uint64_t> all;
    all.reserve(entries.size());
    for (const EntryView& entry : entries) all.push_back(entry.sequence);
    append_integers(out, all);
  }
  SeriesColumns columns(SIZE_MAX, entries.size());
  for (const EntryView& entry : entries) EC_CHECK(columns.add(entry));
  columns.append_body(out, packer);
}

void append_group(Bytes& out, SeriesColumns& columns, Packer* packer) {
  const ItemSummary& summary = columns.summary();
  EC_CHECK(summary.entries <= kGroupEntriesMax);
  const std::span<const SequenceNumber> sequences = columns.sequences();
  const bool with_column =
      std::any_of(sequences.begin(), sequences.end(),
                  [&](SequenceNumber sequence) { return sequence != summary.sequence_max; });
  const unsigned char flags = with_column ? kGroupFlagSequences : 0;
  append_group_head(out, {flags, summary.first.substr(0, kNamespacePrefixBytes), summary.entries,
                          summary.sequence_max});
  if (with_column) append_integers(out, sequences);
  columns.append_body(out, packer);
}

bool GroupReader::open(ItemType type, ByteView group) {
  type_ = type;
  entry_ = EntryView();
  switch (type) {
    case ItemType::PlainGroup:
      if (!plain_.open(group)) return false;
      entries_ = plain_.entry_count();
      return true;
    case ItemType::SeriesGroup: return open_series(group);
    case ItemType::Single: return false;
  }
  return false;
}

bool GroupReader::open_series(ByteView group) {
  GroupHead head;
  sequences_.clear();
  if (!take_group_head(group, head) || (head.flags & ~kGroupFlagSequences) != 0) return false;
  entries_ = head.entries;
  sequence_ = head.sequence_max;
  if (head.flags != 0) {
    sequences_.resize(entries_);
    if (!take_integers(group, sequences_)) return false;
    for (const std::uint64_t sequence : sequences_)
      if (sequence > sequence_) return false;
  }
  return series_.open(group, head.prefix, entries_);
}

bool GroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  return type_ == ItemType::SeriesGroup ? series_.lower_bound(full_key, index)
                                        : plain_.lower_bound(full_key, index);
}

std::size_t GroupReader::add_numbers(std::size_t index, Direction direction, ByteView lower,
                                     ByteView upper, NumberRun& run) const {
  if (type_ != ItemType::SeriesGroup) return 0;
  const std::size_t count = series_.add_numbers(index, direction, lower, upper, run);
  if (sequences_.empty()) {
    run.sequences.insert(run.sequences.end(), count, sequence_);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      run.sequences.push_back(sequences_[direction == Direction::Forward ? index + i : index - i]);
  }
  return count;
}

bool GroupReader::move_to(std::size_t index) {
  if (type_ == ItemType::PlainGroup) return plain_.move_to(index, entry_);
  entry_.sequence = sequences_.empty() ? sequence_ : sequences_[index];
  return series_.move_to(index, entry_);
}

}  // namespace edgecase::engine
