// Makes the tiers of retention: once readings are older than their rule keeps them as they came,
// they become windows of each of its tiers, in one pass, and go (retention/TIERS.md). TierMaker
// decides of which series and when; SeriesWindows makes them.
//
//   gate closed for an instant: late readings are refused from here on
//     ▼
//   of one series: a snapshot ─► whole windows of all tiers ─► ONE batch, synced:
//                                windows · the mark · the readings before it go
//
// Readings that go are hidden at first: an answer under way keeps its snapshot, which knows nothing
// of the windows. Once such snapshots are gone, after kHeldMaxNs in any case, a later pass erases
// what is hidden for good, and the engine removes the bytes as of any erasure.
//
// A batch is all there or not at all, so a crash neither loses a reading nor counts it twice, and
// every snapshot has each instant in one place. Series after series, in pieces that end where a
// window of the coarsest tier does, so that an erasure waits for no more than one of them.
//
// On a full drive readings become windows before their time, the oldest of all series first
// (retention/eviction.h).
//
// What cannot be read stays as it is, with all that is newer of its series: damage is told of, and
// looked at again in the next pass. While the clock is not trusted nothing becomes older.
//
// Use: create, start(), stop() or destroy. Thread-safe; one thread, "tiers".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "erase/fences.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"
#include "tiers/series_windows.h"

namespace edgecase::tiers {

// Readings stay up to this part of their retention longer, so that they go in few steps.
inline constexpr std::int64_t kStepShare = 16;
// Series that are announced to the gate at once.
inline constexpr std::size_t kSeriesAtOnce = 500;
inline constexpr std::int64_t kLookNs = 1'000'000'000;
// Between passes: as often as readings have a step to go, a while at most.
inline constexpr std::int64_t kPassMaxNs = 600'000'000'000;
// How long hidden readings wait for snapshots that are older; and how many series a pass erases of.
inline constexpr std::int64_t kHeldMaxNs = kPassMaxNs;
inline constexpr std::size_t kErasedAtOnce = 2'048;

struct TierStatus {
  std::uint64_t windows = 0;   // made since the start
  std::uint64_t readings = 0;  // that became windows
  std::string problem;         // why the last pass left something; "": nothing
};

// Called during a pass, which holds its lock: they must not call the TierMaker. `problem` comes
// again only when it changes.
struct TierEvents {
  std::function<void(const std::string& problem)> left = {};
  WindowsMade made = {};
};

class TierMaker final : public retention::Thinning {
 public:
  TierMaker(Engine& engine, catalog::Catalog& catalog, retention::RetentionService& retention,
            erase::Fences& fences, TierEvents events = {});
  ~TierMaker() override;
  TierMaker(const TierMaker&) = delete;
  TierMaker& operator=(const TierMaker&) = delete;

  // What waits stays as it came, unless room is made of it, and what goes is told; null: nothing
  // waits. Outlives the thread.
  // Before start().
  void spare(retention::UnsentReadings* unsent) {
    unsent_ = unsent;
    windows_.spare(unsent);
  }
  void start() EC_EXCLUDES(mutex_);
  // Returns once the piece under way is done. Idempotent.
  void stop() EC_EXCLUDES(mutex_);
  // All that is due, as the thread does now and then and after each change of a rule. One at a
  // time. The first problem; the rest is done all the same.
  Status pass() EC_EXCLUDES(pass_mutex_, mutex_);
  retention::Thinned thin_oldest(std::uint64_t value_bytes, std::int64_t limit_ns) override
      EC_EXCLUDES(pass_mutex_, mutex_);
  bool is_going(bool is_urgent) override EC_EXCLUDES(pass_mutex_, mutex_);

  TierStatus status() const EC_EXCLUDES(mutex_);

 private:
  struct Task {
    catalog::SeriesEntry series;
    wire::Keeping keeping;
    std::int64_t before_ns = INT64_MIN;  // readings of earlier are to become windows
    std::uint64_t value_bytes = 0;       // of these, about; where room is made
    bool is_for_room = false;
  };
  // What is to become windows.
  struct Due {
    std::int64_t now_ns = 0;
    // To make room: all whole windows before this, however long their rule keeps readings.
    std::optional<std::int64_t> thin_ns = {};
  };
  using SeriesTaker = std::function<void(const catalog::SeriesEntry& series)>;

  void run() EC_EXCLUDES(mutex_);
  bool is_stopping() const EC_EXCLUDES(mutex_);
  // All but the store's own, until the daemon stops.
  void each_series(const SeriesTaker& take) EC_EXCLUDES(mutex_);
  Result<std::optional<Task>> task_of(const catalog::SeriesEntry& series, const Due& due);
  Status set_time(const Due& due, Task& task);
  // Adds to `value_bytes` what goes.
  Status do_due(const Due& due, std::uint64_t& value_bytes) EC_REQUIRES(pass_mutex_);
  Result<std::optional<std::int64_t>> first_ns(const catalog::SeriesEntry& series,
                                               std::int64_t before_ns);
  Status do_all(std::vector<Task>& tasks) EC_REQUIRES(pass_mutex_);
  Status make(const Task& task) EC_REQUIRES(pass_mutex_);
  std::optional<std::int64_t> first_due_ns(std::int64_t limit_ns, std::string& why);
  // `waits`: for who still reads what is hidden.
  Status erase_hidden(bool waits) EC_REQUIRES(pass_mutex_);
  Result<std::vector<catalog::TierSpace>> spaces_of(const Task& task);

  Engine& engine_;
  catalog::Catalog& catalog_;
  retention::RetentionService& retention_;
  erase::Fences& fences_;
  const TierEvents events_;
  SeriesWindows windows_;
  retention::UnsentReadings* unsent_ = nullptr;

  Mutex pass_mutex_;  // held for a pass, over I/O
  // Snapshots from before the last readings were hidden, and since when they are waited for.
  std::weak_ptr<const void> held_ EC_GUARDED_BY(pass_mutex_);
  std::int64_t hidden_ns_ EC_GUARDED_BY(pass_mutex_) = 0;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ EC_GUARDED_BY(mutex_) = false;
  TierStatus status_ EC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace edgecase::tiers
