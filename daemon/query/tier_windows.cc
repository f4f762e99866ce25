#include "query/tier_windows.h"

#include <limits>
#include <utility>

#include "wire/reading.h"

namespace edgecase::query {
namespace {

using catalog::TierColumn;

// Bounds of whole windows within a range; past the end of time there is none.
std::int64_t first_begin_ns(std::int64_t from_ns, std::int64_t every_ns) {
  std::int64_t into = from_ns % every_ns;
  if (into < 0) into += every_ns;
  std::int64_t begin_ns = from_ns;
  if (into != 0 && __builtin_add_overflow(from_ns, every_ns - into, &begin_ns))
    return std::numeric_limits<std::int64_t>::max();
  return begin_ns;
}

std::int64_t end_ns(std::int64_t to_ns, std::int64_t every_ns) {
  std::int64_t into = to_ns % every_ns;
  if (into < 0) into += every_ns;
  std::int64_t end = 0;
  return __builtin_sub_overflow(to_ns, into, &end) ? std::numeric_limits<std::int64_t>::min() : end;
}

Status bad_window() {
  return corruption("a window of a tier is none");
}

}  // namespace

Result<std::unique_ptr<TierWindows>> TierWindows::open(
    Engine& engine, const catalog::TierSpace& tier, const catalog::SeriesId& series,
    std::int64_t from_ns, std::optional<std::int64_t> to_ns, TierColumnSet columns,
    const ReadOptions& options) {
  std::unique_ptr<TierWindows> windows(new TierWindows(tier, options.direction));
  windows->series_ = series;
  if (series.sensor > catalog::kTierSensorMax) return windows;
  // Without a beginning damage has none that is known, as of readings.
  const bool is_from_ever = from_ns == std::numeric_limits<std::int64_t>::min();
  const std::int64_t first_ns = is_from_ever ? from_ns : first_begin_ns(from_ns, tier.every_ns);
  const std::int64_t behind_ns =
      to_ns ? end_ns(*to_ns, tier.every_ns) : std::numeric_limits<std::int64_t>::max();
  if (first_ns >= behind_ns) return windows;
  ReadOptions narrow = options;
  narrow.summaries = false;
  columns |= tier_bit(TierColumn::Count) | tier_bit(TierColumn::Numbers);
  for (std::uint32_t i = 0; i < catalog::kTierColumns; ++i) {
    const auto column = static_cast<TierColumn>(i);
    if ((columns & tier_bit(column)) == 0) continue;
    const catalog::SeriesId id = catalog::tier_series(tier.id, series, column);
    const KeyRange range{wire::make_reading_key({id.device, id.sensor, first_ns}),
                         wire::make_reading_key({id.device, id.sensor, behind_ns})};
    EC_ASSIGN_OR_RETURN(windows->columns_[i], engine.scan(tier.id, range, narrow));
  }
  windows->read();
  EC_TRY(windows->status_);
  return windows;
}

std::int64_t TierWindows::last_ns() const {
  std::int64_t end = 0;
  return __builtin_add_overflow(window_.begin_ns, tier_.every_ns - 1, &end)
             ? std::numeric_limits<std::int64_t>::max()
             : end;
}

void TierWindows::next() {
  columns_[0]->next();
  read();
}

void TierWindows::seek(std::int64_t time_ns) {
  for (std::uint32_t i = 0; i < catalog::kTierColumns; ++i) {
    if (columns_[i] == nullptr) continue;
    const catalog::SeriesId id =
        catalog::tier_series(tier_.id, series_, static_cast<TierColumn>(i));
    columns_[i]->seek(wire::make_reading_key({id.device, id.sensor, time_ns}));
  }
  read();
}

// What the column has of that window; the count, which each window has, leads the others.
Result<std::optional<wire::Value>> TierWindows::take(TierColumn column, std::int64_t time_ns) {
  Iterator* const at = columns_[static_cast<std::size_t>(column)].get();
  std::optional<wire::Value> value;
  if (at == nullptr) return value;
  const auto lies_ahead = [&](std::int64_t other_ns) {
    return direction_ == Direction::Forward ? other_ns < time_ns : other_ns > time_ns;
  };
  while (at->valid() && lies_ahead(wire::time_of_reading_key(at->key().data()))) at->next();
  const auto stands_there = [&] {
    return at->valid() && wire::time_of_reading_key(at->key().data()) == time_ns;
  };
  if (stands_there()) {
    const ByteView bytes = at->value();
    // What cannot be read somebody was told of, and it has stepped over it.
    if (!stands_there())
      return at->status().ok() ? value : Result<std::optional<wire::Value>>(at->status());
    value.emplace();
    // Numbers and bools, which borrow nothing.
    if (!wire::decode_value(bytes, *value) || value->type == wire::ValueType::Text ||
        value->type == wire::ValueType::Bytes)
      return bad_window();
  }
  EC_TRY(at->status());
  return value;
}

// Whether the window where the counts stand could be read.
Result<bool> TierWindows::read_window() {
  window_ = {};
  window_.begin_ns = wire::time_of_reading_key(columns_[0]->key().data());
  window_.every_ns = tier_.every_ns;
  const auto number = [&](TierColumn column) -> Result<std::optional<std::uint64_t>> {
    EC_ASSIGN_OR_RETURN(const auto value, take(column, window_.begin_ns));
    if (!value) return std::optional<std::uint64_t>();
    if (value->type != wire::ValueType::Int64 || value->int64 < 0) return bad_window();
    return std::optional(static_cast<std::uint64_t>(value->int64));
  };
  EC_ASSIGN_OR_RETURN(const auto count, number(TierColumn::Count));
  if (!count) return false;
  EC_ASSIGN_OR_RETURN(const auto numbers, number(TierColumn::Numbers));
  window_.count = *count;
  window_.numbers = numbers.value_or(*count);
  EC_ASSIGN_OR_RETURN(window_.min, take(TierColumn::Min, window_.begin_ns));
  EC_ASSIGN_OR_RETURN(window_.max, take(TierColumn::Max, window_.begin_ns));
  EC_ASSIGN_OR_RETURN(window_.sum, take(TierColumn::Sum, window_.begin_ns));
  EC_ASSIGN_OR_RETURN(window_.first, take(TierColumn::First, window_.begin_ns));
  EC_ASSIGN_OR_RETURN(window_.last, take(TierColumn::Last, window_.begin_ns));
  return true;
}

void TierWindows::read() {
  has_window_ = false;
  status_ = ok();
  Iterator* const counts = columns_[0].get();
  if (counts == nullptr) return;
  while (!has_window_ && status_.ok() && counts->valid()) {
    const Result<bool> is_read = read_window();
    has_window_ = is_read.ok() && *is_read;
    status_ = is_read.status();
  }
  if (status_.ok()) status_ = counts->status();
  if (!status_.ok()) has_window_ = false;
}

}  // namespace edgecase::query
