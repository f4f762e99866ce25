#include "influxql/functions.h"

#include <algorithm>
#include <utility>

#include "influxql/function_streams.h"

namespace edgecase::influxql {
namespace {

// One for each leaf: a call, or a name that stands for a value of the chosen point.
struct Leaf {
  Call call;
  bool is_name = false;
  std::size_t beside = 0;  // of a name: which of the chosen point's cells
  Cell without;            // where a row has no value
};

struct Planned {
  explicit Planned(const Windows& asked)
      : windows(asked),
        grid(asked.every_ns, asked.offset_ns, asked.zone, asked.span),
        most(asked.span),
        span_to_read(asked.span) {}

  const Windows windows;
  const WindowGrid grid;
  TimeSpan most, span_to_read;  // see StreamSetting
  std::vector<Leaf> leaves;
  std::vector<Cell::Kind> kinds;
  std::vector<std::size_t> beside;  // columns of the names
  std::size_t calls = 0;
  bool is_of_numbers = false;  // see make_number_rows()
  bool gives_numbers = false;  // each function
};

// With fill(number) rows have that number wherever a value is missing, as it is where the type
// cannot hold it. Nothing is known of a function of nothing but where it has a type by itself.
Cell without(const Windows& windows, Cell::Kind kind, bool is_known) {
  if (windows.fill != Fill::Number || !is_known) return {};
  if (kind == Cell::Kind::Float || kind == Cell::Kind::Integer) return fill_cell(windows, kind);
  return fill_cell(windows, windows.fill_is_integer ? Cell::Kind::Integer : Cell::Kind::Float);
}

Status add_leaf(const Expr& expression, const FunctionPlan::Columns& columns, Planned& plan) {
  const Windows& windows = plan.windows;
  Leaf leaf;
  if (expression.kind == ExprKind::Name) {
    EC_ASSIGN_OR_RETURN(const ColumnPlace place, columns(expression));
    leaf.is_name = true;
    leaf.beside = plan.beside.size();
    leaf.without = without(windows, place.is_tag ? Cell::Kind::Text : place.kind, true);
    plan.beside.push_back(place.index);
    plan.kinds.push_back(place.kind);
  } else {
    EC_ASSIGN_OR_RETURN(leaf.call, make_call(expression, columns, windows));
    const Call& call = leaf.call;
    leaf.without = without(windows, call.kind, call.kind != Cell::Kind::Null);
    plan.kinds.push_back(call.kind);
    ++plan.calls;
  }
  plan.leaves.push_back(std::move(leaf));
  return ok();
}

// Calls in each other begin earlier, each than the one around it. But InfluxDB reads no more than
// the one that needs most of them needs by itself: what comes before that is windows without
// values.
void set_spans(Planned& plan) {
  const Windows& windows = plan.windows;
  std::int64_t count = 0;
  for (const Leaf& leaf : plan.leaves) {
    for (const Call* each = &leaf.call; each != nullptr && !leaf.is_name; each = each->inside.get())
      count = std::max(count, each->windows_before());
  }
  plan.most = begun_earlier(windows.span, windows, count);
  for (const Leaf& leaf : plan.leaves) {
    if (leaf.is_name) continue;
    TimeSpan span = windows.span;
    for (const Call* each = &leaf.call; each != nullptr; each = each->inside.get())
      span = span_of(*each, span, windows);
    span.narrow(plan.most);
    plan.span_to_read.from_ns = std::min(plan.span_to_read.from_ns, span.from_ns);
    plan.span_to_read.to_ns = std::max(plan.span_to_read.to_ns, span.to_ns);
  }
}

// Where every function gives one number for each window, of the same column.
bool is_of_numbers(const Planned& plan) {
  const Windows& windows = plan.windows;
  const bool are_fixed = plan.grid.is_cut() && windows.zone == nullptr && windows.limit == 0 &&
                         windows.offset == 0 && windows.fill != Fill::Linear;
  return are_fixed && !plan.leaves.empty() &&
         std::all_of(plan.leaves.begin(), plan.leaves.end(), [&](const Leaf& leaf) {
           return !leaf.is_name && leaf.call.gives_number() &&
                  leaf.call.column.index == plan.leaves.front().call.column.index;
         });
}

// The rows of one group: those of each function, those of one time in one row.
class FunctionRows : public PointSource {
 public:
  // One of these.
  struct From {
    std::unique_ptr<PointSource> points;
    std::unique_ptr<WindowFeed> feed;
    std::unique_ptr<PointFeed> units;
  };
  FunctionRows(std::shared_ptr<const Planned> plan, From from, Spending& spending)
      : plan_(std::move(plan)),
        points_(std::move(from.points)),
        feed_(std::move(from.feed)),
        units_(std::move(from.units)),
        spending_(spending) {
    const StreamSetting setting{plan_->windows, plan_->grid,        now_,
                                spending,       plan_->beside,      plan_->calls == 1,
                                plan_->most,    plan_->span_to_read};
    for (std::size_t i = 0; i < plan_->leaves.size(); ++i) {
      const Leaf& leaf = plan_->leaves[i];
      if (leaf.is_name || leaf.call.is_of_nothing) continue;
      Rows rows;
      rows.leaf = i;
      rows.stream = make_stream(leaf.call, setting, plan_->windows.span, false, takers_);
      functions_.push_back(std::move(rows));
    }
    cells_.resize(plan_->leaves.size());
  }

  Result<bool> next(Point& point) override {
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool are_ready, pull_all());
      if (are_ready) break;
      EC_TRY(units_ != nullptr ? read_units() : feed_ == nullptr ? read_point() : read_window());
    }
    const Rows* first = nullptr;
    for (const Rows& rows : functions_) {
      if (rows.has_next && (first == nullptr || is_before(rows.next, first->next))) first = &rows;
    }
    if (first == nullptr) return false;
    if (plan_->grid.is_cut()) EC_TRY(spending_.add_window());
    point.time_ns = first->next.time_ns;
    for (Rows& rows : functions_) set_cells(point.time_ns, rows);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const Leaf& leaf = plan_->leaves[i];
      if (!leaf.is_name && leaf.call.is_of_nothing) cells_[i] = leaf.without;
    }
    point.cells = cells_;
    return true;
  }

  Result<bool> next_many(NumberRows& rows) override {
    if (!plan_->gives_numbers) return false;
    rows.columns.resize(cells_.size());
    rows.clear();
    for (std::size_t i = 0; i < cells_.size(); ++i) rows.columns[i].kind = plan_->kinds[i];
    while (rows.size() < kRowsMax) {
      EC_ASSIGN_OR_RETURN(const bool has_row, next(row_));
      if (!has_row) break;
      rows.times_ns.push_back(row_.time_ns);
      for (std::size_t i = 0; i < cells_.size(); ++i) rows.columns[i].add(row_.cells[i]);
    }
    return !rows.empty();
  }

 private:
  // Rows that are given side by side.
  static constexpr std::size_t kRowsMax = 256;

  // One function's.
  struct Rows {
    std::size_t leaf = 0;
    std::unique_ptr<SampleStream> stream;
    Sample next;
    bool has_next = false, has_ended = false;
    std::int64_t count = 0;  // that came, for LIMIT and OFFSET
  };

  bool is_before(const Sample& a, const Sample& b) const {
    return plan_->windows.is_descending ? a.time_ns > b.time_ns : a.time_ns < b.time_ns;
  }

  // False: more points have to be read before it is known which row is the next.
  Result<bool> pull_all() {
    bool are_ready = true;
    for (Rows& rows : functions_) {
      while (!rows.has_next && !rows.has_ended) {
        EC_ASSIGN_OR_RETURN(const Pull pulled, rows.stream->pull(rows.next));
        if (pulled == Pull::Later) {
          are_ready = false;
          break;
        }
        rows.has_ended = pulled == Pull::Ended;
        if (!rows.has_ended) take_counted(rows);
      }
    }
    return are_ready;
  }

  void take_counted(Rows& rows) const {
    const Windows& windows = plan_->windows;
    if (++rows.count <= windows.offset) return;
    rows.has_ended = windows.limit > 0 && rows.count - windows.offset > windows.limit;
    rows.has_next = !rows.has_ended;
  }

  Status enter(std::int64_t time_ns) {
    if (has_window_ && now_.contains(time_ns)) return ok();
    if (has_window_) EC_TRY(leave());
    now_ = plan_->grid.window_of(time_ns);
    // The last window ends behind InfluxDB's last time.
    if (time_ns == kMaxTime) now_.end_ns = kMaxTime + 1;
    has_window_ = true;
    return ok();
  }
  Status leave() {
    for (PointTaker* taker : takers_) {
      const bool is_lacking = feed_ != nullptr && feed_->lacks(now_, taker->column());
      EC_TRY(is_lacking ? taker->give_up(now_) : taker->leave(now_));
    }
    return ok();
  }

  Status finish() {
    if (has_window_) EC_TRY(leave());
    for (PointTaker* taker : takers_) taker->finish();
    return ok();
  }

  // Gives the values of one field to those functions that take them.
  class FieldTaker final : public ValueTaker {
   public:
    FieldTaker(FunctionRows& rows, std::size_t column) : rows_(rows), column_(column) {}

    bool takes(const NumberSummary& summary) override {
      return std::all_of(rows_.takers_.begin(), rows_.takers_.end(), [&](const PointTaker* taker) {
        return taker->column() != column_ || taker->takes_summary(summary);
      });
    }
    Status take(const NumberSummary& summary) override {
      return each([&](PointTaker& taker) {
        taker.take_summary(summary);
        return ok();
      });
    }
    Status take(const wire::Numbers& numbers) override {
      return each([&](PointTaker& taker) { return taker.take_numbers(numbers); });
    }
    Status take(std::int64_t time_ns, const Cell& value) override {
      Point& point = rows_.point_;
      point.time_ns = time_ns;
      point.cells.resize(std::max(point.cells.size(), column_ + 1));
      copy_cell(value, point.cells[column_]);
      return each([&](PointTaker& taker) { return taker.take(point); });
    }

   private:
    template <typename Do>
    Status each(const Do& take) {
      for (PointTaker* taker : rows_.takers_)
        if (taker->column() == column_) EC_TRY(take(*taker));
      return ok();
    }

    FunctionRows& rows_;
    const std::size_t column_;
  };

  // A window of the feed, field by field.
  Status read_window() {
    EC_ASSIGN_OR_RETURN(const auto next_ns, feed_->next_time());
    if (!next_ns) return finish();
    EC_TRY(enter(*next_ns));
    while (const auto column = feed_->next_column(now_)) {
      FieldTaker taker(*this, *column);
      EC_TRY(feed_->feed(now_, taker));
    }
    feed_->end(now_);
    return ok();
  }

  // Gives each function what it takes of the points of a unit.
  class PointsTaker final : public PointFeed::Taker {
   public:
    explicit PointsTaker(FunctionRows& rows) : rows_(rows) {}

    Status take(const Point& point) override {
      for (PointTaker* taker : rows_.takers_) EC_TRY(taker->take(point));
      return ok();
    }
    Status take(const NumberRows& rows, std::size_t begin, std::size_t end) override {
      for (PointTaker* taker : rows_.takers_) {
        const NumberRows::Column& column = rows.columns[taker->column()];
        if (column.kind == Cell::Kind::Text) EC_TRY(take_texts(rows, begin, end, *taker));
        if (!column.is_alike()) EC_TRY(take_column(rows, column, begin, end, *taker));
      }
      return ok();
    }

   private:
    Status take_texts(const NumberRows& rows, std::size_t begin, std::size_t end,
                      PointTaker& taker) {
      Point& point = rows_.point_;
      point.cells.resize(std::max(point.cells.size(), rows.columns.size()));
      rows.columns[taker.column()].get(begin, point.cells[taker.column()]);
      for (; begin < end; ++begin) {
        point.time_ns = rows.times_ns[begin];
        EC_TRY(taker.take(point));
      }
      return ok();
    }
    // Without those that are null.
    Status take_column(const NumberRows& rows, const NumberRows::Column& column, std::size_t begin,
                       std::size_t end, PointTaker& taker) {
      const bool is_float = column.kind == Cell::Kind::Float;
      if (column.has_all(begin, end - begin)) {
        const wire::Numbers all{rows.times_ns, column.bits, is_float};
        return taker.take_numbers(all.first(end).from(begin));
      }
      times_ns_.clear();
      bits_.clear();
      for (; begin < end; ++begin) {
        if (column.has[begin] == 0) continue;
        times_ns_.push_back(rows.times_ns[begin]);
        bits_.push_back(column.bits[begin]);
      }
      return times_ns_.empty() ? ok() : taker.take_numbers({times_ns_, bits_, is_float});
    }

    FunctionRows& rows_;
    std::vector<std::int64_t> times_ns_;
    std::vector<std::uint64_t> bits_;
  };

  Status read_units() {
    EC_ASSIGN_OR_RETURN(const auto next_ns, units_->next_time());
    if (!next_ns) return finish();
    EC_TRY(enter(*next_ns));
    PointsTaker taker(*this);
    return units_->feed(now_, taker);
  }

  Status read_point() {
    EC_ASSIGN_OR_RETURN(const bool has_point, points_->next(point_));
    if (!has_point) return finish();
    EC_TRY(enter(point_.time_ns));
    for (PointTaker* taker : takers_) EC_TRY(taker->take(point_));
    return ok();
  }

  // A function's next row, if it is of this time; else what stands where there is none. With
  // fill(previous) that is whatever stood there before.
  void set_cells(std::int64_t time_ns, Rows& rows) {
    const bool is_now = rows.has_next && rows.next.time_ns == time_ns;
    set_cell(rows.leaf, is_now ? &rows.next.value : nullptr);
    if (is_now && rows.next.is_lacking) cells_[rows.leaf] = {};
    if (functions_.size() == 1) {
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        const Leaf& leaf = plan_->leaves[i];
        if (!leaf.is_name) continue;
        const bool is_there = is_now && leaf.beside < rows.next.beside.size();
        set_cell(i, is_there ? &rows.next.beside[leaf.beside] : nullptr);
      }
    }
    if (is_now) rows.has_next = false;
  }

  void set_cell(std::size_t leaf, Cell* value) {
    Cell& cell = cells_[leaf];
    if (value != nullptr && value->kind != Cell::Kind::Null) {
      std::swap(cell, *value);
    } else if (plan_->windows.fill != Fill::Previous) {
      cell = plan_->leaves[leaf].without;
    }
  }

  const std::shared_ptr<const Planned> plan_;
  const std::unique_ptr<PointSource> points_;
  const std::unique_ptr<WindowFeed> feed_;
  const std::unique_ptr<PointFeed> units_;
  Spending& spending_;
  Window now_;
  bool has_window_ = false;
  std::vector<Rows> functions_;
  std::vector<PointTaker*> takers_;  // of the functions' streams
  std::vector<Cell> cells_;
  Point point_, row_;
};

}  // namespace

struct FunctionPlan::Impl {
  std::shared_ptr<const Planned> planned;
};

FunctionPlan::FunctionPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
FunctionPlan::~FunctionPlan() = default;

Result<FunctionPlan> FunctionPlan::make(const std::vector<const Expr*>& leaves,
                                        const Columns& columns, const Windows& windows) {
  auto planned = std::make_shared<Planned>(windows);
  for (const Expr* leaf : leaves) EC_TRY(add_leaf(*leaf, columns, *planned));
  set_spans(*planned);
  for (const Leaf& leaf : planned->leaves) {
    if (planned->beside.empty() || leaf.is_name) continue;
    if (!leaf.call.is_selector())
      return invalid_argument("mixing aggregate and non-aggregate queries is not supported");
    if (planned->calls > 1)
      return invalid_argument(
          "mixing multiple selector functions with tags or fields is not supported");
  }
  planned->is_of_numbers = is_of_numbers(*planned);
  planned->gives_numbers =
      std::all_of(planned->leaves.begin(), planned->leaves.end(), [](const Leaf& leaf) {
        return !leaf.is_name && !leaf.call.is_of_nothing &&
               (leaf.call.kind == Cell::Kind::Float || leaf.call.kind == Cell::Kind::Integer);
      });
  return FunctionPlan(std::make_shared<const Impl>(Impl{std::move(planned)}));
}

TimeSpan FunctionPlan::span_to_read() const {
  return impl_->planned->span_to_read;
}

const std::vector<Cell::Kind>& FunctionPlan::kinds() const {
  return impl_->planned->kinds;
}

std::unique_ptr<PointSource> FunctionPlan::open(std::unique_ptr<PointSource> points,
                                                Spending& spending) const {
  FunctionRows::From from;
  from.points = std::move(points);
  return std::make_unique<FunctionRows>(impl_->planned, std::move(from), spending);
}

std::unique_ptr<PointSource> FunctionPlan::open(std::unique_ptr<WindowFeed> feed,
                                                Spending& spending) const {
  if (!impl_->planned->grid.is_cut()) feed->take_turns();
  if (impl_->planned->is_of_numbers) {
    std::vector<const Call*> calls;
    for (const Leaf& leaf : impl_->planned->leaves) calls.push_back(&leaf.call);
    return make_number_rows({impl_, impl_->planned->windows, impl_->planned->grid}, calls,
                            std::move(feed), spending);
  }
  FunctionRows::From from;
  from.feed = std::move(feed);
  return std::make_unique<FunctionRows>(impl_->planned, std::move(from), spending);
}

std::unique_ptr<PointSource> FunctionPlan::open(std::size_t units, PointFeed::Open open,
                                                Spending& spending) const {
  FunctionRows::From from;
  from.units = std::make_unique<PointFeed>(
      units, std::move(open), impl_->planned->windows.is_descending, impl_->planned->grid.is_cut());
  return std::make_unique<FunctionRows>(impl_->planned, std::move(from), spending);
}

// Rows of windows alone have a place for it.
bool FunctionPlan::tells_lacks() const {
  const Planned& plan = *impl_->planned;
  return plan.grid.is_cut() &&
         std::all_of(plan.leaves.begin(), plan.leaves.end(),
                     [](const Leaf& leaf) { return !leaf.is_name && leaf.call.is_of_window(); });
}

bool FunctionPlan::gives_number_rows() const {
  return impl_->planned->gives_numbers;
}

// The values of a single part come in order.
bool FunctionPlan::takes_many(std::size_t parts) const {
  const Planned& plan = *impl_->planned;
  return plan.beside.empty() &&
         std::all_of(plan.leaves.begin(), plan.leaves.end(), [&](const Leaf& leaf) {
           const Call* call = &leaf.call;
           while (call->inside) call = call->inside.get();
           return call->is_of_nothing || call->takes_any_order() ||
                  (parts <= 1 && call->takes_numbers());
         });
}

}  // namespace edgecase::influxql
