#include "metadata/umeta_block.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/status.h"
#include "metadata/number_summary.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kKeptBytes = 4096;          // of keys, by a cursor that is closed
constexpr std::size_t kFilteredOrdinalBytes = 8;  // what series filters leave off
// With so many bytes of an item to what its filter knows two more bytes of that are little, and
// what reads in vain cost is much.
constexpr std::uint64_t kFineFilterItemBytes = 256;

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

void append_item_filter(Bytes& out, ItemType type, std::uint64_t item_bytes,
                        std::span<const EntryView> entries) {
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
  const bool is_fine = item_bytes >= kFineFilterItemBytes * hashes.size();
  append_filter(out, hashes, is_fine ? kFineFilter : kUsualFilter);
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
  if (!record.numbers.empty()) flags |= kRecordNumbers;
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
  if (!record.numbers.empty()) append_length_prefixed(records_, record.numbers);
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

void UMetaDecoder::resume(ByteView records, ByteView filters, const State& state,
                          ByteView first_before) {
  records_ = records;
  filters_ = filters;
  state_ = state;
  knows_last_ = false;
  first_before.copy(key_memory(0, first_before.size()), first_before.size());
  first_size_ = first_before.size();
}

// Room for `size` bytes of the first (0) or the last (1) key. What was there of the first stays.
char* UMetaDecoder::key_memory(std::size_t place, std::size_t size) {
  constexpr std::size_t kRoomMin = 48;
  if (size > key_room_) {
    std::vector<char> larger(2 * std::max(size, kRoomMin));
    std::copy_n(keys_.begin(), first_size_, larger.begin());
    keys_ = std::move(larger);
    key_room_ = keys_.size() / 2;
  }
  return keys_.data() + place * key_room_;
}

bool UMetaDecoder::take_key(ByteView& input, KeyParts& key) const {
  return take_varint32(input, key.shared) && key.shared <= first_size_ &&
         take_length_prefixed(input, kFullKeyMax - key.shared, key.rest) &&
         key.shared + key.rest.size() >= kNamespacePrefixBytes;
}

// A first key, while what it shares still is the one of the record before.
bool UMetaDecoder::lies_behind_last(const KeyParts& key) const {
  const ByteView last = record_.last;
  const int order = first().substr(0, key.shared).compare(last.substr(0, key.shared));
  return order != 0 ? order > 0 : key.rest > last.substr(key.shared);
}

// Puts a key together. The bytes that it shares with the first key stay where they are. Returns its
// size.
std::size_t UMetaDecoder::put_together(const KeyParts& key, std::size_t place) {
  const std::size_t size = key.shared + key.rest.size();
  char* const memory = key_memory(place, size);
  if (place != 0) std::copy_n(keys_.data(), key.shared, memory);
  std::copy(key.rest.begin(), key.rest.end(), memory + key.shared);
  return size;
}

bool UMetaDecoder::next() {
  if (at_end()) return false;
  const bool first_of_block = state_.input_offset == 0;
  ByteView input = records_.substr(state_.input_offset);
  const auto flags = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  record_.type = static_cast<ItemType>(flags & kRecordTypeMask);
  if (record_.type < ItemType::Single || record_.type > ItemType::SeriesGroup) return false;

  const bool single = record_.type == ItemType::Single;
  std::uint32_t entries = 1;
  KeyParts key;
  if (!take_key(input, key) || (knows_last_ && !lies_behind_last(key))) return false;
  first_size_ = put_together(key, 0);
  std::size_t last_size = 0;
  if (!single) {
    if (!take_key(input, key) || key.rest < first().substr(key.shared) ||
        !take_varint32(input, entries) || entries == 0)
      return false;
    last_size = put_together(key, 1);
  }
  record_.first = first();
  record_.last = single ? record_.first : ByteView(keys_.data() + key_room_, last_size);
  record_.entries = entries;
  knows_last_ = true;

  std::uint32_t deletes = 0;
  std::uint64_t spread = 0;
  if (!take_varint32(input, deletes) || deletes > entries ||
      !take_varint64(input, record_.sequence_max) ||
      ((flags & kRecordOneSequence) == 0 && !take_varint64(input, spread)) ||
      spread > record_.sequence_max)
    return false;
  record_.deletes = deletes;
  record_.sequence_min = record_.sequence_max - spread;

  std::uint64_t expected = 0;
  if (first_of_block || (flags & kRecordOtherFile) != 0) {
    if (!take_varint64(input, record_.pointer.file_number)) return false;
  } else {
    expected = state_.end_offset;
    record_.pointer.file_number = state_.file_number;
  }
  std::uint64_t distance = 0;
  std::uint32_t filter_size = 0;
  record_.pages = {};
  record_.numbers = {};
  if (!take_varint64(input, distance) || !take_varint32(input, record_.pointer.size_bytes) ||
      ((flags & kRecordFilter) != 0 && (!take_varint32(input, filter_size) || filter_size == 0 ||
                                        filter_size > filters_.size() - state_.filter_offset)) ||
      ((flags & kRecordPages) != 0 &&
       (!take_length_prefixed(input, kPageIndexMaxBytes, record_.pages) ||
        record_.pages.empty())) ||
      ((flags & kRecordNumbers) != 0 &&
       (record_.type != ItemType::SeriesGroup ||
        !take_length_prefixed(input, kNumberSummaryMaxBytes, record_.numbers) ||
        record_.numbers.empty())))
    return false;
  record_.pointer.offset_bytes = expected + static_cast<std::uint64_t>(unzigzag(distance));
  record_.filter = filters_.substr(state_.filter_offset, filter_size);

  state_.input_offset = static_cast<std::uint32_t>(records_.size() - input.size());
  state_.filter_offset += filter_size;
  state_.file_number = record_.pointer.file_number;
  state_.end_offset = record_.pointer.offset_bytes + record_.pointer.size_bytes;
  return true;
}

ByteView UMetaBlock::records() const {
  return ByteView(bytes_).substr(record_offset_, filter_offset_ - record_offset_);
}

std::optional<UMetaBlock> UMetaBlock::begin(Bytes block) {
  if (block.size() <= kUMetaBlockHeadBytes || block.size() > UINT32_MAX) return std::nullopt;
  std::optional<UMetaBlock> result(std::in_place);
  result->bytes_ = std::move(block);
  const ByteView bytes = result->bytes_;
  result->filter_offset_ = decode_fixed32(bytes.data() + 4);
  if (result->filter_offset_ < kUMetaBlockHeadBytes || result->filter_offset_ > bytes.size())
    return std::nullopt;
  ByteView input =
      bytes.substr(kUMetaBlockHeadBytes, result->filter_offset_ - kUMetaBlockHeadBytes);
  std::uint64_t count = 0;
  if (!take_varint64(input, count) || count == 0 || count > input.size()) return std::nullopt;
  result->count_ = count;
  result->record_offset_ = result->filter_offset_ - input.size();
  return result;
}

std::optional<UMetaBlock> UMetaBlock::parse(Bytes block) {
  std::optional<UMetaBlock> result = begin(std::move(block));
  if (!result) return std::nullopt;
  const std::size_t count = result->count_;
  Bytes last_keys;
  std::vector<std::size_t> ends;
  last_keys.reserve(2 * result->records().size());
  ends.reserve(count);
  result->anchors_.reserve((count + kAnchorRecords - 1) / kAnchorRecords);
  UMetaDecoder decoder;
  decoder.begin(result->records(), result->filters());
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kAnchorRecords == 0) {
      result->anchors_.push_back({decoder.state(),
                                  static_cast<std::uint32_t>(result->anchor_keys_.size()),
                                  static_cast<std::uint32_t>(decoder.first().size())});
      result->anchor_keys_.append(decoder.first());
    }
    if (!decoder.next()) return std::nullopt;
    last_keys.append(decoder.record().last);
    ends.push_back(last_keys.size());
    // Corrupt blocks could name more keys than they have bytes for.
    if (last_keys.size() > 64 * kUMetaBlockMaxBytes) return std::nullopt;
  }
  if (!result->ends_with(decoder)) return std::nullopt;
  result->anchor_keys_.shrink_to_fit();
  result->last_keys_.build(count, [&](std::size_t i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return ByteView(last_keys).substr(begin, ends[i] - begin);
  });
  return result;
}

bool UMetaBlock::ends_with(const UMetaDecoder& decoder) const {
  return decoder.at_end() && decoder.state().filter_offset == filter_bytes();
}

std::size_t UMetaBlock::memory_bytes() const {
  return sizeof *this + bytes_.capacity() + anchors_.capacity() * sizeof(Anchor) +
         anchor_keys_.capacity() + last_keys_.memory_bytes();
}

namespace {

// Reads what parse() has found to be well-formed: looks at no bound.
class KnownRecord {
 public:
  explicit KnownRecord(const char* at) : at_(reinterpret_cast<const unsigned char*>(at)) {}

  const char* at() const { return reinterpret_cast<const char*>(at_); }
  std::uint8_t take_byte() { return *at_++; }
  std::uint64_t take_varint() {
    std::uint64_t value = *at_ & 0x7f;
    for (unsigned shift = 7; *at_++ >= 0x80; shift += 7)
      value |= static_cast<std::uint64_t>(*at_ & 0x7f) << shift;
    return value;
  }
  void skip_varint() {
    while (*at_++ >= 0x80) {
    }
  }
  ByteView take_bytes(std::size_t size) {
    const ByteView bytes(at(), size);
    at_ += size;
    return bytes;
  }

 private:
  const unsigned char* at_;
};

// What a record tells of one of its keys: how much of it another begins with, and the rest.
struct KeyParts {
  std::size_t shared = 0;
  ByteView rest;
};

KeyParts take_key_parts(KnownRecord& input) {
  KeyParts parts;
  parts.shared = input.take_varint();
  parts.rest = input.take_bytes(input.take_varint());
  return parts;
}

}  // namespace

namespace {

// What follows the keys of a record. `state` goes on to the next one, but for where that begins.
void take_rest(KnownRecord& input, unsigned flags, bool is_first, const char* filters,
               UMetaDecoder::State& state, UMetaRecord& record) {
  record.entries = record.type == ItemType::Single ? 1 : input.take_varint();
  record.deletes = input.take_varint();
  record.sequence_max = input.take_varint();
  if ((flags & kRecordOneSequence) == 0) input.skip_varint();
  if (is_first || (flags & kRecordOtherFile) != 0)
    state = {0, state.filter_offset, input.take_varint(), 0};
  const std::int64_t distance = unzigzag(input.take_varint());
  record.pointer = {state.file_number, state.end_offset + static_cast<std::uint64_t>(distance),
                    static_cast<std::uint32_t>(input.take_varint())};
  state.end_offset = record.pointer.offset_bytes + record.pointer.size_bytes;
  const std::uint64_t filter = (flags & kRecordFilter) != 0 ? input.take_varint() : 0;
  record.filter = ByteView(filters + state.filter_offset, filter);
  state.filter_offset += static_cast<std::uint32_t>(filter);
  record.pages = (flags & kRecordPages) != 0 ? input.take_bytes(input.take_varint()) : ByteView();
  record.numbers =
      (flags & kRecordNumbers) != 0 ? input.take_bytes(input.take_varint()) : ByteView();
}

}  // namespace

// Heads tell all but where one of them is the key's own. Then the key begins as the last key of
// that record does, as far as heads reach, and the rest of that one stands in the record.
UMetaBlock::Sought UMetaBlock::locate(ByteView full_key, UMetaPlace& place) const {
  const auto [begin, end] = last_keys_.candidates(full_key);
  if (end - begin > 1 || begin == count_) return Sought::Unknown;
  const std::size_t anchor = begin / kAnchorRecords;
  UMetaDecoder::State state = anchors_[anchor].state;
  KnownRecord input(bytes_.data() + record_offset_ + state.input_offset);
  UMetaRecord& record = place.record;
  for (std::size_t index = anchor * kAnchorRecords; index < count_; ++index) {
    const unsigned flags = input.take_byte();
    record.type = static_cast<ItemType>(flags & kRecordTypeMask);
    const bool single = record.type == ItemType::Single;
    KeyParts last = take_key_parts(input);
    if (!single) last = take_key_parts(input);
    take_rest(input, flags, index == 0, bytes_.data() + filter_offset_, state, record);
    if (index < begin) continue;
    if (record.type == ItemType::SeriesGroup) return Sought::Unknown;
    if (index < end) {
      if (last.shared > last_keys_.reach() || last.shared > full_key.size()) return Sought::Unknown;
      const int order = full_key.substr(last.shared).compare(last.rest);
      if (order > 0) continue;
      if (single && order < 0) return Sought::Nowhere;
    } else if (single) {
      return Sought::Nowhere;
    }
    place.shared = single ? full_key.size() : last.shared;
    return Sought::Here;
  }
  return Sought::Unknown;
}

void UMetaCursor::open(std::shared_ptr<const UMetaBlock> block) {
  block_ = std::move(block);
  index_ = block_->size();
}

void UMetaCursor::close() {
  block_.reset();
  if (decoder_.memory_bytes() > kKeptBytes) decoder_ = UMetaDecoder();
}

bool UMetaCursor::select(std::size_t index) {
  EC_CHECK(index < size());
  if (!block_->is_parsed()) return walk(index);
  const std::size_t anchor = index / UMetaBlock::kAnchorRecords;
  const std::size_t anchored = anchor * UMetaBlock::kAnchorRecords;
  std::size_t next = index_ + 1;
  if (index_ == size() || index <= index_ || anchored > next) {
    if (index == index_) return true;
    const UMetaBlock::Anchor& begin = block_->anchors_[anchor];
    decoder_.resume(block_->records(), block_->filters(), begin.state, block_->key_before(begin));
    next = anchored;
  }
  // parse() has read all of them.
  for (; next <= index; ++next) EC_CHECK(decoder_.next());
  index_ = index;
  return true;
}

// As select(), of a block that was not parsed.
bool UMetaCursor::walk(std::size_t index) {
  if (index == index_) return true;
  std::size_t next = index_ + 1;
  if (index_ == size() || index < index_) {
    decoder_.begin(block_->records(), block_->filters());
    next = 0;
  }
  index_ = size();
  for (; next <= index; ++next)
    if (!decoder_.next()) return false;
  if (next == size() && !block_->ends_with(decoder_)) return false;
  index_ = index;
  return true;
}

bool UMetaCursor::next() {
  const std::size_t following = index_ == size() ? 0 : index_ + 1;
  if (following == size()) {
    index_ = following;
    return false;
  }
  return select(following);
}

// As find(), of a block that was not parsed.
bool UMetaCursor::walk_to(ByteView full_key) {
  if (index_ == size() || record().first > full_key) {
    if (!walk(0)) return false;
  }
  while (record().last < full_key)
    if (!next()) return false;
  return true;
}

bool UMetaCursor::find(ByteView full_key) {
  if (!block_->is_parsed()) return walk_to(full_key);
  const std::size_t found = block_->last_keys_.lower_bound(full_key, [&](std::size_t i) {
    select(i);
    return record().last;
  });
  if (found == size()) {
    index_ = found;
    return false;
  }
  return select(found);
}

}  // namespace edgecase::engine
