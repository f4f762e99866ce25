#include "influxql/inner_units.h"

#include <algorithm>
#include <utility>

#include "influxql/cells.h"
#include "influxql/merged_points.h"

namespace edgecase::influxql {
namespace {

// Rows of the statement in brackets as points of the one around it.
class InnerPoints final : public PointSource {
 public:
  InnerPoints(std::unique_ptr<PointSource> rows, const Choice& choice,
              const std::vector<std::optional<std::size_t>>& places, std::vector<Cell> tags)
      : rows_(std::move(rows)), choice_(choice), places_(places), tags_(std::move(tags)) {}

  Result<bool> next(Point& point) override {
    EC_ASSIGN_OR_RETURN(const bool has_row, rows_->next(row_));
    if (!has_row) return false;
    point.time_ns = row_.time_ns;
    point.cells.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Cell& cell = point.cells[i];
      copy_cell(places_[i] ? row_.cells[*places_[i]] : tags_[i], cell);
      const Cell::Kind kind = choice_.columns[i].kind;
      const bool is_number = cell.kind == Cell::Kind::Float || cell.kind == Cell::Kind::Integer;
      if (is_number && (kind == Cell::Kind::Float || kind == Cell::Kind::Integer))
        cast_cell(cell, kind);
    }
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    EC_ASSIGN_OR_RETURN(const bool has_any, rows_->next_many(many_));
    if (!has_any) return false;
    std::swap(rows.times_ns, many_.times_ns);
    rows.columns.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      NumberRows::Column& column = rows.columns[i];
      if (places_[i]) {
        const bool is_wanted_again = std::find(places_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                               places_.end(), places_[i]) != places_.end();
        NumberRows::Column& from = many_.columns[*places_[i]];
        if (is_wanted_again) {
          column = from;
        } else {
          std::swap(column, from);
        }
        cast_column(column, choice_.columns[i].kind);
      } else {
        column.kind = tags_[i].kind;
        if (tags_[i].kind == Cell::Kind::Text) column.text = tags_[i].text;
      }
    }
    return true;
  }
  void expect_all() override { rows_->expect_all(); }

 private:
  // Numbers become each other; else they stay what they are.
  static void cast_column(NumberRows::Column& column, Cell::Kind kind) {
    if (column.is_alike() || column.kind == kind ||
        (kind != Cell::Kind::Float && kind != Cell::Kind::Integer))
      return;
    NumberRows::Column cast;
    cast.kind = kind;
    Cell cell;
    for (std::size_t row = 0; row < column.bits.size(); ++row) {
      column.get(row, cell);
      if (cell.kind != Cell::Kind::Null) cast_cell(cell, kind);
      cast.add(cell);
    }
    std::swap(column, cast);
  }

  NumberRows many_;
  const std::unique_ptr<PointSource> rows_;
  const Choice& choice_;
  const std::vector<std::optional<std::size_t>>& places_;
  const std::vector<Cell> tags_;
  Point row_;
};

}  // namespace

Result<NameKind> InnerUnits::find(const std::string& name) {
  for (const SelectPlan::Output& output : plan_->outputs()) {
    if (output.name == name && output.kind.is_known()) return output.kind;
  }
  const std::vector<std::string>& tags = plan_->own_tags();
  return NameKind{Cell::Kind::Null, std::find(tags.begin(), tags.end(), name) != tags.end()};
}

Status InnerUnits::list(std::map<std::string, NameKind>& fields, std::set<std::string>& tags) {
  for (const SelectPlan::Output& output : plan_->outputs()) fields[output.name].merge(output.kind);
  tags.insert(plan_->own_tags().begin(), plan_->own_tags().end());
  return ok();
}

Status InnerUnits::choose(const Choice& choice) {
  choice_ = choice;
  for (Column& column : choice_.columns) {
    const auto& outputs = plan_->outputs();
    const auto at = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const auto& output) { return output.name == column.name; });
    places_.emplace_back();
    if (at != outputs.end()) {
      places_.back() = static_cast<std::size_t>(at - outputs.begin());
      continue;
    }
    // Any tag that it is grouped by can be asked for in WHERE, as a field only its own.
    const std::vector<std::string>& own = plan_->own_tags();
    column.is_tag =
        column.is_condition || std::find(own.begin(), own.end(), column.name) != own.end();
  }
  EC_TRY(plan_->choose(choice));
  for (std::size_t i = 0; i < plan_->size(); ++i) {
    if (choice_.where_of_rows) {
      EC_ASSIGN_OR_RETURN(const UnitKey group, plan_->key(i));
      std::vector<Cell> cells;
      set_tags(choice_, group, cells);
      std::vector<char> known(cells.size());
      for (std::size_t c = 0; c < known.size(); ++c)
        known[c] = !places_[c] && choice_.columns[c].is_tag ? 1 : 0;
      if (!choice_.where_of_rows->may_hold(cells, known)) continue;
    }
    groups_.push_back(static_cast<std::uint32_t>(i));
  }
  return ok();
}

Result<std::unique_ptr<PointSource>> InnerUnits::open(std::size_t unit) {
  EC_ASSIGN_OR_RETURN(const UnitKey group, key(unit));
  std::vector<Cell> tags;
  set_tags(choice_, group, tags);
  EC_ASSIGN_OR_RETURN(std::unique_ptr<PointSource> rows, plan_->open(groups_[unit]));
  // Unlike a tag of what is stored, one that is missing is an empty text.
  for (std::size_t i = 0; i < tags.size(); ++i) {
    if (choice_.columns[i].is_tag) tags[i].kind = Cell::Kind::Text;
  }
  std::unique_ptr<PointSource> points =
      std::make_unique<InnerPoints>(std::move(rows), choice_, places_, std::move(tags));
  if (choice_.where_of_rows) points = filter_points(std::move(points), *choice_.where_of_rows);
  return points;
}

}  // namespace edgecase::influxql
