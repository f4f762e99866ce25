// Decides which time a reading has: the one that its device says, where that is believed, the one
// that an undated time turned out to be, or else that of its arrival. Owned by the pipeline;
// whoever knows better than it when a reading arrived asks here first. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "erase/fences.h"
#include "retention/eviction.h"
#include "wire/reading.h"

namespace edgecase::ingest {

// Periods in which the clock was not trusted, and what is known of them since: enough to give their
// readings a time once it is. A reading that arrives in such a period without a time is stored
// under an undated one (wire/time_text.h) that says which moment of which boot it was.
//
// Records, in the namespace `_undated` on the metadata drive, numbers big-endian:
//   'P' slot (4)  ->  version (1), state (1), estimated or not (1), boot time of the slot's first
//                     nanosecond (8), wall time known to be past by then (8), wall time of the boot
//                     (8), wall time known to be to come by its end (8), boot id
// They name neither devices nor anybody else. A record is in the batch that brings the first
// reading of its period, or in an earlier one, and says `Dated` before the first of them is moved.
// One that cannot be read counts as one of an unknown boot.
//
// Thread-safe. At most wire::kUndatedSlots periods of about 100 bytes; of those that are done the
// newest kDonePeriodsMax are kept, so that what an export took of them is recognised.

inline constexpr std::size_t kDonePeriodsMax = 64;
inline constexpr std::size_t kBootIdMaxBytes = 64;

struct UndatedPeriod {
  enum class State : std::uint8_t {
    Waits,  // for the clock
    Dated,  // its readings are being moved
    Done,   // none is left
  };
  std::uint32_t slot = 0;
  State state = State::Waits;
  bool is_estimate = false;        // of another boot than the one whose clock was right
  std::int64_t first_boot_ns = 0;  // what the slot's first nanosecond stands for
  std::int64_t not_before_ns = 0;  // no reading of it is older, by what the store knew
  std::int64_t boot_at_ns = 0;     // once dated: the wall time of the boot
  std::int64_t not_after_ns = 0;   // no reading of it is younger; 0: not known yet
  std::string boot_id;

  std::int64_t first_ns() const;
  std::int64_t end_ns() const;
  // How long after the boot something of that time arrived, and when that was.
  std::int64_t moment_ns(std::int64_t time_ns) const;
  std::int64_t dated_ns(std::int64_t time_ns) const;
};

class UndatedPeriods {
 public:
  // `boot_id` tells this boot from all others. Errors: the engine's.
  static Result<std::unique_ptr<UndatedPeriods>> open(Engine& engine, Clock& clock, Random& random,
                                                      std::string boot_id);

  // Where the clock is trusted, the periods of this boot that wait get the time that it says, and
  // those of earlier boots the time of this one as their end, durable on return: before anything
  // that arrives from now on is stored, so that it cannot end up before them. Whoever calls has no
  // Pass. Errors: the engine's.
  Status date_this_boot(erase::Fences& fences);

  // The undated time of this moment; none where the clock is trusted, no slot is left, or the drive
  // is too full for the first record.
  std::optional<std::int64_t> arrival_ns();
  // The time that an undated one turned out to be; any other as it is.
  std::int64_t dated_ns(std::int64_t time_ns) const;
  bool is_dated(const wire::Reading& reading) const;

  // The records that `times` need and that are not durable yet, before the readings; which they are
  // for confirm(), once the batch is durable.
  std::vector<std::uint32_t> append_records(std::span<const std::int64_t> times,
                                            WriteBatch& batch) const;
  void confirm(std::span<const std::uint32_t> slots);

  // By slot, which is the order in which they began.
  std::vector<UndatedPeriod> periods() const;
  // Durable on return, and known then. Of too many that are done the oldest are forgotten.
  Status change(std::span<const UndatedPeriod> changed);
  // Another one whenever readings may have got, or are getting, their own times.
  std::uint64_t changes() const { return changes_.load(); }
  const std::string& boot_id() const { return boot_id_; }

  // While it is held no reading is between its undated time and its own.
  Mutex& moves_mutex() EC_RETURN_CAPABILITY(moves_mutex_) { return moves_mutex_; }

 private:
  struct Entry {
    UndatedPeriod period;
    bool is_durable = false;
  };
  using Entries = std::map<std::uint32_t, Entry>;

  UndatedPeriods(Engine& engine, Clock& clock, Random& random, std::string boot_id);
  Status load();
  bool needs_moment(const UndatedPeriod& period) const;
  void begin_anew() EC_REQUIRES(mutex_);
  bool make_namespace();
  Entry* begin_period(std::int64_t boot_ns) EC_REQUIRES(mutex_);
  static void forget_done(Entries& entries, std::vector<std::uint32_t>& forgotten);

  Engine& engine_;
  Clock& clock_;
  Random& random_;
  const std::string boot_id_;
  std::optional<NamespaceId> records_;   // none before the first period
  std::atomic<bool> waits_here_{false};  // whether date_this_boot() may have something to do
  Mutex change_mutex_;                   // one change() at a time, its write included
  Mutex moves_mutex_;                    // behind the gate of the fences

  std::atomic<std::uint64_t> changes_{0};

  mutable Mutex mutex_;
  Entries entries_ EC_GUARDED_BY(mutex_);
};

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
