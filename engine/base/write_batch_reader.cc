#include "base/write_batch_reader.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/coding.h"
#include "edgecase/options.h"

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
