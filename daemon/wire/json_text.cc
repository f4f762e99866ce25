#include "wire/json_text.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace edgecase::wire {
namespace {

// Of an escaped string, at a time.
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

// Of the escape at the front of `text`, a pair of surrogates being one.
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

JsonText::JsonText(std::string_view document, std::size_t long_bytes) : document_(document) {
  pieces_.push_back(document);
  if (document.size() < long_bytes) return;
  std::uint64_t ordinal = 0;
  for (std::size_t at = 0; at < document.size(); ++at) {
    if (document[at] != '"') continue;
    const std::size_t begin = at + 1;
    for (at = begin; at < document.size() && document[at] != '"'; ++at)
      if (document[at] == '\\') ++at;
    if (at >= document.size()) return;
    const std::string_view text = document.substr(begin, at - begin);
    if (text.size() >= long_bytes && !is_key_before(document.substr(at))) cut(text, ordinal);
    ++ordinal;
  }
}

void JsonText::cut(std::string_view text, std::uint64_t ordinal) {
  std::string_view& rest = pieces_.back();
  rest = rest.substr(0, static_cast<std::size_t>(text.data() - rest.data()));
  pieces_.push_back(document_.substr(end_of(text)));
  ordinals_.push_back(ordinal);
}

std::size_t JsonText::end_of(std::string_view text) const {
  return static_cast<std::size_t>(text.data() - document_.data()) + text.size();
}

std::optional<std::string_view> JsonText::next_string() {
  if (!has_long_strings()) return std::nullopt;
  const std::uint64_t ordinal = strings_++;
  if (long_strings_ == ordinals_.size() || ordinals_[long_strings_] != ordinal) return std::nullopt;
  const std::string_view before = pieces_[long_strings_], behind = pieces_[long_strings_ + 1];
  ++long_strings_;
  const char* const begin = before.data() + before.size();
  return std::string_view(begin, static_cast<std::size_t>(behind.data() - begin));
}

std::size_t JsonText::in_document(std::size_t position) const {
  std::size_t piece = 0;
  for (; piece + 1 < pieces_.size() && position > pieces_[piece].size(); ++piece)
    position -= pieces_[piece].size();
  return static_cast<std::size_t>(pieces_[piece].data() - document_.data()) + position;
}

bool is_json_string(std::string_view escaped) {
  return unescape(escaped, nullptr).has_value();
}

std::string_view keep_json_string(std::string_view escaped, ReadingBatch& batch) {
  if (escaped.find('\\') == std::string_view::npos) return escaped;
  char* const room = batch.room(escaped.size());
  return {room, unescape(escaped, room).value_or(0)};
}

}  // namespace edgecase::wire
