// Units that stand behind FROM, and how functions are fed from them. One unit is the points of one
// measurement's tag set (its fields joined by their times), or of one group of a statement in
// brackets. Whoever groups by tags merges units. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "influxql/formula.h"
#include "influxql/points.h"
#include "influxql/series_reader.h"
#include "influxql/time_windows.h"
#include "wire/names.h"

namespace edgecase::influxql {

// A series that is read, and the column that its values are of; or two, where a condition asks for
// what is selected as well.
struct FeedPart {
  std::size_t column = 0;
  std::unique_ptr<SeriesReader> reader;
  std::optional<std::size_t> condition = std::nullopt;
};

// The feed of functions to which the order of a window's values is all one: one series after
// another, so that none waits for the others, and what is known of many values stands for them.
// FunctionRows empties it window by window.
class WindowFeed {
 public:
  // `tells_lacks`: windows that cannot be answered are told by lacks().
  WindowFeed(std::vector<FeedPart> parts, bool is_descending, bool tells_lacks);

  // Before all else, where nothing is cut into windows: of many series one is read to its end
  // before the next one begins, so that no more scans are open than may stay open.
  void take_turns();
  // A time before which (against the order of time: behind which) there is no value, and none that
  // is lacking; none: there is none left at all.
  Result<std::optional<std::int64_t>> next_time();
  // The column of what comes next, if it may lie in the window; and to give `taker` all of that
  // series that does.
  std::optional<std::size_t> next_column(const Window& window) const;
  Status feed(const Window& window, ValueTaker& taker);
  // The numbers from next_time() on that it holds already, where it has one series, of which
  // nothing is lacking; and to step over the first of them, which somebody has `taken`.
  wire::Numbers held_numbers() const;
  Status step_over(const wire::Numbers& taken);
  // The same of sums of windows, as SeriesReader has them.
  std::span<const WindowSums::Window> held_sums() const;
  Status step_over(std::span<const WindowSums::Window> taken);
  // Whether some values of the column cannot be had of the window; and it is told.
  bool lacks(const Window& window, std::size_t column) const;
  void end(const Window& window);

 private:
  struct Next {
    std::int64_t time_ns = 0;
    std::size_t part = 0;
  };
  bool comes_later(const Next& a, const Next& b) const;
  Status push(std::size_t part);
  Status push_next();

  std::vector<FeedPart> parts_;
  std::size_t turn_ = 0;              // the part whose turn is next, ...
  bool takes_turns_ = false;          // ... if they take any
  std::vector<std::size_t> lacking_;  // parts, ...
  std::vector<bool> is_lacking_;      // ... each once
  const bool is_descending_;
  bool is_begun_ = false;
  std::optional<std::int64_t> told_ns_;  // the end of what was told
  std::vector<Next> heap_;               // of parts that have something, the next one in front
};

// The same of units whose points have several values, or are those of a statement in brackets: the
// points of a window unit after unit, many at once where they are at hand so. Where nothing is cut
// into windows one unit is read after the other.
class PointFeed {
 public:
  using Open = std::function<Result<std::unique_ptr<PointSource>>(std::size_t unit)>;

  PointFeed(std::size_t units, Open open, bool is_descending, bool is_cut)
      : units_(units), open_(std::move(open)), is_descending_(is_descending), is_cut_(is_cut) {}

  // None: there is no point left.
  Result<std::optional<std::int64_t>> next_time();
  // What is at hand of the unit whose turn it is, and lies in the window, which holds next_time():
  // points, or numbers side by side.
  class Taker {
   public:
    virtual ~Taker() = default;
    virtual Status take(const Point& point) = 0;
    virtual Status take(const NumberRows& rows, std::size_t begin, std::size_t end) = 0;
  };
  Status feed(const Window& window, Taker& taker);

 private:
  struct Unit {
    std::unique_ptr<PointSource> points;
    NumberRows many;
    std::size_t next = 0;  // of them
    Point point;           // where there are not many
    std::size_t place = 0;
    std::int64_t time_ns = 0;
  };
  bool comes_later(const Unit& a, const Unit& b) const;
  Status push(std::unique_ptr<Unit> unit);

  const std::size_t units_;
  const Open open_;
  const bool is_descending_, is_cut_;
  std::size_t opened_ = 0;
  std::vector<std::unique_ptr<Unit>> heap_;  // the next one in front
};

// What a name stands for, of all that is behind FROM. Null and no tag: nothing is stored of it.
struct NameKind {
  Cell::Kind kind = Cell::Kind::Null;
  bool is_tag = false;

  bool is_known() const { return is_tag || kind != Cell::Kind::Null; }
  // InfluxDB's order, where sources differ: float, integer, text, truth value, tag.
  void merge(const NameKind& other);
};

// A value that is asked of each point.
struct Column {
  std::string name;
  Cell::Kind kind = Cell::Kind::Null;  // what values become; Null: there are none
  bool is_tag = false;
  // Asked for by WHERE: makes no point, and a tag that is missing is an empty text rather than
  // null.
  bool is_condition = false;

  friend bool operator==(const Column&, const Column&) = default;
};

// Whether a condition asks for what one of `parts` of the same series, from `first` on, reads
// already; that is of its column, too, then.
bool joins_part(const std::vector<Column>& columns, std::size_t column, std::size_t first,
                std::vector<FeedPart>& parts);

struct UnitKey {
  std::string name;           // measurement
  wire::Identity::Tags tags;  // ordered by key
};
// Empty where it has no such tag.
std::string_view tag_of(const UnitKey& key, std::string_view tag);

// How units are chosen and read.
struct Choice {
  std::vector<Column> columns;
  // WHERE, over `columns`: of what is stored, and of rows of a statement in brackets.
  std::optional<Formula> where, where_of_rows;
  // What it says of tags for certain: this one has this value.
  std::vector<std::pair<std::string, std::string>> equal_tags;
  TimeSpan span;
  bool is_descending = false;
  // What this statement and those around it group by; units of a statement in brackets are
  // groups by these as well.
  std::vector<std::string> tags;
  std::int64_t every_ns = 0, offset_ns = 0;  // GROUP BY time; 0: none
  bool is_local = false;                     // its windows are those of a time zone
  // SLIMIT and SOFFSET, of groups by these tags within each measurement.
  std::vector<std::string> limit_tags;
  std::int64_t series_limit = 0, series_offset = 0;
};

class Units {
 public:
  virtual ~Units() = default;

  virtual Result<NameKind> find(const std::string& name) = 0;
  // What wildcards stand for.
  virtual Status list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) = 0;

  // Once, before what follows. LimitReached.
  virtual Status choose(const Choice& choice) = 0;
  virtual std::size_t size() const = 0;
  virtual Result<UnitKey> key(std::size_t unit) const = 0;
  // Points with the columns of the choice, for which WHERE holds.
  virtual Result<std::unique_ptr<PointSource>> open(std::size_t unit) = 0;
  // Whether the same can be had as parts of a feed; the parts.
  virtual bool has_parts() const { return false; }
  virtual Status add_parts(std::size_t /*unit*/, std::vector<FeedPart>& /*parts*/) { return ok(); }
};

// For keys whose parts are compared one after another, whatever characters they have.
void append_key_part(std::string_view part, std::string& key);

// Whether WHERE may hold for points of this unit.
bool may_hold(const Choice& choice, const UnitKey& key);
// The columns of `choice` that are tags.
void set_tags(const Choice& choice, const UnitKey& key, std::vector<Cell>& cells);

}  // namespace edgecase::influxql
