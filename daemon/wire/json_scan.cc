#include "wire/json_scan.h"

#include <cstddef>
#include <string>

#include "wire/reading_json.h"

namespace edgecase::wire {

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

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain = 0;  // begin of what needs no escape
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '\t': out.append("\\t"); break;
      default:
        out.append("\\u00");
        out.push_back(kHex[c >> 4]);
        out.push_back(kHex[c & 15]);
    }
  }
  out.append(text.substr(plain));
}

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  append_json_escaped(text, out);
  out.push_back('"');
}

}  // namespace edgecase::wire
