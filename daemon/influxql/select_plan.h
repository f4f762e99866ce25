// The plan of a SELECT: its groups, each of them the rows of some units. Made in two steps, as
// statements in brackets need: make() from the inside out, since a statement knows its columns by
// those of its sources; choose() from the outside in, since it reads what the one around it needs.
// One thread; the account must outlive it. A second thread may work out some of its groups
// (SideGroups).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "influxql/executor.h"
#include "influxql/formula.h"
#include "influxql/functions.h"
#include "influxql/points.h"
#include "influxql/series_reader.h"
#include "influxql/statement.h"
#include "influxql/time_windows.h"
#include "influxql/units.h"

namespace edgecase::influxql {

// Makes sources of points: of the fields of a tag set; of several units, in the order of time; of
// those for which WHERE holds; of the rows that the fields of a SELECT come to. One thread.

// The fields of one tag set, joined by their times; `tags`: of columns that are no tags null.
// `columns` outlive it.
std::unique_ptr<PointSource> join_fields(std::vector<FeedPart> parts,
                                         const std::vector<Column>& columns, std::vector<Cell> tags,
                                         bool is_descending);
// Points of one instant in the order of `sources`.
std::unique_ptr<PointSource> merge_points(std::vector<std::unique_ptr<PointSource>> sources,
                                          bool is_descending);
// Only the points of the first instant at which the column has a value, the last one first where
// `are_turned`: all that first() and last() need.
std::unique_ptr<PointSource> edge_points(std::unique_ptr<PointSource> points, std::size_t column,
                                         bool are_turned);
// `where` outlives it.
std::unique_ptr<PointSource> filter_points(std::unique_ptr<PointSource> points,
                                           const Formula& where);

// The rows of one group: what the fields of a SELECT come to for each point, LIMIT and OFFSET, and
// what fill() puts in place of nothing where there is no function.
struct RowShape {
  std::vector<Formula> fields;         // over the cells of a point
  std::int64_t limit = 0, offset = 0;  // 0: none
  // What stands for nothing where there are no functions: previous or a number, in these columns.
  Fill fill = Fill::Null;
  Cell fill_value;
  std::vector<Column> columns;
};

// Points with a cell for each field; `shape` outlives it.
std::unique_ptr<PointSource> make_rows(std::unique_ptr<PointSource> points, const RowShape& shape);

// A SELECT before anything is looked up: is it right, in InfluxDB's words (select_check.cc); what
// wildcards in its fields stand for, their columns and texts (fields.cc). No state; any thread.

// GROUP BY, taken apart.
struct Grouping {
  std::vector<Expr> tags;     // names, wildcards and regular expressions
  std::int64_t every_ns = 0;  // 0: no time()
  std::int64_t offset_ns = 0;
};

Result<Grouping> check_grouping(const std::vector<Expr>& group_by, std::int64_t now_ns,
                                const wire::TimeZone* zone);
// Fields without those that are the time. `needs_function`: GROUP BY time stands in this very
// statement. True: there are functions.
Result<bool> check_fields(const SelectStatement& select, bool needs_function);
Status check_condition(const Expr& where);

// As InfluxDB writes it in its errors.
std::string text_of(const Expr& expression);
std::string_view text_of(Cell::Kind kind);
// What a field is called, by itself: its alias, its function, the names in it.
std::string name_of(const Field& field);

// Names, outside of functions and in them.
void each_name(Expr& expression, const std::function<void(Expr& name)>& visit);
// Functions, and names outside of functions: what stands between operators. Those inside of abs()
// and the like, too.
void each_leaf(const Expr& expression, const std::function<void(const Expr& leaf)>& visit);
bool is_literal(const Expr& expression);
// DISTINCT v as distinct(v).
void make_calls_of_distinct(Expr& expression);

struct NamedKind {
  std::string name;
  NameKind kind;
};
// `stored` is what there is, in the order of the names. InvalidArgument, with InfluxDB's words.
Result<std::vector<Field>> expand_wildcards(std::vector<Field> fields,
                                            const std::vector<NamedKind>& stored);
bool has_wildcard(const std::vector<Field>& fields);

// The names in the arguments of top() and bottom(), which are columns as well.
std::vector<const Expr*> names_beside(const Field& field);
// Names of all columns but the time's; two never have the same one, but where they were given it.
std::vector<std::string> column_names(const std::vector<Field>& fields);

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

// Groups of a SELECT that a second thread works out: every second one, unless the thread that
// answers came to it earlier, which works out those between. It has a plan and an account of its
// own; its rows wait here, so many at most, until the answer comes to them.
class SideGroups {
 public:
  // The statement's plan gives number rows (SelectPlan) and has so many groups; it begins with
  // `first`, in the order in which they are answered. Null: there is no turn, or no thread, to be
  // had.
  static std::unique_ptr<SideGroups> start(query::QueryService& service, const Asking& asking,
                                           std::unique_ptr<SelectStatement> statement,
                                           std::size_t first, std::size_t groups);
  // Waits for the thread, which soon asks whether it is to go on.
  ~SideGroups();

  // Whether the thread has begun with that group. If not it will not: it is the caller's.
  bool has_begun(std::size_t place);
  enum class Taken : unsigned char { Rows, End, NotMade };
  // The next rows of a group that it has, waiting for them; what they are made of is added to the
  // account, and to `given`. NotMade: the thread has ended without it, or found other groups.
  Result<Taken> next(std::size_t place, const UnitKey& key, ReadingAccount& account,
                     query::GivenReadings& given, NumberRows& rows);

 private:
  struct State;
  SideGroups(std::shared_ptr<State> state, std::size_t first)
      : state_(std::move(state)), first_(first) {}

  const std::shared_ptr<State> state_;
  const std::size_t first_;
  std::optional<std::size_t> ended_;  // the group of which all was taken
};

}  // namespace edgecase::influxql
