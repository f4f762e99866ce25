#include "influxql/row_points.h"

#include <cmath>
#include <utility>

#include "influxql/series_reader.h"

namespace edgecase::influxql {
namespace {

class RowPoints final : public PointSource {
 public:
  RowPoints(std::unique_ptr<PointSource> points, const RowShape& shape)
      : points_(std::move(points)), shape_(shape), before_(shape.columns.size()) {
    if (shape_.limit > 0 || shape_.offset > 0 || fills()) return;
    for (const Formula& field : shape_.fields) {
      const auto place = field.cell_place();
      if (!place) {
        places_.clear();
        return;
      }
      places_.push_back(*place);
    }
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

  // Fields that are nothing but what a function comes to; others are worked out row by row.
  Result<bool> next_many(NumberRows& rows) override {
    if (places_.empty()) return false;
    EC_ASSIGN_OR_RETURN(const bool has_any, points_->next_many(many_));
    if (!has_any) return false;
    rows.times_ns.swap(many_.times_ns);
    rows.columns.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) rows.columns[i] = many_.columns[places_[i]];
    return true;
  }

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
  std::vector<std::size_t> places_;  // of the fields, where all are cells
  std::int64_t passed_ = 0, given_ = 0;
};

}  // namespace

std::unique_ptr<PointSource> make_rows(std::unique_ptr<PointSource> points, const RowShape& shape) {
  return std::make_unique<RowPoints>(std::move(points), shape);
}

}  // namespace edgecase::influxql
