#include "influxql/merged_points.h"

#include <algorithm>
#include <utility>

namespace edgecase::influxql {
namespace {

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

 private:
  const std::unique_ptr<PointSource> points_;
  const Formula& where_;
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

}  // namespace edgecase::influxql
