// Gives readings that arrived without a time while the clock was not trusted their real one, once
// it is: wall time now - boot time now + boot time then. Readings of earlier boots, whose clock was
// never right, are set down as late as they can have been: the last of them just before the boot
// that followed, the others as long before it as they came; these are *estimates*, and told as
// such.
//
// A reading moves from its undated time (reading_times.h) to the real one in one batch, so it is
// there exactly once whenever somebody looks or the power fails. What a period's times turn out to
// be is durable before its first reading moves: however often that begins anew, it comes to the
// same. A time that another reading of the series has already gives way to the next nanosecond
// that is free. Those whose time was erased or evicted meanwhile go. What stays of it in files is
// erased (LeftCopies).
//
// Use: start() it, or look() from time to time. Thread-safe; one thread, "redate". Memory is
// bounded by kMoveReadingsMax readings, or one value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "erase/fences.h"
#include "ingest/reading_times.h"
#include "retention/eviction.h"

namespace edgecase::ingest {

// Copies that readings leave under their undated time when they are moved to their own.
// Each is deleted by the move, but in the files until a merge comes by, and no expiry
// looks for it there. So they are erased: once nobody holds a snapshot from before the move, in
// which the copy still is the reading.
//
// Records, in the namespace `_undated`, version 1:
//   'C' namespace id (4) device id (4) sensor id (4)  ->  version (1), first key (16), end key (16)
// In the batch of the move, and removed in that of the erasure: what a crash leaves is erased after
// the next start.
//
// One thread at a time. Memory: about 150 bytes of each series that waits.
inline constexpr char kCopiesRecord = 'C';
inline constexpr std::size_t kEraseCopiesMax = 500;  // series in one batch

class LeftCopies {
 public:
  explicit LeftCopies(Engine& engine) : engine_(engine) {}

  // What is left of earlier processes, once. Errors: the engine's; the next call reads again.
  Status load();

  // Into the batch of a move: what of the series lies in these undated times is a copy from then
  // on. The namespace of the records is there.
  void append(const catalog::SeriesId& series, const KeyRange& copies, WriteBatch& batch);

  // Erases what nobody can see any more; call it when all moves of one go are written. Errors: the
  // engine's; the next call goes on.
  Status erase();

  std::size_t series() const { return waiting_.size(); }

 private:
  struct Copies {
    NamespaceId namespace_id = 0;
    KeyRange keys;
    // The readers that may see them; none: not asked since the last move.
    std::optional<std::weak_ptr<const void>> readers;
  };

  Engine& engine_;
  bool is_loaded_ = false;
  std::map<Bytes, Copies> waiting_;  // by the key of the record
};

inline constexpr std::size_t kMoveReadingsMax = 500;  // at once
inline constexpr std::size_t kMoveBytesMax = 1u << 20;
inline constexpr std::int64_t kRedateLookNs = 1'000'000'000;
inline constexpr std::int64_t kRedateRetryNs = 5'000'000'000;

// A period all of whose readings have been moved.
struct RedatedPeriod {
  UndatedPeriod period;
  std::uint64_t readings = 0;  // moved since the start
  std::uint64_t refused = 0;   // went, since their time was erased or evicted
};

// Called on the thread, none under a lock.
struct RedatingEvents {
  std::function<void(const RedatedPeriod&)> done = {};
  std::function<void(const Status&)> failed = {};
};

struct RedatingParts {
  Engine& engine;
  catalog::Catalog& catalog;
  Clock& clock;
  erase::Fences& fences;
  UndatedPeriods& periods;
  retention::Eviction* eviction = nullptr;  // null: nothing is evicted
  RedatingEvents events = {};
};

struct RedatingStatus {
  std::uint64_t waiting_periods = 0;   // whose readings have no time yet, or not all of them
  std::uint64_t redated_readings = 0;  // since start, as the next
  std::uint64_t refused_readings = 0;
  std::vector<UndatedPeriod> estimates;  // the newest kDonePeriodsMax
};

class Redating {
 public:
  explicit Redating(RedatingParts parts) : parts_(std::move(parts)), copies_(parts_.engine) {}
  ~Redating() { stop(); }
  Redating(const Redating&) = delete;
  Redating& operator=(const Redating&) = delete;

  void start();
  // What is being moved is moved, and nothing more. Idempotent.
  void stop();
  // Ok: nothing is left to be moved, and no copy that nobody sees, or the clock is not trusted.
  // Errors: the engine's; the next look goes on. One thread at a time.
  Status look();

  RedatingStatus status() const;

 private:
  struct Slice;
  using Periods = std::vector<UndatedPeriod>;

  void run();
  bool is_stopping() const;
  Status date_periods();
  Status date_boot(std::span<UndatedPeriod> boot, std::int64_t& next_boot_at_ns);
  Result<std::optional<std::int64_t>> last_of(const UndatedPeriod& first,
                                              const UndatedPeriod& last) const;
  Status move_readings();
  Status move_series(const catalog::SeriesEntry& entry, Periods& dated,
                     std::vector<RedatedPeriod>& moved);
  Status move_some(const catalog::SeriesEntry& entry, Slice& slice,
                   std::vector<RedatedPeriod>& moved);
  Status gather(const catalog::SeriesEntry& entry, Slice& slice) const;
  Status write(const catalog::SeriesEntry& entry, const Slice& slice,
               std::vector<RedatedPeriod>& moved);

  const RedatingParts parts_;
  LeftCopies copies_;  // of who looks

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  std::uint64_t redated_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t refused_ EC_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace edgecase::ingest
