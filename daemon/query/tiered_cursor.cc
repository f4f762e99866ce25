#include "query/tiered_cursor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "catalog/tier_spaces.h"
#include "query/cursors.h"
#include "query/query_service.h"
#include "wire/json_text.h"
#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::query {

TieredCursor::TieredCursor(Engine& engine, const catalog::Catalog& catalog,
                           const retention::TierMarks& marks,
                           std::vector<catalog::SeriesRow> series, const TimeRange& range,
                           const ReadOptions& options, std::uint64_t limit,
                           std::vector<LeftOutReadings> left_out)
    : engine_(engine),
      catalog_(catalog),
      marks_(marks),
      rows_(std::move(series)),
      range_(range),
      options_(options),
      limit_(limit),
      given_(engine),
      left_out_(std::make_shared<LeftOut>()) {
  for (LeftOutReadings& each : left_out) left_out_->add(std::move(each));
}

Result<bool> TieredCursor::next(wire::Reading& reading) {
  gave_reading_ = false;
  while (limit_ > 0) {
    if (!has_series_) {
      EC_ASSIGN_OR_RETURN(const bool is_there, next_series());
      if (!is_there) break;
    }
    if (readings_ == nullptr) EC_TRY(open_series());
    if (!has_series_) continue;  // it is gone
    if (is_forward()) {
      if (Tier* const tier = next_tier(); tier != nullptr) {
        EC_TRY(give_window(*tier, reading));
        return true;
      }
    }
    if (has_readings_) {
      EC_ASSIGN_OR_RETURN(has_readings_, next_reading(reading));
      if (has_readings_) return true;
    }
    Tier* const tier = is_forward() ? nullptr : next_tier();
    if (tier != nullptr) {
      EC_TRY(give_window(*tier, reading));
      return true;
    }
    for (const Tier& each : tiers_) EC_TRY(each.windows->status());
    close_series();
    has_series_ = false;
  }
  limit_ = 0;
  close_series();
  options_.snapshot.reset();
  return false;
}

Result<bool> TieredCursor::next_series() {
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  while (next_row_ < rows_.size()) {
    auto entry = catalog_.series_at(rows_[next_row_++]);
    if (!entry.ok()) continue;
    series_ = *std::move(entry);
    has_series_ = true;
    has_readings_ = !only_ns_;
    tiers_.clear();
    told_ns_.reset();
    oldest_ns_.reset();
    return true;
  }
  return false;
}

// Behind what was told of the series.
Status TieredCursor::open_series() {
  const auto still = catalog_.series_at(rows_[next_row_ - 1]);
  if (!still.ok() || !(still->id == series_.id)) {
    has_series_ = false;
    return ok();
  }
  // Before the snapshot: what becomes windows in between is found to have moved.
  const std::int64_t marked_ns = marks_.find(series_.id).before_ns;
  if (!told_ns_) marked_ns_ = marked_ns;
  if (options_.snapshot == nullptr) options_.snapshot = engine_.snapshot();
  revocations_ = options_.snapshot->revocations();
  for (const catalog::TierSpace& space :
       catalog::tier_spaces_of(engine_, series_.id.namespace_id)) {
    if (!only_ns_ || *only_ns_ == space.every_ns) EC_TRY(open_windows(space));
  }
  TimeRange range = range_;
  if (told_ns_ && is_forward()) {
    if (*told_ns_ == std::numeric_limits<std::int64_t>::max()) has_readings_ = false;
    range.from_ns = has_readings_ ? *told_ns_ + 1 : *told_ns_;
  } else if (told_ns_) {
    range.to_ns = *told_ns_;
  }
  SeriesScan scan(engine_, catalog_, {rows_[next_row_ - 1]}, range, options_);
  readings_ = std::make_unique<StoredCursor>(std::move(scan), kNoLimit, kNoLimit);
  return check_moved();
}

Status TieredCursor::open_windows(const catalog::TierSpace& space) {
  auto tier = std::find_if(tiers_.begin(), tiers_.end(),
                           [&](const Tier& each) { return each.space.id == space.id; });
  if (tier == tiers_.end()) tier = tiers_.insert(tiers_.end(), Tier{space, {}, {}});
  TimeRange range = range_;
  if (tier->told_ns && is_forward()) range.from_ns = *tier->told_ns + 1;
  if (tier->told_ns && !is_forward()) range.to_ns = *tier->told_ns;
  // The last window that begins in the range may end behind it.
  const bool is_endless =
      !range.to_ns || __builtin_add_overflow(*range.to_ns, space.every_ns - 1, &*range.to_ns);
  if (is_endless) range.to_ns.reset();
  ReadOptions options = options_;
  options.on_damage = [series = series_, left_out = left_out_](const DamagedKeys& keys) {
    const auto time_of = [](const Bytes& key) -> std::optional<std::int64_t> {
      if (key.size() < wire::kReadingKeyBytes) return std::nullopt;
      return wire::time_of_reading_key(key.data());
    };
    left_out->add({series.namespace_name, series.device, series.sensor, time_of(keys.first),
                   keys.last ? time_of(*keys.last) : std::nullopt, keys.why});
  };
  EC_ASSIGN_OR_RETURN(tier->windows, TierWindows::open(engine_, space, series_.id, range.from_ns,
                                                       range.to_ns, kAllTierColumns, options));
  return ok();
}

// Whether readings of the series that were told, or are still to come, are windows by now.
Status TieredCursor::check_moved() const {
  if (marks_.find(series_.id).before_ns == marked_ns_) return ok();
  return busy("readings became windows while they were read: ask again");
}

Result<bool> TieredCursor::next_reading(wire::Reading& reading) {
  reading.window = nullptr;
  EC_ASSIGN_OR_RETURN(const bool is_there, readings_->next(reading));
  // The scan goes on with what is stored now where something was revoked.
  if (engine_.revocations() != revocations_) EC_TRY(check_moved());
  if (!is_there) return false;
  gave_reading_ = true;
  told_ns_ = reading.time_ns;
  --limit_;
  ++account_.readings_decoded;
  return true;
}

wire::Numbers TieredCursor::take_numbers(std::size_t most) {
  if (!gave_reading_) return {};
  const wire::Numbers taken =
      readings_->take_numbers(static_cast<std::size_t>(std::min<std::uint64_t>(most, limit_)));
  if (taken.empty()) return taken;
  limit_ -= taken.size();
  told_ns_ = taken.times_ns.back();
  account_.readings_decoded += taken.size();
  return taken;
}

// The one whose window comes next; null: no window is left.
TieredCursor::Tier* TieredCursor::next_tier() {
  Tier* next = nullptr;
  for (Tier& tier : tiers_) {
    if (!tier.windows->valid()) continue;
    if (next == nullptr) {
      next = &tier;
      continue;
    }
    const std::int64_t begin_ns = tier.windows->window().begin_ns;
    const std::int64_t next_ns = next->windows->window().begin_ns;
    if (is_forward() ? begin_ns < next_ns : begin_ns >= next_ns) next = &tier;
  }
  return next;
}

Status TieredCursor::give_window(Tier& tier, wire::Reading& reading) {
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  window_ = tier.windows->window();
  tier.told_ns = window_.begin_ns;
  // An erasure takes it there; that its readings go for good is none.
  given_.add(catalog::tier_series(tier.space.id, series_.id, catalog::TierColumn::Count),
             window_.begin_ns, window_.begin_ns);
  tier.windows->next();
  EC_TRY(tier.windows->status());
  reading = {};
  reading.namespace_name = series_.namespace_name;
  reading.device = series_.device;
  reading.sensor = series_.sensor;
  reading.time_ns = window_.begin_ns;
  reading.window = &window_;
  identity_.body = series_.identity;
  reading.identity = identity_.body.empty() ? nullptr : &identity_;
  ++account_.windows_from_tiers;
  --limit_;
  return ok();
}

void TieredCursor::close_series() {
  if (readings_ != nullptr) {
    given_.add(readings_->take_given());
    if (readings_->left_out() != nullptr) left_out_->add(*readings_->left_out());
  }
  readings_.reset();
  for (Tier& tier : tiers_) tier.windows.reset();
}

void TieredCursor::let_go() {
  if (readings_ == nullptr) return;
  if (large_text() != nullptr) return readings_->let_go();
  const bool is_overtaken = engine_.revocations() != revocations_;
  const bool is_short = options_.snapshot->keeps_memory() && engine_.is_short_of_memory();
  if (!is_overtaken && !is_short) return;
  close_series();
  gave_reading_ = false;
  options_.snapshot.reset();
}

GivenReadings TieredCursor::take_given() {
  if (readings_ != nullptr) given_.add(readings_->take_given());
  return std::exchange(given_, GivenReadings(engine_));
}

bool TieredCursor::is_given_revoked() {
  return given_.is_revoked() || (readings_ != nullptr && readings_->is_given_revoked());
}

const LeftOut* TieredCursor::left_out() const {
  all_left_out_ = *left_out_;
  if (readings_ != nullptr && readings_->left_out() != nullptr)
    all_left_out_.add(*readings_->left_out());
  return &all_left_out_;
}

namespace {

using catalog::TierColumn;

std::string lengths_text(const std::set<std::int64_t>& lengths_ns) {
  std::string text;
  for (const std::int64_t each : lengths_ns)
    text += (text.empty() ? "" : ", ") + wire::format_duration(each);
  return text;
}

std::function<std::int64_t(const catalog::SeriesEntry&)> before_of(
    const retention::TierMarks& marks) {
  return [&marks](const catalog::SeriesEntry& series) { return marks.find(series.id).before_ns; };
}

// What a tier keeps that a column is made of.
TierColumn column_for(wire::WindowColumn column) {
  switch (column) {
    case wire::WindowColumn::Count: return TierColumn::Count;
    case wire::WindowColumn::Min: return TierColumn::Min;
    case wire::WindowColumn::Max: return TierColumn::Max;
    case wire::WindowColumn::Sum:
    case wire::WindowColumn::Mean: return TierColumn::Sum;
    case wire::WindowColumn::First: return TierColumn::First;
    case wire::WindowColumn::Last: return TierColumn::Last;
  }
  return TierColumn::Count;
}

// Begin of the first window of that length that there is of a series in `range`; none: there is
// none.
std::optional<std::int64_t> first_window(Engine& engine, const catalog::SeriesId& series,
                                         std::int64_t every_ns, const TimeRange& range) {
  const auto space = engine.find_namespace(catalog::tier_space_name(series.namespace_id, every_ns));
  if (!space.ok() || series.sensor > catalog::kTierSensorMax) return std::nullopt;
  const KeyRange keys =
      key_range(catalog::tier_series(space->id, series, TierColumn::Count), range);
  const auto windows = engine.scan(space->id, keys, without_damaged());
  if (!windows.ok() || !(*windows)->valid()) return std::nullopt;
  return wire::time_of_reading_key((*windows)->key().data());
}

// A coarser tier is kept for longer, and may have been there before a finer one was.
void note_coarser(Engine& engine, const retention::TierMark& mark, const catalog::SeriesId& series,
                  std::int64_t from_ns, std::int64_t tier_ns, TierNote& note) {
  if (tier_ns == mark.every_ns.back()) return;
  const TimeRange thinned{from_ns, mark.before_ns};
  const std::int64_t begin_ns =
      first_window(engine, series, tier_ns, thinned).value_or(mark.before_ns);
  for (const std::int64_t each_ns : mark.every_ns) {
    if (each_ns <= tier_ns) continue;
    const auto first_ns = first_window(engine, series, each_ns, thinned);
    if (!first_ns || *first_ns >= window_start(begin_ns, each_ns)) continue;
    note.missed_ns.insert(each_ns);
    note.missed_before_ns = std::max(note.missed_before_ns, begin_ns);
  }
}

// The window of a tier within which the range begins or ends.
void note_cut(Engine& engine, const retention::TierMark& mark, const catalog::SeriesId& series,
              std::int64_t edge_ns, std::int64_t tier_ns, TierNote& note) {
  const std::int64_t begin_ns = window_start(edge_ns, tier_ns);
  if (begin_ns >= edge_ns || begin_ns >= mark.before_ns) return;
  if (first_window(engine, series, tier_ns, {begin_ns, begin_ns + 1}))
    note.cut_ns.emplace(begin_ns, tier_ns);
}

}  // namespace

void TierNote::add(const TierNote& other) {
  read_ns.insert(other.read_ns.begin(), other.read_ns.end());
  missed_ns.insert(other.missed_ns.begin(), other.missed_ns.end());
  cut_ns.insert(other.cut_ns.begin(), other.cut_ns.end());
  read_before_ns = std::max(read_before_ns, other.read_before_ns);
  missed_before_ns = std::max(missed_before_ns, other.missed_before_ns);
}

std::string TierNote::text() const {
  std::string text;
  if (!read_ns.empty()) text = lengths_text(read_ns) + " before " + wire::time_text(read_before_ns);
  if (!missed_ns.empty()) {
    text += (text.empty() ? "none before " : "; none before ") + wire::time_text(missed_before_ns) +
            ": windows of " + lengths_text(missed_ns) + " are kept there";
  }
  bool is_first = true;
  for (const auto& [begin_ns, tier_ns] : cut_ns) {
    text += std::exchange(is_first, false) ? "; cut by the range, so left out: " : ", ";
    text += wire::format_duration(tier_ns) + " at " + wire::time_text(begin_ns);
  }
  return text;
}

std::optional<std::int64_t> tier_for(const retention::TierMark& mark, std::int64_t every_ns) {
  const auto fits = [=](std::int64_t tier_ns) { return every_ns % tier_ns == 0; };
  const auto found = std::find_if(mark.every_ns.rbegin(), mark.every_ns.rend(), fits);
  if (found == mark.every_ns.rend()) return std::nullopt;
  return *found;
}

std::optional<TierColumnSet> tier_columns(wire::Aggregate aggregate) {
  switch (aggregate) {
    case wire::Aggregate::Count: return tier_bit(TierColumn::Count);
    case wire::Aggregate::Min: return tier_bit(TierColumn::Min);
    case wire::Aggregate::Max: return tier_bit(TierColumn::Max);
    case wire::Aggregate::Sum:
    case wire::Aggregate::Mean: return tier_bit(TierColumn::Sum) | tier_bit(TierColumn::Numbers);
    case wire::Aggregate::First: return tier_bit(TierColumn::First);
    case wire::Aggregate::Last: return tier_bit(TierColumn::Last);
    default: return std::nullopt;
  }
}

TierReading read_windows(const Engine& engine, const retention::TierMarks* marks,
                         std::int64_t every_ns, wire::WindowColumn column) {
  TierReading reading;
  reading.every_ns = every_ns;
  reading.is_alone = true;
  reading.columns = tier_bit(column_for(column));
  if (marks != nullptr) reading.before = before_of(*marks);
  reading.choose =
      [&engine, every_ns](const catalog::SeriesEntry& series) -> std::optional<catalog::TierSpace> {
    const auto space =
        engine.find_namespace(catalog::tier_space_name(series.id.namespace_id, every_ns));
    if (!space.ok()) return std::nullopt;
    return catalog::TierSpace{space->id, every_ns};
  };
  return reading;
}

TierReading read_tiers(const Engine& engine, const retention::TierMarks& marks,
                       std::int64_t from_ns, std::int64_t every_ns,
                       std::optional<wire::Aggregate> aggregate) {
  TierReading reading;
  const auto columns = aggregate ? tier_columns(*aggregate) : std::nullopt;
  if (!columns || marks.latest_ns() <= from_ns) return reading;
  reading.columns = *columns;
  reading.every_ns = every_ns;
  reading.before = before_of(marks);
  reading.choose = [&engine, &marks, every_ns](
                       const catalog::SeriesEntry& series) -> std::optional<catalog::TierSpace> {
    const auto tier_ns = tier_for(marks.find(series.id), every_ns);
    if (!tier_ns) return std::nullopt;
    const auto space =
        engine.find_namespace(catalog::tier_space_name(series.id.namespace_id, *tier_ns));
    if (!space.ok()) return std::nullopt;
    return catalog::TierSpace{space->id, *tier_ns};
  };
  return reading;
}

void note_windows(const retention::TierMarks& marks, const catalog::SeriesId& series,
                  std::int64_t from_ns, std::int64_t every_ns, TierNote& note) {
  const std::int64_t before_ns = marks.find(series).before_ns;
  if (before_ns <= from_ns) return;
  note.read_ns.insert(every_ns);
  note.read_before_ns = std::max(note.read_before_ns, before_ns);
}

void note_tiers(Engine& engine, const retention::TierMarks& marks, const catalog::SeriesId& series,
                const TimeRange& range, std::int64_t every_ns,
                std::optional<wire::Aggregate> aggregate, TierNote& note) {
  const retention::TierMark mark = marks.find(series);
  if (mark.before_ns <= range.from_ns) return;
  const bool can = aggregate && tier_columns(*aggregate);
  if (const auto tier_ns = can ? tier_for(mark, every_ns) : std::nullopt) {
    note.read_ns.insert(*tier_ns);
    note.read_before_ns = std::max(note.read_before_ns, mark.before_ns);
    note_coarser(engine, mark, series, range.from_ns, *tier_ns, note);
    note_cut(engine, mark, series, range.from_ns, *tier_ns, note);
    if (range.to_ns) note_cut(engine, mark, series, *range.to_ns, *tier_ns, note);
  } else {
    note.missed_ns.insert(mark.every_ns.begin(), mark.every_ns.end());
    note.missed_before_ns = std::max(note.missed_before_ns, mark.before_ns);
  }
}

}  // namespace edgecase::query
