#include "value/group.h"

#include <algorithm>

#include "base/check.h"
#include "base/coding.h"
#include "value/integers_block.h"
#include "value/series_columns.h"

namespace edgecase::engine {

void append_group(Bytes& out, GroupCodec codec, std::span<const EntryView> entries,
                  SequenceColumn sequences) {
  EC_CHECK(!entries.empty() && entries.size() <= kGroupEntriesMax);
  std::vector<std::uint64_t> all;
  all.reserve(entries.size());
  for (const EntryView& entry : entries) all.push_back(entry.sequence);

  const bool with_column = sequences == SequenceColumn::Written;
  out.push_back(static_cast<char>(with_column ? kGroupFlagSequences : 0));
  out.append(entries.front().full_key.substr(0, kNamespacePrefixBytes));
  append_varint64(out, entries.size());
  append_varint64(out, *std::max_element(all.begin(), all.end()));
  if (with_column) append_integers(out, all);
  if (codec == GroupCodec::Series) {
    SeriesColumns columns(SIZE_MAX, entries.size());
    for (const EntryView& entry : entries) EC_CHECK(columns.add(entry));
    columns.append_body(out);
  } else {
    append_plain_body(out, entries);
  }
}

void append_group(Bytes& out, SeriesColumns& columns) {
  const ItemSummary& summary = columns.summary();
  EC_CHECK(summary.entries <= kGroupEntriesMax);
  out.push_back(0);
  out.append(summary.first.substr(0, kNamespacePrefixBytes));
  append_varint64(out, summary.entries);
  append_varint64(out, summary.sequence_max);
  columns.append_body(out);
}

bool GroupReader::open(ItemType type, ByteView group) {
  type_ = type;
  entry_ = EntryView();
  sequences_.clear();
  if (group.empty() || (static_cast<unsigned char>(group.front()) & ~kGroupFlagSequences) != 0)
    return false;
  const bool with_column = group.front() != 0;
  group.remove_prefix(1);
  ByteView prefix;
  std::uint64_t entries = 0;
  if (!take_bytes(group, kNamespacePrefixBytes, prefix) || !take_varint64(group, entries) ||
      entries == 0 || entries > kGroupEntriesMax || !take_varint64(group, sequence_))
    return false;
  entries_ = entries;
  if (with_column) {
    sequences_.resize(entries_);
    if (!take_integers(group, sequences_)) return false;
    for (const std::uint64_t sequence : sequences_)
      if (sequence > sequence_) return false;
  }
  switch (type) {
    case ItemType::PlainGroup:
      plain_.set_sequences(sequence_, sequences_);
      return plain_.open(group, prefix, entries_);
    case ItemType::SeriesGroup: return series_.open(group, prefix, entries_);
    case ItemType::Single: return false;
  }
  return false;
}

bool GroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  return type_ == ItemType::SeriesGroup ? series_.lower_bound(full_key, index)
                                        : plain_.lower_bound(full_key, index);
}

bool GroupReader::find(ByteView full_key, bool& found) {
  found = false;
  std::size_t index = 0;
  if (type_ == ItemType::SeriesGroup) {
    if (!lower_bound(full_key, index)) return false;
    if (index >= entries_) return true;
    if (!move_to(index)) return false;
    found = entry_.full_key == full_key;
    return true;
  }
  if (!plain_.find(full_key, index, entry_)) return false;
  found = index < entries_;
  if (!found) return true;
  entry_.full_key = full_key;
  entry_.sequence = sequences_.empty() ? sequence_ : sequences_[index];
  return true;
}

bool GroupReader::move_to(std::size_t index) {
  if (type_ == ItemType::PlainGroup) return plain_.move_to(index, entry_);
  entry_.sequence = sequences_.empty() ? sequence_ : sequences_[index];
  return series_.move_to(index, entry_);
}

}  // namespace edgecase::engine
