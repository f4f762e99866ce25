// The members of a reading in JSON (reading_json.h) as they came. For the decoder alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/result.h"
#include "wire/time_text.h"

namespace edgecase::wire {

// One JSON scalar as it came, before its meaning is known: "type" may follow "value".
struct Scalar {
  enum class Kind : unsigned char { None, Null, Boolean, Integer, Huge, Decimal, Text, Nested };
  Kind kind = Kind::None;
  bool boolean = false;
  std::int64_t integer = 0;  // Integer
  double decimal = 0;        // Integer, Huge (whole, but not an int64), Decimal
  std::string text;
  std::string_view long_text;  // instead, of a value: what lies between its quotes (json_text.h)
};

enum class Key : unsigned char {
  Namespace,
  Device,
  Sensor,
  Time,
  Value,
  Type,
  ContentType,
  Unknown
};
inline constexpr std::size_t kKeyCount = 7;
inline constexpr std::array<std::string_view, kKeyCount> kKeyNames = {
    "namespace", "device", "sensor", "time", "value", "type", "content_type"};

inline Key key_of(std::string_view name) {
  for (std::size_t i = 0; i < kKeyCount; ++i) {
    if (kKeyNames[i] == name) return static_cast<Key>(i);
  }
  return Key::Unknown;
}

// null, and none at all: the time of arrival.
inline Result<std::optional<std::int64_t>> time_of(const Scalar& given) {
  switch (given.kind) {
    case Scalar::Kind::None:
    case Scalar::Kind::Null: return std::optional<std::int64_t>();
    case Scalar::Kind::Integer: return std::optional(given.integer);
    case Scalar::Kind::Text: {
      EC_ASSIGN_OR_RETURN(const std::int64_t time_ns, parse_absolute_time_ns(given.text));
      return std::optional(time_ns);
    }
    case Scalar::Kind::Huge:
      return invalid_argument("\"time\" is outside what 64-bit nanoseconds can hold");
    default: return invalid_argument("\"time\" is neither RFC 3339 text nor whole nanoseconds");
  }
}

}  // namespace edgecase::wire
