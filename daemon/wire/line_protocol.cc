#include "wire/line_protocol.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>

#include "wire/decimal.h"
#include "wire/names.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kStatementsBegin = "# DDL", kStatementsEnd = "# DML";
constexpr std::string_view kStatement = "CREATE ";

struct Precision {
  std::string_view name;
  std::int64_t unit_ns;
  bool in_v2;
};

// ",f=1" and never less.
constexpr std::size_t kReadingMinBytes = 4;

constexpr Precision kPrecisions[] = {
    {"", 1, true},
    {"ns", 1, true},
    {"us", 1'000, true},
    {"ms", 1'000'000, true},
    {"s", 1'000'000'000, true},
    {"n", 1, false},
    {"u", 1'000, false},
    {"\u00b5", 1'000, false},  // the micro sign
    {"\u03bc", 1'000, false},  // the Greek letter
    {"m", 60'000'000'000, false},
    {"h", 3'600'000'000'000, false},
};

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  std::size_t left = text.size();
  std::uint64_t seen = 0;
  for (; left >= sizeof(seen); p += sizeof(seen), left -= sizeof(seen)) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof(word));
    seen |= word;
  }
  for (; left > 0; ++p, --left) seen |= static_cast<std::uint64_t>(static_cast<unsigned char>(*p));
  return (seen & 0x8080808080808080u) == 0;
}

// Ends a measurement and its tags, or a field's key; a table, because this loop sees every byte of
// new names.
struct StopTable {
  bool stops[256] = {};
  constexpr explicit StopTable(std::string_view characters) {
    for (const char c : characters) stops[static_cast<unsigned char>(c)] = true;
  }
  bool operator()(char c) const { return stops[static_cast<unsigned char>(c)]; }
};
constexpr StopTable kEndsNames(" \n");
constexpr StopTable kEndsFieldKey("=, \n");
constexpr StopTable kEscapable(",= ");
constexpr StopTable kEndsValue(", \r\n");

const char* find_end(const char* p, const char* end, const StopTable& stops) {
  while (p < end && !stops(*p)) {
    p += *p == '\\' && p + 1 < end && kEscapable(p[1]) ? 2 : 1;
  }
  return p;
}

// The same of kEndsNames, eight bytes at a time: names of many tags are long.
const char* find_names_end(const char* p, const char* end) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto holds = [](std::uint64_t word, char c) {
    const std::uint64_t zero_where_it_is = word ^ kOnes * static_cast<unsigned char>(c);
    return (zero_where_it_is - kOnes) & ~zero_where_it_is & kHighs;
  };
  for (std::uint64_t word = 0; end - p >= static_cast<std::ptrdiff_t>(sizeof word);
       p += sizeof word) {
    std::memcpy(&word, p, sizeof word);
    if ((holds(word, ' ') | holds(word, '\n') | holds(word, '\\')) != 0) break;
  }
  return find_end(p, end, kEndsNames);
}

}  // namespace

Result<std::int64_t> parse_precision_ns(std::string_view text, InfluxVersion version) {
  for (const Precision& precision : kPrecisions) {
    if (precision.name == text && (version == InfluxVersion::V1 || precision.in_v2)) {
      return precision.unit_ns;
    }
  }
  return invalid_argument("precision is none of " + std::string(version == InfluxVersion::V1
                                                                    ? "n, ns, u, us, ms, s, m, h"
                                                                    : "ns, us, ms, s"));
}

LineProtocolDecoder::LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options,
                                         LineNames& names)
    : position_(body.data()),
      end_(body.data() + body.size()),
      options_(options),
      namespace_name_(options.namespace_name),
      ascii_(is_ascii(body)),
      names_(names) {}

LineProtocolDecoder::LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options)
    : position_(body.data()),
      end_(body.data() + body.size()),
      options_(options),
      namespace_name_(options.namespace_name),
      ascii_(is_ascii(body)),
      own_names_(std::make_unique<LineNames>()),
      names_(*own_names_) {
  own_names_->obey(options.rules);
}

bool LineProtocolDecoder::next(ReadingBatch& batch) {
  names_.begin(options_.namespace_name, batch);
  // Names are the same in other namespaces, series are not.
  batch.numbering = options_.contexts == LineContexts::Followed ? 0 : names_.numbering();
  // Growing step by step copies; address space that is not used costs nothing.
  const auto rest_bytes = static_cast<std::size_t>(end_ - position_);
  batch.readings.reserve(std::min(kReadingsPerSlice, rest_bytes / kReadingMinBytes + 1));
  while (batch.readings.size() < kReadingsPerSlice) {
    skip_to_content();
    if (position_ == end_) break;
    const char* const begin = position_;
    const std::size_t readings_before = batch.readings.size();
    if (decode_line(batch)) {
      ++good_lines_;
      continue;
    }
    batch.readings.resize(readings_before);
    ++bad_lines_;
    if (errors_.size() < options_.error_limit) errors_.push_back({line_, std::move(why_)});
    skip_bad_line(begin);
  }
  return !batch.readings.empty();
}

bool LineProtocolDecoder::decode_line(ReadingBatch& batch) {
  const std::size_t first = batch.readings.size();
  const char* const begin = position_;
  columns_.clear();
  if (!decode_names(batch) || !decode_fields(batch)) return false;
  skip_blanks();
  if (!at_line_end()) {
    std::int64_t time_ns = 0;
    if (!decode_timestamp(time_ns)) return false;
    for (std::size_t i = first; i < batch.readings.size(); ++i) batch.readings[i].time_ns = time_ns;
    skip_blanks();
    if (!at_line_end()) return fail("text after the timestamp");
  }
  if (window_ns_ != 0 && !join_windows(batch, first)) return false;
  // Only texts hold line breaks; memchr over what was decoded is cheap beside decoding it.
  for (const char* p = begin; (p = static_cast<const char*>(std::memchr(
                                   p, '\n', static_cast<std::size_t>(position_ - p)))) != nullptr;
       ++p) {
    ++line_;
  }
  return true;
}

bool LineProtocolDecoder::decode_names(ReadingBatch& batch) {
  const char* const begin = position_;
  position_ = find_names_end(begin, end_);
  std::string_view raw(begin, static_cast<std::size_t>(position_ - begin));
  if (at_line_end() && raw.ends_with('\r')) raw.remove_suffix(1);
  if (Status status = names_.select(raw, batch); !status.ok()) return fail(status.message());
  skip_blanks();
  if (at_line_end()) return fail("the fields are missing");
  return true;
}

bool LineProtocolDecoder::decode_fields(ReadingBatch& batch) {
  for (std::size_t index = 0;; ++index) {
    if (index == kFieldsPerLineMax) {
      return fail("more than " + std::to_string(kFieldsPerLineMax) + " fields");
    }
    Reading& reading = batch.readings.emplace_back();
    reading.namespace_name = namespace_name_;
    reading.device = names_.device();
    if (!decode_field_key(batch, reading)) return false;
    if (!decode_value(batch, reading.value)) return false;
    if (position_ == end_ || *position_ != ',') break;
    ++position_;
  }
  if (position_ < end_ && !kEndsValue(*position_)) return fail("a field's value is malformed");
  return true;
}

// The columns of a line become windows, in place of readings.
bool LineProtocolDecoder::join_windows(ReadingBatch& batch, std::size_t first) {
  std::size_t joined = first;
  WindowMaker maker;
  for (std::size_t i = first; i < batch.readings.size(); ++i) {
    const Reading& reading = batch.readings[i];
    if (!reading.time_ns) return fail("a window has no time");
    if (const Status taken = maker.take(columns_[i - first], reading.value); !taken.ok())
      return fail(taken.message());
    const bool goes_on =
        i + 1 < batch.readings.size() && batch.readings[i + 1].sensor == reading.sensor;
    if (goes_on) continue;
    const Result<Window> window = maker.make(*reading.time_ns, window_ns_);
    if (!window.ok()) return fail(window.status().message());
    maker.clear();
    Reading made = reading;
    made.window = batch.texts.keep_object(*window);
    batch.readings[joined++] = made;
  }
  batch.readings.resize(joined);
  return true;
}

bool LineProtocolDecoder::decode_field_key(ReadingBatch& batch, Reading& reading) {
  if (window_ns_ == 0 && names_.expect(position_, end_, reading)) return true;
  const char* const begin = position_;
  position_ = find_end(begin, end_, kEndsFieldKey);
  if (position_ == begin) return fail("a field's key is missing");
  if (position_ == end_ || *position_ != '=') return fail("a field's value is missing");
  std::string_view raw(begin, static_cast<std::size_t>(position_ - begin));
  if (window_ns_ != 0) {
    columns_.push_back(raw);
    raw = field_of_column(raw);
    if (raw.empty()) return fail("a field is no column of a window, as value_count is");
  }
  if (const Status named = names_.name(raw, batch, reading); !named.ok())
    return fail(named.message());
  ++position_;
  return true;
}

bool LineProtocolDecoder::decode_value(ReadingBatch& batch, Value& value) {
  if (position_ == end_) return fail("a field's value is missing");
  const char c = *position_;
  if (is_digit(c) || c == '-' || c == '+' || c == '.') return decode_number(value);
  if (c == '"') return decode_text(batch, value);
  if (kEndsValue(c)) return fail("a field's value is missing");
  return decode_bool(value);
}

bool LineProtocolDecoder::decode_number(Value& value) {
  const char* const begin = position_;
  double number = 0;
  switch (parse_decimal(position_, end_, number)) {
    case DecimalOutcome::NotANumber: return fail("a number is malformed");
    case DecimalOutcome::TooLarge: return fail("a number is too large for a float");
    case DecimalOutcome::Ok: break;
  }
  if (position_ < end_ && (*position_ == 'i' || *position_ == 'u')) {
    return decode_integer(begin, value);
  }
  value.type = ValueType::Float64;  // of a reading that was just made: nothing else is set
  value.float64 = number;
  return true;
}

bool LineProtocolDecoder::decode_integer(const char* begin, Value& value) {
  const bool is_unsigned = *position_ == 'u';
  if (is_unsigned && *begin == '-') return fail("an unsigned integer is negative");
  if (*begin == '+') ++begin;
  std::int64_t integer = 0;
  const auto [stop, error] = std::from_chars(begin, position_, integer);
  if (error == std::errc::result_out_of_range) {
    return fail("an integer is beyond the range of a signed 64-bit integer");
  }
  if (error != std::errc{} || stop != position_) return fail("an integer is malformed");
  ++position_;
  value = Value::of_int64(integer);
  return true;
}

bool LineProtocolDecoder::decode_text(ReadingBatch& batch, Value& value) {
  const char* const begin = ++position_;
  bool escapes = false;
  const char* p = begin;
  while (p < end_ && *p != '"') {
    const bool escape = *p == '\\' && p + 1 < end_ && (p[1] == '"' || p[1] == '\\');
    escapes = escapes || escape;
    p += escape ? 2 : 1;
  }
  if (p == end_) return fail("a text is not closed by a quote");
  std::string_view text(begin, static_cast<std::size_t>(p - begin));
  position_ = p + 1;
  if (!ascii_ && !is_valid_utf8(text)) return fail("a text is not UTF-8");
  if (escapes) {
    scratch_.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool escape =
          text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
      scratch_.push_back(text[escape ? ++i : i]);
    }
    text = batch.keep(scratch_);
  }
  value = Value::of_text(text);
  return true;
}

bool LineProtocolDecoder::decode_bool(Value& value) {
  const char* const begin = position_;
  position_ = std::find_if(begin, end_, [](char c) { return kEndsValue(c); });
  const std::string_view word(begin, static_cast<std::size_t>(position_ - begin));
  const auto spelled = [&](std::initializer_list<std::string_view> spellings) {
    return std::find(spellings.begin(), spellings.end(), word) != spellings.end();
  };
  const bool is_true = spelled({"t", "T", "true", "True", "TRUE"});
  if (is_true || spelled({"f", "F", "false", "False", "FALSE"})) {
    value = Value::of_bool(is_true);
    return true;
  }
  std::string lower(word.substr(0, 8));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "nan" || lower == "inf" || lower == "infinity") {
    return fail("NaN and infinity cannot be stored");
  }
  return fail("a field's value is no number, text in quotes, or bool");
}

bool LineProtocolDecoder::decode_timestamp(std::int64_t& time_ns) {
  // As many digits are less than 2^64: nothing needs to be asked of each.
  constexpr std::ptrdiff_t kTimeDigitsMax = 19;
  std::uint64_t digits = 0;
  const char* p = position_;
  const char* const limit = end_ - position_ > kTimeDigitsMax ? position_ + kTimeDigitsMax : end_;
  for (; p < limit && is_digit(*p); ++p)
    digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  const bool ends = p > position_ && (p == end_ || kEndsValue(*p));
  if (ends && digits <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) &&
      !__builtin_mul_overflow(static_cast<std::int64_t>(digits), options_.unit_ns, &time_ns)) {
    position_ = p;
    return true;
  }
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(position_, end_, count);
  if (error == std::errc::invalid_argument) return fail("the timestamp is no integer");
  if (error != std::errc{} || __builtin_mul_overflow(count, options_.unit_ns, &time_ns)) {
    return fail("the timestamp is beyond the range of 64-bit nanoseconds");
  }
  if (stop < end_ && !kEndsValue(*stop)) return fail("the timestamp is no integer");
  position_ = stop;
  return true;
}

// To the first character of the next line that says something.
void LineProtocolDecoder::skip_to_content() {
  while (position_ < end_) {
    const char c = *position_;
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '#') {
      take_comment(rest_of_line());
    } else if (in_statements_ && std::string_view(position_, end_).starts_with(kStatement)) {
      rest_of_line();
    } else {
      return;
    }
  }
}

// Goes to its end.
std::string_view LineProtocolDecoder::rest_of_line() {
  const void* const line_end =
      std::memchr(position_, '\n', static_cast<std::size_t>(end_ - position_));
  const char* const begin =
      std::exchange(position_, line_end == nullptr ? end_ : static_cast<const char*>(line_end));
  return {begin, static_cast<std::size_t>(position_ - begin)};
}

// One space stands before the name, which may begin with others. A name holds no `/`: that line
// tells of a device without a line form.
void LineProtocolDecoder::take_comment(std::string_view line) {
  if (options_.contexts == LineContexts::PassedOver) return;
  if (line.starts_with(kStatementsBegin)) in_statements_ = true;
  if (line.starts_with(kStatementsEnd)) in_statements_ = false;
  if (line.starts_with(kLineWindow)) {
    line.remove_prefix(kLineWindow.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    const Result<std::int64_t> length = parse_duration_ns(line);
    window_ns_ = length.ok() ? *length : 0;
    return;
  }
  if (!line.starts_with(kLineContext)) return;
  line.remove_prefix(kLineContext.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('/') != std::string_view::npos) return;
  namespace_name_ = line.empty() ? options_.namespace_name : line;
}

// To the first line feed behind where decoding stopped. A text that is not closed ends with its
// line, so that it cannot swallow the lines that follow.
void LineProtocolDecoder::skip_bad_line(const char* begin) {
  line_ += static_cast<std::uint64_t>(std::count(begin, position_, '\n'));
  const void* const line_end =
      std::memchr(position_, '\n', static_cast<std::size_t>(end_ - position_));
  position_ = line_end == nullptr ? end_ : static_cast<const char*>(line_end);
}

void LineProtocolDecoder::skip_blanks() {
  while (position_ < end_ && (*position_ == ' ' || *position_ == '\t')) ++position_;
}

bool LineProtocolDecoder::at_line_end() const {
  if (position_ == end_ || *position_ == '\n') return true;
  return *position_ == '\r' && (position_ + 1 == end_ || position_[1] == '\n');
}

bool LineProtocolDecoder::fail(std::string why) {
  why_ = std::move(why);
  return false;
}

}  // namespace edgecase::wire
