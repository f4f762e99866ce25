#include "value/group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/coding.h"
#include "edgecase/options.h"

namespace edgecase::engine {
namespace {

// The two parts of a page.
struct PageParts {
  ByteView heads;
  ByteView values;
  bool with_sequences = false;
};

bool split_page(ByteView page, PageParts& parts) {
  std::uint64_t heads = 0;
  if (page.size() < kPageChecksumBytes) return false;
  page.remove_prefix(kPageChecksumBytes);
  if (!take_varint64(page, heads) || !take_bytes(page, heads >> 1, parts.heads)) return false;
  parts.with_sequences = (heads & 1) != 0;
  parts.values = page;
  return !parts.heads.empty();
}

struct EntryHead {
  std::uint32_t shared = 0;
  ByteView rest;
  std::uint64_t value_size = 0;
  EntryKind kind = EntryKind::Put;
  std::uint64_t sequence_distance = 0;  // from the largest
};

bool take_long_head(ByteView& input, bool with_sequences, EntryHead& head) {
  std::uint32_t rest_size = 0;
  std::uint64_t size_and_kind = 0;
  if (!take_varint32(input, head.shared) || !take_varint32(input, rest_size) ||
      !take_varint64(input, size_and_kind))
    return false;
  if (with_sequences && !take_varint64(input, head.sequence_distance)) return false;
  head.value_size = size_and_kind >> 1;
  head.kind = (size_and_kind & 1) != 0 ? EntryKind::Delete : EntryKind::Put;
  return head.shared <= kKeySizeMaxBytes && rest_size <= kKeySizeMaxBytes - head.shared &&
         take_bytes(input, rest_size, head.rest);
}

static_assert(kUnpackedMaxBytes > kGroupRawMaxBytes + kGroupEntriesMax * 24);

constexpr std::size_t kCopyStepBytes = 16;
// What copy_in_steps() may touch behind what it copies, on either side.
constexpr std::size_t kCopySlackBytes = kCopyStepBytes;

// For parts of keys, which are a few steps long: a call of memcpy() for each takes longer. Steps
// may overlap behind `size`, where nothing counts.
inline void copy_in_steps(char* to, const char* from, std::size_t size) {
  for (std::size_t done = 0; done < size; done += kCopyStepBytes) {
    char step[kCopyStepBytes];
    std::memcpy(step, from + done, kCopyStepBytes);
    std::memcpy(to + done, step, kCopyStepBytes);
  }
}

// Three sizes of a byte each are what small entries have.
inline bool take_head(ByteView& input, bool with_sequences, EntryHead& head) {
  if (with_sequences || input.size() < 3 || ((input[0] | input[1] | input[2]) & 0x80) != 0)
    return take_long_head(input, with_sequences, head);
  const char* const sizes = input.data();
  const auto rest_size = static_cast<std::size_t>(sizes[1]);
  if (rest_size > input.size() - 3) return false;
  head.shared = static_cast<std::uint32_t>(sizes[0]);
  head.rest = ByteView(sizes + 3, rest_size);
  head.value_size = static_cast<std::uint64_t>(sizes[2]) >> 1;
  head.kind = (sizes[2] & 1) != 0 ? EntryKind::Delete : EntryKind::Put;
  head.sequence_distance = 0;
  input.remove_prefix(3 + rest_size);
  return true;
}
static_assert(2 * 0x7f <= kKeySizeMaxBytes);

// How long the heads are, and whether they have sequences.
std::uint64_t heads_field(std::size_t bytes, SequenceColumn sequences) {
  return bytes << 1 | (sequences == SequenceColumn::Written ? 1 : 0);
}

}  // namespace

std::size_t append_page_heads(Bytes& heads, std::span<const EntryView> entries,
                              SequenceNumber largest, SequenceColumn sequences) {
  const bool with_sequences = sequences == SequenceColumn::Written;
  const std::size_t begin = heads.size();
  std::size_t value_bytes = 0;
  ByteView previous;
  for (const EntryView& entry : entries) {
    const ByteView key = user_key_of(entry.full_key);
    const std::size_t shared = shared_bytes(previous, key);
    const bool is_delete = entry.kind == EntryKind::Delete;
    append_varint64(heads, shared);
    append_varint64(heads, key.size() - shared);
    append_varint64(heads, is_delete ? 1 : entry.value.size() << 1);
    if (with_sequences) append_varint64(heads, largest - entry.sequence);
    heads.append(key.substr(shared));
    previous = key;
    if (!is_delete) value_bytes += entry.value.size();
  }
  const std::size_t size = heads.size() - begin;
  return kPageChecksumBytes + varint_bytes(heads_field(size, sequences)) + size + value_bytes;
}

void append_page(Bytes& out, ByteView heads, std::span<const EntryView> entries,
                 SequenceColumn sequences) {
  out.append(kPageChecksumBytes, '\0');
  append_varint64(out, heads_field(heads.size(), sequences));
  out.append(heads);
  for (const EntryView& entry : entries)
    if (entry.kind != EntryKind::Delete) out.append(entry.value);
}

void append_packed_page(Bytes& out, ByteView page, Packer& packer) {
  const ByteView body = page.substr(kPageChecksumBytes);
  const ByteView packed = packer.pack(body);
  if (packed.empty()) {
    out.append(page);
    return;
  }
  out.append(kPageChecksumBytes, '\0');
  out.push_back(kPackedPageMark);
  append_varint64(out, body.size());
  out.append(packed);
}

bool unpack_page(ByteView page, Bytes& room, ByteView& unpacked) {
  unpacked = page;
  if (!is_packed_page(page)) return true;
  page.remove_prefix(kPageChecksumBytes + 1);
  std::uint64_t size = 0;
  if (!take_varint64(page, size) || !unpack(page, size, room, kPageChecksumBytes)) return false;
  unpacked = {room.data(), kPageChecksumBytes + static_cast<std::size_t>(size)};
  return true;
}

bool find_in_page(ByteView page, ByteView user_key, SequenceNumber largest, EntryView& entry,
                  bool& found) {
  found = false;
  PageParts parts;
  if (!split_page(page, parts)) return false;
  // How much of the wanted key the entry before begins with, all of which is smaller: what shares
  // more with that one is smaller too, what shares less is larger.
  std::size_t matched = 0;
  std::size_t previous_size = 0;
  std::uint64_t value_offset = 0;
  for (EntryHead head; !parts.heads.empty(); value_offset += head.value_size) {
    if (!take_head(parts.heads, parts.with_sequences, head) || head.shared > previous_size ||
        head.value_size > parts.values.size() - value_offset)
      return false;
    previous_size = head.shared + head.rest.size();
    if (head.shared > matched) continue;
    if (head.shared < matched) return true;
    const ByteView tail = user_key.substr(matched);
    // The first byte tells most of them apart.
    if (!head.rest.empty() && !tail.empty() && head.rest.front() != tail.front()) {
      if (static_cast<unsigned char>(head.rest.front()) < static_cast<unsigned char>(tail.front()))
        continue;
      return true;
    }
    const std::size_t same = shared_bytes(head.rest, tail);
    if (same == head.rest.size() && same == tail.size()) {
      if (head.sequence_distance > largest) return false;
      entry.kind = head.kind;
      entry.sequence = largest - head.sequence_distance;
      entry.value = parts.values.substr(value_offset, head.value_size);
      found = true;
      return true;
    }
    if (same == tail.size()) return true;
    if (same < head.rest.size() &&
        static_cast<unsigned char>(head.rest[same]) > static_cast<unsigned char>(tail[same])) {
      return true;
    }
    matched += same;
  }
  return true;
}

bool first_key_of_page(ByteView page, ByteView& user_key) {
  PageParts parts;
  EntryHead head;
  if (!split_page(page, parts) || !take_head(parts.heads, parts.with_sequences, head) ||
      head.shared != 0)
    return false;
  user_key = head.rest;
  return true;
}

bool PlainPageReader::fail() {
  heads_ = {};
  count_ = 0;
  return false;
}

bool PlainPageReader::begin(ByteView page, ByteView prefix, SequenceNumber largest) {
  count_ = 0;
  PageParts parts;
  if (!split_page(page, parts)) return fail();
  page_ = page;
  heads_ = parts.heads;
  values_ = parts.values;
  with_sequences_ = parts.with_sequences;
  largest_ = largest;
  prefix_bytes_ = prefix.size();
  at_first_ = true;
  if (keys_.size() < prefix.size() + kCopySlackBytes) grow_keys(prefix.size());
  std::memcpy(keys_.data(), prefix.data(), prefix.size());
  key_begin_ = 0;
  key_end_ = prefix.size();
  return true;
}

bool PlainPageReader::open(ByteView page, ByteView prefix, SequenceNumber largest) {
  return begin(page, prefix, largest) && decode(kGroupEntriesMax) && (heads_.empty() || fail());
}

bool PlainPageReader::open_from(ByteView page, ByteView prefix, SequenceNumber largest,
                                ByteView full_key) {
  if (!begin(page, prefix, largest)) return false;
  const ByteView user_key = full_key.substr(prefix.size());
  // As in find_in_page(): `matched` bytes of the wanted key are what the entry before begins with.
  std::size_t matched = 0;
  std::size_t previous_size = 0;
  while (!heads_.empty()) {
    const ByteView here = heads_;
    EntryHead head;
    if (!take_head(heads_, with_sequences_, head) || head.shared > previous_size ||
        head.value_size > values_.size())
      return fail();
    bool reached = head.shared < matched;
    if (head.shared == matched) {
      const ByteView tail = user_key.substr(matched);
      const std::size_t same = shared_bytes(head.rest, tail);
      reached = same == tail.size() ||
                (same < head.rest.size() && static_cast<unsigned char>(head.rest[same]) >
                                                static_cast<unsigned char>(tail[same]));
      if (!reached) matched += same;
    }
    if (reached) {
      // What it shares with the entry before is what that shares with the wanted key.
      heads_ = here;
      if (keys_.size() < prefix.size() + head.shared + kCopySlackBytes)
        grow_keys(prefix.size() + head.shared);
      std::memcpy(keys_.data() + prefix.size(), user_key.data(), head.shared);
      key_end_ = prefix.size() + head.shared;
      at_first_ = previous_size == 0;
      return decode(kFirstStretch);
    }
    previous_size = head.shared + head.rest.size();
    values_.remove_prefix(static_cast<std::size_t>(head.value_size));
  }
  return values_.empty() || fail();
}

// Room for keys up to `wanted`. What was decoded moves along.
void PlainPageReader::grow_keys(std::size_t wanted) {
  std::vector<char> larger(2 * wanted + kCopySlackBytes);
  if (!keys_.empty()) std::memcpy(larger.data(), keys_.data(), key_end_);
  for (std::size_t i = 0; i < count_; ++i) {
    const ByteView key = entries_[i].full_key;
    entries_[i].full_key = ByteView(larger.data() + (key.data() - keys_.data()), key.size());
  }
  keys_ = std::move(larger);
}

// The next ones, in place of those that were decoded.
bool PlainPageReader::decode(std::size_t count_max) {
  if (key_begin_ > 0) {
    // Only the key before is wanted of them.
    std::memmove(keys_.data(), keys_.data() + key_begin_, key_end_ - key_begin_);
    key_end_ -= std::exchange(key_begin_, 0);
  }
  count_ = 0;
  // Where the first `same` bytes of the key before lie as well. What was written just now is waited
  // for when it is read in other pieces: neighbours that share as much are all copied from one key.
  std::size_t source = key_begin_;
  std::size_t same = key_end_ - key_begin_;
  // No head is shorter than three sizes of a byte each.
  const std::size_t count_limit =
      std::min({count_max, heads_.size() / 3 + 1, std::size_t{kGroupEntriesMax}});
  if (entries_.size() < count_limit) entries_.resize(count_limit);
  const char* const page_end = page_.data() + page_.size();
  while (!heads_.empty() && count_ < count_limit) {
    EntryHead head;
    EntryView& entry = entries_[count_];
    if (!take_head(heads_, with_sequences_, head) ||
        (std::exchange(at_first_, false) ? head.shared > 0
                                         : prefix_bytes_ + head.shared > key_end_ - key_begin_) ||
        !take_bytes(values_, head.value_size, entry.value) || head.sequence_distance > largest_)
      return fail();
    entry.kind = head.kind;
    entry.sequence = largest_ - head.sequence_distance;
    const std::size_t kept = prefix_bytes_ + head.shared;
    const std::size_t size = kept + head.rest.size();
    // A damaged page could name more keys than it has bytes for.
    if (key_end_ > kGroupRawMaxBytes + prefix_bytes_ * kGroupEntriesMax) return fail();
    if (keys_.size() < key_end_ + size + kCopySlackBytes) grow_keys(key_end_ + size);
    char* const key = keys_.data() + key_end_;
    if (kept > same) source = key_begin_;
    same = kept;
    copy_in_steps(key, keys_.data() + source, kept);
    const char* const rest_end = head.rest.data() + head.rest.size();
    if (page_end - rest_end >= static_cast<std::ptrdiff_t>(kCopySlackBytes)) {
      copy_in_steps(key + kept, head.rest.data(), head.rest.size());
    } else {
      std::memcpy(key + kept, head.rest.data(), head.rest.size());
    }
    entry.full_key = ByteView(key, size);
    key_begin_ = key_end_;
    key_end_ += size;
    ++count_;
  }
  if (!heads_.empty()) return count_ == count_max || fail();
  return values_.empty() || fail();
}

std::size_t PlainPageReader::lower_bound(ByteView full_key) const {
  const std::span<const EntryView> all = entries();
  const auto found = std::partition_point(
      all.begin(), all.end(), [&](const EntryView& entry) { return entry.full_key < full_key; });
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace edgecase::engine
