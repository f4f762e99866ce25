// storage.on-full = "evict-oldest": when a drive is nearly full, the oldest readings of all devices
// are given up, with windows of tiers that are as old, so that new ones find room. Whole value
// files where that will do (engine.h, plan_eviction()); oldest by their own time, so no clock
// decides what goes. But a time to come is none that is old: what lies behind the clock is never
// given up, or one device with a wrong year would have everybody else's readings evicted, and
// refused.
//
// A drive is nearly full below its watermark: an eighth of it free, 2 GiB at most. A step takes
// what is missing to a quarter more than that, at least a 64th and at most a quarter of the value
// layer; the next one waits until the bytes of the last are gone. Where the store itself takes less
// of the drive than the watermark, it is not the readings that fill it, and nothing goes.
//
// What has not been sent yet is spared (UnsentReadings) until nothing else is left.
//
// What was evicted does not come back: readings of such a time are refused and counted, also once
// the setting is "reject" again.
//
// storage.on-full = "thin-oldest": readings become windows of their rule's tiers instead, before
// their time, the oldest first (Thinning). Where none is left that may, nothing goes, and a full
// drive refuses writes.
//
// Use: create() it always; start() where the setting says so. Thread-safe; one thread, "evict".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::retention {

// UnsentReadings are those that have not gone yet where they are to go (daemon/forward/). Whoever
// lets readings go (rules, tiers, eviction, erasures) asks it what waits, and says what goes.

// Why a reading goes before a target has it.
enum class Leaving : unsigned char { Expired, Evicted, Erased, Thinned };
inline constexpr std::size_t kLeavings = 4;

class UnsentReadings {
 public:
  virtual ~UnsentReadings() = default;

  // Readings of the series in [from, to) go in a moment: of each target that does not have them
  // they are counted, `weight` times. Looks at the store. Any thread.
  virtual void count_leaving(Leaving why, const catalog::SeriesEntry& series, std::int64_t from_ns,
                             std::int64_t to_ns, std::uint64_t weight) = 0;
  // The same of readings of the series before that time, which become windows with `batch`: these
  // are to go in their place, and `batch` says so. Errors: the engine's.
  virtual Status leave_thinned(const catalog::SeriesEntry& series, std::int64_t before_ns,
                               WriteBatch& batch) = 0;
  // It is written.
  virtual void left_thinned() = 0;
  // From that time on readings wait for a target that spares them; INT64_MAX: none do. Any thread.
  virtual std::int64_t waits_from_ns(const catalog::SeriesEntry& series) const = 0;
  // The same of all series.
  virtual std::int64_t waits_from_ns() const = 0;
};

// What the rules of retention spare for a target: of what these selectors name nothing expires
// sooner than after `keep_ns`.
struct Hold {
  struct Part {
    std::string namespace_name;  // `*`: all
    wire::Selector selector;

    friend bool operator==(const Part& a, const Part& b) {
      return a.namespace_name == b.namespace_name && a.selector.device == b.selector.device &&
             a.selector.sensor == b.selector.sensor;
    }
  };
  std::string target;
  std::int64_t keep_ns = 0;
  std::vector<Part> parts;

  friend bool operator==(const Hold&, const Hold&) = default;
};

inline constexpr std::uint64_t kWatermarkShare = 8;
inline constexpr std::uint64_t kWatermarkMaxBytes = std::uint64_t{2} << 30;
inline constexpr std::uint64_t kStepShareMin = 64;
inline constexpr std::uint64_t kStepShareMax = 4;
inline constexpr std::int64_t kLookNs = 250'000'000;
// For the bytes of what was evicted to be gone: a reader may hold them. Less where writes fail.
inline constexpr std::int64_t kRoomPatienceNs = 60'000'000'000;
inline constexpr std::int64_t kUrgentPatienceNs = 2'000'000'000;
// The readings that go are counted, and told about, in so many series at most.
inline constexpr std::size_t kCountedSeriesMax = 20'000;

// One step, before it is done and after.
struct EvictionStep {
  std::int64_t before_ns = 0;  // everything older goes
  std::uint64_t readings = 0;
  bool is_exact = true;           // the count
  std::uint64_t value_bytes = 0;  // about
  std::string drive;              // that was short: its directory
  std::uint64_t free_bytes = 0;
  std::uint64_t watermark_bytes = 0;
};

// What readings became windows to make room.
struct Thinned {
  std::uint64_t readings = 0;
  std::uint64_t windows = 0;
  std::uint64_t value_bytes = 0;  // of the readings, about
  std::int64_t before_ns = 0;     // nothing later did
  std::string left;               // why nothing did, or why not all
};

// Makes readings windows before their time (tiers/tier_maker.h).
class Thinning {
 public:
  virtual ~Thinning() = default;
  // The oldest of all series whose rule has tiers, until about so many bytes of values can go; none
  // of later than the limit.
  virtual Thinned thin_oldest(std::uint64_t value_bytes, std::int64_t limit_ns) = 0;
  // Erases what has become windows, and tells whether bytes of it are still to go. `is_urgent`: it
  // waits for nobody who still reads.
  virtual bool is_going(bool is_urgent) = 0;
};

// Called on the thread, none under a lock.
struct EvictionEvents {
  std::function<void(const EvictionStep&)> begun = {};
  std::function<void(const EvictionStep&, const Status&)> done = {};
  std::function<void(const Thinned&, const std::string& drive)> thinned = {};
  // Room is needed, and nothing can be given up; again only when the reason changes.
  std::function<void(const std::string&)> blocked = {};
};

struct EvictionParts {
  Engine& engine;
  catalog::Catalog& catalog;
  FileSystem& file_system;
  Clock& clock;
  std::string metadata_directory;
  std::string values_directory;
  Thinning* thinning = nullptr;       // null: the oldest are evicted
  std::uint64_t keep_free_bytes = 0;  // that writes leave: room is made before it is short
  EvictionEvents events = {};
};

struct EvictionStatus {
  bool is_on = false;
  bool makes_room = false;      // a drive is below its watermark
  std::string blocked;          // why nothing goes although; "" otherwise
  std::uint64_t evictions = 0;  // since start, as the next three
  std::uint64_t readings = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t thinned_readings = 0, thinned_windows = 0;  // since start
  std::uint64_t refused_readings = 0;       // came with a time that had been evicted
  std::optional<std::int64_t> first_at_ns;  // wall; since start
  std::optional<std::int64_t> last_at_ns;
  std::optional<std::int64_t> before_ns;  // everything older was evicted, ever
};

class Eviction {
 public:
  explicit Eviction(EvictionParts parts);
  ~Eviction();
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  // What is spared as long as anything else is there, and told of what goes; null: nothing.
  // Outlives the thread. Before start().
  void spare(UnsentReadings* unsent) { unsent_ = unsent; }
  void start() EC_EXCLUDES(mutex_);
  // Nothing goes any more. Idempotent.
  void stop() EC_EXCLUDES(mutex_);
  // One look at the drives, as the thread does every kLookNs.
  void look() EC_EXCLUDES(mutex_);

  // Which of the readings have a time that was evicted; empty: none.
  std::vector<bool> refused(std::span<const wire::Reading> readings) const;
  void count_refused(std::uint64_t readings) { refused_.fetch_add(readings); }
  // Readings that arrive get no time before this one, or a clock that is behind would lose them.
  std::int64_t earliest_arrival_ns() const { return latest_before_ns_.load(); }

  EvictionStatus status() const EC_EXCLUDES(mutex_);

 private:
  struct Drive {
    std::string directory;
    std::uint64_t free_bytes = 0;
    std::uint64_t watermark_bytes = 0;
    std::uint64_t own_bytes = 0;  // of the store, on it
    bool holds_values = false;
    bool is_low() const { return free_bytes < watermark_bytes; }
  };

  void run() EC_EXCLUDES(mutex_);
  std::vector<Drive> drives(const Stats& stats) const;
  bool must_wait(const Stats& stats) const;
  bool must_wait_for_thinned(const Stats& stats);
  void make_room(const Drive& drive, const Stats& stats) EC_EXCLUDES(mutex_);
  void evict(const Drive& drive, const Stats& stats) EC_EXCLUDES(mutex_);
  void thin(const Drive& drive, const Stats& stats) EC_EXCLUDES(mutex_);
  std::uint64_t value_bytes_for(const Drive& drive, const Stats& stats) const;
  std::int64_t limit_ns() const;
  std::vector<std::string> namespaces() const;
  void count_readings(const std::vector<std::string>& names, EvictionStep& step) const;
  void block(const std::string& why) EC_EXCLUDES(mutex_);

  const EvictionParts parts_;
  UnsentReadings* unsent_ = nullptr;
  std::atomic<std::int64_t> latest_before_ns_{INT64_MIN};
  std::atomic<std::uint64_t> refused_{0};

  // What the looking thread remembers.
  std::int64_t evicted_at_boot_ns_ = 0;
  bool waits_for_room_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  EvictionStatus status_ EC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edgecase::retention
