#include "influxql/row_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "influxql/cells.h"

namespace edgecase::influxql {
namespace {

class RowPoints final : public PointSource {
 public:
  RowPoints(std::unique_ptr<PointSource> points, const RowShape& shape)
      : points_(std::move(points)), shape_(shape), before_(shape.columns.size()) {
    const auto is_number = [this](std::size_t place) {
      if (shape_.columns.empty()) return true;  // of functions
      const Column& column = shape_.columns[place];
      return !column.is_tag && column.kind != Cell::Kind::Text && column.kind != Cell::Kind::Bool;
    };
    gives_many_ = !shape_.fields.empty() && shape_.limit == 0 && shape_.offset == 0 && !fills() &&
                  std::all_of(shape_.fields.begin(), shape_.fields.end(),
                              [&](const Formula& each) { return each.gives_numbers(is_number); });
  }

  Result<bool> next(Point& point) override {
    if (shape_.limit > 0 && given_ == shape_.limit) return false;
    do {
      EC_ASSIGN_OR_RETURN(const bool has_point, points_->next(point_));
      if (!has_point) return false;
    } while (passed_++ < shape_.offset);
    if (fills()) fill();
    ++given_;
    point.time_ns = point_.time_ns;
    point.cells.resize(shape_.fields.size());
    for (std::size_t i = 0; i < shape_.fields.size(); ++i) {
      Cell& cell = point.cells[i];
      shape_.fields[i].evaluate(point_.cells, cell);
      if (cell.kind == Cell::Kind::Float && std::isnan(cell.number)) cell.kind = Cell::Kind::Null;
    }
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    if (!gives_many_) return false;
    EC_ASSIGN_OR_RETURN(const bool has_any, points_->next_many(many_));
    if (!has_any) return false;
    rows.times_ns.swap(many_.times_ns);
    // As many as before: formulas look at them.
    many_.times_ns.resize(rows.times_ns.size());
    rows.columns.resize(shape_.fields.size());
    for (std::size_t i = 0; i < shape_.fields.size(); ++i)
      shape_.fields[i].evaluate(many_, rows.columns[i]);
    return true;
  }
  void expect_all() override { points_->expect_all(); }

 private:
  bool fills() const { return shape_.fill == Fill::Previous || shape_.fill == Fill::Number; }
  void fill() {
    for (std::size_t i = 0; i < before_.size() && i < point_.cells.size(); ++i) {
      Cell& cell = point_.cells[i];
      if (shape_.columns[i].is_condition) continue;
      if (shape_.fill == Fill::Previous) {
        if (cell.kind == Cell::Kind::Null) {
          cell = before_[i];
        } else {
          before_[i] = cell;
        }
      } else if (cell.kind == Cell::Kind::Null) {
        cell = shape_.fill_value;
        const Cell::Kind kind = shape_.columns[i].kind;
        if (kind == Cell::Kind::Float || kind == Cell::Kind::Integer) cast_cell(cell, kind);
      }
    }
  }

  const std::unique_ptr<PointSource> points_;
  const RowShape& shape_;
  Point point_;
  NumberRows many_;
  std::vector<Cell> before_;
  bool gives_many_ = false;
  std::int64_t passed_ = 0, given_ = 0;
};

}  // namespace

std::unique_ptr<PointSource> make_rows(std::unique_ptr<PointSource> points, const RowShape& shape) {
  return std::make_unique<RowPoints>(std::move(points), shape);
}

}  // namespace edgecase::influxql
