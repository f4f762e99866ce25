// Decides which time a reading has: the one that its device says, where that is believed, the one
// that an undated time turned out to be, or else that of its arrival. Owned by the pipeline;
// whoever knows better than it when a reading arrived asks here first. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "erase/fences.h"
#include "ingest/device_times.h"
#include "ingest/undated_periods.h"
#include "retention/eviction.h"

namespace edgecase::ingest {

class ReadingTimes {
 public:
  // `fences` may be null. All outlive it.
  ReadingTimes(Engine& engine, const catalog::Catalog& catalog, Clock& clock,
               const erase::Fences* fences)
      : engine_(engine),
        catalog_(catalog),
        clock_(clock),
        fences_(fences),
        device_times_(engine, catalog) {}

  // Before anything arrives; null: nothing is evicted, and nothing dated later.
  void keep_behind(const retention::Eviction* eviction) { eviction_ = eviction; }
  void date_later(UndatedPeriods* periods) { undated_ = periods; }
  // How far ahead of a trusted clock a time that a device says may lie. Before anything arrives.
  void limit_ahead(std::int64_t ahead_ns) { ahead_ns_ = ahead_ns; }

  // What arrives now has this time, or a little later one: the wall's, or an undated one.
  std::int64_t arrival_clock_ns();
  // The time that an undated one turned out to be, if it has; any other as it is.
  std::int64_t dated_ns(std::int64_t time_ns) const {
    return undated_ == nullptr ? time_ns : undated_->dated_ns(time_ns);
  }
  // arrival_clock_ns(), moved on where it must be so that no two calls, and no reading that the
  // pipeline stamps, get the same.
  std::int64_t take_arrival_time() { return take_arrival_times(1); }
  // The first of so many.
  std::int64_t take_arrival_times(std::int64_t count);

  // Whether a time that a device says now can be one: is_believable_time().
  bool is_believable(std::int64_t time_ns) const;
  std::vector<DeviceTimes::Verdict> preview(std::span<const DeviceTimes::Asked> asked) {
    return device_times_.preview(asked);
  }
  // Settles times that are believable by themselves: DeviceTimes::settle().
  DeviceTimes::Replaced settle(std::span<const DeviceTimes::Asked> asked);
  // Deletes readings of one series: what the daemon itself keeps a bounded number of (`_rejected`).
  // Durable with the next ingest(). Errors: the engine's.
  Status forget(const catalog::SeriesId& series, std::span<const std::int64_t> times_ns);

  // These are in the engine now: DeviceTimes::note().
  void note(std::span<const catalog::SeriesId> ids, std::span<const std::int64_t> times,
            std::span<const wire::Reading> readings) {
    device_times_.note(ids, times, readings);
  }

 private:
  Engine& engine_;
  const catalog::Catalog& catalog_;
  Clock& clock_;
  const erase::Fences* const fences_;
  const retention::Eviction* eviction_ = nullptr;
  UndatedPeriods* undated_ = nullptr;
  DeviceTimes device_times_;
  std::int64_t ahead_ns_ = kTimeAheadNs;
  std::atomic<std::int64_t> last_arrival_ns_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace edgecase::ingest
