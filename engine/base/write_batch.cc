// The bytes of a batch, in memory and as the payload of a WAL record; entries one after another:
//
//   size      field
//      1      kind: 1 put, 2 delete (EntryKind)
//    1-5      namespace id, varint32
//    1-5      key length, varint32, at most kKeySizeMaxBytes
//      n      key
//    1-5      value length, varint32, at most kValueSizeMaxBytes    (put only)
//      n      value                                                 (put only)
//
// or, for a put to the namespace of the entry before, with a key as long as that one's:
//
//      1      kind: 3 near put
//      1      s: leading bytes that are those of the key before
//      1      n: how many bytes differ behind them; those behind are again the key's before
//      n      the bytes that differ
//    1-5      value length, varint32, at most kValueSizeMaxBytes
//      n      value
//
// or, for a delete of a range of keys:
//
//      1      kind: 4 delete range
//    1-5      namespace id, varint32
//    1-5      length of the lower key, varint32, at most kKeySizeMaxBytes
//      n      lower key, included
//    1-5      length of the upper key, varint32, at most kKeySizeMaxBytes
//      n      upper key, not included; empty: to the end of the namespace
//
// or, with kind 5, for one whose bytes are to be erased as well.
//
// It takes one sequence like any entry: older entries in the range are gone, later ones are not.
//
// s + n is at most the key's length, which is at most kNearKeyMaxBytes. Keys of readings that come
// together differ in few bytes: a number takes 14 bytes, not 29.
//
// There is no count and no checksum: the log record around it has a length and one.
// base/entry.h reads it.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/coding.h"
#include "base/entry.h"
#include "edgecase/options.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase {
namespace {

constexpr std::size_t kVarint32MaxBytes = 5;
constexpr std::size_t kHeadMaxBytes = 1 + 3 * kVarint32MaxBytes;
constexpr std::size_t kRoomMinBytes = 64;

char* write_bytes(char* out, ByteView bytes) {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

struct Difference {
  std::size_t shared = 0;
  std::size_t size = 0;
};

// Where two keys of one length differ: all of it lies in [shared, shared + size).
Difference difference_of(ByteView a, ByteView b) {
  std::size_t begin = 0;
  for (; begin + 8 <= a.size(); begin += 8) {
    const std::uint64_t bits =
        engine::decode_fixed64(a.data() + begin) ^ engine::decode_fixed64(b.data() + begin);
    if (bits == 0) continue;
    begin += static_cast<std::size_t>(std::countr_zero(bits)) / 8;
    break;
  }
  while (begin < a.size() && a[begin] == b[begin]) ++begin;
  std::size_t end = a.size();
  for (; end >= begin + 8; end -= 8) {
    const std::uint64_t bits =
        engine::decode_fixed64(a.data() + end - 8) ^ engine::decode_fixed64(b.data() + end - 8);
    if (bits == 0) continue;
    end -= static_cast<std::size_t>(std::countl_zero(bits)) / 8;
    break;
  }
  while (end > begin && a[end - 1] == b[end - 1]) --end;
  return {begin, end - begin};
}

// What most entries of series have: such keys, and a tag and a number for a value.
constexpr std::size_t kTwoWords = 16;
constexpr std::size_t kNumberBytes = 9;

Difference difference_of_two_words(const char* a, const char* b) {
  const std::uint64_t first = engine::decode_fixed64(a) ^ engine::decode_fixed64(b);
  const std::uint64_t last = engine::decode_fixed64(a + 8) ^ engine::decode_fixed64(b + 8);
  const auto same_before = [](std::uint64_t bits) {
    return static_cast<std::size_t>(std::countr_zero(bits)) / 8;
  };
  const auto end_of = [](std::uint64_t bits) {
    return 8 - static_cast<std::size_t>(std::countl_zero(bits)) / 8;
  };
  if ((first | last) == 0) return {kTwoWords, 0};
  const std::size_t shared = first != 0 ? same_before(first) : 8 + same_before(last);
  return {shared, (last != 0 ? 8 + end_of(last) : end_of(first)) - shared};
}

// A near put of such an entry; `last_key`, of the one before, becomes its key. Returns the end.
constexpr std::size_t kNearNumberMaxBytes = 3 + kTwoWords + 1 + kNumberBytes;
char* write_near_number(char* out, const char* key, char* last_key, const char* value) {
  const Difference difference = difference_of_two_words(key, last_key);
  *out++ = static_cast<char>(engine::kNearPut);
  *out++ = static_cast<char>(difference.shared);
  *out++ = static_cast<char>(difference.size);
  if (difference.size == 1) {
    *out++ = key[difference.shared];
  } else {
    out = write_bytes(out, ByteView(key + difference.shared, difference.size));
  }
  std::memcpy(last_key, key, kTwoWords);
  *out++ = static_cast<char>(kNumberBytes);
  std::memcpy(out, value, kNumberBytes);
  return out + kNumberBytes;
}

}  // namespace

// Whether the entry before is of the same one.
inline bool WriteBatch::note_namespace(NamespaceId namespace_id) {
  if (!namespaces_.empty() && namespaces_.back() == namespace_id) return true;
  const auto known = std::find(namespaces_.begin(), namespaces_.end(), namespace_id);
  if (known == namespaces_.end()) {
    namespaces_.push_back(namespace_id);
  } else {
    std::iter_swap(known, namespaces_.end() - 1);
  }
  return false;
}

inline char* WriteBatch::room_for(std::size_t bytes) {
  if (bytes_.size() - used_ < bytes) {
    bytes_.resize(std::max({used_ + bytes, 2 * bytes_.size(), kRoomMinBytes}));
  }
  return bytes_.data() + used_;
}

void WriteBatch::put(NamespaceId namespace_id, ByteView key, ByteView value, ByteView end) {
  const bool is_usual = key.size() == kTwoWords && last_key_.size() == kTwoWords &&
                        value.size() == kNumberBytes && end.empty() && !namespaces_.empty() &&
                        namespaces_.back() == namespace_id;
  if (is_usual && bytes_.size() - used_ >= kNearNumberMaxBytes) {
    char* const at = bytes_.data() + used_;
    const char* const behind = write_near_number(at, key.data(), last_key_.data(), value.data());
    used_ += static_cast<std::size_t>(behind - at);
    whole_bytes_ += head_bytes_ + kTwoWords + 1 + kNumberBytes;
    ++count_;
    return;
  }
  if (key.size() > kKeySizeMaxBytes || value.size() > kValueSizeMaxBytes ||
      end.size() > kValueSizeMaxBytes - value.size()) {
    over_limit_ = true;
    return;
  }
  const bool borrows = end.size() >= kBorrowedMinBytes;
  char* out = room_for(kHeadMaxBytes + key.size() + value.size() + (borrows ? 0 : end.size()));
  const char* const begin = out;
  const bool same_namespace = note_namespace(namespace_id);
  if (same_namespace && key.size() == last_key_.size() && key.size() <= engine::kNearKeyMaxBytes) {
    const Difference difference = difference_of(key, last_key_);
    *out++ = static_cast<char>(engine::kNearPut);
    *out++ = static_cast<char>(difference.shared);
    *out++ = static_cast<char>(difference.size);
    out = write_bytes(out, key.substr(difference.shared, difference.size));
    write_bytes(last_key_.data(), key);
  } else {
    out = write_whole_key(out, engine::EntryKind::Put, namespace_id, key);
  }
  whole_bytes_ += head_bytes_ + key.size();
  const char* const value_begin = out;
  out = engine::encode_varint64(out, value.size() + end.size());
  out = write_bytes(out, value);
  if (!borrows) out = write_bytes(out, end);
  whole_bytes_ += static_cast<std::size_t>(out - value_begin);
  used_ += static_cast<std::size_t>(out - begin);
  ++count_;
  if (!borrows) return;
  borrowed_.push_back({used_, end});
  borrowed_bytes_ += end.size();
  whole_bytes_ += end.size();
}

engine::BatchEntry WriteBatch::only_entry() const {
  EC_CHECK(count_ == 1 && range_deletes_ == 0 && borrowed_.empty());
  engine::BatchEntry entry;
  entry.kind = static_cast<engine::EntryKind>(bytes_.front());
  entry.namespace_id = namespaces_.front();
  ByteView rest = encoded().substr(head_bytes_);
  EC_CHECK(engine::take_bytes(rest, last_key_.size(), entry.key));
  if (entry.kind == engine::EntryKind::Put)
    EC_CHECK(engine::take_length_prefixed(rest, kValueSizeMaxBytes, entry.value));
  return entry;
}

void WriteBatch::remove(NamespaceId namespace_id, ByteView key) {
  if (key.size() > kKeySizeMaxBytes) {
    over_limit_ = true;
    return;
  }
  char* out = room_for(kHeadMaxBytes + key.size());
  const char* const begin = out;
  note_namespace(namespace_id);
  out = write_whole_key(out, engine::EntryKind::Delete, namespace_id, key);
  used_ += static_cast<std::size_t>(out - begin);
  whole_bytes_ += head_bytes_ + key.size();
  ++count_;
}

void WriteBatch::remove_range(NamespaceId namespace_id, ByteView lower, ByteView upper) {
  add_range(engine::EntryKind::DeleteRange, namespace_id, lower, upper);
}

void WriteBatch::erase_range(NamespaceId namespace_id, ByteView lower, ByteView upper) {
  add_range(engine::EntryKind::EraseRange, namespace_id, lower, upper);
  makes_room_ = true;
}

void WriteBatch::add_range(engine::EntryKind kind, NamespaceId namespace_id, ByteView lower,
                           ByteView upper) {
  if (lower.size() > kKeySizeMaxBytes || upper.size() > kKeySizeMaxBytes) {
    over_limit_ = true;
    return;
  }
  if (!upper.empty() && lower >= upper) return;
  char* out = room_for(kHeadMaxBytes + lower.size() + upper.size());
  const char* const begin = out;
  note_namespace(namespace_id);
  out = write_whole_key(out, kind, namespace_id, lower);
  out = engine::encode_varint64(out, upper.size());
  out = write_bytes(out, upper);
  used_ += static_cast<std::size_t>(out - begin);
  whole_bytes_ += static_cast<std::size_t>(out - begin);
  ++count_;
  ++range_deletes_;
}

char* WriteBatch::write_whole_key(char* out, engine::EntryKind kind, NamespaceId namespace_id,
                                  ByteView key) {
  const char* const begin = out;
  *out++ = static_cast<char>(kind);
  out = engine::encode_varint64(out, namespace_id);
  out = engine::encode_varint64(out, key.size());
  head_bytes_ = static_cast<std::size_t>(out - begin);
  last_key_.assign(key);
  return write_bytes(out, key);
}

void WriteBatch::reserve(std::size_t count, std::size_t key_and_value_bytes) {
  constexpr std::size_t kUsualHeadBytes = 4;  // kind, namespace, two short lengths
  const std::size_t wanted = used_ + kHeadMaxBytes + count * kUsualHeadBytes + key_and_value_bytes;
  if (bytes_.size() < wanted) bytes_.resize(wanted);
}

void WriteBatch::clear() {
  used_ = 0;
  whole_bytes_ = 0;
  borrowed_.clear();
  borrowed_bytes_ = 0;
  namespaces_.clear();
  count_ = 0;
  range_deletes_ = 0;
  makes_room_ = false;
  over_limit_ = false;
}

}  // namespace edgecase

namespace edgecase::engine {
namespace {

// Writes the whole word that the byte is in: who reads words of the key next need not wait for the
// byte to leave the processor.
void replace_byte(char* bytes, std::size_t at, char byte) {
  if constexpr (std::endian::native == std::endian::little) {
    char* const begin = bytes + at / 8 * 8;
    const std::size_t shift = at % 8 * 8;
    std::uint64_t word = 0;
    std::memcpy(&word, begin, sizeof word);
    word &= ~(std::uint64_t{0xff} << shift);
    word |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
    std::memcpy(begin, &word, sizeof word);
  } else {
    bytes[at] = byte;
  }
}

}  // namespace

// The end of the value that begins at `from`; null: it is not whole.
inline const char* WriteBatchReader::take_value(const char* from) {
  if (!borrowed_.empty() || from == stop_) return take_long_value(from);
  // Most lengths take one byte.
  const std::size_t size = static_cast<unsigned char>(*from);
  if (size >= 0x80 || size >= static_cast<std::size_t>(stop_ - from)) return take_long_value(from);
  entry_.end = {};
  entry_.value = ByteView(from + 1, size);
  return from + 1 + size;
}

const char* WriteBatchReader::take_long_value(const char* from) {
  ByteView input = rest_from(from);
  entry_.end = {};
  std::uint32_t size = 0;
  if (!take_varint32(input, size) || size > kValueSizeMaxBytes) return nullptr;
  if (!borrowed_.empty()) {
    const auto [at, end] = borrowed_.front();
    const auto begin = static_cast<std::size_t>(input.data() - begin_);
    if (size >= end.size() && begin + (size - end.size()) == at) {
      entry_.end = end;
      size -= static_cast<std::uint32_t>(end.size());
      borrowed_ = borrowed_.subspan(1);
    }
  }
  if (size > input.size()) return nullptr;
  entry_.value = input.substr(0, size);
  return input.data() + size;
}

const BatchEntry* WriteBatchReader::next() {
  if (position_ == stop_ || !status_.ok()) return nullptr;
  const auto kind = static_cast<unsigned char>(*position_);
  return kind == kNearPut ? next_near() : next_whole(kind);
}

const BatchEntry* WriteBatchReader::next_whole(unsigned char kind) {
  if (kind != static_cast<unsigned char>(EntryKind::Put) &&
      kind != static_cast<unsigned char>(EntryKind::Delete) &&
      kind != static_cast<unsigned char>(EntryKind::DeleteRange) &&
      kind != static_cast<unsigned char>(EntryKind::EraseRange)) {
    return damaged("unknown kind");
  }
  ByteView input = rest_from(position_ + 1);
  entry_.kind = static_cast<EntryKind>(kind);
  entry_.value = entry_.end = {};
  if (!take_varint32(input, entry_.namespace_id)) return damaged("no namespace");
  if (!take_length_prefixed(input, kKeySizeMaxBytes, entry_.key)) return damaged("no whole key");
  const char* end = input.data();
  if (entry_.kind == EntryKind::Put && (end = take_value(end)) == nullptr) {
    return damaged("no whole value");
  }
  if (entry_.is_range()) {
    if (!take_length_prefixed(input, kKeySizeMaxBytes, entry_.value)) {
      return damaged("no whole upper key");
    }
    end = input.data();
  }
  near_possible_ = entry_.key.size() <= kNearKeyMaxBytes;
  if (near_possible_ && !entry_.key.empty()) {
    std::memcpy(key_, entry_.key.data(), entry_.key.size());
  }
  position_ = end;
  return &entry_;
}

const BatchEntry* WriteBatchReader::next_near() {
  constexpr std::size_t kHeadBytes = 3;
  const auto left = static_cast<std::size_t>(stop_ - position_);
  if (!near_possible_) return damaged("no key before a near one");
  if (left < kHeadBytes) return damaged("no whole key");
  const std::size_t shared = static_cast<unsigned char>(position_[1]);
  const std::size_t size = static_cast<unsigned char>(position_[2]);
  const char* const from = position_ + kHeadBytes;
  if (shared + size > entry_.key.size() || size > left - kHeadBytes) {
    return damaged("no whole key");
  }
  if (size == 1) {
    replace_byte(key_, shared, *from);
  } else {
    std::memcpy(key_ + shared, from, size);
  }
  entry_.kind = EntryKind::Put;
  entry_.key = ByteView(key_, entry_.key.size());
  const char* const end = take_value(from + size);
  if (end == nullptr) return damaged("no whole value");
  position_ = end;
  return &entry_;
}

const BatchEntry* WriteBatchReader::damaged(const char* what) {
  status_ = corruption("batch, entry at byte " + std::to_string(position_ - begin_) + ": " + what);
  return nullptr;
}

}  // namespace edgecase::engine
