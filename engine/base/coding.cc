#include "base/coding.h"

namespace edgecase::engine {

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

bool take_long_varint64(ByteView& input, std::uint64_t& value) {
  std::uint64_t result = 0;
  const std::size_t limit = input.size() < kVarint64MaxBytes ? input.size() : kVarint64MaxBytes;
  for (std::size_t i = 0; i < limit; ++i) {
    const auto byte = static_cast<unsigned char>(input[i]);
    if (i == kVarint64MaxBytes - 1 && byte > 1) return false;  // past 64 bits
    result |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte & 0x80) continue;
    if (byte == 0 && i > 0) return false;  // a shorter encoding exists
    value = result;
    input.remove_prefix(i + 1);
    return true;
  }
  return false;
}

bool take_long_varint32(ByteView& input, std::uint32_t& value) {
  ByteView rest = input;
  std::uint64_t wide = 0;
  if (!take_varint64(rest, wide) || wide > UINT32_MAX) return false;
  value = static_cast<std::uint32_t>(wide);
  input = rest;
  return true;
}

}  // namespace edgecase::engine
