// Makes the tiers of retention: once readings are older than their rule keeps them as they came,
// they become windows of each of its tiers, in one pass, and go (retention/TIERS.md).
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
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/tier_spaces.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "erase/fences.h"
#include "query/aggregator.h"
#include "query/tier_windows.h"
#include "retention/eviction.h"
#include "retention/retention_service.h"
#include "wire/reading.h"

namespace edgecase::tiers {

class WindowBatch;

// Readings stay up to this part of their retention longer, so that they go in few steps.
inline constexpr std::int64_t kStepShare = 16;
// One piece ends with the first window of the coarsest tier behind so many.
inline constexpr std::uint64_t kPieceWindows = 4'000;
inline constexpr std::uint64_t kPieceReadings = 500'000;
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

// Called on the thread, none under a lock; `problem` again only when it changes.
struct TierEvents {
  std::function<void(const std::string& problem)> left = {};
  // Windows that are durable, of readings of this series that have gone.
  std::function<void(const catalog::SeriesEntry& series, std::span<const query::TierWindow> made)>
      made = {};
};

class TierMaker final : public retention::Thinning {
 public:
  TierMaker(Engine& engine, catalog::Catalog& catalog, retention::RetentionService& retention,
            erase::Fences& fences, TierEvents events = {});
  ~TierMaker() override;
  TierMaker(const TierMaker&) = delete;
  TierMaker& operator=(const TierMaker&) = delete;

  // What waits stays as it came, and what goes is told; null: nothing waits. Outlives the thread.
  // Before start().
  void spare(retention::UnsentReadings* unsent) { unsent_ = unsent; }
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
  Status follow_rule(const Task& task, const retention::TierMark& mark) EC_REQUIRES(pass_mutex_);
  Status go_on_behind(const retention::TierMark& mark, const Task& task,
                      std::span<const catalog::TierSpace> tiers, const ReadOptions& options,
                      WindowBatch& windows);
  Result<bool> make_piece(const Task& task, std::span<const catalog::TierSpace> tiers)
      EC_REQUIRES(pass_mutex_);
  std::optional<std::int64_t> first_due_ns(std::int64_t limit_ns, std::string& why);
  // `waits`: for who still reads what is hidden.
  Status erase_hidden(bool waits) EC_REQUIRES(pass_mutex_);
  Result<std::vector<catalog::TierSpace>> spaces_of(const Task& task);

  Engine& engine_;
  catalog::Catalog& catalog_;
  retention::RetentionService& retention_;
  erase::Fences& fences_;
  const TierEvents events_;
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

}  // namespace edgecase::tiers
