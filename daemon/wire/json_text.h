// JSON documents as the library is to see them.
//
// Long strings stay where they are: the library would copy each several times over, and a document
// may be one string of 16 MiB. Values that are none in JSON, as firmware prints them (`nan`, `+5`,
// `1e400`, nothing at all), would end the parser: where asked for, it sees `null` instead.
//
//   JsonText text(document);
//   parse(text, sax);   // string() of each long string gets an empty one ...
//   ... in key() and in string(): if (auto escaped = text.next_string()) ...
//   ... in null(): if (auto odd = text.next_null()) ... read_odd_value(*odd) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "wire/reading.h"

namespace edgecase::wire {

// A string between its quotes is long from here on, keys excepted.
inline constexpr std::size_t kLongJsonStringBytes = 64u << 10;

// Values that are none in JSON, in one document; with more it is no JSON.
inline constexpr std::size_t kOddJsonValuesMax = 65'536;

// What stands where a value should: `AsNull` costs a look at each byte, so a document is first
// parsed with `Refused`, and again where that failed.
enum class OddValues : unsigned char { Refused, AsNull };

// What the parser sees of a document, and what it does not. Borrows the document. One thread's.
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

}  // namespace edgecase::wire
