// Questions of the eraser and the verifier to targets: words, marks, and InfluxQL statements to
// InfluxDB 1 with the condition that chooses one series there. Inside daemon/forward only. One
// thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "forward/courier.h"
#include "forward/http_client.h"
#include "wire/names.h"

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

// A target that is asked for something else than to take readings: HttpTarget, or a test's.
class Asked {
 public:
  virtual ~Asked() = default;
  // Taken: `http` is the answer, whatever it is but 401, 429 and 5xx.
  virtual Answer ask(const std::string& method, const std::string& path, HttpAnswer& http) = 0;
};

// Rows of the first series that a statement answers.
struct InfluxRows {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> values;  // as text; nothing is empty
  bool is_refused = false;                       // 403
  bool is_cut = false;                           // there are more than an answer may hold
};

class InfluxAsker {
 public:
  explicit InfluxAsker(Asked& asked) : asked_(asked) {}

  // Later: it answers an error.
  Answer query(const std::string& database, const std::string& statement, InfluxRows& rows);
  // `is_there`: the database is; statements about one that is not are errors.
  Answer find_database(const std::string& database, bool& is_there, bool& is_refused);
  // ` WHERE "host" = 'a' AND "room" = ''`: tags that others of the measurement have, too.
  Answer series_condition(const std::string& database, const std::string& measurement,
                          const wire::Identity::Tags& tags, std::string& condition,
                          bool& is_refused);
  static std::string name_text(std::string_view name);

 private:
  Asked& asked_;
};

}  // namespace edgecase::forward
