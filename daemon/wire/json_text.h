// JSON documents whose long strings stay where they are: the library would copy each several times
// over, and a document may be one string of 16 MiB.
//
//   JsonText text(document);
//   parse(text, sax);   // string() of each long string gets an empty one ...
//   ... in key() and in string(): if (auto escaped = text.next_string()) ...
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

// Of a string between its quotes, keys excepted.
inline constexpr std::size_t kLongJsonStringBytes = 64u << 10;

// What the parser sees of a document, and what it does not. Borrows the document. One thread's.
class JsonText {
 public:
  explicit JsonText(std::string_view document, std::size_t long_bytes = kLongJsonStringBytes);

  // Goes through what the parser sees.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const std::string_view* piece, std::size_t at) : piece_(piece), at_(at) {}
    reference operator*() const { return (*piece_)[at_]; }
    Iterator& operator++() {
      if (++at_ == piece_->size()) {
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
    const std::string_view* piece_;  // none is empty
    std::size_t at_;
  };
  Iterator begin() const { return {pieces_.data(), 0}; }
  Iterator end() const { return {pieces_.data() + pieces_.size(), 0}; }

  // To be called for each string that the parser comes to, keys included. Of a long one, which it
  // takes for an empty one: what lies between its quotes.
  std::optional<std::string_view> next_string();
  // Where something lies in the document that the parser says it found at `position`.
  std::size_t in_document(std::size_t position) const;

  bool has_long_strings() const { return pieces_.size() > 1; }
  std::string_view document() const { return document_; }

 private:
  void cut(std::string_view text, std::uint64_t ordinal);
  std::size_t end_of(std::string_view text) const;

  const std::string_view document_;
  std::vector<std::string_view> pieces_;
  std::vector<std::uint64_t> ordinals_;  // of each long string, which lies between two pieces
  std::uint64_t strings_ = 0;            // that the parser came to
  std::size_t long_strings_ = 0;         // of those
};

// Parses the document as the library does; it throws only for what the machine lacks.
template <typename Sax>
bool parse_json(const JsonText& text, Sax& sax) {
  if (text.has_long_strings()) return nlohmann::json::sax_parse(text.begin(), text.end(), &sax);
  return nlohmann::json::sax_parse(text.document().begin(), text.document().end(), &sax);
}

// Whether what lies between the quotes of a string is one by the rules of JSON, in UTF-8.
bool is_json_string(std::string_view escaped);
// What it stands for, in the batch; where nothing is escaped, the same bytes. It is one.
std::string_view keep_json_string(std::string_view escaped, ReadingBatch& batch);

}  // namespace edgecase::wire
