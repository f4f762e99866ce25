// The engine and the catalog on two simulated drives, run by one thread: what a life of the crash
// harness opens, crashes and opens again. Errors of the engine come back as they are; what may
// never happen, whatever the drives do, comes back as Corruption.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "crash/crash_plan.h"
#include "crash/crash_state.h"
#include "edgecase/store_check.h"
#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"

namespace edgecase::test {

// Tasks of background work in a row. A store this small has done all there is to do long before.
inline constexpr std::size_t kTasksMax = 20'000;

// The first thing that a check of the store finds wrong.
class FirstProblem final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& finding) override {
    if (finding.kind == CheckFinding::Kind::Problem && message_.empty()) message_ = finding.message;
  }
  void on_progress(std::uint64_t, std::uint64_t) override {}
  bool stop() override { return false; }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

// What stands between the engine and its drives: a planted bug, or nothing.
using WrapDrives = std::function<std::unique_ptr<FileSystem>(MemoryFileSystem&)>;

// Counts over all stores of a life.
struct CrashCounters {
  std::uint64_t opened = 0;
  std::uint64_t torn_tails = 0;
  std::uint64_t dropped_segments = 0;
  std::uint64_t replayed = 0;  // records of the log
  std::uint64_t flushes = 0;
  std::uint64_t merges = 0;
  std::uint64_t relocations = 0;
  std::uint64_t dropped_deletes = 0;
  std::uint64_t removed_files = 0;
  std::uint64_t erasures = 0;
  std::uint64_t drops = 0;  // of files that had expired whole
  std::uint64_t purges = 0;
  std::uint64_t damages = 0;  // that the engine told of
  std::uint64_t rotten_manifests = 0;
};

using PlaceIds = std::array<NamespaceId, kPlaces>;  // 0: there is no such namespace

// Every third seed has a key: then nothing of what it writes is ever to be found on its drives.
bool is_encrypted(const Plan& plan);
// Every other one of those in which something expires.
ExpiryMode expiry_mode(const Plan& plan);

// What a rest takes for each of its seconds.
inline constexpr std::int64_t kRestedSecondNs = 1'100'000'000;

class CrashStore {
 public:
  CrashStore(const Plan& plan, const WrapDrives& wrap);
  ~CrashStore();

  Status open();
  void close();
  bool is_open() const { return pipeline_ != nullptr; }

  Engine& engine() { return *engine_; }
  catalog::Catalog& catalog() { return *catalog_; }
  MemoryFileSystem& disk() { return disk_; }
  ManualExecutor& executor() { return executor_; }
  const CrashCounters& counters() const { return counters_; }

  // What a step does to the drives; they are well again.
  void ail(const Step& step);
  void cure();
  // Bytes of one copy of the manifest change. After a power cut alone: else more of what is cached
  // would become durable.
  void rot_manifest(std::uint64_t seed);

  // Time passes, and background work is done until none is left.
  Status rest(std::int64_t seconds);
  // Time passes, and nothing is done.
  void pass(std::int64_t ns);
  // As a Clock step says.
  void set_clock(std::uint64_t setting, std::int64_t seconds);
  // What time has been reached by the clock that decides what is old.
  std::int64_t trusted_ns() const { return trusted_ns_; }

  NamespaceId find_place(std::size_t place) const;
  Status create_place(std::size_t place);
  Status drop_place(std::size_t place);
  Status write(const Changes& changes, Durability durability);
  Status ingest(const Changes& changes);
  // NotFound: there is no such series.
  Status forget(std::size_t place, std::size_t key);

  // All of a place as `snapshot` (null: now) has it, into `state`.
  Status read_place(std::size_t place, Direction direction,
                    const std::shared_ptr<const Snapshot>& snapshot, State& state);
  // The rest of an iterator over an engine place.
  Status read_rest(std::size_t place, Iterator& iterator, State& state);
  // One key of an engine place. NotFound when it is not there.
  Result<ValueNumber> get(std::size_t place, std::size_t key);

  // Both drives, closed: Corruption names the first problem.
  Status check();

 private:
  class Listener;

  Status read_site(std::size_t place, Iterator& iterator, State& state);
  Status add_entry(std::size_t place, std::size_t key, ByteView value, State& state);
  void count();

  MemoryFileSystem disk_{{"/m", "/v"}};
  std::unique_ptr<FileSystem> wrapped_;  // null: the engine works on disk_
  ManualClock clock_;
  std::int64_t clock_behind_ns_ = 0;
  std::int64_t true_ns_ = ManualClock::kStartWallNs;
  std::int64_t trusted_ns_ = ManualClock::kStartWallNs;
  const std::uint32_t timed_scope_bytes_;
  SeededRandom random_;
  ManualExecutor executor_;
  CrashCounters counters_;
  std::unique_ptr<Listener> listener_;
  Options options_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<ingest::IngestPipeline> pipeline_;
};

}  // namespace edgecase::test
