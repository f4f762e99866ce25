#include "tiers/window_batch.h"

#include <limits>

#include "query/cursors.h"
#include "wire/reading_key.h"

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

WindowBatch::WindowBatch(const catalog::SeriesId& series, std::span<const catalog::TierSpace> tiers,
                         WriteBatch& batch)
    : series_(series), batch_(batch) {
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
  std::int64_t count = 0;
  for (std::size_t i = 0; i < open.columns.size(); ++i) {
    wire::Value value;
    // The first or the last may be a text, which a window does not keep.
    if (!open.columns[i].result(value) || !is_number(value)) continue;
    const auto column = static_cast<TierColumn>(i);
    if (column == TierColumn::Count) count = value.int64;
    put(open, column, value);
  }
  const auto numbers = static_cast<std::int64_t>(open.numbers);
  if (numbers != count) put(open, TierColumn::Numbers, wire::Value::of_int64(numbers));
}

void WindowBatch::put(const Open& open, TierColumn column, const wire::Value& value) {
  const catalog::SeriesId id = catalog::tier_series(open.tier.id, series_, column);
  Bytes bytes;
  wire::append_value(value, bytes);
  batch_.put(id.namespace_id, wire::make_reading_key({id.device, id.sensor, open.begin_ns}), bytes);
}

}  // namespace edgecase::tiers
