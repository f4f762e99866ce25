#include "wire/reading_json.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "wire/decimal.h"
#include "wire/json_text.h"
#include "wire/names.h"
#include "wire/tiers.h"

namespace edgecase::wire {
namespace {

using Json = nlohmann::json;

// How much is shown of a text that is far too long for what it is to be.
constexpr std::size_t kShownTextBytes = 4'096;

Status not_json(std::size_t position, std::string_view why) {
  return invalid_argument("not JSON at byte " + std::to_string(position) + ": " + std::string(why));
}

// Takes the parser's events; builds readings. Every member of an object is kept as a Scalar until
// the object ends.
class Decoder : public nlohmann::json_sax<Json> {
 public:
  enum class Shape : unsigned char { Object, ArrayOrObject };

  Decoder(const JsonDecodeOptions& options, ReadingBatch& batch, JsonDecodeOutcome& outcome)
      : options_(options), batch_(batch), outcome_(outcome), members_(options, batch) {}

  // Parses one document. `line` is what errors name; for an array, the element's number. Where it
  // is no JSON because of values as firmware prints them (wire/NUMBERS.md), each costs its own
  // reading.
  Status decode(std::string_view document, std::uint64_t line, Shape shape);
  // What the lines so far have brought.
  Status hand_over_lines() { return hand_over_slice(options_.take_lines) ? ok() : failure_; }

  bool null() override {
    const auto odd = text_->next_null();
    if (!odd) return scalar(Scalar::Kind::Null);
    const OddValue value = read_odd_value(*odd);
    switch (value.kind) {
      case OddValue::Kind::Bool: return boolean(value.boolean);
      case OddValue::Kind::Number: return odd_number(*odd, value.number);
      default: break;
    }
    if (!scalar(Scalar::Kind::Null)) return false;
    if (depth_ == object_depth_ + 1) complain(number_problem(*odd));
    return true;
  }
  bool boolean(bool value) override {
    if (!scalar(Scalar::Kind::Boolean)) return false;
    target_->boolean = value;
    return true;
  }
  bool number_integer(Json::number_integer_t value) override {
    if (!scalar(Scalar::Kind::Integer)) return false;
    target_->integer = value;
    // Negative integers, and `-0`, whose sign no integer keeps.
    target_->decimal = value == 0 ? -0.0 : static_cast<double>(value);
    return true;
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!scalar(fits ? Scalar::Kind::Integer : Scalar::Kind::Huge)) return false;
    target_->integer = fits ? static_cast<std::int64_t>(value) : 0;
    target_->decimal = static_cast<double>(value);
    return true;
  }
  bool number_float(Json::number_float_t value, const std::string& raw) override {
    // Whole numbers beyond 64 bits arrive here too.
    const bool is_whole = raw.find_first_of(".eE") == std::string::npos;
    if (!scalar(is_whole ? Scalar::Kind::Huge : Scalar::Kind::Decimal)) return false;
    target_->decimal = value;
    read_number(raw, target_->decimal);  // the library reads by the locale
    return true;
  }
  bool string(std::string& value) override {
    const auto long_text = text_->next_string();
    if (!scalar(Scalar::Kind::Text)) return false;
    if (in_tags_ && depth_ == object_depth_ + 2 && !long_text) {
      members_.add_tag(tag_key_, value);
      return true;
    }
    if (long_text) return take_long_text(*long_text);
    target_->text.swap(value);
    return true;
  }
  bool binary(Json::binary_t&) override { return scalar(Scalar::Kind::Nested); }

  bool start_object(std::size_t) override {
    if (!enter()) return false;
    if (depth_ == object_depth_ + 1) {
      begin_reading();
      return true;
    }
    if (depth_ == object_depth_ + 2 && target_ == &members_[Key::Tags]) {
      target_->kind = Scalar::Kind::Nested;
      in_tags_ = true;
      return true;
    }
    return nested();
  }
  bool end_object() override {
    in_tags_ = in_tags_ && depth_ != object_depth_ + 2;
    --depth_;
    if (depth_ == object_depth_) finish_reading();
    return hand_over_slice(options_.take_slice);
  }
  bool start_array(std::size_t) override {
    if (!enter()) return false;
    if (depth_ == 1 && shape_ == Shape::ArrayOrObject) {
      object_depth_ = 1;
      in_array_ = true;
      return true;
    }
    if (depth_ == object_depth_ + 1) return stray();
    if (depth_ == object_depth_ + 2 && begins_column()) return true;
    return nested();
  }
  bool end_array() override {
    if (depth_ == object_depth_ + 2) column_ = nullptr;
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    static_cast<void>(text_->next_string());  // none is long where JSON is whole
    if (++keys_[depth_] > options_.keys_max) {
      failure_ = invalid_argument("an object has more keys than limits.json-keys = " +
                                  std::to_string(options_.keys_max));
      return false;
    }
    if (in_tags_ && depth_ == object_depth_ + 2) tag_key_ = name;
    if (depth_ != object_depth_ + 1) return true;
    const Key found = key_of(name);
    if (found == Key::Unknown && !field_of_column(name).empty()) {
      target_ = members_.add_window_column(name);
      if (target_ == nullptr) complain("key \"" + name + "\" comes twice");
      if (target_ == nullptr) target_ = &ignored_;
      return true;
    }
    if (found == Key::Unknown) {
      complain("unknown key \"" + name.substr(0, kNameMaxBytes) +
               "\"; known are namespace device sensor time value type content_type "
               "measurement tags field steps values window");
      target_ = &ignored_;
      return true;
    }
    target_ = &members_[found];
    if (target_->kind != Scalar::Kind::None) complain("key \"" + name + "\" comes twice");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's text carries an internal number in brackets first, which is nothing to show.
    // tidy: allow-file message-text: a parser's words are cut to be shown; nothing hangs on them
    std::string_view what = error.what();
    if (const auto end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    failure_ = not_json(text_->in_document(position), what.substr(0, 200));
    is_syntax_error_ = true;
    return false;
  }

 private:
  Result<bool> parse(JsonText& text);
  bool odd_number(std::string_view text, double value) {
    std::int64_t integer = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error == std::errc() && end == text.data() + text.size()) return number_integer(integer);
    if (!scalar(Scalar::Kind::Decimal)) return false;
    target_->decimal = value;
    return true;
  }
  bool enter() {
    if (++depth_ <= options_.depth_max) {
      keys_.resize(std::max(keys_.size(), depth_ + 1));
      keys_[depth_] = 0;
      return true;
    }
    failure_ = invalid_argument("JSON is nested deeper than limits.json-depth = " +
                                std::to_string(options_.depth_max));
    return false;
  }
  // A scalar of the current object, of something nested in it, or where an object should be.
  bool scalar(Scalar::Kind kind) {
    if (column_ != nullptr && depth_ == object_depth_ + 2) {
      target_ = column_->next();
      if (target_ == nullptr) {
        complain("a column has more than " + std::to_string(kJsonColumnMax) + " readings");
        target_ = &ignored_;
      }
    } else if (depth_ > object_depth_ + 1) {
      if (in_tags_ && kind != Scalar::Kind::Text) complain("a tag's value is a text");
      target_ = &ignored_;
    } else if (depth_ <= object_depth_) {
      if (!in_array_) return stray();
      target_ = &ignored_;
      if (++element_ > decoded_elements_) report("a reading is a JSON object");
    }
    target_->kind = kind;
    return true;
  }
  // Nothing but a value may be so long.
  bool take_long_text(std::string_view escaped) {
    if (!is_json_string(escaped)) {
      const auto begin = static_cast<std::size_t>(escaped.data() - text_->document().data());
      failure_ = not_json(begin, "the text that begins there is none");
      return false;
    }
    if (target_ == &members_[Key::Value] ||
        (column_ == &members_.values() && depth_ == object_depth_ + 2)) {
      target_->long_text = escaped;
    } else {
      target_->text = escaped.substr(0, kShownTextBytes);
    }
    return true;
  }
  bool begins_column() {
    if (target_ == &members_[Key::Steps]) column_ = &members_.steps();
    if (target_ == &members_[Key::Values]) column_ = &members_.values();
    if (column_ == nullptr) return false;
    target_->kind = Scalar::Kind::Nested;
    return true;
  }
  bool nested() {
    if (depth_ == object_depth_ + 3 && column_ != nullptr) {
      complain("an object or array cannot be a reading's value");
    }
    if (depth_ == object_depth_ + 2) {
      target_->kind = Scalar::Kind::Nested;
      complain("an object or array cannot be a reading's member");
    }
    return true;
  }
  bool stray() {
    failure_ = invalid_argument("a reading is a JSON object");
    return false;
  }

  void begin_reading() {
    members_.begin();
    complaint_.clear();
    in_tags_ = false;
    column_ = nullptr;
  }
  void complain(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
  }
  void finish_reading();
  bool hand_over_slice(const JsonSliceTaker& taker);
  void report(const std::string& message);
  const JsonDecodeOptions& options_;
  ReadingBatch& batch_;
  JsonDecodeOutcome& outcome_;

  Shape shape_ = Shape::Object;
  bool in_array_ = false;
  std::size_t depth_ = 0;
  std::vector<std::size_t> keys_;  // of the object open at each depth
  std::size_t object_depth_ = 0;   // containers around a reading's object
  std::uint64_t line_ = 0;
  std::uint64_t element_ = 0;
  std::uint64_t decoded_elements_ = 0;  // by the parse before this one
  bool is_syntax_error_ = false;
  ReadingMembers members_;
  Scalar ignored_;
  Scalar* target_ = &ignored_;
  JsonText* text_ = nullptr;  // of the document
  std::string complaint_;
  bool in_tags_ = false;  // the object of the member of that name is open
  std::string tag_key_;
  ReadingMembers::Column* column_ = nullptr;  // whose array is open
  Status failure_;
};

Status Decoder::decode(std::string_view document, std::uint64_t line, Shape shape) {
  EC_TRY(check_number_lengths(document));
  shape_ = shape;
  line_ = line;
  decoded_elements_ = 0;
  element_ = 0;
  JsonText text(document);
  EC_ASSIGN_OR_RETURN(const bool strictly, parse(text));
  if (strictly) return ok();
  const Status strict_failure = failure_.ok() ? invalid_argument("not JSON") : failure_;
  if (!is_syntax_error_) return strict_failure;
  JsonText tolerant(document, kLongJsonStringBytes, OddValues::AsNull);
  if (!tolerant.has_odd_values()) return strict_failure;
  // What came before the first of them has been built, and may have been taken as a slice.
  decoded_elements_ = element_;
  EC_ASSIGN_OR_RETURN(const bool tolerantly, parse(tolerant));
  return tolerantly ? ok() : failure_.ok() ? strict_failure : failure_;
}

// Busy: the machine lacks something.
Result<bool> Decoder::parse(JsonText& text) {
  in_array_ = false;
  depth_ = 0;
  object_depth_ = 0;
  element_ = 0;
  failure_ = ok();
  is_syntax_error_ = false;
  text_ = &text;
  // The library throws only for what the machine lacks; this is the seam where it stops.
  try {
    return parse_json(text, *this) && failure_.ok();
  } catch (const std::exception& error) {
    return busy(std::string("JSON could not be read: ") + error.what());
  }
}

void Decoder::report(const std::string& message) {
  ++outcome_.bad;
  if (outcome_.errors.size() >= options_.errors_max) return;
  if (in_array_) {
    outcome_.errors.push_back({element_, "element " + std::to_string(element_) + ": " + message});
  } else {
    outcome_.errors.push_back({line_, message});
  }
}

void Decoder::finish_reading() {
  if (++element_ <= decoded_elements_) return;
  if (!complaint_.empty()) return report(complaint_);
  const std::size_t before = batch_.readings.size();
  const Status taken = members_.take(in_array_, [this](const std::string& why) { report(why); });
  outcome_.good += batch_.readings.size() - before;
  if (!taken.ok()) report(taken.message());
}

// False: whoever takes it failed.
bool Decoder::hand_over_slice(const JsonSliceTaker& taker) {
  if (!taker) return true;
  if (batch_.readings.size() < kJsonSliceReadings && members_.kept_bytes() < kJsonSliceBytes)
    return true;
  failure_ = taker(batch_);
  batch_.clear();
  members_.forget_kept();
  return failure_.ok();
}

Status decode_lines(std::string_view body, const JsonDecodeOptions& options, ReadingBatch& batch,
                    JsonDecodeOutcome& outcome) {
  Decoder decoder(options, batch, outcome);
  std::uint64_t line_number = 0;
  while (!body.empty()) {
    ++line_number;
    const std::size_t end = body.find('\n');
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
    if (is_blank(line)) continue;
    const std::size_t kept = batch.readings.size();
    const JsonDecodeOutcome before{outcome.good, outcome.bad, {}};
    const std::size_t errors = outcome.errors.size();
    const Status status = decoder.decode(line, line_number, Decoder::Shape::Object);
    if (status.ok()) {
      EC_TRY(decoder.hand_over_lines());
      continue;
    }
    if (status.code() != StatusCode::InvalidArgument) return status;
    // An object may have ended before the error: `{...} rubbish` is one bad line, no reading.
    batch.readings.resize(kept);
    outcome.good = before.good;
    outcome.bad = before.bad + 1;
    outcome.errors.resize(errors);
    if (errors < options.errors_max) outcome.errors.push_back({line_number, status.message()});
  }
  return ok();
}

}  // namespace

Status decode_readings_json(std::string_view body, const JsonDecodeOptions& options,
                            ReadingBatch& batch, JsonDecodeOutcome& outcome) {
  outcome = {};
  const std::size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return invalid_argument("the body is empty");
  const std::size_t line_end = body.find('\n', begin);
  const bool one_line = line_end == std::string_view::npos || is_blank(body.substr(line_end));
  if (options.form == JsonDecodeOptions::Form::Lines)
    return decode_lines(body, options, batch, outcome);
  const bool array = body[begin] == '[';
  if (!array && !one_line && looks_like_whole_object(body.substr(begin, line_end - begin))) {
    return decode_lines(body, options, batch, outcome);
  }
  // One document, perhaps over many lines.
  const std::size_t kept = batch.readings.size();
  Decoder decoder(options, batch, outcome);
  const Status status = decoder.decode(body, 1, Decoder::Shape::ArrayOrObject);
  if (status.ok()) return status;
  batch.readings.resize(std::min(kept, batch.readings.size()));
  outcome = {};
  // NDJSON whose first line is spoilt still has its other lines.
  if (!array && !one_line && status.code() == StatusCode::InvalidArgument) {
    return decode_lines(body, options, batch, outcome);
  }
  return status;
}

}  // namespace edgecase::wire
