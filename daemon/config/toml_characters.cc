#include "config/toml_characters.h"

#include <cstddef>

namespace edgecase::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Goes over the text character by character and knows whether it is within quotes or a comment.
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
      quotes_ = {};
    } else if (in_comment_) {
      return 1;
    } else if (!quotes_.empty()) {
      // What a backslash escapes is no end.
      if (quotes_.front() == '"' && (rest.starts_with(R"(\\)") || rest.starts_with(R"(\")"))) {
        return 2;
      }
      if (!rest.starts_with(quotes_)) return 1;
      const std::size_t size = quotes_.size();
      quotes_ = {};
      return size;
    } else if (c == '#') {
      in_comment_ = true;
    } else if (c == '"' || c == '\'') {
      const std::string_view three = c == '"' ? R"(""")" : "'''";
      quotes_ = rest.starts_with(three) ? three : three.substr(0, 1);
      return quotes_.size();
    }
    return 1;
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
  std::string_view quotes_;  // that will end the text that at_ is in; empty: it is in none
  bool in_comment_ = false;
};

}  // namespace

Status check_toml_characters(std::string_view text, const std::string& name) {
  return TomlWalk(text, name).check();
}

}  // namespace edgecase::config
