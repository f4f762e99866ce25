#include "tiers/series_windows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "query/cursors.h"

namespace edgecase::tiers {
namespace {

using catalog::TierColumn;
using retention::TierMark;
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

bool holds(const std::vector<std::int64_t>& lengths, std::int64_t every_ns) {
  return std::find(lengths.begin(), lengths.end(), every_ns) != lengths.end();
}

// Readings become windows, up to the end of a piece: how many, and before which time. What cannot
// be read shows in the scan.
struct Taken {
  std::uint64_t readings = 0;
  std::int64_t before_ns = 0;
};

Result<Taken> take_readings(query::SeriesScan& scan, std::int64_t before_ns, WindowBatch& windows) {
  Taken taken{0, before_ns};
  std::int64_t piece_last_ns = INT64_MIN;  // of the coarsest window that is open
  while (scan.valid()) {
    const std::int64_t time_ns = scan.time_ns();
    if (time_ns > piece_last_ns) {
      if (windows.windows() >= kPieceWindows || taken.readings >= kPieceReadings) {
        taken.before_ns = piece_last_ns + 1;
        break;
      }
      piece_last_ns = windows.coarsest_last_ns(time_ns);
    }
    const wire::Numbers numbers = scan.numbers();
    if (!scan.valid()) break;
    std::size_t count = 1;
    if (numbers.empty()) {
      wire::Value value;
      EC_TRY(scan.value(value));
      windows.add(scan.time_ns(), value);
    } else {
      count = numbers.count_within(INT64_MIN, windows.finest_last_ns(numbers.times_ns.front()));
      windows.add(numbers.first(count));
    }
    taken.readings += count;
    scan.skip(count);
  }
  EC_TRY(scan.status());
  return taken;
}

}  // namespace

std::vector<std::int64_t> lengths_of(const std::vector<wire::Tier>& tiers) {
  std::vector<std::int64_t> lengths;
  for (const wire::Tier& tier : tiers) lengths.push_back(tier.every_ns);
  return lengths;
}

KeyRange readings_before(const catalog::SeriesId& id, std::int64_t before_ns) {
  return {wire::make_reading_key({id.device, id.sensor, INT64_MIN}),
          wire::make_reading_key({id.device, id.sensor, before_ns})};
}

Status stays_for_damage(const catalog::SeriesEntry& series) {
  return corruption(series.device + "/" + series.sensor +
                    " stays as it is: some of its readings are damaged");
}

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

Status SeriesWindows::follow_rule(const catalog::SeriesEntry& series, const wire::Keeping& keeping,
                                  const TierMark& mark) {
  const catalog::SeriesId& id = series.id;
  const std::vector<std::int64_t> wanted = lengths_of(keeping.tiers);
  const erase::Fences::Pass pass = fences_.enter();
  if (!catalog_.find(series.namespace_name, series.device, series.sensor).ok())
    return ok();  // erased meanwhile
  const std::vector<catalog::TierSpace> spaces = catalog::tier_spaces_of(engine_, id.namespace_id);
  const auto space_of = [&](std::int64_t every_ns) {
    return std::find_if(spaces.begin(), spaces.end(),
                        [=](const catalog::TierSpace& each) { return each.every_ns == every_ns; });
  };
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  options.fill_cache = false;
  const TierMark next{mark.before_ns, mark.erased_ns, wanted};
  for (const std::int64_t every_ns : wanted) {
    if (holds(mark.every_ns, every_ns)) continue;
    const auto source = std::find_if(mark.every_ns.begin(), mark.every_ns.end(),
                                     [=](std::int64_t each) { return every_ns % each == 0; });
    // Finer than all that is kept: it begins at the mark.
    if (source == mark.every_ns.end() || space_of(*source) == spaces.end()) continue;
    EC_TRY(make_tier(id, *space_of(*source), *space_of(every_ns), options));
  }
  WriteBatch last;
  if (wanted.empty() && mark.erased_ns < mark.before_ns) {
    // Without a mark nobody knows of what is hidden.
    const KeyRange hidden = readings_before(id, mark.before_ns);
    last.erase_range(id.namespace_id, hidden.lower, hidden.upper);
  }
  for (const std::int64_t every_ns : mark.every_ns) {
    const auto space = space_of(every_ns);
    if (holds(wanted, every_ns) || space == spaces.end()) continue;
    const catalog::KeySpan windows = catalog::windows_span(*space, id);
    last.remove_range(space->id, windows.lower, windows.upper);
  }
  retention::TierMarks::append(retention_.records(), id, next, last);
  EC_TRY(engine_.write(last, Durability::Sync));
  retention_.marks().set(id, next);
  return ok();
}

// Windows of a finer tier, to the last one, within which the mark may lie.
Status SeriesWindows::make_tier(const catalog::SeriesId& id, const catalog::TierSpace& source,
                                const catalog::TierSpace& target, const ReadOptions& options) {
  EC_ASSIGN_OR_RETURN(const auto windows,
                      query::TierWindows::open(engine_, source, id, INT64_MIN, std::nullopt,
                                               query::kAllTierColumns, options));
  WriteBatch made;
  WindowBatch batch(id, {&target, 1}, made);
  for (; windows->valid(); windows->next()) {
    batch.add(windows->window());
    if (made.size_bytes() < kBatchSizeMaxBytes / 4) continue;
    EC_TRY(engine_.write(made, Durability::Async));  // the mark's sync covers it
    made.clear();
  }
  EC_TRY(windows->status());
  batch.finish();
  return engine_.write(made, Durability::Async);
}

// Since the rule has other tiers than before, the mark may lie within a window of theirs.
Status SeriesWindows::go_on_behind(const TierMark& mark, const Wish& wish,
                                   const ReadOptions& options, WindowBatch& windows) {
  const std::span<const catalog::TierSpace> tiers = wish.tiers;
  if (mark.before_ns == INT64_MIN) return ok();
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const std::int64_t begin_ns = query::window_start(mark.before_ns, tiers[i].every_ns);
    std::int64_t end_ns = 0;
    if (begin_ns == mark.before_ns || __builtin_add_overflow(begin_ns, tiers[i].every_ns, &end_ns))
      continue;
    EC_ASSIGN_OR_RETURN(const auto begun,
                        query::TierWindows::open(engine_, tiers[i], wish.series.id, begin_ns,
                                                 end_ns, query::kAllTierColumns, options));
    if (begun->valid()) windows.go_on(i, begun->window());
  }
  return ok();
}

Result<SeriesWindows::Piece> SeriesWindows::make_piece(const Wish& wish) {
  const erase::Fences::Pass pass = fences_.enter();
  ReadOptions options;
  options.snapshot = engine_.snapshot();
  options.fill_cache = false;
  options.large_value_bytes = query::kLargeTextBytes;
  const catalog::SeriesId& id = wish.series.id;
  const auto row = catalog_.select_rows(
      wish.series.namespace_name,
      wire::Selector{wire::escape_name(wish.series.device), wire::escape_name(wish.series.sensor)});
  const auto found = row.size() == 1 ? catalog_.series_at(row.front())
                                     : Result<catalog::SeriesEntry>(not_found("erased"));
  if (!found.ok() || !(found->id == id)) return Piece();  // erased meanwhile
  query::SeriesScan scan(engine_, catalog_, row, {INT64_MIN, wish.before_ns}, options);
  EC_ASSIGN_OR_RETURN(const bool is_there, scan.next_series());
  if (!is_there || (!scan.valid() && scan.status().ok() && scan.damaged().of_series.empty()))
    return Piece();
  WriteBatch batch;
  batch.set_makes_room();
  std::vector<query::TierWindow> made;
  WindowBatch windows(id, wish.tiers, batch, made_ ? &made : nullptr);
  const TierMark before = retention_.marks().find(id);
  EC_TRY(go_on_behind(before, wish, options, windows));
  EC_ASSIGN_OR_RETURN(const Taken taken, take_readings(scan, wish.before_ns, windows));
  if (!scan.damaged().of_series.empty()) return stays_for_damage(wish.series);
  windows.finish();
  const TierMark mark{taken.before_ns, before.erased_ns, lengths_of(wish.keeping.tiers)};
  retention::TierMarks::append(retention_.records(), id, mark, batch);
  const KeyRange gone = readings_before(id, taken.before_ns);
  batch.remove_range(id.namespace_id, gone.lower, gone.upper);
  if (unsent_ != nullptr) EC_TRY(unsent_->leave_thinned(*found, taken.before_ns, batch));
  EC_TRY(engine_.write(batch, Durability::Sync));
  retention_.marks().set(id, mark);
  if (unsent_ != nullptr) unsent_->left_thinned();
  if (made_) made_(*found, made);
  return Piece{windows.windows(), taken.readings, true, taken.before_ns < wish.before_ns};
}

}  // namespace edgecase::tiers
