#include "value/plain_page.h"

#include <algorithm>
#include <cstring>

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

}  // namespace

void append_plain_page(Bytes& out, std::span<const EntryView> entries, SequenceNumber largest,
                       SequenceColumn sequences) {
  const bool with_sequences = sequences == SequenceColumn::Written;
  Bytes heads;
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
  }
  out.append(kPageChecksumBytes, '\0');
  append_varint64(out, heads.size() << 1 | (with_sequences ? 1 : 0));
  out.append(heads);
  for (const EntryView& entry : entries)
    if (entry.kind != EntryKind::Delete) out.append(entry.value);
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

bool PlainPageReader::open(ByteView page, ByteView prefix, SequenceNumber largest) {
  entries_.clear();
  if (decode(page, prefix, largest)) return true;
  entries_.clear();
  return false;
}

bool PlainPageReader::decode(ByteView page, ByteView prefix, SequenceNumber largest) {
  PageParts parts;
  if (!split_page(page, parts)) return false;
  ends_.clear();
  std::size_t start = 0;  // of the key before, in keys_
  std::size_t end = 0;
  while (!parts.heads.empty()) {
    EntryHead head;
    EntryView entry;
    const bool first = entries_.empty();
    if (!take_head(parts.heads, parts.with_sequences, head) ||
        (first ? head.shared > 0 : prefix.size() + head.shared > end - start) ||
        !take_bytes(parts.values, head.value_size, entry.value) ||
        head.sequence_distance > largest || entries_.size() == kGroupEntriesMax)
      return false;
    entry.kind = head.kind;
    entry.sequence = largest - head.sequence_distance;
    const std::size_t kept = prefix.size() + head.shared;
    const std::size_t size = kept + head.rest.size();
    // A damaged page could name more keys than it has bytes for.
    if (end > kGroupRawMaxBytes + prefix.size() * kGroupEntriesMax) return false;
    if (keys_.size() < end + size) keys_.resize(2 * (end + size));
    char* const key = keys_.data() + end;
    std::memcpy(key, first ? prefix.data() : keys_.data() + start, kept);
    std::memcpy(key + kept, head.rest.data(), head.rest.size());
    start = end;
    end += size;
    ends_.push_back(end);
    entries_.push_back(entry);
  }
  // Only now do the keys stay where they are.
  for (std::size_t i = 0, begin = 0; i < entries_.size(); begin = ends_[i++])
    entries_[i].full_key = ByteView(keys_.data() + begin, ends_[i] - begin);
  return parts.values.empty();
}

std::size_t PlainPageReader::lower_bound(ByteView full_key) const {
  const auto found =
      std::partition_point(entries_.begin(), entries_.end(),
                           [&](const EntryView& entry) { return entry.full_key < full_key; });
  return static_cast<std::size_t>(found - entries_.begin());
}

}  // namespace edgecase::engine
