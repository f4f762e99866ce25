#include "base/write_batch_reader.h"

#include <cstring>

#include "base/coding.h"
#include "edgecase/options.h"

namespace edgecase::engine {

inline bool WriteBatchReader::take_value(ByteView& input) {
  entry_.end = {};
  // Most lengths take one byte.
  if (borrowed_.empty() && !input.empty()) {
    const std::size_t size = static_cast<unsigned char>(input.front());
    if (size < 0x80 && size < input.size()) {
      entry_.value = ByteView(input.data() + 1, size);
      input = ByteView(input.data() + 1 + size, input.size() - 1 - size);
      return true;
    }
  }
  if (borrowed_.empty()) return take_length_prefixed(input, kValueSizeMaxBytes, entry_.value);
  std::uint32_t size = 0;
  if (!take_varint32(input, size) || size > kValueSizeMaxBytes) return false;
  const auto [at, end] = borrowed_.front();
  const auto begin = static_cast<std::size_t>(input.data() - begin_);
  if (size >= end.size() && begin + (size - end.size()) == at) {
    entry_.end = end;
    size -= static_cast<std::uint32_t>(end.size());
    borrowed_ = borrowed_.subspan(1);
  }
  if (size > input.size()) return false;
  entry_.value = input.substr(0, size);
  input.remove_prefix(size);
  return true;
}

const BatchEntry* WriteBatchReader::next() {
  if (rest_.empty() || !status_.ok()) return nullptr;
  ByteView input = rest_;
  const auto kind = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  return kind == kNearPut ? next_near(input) : next_whole(kind, input);
}

const BatchEntry* WriteBatchReader::next_whole(unsigned char kind, ByteView input) {
  if (kind != static_cast<unsigned char>(EntryKind::Put) &&
      kind != static_cast<unsigned char>(EntryKind::Delete) &&
      kind != static_cast<unsigned char>(EntryKind::DeleteRange) &&
      kind != static_cast<unsigned char>(EntryKind::EraseRange)) {
    return damaged("unknown kind");
  }
  entry_.kind = static_cast<EntryKind>(kind);
  entry_.value = entry_.end = {};
  if (!take_varint32(input, entry_.namespace_id)) return damaged("no namespace");
  if (!take_length_prefixed(input, kKeySizeMaxBytes, entry_.key)) return damaged("no whole key");
  if (entry_.kind == EntryKind::Put && !take_value(input)) return damaged("no whole value");
  if (entry_.is_range() && !take_length_prefixed(input, kKeySizeMaxBytes, entry_.value)) {
    return damaged("no whole upper key");
  }
  near_possible_ = entry_.key.size() <= kNearKeyMaxBytes;
  if (near_possible_ && !entry_.key.empty()) {
    std::memcpy(key_, entry_.key.data(), entry_.key.size());
  }
  rest_ = input;
  return &entry_;
}

const BatchEntry* WriteBatchReader::next_near(ByteView input) {
  if (!near_possible_) return damaged("no key before a near one");
  if (input.size() < 2) return damaged("no whole key");
  const std::size_t shared = static_cast<unsigned char>(input[0]);
  const std::size_t size = static_cast<unsigned char>(input[1]);
  if (shared + size > entry_.key.size() || size > input.size() - 2) return damaged("no whole key");
  const char* const from = input.data() + 2;
  if (size == 1) {
    key_[shared] = *from;
  } else {
    std::memcpy(key_ + shared, from, size);
  }
  input.remove_prefix(2 + size);
  entry_.kind = EntryKind::Put;
  entry_.key = ByteView(key_, entry_.key.size());
  if (!take_value(input)) return damaged("no whole value");
  rest_ = input;
  return &entry_;
}

const BatchEntry* WriteBatchReader::damaged(const char* what) {
  status_ =
      corruption("batch, entry at byte " + std::to_string(rest_.data() - begin_) + ": " + what);
  return nullptr;
}

}  // namespace edgecase::engine
