// Makes windows of the readings of one series, in all its tiers at once, and puts them into a
// batch. Readings come in the order of time; each tier has one window open. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "catalog/tier_spaces.h"
#include "edgecase/write_batch.h"
#include "query/aggregator.h"
#include "wire/reading.h"

namespace edgecase::tiers {

// One window, as a tier keeps it of a series.
void put_window(const catalog::TierSpace& tier, const catalog::SeriesId& series,
                const query::TierWindow& window, WriteBatch& batch);

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

}  // namespace edgecase::tiers
