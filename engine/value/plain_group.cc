#include "value/plain_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/coding.h"
#include "edgecase/options.h"

namespace edgecase::engine {
namespace {

std::size_t shared_bytes(ByteView a, ByteView b) {
  const auto [end, ignored] = std::mismatch(
      a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  return static_cast<std::size_t>(end - a.begin());
}

struct EntryHead {
  std::uint32_t shared = 0;
  ByteView rest;
  std::uint64_t value_size = 0;
  EntryKind kind = EntryKind::Put;
};

bool take_entry(ByteView& input, EntryHead& head, ByteView& value) {
  std::uint32_t rest_size = 0;
  std::uint64_t size_and_kind = 0;
  // Three sizes of a byte each are what small entries have.
  if (input.size() >= 3 && ((input[0] | input[1] | input[2]) & 0x80) == 0) {
    head.shared = static_cast<std::uint32_t>(input[0]);
    rest_size = static_cast<std::uint32_t>(input[1]);
    size_and_kind = static_cast<std::uint64_t>(input[2]);
    input.remove_prefix(3);
  } else if (!take_varint32(input, head.shared) || !take_varint32(input, rest_size) ||
             !take_varint64(input, size_and_kind)) {
    return false;
  }
  head.value_size = size_and_kind >> 1;
  head.kind = (size_and_kind & 1) != 0 ? EntryKind::Delete : EntryKind::Put;
  return head.shared <= kKeySizeMaxBytes && rest_size <= kKeySizeMaxBytes - head.shared &&
         take_bytes(input, rest_size, head.rest) && take_bytes(input, head.value_size, value);
}

}  // namespace

void append_plain_body(Bytes& out, std::span<const EntryView> entries) {
  const std::size_t start = out.size();
  std::vector<std::uint32_t> restarts;
  ByteView previous;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ByteView key = user_key_of(entries[i].full_key);
    std::size_t shared = 0;
    if (i % kPlainRestartInterval == 0) {
      restarts.push_back(static_cast<std::uint32_t>(out.size() - start));
    } else {
      shared = shared_bytes(previous, key);
    }
    const bool is_delete = entries[i].kind == EntryKind::Delete;
    const ByteView value = is_delete ? ByteView() : entries[i].value;
    append_varint64(out, shared);
    append_varint64(out, key.size() - shared);
    append_varint64(out, value.size() << 1 | (is_delete ? 1 : 0));
    out.append(key.substr(shared)).append(value);
    previous = key;
  }
  for (const std::uint32_t restart : restarts) append_fixed32(out, restart);
}

bool PlainGroupReader::open(ByteView body, ByteView prefix, std::size_t entries) {
  const std::size_t intervals = (entries + kPlainRestartInterval - 1) / kPlainRestartInterval;
  if (body.size() / 4 < intervals) return false;
  items_ = body.substr(0, body.size() - 4 * intervals);
  restarts_ = body.substr(items_.size());
  prefix_.assign(prefix);
  entries_ = entries;
  loaded_ = SIZE_MAX;
  return true;
}

bool PlainGroupReader::entries_from(std::size_t interval, ByteView& rest) const {
  const std::uint32_t offset = decode_fixed32(restarts_.data() + 4 * interval);
  if (offset >= items_.size()) return false;
  rest = items_.substr(offset);
  return true;
}

bool PlainGroupReader::restart_key(std::size_t interval, ByteView& user_key) const {
  ByteView rest;
  EntryHead head;
  ByteView value;
  if (!entries_from(interval, rest) || !take_entry(rest, head, value) || head.shared != 0)
    return false;
  user_key = head.rest;
  return true;
}

bool PlainGroupReader::load(std::size_t interval) {
  if (interval == loaded_) return true;
  loaded_ = SIZE_MAX;
  const std::size_t first = interval * kPlainRestartInterval;
  slot_count_ = std::min(kPlainRestartInterval, entries_ - first);
  ByteView rest;
  if (!entries_from(interval, rest)) return false;
  std::array<std::size_t, kPlainRestartInterval> ends;  // of keys, in keys_
  std::size_t start = 0;                                // of the key before
  std::size_t end = 0;
  for (std::size_t i = 0; i < slot_count_; ++i) {
    EntryView& slot = slots_[i];
    EntryHead head;
    const std::size_t previous_size = end - start;
    if (!take_entry(rest, head, slot.value) ||
        (i == 0 ? head.shared > 0 : head.shared + prefix_.size() > previous_size))
      return false;
    slot.kind = head.kind;
    slot.sequence = sequences_.empty() ? sequence_ : sequences_[first + i];
    const std::size_t kept = prefix_.size() + head.shared;
    const std::size_t size = kept + head.rest.size();
    if (keys_.size() < end + size) keys_.resize(2 * (end + size));
    char* key = keys_.data() + end;
    std::memcpy(key, i == 0 ? prefix_.data() : keys_.data() + start, kept);
    std::memcpy(key + kept, head.rest.data(), head.rest.size());
    start = end;
    end += size;
    ends[i] = end;
  }
  // Only now do the keys stay where they are.
  for (std::size_t i = 0, begin = 0; i < slot_count_; begin = ends[i++])
    slots_[i].full_key = ByteView(keys_.data() + begin, ends[i] - begin);
  loaded_ = interval;
  return true;
}

bool PlainGroupReader::find_interval(ByteView user_key, std::size_t& interval) const {
  std::size_t low = 0;
  std::size_t high = (entries_ - 1) / kPlainRestartInterval;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    ByteView first;
    if (!restart_key(middle, first)) return false;
    if (first <= user_key) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  interval = low;
  return true;
}

bool PlainGroupReader::find(ByteView full_key, std::size_t& index, EntryView& entry) const {
  index = entries_;
  if (full_key.substr(0, prefix_.size()) != prefix_) return true;
  const ByteView wanted = full_key.substr(prefix_.size());
  std::size_t interval = 0;
  ByteView rest;
  if (!find_interval(wanted, interval) || !entries_from(interval, rest)) return false;
  const std::size_t first = interval * kPlainRestartInterval;
  const std::size_t end = std::min(first + kPlainRestartInterval, entries_);
  // How much of the wanted key the entry before begins with, all of which is smaller: what shares
  // more with that one is smaller too, what shares less is larger.
  std::size_t matched = 0;
  std::size_t previous_size = 0;
  for (std::size_t i = first; i < end; ++i) {
    EntryHead head;
    ByteView value;
    if (!take_entry(rest, head, value) || head.shared > previous_size) return false;
    previous_size = head.shared + head.rest.size();
    if (head.shared > matched) continue;
    if (head.shared < matched) return true;
    const ByteView tail = wanted.substr(matched);
    const std::size_t same = shared_bytes(head.rest, tail);
    if (same == head.rest.size() && same == tail.size()) {
      index = i;
      entry.kind = head.kind;
      entry.value = value;
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

bool PlainGroupReader::lower_bound(ByteView full_key, std::size_t& index) {
  const ByteView prefix = full_key.substr(0, prefix_.size());
  if (prefix != prefix_) {
    index = prefix < prefix_ ? 0 : entries_;
    return true;
  }
  const ByteView key = full_key.substr(prefix_.size());
  std::size_t low = 0;
  if (!find_interval(key, low) || !load(low)) return false;
  std::size_t slot = 0;
  while (slot < slot_count_ && slots_[slot].full_key < full_key) ++slot;
  index = low * kPlainRestartInterval + slot;
  return true;
}

bool PlainGroupReader::move_to(std::size_t index, EntryView& entry) {
  if (!load(index / kPlainRestartInterval)) return false;
  entry = slots_[index % kPlainRestartInterval];
  return true;
}

}  // namespace edgecase::engine
