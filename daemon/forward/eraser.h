// The eraser asks one target to erase: an EdgeCase by its erase route, InfluxDB 1 by DELETE and
// DROP SERIES, VictoriaMetrics by delete_series. Exactly what is named goes there; where a target
// can only take more along, it is not asked, and the answer is NotPossible. One thread.
//
//   EdgeCase         the same names and times; its certificates' numbers are ours to look at
//   InfluxDB 1       series by all their tags, tags that others have and these have not included;
//                    a field goes only with all other fields that its series has there
//   VictoriaMetrics  whole series, no ranges of times; names stay in its index: NotProvable
//   others           NotPossible
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/settings.h"
#include "forward/courier.h"
#include "forward/erasures.h"
#include "forward/http_client.h"
#include "forward/series_names.h"
#include "forward/thinned.h"
#include "forward/windows.h"
#include "wire/names.h"

namespace edgecase::forward {

// Questions of the eraser and the verifier to targets: words, marks, and InfluxQL statements to
// InfluxDB 1 with the condition that chooses one series there. Inside daemon/forward only. One
// thread.

inline Answer later(const std::string& why, int status = 0) {
  return {.verdict = Verdict::Later, .status = status, .why = why};
}

inline Status status_of(const Answer& answer) {
  if (answer.verdict == Verdict::Denied) return not_allowed(answer.why);
  return unavailable("the target: " + answer.why);
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

// An answer becomes worse, never better.
inline void worsen(TargetErasure& result, ErasureStep step, const std::string& why) {
  if (step <= result.step) return;
  result.step = step;
  result.why = why;
}

class Eraser {
 public:
  enum class Kind : unsigned char { Unknown, EdgeCase, Influx1, Victoria, Other };

  // `windows` outlives it; null: there are none.
  Eraser(Asked& asked, const config::ForwardSettings& settings, const config::ForwardTarget& target,
         const Shape& shape = {}, const WindowsThere* windows = nullptr);

  // What it is; Unknown until find_kind() was answered.
  Kind kind() const { return kind_; }
  // Why it erases nothing; empty: it does, or it is not known.
  std::string cannot() const;
  // Asks what it is, once. Taken: kind() is known.
  Answer find_kind();

  // The names of one chunk after another; `step` and `why` become worse from chunk to chunk, never
  // better. Anything but Taken: again later, from the beginning of the chunk.
  using AllNames = std::function<Status(const std::function<void(const ErasedName&)>& take)>;
  Answer erase(const ErasureOrder& order, const std::vector<ErasedName>& names,
               const AllNames& all_names, TargetErasure& result);
  // Lifts the fences of certificates of an EdgeCase. Taken: they are, or `why` says why they stay.
  Answer lift(const TargetErasure& erased, std::string& why);
  // Looks at certificates of an EdgeCase; Taken: `result` says what they say.
  Answer look(TargetErasure& result);

 private:
  // Series of one measurement with the same tags: a row of InfluxDB.
  struct Group {
    std::string database, measurement;
    wire::Identity::Tags tags;
    friend auto operator<=>(const Group&, const Group&) = default;
  };
  using Groups = std::map<Group, std::set<std::string>>;  // fields

  // What is asked at once: the order itself; or a window that its range cuts, which begins before
  // it and is erased whole, and nothing beside it.
  struct Wish {
    ErasureOrder order;
    std::optional<std::int64_t> cut_by_ns = {};  // where that range begins

    // Whether windows of that span go.
    bool takes(const SentWindows::Span& span) const;
  };
  // What of it the target takes, as it is called there: of thinned targets, the columns; of others,
  // it, and the columns beside it where windows went. Errors: of WindowsThere.
  using NameTaker = std::function<void(const ErasedName& name)>;
  Status each_there(const Wish& wish, const ErasedName& name, const NameTaker& take,
                    TargetErasure& result) const;
  Status each_column(const Wish& wish, const ErasedName& name, ErasedName there,
                     const NameTaker& take, TargetErasure& result) const;
  Status each_guessed_column(const Wish& wish, const ErasedName& name, ErasedName there,
                             const NameTaker& take) const;
  Result<std::set<std::int64_t>> cut_windows(const ErasureOrder& order,
                                             const std::vector<ErasedName>& names,
                                             TargetErasure& result) const;
  // Numbers of series that nobody knows here any more, as far as windows of them went.
  Status find_gone(const ErasureOrder& order, std::vector<ErasedName>& names,
                   TargetErasure& result) const;
  ErasureOrder order_there(ErasureOrder order) const;
  Answer erase_part(const Wish& wish, const std::vector<ErasedName>& names,
                    const AllNames& all_names, TargetErasure& result);
  Groups groups_of(const std::vector<ErasedName>& there, TargetErasure& result) const;
  std::string database_of(const std::string& namespace_name) const;
  Answer erase_at_edgecase(const ErasureOrder& order, const std::vector<ErasedName>& there,
                           TargetErasure& result);
  Answer ask_edgecase(const std::string& path, TargetErasure& result);
  Answer erase_at_influx(const Wish& wish, const Group& group, const std::set<std::string>& fields,
                         const AllNames& all_names, TargetErasure& result);
  Answer erase_at_victoria(const Group& group, const std::set<std::string>& fields,
                           TargetErasure& result);

  Asked& asked_;
  const config::ForwardTarget target_;
  const WatchedTarget watched_;
  const std::string database_, namespace_, bucket_;
  const std::int64_t every_ns_;
  const Pseudonyms pseudonyms_;
  const WindowsThere* const windows_;
  Kind kind_ = Kind::Unknown;
};

}  // namespace edgecase::forward
