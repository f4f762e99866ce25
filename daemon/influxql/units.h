// Units that stand behind FROM. One is the points of one measurement's tag set (its fields joined
// by their times), or of one group of a statement in brackets. Whoever groups by tags merges units.
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "influxql/formula.h"
#include "influxql/points.h"
#include "influxql/time_condition.h"
#include "influxql/window_feed.h"
#include "wire/identity.h"

namespace edgecase::influxql {

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
