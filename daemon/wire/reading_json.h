// Decodes the body of POST /api/v1/readings: one object, an array of them, or NDJSON.
//
//   {"namespace"?,"device","sensor","time"?,"value","type"?,"content_type"?,
//    "measurement"?,"tags"?,"field"?}
//
// A line may hold a column, many readings of a series, in place of one: "time" is that of the
// first, "values" (an array) replaces "value", and "steps" has the nanoseconds from each reading to
// the next, one fewer than there are values. Forwarding sends these (forward/courier.h).
//
// A window of a tier has "window":"1m" and its columns in place of "value" (tiers.h).
//
// measurement, tags (an object of texts) and field: the series' identity, as exports have it.
// time: RFC 3339 text, or whole nanoseconds since 1970; null: none. type: float, int, bool, text,
// bytes; left out, numbers are float64, true and false bool, strings text. bytes are base64.
// Anything else in an object is refused: a misspelt key must not lose data in silence.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/status.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::wire {

inline constexpr std::size_t kJsonDepthMax = 32;
// In a document of more than a slice's bytes; a double has 767 digits at most.
inline constexpr std::size_t kJsonNumberMaxBytes = 4'096;

// A slice of an array ends with the reading that reaches one of these, so that an array of any size
// takes bounded memory: a reading is several times larger than the shortest text of one.
inline constexpr std::size_t kJsonSliceReadings = 16'384;
inline constexpr std::size_t kJsonSliceBytes = 1u << 20;

// A column has as many readings at most.
inline constexpr std::size_t kJsonColumnMax = kJsonSliceReadings;

// Takes what an array has brought so far; the batch is cleared then. An error ends the decoding.
using JsonSliceTaker = std::function<Status(const ReadingBatch&)>;

struct JsonDecodeOptions {
  std::string_view default_namespace = kDefaultNamespace;
  std::size_t depth_max = kJsonDepthMax;
  std::size_t keys_max = 64;    // of one object
  std::size_t errors_max = 20;  // bad readings named; all are counted
  // Lines: one that begins with `[` is a bad line, and no array.
  enum class Form : unsigned char { Any, Lines } form = Form::Any;
  std::int64_t time_unit_ns = 1;  // what a number as the time counts, since 1970
  // Takes slices of one document, an array above all; what is left at its end stays in the batch.
  // An error further on does not take back a slice that was taken.
  JsonSliceTaker take_slice = {};
  // The same of lines: columns are many readings in little text.
  JsonSliceTaker take_lines = {};
};

struct JsonDecodeOutcome {
  std::uint64_t good = 0;
  std::uint64_t bad = 0;
  std::vector<LineError> errors;  // `line`: of NDJSON, or the element's number in an array
};

// Appends the good readings to `batch` and describes the bad ones in `outcome`. Names and values
// are checked (names.h, reading.h); they live in the batch, except the default namespace, which
// is borrowed from `options`.
//
// InvalidArgument, with nothing appended: an empty body, or one that is no JSON as a whole (an
// array with a syntax error has no elements to trust). A bad line of NDJSON spoils only itself.
Status decode_readings_json(std::string_view body, const JsonDecodeOptions& options,
                            ReadingBatch& batch, JsonDecodeOutcome& outcome);

// The members of a JSON object that brings a reading, or a column of them, as they came; and what
// they make (reading_members.cc). Internal to the decoder, which owns it. One thread.

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
  Steps,
  Values,
  Window,
  Unknown
};
inline constexpr std::size_t kKeyCount = 13;
inline constexpr std::array<std::string_view, kKeyCount> kKeyNames = {
    "namespace",   "device", "sensor", "time",  "value",  "type",  "content_type",
    "measurement", "tags",   "field",  "steps", "values", "window"};

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

// The time of the next reading of a column, so many nanoseconds later.
inline Status take_step(const Scalar& given, std::int64_t& time_ns) {
  if (given.kind != Scalar::Kind::Integer)
    return invalid_argument("\"steps\" are whole nanoseconds");
  if (__builtin_add_overflow(time_ns, given.integer, &time_ns))
    return invalid_argument("\"steps\" lead outside what 64-bit nanoseconds can hold");
  return ok();
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

class ReadingMembers {
 public:
  // The scalars of an array; those of the one before keep their memory.
  class Column {
   public:
    std::size_t size() const { return size_; }
    Scalar& operator[](std::size_t i) { return scalars_[i]; }
    // Null: it is full.
    Scalar* next() {
      if (size_ == kJsonColumnMax) return nullptr;
      if (size_ == scalars_.size()) scalars_.emplace_back();
      Scalar& scalar = scalars_[size_++];
      scalar.text.clear();
      scalar.long_text = {};
      return &scalar;
    }
    void clear() { size_ = 0; }

   private:
    std::vector<Scalar> scalars_;
    std::size_t size_ = 0;
  };

  ReadingMembers(const JsonDecodeOptions& options, ReadingBatch& batch)
      : options_(options), batch_(batch) {}

  // An object begins.
  void begin();
  Scalar& operator[](Key key) { return members_[static_cast<std::size_t>(key)]; }
  Column& steps() { return steps_; }
  Column& values() { return values_; }
  // A column of a window, by its name; null: it came before.
  Scalar* add_window_column(const std::string& name);
  void add_tag(const std::string& key, const std::string& value) { tags_.emplace_back(key, value); }

  // Appends what the object brings to the batch. An error is of all of it; `bad` is told of each
  // value of a column that is none. `is_element`: of an array, which holds no columns.
  Status take(bool is_element, const std::function<void(const std::string&)>& bad);

  // Bytes of the batch's texts, and that the batch was cleared.
  std::size_t kept_bytes() const { return kept_bytes_; }
  void forget_kept();

 private:
  bool is_column() { return (*this)[Key::Values].kind != Scalar::Kind::None; }
  std::string_view keep(std::string_view text) {
    kept_bytes_ += text.size();
    return batch_.keep(text);
  }
  std::string_view keep_long(const Scalar& given);
  Status take_column(const Reading& first, const std::function<void(const std::string&)>& bad);
  Status take_identity(Reading& reading);
  Status take_window(Reading& reading);
  Status take_name(Key key, std::string_view& last, std::string_view& name);
  Status take_value(const Scalar& given, Value& value);
  Status take_typed_value(const Scalar& given, ValueType type, Value& value);
  Status take_bytes(const Scalar& given, Value& value);

  const JsonDecodeOptions& options_;
  ReadingBatch& batch_;
  std::array<Scalar, kKeyCount> members_;
  Identity::Tags tags_;
  Column steps_, values_, window_columns_;
  std::vector<std::string> window_names_;  // of the columns
  std::size_t kept_bytes_ = 0;
  // Neighbours mostly share their names: one copy serves them all.
  std::string_view last_namespace_, last_device_, last_sensor_;
};

}  // namespace edgecase::wire
