// A ReadingCursor of readings and of the windows that tiers keep of earlier ones: of each series
// all in the order of time; of windows that begin at the same time the finest first (descending:
// the coarsest). One snapshot has each instant in readings or in windows.
//
// Where it lets go, and what it has told of a series as readings is windows by now, it ends with
// Busy: neither would be whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/catalog.h"
#include "query/cursors.h"
#include "query/query_service.h"
#include "query/tier_windows.h"
#include "retention/retention_service.h"

namespace edgecase::query {

class TieredCursor final : public ReadingCursor {
 public:
  // `options` as of a SeriesScan. `marks` outlive it.
  TieredCursor(Engine& engine, const catalog::Catalog& catalog, const retention::TierMarks& marks,
               std::vector<catalog::SeriesRow> series, const TimeRange& range,
               const ReadOptions& options, std::uint64_t limit,
               std::vector<LeftOutReadings> left_out);

  // Windows of this length alone, and no readings.
  void read_only(std::int64_t every_ns) { only_ns_ = every_ns; }

  Result<bool> next(wire::Reading& reading) override;
  wire::Numbers take_numbers(std::size_t most) override;
  LargeText* large_text() override { return gave_reading_ ? readings_->large_text() : nullptr; }
  void let_go() override;
  GivenReadings take_given() override;
  bool is_given_revoked() override;
  const LeftOut* left_out() const override;
  ReadAccount account() const override { return account_; }

 private:
  struct Tier {
    catalog::TierSpace space;
    std::unique_ptr<TierWindows> windows;
    std::optional<std::int64_t> told_ns;  // begin of the last one
  };

  bool is_forward() const { return options_.direction == Direction::Forward; }
  Result<bool> next_series();
  Status open_series();
  Status open_windows(const catalog::TierSpace& space);
  Status check_moved() const;
  Result<bool> next_reading(wire::Reading& reading);
  Tier* next_tier();
  Status give_window(Tier& tier, wire::Reading& reading);
  void close_series();

  Engine& engine_;
  const catalog::Catalog& catalog_;
  const retention::TierMarks& marks_;
  const std::vector<catalog::SeriesRow> rows_;
  const TimeRange range_;
  ReadOptions options_;
  std::uint64_t limit_;
  std::optional<std::int64_t> only_ns_;
  std::size_t next_row_ = 0;
  bool has_series_ = false, has_readings_ = false;  // of the series: it may have more
  catalog::SeriesEntry series_;
  std::int64_t marked_ns_ = INT64_MIN;  // when the series was opened
  std::uint64_t revocations_ = 0;
  std::vector<Tier> tiers_;                          // the finest first
  std::unique_ptr<StoredCursor> readings_;           // null: nothing of the series is open
  std::optional<std::int64_t> told_ns_, oldest_ns_;  // readings of the series: the last, the oldest
  bool gave_reading_ = false;                        // by the last next()
  wire::Window window_;                              // or this
  wire::SeriesIdentity identity_;
  GivenReadings given_;
  std::shared_ptr<LeftOut> left_out_;  // shared with what the engine tells
  mutable LeftOut all_left_out_;
  ReadAccount account_;
};

// One column of a series' windows in one tier, as readings of that value: no readings of its own.
class TierColumnCursor final : public ReadingCursor {
 public:
  TierColumnCursor(std::unique_ptr<TieredCursor> windows, wire::WindowColumn column)
      : windows_(std::move(windows)), column_(column) {}
  Result<bool> next(wire::Reading& reading) override {
    for (;;) {
      EC_ASSIGN_OR_RETURN(const bool more, windows_->next(reading));
      if (!more) return false;
      const auto value = wire::value_of(*reading.window, column_);
      if (!value) continue;
      reading.value = *value;
      reading.window = nullptr;
      return true;
    }
  }
  void let_go() override { windows_->let_go(); }
  GivenReadings take_given() override { return windows_->take_given(); }
  bool is_given_revoked() override { return windows_->is_given_revoked(); }
  const LeftOut* left_out() const override { return windows_->left_out(); }
  ReadAccount account() const override { return windows_->account(); }

 private:
  const std::unique_ptr<TieredCursor> windows_;
  const wire::WindowColumn column_;
};

}  // namespace edgecase::query
