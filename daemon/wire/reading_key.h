// A reading as the engine holds it: a key that sorts by series, then time, and a value.
//
//   key      offset  size  field                                     (16 bytes, all big-endian)
//                 0     4  device id
//                 4     4  sensor id
//                 8     8  time, signed nanoseconds, its sign bit flipped: byte order is time order
//
//   value    offset  size  field
//                 0     1  tag
//                 1     n  by tag:
//     1 float64    8  IEEE 754 double, little-endian; finite
//     2 int64      8  signed, little-endian
//     3 false      0
//     4 true       0
//     5 text       n  UTF-8
//     6 bytes      n  varint (LEB128) length c of the content type, c bytes of it, the bytes
//
// Tags 1 and 2 are the engine's kFloatTag and kIntegerTag, which its series codec packs best.
// Changing anything above needs a new tag and a test that reads the old one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "edgecase/bytes.h"
#include "edgecase/status.h"
#include "wire/reading.h"

namespace edgecase::wire {

// Numbers in the keys and values of records: big-endian, so that byte order is their order.

// The lowest `bytes` bytes of it.
inline void append_big_endian(std::uint64_t number, Bytes& out, int bytes = 8) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(number >> shift));
}

// The number in the first 8 bytes, or in as many as there are.
inline std::uint64_t read_big_endian(ByteView bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(0, 8))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

inline constexpr std::size_t kSeriesPrefixBytes = 8;
inline constexpr std::size_t kReadingKeyBytes = 16;
inline constexpr std::size_t kNumberValueBytes = 9;
inline constexpr std::size_t kContentTypeMaxBytes = 255;
// What a stored value may take in all: the engine's limit.
inline constexpr std::size_t kEncodedValueMaxBytes = 16u << 20;
inline constexpr std::string_view kDefaultContentType = "application/octet-stream";

enum class ValueTag : char {
  Float64 = 1,
  Int64 = 2,
  False = 3,
  True = 4,
  Text = 5,
  Bytes = 6,
};

struct ReadingKey {
  std::uint32_t device = 0;
  std::uint32_t sensor = 0;
  std::int64_t time_ns = 0;
};

// Writes kReadingKeyBytes at `out`.
void encode_reading_key(const ReadingKey& key, char* out);
Bytes make_reading_key(const ReadingKey& key);
// False when `bytes` is no reading's key.
bool decode_reading_key(ByteView bytes, ReadingKey& key);

// The time whose eight bytes of a key, read as one big-endian number, are these.
inline std::int64_t time_of_ordinal(std::uint64_t ordinal) {
  return static_cast<std::int64_t>(ordinal ^ std::uint64_t{1} << 63);
}

// And back.
inline std::uint64_t ordinal_of_time(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns) ^ std::uint64_t{1} << 63;
}

// The time of a key known to be kReadingKeyBytes long: the inner loop of scans.
inline std::int64_t time_of_reading_key(const char* key) {
  std::uint64_t bits = 0;
  for (std::size_t i = kSeriesPrefixBytes; i < kReadingKeyBytes; ++i) {
    bits = bits << 8 | static_cast<unsigned char>(key[i]);
  }
  return time_of_ordinal(bits);
}

// What may be stored: finite floats, UTF-8 text, a content type of printable ASCII and at most
// kContentTypeMaxBytes, kEncodedValueMaxBytes in all. InvalidArgument says what is wrong.
Status check_value(const Value& value);

// Whether it is a number that passes check_value(): most are.
inline bool is_good_number(const Value& value) {
  return value.type == ValueType::Float64 ? std::isfinite(value.float64)
                                          : value.type == ValueType::Int64;
}
// The encoding of a number; false: it is none.
inline bool encode_number(const Value& value, char (&out)[kNumberValueBytes]) {
  if (value.type != ValueType::Float64 && value.type != ValueType::Int64) return false;
  const bool is_float = value.type == ValueType::Float64;
  std::uint64_t bits = is_float ? std::bit_cast<std::uint64_t>(value.float64)
                                : static_cast<std::uint64_t>(value.int64);
  if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
  out[0] = static_cast<char>(is_float ? ValueTag::Float64 : ValueTag::Int64);
  std::memcpy(out + 1, &bits, sizeof bits);
  return true;
}

// Appends the encoding of a value that passed check_value(), but for the end that it answers: the
// bytes of a text or of bytes, where they are.
std::string_view append_value_begin(const Value& value, Bytes& out);
// All of it.
void append_value(const Value& value, Bytes& out);
// The value's views point into `bytes`. False when `bytes` is no value.
bool decode_value(ByteView bytes, Value& value);

// "float", "int", "bool", "text", "bytes".
std::string_view value_type_name(ValueType type);
Result<ValueType> parse_value_type(std::string_view name);

}  // namespace edgecase::wire
