// InfluxQL statements to a target of InfluxDB 1, and the words that choose one series among all
// that share its measurement there. For the eraser and the verifier. One thread.
#pragma once

#include <string>
#include <vector>

#include "forward/answer.h"
#include "wire/identity.h"

namespace edgecase::forward {

struct HttpAnswer;

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
