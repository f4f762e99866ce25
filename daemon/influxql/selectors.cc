// max, first, percentile, top, sample and whatever else chooses among a window's points: with the
// point come its time and the cells that are asked for beside it.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "influxql/function_streams.h"
#include "influxql/points.h"
#include "wire/reading.h"

namespace edgecase::influxql {
namespace {

using Kind = Cell::Kind;
using Places = std::vector<std::size_t>;

void choose(const Cell& value, const Point& point, const Places& beside, Sample& sample) {
  sample.time_ns = point.time_ns;
  sample.value = value;
  sample.beside.resize(beside.size());
  for (std::size_t i = 0; i < beside.size(); ++i) sample.beside[i] = point.cells[beside[i]];
}

// min, max, first, last. Of equal values the earliest point counts; of points of one time the
// largest value, but of truth values false for first().
bool is_better(Function function, const Cell& value, std::int64_t time_ns, const Sample& best) {
  const std::int64_t best_ns = best.time_ns;
  switch (function) {
    case Function::Min:
    case Function::Max:
      if (is_less(value, best.value)) return function == Function::Min;
      if (is_less(best.value, value)) return function == Function::Max;
      return time_ns < best_ns;
    default: break;
  }
  if (time_ns != best_ns) return (time_ns < best_ns) == (function == Function::First);
  if (function == Function::First && value.kind == Kind::Bool) return is_less(value, best.value);
  return is_less(best.value, value);
}

class Best : public Reducer {
 public:
  Best(Function function, Places beside, bool shows_time)
      : function_(function), beside_(std::move(beside)), shows_time_(shows_time) {}

  Status add(const Cell& value, const Point& point) override {
    if (has_any_ && !is_better(function_, value, point.time_ns, best_)) return ok();
    has_any_ = true;
    choose(value, point, beside_, best_);
    return ok();
  }
  bool takes_numbers() const override { return beside_.empty(); }
  Status add_numbers(const wire::Numbers& numbers) override {
    const std::size_t at = place_of(numbers);
    const Point point{numbers.times_ns[at], {}};
    return add(numbers.is_float ? float_cell(numbers.float64(at)) : integer_cell(numbers.int64(at)),
               point);
  }
  // Windows show their own times.
  Status reduce(const wire::Numbers& numbers, std::span<const std::uint32_t> ends,
                NumberRows::Column& made) override {
    std::size_t begin = 0;
    for (const std::uint32_t end : ends) {
      const wire::Numbers window = numbers.from(begin).first(end - begin);
      made.add(window.bits[place_of(window)]);
      begin = end;
    }
    return ok();
  }
  // When the least one was is not known: where it is asked for, groups will do that have none.
  bool takes_summary(const NumberSummary& summary) const override {
    if (!beside_.empty()) return false;
    if (!shows_time_ || function_ == Function::First || function_ == Function::Last) return true;
    const std::int64_t first_ns = wire::time_of_ordinal(summary.first_ordinal);
    return has_any_ && !is_better(function_, bound_of(summary), first_ns, best_);
  }
  void add_summary(const NumberSummary& summary) override {
    const bool is_last = function_ == Function::Last;
    const Point point{wire::time_of_ordinal(is_last ? summary.last_ordinal : summary.first_ordinal),
                      {}};
    static_cast<void>(add(bound_of(summary), point));  // it holds nothing
  }
  Status finish(std::vector<Sample>& made) override {
    made.push_back(std::move(best_));
    has_any_ = false;
    return ok();
  }

 private:
  std::size_t place_of(const wire::Numbers& numbers) const {
    return numbers.is_float ? best_of([&](std::size_t i) { return numbers.float64(i); }, numbers)
                            : best_of([&](std::size_t i) { return numbers.int64(i); }, numbers);
  }

  template <typename At>
  std::size_t best_of(const At& at, const wire::Numbers& numbers) const {
    const std::size_t last = numbers.size() - 1;
    const bool is_ascending = numbers.times_ns[0] <= numbers.times_ns[last];
    if (function_ == Function::First) return is_ascending ? 0 : last;
    if (function_ == Function::Last) return is_ascending ? last : 0;
    std::size_t best = 0;
    auto number = at(0);
    for (std::size_t i = 1; i <= last; ++i) {
      const auto other = at(i);
      const bool is_better = function_ == Function::Min ? other < number : other > number;
      // The earliest of equal ones counts.
      if (!is_better && (is_ascending || other != number)) continue;
      number = other;
      best = i;
    }
    return best;
  }

  Cell bound_of(const NumberSummary& summary) const {
    switch (function_) {
      case Function::Min: return number_cell(summary, summary.min);
      case Function::Max: return number_cell(summary, summary.max);
      case Function::First: return number_cell(summary, summary.first);
      default: return number_cell(summary, summary.last);
    }
  }

  const Function function_;
  const Places beside_;
  const bool shows_time_;
  bool has_any_ = false;
  Sample best_;
};

class Percentile : public Reducer {
 public:
  Percentile(const Call& call, Places beside, Spending& spending)
      : percent_(call.percent), kind_(call.taken), beside_(std::move(beside)), held_(spending) {}

  Status add(const Cell& value, const Point& point) override {
    std::uint64_t bytes = sizeof(Kept);
    for (const std::size_t each : beside_) {
      bytes += sizeof(Cell) + point.cells[each].text.size();
      cells_.push_back(point.cells[each]);
    }
    EC_TRY(held_.hold(bytes));
    // A cell may still hold what it was before it became this kind.
    const bool is_integer = kind_ == Kind::Integer;
    kept_.push_back({is_integer ? value.integer : 0, is_integer ? 0 : value.number, point.time_ns,
                     kept_.size()});
    return ok();
  }
  bool takes_numbers() const override { return beside_.empty(); }
  Status add_numbers(const wire::Numbers& numbers) override {
    EC_TRY(held_.hold(sizeof(Kept) * numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      kept_.push_back({numbers.is_float ? 0 : numbers.int64(i),
                       numbers.is_float ? numbers.float64(i) : 0, numbers.times_ns[i],
                       kept_.size()});
    return ok();
  }

  Status finish(std::vector<Sample>& made) override {
    const double rank = std::floor(static_cast<double>(kept_.size()) * percent_ / 100 + 0.5) - 1;
    if (rank >= 0 && rank < static_cast<double>(kept_.size())) {
      const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(rank);
      std::nth_element(kept_.begin(), at, kept_.end(), [](const Kept& a, const Kept& b) {
        if (a.integer != b.integer) return a.integer < b.integer;
        if (a.number != b.number) return a.number < b.number;
        return a.order < b.order;
      });
      Sample sample;
      sample.time_ns = at->time_ns;
      sample.value = kind_ == Kind::Integer ? integer_cell(at->integer) : float_cell(at->number);
      const auto beside = cells_.begin() + static_cast<std::ptrdiff_t>(at->order * beside_.size());
      sample.beside.assign(beside, beside + static_cast<std::ptrdiff_t>(beside_.size()));
      made.push_back(std::move(sample));
    }
    kept_.clear();
    cells_.clear();
    held_.release_all();
    return ok();
  }

 private:
  struct Kept {
    std::int64_t integer;
    double number;
    std::int64_t time_ns;
    std::size_t order;  // of its cells as well
  };

  const double percent_;
  const Kind kind_;
  const Places beside_;
  HeldBytes held_;
  std::vector<Kept> kept_;
  std::vector<Cell> cells_;  // as many for each as there are beside it
};

// top and bottom. With tags, of each of their values the best point alone takes part.
class Ranking : public Reducer {
 public:
  Ranking(const Call& call, Places beside, Spending& spending)
      : is_top_(call.function == Function::Top),
        count_(static_cast<std::size_t>(call.count)),
        groups_(call.groups),
        beside_(std::move(beside)),
        held_(spending) {}

  Status add(const Cell& value, const Point& point) override {
    if (groups_.empty()) return rank(value, point);
    std::string key;
    for (const std::size_t each : groups_) {
      if (each == kNoColumn) continue;
      // With its length before it, so that two tags are not taken for one. A cell without one may
      // still hold the text of another point.
      const bool has_tag = point.cells[each].kind == Kind::Text;
      const std::string_view text = has_tag ? point.cells[each].text : std::string_view();
      key.append(std::to_string(text.size())).append(1, ':').append(text);
    }
    const auto [at, is_new] = best_.try_emplace(std::move(key));
    const Function function = is_top_ ? Function::Max : Function::Min;
    if (!is_new && !is_better(function, value, point.time_ns, at->second)) return ok();
    if (!is_new) held_.release(bytes_of(at->second));
    choose(value, point, beside_, at->second);
    return held_.hold(bytes_of(at->second) + (is_new ? at->first.size() : 0));
  }

  Status finish(std::vector<Sample>& made) override {
    for (auto& [key, sample] : best_) ranked_.push_back(std::move(sample));
    std::stable_sort(ranked_.begin(), ranked_.end(), Before{is_top_});
    if (ranked_.size() > count_) ranked_.resize(count_);
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; });
    for (Sample& sample : ranked_) made.push_back(std::move(sample));
    ranked_.clear();
    best_.clear();
    held_.release_all();
    return ok();
  }

 private:
  struct Before {
    bool is_top;

    bool operator()(const Sample& a, const Sample& b) const {
      if (is_less(a.value, b.value)) return !is_top;
      if (is_less(b.value, a.value)) return is_top;
      return a.time_ns < b.time_ns;
    }
  };

  // The last in rank is on top of the heap, to be replaced by what is before it.
  Status rank(const Cell& value, const Point& point) {
    Sample sample;
    sample.time_ns = point.time_ns;
    sample.value = value;
    const Before before{is_top_};
    if (ranked_.size() == count_) {
      if (!before(sample, ranked_.front())) return ok();
      std::pop_heap(ranked_.begin(), ranked_.end(), before);
      held_.release(bytes_of(ranked_.back()));
      ranked_.pop_back();
    }
    choose(value, point, beside_, sample);
    EC_TRY(held_.hold(bytes_of(sample)));
    ranked_.push_back(std::move(sample));
    std::push_heap(ranked_.begin(), ranked_.end(), before);
    return ok();
  }

  const bool is_top_;
  const std::size_t count_;
  const Places groups_, beside_;
  HeldBytes held_;
  std::vector<Sample> ranked_;
  std::map<std::string, Sample> best_;
};

// Each point has the same chance. The same question of the same points gives the same ones, so that
// a drawing stays as it is when it is drawn again.
class Reservoir : public Reducer {
 public:
  Reservoir(const Call& call, Places beside, Spending& spending)
      : count_(static_cast<std::uint64_t>(call.count)),
        beside_(std::move(beside)),
        held_(spending) {}

  Status add(const Cell& value, const Point& point) override {
    ++seen_;
    if (kept_.size() < count_) {
      choose(value, point, beside_, kept_.emplace_back());
      return held_.hold(bytes_of(kept_.back()));
    }
    const std::uint64_t place = random_() % seen_;
    if (place >= count_) return ok();
    held_.release(bytes_of(kept_[place]));
    choose(value, point, beside_, kept_[place]);
    return held_.hold(bytes_of(kept_[place]));
  }

  Status finish(std::vector<Sample>& made) override {
    std::stable_sort(kept_.begin(), kept_.end(), [](const Sample& a, const Sample& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : is_less(a.value, b.value);
    });
    for (Sample& sample : kept_) made.push_back(std::move(sample));
    kept_.clear();
    held_.release_all();
    seen_ = 0;
    return ok();
  }

 private:
  const std::uint64_t count_;
  const Places beside_;
  HeldBytes held_;
  std::uint64_t seen_ = 0;
  std::vector<Sample> kept_;
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<Reducer> make_selector(const Call& call, const Places& beside, bool shows_time,
                                       Spending& spending) {
  switch (call.function) {
    case Function::Percentile: return std::make_unique<Percentile>(call, beside, spending);
    case Function::Top:
    case Function::Bottom: return std::make_unique<Ranking>(call, beside, spending);
    case Function::Sample: return std::make_unique<Reservoir>(call, beside, spending);
    default: return std::make_unique<Best>(call.function, beside, shows_time);
  }
}

}  // namespace edgecase::influxql
