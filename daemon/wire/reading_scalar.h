// The members of a reading in JSON (reading_json.h) as they came. For the decoder alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "edgecase/result.h"
#include "wire/identity.h"
#include "wire/reading.h"
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
  Measurement,
  Tags,
  Field,
  Unknown
};
inline constexpr std::size_t kKeyCount = 10;
inline constexpr std::array<std::string_view, kKeyCount> kKeyNames = {
    "namespace", "device",       "sensor",      "time", "value",
    "type",      "content_type", "measurement", "tags", "field"};

inline Key key_of(std::string_view name) {
  for (std::size_t i = 0; i < kKeyCount; ++i) {
    if (kKeyNames[i] == name) return static_cast<Key>(i);
  }
  return Key::Unknown;
}

// null, and none at all: the time of arrival. A number counts `unit_ns`; one with decimals is taken
// where that is no nanosecond, to the microsecond.
inline Result<std::optional<std::int64_t>> time_of(const Scalar& given, std::int64_t unit_ns = 1) {
  constexpr const char* kBeyond = "\"time\" is outside what 64-bit nanoseconds can hold";
  switch (given.kind) {
    case Scalar::Kind::None:
    case Scalar::Kind::Null: return std::optional<std::int64_t>();
    case Scalar::Kind::Integer: {
      std::int64_t time_ns = 0;
      if (__builtin_mul_overflow(given.integer, unit_ns, &time_ns))
        return invalid_argument(kBeyond);
      return std::optional(time_ns);
    }
    case Scalar::Kind::Decimal: {
      // A double of seconds is true to a quarter of a microsecond.
      const double time_us = given.decimal * static_cast<double>(unit_ns) / 1'000;
      if (unit_ns == 1) break;
      if (!(std::fabs(time_us) < 9.2e15)) return invalid_argument(kBeyond);
      return std::optional(static_cast<std::int64_t>(std::llround(time_us)) * 1'000);
    }
    case Scalar::Kind::Text: {
      EC_ASSIGN_OR_RETURN(const std::int64_t time_ns, parse_absolute_time_ns(given.text));
      return std::optional(time_ns);
    }
    case Scalar::Kind::Huge: return invalid_argument(kBeyond);
    default: break;
  }
  return invalid_argument("\"time\" is neither RFC 3339 text nor whole nanoseconds");
}

// Takes a number or a truth value.
inline Status take_plain_value(const Scalar& given, ValueType type, Value& value) {
  const bool is_number = given.kind == Scalar::Kind::Integer || given.kind == Scalar::Kind::Huge ||
                         given.kind == Scalar::Kind::Decimal;
  switch (type) {
    case ValueType::Float64:
      if (!is_number) return invalid_argument("\"value\" is no number");
      value = Value::of_float64(given.decimal);
      return ok();
    case ValueType::Int64:
      if (given.kind == Scalar::Kind::Huge)
        return invalid_argument("\"value\" is outside what a 64-bit integer can hold");
      if (given.kind != Scalar::Kind::Integer)
        return invalid_argument("\"value\" is no whole number");
      value = Value::of_int64(given.integer);
      return ok();
    default:
      if (given.kind != Scalar::Kind::Boolean)
        return invalid_argument("\"value\" is neither true nor false");
      value = Value::of_bool(given.boolean);
      return ok();
  }
}

// What an object says of its series' identity; nothing where it has no measurement. Of a
// measurement alone the field is `value`, and there are no tags. `pairs`: the members of `tags`.
inline Result<std::optional<Identity>> identity_of_members(const Scalar& measurement,
                                                           const Scalar& tags,
                                                           const Identity::Tags& pairs,
                                                           const Scalar& field) {
  const bool has_tags = tags.kind != Scalar::Kind::None;
  const bool has_field = field.kind != Scalar::Kind::None;
  if (measurement.kind == Scalar::Kind::None) {
    if (!has_tags && !has_field) return std::optional<Identity>();
    return invalid_argument("\"tags\" and \"field\" need a \"measurement\"");
  }
  if (measurement.kind != Scalar::Kind::Text || measurement.text.empty())
    return invalid_argument("\"measurement\" is no string, or an empty one");
  if (has_tags && tags.kind != Scalar::Kind::Nested)
    return invalid_argument("\"tags\" is no object");
  if (has_field && (field.kind != Scalar::Kind::Text || field.text.empty()))
    return invalid_argument("\"field\" is no string, or an empty one");
  Identity identity{measurement.text, pairs, has_field ? field.text : std::string(kValueField)};
  std::sort(identity.tags.begin(), identity.tags.end());
  EC_TRY(decode_identity(encode_identity(identity)).status());  // its limits
  return std::optional(std::move(identity));
}

}  // namespace edgecase::wire
