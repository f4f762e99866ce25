// Windows of one series, as a tier of retention keeps them: made of its readings, a piece at a
// time, or of finer windows where the rule has got other tiers (SeriesWindows); several tiers at
// once in one batch (WindowBatch). TierMaker says of which series, and when. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "edgecase/engine.h"
#include "edgecase/write_batch.h"
#include "erase/fences.h"
#include "query/aggregator.h"
#include "query/series_scan.h"
#include "query/tier_windows.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::tiers {

// A piece ends where a window of the coarsest tier does, after so many windows or readings.
inline constexpr std::uint64_t kPieceWindows = 4'000;
inline constexpr std::uint64_t kPieceReadings = 500'000;

std::vector<std::int64_t> lengths_of(const std::vector<wire::Tier>& tiers);
// Keys of the series' readings that are earlier.
KeyRange readings_before(const catalog::SeriesId& id, std::int64_t before_ns);
// The error that says: damaged readings keep the series as it is.
Status stays_for_damage(const catalog::SeriesEntry& series);

// One window, as a tier keeps it of a series.
void put_window(const catalog::TierSpace& tier, const catalog::SeriesId& series,
                const query::TierWindow& window, WriteBatch& batch);

// Makes windows of the readings of one series, in all its tiers at once, and puts them into a
// batch. Readings come in the order of time; each tier has one window open. One thread.
class WindowBatch {
 public:
  // `tiers`: the finest first, each a multiple of the one before. `made`: where windows go, too.
  WindowBatch(const catalog::SeriesId& series, std::span<const catalog::TierSpace> tiers,
              WriteBatch& batch, std::vector<query::TierWindow>* made = nullptr);

  // Before anything else: what the tier with that number has already of the window that goes on.
  void go_on(std::size_t tier, const query::TierWindow& window);

  // Where the finest window that holds `time_ns` ends: its last instant.
  std::int64_t finest_last_ns(std::int64_t time_ns) const;
  // The same of the coarsest.
  std::int64_t coarsest_last_ns(std::int64_t time_ns) const;

  // Numbers of one window of the finest tier.
  void add(const wire::Numbers& numbers);
  void add(std::int64_t time_ns, const wire::Value& value);
  // A window of a finer tier than all of these.
  void add(const query::TierWindow& window);
  // Puts what is open.
  void finish();
  // Windows that were put.
  std::uint64_t windows() const { return windows_; }

 private:
  struct Open {
    catalog::TierSpace tier;
    std::vector<query::Aggregator> columns;  // of TierColumn, but for Numbers
    bool is_open = false;
    std::int64_t begin_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t numbers = 0;
  };

  static void begin(Open& open, std::int64_t time_ns);
  // Puts windows that do not hold the time, and opens others.
  void turn_to(std::int64_t time_ns);
  void put(Open& open);

  const catalog::SeriesId series_;
  WriteBatch& batch_;
  std::vector<query::TierWindow>* const made_;
  std::vector<Open> tiers_;
  std::uint64_t windows_ = 0;
};

// Windows that are durable, of readings of this series that have gone.
using WindowsMade =
    std::function<void(const catalog::SeriesEntry& series, std::span<const query::TierWindow>)>;

// Makes the windows of one series. Each call enters the gate of the fences; what it writes is
// durable, with the series' mark, on return. References outlive it.
class SeriesWindows {
 public:
  SeriesWindows(Engine& engine, catalog::Catalog& catalog, retention::RetentionService& retention,
                erase::Fences& fences, WindowsMade made)
      : engine_(engine),
        catalog_(catalog),
        retention_(retention),
        fences_(fences),
        made_(std::move(made)) {}

  // `unsent` is told of readings that go; null: nobody is.
  void spare(retention::UnsentReadings* unsent) { unsent_ = unsent; }

  // Makes the tiers follow a changed rule: new ones are made of the finest that fits; then those
  // that it has not any more go.
  Status follow_rule(const catalog::SeriesEntry& series, const wire::Keeping& keeping,
                     const retention::TierMark& mark);

  struct Wish {
    const catalog::SeriesEntry& series;
    const wire::Keeping& keeping;
    std::span<const catalog::TierSpace> tiers;  // of `keeping`
    std::int64_t before_ns = INT64_MIN;         // readings of earlier are to become windows
  };
  struct Piece {
    std::uint64_t windows = 0, readings = 0;
    bool is_written = false;  // false: there was nothing to make windows of
    bool has_more = false;    // of the series to do
  };
  // The first readings become windows of all tiers in one batch, and are hidden by it. Corruption:
  // some cannot be read, and nothing is written.
  Result<Piece> make_piece(const Wish& wish);

 private:
  Status make_tier(const catalog::SeriesId& id, const catalog::TierSpace& source,
                   const catalog::TierSpace& target, const ReadOptions& options);
  Status go_on_behind(const retention::TierMark& mark, const Wish& wish, const ReadOptions& options,
                      WindowBatch& windows);

  Engine& engine_;
  catalog::Catalog& catalog_;
  retention::RetentionService& retention_;
  erase::Fences& fences_;
  const WindowsMade made_;
  retention::UnsentReadings* unsent_ = nullptr;
};

}  // namespace edgecase::tiers
