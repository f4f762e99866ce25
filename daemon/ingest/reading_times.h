// Decides which time a reading has: the one that its device says, where that is believed, the one
// that an undated time turned out to be, or else that of its arrival. Owned by the pipeline;
// whoever knows better than it when a reading arrived asks here first. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "erase/fences.h"
#include "ingest/undated_periods.h"
#include "retention/eviction.h"
#include "wire/reading.h"

namespace edgecase::ingest {

// Times that devices say: which of them are believed, and which give way to the time of arrival, so
// that no value that was acknowledged is replaced by another one because a clock stood still.
//
// What a time is worth by itself is_believable_time() says. What it is worth beside what its series
// holds settle() says:
//
//   later than the newest reading of the series     it is its own
//   there is a reading of that time, another value  a clock that stands: the time of arrival
//   there is one, of the same value                 the same reading once more
//   earlier than the newest, and says when a device was last heard    the time of arrival
//   else                                            its own: something that came late
//
// Once a series has been given two values for one time, that time is a clock that stands: whatever
// comes with it afterwards has the time of arrival, a value that was there before too.
//
// The newest time of each series is kept in memory from the first time on that is asked for, at
// most kSeriesMax of them at 40 bytes; of one that is not known the engine is asked, with one seek.
// Only what is earlier than the newest costs a look at the reading of that time. A clock that
// stands is known as one also where its readings have expired meanwhile. Thread-safe.

inline constexpr std::int64_t kTimeAheadNs = std::int64_t{86'400} * 1'000'000'000;
// 2000-01-01: what is before it comes from a clock that was never set, or is an uptime.
inline constexpr std::int64_t kFirstBelievableNs = std::int64_t{946'684'800} * 1'000'000'000;

// Whether a clock that runs may have said `time_ns`: not before 2000, not later than
// `trusted_now_ns` by more than `ahead_ns`; not judged where no clock is trusted. Undated times are
// the store's own.
bool is_believable_time(std::int64_t time_ns, std::optional<std::int64_t> trusted_now_ns,
                        std::int64_t ahead_ns);

class DeviceTimes {
 public:
  static constexpr std::size_t kSeriesMax = 128u << 10;

  DeviceTimes(Engine& engine, const catalog::Catalog& catalog)
      : engine_(engine), catalog_(catalog), set_aside_(engine) {}

  // A reading with a believable time that a device said, and when it arrived: readings of one
  // message may share that, where nobody else has so many nanoseconds from there on.
  struct Asked {
    wire::Reading* reading = nullptr;
    std::int64_t arrival_ns = 0;
  };
  // How many got the time of arrival.
  struct Replaced {
    std::uint64_t repeated = 0;  // there is another value of that time
    std::uint64_t stale = 0;     // last heard before the newest reading
  };
  // Decides once and for all: afterwards the readings' times are given (wire::TimeSource::Given).
  // In the order in which they came; whoever asks brings them to the engine before it asks again.
  // Of another `epoch` than before nothing is remembered. What the engine cannot say counts as not
  // there.
  Replaced settle(std::span<const Asked> asked, std::uint64_t epoch);
  // What settle() would decide. The readings get those times, and nothing is brought to the engine.
  enum class Verdict : std::uint8_t { Own, Repeated, Stale };
  std::vector<Verdict> preview(std::span<const Asked> asked);

  // These are in the engine now, whoever brought them. Costs nothing before the first settle().
  void note(std::span<const catalog::SeriesId> ids, std::span<const std::int64_t> times,
            std::span<const wire::Reading> readings);

 private:
  // What is known of a series: its newest time, and the one at which a clock stood last.
  struct State {
    std::int64_t newest_ns = INT64_MIN;
    std::int64_t stood_ns = INT64_MIN;
    std::uint64_t newest_value = 0;  // its hash; 0: not known
  };
  struct Slot {
    catalog::SeriesId id;  // sensor 0: free
    State state;
  };
  class Decision;

  State load(const catalog::SeriesId& id);
  Slot* find(const catalog::SeriesId& id) EC_REQUIRES(mutex_);
  void put(const catalog::SeriesId& id, const State& state) EC_REQUIRES(mutex_);
  void grow() EC_REQUIRES(mutex_);

  Engine& engine_;
  const catalog::Catalog& catalog_;
  std::atomic<bool> is_used_{false};

  Mutex mutex_;
  std::uint64_t epoch_ EC_GUARDED_BY(mutex_) = 0;
  // What was read before a note is not put behind it.
  std::uint64_t notes_ EC_GUARDED_BY(mutex_) = 0;
  // As many as a power of two; a series lies in one set of kWays.
  std::vector<Slot> slots_ EC_GUARDED_BY(mutex_);
  std::size_t next_victim_ EC_GUARDED_BY(mutex_) = 0;
  catalog::SetAside set_aside_ EC_GUARDED_BY(mutex_);
};

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
