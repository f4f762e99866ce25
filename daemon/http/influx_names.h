// The names that a SHOW statement lists: in order, each once, however long the listing is. No more
// than kNamesHeldBytes of them are held: the catalog is looked through once for each so many. One
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/status.h"
#include "influxql/formula.h"
#include "influxql/statement.h"

namespace edgecase::http {

inline constexpr std::size_t kNamesHeldBytes = 4u << 20;

// One name; `group` is the measurement where the answer has a series for each. A part that is not
// there is empty.
struct Name {
  std::string_view group, first, second;
};

class Names {
 public:
  using Take = std::function<void(const Name& name)>;
  // Looks through everything and hands over every name, in whatever order and as often as it comes.
  using Look = std::function<Status(const Take& take)>;

  explicit Names(Look look, std::size_t held_max_bytes = kNamesHeldBytes)
      : look_(std::move(look)), held_max_bytes_(held_max_bytes) {}

  // The next name, valid until the next call; it stays the next one until pop(). False: there are
  // no more.
  Result<bool> peek(Name& name);
  void pop();
  // Forgets what is held: peek() looks anew, for what comes behind the name that was popped last.
  void drop();

 private:
  // Where in text_ its three parts lie, one behind another.
  struct Held {
    std::uint32_t at = 0, size = 0;
    std::uint16_t group = 0, first = 0;
  };
  static constexpr std::size_t kRecentMax = 1024;

  Status look_through();
  void take(const Name& name);
  void sort();
  void shrink();
  Name name_of(const Held& held) const;
  std::size_t held_bytes() const { return text_.size() + names_.size() * sizeof(Held); }

  const Look look_;
  const std::size_t held_max_bytes_;
  std::string text_;
  std::vector<Held> names_;            // in order once a look has ended
  std::vector<std::uint32_t> recent_;  // numbers of names_, from 1, by hash: most come again soon
  std::size_t next_ = 0;               // of names_
  bool has_looked_ = false;
  bool is_all_ = false;  // no others come behind them
  // What a look leaves out: names up to the one that was popped last, and from the first one on
  // that it had no room for.
  struct Bound {
    bool is_there = false;
    std::string group, first, second;

    void set(const Name& name) {
      *this = {true, std::string(name.group), std::string(name.first), std::string(name.second)};
    }
    Name name() const { return {group, first, second}; }
  };
  Bound last_, beyond_;
};

// Which names WITH KEY and WITH MEASUREMENT take.
class NameFilter {
 public:
  static Result<NameFilter> make(const influxql::NameMatch& match) {
    NameFilter made;
    made.match_ = match;
    const bool is_pattern =
        match.op == influxql::Operator::Matches || match.op == influxql::Operator::NotMatches;
    if (is_pattern) {
      EC_ASSIGN_OR_RETURN(made.pattern_, influxql::Pattern::compile(match.regex));
    }
    return made;
  }
  bool takes(std::string_view name) const {
    if (match_.op == influxql::Operator::None) return true;
    const bool is_wanted =
        match_.op == influxql::Operator::Equal || match_.op == influxql::Operator::Matches;
    const bool is_found =
        pattern_ ? pattern_->matches(name)
                 : std::find(match_.names.begin(), match_.names.end(), name) != match_.names.end();
    return is_found == is_wanted;
  }

 private:
  influxql::NameMatch match_;
  std::optional<influxql::Pattern> pattern_;
};

}  // namespace edgecase::http
