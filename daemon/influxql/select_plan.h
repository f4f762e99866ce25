// The plan of a SELECT: its groups, each of them the rows of some units. Made in two steps, as
// statements in brackets need: make() from the inside out, since a statement knows its columns by
// those of its sources; choose() from the outside in, since it reads what the one around it needs.
// One thread; the account must outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "influxql/functions.h"
#include "influxql/point_sources.h"
#include "influxql/select_check.h"
#include "influxql/series_reader.h"
#include "influxql/units.h"

namespace edgecase::influxql {

// What a statement in brackets is told by the one around it, before anything is known.
struct Around {
  bool is_inner = false;
  bool is_descending = false;
  std::int64_t every_ns = 0, offset_ns = 0;  // GROUP BY time; 0: none
};

// What is asked of points for a name whose cast says what it stands for, as SelectPlan sets it.
Column column_of(const Expr& name);

class SelectPlan {
 public:
  // InvalidArgument, NotFound: InfluxDB's words.
  static Result<std::unique_ptr<SelectPlan>> make(ReadingAccount& account,
                                                  std::unique_ptr<SelectStatement> statement,
                                                  const Around& around);

  struct Output {
    std::string name;  // as a field of a statement around it is called
    NameKind kind;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<std::string>& own_tags() const { return own_tags_; }  // of GROUP BY
  // Names in the answer, the time's first.
  std::vector<std::string> columns() const;

  // Takes what it needs from the statement around it, whose columns and WHERE say nothing here.
  // LimitReached.
  Status choose(const Choice& around);
  // The same for the outermost statement.
  Status choose();

  // Groups, in the order in which they are answered.
  std::size_t size() const { return groups_.size(); }
  Result<UnitKey> key(std::size_t group) const;  // its tags are those that it is grouped by
  Result<std::unique_ptr<PointSource>> open(std::size_t group);

  bool has_functions() const { return has_functions_; }
  // Whether what was opened last has rows without a value where it cannot answer.
  bool tells_lacks() const { return tells_lacks_; }
  // Whether the rows of each group all come by PointSource::next_many().
  bool gives_number_rows() const;
  const TimeSpan& span() const { return span_; }
  std::int64_t every_ns() const { return grouping_.every_ns; }  // of GROUP BY time; 0: none
  const wire::TimeZone* zone() const { return zone_ ? &*zone_ : nullptr; }
  bool is_descending() const { return is_descending_; }

 private:
  struct Ref {
    std::uint32_t source = 0, unit = 0;
  };
  struct Group {
    std::uint32_t first = 0, count = 0;  // of refs_
  };

  explicit SelectPlan(ReadingAccount& account) : account_(account) {}
  Status read_statement(const Around& around);
  Status find_sources();
  Status check_source(const Source& source) const;
  Status expand();
  Status resolve_names();
  Status resolve_where();
  void note_equal_tags(const Expr& where);
  Result<NameKind> stored_kind(const Expr& name) const;
  Status resolve(Expr& name) const;
  Result<bool> is_value(const Expr& name, const Column& column) const;
  std::size_t place_of(const Column& column);
  Status make_formulas();
  Status make_outputs();
  Result<FunctionPlan> make_functions() const;
  Result<NameKind> kind_of(const Expr& expression, const std::vector<Cell::Kind>& leaf_kinds) const;
  bool has_anything() const;
  Status check_windows() const;
  void choose_edge();
  Result<std::unique_ptr<WindowFeed>> open_feed(std::size_t group);
  Status group_units();

  ReadingAccount& account_;
  std::unique_ptr<SelectStatement> statement_;
  std::optional<wire::TimeZone> zone_;
  std::string time_name_ = "time";
  Grouping grouping_;
  TimeSpan span_;  // what is answered
  bool is_inner_ = false, is_descending_ = false, has_functions_ = false;
  bool tells_lacks_ = false;
  bool has_inner_ = false;  // a statement in brackets is among the sources
  std::optional<Expr> where_;

  std::vector<std::unique_ptr<Units>> sources_;
  std::vector<std::string> own_tags_;
  std::vector<Output> outputs_;
  Choice choice_;  // of the units
  std::map<std::string, std::size_t> leaf_places_;
  std::vector<const Expr*> leaves_;
  std::optional<FunctionPlan> functions_;
  // Where first() or last() of whatever columns is all that is asked for, of readings as they are:
  // the first value of each series will do.
  bool are_edges_ = false;
  // Where one is all, of points: the column that it is of.
  std::optional<std::size_t> edge_column_;
  RowShape shape_;

  std::vector<Ref> refs_;
  std::vector<Group> groups_;
};

}  // namespace edgecase::influxql
