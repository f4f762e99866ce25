#include "wire/reading.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "edgecase/engine.h"
#include "wire/names.h"

namespace edgecase::wire {
namespace {

static_assert(static_cast<char>(ValueTag::Float64) == kFloatTag);
static_assert(static_cast<char>(ValueTag::Int64) == kIntegerTag);
static_assert(kEncodedValueMaxBytes <= kValueSizeMaxBytes);
static_assert(kReadingKeyBytes <= kKeySizeMaxBytes);

// One store, so that who reads the key in words at once need not wait for single bytes.
void store_big_endian(std::uint64_t number, char* out) {
  if constexpr (std::endian::native == std::endian::little) number = __builtin_bswap64(number);
  std::memcpy(out, &number, sizeof number);
}

std::uint64_t load_big_endian(const char* in, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(in[i]);
  return number;
}

std::uint64_t load_number(ByteView bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + 1, sizeof bits);
  return std::endian::native == std::endian::big ? __builtin_bswap64(bits) : bits;
}

bool decode_bytes(ByteView body, Value& value) {
  std::size_t length = 0;
  std::size_t position = 0;
  // Two groups of 7 bits hold kContentTypeMaxBytes.
  for (unsigned shift = 0;; shift += 7) {
    if (position == body.size() || shift > 7) return false;
    const auto byte = static_cast<unsigned char>(body[position++]);
    length |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  if (length > kContentTypeMaxBytes || length > body.size() - position) return false;
  value = Value::of_bytes(body.substr(position + length), body.substr(position, length));
  return true;
}

constexpr std::array<std::string_view, 5> kTypeNames = {"float", "int", "bool", "text", "bytes"};

}  // namespace

void encode_reading_key(const ReadingKey& key, char* out) {
  store_big_endian(std::uint64_t{key.device} << 32 | key.sensor, out);
  store_big_endian(static_cast<std::uint64_t>(key.time_ns) ^ std::uint64_t{1} << 63, out + 8);
}

Bytes make_reading_key(const ReadingKey& key) {
  Bytes bytes(kReadingKeyBytes, '\0');
  encode_reading_key(key, bytes.data());
  return bytes;
}

bool decode_reading_key(ByteView bytes, ReadingKey& key) {
  if (bytes.size() != kReadingKeyBytes) return false;
  key.device = static_cast<std::uint32_t>(load_big_endian(bytes.data(), 4));
  key.sensor = static_cast<std::uint32_t>(load_big_endian(bytes.data() + 4, 4));
  key.time_ns = time_of_reading_key(bytes.data());
  return true;
}

Status check_value(const Value& value) {
  switch (value.type) {
    case ValueType::Float64:
      if (std::isfinite(value.float64)) return ok();
      return invalid_argument("value is not a finite number; NaN and infinities are not stored");
    case ValueType::Int64:
    case ValueType::Bool: return ok();
    case ValueType::Text:
      if (value.text.size() >= kEncodedValueMaxBytes) break;
      if (is_valid_utf8(value.text)) return ok();
      return invalid_argument("text is not UTF-8; send it as bytes");
    case ValueType::Bytes:
      if (value.content_type.size() > kContentTypeMaxBytes) {
        return invalid_argument("content type is longer than " +
                                std::to_string(kContentTypeMaxBytes) + " bytes");
      }
      for (const char c : value.content_type) {
        if (c < 0x20 || c > 0x7e) return invalid_argument("content type is not printable ASCII");
      }
      if (value.text.size() + value.content_type.size() + 3 > kEncodedValueMaxBytes) break;
      return ok();
  }
  return invalid_argument("value has " + std::to_string(value.text.size()) + " bytes; at most " +
                          std::to_string(kEncodedValueMaxBytes) + " are stored, type included");
}

std::string_view append_value_begin(const Value& value, Bytes& out) {
  switch (value.type) {
    case ValueType::Float64:
    case ValueType::Int64: {
      char number[kNumberValueBytes];
      encode_number(value, number);
      out.append(number, sizeof number);
      return {};
    }
    case ValueType::Bool:
      out.push_back(static_cast<char>(value.boolean ? ValueTag::True : ValueTag::False));
      return {};
    case ValueType::Text: out.push_back(static_cast<char>(ValueTag::Text)); return value.text;
    case ValueType::Bytes: {
      out.push_back(static_cast<char>(ValueTag::Bytes));
      std::size_t length = value.content_type.size();
      for (; length >= 0x80; length >>= 7) out.push_back(static_cast<char>(length | 0x80));
      out.push_back(static_cast<char>(length));
      out.append(value.content_type);
      return value.text;
    }
  }
  return {};
}

void append_value(const Value& value, Bytes& out) {
  out.append(append_value_begin(value, out));
}

bool decode_value(ByteView bytes, Value& value) {
  if (bytes.empty()) return false;
  switch (static_cast<ValueTag>(bytes[0])) {
    case ValueTag::Float64:
      if (bytes.size() != kNumberValueBytes) return false;
      value = Value::of_float64(std::bit_cast<double>(load_number(bytes)));
      return true;
    case ValueTag::Int64:
      if (bytes.size() != kNumberValueBytes) return false;
      value = Value::of_int64(static_cast<std::int64_t>(load_number(bytes)));
      return true;
    case ValueTag::False:
    case ValueTag::True:
      if (bytes.size() != 1) return false;
      value = Value::of_bool(bytes[0] == static_cast<char>(ValueTag::True));
      return true;
    case ValueTag::Text: value = Value::of_text(bytes.substr(1)); return true;
    case ValueTag::Bytes: return decode_bytes(bytes.substr(1), value);
  }
  return false;
}

std::string_view value_type_name(ValueType type) {
  return kTypeNames[static_cast<std::size_t>(type) - 1];
}

Result<ValueType> parse_value_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) return static_cast<ValueType>(i + 1);
  }
  return invalid_argument("unknown type \"" + std::string(name.substr(0, 64)) +
                          "\"; one of float int bool text bytes");
}

}  // namespace edgecase::wire
