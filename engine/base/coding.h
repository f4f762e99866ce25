// Integers as bytes, for every format of the engine; and zeros, what of a file was never written.
//
// fixed32, fixed64: little-endian. varint32, varint64: seven bits a byte, low bits first, the high
// bit says that more follow; at most 5 and 10 bytes; exactly one encoding a number (a last byte of
// zero is refused). zigzag: signed to unsigned so that small magnitudes stay small.
// length-prefixed: varint32, then that many bytes.
//
// append_x() adds to a string. take_x() reads from the front of `input` and moves it on; on input
// that is short or not valid it answers false and leaves `input` and `value` as they were. Nothing
// here reads past a view or allocates for a length it only read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "edgecase/bytes.h"

namespace edgecase::engine {

inline constexpr std::size_t kVarint32MaxBytes = 5;
inline constexpr std::size_t kVarint64MaxBytes = 10;

namespace coding_inside {

template <typename T>
T little_endian(T value) {
  if constexpr (std::endian::native == std::endian::big) {
    if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
    return static_cast<T>(__builtin_bswap32(value));
  }
  return value;
}

}  // namespace coding_inside

// `out` and `bytes` have 4 and 8 bytes: the caller has looked.
inline void encode_fixed32(char* out, std::uint32_t value) {
  value = coding_inside::little_endian(value);
  std::memcpy(out, &value, sizeof value);
}
inline void encode_fixed64(char* out, std::uint64_t value) {
  value = coding_inside::little_endian(value);
  std::memcpy(out, &value, sizeof value);
}
inline std::uint32_t decode_fixed32(const char* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return coding_inside::little_endian(value);
}
inline std::uint64_t decode_fixed64(const char* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return coding_inside::little_endian(value);
}

inline void append_fixed32(Bytes& out, std::uint32_t value) {
  char bytes[4];
  encode_fixed32(bytes, value);
  out.append(bytes, sizeof bytes);
}
inline void append_fixed64(Bytes& out, std::uint64_t value) {
  char bytes[8];
  encode_fixed64(bytes, value);
  out.append(bytes, sizeof bytes);
}
// Writes at most kVarint64MaxBytes and returns the end.
inline char* encode_varint64(char* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}
inline void append_varint64(Bytes& out, std::uint64_t value) {
  char bytes[kVarint64MaxBytes];
  out.append(bytes, static_cast<std::size_t>(encode_varint64(bytes, value) - bytes));
}
inline void append_varint32(Bytes& out, std::uint32_t value) {
  append_varint64(out, value);
}
// `bytes` is at most 4 GiB.
inline void append_length_prefixed(Bytes& out, ByteView bytes) {
  append_varint32(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes);
}
inline std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

inline bool take_fixed32(ByteView& input, std::uint32_t& value) {
  if (input.size() < 4) return false;
  value = decode_fixed32(input.data());
  input.remove_prefix(4);
  return true;
}
inline bool take_fixed64(ByteView& input, std::uint64_t& value) {
  if (input.size() < 8) return false;
  value = decode_fixed64(input.data());
  input.remove_prefix(8);
  return true;
}

// How many bytes both begin with.
inline std::size_t shared_bytes(ByteView a, ByteView b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t shared = 0;
  for (; most - shared >= 8; shared += 8) {
    const std::uint64_t differs =
        decode_fixed64(a.data() + shared) ^ decode_fixed64(b.data() + shared);
    if (differs != 0) return shared + static_cast<std::size_t>(std::countr_zero(differs)) / 8;
  }
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

// Three bytes and more; take_varint64() has the usual one and two inline.
[[gnu::noinline]] inline bool take_long_varint64(ByteView& input, std::uint64_t& value) {
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

inline bool take_varint64(ByteView& input, std::uint64_t& value) {
  if (!input.empty() && static_cast<signed char>(input.front()) >= 0) {
    value = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    return true;
  }
  if (input.size() >= 2 && static_cast<signed char>(input[1]) > 0) {
    value = (static_cast<unsigned char>(input[0]) & 0x7fu) |
            static_cast<std::uint64_t>(static_cast<unsigned char>(input[1])) << 7;
    input.remove_prefix(2);
    return true;
  }
  return take_long_varint64(input, value);
}
// Two bytes and more.
[[gnu::noinline]] inline bool take_long_varint32(ByteView& input, std::uint32_t& value) {
  ByteView rest = input;
  std::uint64_t wide = 0;
  if (!take_varint64(rest, wide) || wide > UINT32_MAX) return false;
  value = static_cast<std::uint32_t>(wide);
  input = rest;
  return true;
}

inline bool take_varint32(ByteView& input, std::uint32_t& value) {
  if (!input.empty() && static_cast<signed char>(input.front()) >= 0) {
    value = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    return true;
  }
  return take_long_varint32(input, value);
}
// `count` bytes as they are. `value` points into what `input` views.
inline bool take_bytes(ByteView& input, std::size_t count, ByteView& value) {
  if (input.size() < count) return false;
  value = input.substr(0, count);
  input.remove_prefix(count);
  return true;
}
// False also for a length over `size_max`.
inline bool take_length_prefixed(ByteView& input, std::size_t size_max, ByteView& value) {
  ByteView rest = input;
  std::uint32_t size = 0;
  if (!take_varint32(rest, size) || size > size_max || !take_bytes(rest, size, value)) return false;
  input = rest;
  return true;
}

// The last 8 bytes of a series' key: a big-endian number.

inline std::uint64_t load_ordinal(const char* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

inline void store_ordinal(char* bytes, std::uint64_t value) {
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  std::memcpy(bytes, &value, sizeof value);
}

// Zeros: what of a file was never written, or has been written over. Many bytes at a time.

inline bool all_zero(ByteView bytes) {
  return bytes.empty() || (bytes.front() == '\0' &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Where the first byte lies that is not zero; bytes.size() when there is none.
inline std::size_t first_nonzero(ByteView bytes) {
  constexpr std::size_t kPieceBytes = 256;
  std::size_t at = 0;
  while (at + kPieceBytes <= bytes.size() && all_zero(bytes.substr(at, kPieceBytes)))
    at += kPieceBytes;
  while (at < bytes.size() && bytes[at] == '\0') ++at;
  return at;
}

}  // namespace edgecase::engine
