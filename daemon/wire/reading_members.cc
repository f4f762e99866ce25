#include "wire/reading_json.h"

#include "wire/encoding.h"
#include "wire/json_text.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::wire {

void ReadingMembers::begin() {
  for (Scalar& member : members_) {
    member.kind = Scalar::Kind::None;
    member.text.clear();
    member.long_text = {};
  }
  tags_.clear();
  steps_.clear();
  values_.clear();
  window_columns_.clear();
  window_names_.clear();
}

Scalar* ReadingMembers::add_window_column(const std::string& name) {
  for (const std::string& each : window_names_)
    if (each == name) return nullptr;
  window_names_.push_back(name);
  return window_columns_.next();
}

void ReadingMembers::forget_kept() {
  kept_bytes_ = 0;
  last_namespace_ = last_device_ = last_sensor_ = {};
}

std::string_view ReadingMembers::keep_long(const Scalar& given) {
  kept_bytes_ += given.long_text.size();
  return keep_json_string(given.long_text, batch_);
}

Status ReadingMembers::take(bool is_element, const std::function<void(const std::string&)>& bad) {
  Reading reading;
  if ((*this)[Key::Namespace].kind == Scalar::Kind::None) {
    reading.namespace_name = options_.default_namespace;
  } else {
    EC_TRY(take_name(Key::Namespace, last_namespace_, reading.namespace_name));
  }
  EC_TRY(take_name(Key::Device, last_device_, reading.device));
  EC_TRY(take_name(Key::Sensor, last_sensor_, reading.sensor));
  EC_ASSIGN_OR_RETURN(reading.time_ns, time_of((*this)[Key::Time], options_.time_unit_ns));
  EC_TRY(take_identity(reading));
  if ((*this)[Key::Window].kind != Scalar::Kind::None) return take_window(reading);
  if (!window_names_.empty())
    return invalid_argument("\"" + window_names_.front() +
                            "\" is of a \"window\", which is missing");
  if (is_column()) {
    if (is_element) return invalid_argument("\"values\" are of an object on a line of its own");
    return take_column(reading, bad);
  }
  if ((*this)[Key::Steps].kind != Scalar::Kind::None)
    return invalid_argument("\"steps\" are of \"values\", which are missing");
  EC_TRY(take_value((*this)[Key::Value], reading.value));
  EC_TRY(check_value(reading.value));
  batch_.readings.push_back(reading);
  return ok();
}

Status ReadingMembers::take_column(const Reading& first,
                                   const std::function<void(const std::string&)>& bad) {
  if ((*this)[Key::Value].kind != Scalar::Kind::None)
    return invalid_argument("\"value\" and \"values\" are in one object");
  if (!first.time_ns) return invalid_argument("\"values\" need a \"time\"");
  if ((*this)[Key::Values].kind != Scalar::Kind::Nested)
    return invalid_argument("\"values\" are no array");
  const std::size_t steps = (*this)[Key::Steps].kind == Scalar::Kind::Nested ? steps_.size() : 0;
  if (values_.size() == 0 || steps != values_.size() - 1)
    return invalid_argument("\"steps\" are " + std::to_string(steps) +
                            ", for \"values\" that are " + std::to_string(values_.size()) +
                            ": one fewer is right");
  // All times before any value: a step that is none moves all behind it.
  std::vector<std::int64_t> times_ns(1, *first.time_ns);
  times_ns.reserve(values_.size());
  for (std::size_t i = 0; i < steps; ++i) {
    times_ns.push_back(times_ns.back());
    EC_TRY(take_step(steps_[i], times_ns.back()));
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    Reading reading = first;
    reading.time_ns = times_ns[i];
    Status status = take_value(values_[i], reading.value);
    if (status.ok()) status = check_value(reading.value);
    if (status.ok()) {
      batch_.readings.push_back(reading);
    } else {
      bad("value " + std::to_string(i + 1) + ": " + status.message());
    }
  }
  return ok();
}

Status ReadingMembers::take_window(Reading& reading) {
  for (const Key other : {Key::Value, Key::Values, Key::Steps, Key::Type, Key::ContentType}) {
    if ((*this)[other].kind == Scalar::Kind::None) continue;
    return invalid_argument("\"" + std::string(kKeyNames[static_cast<std::size_t>(other)]) +
                            "\" is of readings, and a \"window\" is none");
  }
  const Scalar& length = (*this)[Key::Window];
  if (length.kind != Scalar::Kind::Text) return invalid_argument("\"window\" is no duration");
  EC_ASSIGN_OR_RETURN(const std::int64_t every_ns, parse_duration_ns(length.text));
  if (every_ns == 0) return invalid_argument("\"window\" is no time at all");
  if (!reading.time_ns) return invalid_argument("a \"window\" needs a \"time\"");
  const Scalar& named = (*this)[Key::Field];
  const std::string_view field =
      named.kind == Scalar::Kind::Text ? std::string_view(named.text) : kValueField;
  WindowMaker maker;
  for (std::size_t i = 0; i < window_names_.size(); ++i) {
    const std::string& name = window_names_[i];
    if (field_of_column(name) != field) {
      return invalid_argument("\"" + name + "\" is no column of the field \"" + std::string(field) +
                              "\"");
    }
    const Scalar& given = window_columns_[i];
    if (given.kind == Scalar::Kind::Null) continue;
    const ValueType type = given.kind == Scalar::Kind::Boolean   ? ValueType::Bool
                           : given.kind == Scalar::Kind::Decimal ? ValueType::Float64
                                                                 : ValueType::Int64;
    Value value;
    if (!take_plain_value(given, type, value).ok())
      return invalid_argument("\"" + name + "\" is no number");
    EC_TRY(maker.take(name, value));
  }
  EC_ASSIGN_OR_RETURN(const struct Window window, maker.make(*reading.time_ns, every_ns));
  kept_bytes_ += sizeof window;
  reading.window = batch_.texts.keep_object(window);
  batch_.readings.push_back(reading);
  return ok();
}

Status ReadingMembers::take_identity(Reading& reading) {
  EC_ASSIGN_OR_RETURN(const auto identity,
                      identity_of_members((*this)[Key::Measurement], (*this)[Key::Tags], tags_,
                                          (*this)[Key::Field]));
  if (!identity) return ok();
  Bytes body;
  const SeriesIdentity made = series_identity(*identity, reading.device, reading.sensor, body);
  reading.identity = batch_.texts.keep_object(
      SeriesIdentity{made.measurement_bytes, keep(made.device_keys), keep(made.body)});
  return ok();
}

Status ReadingMembers::take_name(Key key, std::string_view& last, std::string_view& name) {
  const std::string what(kKeyNames[static_cast<std::size_t>(key)]);
  const Scalar& given = (*this)[key];
  if (given.kind == Scalar::Kind::None) return invalid_argument("\"" + what + "\" is missing");
  if (given.kind != Scalar::Kind::Text) return invalid_argument("\"" + what + "\" is no string");
  if (last.empty() || given.text != last) {
    EC_TRY(check_name(what, given.text));
    last = keep(given.text);
  }
  name = last;
  return ok();
}

Status ReadingMembers::take_value(const Scalar& given, Value& value) {
  if (given.kind == Scalar::Kind::None) return invalid_argument("\"value\" is missing");
  const Scalar& type = (*this)[Key::Type];
  const bool has_content_type = (*this)[Key::ContentType].kind != Scalar::Kind::None;
  if (type.kind != Scalar::Kind::None) {
    if (type.kind != Scalar::Kind::Text) return invalid_argument("\"type\" is no string");
    EC_ASSIGN_OR_RETURN(const ValueType wanted, parse_value_type(type.text));
    if (wanted != ValueType::Bytes && has_content_type)
      return invalid_argument("\"content_type\" belongs to \"type\":\"bytes\" alone");
    return take_typed_value(given, wanted, value);
  }
  if (has_content_type) return invalid_argument("\"content_type\" needs \"type\":\"bytes\"");
  switch (given.kind) {
    case Scalar::Kind::Boolean: return take_typed_value(given, ValueType::Bool, value);
    case Scalar::Kind::Text: return take_typed_value(given, ValueType::Text, value);
    default: return take_typed_value(given, ValueType::Float64, value);
  }
}

Status ReadingMembers::take_typed_value(const Scalar& given, ValueType type, Value& value) {
  if (given.kind == Scalar::Kind::Null) return invalid_argument("\"value\" is null");
  switch (type) {
    case ValueType::Float64:
    case ValueType::Int64:
    case ValueType::Bool: return take_plain_value(given, type, value);
    case ValueType::Text:
      if (given.kind != Scalar::Kind::Text) return invalid_argument("\"value\" is no string");
      value = Value::of_text(given.long_text.empty() ? keep(given.text) : keep_long(given));
      return ok();
    case ValueType::Bytes: return take_bytes(given, value);
  }
  return invalid_argument("unknown type");
}

Status ReadingMembers::take_bytes(const Scalar& given, Value& value) {
  if (given.kind != Scalar::Kind::Text) return invalid_argument("\"value\" is no base64 string");
  const std::string_view text = given.long_text.empty() ? given.text : keep_long(given);
  char* const bytes = batch_.texts.room(text.size() / 4 * 3);
  EC_ASSIGN_OR_RETURN(const std::size_t size, decode_base64(text, bytes));
  kept_bytes_ += size;
  std::string_view content_type = kDefaultContentType;
  if (const Scalar& named = (*this)[Key::ContentType]; named.kind != Scalar::Kind::None) {
    if (named.kind != Scalar::Kind::Text) return invalid_argument("\"content_type\" is no string");
    content_type = keep(named.text);
  }
  value = Value::of_bytes({bytes, size}, content_type);
  return ok();
}

}  // namespace edgecase::wire
