// TierMaker: the batch that makes windows of readings, and which go first on a full drive.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "query/cursors.h"
#include "tiers/tier_maker.h"
#include "wire/reading.h"

namespace edgecase::tiers {
namespace {

using catalog::TierColumn;
using wire::Aggregate;

// In the order of TierColumn.
constexpr Aggregate kAggregates[] = {Aggregate::Count, Aggregate::Min,   Aggregate::Max,
                                     Aggregate::Sum,   Aggregate::First, Aggregate::Last};

bool is_number(const wire::Value& value) {
  return value.type != wire::ValueType::Text && value.type != wire::ValueType::Bytes;
}

std::int64_t last_of(std::int64_t time_ns, std::int64_t every_ns) {
  std::int64_t into = time_ns % every_ns;
  if (into < 0) into += every_ns;
  std::int64_t last_ns = 0;
  return __builtin_add_overflow(time_ns, every_ns - into - 1, &last_ns)
             ? std::numeric_limits<std::int64_t>::max()
             : last_ns;
}

}  // namespace

void put_window(const catalog::TierSpace& tier, const catalog::SeriesId& series,
                const query::TierWindow& window, WriteBatch& batch) {
  Bytes bytes;
  const auto put = [&](TierColumn column, const std::optional<wire::Value>& value) {
    if (!value) return;
    const catalog::SeriesId id = catalog::tier_series(tier.id, series, column);
    bytes.clear();
    wire::append_value(*value, bytes);
    batch.put(id.namespace_id, wire::make_reading_key({id.device, id.sensor, window.begin_ns}),
              bytes);
  };
  const auto whole = [](std::uint64_t number) {
    return wire::Value::of_int64(static_cast<std::int64_t>(number));
  };
  put(TierColumn::Count, whole(window.count));
  put(TierColumn::Min, window.min);
  put(TierColumn::Max, window.max);
  put(TierColumn::Sum, window.sum);
  put(TierColumn::First, window.first);
  put(TierColumn::Last, window.last);
  if (window.numbers != window.count) put(TierColumn::Numbers, whole(window.numbers));
}

WindowBatch::WindowBatch(const catalog::SeriesId& series, std::span<const catalog::TierSpace> tiers,
                         WriteBatch& batch, std::vector<query::TierWindow>* made)
    : series_(series), batch_(batch), made_(made) {
  for (const catalog::TierSpace& tier : tiers) {
    Open& open = tiers_.emplace_back();
    open.tier = tier;
    for (const Aggregate aggregate : kAggregates) open.columns.emplace_back(aggregate, false);
  }
}

std::int64_t WindowBatch::finest_last_ns(std::int64_t time_ns) const {
  return last_of(time_ns, tiers_.front().tier.every_ns);
}

std::int64_t WindowBatch::coarsest_last_ns(std::int64_t time_ns) const {
  return last_of(time_ns, tiers_.back().tier.every_ns);
}

void WindowBatch::turn_to(std::int64_t time_ns) {
  for (Open& open : tiers_) {
    if (open.is_open && time_ns <= open.last_ns) continue;
    if (open.is_open) put(open);
    begin(open, time_ns);
  }
}

void WindowBatch::begin(Open& open, std::int64_t time_ns) {
  open.is_open = true;
  open.begin_ns = query::window_start(time_ns, open.tier.every_ns);
  open.last_ns = last_of(time_ns, open.tier.every_ns);
  open.numbers = 0;
  for (query::Aggregator& column : open.columns) column.clear();
}

void WindowBatch::go_on(std::size_t tier, const query::TierWindow& window) {
  Open& open = tiers_[tier];
  begin(open, window.begin_ns);
  open.numbers = window.numbers;
  for (query::Aggregator& column : open.columns) column.add(window);
}

void WindowBatch::add(const wire::Numbers& numbers) {
  if (numbers.empty()) return;
  turn_to(numbers.times_ns.front());
  for (Open& open : tiers_) {
    open.numbers += numbers.size();
    for (query::Aggregator& column : open.columns) column.add(numbers);
  }
}

void WindowBatch::add(std::int64_t time_ns, const wire::Value& value) {
  turn_to(time_ns);
  for (Open& open : tiers_) {
    if (is_number(value)) ++open.numbers;
    for (query::Aggregator& column : open.columns) column.add(value);
  }
}

void WindowBatch::add(const query::TierWindow& window) {
  turn_to(window.begin_ns);
  for (Open& open : tiers_) {
    open.numbers += window.numbers;
    for (query::Aggregator& column : open.columns) column.add(window);
  }
}

void WindowBatch::finish() {
  for (Open& open : tiers_) {
    if (open.is_open) put(open);
    open.is_open = false;
  }
}

void WindowBatch::put(Open& open) {
  ++windows_;
  query::TierWindow window{.begin_ns = open.begin_ns, .numbers = open.numbers};
  const auto result_of = [&open](TierColumn column) -> std::optional<wire::Value> {
    wire::Value value;
    // The first or the last may be a text, which a window does not keep.
    const bool is_there = open.columns[static_cast<std::size_t>(column)].result(value);
    return is_there && is_number(value) ? std::optional(value) : std::nullopt;
  };
  if (const auto count = result_of(TierColumn::Count))
    window.count = static_cast<std::uint64_t>(count->int64);
  window.min = result_of(TierColumn::Min);
  window.max = result_of(TierColumn::Max);
  window.sum = result_of(TierColumn::Sum);
  window.first = result_of(TierColumn::First);
  window.last = result_of(TierColumn::Last);
  put_window(open.tier, series_, window, batch_);
  if (made_ == nullptr) return;
  window.every_ns = open.tier.every_ns;
  made_->push_back(window);
}

// TierMaker on a full drive: storage.on-full = "thin-oldest".

// When the first window of all is whole: before that time there is something to make room with.
// None: there is nothing.
std::optional<std::int64_t> TierMaker::first_due_ns(std::int64_t limit_ns, std::string& why) {
  std::optional<std::int64_t> first_due_ns;
  why = "no rule of retention has tiers that readings could become windows of";
  each_series([&](const catalog::SeriesEntry& series) {
    const wire::Keeping keeping = retention_.keeping(series);
    if (keeping.tiers.empty() || series.id.sensor > catalog::kTierSensorMax) return;
    if (!first_due_ns) why = "all readings whose rule has tiers are windows, but for the newest";
    const auto first = first_ns(series, limit_ns);
    if (!first.ok()) {
      why = first.status().message();
      return;
    }
    const std::int64_t every_ns = keeping.tiers.back().every_ns;
    std::int64_t end_ns = 0;
    if (!*first ||
        __builtin_add_overflow(query::window_start(**first, every_ns), every_ns, &end_ns))
      return;
    if (end_ns <= limit_ns) first_due_ns = std::min(first_due_ns.value_or(end_ns), end_ns);
  });
  return first_due_ns;
}

// Readings of rules without tiers are as old, and stay: then later ones have to go.
retention::Thinned TierMaker::thin_oldest(std::uint64_t value_bytes, std::int64_t limit_ns) {
  const MutexLock passing(pass_mutex_);
  retention::Thinned thinned;
  const auto first_due_ns = this->first_due_ns(limit_ns, thinned.left);
  if (!first_due_ns) return thinned;
  EvictionRequest request;
  request.limit_ns = limit_ns;
  for (const std::string& name : catalog_.namespaces()) {
    const auto info = engine_.find_namespace(name);
    if (info.ok() && !name.starts_with('_')) request.namespaces.push_back(info->id);
  }
  const TierStatus before = status();
  Status problem;
  std::uint64_t going_bytes = 0;
  for (request.value_bytes = value_bytes;; request.value_bytes *= 2) {
    const Eviction plan = engine_.plan_eviction(request);
    const bool is_all = plan.value_bytes < request.value_bytes / 2 || plan.before_ns >= limit_ns;
    thinned.before_ns = is_all ? limit_ns : plan.before_ns;
    if (thinned.before_ns >= *first_due_ns)
      problem = do_due({.thin_ns = thinned.before_ns}, going_bytes);
    const bool is_enough = status().readings > before.readings && going_bytes >= value_bytes / 2;
    if (is_all || is_stopping() || is_enough) break;
  }
  retention_.tell_marks();
  const TierStatus after = status();
  thinned.readings = after.readings - before.readings;
  thinned.windows = after.windows - before.windows;
  thinned.value_bytes = going_bytes;
  if (!problem.ok()) thinned.left = problem.message();
  return thinned;
}

bool TierMaker::is_going(bool is_urgent) {
  const MutexLock passing(pass_mutex_);
  static_cast<void>(erase_hidden(!is_urgent).ok());  // it is tried again
  return !retention_.marks().waiting(1).empty() || engine_.stats().erasure.pending_ranges > 0;
}

}  // namespace edgecase::tiers
