#include "query/tier_choice.h"

#include <algorithm>
#include <utility>

#include "catalog/tier_spaces.h"
#include "query/cursors.h"
#include "wire/json_text.h"
#include "wire/reading_key.h"
#include "wire/time_text.h"

namespace edgecase::query {
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
