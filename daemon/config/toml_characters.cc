#include "config/toml_characters.h"

#include <cstddef>

namespace edgecase::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kStartsOfNumber = "+-0123456789";
constexpr std::string_view kBeforeValue = "=[,";
constexpr std::string_view kEndsOfValue = ",]}";

// Goes over the text character by character and knows whether it is within quotes or a comment, as
// the parser does: of a value that begins as a number it takes what a number cannot have, too, up
// to the value's end, so that no quotes begin in it.
class TomlWalk {
 public:
  TomlWalk(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  Status check() {
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      const bool is_space = byte == '\t' || byte == '\n' || byte == '\r';
      if ((byte < 0x20 && !is_space) || byte == 0x7f) return wrong("a control character");
      if (byte >= 0x80 && quotes_.empty() && !in_comment_) {
        return wrong("a character that belongs in quotes");
      }
      // The parser asks whether it is a blank, which of many it does not know.
      if (byte >= 0x80 && is_behind_backslash_) {
        return wrong("a character beyond ASCII right behind a backslash, or the blanks after one");
      }
      const std::size_t end = at_ + look();
      for (; at_ < end; ++at_) count(text_[at_]);
    }
    return ok();
  }

 private:
  // Enters and leaves quotes and comments; how many bytes that takes.
  std::size_t look() {
    const char c = text_[at_];
    const std::string_view rest = text_.substr(at_);
    if (c == '\n' && quotes_.size() <= 1) {
      in_comment_ = false;
      in_number_ = false;
      quotes_ = {};
      is_behind_backslash_ = false;
      starts_line_ = true;
    } else if (in_comment_) {
      return 1;
    } else if (!quotes_.empty()) {
      // What a backslash escapes is no end.
      const bool may_escape = quotes_.front() == '"';
      if (may_escape && (rest.starts_with(R"(\\)") || rest.starts_with(R"(\")"))) {
        is_behind_backslash_ = false;
        return 2;
      }
      const bool is_blank = kBlanks.find(c) != std::string_view::npos;
      is_behind_backslash_ = may_escape && (c == '\\' || (is_behind_backslash_ && is_blank));
      if (!rest.starts_with(quotes_)) return 1;
      const std::size_t size = quotes_.size();
      quotes_ = {};
      return size;
    } else if (c == '#') {
      in_comment_ = true;
      in_number_ = false;
    } else if ((c == '"' || c == '\'') && !in_number_) {
      const std::string_view three = c == '"' ? R"(""")" : "'''";
      quotes_ = rest.starts_with(three) ? three : three.substr(0, 1);
      note('"');
      return quotes_.size();
    } else {
      note(c);
    }
    return 1;
  }

  // Keeps up with where a number begins and ends, for a character outside of quotes and comments.
  void note(char c) {
    const bool is_blank = kBlanks.find(c) != std::string_view::npos;
    if (is_blank || kEndsOfValue.find(c) != std::string_view::npos) {
      in_number_ = false;
    } else if (kStartsOfNumber.find(c) != std::string_view::npos && may_start_value()) {
      in_number_ = true;
    }
    follows_blank_ = is_blank;
    if (is_blank) return;
    previous_ = c;
    starts_line_ = false;
  }

  // Keys do so too after a comma or within `[ ]`: names of settings do not begin with a digit.
  bool may_start_value() const {
    if (kBeforeValue.find(previous_) != std::string_view::npos) return true;
    return follows_blank_ && !starts_line_ && previous_ != '{';  // the time after a date
  }

  void count(char c) {
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {  // a UTF-8 character is one column
      ++column_;
    }
  }

  Status wrong(std::string_view what) const {
    return invalid_argument(name_ + ":" + std::to_string(line_) + ":" + std::to_string(column_) +
                            ": not TOML: " + std::string(what));
  }

  const std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t column_ = 1;
  std::string_view quotes_;           // that will end the text that at_ is in; empty: it is in none
  bool is_behind_backslash_ = false;  // in quotes, but for blanks
  bool in_comment_ = false;
  bool in_number_ = false;
  // What stands outside of quotes and comments, before at_: its last character but for blanks,
  // whether a blank came after that, and whether it was on an earlier line.
  char previous_ = '\n';
  bool follows_blank_ = true;
  bool starts_line_ = true;
};

}  // namespace

Status check_toml_characters(std::string_view text, const std::string& name) {
  return TomlWalk(text, name).check();
}

}  // namespace edgecase::config
