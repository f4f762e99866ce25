// Chooses the tier that answers a question of a series whose readings have become windows, and
// tells what was chosen (X-EdgeCase-Tiers).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "query/series_scan.h"
#include "retention/tier_marks.h"
#include "wire/selector.h"
#include "wire/tiers.h"

namespace edgecase::query {

// What the answers of one question have read in place of readings, and where they could not.
struct TierNote {
  std::set<std::int64_t> read_ns, missed_ns;  // lengths of windows
  std::int64_t read_before_ns = INT64_MIN, missed_before_ns = INT64_MIN;
  // Begins and lengths of windows that an end of the question's range cuts.
  std::set<std::pair<std::int64_t, std::int64_t>> cut_ns;

  // "1h before 2026-11-22T10:00:00Z"; then, or alone, "none before ...: windows of 1m, 1h are kept
  // there": the answer has nothing of that time; then "cut by the range, so left out: 1h at ...".
  // "": it is made of readings alone.
  std::string text() const;
  void add(const TierNote& other);
};

// The coarsest of a series' tiers of whose windows those of `every_ns` (0: of any length) are made,
// which reaches back the furthest. None: there is none.
std::optional<std::int64_t> tier_for(const retention::TierMark& mark, std::int64_t every_ns);

// The columns that an aggregate is made of; none: it cannot be made of windows.
std::optional<TierColumnSet> tier_columns(wire::Aggregate aggregate);

// For a question from `from_ns` on; `aggregate`: none asks for readings. The marks outlive it.
TierReading read_tiers(const Engine& engine, const retention::TierMarks& marks,
                       std::int64_t from_ns, std::int64_t every_ns,
                       std::optional<wire::Aggregate> aggregate);

// For a question of a column of all windows of `every_ns`, and of no readings. `marks`: null where
// there are none.
TierReading read_windows(const Engine& engine, const retention::TierMarks* marks,
                         std::int64_t every_ns, wire::WindowColumn column);

// Notes what becomes of a series of a question of either kind.
void note_windows(const retention::TierMarks& marks, const catalog::SeriesId& series,
                  std::int64_t from_ns, std::int64_t every_ns, TierNote& note);
void note_tiers(Engine& engine, const retention::TierMarks& marks, const catalog::SeriesId& series,
                const TimeRange& range, std::int64_t every_ns,
                std::optional<wire::Aggregate> aggregate, TierNote& note);

}  // namespace edgecase::query
