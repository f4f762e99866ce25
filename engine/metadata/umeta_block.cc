#include "metadata/umeta_block.h"

#include <algorithm>
#include <functional>

#include "base/coding.h"
#include "base/hash.h"
#include "metadata/bloom_filter.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kFilteredOrdinalBytes = 8;  // what series filters leave off

void append_shared(Bytes& out, ByteView key, ByteView shared_with) {
  const std::size_t shared = shared_bytes(key, shared_with);
  append_varint64(out, shared);
  append_length_prefixed(out, key.substr(shared));
}

// What of a key its group's filter knows: a series' prefix, else all of it.
ByteView filtered_part(ItemType type, ByteView full_key) {
  if (type == ItemType::SeriesGroup &&
      full_key.size() >= kNamespacePrefixBytes + kFilteredOrdinalBytes) {
    full_key.remove_suffix(kFilteredOrdinalBytes);
  }
  return full_key;
}

}  // namespace

std::optional<std::uint64_t> filter_hash(ItemType type, ByteView full_key) {
  if (type == ItemType::Single) return std::nullopt;
  return hash64(filtered_part(type, full_key));
}

void append_item_filter(Bytes& out, ItemType type, std::span<const EntryView> entries) {
  if (type == ItemType::Single) return;
  const bool one_part =
      type == ItemType::SeriesGroup &&
      filtered_part(type, entries.front().full_key) == filtered_part(type, entries.back().full_key);
  if (one_part) return;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(type == ItemType::SeriesGroup ? 0 : entries.size());
  ByteView previous;
  for (const EntryView& entry : entries) {
    const ByteView part = filtered_part(type, entry.full_key);
    if (part == previous) continue;  // the next reading of one series
    previous = part;
    hashes.push_back(hash64(part));
  }
  append_filter(out, hashes);
}

void UMetaBlockBuilder::add(const UMetaRecord& record) {
  const bool first_of_block = count_ == 0;
  const bool other_file = first_of_block || record.pointer.file_number != previous_.file_number;
  const bool one_sequence = record.sequence_min == record.sequence_max;
  unsigned flags = static_cast<unsigned>(record.type);
  if (other_file && !first_of_block) flags |= kRecordOtherFile;
  if (one_sequence) flags |= kRecordOneSequence;
  if (!record.filter.empty()) flags |= kRecordFilter;
  if (!record.pages.empty()) flags |= kRecordPages;
  records_.push_back(static_cast<char>(flags));
  append_shared(records_, record.first, previous_first_);
  if (record.type != ItemType::Single) {
    append_shared(records_, record.last, record.first);
    append_varint64(records_, record.entries);
  }
  append_varint64(records_, record.deletes);
  append_varint64(records_, record.sequence_max);
  if (!one_sequence) append_varint64(records_, record.sequence_max - record.sequence_min);
  if (other_file) append_varint64(records_, record.pointer.file_number);
  const std::uint64_t expected = other_file ? 0 : previous_.offset_bytes + previous_.size_bytes;
  append_varint64(records_,
                  zigzag(static_cast<std::int64_t>(record.pointer.offset_bytes - expected)));
  append_varint64(records_, record.pointer.size_bytes);
  if (!record.filter.empty()) append_varint64(records_, record.filter.size());
  if (!record.pages.empty()) append_length_prefixed(records_, record.pages);
  filters_.append(record.filter);
  previous_first_ = record.first;
  previous_ = record.pointer;
  ++count_;
}

bool UMetaBlockBuilder::full() const {
  return records_.size() >= kUMetaBlockBytes || filters_.size() >= kUMetaFilterBytes;
}

ByteView UMetaBlockBuilder::finish(std::uint64_t file_number, std::uint64_t offset) {
  block_.assign(kUMetaBlockHeadBytes, '\0');
  append_varint64(block_, count_);
  block_.append(records_);
  encode_fixed32(block_.data() + 4, static_cast<std::uint32_t>(block_.size()));
  block_.append(filters_);
  encode_fixed32(block_.data(), placed_crc32c(file_number, offset, ByteView(block_).substr(4)));
  records_.clear();
  filters_.clear();
  count_ = 0;
  previous_first_.clear();
  previous_ = ValuePointer();
  return block_;
}

bool UMetaBlock::checksum_matches(ByteView block, std::uint64_t file_number, std::uint64_t offset) {
  return block.size() > kUMetaChecksumBytes &&
         decode_fixed32(block.data()) ==
             placed_crc32c(file_number, offset, block.substr(kUMetaChecksumBytes));
}

std::optional<UMetaBlock> UMetaBlock::parse(ByteView block) {
  if (block.size() <= kUMetaBlockHeadBytes) return std::nullopt;
  const std::uint32_t filter_offset = decode_fixed32(block.data() + 4);
  if (filter_offset < kUMetaBlockHeadBytes || filter_offset > block.size()) return std::nullopt;
  ByteView input = block.substr(kUMetaBlockHeadBytes, filter_offset - kUMetaBlockHeadBytes);
  std::uint64_t count = 0;
  if (!take_varint64(input, count) || count == 0 || count > input.size()) return std::nullopt;

  std::optional<UMetaBlock> result(std::in_place);
  result->filters_ = block.substr(filter_offset);
  result->records_.reserve(count);
  result->keys_.reserve(2 * input.size());
  for (std::uint64_t i = 0; i < count; ++i)
    if (!result->take_record(input, i == 0)) return std::nullopt;
  result->keys_.shrink_to_fit();
  result->pages_.shrink_to_fit();
  const Compact& last = result->records_.back();
  if (!input.empty() || last.filter_offset + last.filter_size != result->filters_.size())
    return std::nullopt;
  result->last_keys_.build(result->size(),
                           [&](std::size_t i) { return result->last_key(result->records_[i]); });
  return result;
}

bool UMetaBlock::take_key(ByteView& input, ByteView shared_with, std::uint16_t& size) {
  std::uint64_t shared = 0;
  ByteView rest;
  if (!take_varint64(input, shared) || shared > shared_with.size() || shared > kFullKeyMax ||
      !take_length_prefixed(input, kFullKeyMax - shared, rest))
    return false;
  // It may lie in keys_, which grows.
  const char* const begin = keys_.data();
  if (std::less_equal<>()(begin, shared_with.data()) &&
      std::less<>()(shared_with.data(), begin + keys_.size())) {
    keys_.append(keys_, static_cast<std::size_t>(shared_with.data() - begin), shared);
  } else {
    keys_.append(shared_with.substr(0, shared));
  }
  keys_.append(rest);
  size = static_cast<std::uint16_t>(shared + rest.size());
  // Corrupt blocks could name more keys than they have bytes for.
  return size >= kNamespacePrefixBytes && keys_.size() <= 64 * kUMetaBlockMaxBytes;
}

bool UMetaBlock::take_record(ByteView& input, bool first_of_block) {
  if (input.empty()) return false;
  const auto flags = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  Compact record;
  record.type = static_cast<ItemType>(flags & kRecordTypeMask);
  if (record.type < ItemType::Single || record.type > ItemType::SeriesGroup) return false;

  const ByteView previous = first_of_block ? ByteView() : first_key(records_.back());
  record.first_offset = static_cast<std::uint32_t>(keys_.size());
  if (!take_key(input, previous, record.first_size)) return false;
  if (record.type != ItemType::Single) {
    if (!take_key(input, first_key(record), record.last_size) ||
        !take_varint32(input, record.entries) || record.entries == 0)
      return false;
  }
  if (!take_varint32(input, record.deletes) || record.deletes > record.entries ||
      !take_varint64(input, record.sequence_max))
    return false;
  std::uint64_t spread = 0;
  if ((flags & kRecordOneSequence) == 0 && !take_varint64(input, spread)) return false;
  if (spread > record.sequence_max) return false;
  record.sequence_min = record.sequence_max - spread;

  std::uint64_t expected = 0;
  if (first_of_block || (flags & kRecordOtherFile) != 0) {
    if (!take_varint64(input, record.pointer.file_number)) return false;
  } else {
    const ValuePointer& before = records_.back().pointer;
    record.pointer.file_number = before.file_number;
    expected = before.offset_bytes + before.size_bytes;
  }
  std::uint64_t distance = 0;
  if (!take_varint64(input, distance) || !take_varint32(input, record.pointer.size_bytes))
    return false;
  record.pointer.offset_bytes = expected + static_cast<std::uint64_t>(unzigzag(distance));
  if (!first_of_block)
    record.filter_offset = records_.back().filter_offset + records_.back().filter_size;
  if ((flags & kRecordFilter) != 0 &&
      (!take_varint32(input, record.filter_size) || record.filter_size == 0 ||
       record.filter_size > filters_.size() - record.filter_offset))
    return false;
  ByteView pages;
  if ((flags & kRecordPages) != 0 &&
      (!take_length_prefixed(input, kPageIndexMaxBytes, pages) || pages.empty()))
    return false;
  record.pages_offset = static_cast<std::uint32_t>(pages_.size());
  record.pages_size = static_cast<std::uint16_t>(pages.size());
  pages_.append(pages);
  records_.push_back(record);
  return (first_of_block || last_key(records_[records_.size() - 2]) < first_key(record)) &&
         first_key(record) <= last_key(record);
}

ByteView UMetaBlock::first_key(const Compact& record) const {
  return ByteView(keys_).substr(record.first_offset, record.first_size);
}

ByteView UMetaBlock::last_key(const Compact& record) const {
  if (record.type == ItemType::Single) return first_key(record);
  return ByteView(keys_).substr(record.first_offset + record.first_size, record.last_size);
}

UMetaRecord UMetaBlock::record(std::size_t index) const {
  const Compact& compact = records_[index];
  UMetaRecord record;
  record.type = compact.type;
  record.first = first_key(compact);
  record.last = last_key(compact);
  record.entries = compact.entries;
  record.deletes = compact.deletes;
  record.sequence_min = compact.sequence_min;
  record.sequence_max = compact.sequence_max;
  record.pointer = compact.pointer;
  record.filter = ByteView(filters_).substr(compact.filter_offset, compact.filter_size);
  record.pages = ByteView(pages_).substr(compact.pages_offset, compact.pages_size);
  return record;
}

std::size_t UMetaBlock::find(ByteView full_key) const {
  return last_keys_.lower_bound(full_key, [&](std::size_t i) { return last_key(records_[i]); });
}

std::size_t UMetaBlock::memory_bytes() const {
  return sizeof *this + records_.capacity() * sizeof(Compact) + keys_.capacity() +
         filters_.capacity() + pages_.capacity() + last_keys_.memory_bytes();
}

}  // namespace edgecase::engine
