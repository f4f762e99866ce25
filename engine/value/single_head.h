// SingleHead: the bytes before the value of a Single. All of it is known to whoever knows the
// entry. Layout: value_format.h.
#pragma once

#include "base/check.h"
#include "base/coding.h"
#include "base/entry.h"
#include "base/value_pointer.h"
#include "value/value_format.h"

namespace edgecase::engine {

class SingleHead {
 public:
  static constexpr std::size_t kMaxBytes =
      kItemHeadBytes + 1 + 2 * kVarint64MaxBytes + kFullKeyMaxBytes;

  // `full_key` has at most kFullKeyMaxBytes.
  SingleHead(SingleKind kind, SequenceNumber sequence, ByteView full_key) {
    EC_CHECK(full_key.size() <= kFullKeyMaxBytes);
    char* at = bytes_;
    encode_fixed32(at, 0);
    at += kItemChecksumBytes;
    *at++ = static_cast<char>(ItemType::Single);
    *at++ = static_cast<char>(kind);
    at = encode_varint64(at, sequence);
    at = encode_varint64(at, full_key.size());
    at += full_key.copy(at, full_key.size());
    size_ = static_cast<std::size_t>(at - bytes_);
  }

  // The checksum is left open.
  ByteView bytes() const { return {bytes_, size_}; }

 private:
  char bytes_[kMaxBytes];
  std::size_t size_ = 0;
};

}  // namespace edgecase::engine
