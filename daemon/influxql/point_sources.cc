#include "influxql/select_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "influxql/points.h"

namespace edgecase::influxql {
namespace {

// The fields of one tag set, joined by their times.
class JoinedFields final : public PointSource {
 public:
  JoinedFields(std::vector<FeedPart> parts, const std::vector<Column>& columns,
               std::vector<Cell> tags, bool is_descending)
      : parts_(std::move(parts)),
        columns_(columns),
        tags_(std::move(tags)),
        is_descending_(is_descending) {
    are_numbers_ =
        !parts_.empty() && std::all_of(parts_.begin(), parts_.end(), [this](const FeedPart& part) {
          return is_number(columns_[part.column]);
        });
    is_alone_ = parts_.size() == 1 && columns_.size() == 1 && !columns_.front().is_condition;
  }

  Result<bool> next(Point& point) override {
    bool is_point = false;
    std::int64_t time_ns = 0;
    for (const FeedPart& part : parts_) {
      if (columns_[part.column].is_condition) continue;
      EC_ASSIGN_OR_RETURN(const bool has_reading, part.reader->has_reading());
      if (!has_reading || (is_point && !is_before(part.reader->time_ns(), time_ns))) continue;
      is_point = true;
      time_ns = part.reader->time_ns();
    }
    if (!is_point) return false;
    point.time_ns = time_ns;
    point.cells.resize(tags_.size());
    // The point may come from another unit.
    for (std::size_t i = 0; i < tags_.size(); ++i) {
      point.cells[i].kind = tags_[i].kind;
      if (tags_[i].kind == Cell::Kind::Text) point.cells[i].text = tags_[i].text;
    }
    for (const FeedPart& part : parts_) {
      Cell& cell = point.cells[part.column];
      for (;;) {
        EC_ASSIGN_OR_RETURN(const bool has_reading, part.reader->has_reading());
        if (!has_reading || is_before(time_ns, part.reader->time_ns())) break;
        if (part.reader->time_ns() == time_ns) copy_cell(part.reader->cell(), cell);
        part.reader->pop();
      }
      if (part.condition) copy_cell(cell, point.cells[*part.condition]);
    }
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    if (!are_numbers_) return false;
    begin_rows(rows);
    if (is_alone_) return parts_.front().reader->take_many(rows.times_ns, rows.columns.front());
    while (rows.empty()) {
      EC_ASSIGN_OR_RETURN(const bool has_any, hold_parts());
      if (!has_any) return false;
      if (!take_aligned(rows)) merge_held(rows);
    }
    for (const FeedPart& part : parts_) {
      if (part.condition) rows.columns[*part.condition] = rows.columns[part.column];
    }
    return true;
  }
  void expect_all() override {
    for (const FeedPart& part : parts_) part.reader->expect_all();
  }

 private:
  bool is_before(std::int64_t a, std::int64_t b) const { return is_descending_ ? a > b : a < b; }
  static bool is_number(const Column& column) {
    return !column.is_tag &&
           (column.kind == Cell::Kind::Float || column.kind == Cell::Kind::Integer);
  }

  void begin_rows(NumberRows& rows) const {
    rows.columns.resize(columns_.size());
    rows.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      NumberRows::Column& column = rows.columns[i];
      column.kind = is_number(columns_[i]) ? columns_[i].kind : tags_[i].kind;
      if (column.kind == Cell::Kind::Text) column.text = tags_[i].text;
    }
  }

  // What is left of the parts, each as far as it is at hand. False: no part is left that makes
  // points.
  Result<bool> hold_parts() {
    held_.clear();
    bool makes_points = false;
    for (const FeedPart& part : parts_) {
      EC_ASSIGN_OR_RETURN(const bool has_any, part.reader->hold_many());
      if (!has_any) continue;
      const bool is_condition = columns_[part.column].is_condition;
      held_.push_back({&part, part.reader->many(), is_condition});
      makes_points = makes_points || !is_condition;
    }
    return makes_points;
  }

  // Fields of one device mostly have the same times. False: not all of these have.
  bool take_aligned(NumberRows& rows) {
    std::size_t count = held_.front().numbers.size();
    for (const Held& each : held_) count = std::min(count, each.numbers.size());
    const std::int64_t* const times_ns = held_.front().numbers.times_ns.data();
    for (const Held& each : held_) {
      if (std::memcmp(times_ns, each.numbers.times_ns.data(), count * sizeof(*times_ns)) != 0)
        return false;
    }
    rows.times_ns.assign(times_ns, times_ns + count);
    for (NumberRows::Column& column : rows.columns) {
      if (column.is_alike()) continue;
      column.bits.assign(count, 0);
      column.has.assign(count, 0);
    }
    for (const Held& each : held_) {
      NumberRows::Column& column = rows.columns[each.part->column];
      std::copy_n(each.numbers.bits.begin(), count, column.bits.begin());
      column.has.assign(count, 1);
      each.part->reader->pop_many(count);
    }
    return true;
  }

  // Up to where the first of the parts ends: behind that it may go on.
  void merge_held(NumberRows& rows) {
    std::int64_t end_ns = held_.front().numbers.times_ns.back();
    for (const Held& each : held_) {
      const std::int64_t last_ns = each.numbers.times_ns.back();
      if (is_before(last_ns, end_ns)) end_ns = last_ns;
    }
    for (;;) {
      std::optional<std::int64_t> next_ns;
      for (const Held& each : held_) {
        if (each.is_condition || each.at == each.numbers.size()) continue;
        const std::int64_t time_ns = each.numbers.times_ns[each.at];
        if (!next_ns || is_before(time_ns, *next_ns)) next_ns = time_ns;
      }
      const bool is_row = next_ns && !is_before(end_ns, *next_ns);
      if (is_row) add_row(*next_ns, rows);
      for (Held& each : held_) {
        while (each.at < each.numbers.size()) {
          const std::int64_t time_ns = each.numbers.times_ns[each.at];
          if (is_before(is_row ? *next_ns : end_ns, time_ns)) break;
          if (is_row && time_ns == *next_ns) {
            NumberRows::Column& column = rows.columns[each.part->column];
            column.bits.back() = each.numbers.bits[each.at];
            column.has.back() = 1;
          }
          ++each.at;
        }
      }
      if (!is_row) break;
    }
    for (const Held& each : held_) each.part->reader->pop_many(each.at);
  }

  static void add_row(std::int64_t time_ns, NumberRows& rows) {
    rows.times_ns.push_back(time_ns);
    for (NumberRows::Column& column : rows.columns) {
      if (column.is_alike()) continue;
      column.bits.push_back(0);
      column.has.push_back(0);
    }
  }

  struct Held {
    const FeedPart* part;
    wire::Numbers numbers;
    bool is_condition;
    std::size_t at = 0;
  };

  const std::vector<FeedPart> parts_;
  const std::vector<Column>& columns_;
  const std::vector<Cell> tags_;  // of columns that are no tags: null
  const bool is_descending_;
  bool are_numbers_ = false;
  bool is_alone_ = false;  // one field, and nothing else
  std::vector<Held> held_;
};

class MergedPoints final : public PointSource {
 public:
  MergedPoints(std::vector<std::unique_ptr<PointSource>> sources, bool is_descending)
      : is_descending_(is_descending) {
    for (auto& source : sources) inputs_.push_back({std::move(source), {}});
  }

  // A heap of the inputs' numbers, the next one in front.
  Result<bool> next(Point& point) override {
    const auto comes_later = [this](std::size_t a, std::size_t b) { return is_later(a, b); };
    if (!is_begun_) {
      is_begun_ = true;
      for (std::size_t i = 0; i < inputs_.size(); ++i) EC_TRY(take_from(i));
      std::make_heap(heap_.begin(), heap_.end(), comes_later);
    } else if (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), comes_later);
      const std::size_t last = heap_.back();
      heap_.pop_back();
      EC_TRY(take_from(last));
      if (!heap_.empty() && heap_.back() == last)
        std::push_heap(heap_.begin(), heap_.end(), comes_later);
    }
    if (heap_.empty()) return false;
    std::swap(point, inputs_[heap_.front()].point);
    // For the order, until the next one is taken.
    inputs_[heap_.front()].point.time_ns = point.time_ns;
    return true;
  }

 private:
  struct Input {
    std::unique_ptr<PointSource> source;
    Point point;
  };

  Status take_from(std::size_t input) {
    EC_ASSIGN_OR_RETURN(const bool has_point, inputs_[input].source->next(inputs_[input].point));
    if (has_point) {
      heap_.push_back(input);
    } else {
      inputs_[input] = {};
    }
    return ok();
  }
  bool is_later(std::size_t a, std::size_t b) const {
    const std::int64_t at_a = inputs_[a].point.time_ns, at_b = inputs_[b].point.time_ns;
    if (at_a == at_b) return is_descending_ ? a < b : a > b;
    return is_descending_ ? at_a < at_b : at_a > at_b;
  }

  std::vector<Input> inputs_;
  std::vector<std::size_t> heap_;
  const bool is_descending_;
  bool is_begun_ = false;
};

class FilteredPoints final : public PointSource {
 public:
  FilteredPoints(std::unique_ptr<PointSource> points, const Formula& where)
      : points_(std::move(points)), where_(where) {}

  Result<bool> next(Point& point) override {
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool has_point, points_->next(point));
      if (!has_point || where_.is_true(point.cells)) return has_point;
    }
  }
  Result<bool> next_many(NumberRows& rows) override {
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool has_any, points_->next_many(rows));
      if (!has_any) return false;
      where_.find_true(rows, which_);
      rows.keep(which_);
      if (!rows.empty()) return true;
    }
  }
  void expect_all() override { points_->expect_all(); }

 private:
  const std::unique_ptr<PointSource> points_;
  const Formula& where_;
  std::vector<std::uint32_t> which_;
};

class EdgePoints final : public PointSource {
 public:
  EdgePoints(std::unique_ptr<PointSource> points, std::size_t column, bool are_turned)
      : points_(std::move(points)), column_(column), are_turned_(are_turned) {}

  Result<bool> next(Point& point) override {
    if (!std::exchange(is_begun_, true)) {
      EC_TRY(gather());
      if (are_turned_) std::reverse(edge_.begin(), edge_.end());
    }
    if (next_ == edge_.size()) return false;
    point = std::move(edge_[next_++]);
    return true;
  }

 private:
  Status gather() {
    Point point;
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool has_point, points_->next(point));
      if (!has_point) return ok();
      if (point.cells[column_].kind == Cell::Kind::Null) continue;
      if (!edge_.empty() && edge_.front().time_ns != point.time_ns) return ok();
      edge_.push_back(point);
    }
  }

  const std::unique_ptr<PointSource> points_;
  const std::size_t column_;
  const bool are_turned_;
  std::vector<Point> edge_;
  std::size_t next_ = 0;
  bool is_begun_ = false;
};

}  // namespace

std::unique_ptr<PointSource> join_fields(std::vector<FeedPart> parts,
                                         const std::vector<Column>& columns, std::vector<Cell> tags,
                                         bool is_descending) {
  return std::make_unique<JoinedFields>(std::move(parts), columns, std::move(tags), is_descending);
}

std::unique_ptr<PointSource> edge_points(std::unique_ptr<PointSource> points, std::size_t column,
                                         bool are_turned) {
  return std::make_unique<EdgePoints>(std::move(points), column, are_turned);
}

std::unique_ptr<PointSource> merge_points(std::vector<std::unique_ptr<PointSource>> sources,
                                          bool is_descending) {
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<MergedPoints>(std::move(sources), is_descending);
}

std::unique_ptr<PointSource> filter_points(std::unique_ptr<PointSource> points,
                                           const Formula& where) {
  return std::make_unique<FilteredPoints>(std::move(points), where);
}

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
