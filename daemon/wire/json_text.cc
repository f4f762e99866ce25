#include "wire/json_text.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "wire/decimal.h"
#include "wire/reading_json.h"

namespace edgecase::wire {
namespace {

// How much of an escaped string is decoded at a time.
constexpr std::size_t kPieceBytes = 64u << 10;

// Takes a document that is one string.
class StringTaker : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit StringTaker(char* out) : out_(out) {}
  std::size_t size() const { return size_; }

  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool string(string_t& value) override {
    if (out_ != nullptr) std::memcpy(out_, value.data(), value.size());
    size_ = value.size();
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool end_object() override { return false; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool key(string_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  char* const out_;
  std::size_t size_ = 0;
};

constexpr std::string_view kHighSurrogates = "89abAB";  // what follows \\ud of one

// The length of the escape at the front of `text`, a pair of surrogates being one.
std::size_t escape_bytes(std::string_view text) {
  if (text.substr(1, 1) != "u") return 2;
  const bool is_pair = text.size() > 3 && (text[2] == 'd' || text[2] == 'D') &&
                       kHighSurrogates.find(text[3]) != std::string_view::npos;
  return is_pair ? 12 : 6;
}

// `rest` begins with the quote that ends a string.
bool is_key_before(std::string_view rest) {
  const std::size_t behind = rest.find_first_not_of(" \t\r\n", 1);
  return behind != std::string_view::npos && rest[behind] == ':';
}

// How much of it may be taken alone: no escape and no character is cut in two.
std::size_t piece_of(std::string_view escaped) {
  std::size_t at = 0;
  while (at < kPieceBytes && at < escaped.size())
    at += escaped[at] == '\\' ? escape_bytes(escaped.substr(at)) : 1;
  while (at < escaped.size() && (static_cast<unsigned char>(escaped[at]) & 0xc0) == 0x80) ++at;
  return std::min(at, escaped.size());
}

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kBetweenValues = " \t\r\n,:{}[]";

// true, false, null, or -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? that float64 can hold.
bool is_json_word(std::string_view text) {
  if (text == "true" || text == "false" || text == "null") return true;
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - begin;
  };
  if (i < text.size() && text[i] == '-') ++i;
  const std::size_t first = i;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  double value = 0;
  return i == text.size() && read_number(text, value) == NumberText::Number;
}

// Writes what it stands for to `out`, unless that is null. nullopt: it is no string.
std::optional<std::size_t> unescape(std::string_view escaped, char* out) {
  std::size_t written = 0;
  std::string quoted;
  while (!escaped.empty()) {
    const std::size_t size = piece_of(escaped);
    quoted.assign(1, '"').append(escaped.substr(0, size)).push_back('"');
    escaped.remove_prefix(size);
    StringTaker taker(out == nullptr ? nullptr : out + written);
    if (!nlohmann::json::sax_parse(quoted, &taker)) return std::nullopt;
    written += taker.size();
  }
  return written;
}

}  // namespace

JsonText::JsonText(std::string_view document, std::size_t long_bytes, OddValues odd_values)
    : document_(document) {
  const bool looks_at_values = odd_values == OddValues::AsNull;
  if (document.size() >= long_bytes || looks_at_values) {
    for (std::size_t at = 0; at < document.size();) {
      const char c = document[at];
      if (c == '"') {
        at = take_string(at + 1, long_bytes);
      } else if (looks_at_values && kBetweenValues.find(c) == std::string_view::npos) {
        at = take_bare(at);
      } else {
        ++at;
        if (!looks_at_values || c != ':') continue;
        const std::size_t next = document.find_first_not_of(kBlanks, at);
        if (next == std::string_view::npos) break;
        if (document[next] == ',' || document[next] == '}') stand_in(next, next);
      }
    }
  }
  add_piece(seen_bytes_, document.size());
  if (pieces_.empty()) pieces_.push_back({document, 0, false});
}

void JsonText::add_piece(std::size_t begin, std::size_t end) {
  if (end > begin) pieces_.push_back({document_.substr(begin, end - begin), begin, false});
  seen_bytes_ = end;
}

// `begin` is behind the quote. Answers where to go on.
std::size_t JsonText::take_string(std::size_t begin, std::size_t long_bytes) {
  std::size_t end = begin;
  for (; end < document_.size() && document_[end] != '"'; ++end)
    if (document_[end] == '\\') ++end;
  if (end >= document_.size()) return document_.size();
  const std::string_view text = document_.substr(begin, end - begin);
  if (text.size() >= long_bytes && !is_key_before(document_.substr(end))) {
    add_piece(seen_bytes_, begin);
    seen_bytes_ = end;
    long_strings_.push_back({text, strings_});
  }
  ++strings_;
  return end + 1;
}

// A value without quotes. With blanks inside it is one value all the same: `21.5 C`.
std::size_t JsonText::take_bare(std::size_t begin) {
  const std::size_t end = std::min(document_.find_first_of(",:{}[]\"", begin), document_.size());
  std::string_view text = document_.substr(begin, end - begin);
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text == "null") ++nulls_;
  // A key without quotes is for the parser to complain of.
  const bool is_key = end < document_.size() && document_[end] == ':';
  if (!is_key && !is_json_word(text)) stand_in(begin, begin + text.size());
  return end;
}

void JsonText::stand_in(std::size_t begin, std::size_t end) {
  if (odd_values_.size() == kOddJsonValuesMax) return;
  add_piece(seen_bytes_, begin);
  pieces_.push_back({"null", begin, true});
  seen_bytes_ = end;
  odd_values_.push_back({document_.substr(begin, end - begin), nulls_++});
}

std::optional<std::string_view> JsonText::Turn::take(const std::vector<Hidden>& hidden) {
  const std::uint64_t now = ordinal++;
  if (next == hidden.size() || hidden[next].ordinal != now) return std::nullopt;
  return hidden[next++].text;
}

std::optional<std::string_view> JsonText::next_string() {
  return long_strings_.empty() ? std::nullopt : string_turn_.take(long_strings_);
}

std::optional<std::string_view> JsonText::next_null() {
  return odd_values_.empty() ? std::nullopt : null_turn_.take(odd_values_);
}

std::size_t JsonText::in_document(std::size_t position) const {
  std::size_t piece = 0;
  for (; piece + 1 < pieces_.size() && position > pieces_[piece].text.size(); ++piece)
    position -= pieces_[piece].text.size();
  return pieces_[piece].at + (pieces_[piece].is_stand_in ? 0 : position);
}

OddValue read_odd_value(std::string_view text) {
  OddValue value;
  if (text == "True" || text == "TRUE" || text == "False" || text == "FALSE") {
    value.kind = OddValue::Kind::Bool;
    value.boolean = text.front() == 'T';
    return value;
  }
  switch (read_number(text, value.number)) {
    case NumberText::Number: value.kind = OddValue::Kind::Number; break;
    case NumberText::NoValue: value.kind = OddValue::Kind::NoValue; break;
    case NumberText::TooLarge:
    case NumberText::Other: break;
  }
  return value;
}

bool is_json_string(std::string_view escaped) {
  return unescape(escaped, nullptr).has_value();
}

std::string_view keep_json_string(std::string_view escaped, ReadingBatch& batch) {
  if (escaped.find('\\') == std::string_view::npos) return escaped;
  char* const room = batch.texts.room(escaped.size());
  return {room, unescape(escaped, room).value_or(0)};
}

bool looks_like_whole_object(std::string_view line) {
  std::size_t depth = 0;
  bool in_string = false;
  bool closed = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return false;
      if (--depth == 0) closed = true;
    }
  }
  return closed && depth == 0 && !in_string;
}

Status check_number_lengths(std::string_view document) {
  if (document.size() <= kJsonSliceBytes) return ok();
  bool in_text = false;
  std::size_t length = 0;  // of what is neither text nor between values
  for (std::size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    const bool is_between = c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' ||
                            c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (in_text) {
      if (c == '\\') ++i;
      in_text = c != '"';
    } else if (c == '"' || is_between) {
      in_text = c == '"';
      length = 0;
    } else if (++length > kJsonNumberMaxBytes) {
      return invalid_argument("not JSON at byte " + std::to_string(i + 1) +
                              ": a number has more than " + std::to_string(kJsonNumberMaxBytes) +
                              " characters");
    }
  }
  return ok();
}

}  // namespace edgecase::wire
