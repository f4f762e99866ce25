// Words that the eraser and the verifier ask targets with. Inside daemon/forward only; no state.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "forward/answer.h"
#include "forward/http_client.h"

namespace edgecase::forward {

inline Answer later(const std::string& why, int status = 0) {
  return {.verdict = Verdict::Later, .status = status, .why = why};
}

inline std::string in_marks(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

// As VictoriaMetrics' selectors have it.
inline std::string label_text(const std::string& key, const std::string& value) {
  const bool is_plain = !key.empty() && !(key[0] >= '0' && key[0] <= '9') &&
                        std::all_of(key.begin(), key.end(), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                 (c >= '0' && c <= '9') || c == '_';
                        });
  return (is_plain ? key : in_marks(key, '"')) + "=" + in_marks(value, '"');
}

inline nlohmann::json parsed(const HttpAnswer& http) {
  return nlohmann::json::parse(http.body, nullptr, false);
}

}  // namespace edgecase::forward
