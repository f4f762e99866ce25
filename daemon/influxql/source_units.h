// The units of what stands behind FROM: of measurements, and of a statement in brackets. One
// thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "influxql/select_plan.h"
#include "influxql/series_reader.h"
#include "influxql/series_view.h"
#include "influxql/units.h"
#include "query/measurement_memo.h"

namespace edgecase::influxql {

// One for each tag set of each measurement that is meant. Kept compact, some bytes a series: names
// and tags are asked of the catalog when they are needed.
class MeasurementUnits final : public Units {
 public:
  // `account` must outlive it. NotFound: "database not found: x". InvalidArgument: a wrong
  // expression.
  // `tier_ns`: of a tier's windows, whose columns are its fields; 0: readings.
  static Result<std::unique_ptr<MeasurementUnits>> find(ReadingAccount& account,
                                                        const std::string& database,
                                                        const Source& source, std::int64_t tier_ns);

  Result<NameKind> find(const std::string& name) override;
  Status list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) override;
  Status choose(const Choice& choice) override;
  std::size_t size() const override { return units_.size(); }
  Result<UnitKey> key(std::size_t unit) const override;
  Result<std::unique_ptr<PointSource>> open(std::size_t unit) override;
  bool has_parts() const override { return !compares_fields_; }
  Status add_parts(std::size_t unit, std::vector<FeedPart>& parts) override;

 private:
  struct Field {
    wire::WindowColumn column = wire::WindowColumn::Count;  // of a tier
    std::vector<catalog::SeriesRow> rows;
    std::optional<Cell::Kind> kind;  // once it was asked for
  };
  struct Unit {
    std::uint32_t first = 0, count = 0;  // of rows_
  };

  MeasurementUnits(ReadingAccount& account, std::int64_t tier_ns)
      : account_(account), tier_ns_(tier_ns) {}
  Status find_series(const std::string& database, const Source& source);
  void add_series(const ReadableSeries& series);
  Result<std::optional<wire::ValueType>> type_of(const ReadableSeries& series,
                                                 const Field& field) const;
  catalog::SeriesId given_by(const ReadableSeries& series) const;
  std::optional<TierField> field_of(const std::string& column, const std::string& field) const;
  Result<Cell::Kind> kind_of(Field& field);
  bool is_asked(const std::string& field) const;
  Status open_parts(std::size_t unit, std::vector<FeedPart>& parts, std::vector<Cell>& tags);
  Status gather();
  Status limit_series();
  // Until the next call; null: the series is gone.
  const ReadableSeries* look_at(catalog::SeriesRow row) const;

  ReadingAccount& account_;
  const std::int64_t tier_ns_;
  mutable ReadableSeries looked_at_;
  std::shared_ptr<const query::Measurement> known_;  // null: it is not kept
  std::map<std::string, Field> fields_;
  std::set<std::string> tags_;
  Choice choice_;
  bool compares_fields_ = false;  // WHERE does; else it holds for a whole unit or not at all
  std::vector<Unit> units_;
  std::vector<catalog::SeriesRow> rows_;  // of the unit's fields that are asked for
};

// Groups of a statement in brackets as units.
class InnerUnits final : public Units {
 public:
  explicit InnerUnits(std::unique_ptr<SelectPlan> plan) : plan_(std::move(plan)) {}

  Result<NameKind> find(const std::string& name) override;
  Status list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) override;
  Status choose(const Choice& choice) override;
  std::size_t size() const override { return groups_.size(); }
  Result<UnitKey> key(std::size_t unit) const override { return plan_->key(groups_[unit]); }
  Result<std::unique_ptr<PointSource>> open(std::size_t unit) override;

 private:
  const std::unique_ptr<SelectPlan> plan_;
  Choice choice_;
  std::vector<std::optional<std::size_t>> places_;  // of each column; none: it is no field of it
  std::vector<std::uint32_t> groups_;               // for which WHERE may hold
};

}  // namespace edgecase::influxql
