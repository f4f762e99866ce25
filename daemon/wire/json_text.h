// JSON: a document as the parser is to see it (JsonText), what is asked of its text before that,
// and values and ends of answers as they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "wire/encoding.h"
#include "wire/reading.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::wire {

// A string between its quotes is long from here on, keys excepted.
inline constexpr std::size_t kLongJsonStringBytes = 64u << 10;

// Values that are none in JSON, in one document; with more it is no JSON.
inline constexpr std::size_t kOddJsonValuesMax = 65'536;

// What stands where a value should: `AsNull` costs a look at each byte, so a document is first
// parsed with `Refused`, and again where that failed.
enum class OddValues : unsigned char { Refused, AsNull };

// A document as the library is to see it.
//
// Long strings stay where they are: the library would copy each several times over, and a document
// may be one string of 16 MiB. Values that are none in JSON, as firmware prints them (`nan`, `+5`,
// `1e400`, nothing at all), would end the parser: where asked for, it sees `null` instead.
//
//   JsonText text(document);
//   parse(text, sax);   // string() of each long string gets an empty one ...
//   ... in key() and in string(): if (auto escaped = text.next_string()) ...
//   ... in null(): if (auto odd = text.next_null()) ... read_odd_value(*odd) ...
//
// Borrows the document. One thread's.
class JsonText {
 public:
  explicit JsonText(std::string_view document, std::size_t long_bytes = kLongJsonStringBytes,
                    OddValues odd_values = OddValues::Refused);

  struct Piece {
    std::string_view text;
    std::size_t at = 0;        // in the document
    bool is_stand_in = false;  // it is not what stands there
  };

  // Goes through what the parser sees.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const Piece* piece, std::size_t at) : piece_(piece), at_(at) {}
    reference operator*() const { return piece_->text[at_]; }
    Iterator& operator++() {
      if (++at_ == piece_->text.size()) {
        ++piece_;
        at_ = 0;
      }
      return *this;
    }
    bool operator==(const Iterator& other) const {
      return piece_ == other.piece_ && at_ == other.at_;
    }
    bool operator!=(const Iterator& other) const { return !(*this == other); }

   private:
    const Piece* piece_;  // none is empty
    std::size_t at_;
  };
  Iterator begin() const { return {pieces_.data(), 0}; }
  Iterator end() const { return {pieces_.data() + pieces_.size(), 0}; }

  // To be called for each string that the parser comes to, keys included. Of a long one, which it
  // takes for an empty one: what lies between its quotes.
  std::optional<std::string_view> next_string();
  // To be called for each null. Of one that stands for another value: that, without blanks around.
  std::optional<std::string_view> next_null();
  // Where something lies in the document that the parser says it found at `position`.
  std::size_t in_document(std::size_t position) const;

  bool is_whole() const { return pieces_.size() == 1 && !pieces_.front().is_stand_in; }
  bool has_odd_values() const { return !odd_values_.empty(); }
  std::string_view document() const { return document_; }

 private:
  // What the parser does not see, and which of its kind the parser takes it for.
  struct Hidden {
    std::string_view text;
    std::uint64_t ordinal = 0;
  };
  // Goes through `hidden` as the parser comes to one after the other.
  struct Turn {
    std::uint64_t ordinal = 0;
    std::size_t next = 0;
    std::optional<std::string_view> take(const std::vector<Hidden>& hidden);
  };

  void add_piece(std::size_t begin, std::size_t end);
  std::size_t take_string(std::size_t at, std::size_t long_bytes);
  std::size_t take_bare(std::size_t at);
  void stand_in(std::size_t begin, std::size_t end);

  const std::string_view document_;
  std::vector<Piece> pieces_;
  std::vector<Hidden> long_strings_;
  std::vector<Hidden> odd_values_;
  std::uint64_t strings_ = 0;   // in the document
  std::uint64_t nulls_ = 0;     // with the odd values
  std::size_t seen_bytes_ = 0;  // of the document, in pieces
  Turn string_turn_, null_turn_;
};

// Parses the document as the library does; it throws only for what the machine lacks.
template <typename Sax>
bool parse_json(const JsonText& text, Sax& sax) {
  if (!text.is_whole()) return nlohmann::json::sax_parse(text.begin(), text.end(), &sax);
  return nlohmann::json::sax_parse(text.document().begin(), text.document().end(), &sax);
}

// What a value that JSON does not know is taken for.
struct OddValue {
  enum class Kind : unsigned char { Number, Bool, NoValue, Bad } kind = Kind::Bad;
  double number = 0;
  bool boolean = false;
};
OddValue read_odd_value(std::string_view text);

// Whether what lies between the quotes of a string is one by the rules of JSON, in UTF-8.
bool is_json_string(std::string_view escaped);
// What it stands for, in the batch; where nothing is escaped, the same bytes. It is one.
std::string_view keep_json_string(std::string_view escaped, ReadingBatch& batch);

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Whether `line` is a JSON object from its first to its last character, as far as braces tell.
bool looks_like_whole_object(std::string_view line);

// InvalidArgument: a number has more than kJsonNumberMaxBytes (reading_json.h). The library keeps
// one several times over before it judges it. Only a large document can hold one that matters.
Status check_number_lengths(std::string_view document);

using Json = nlohmann::ordered_json;

// What is no UTF-8 becomes U+FFFD.
inline std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
// One line.
inline std::string dump(const Json& json) {
  return compact(json) + "\n";
}

inline std::string time_text(std::int64_t time_ns) {
  std::string text;
  append_time(time_ns, text);
  return text;
}

inline Json time_or_null(const std::optional<std::int64_t>& time_ns) {
  return time_ns ? Json(time_text(*time_ns)) : Json(nullptr);
}

}  // namespace edgecase::wire
