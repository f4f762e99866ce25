// Moments of the store that backups read, request by request: each is a snapshot with a name, held
// until it is released or nobody has used it for kLeaseNs. A pinned moment keeps on the drives what
// was replaced or deleted since, and a memtable in memory, so there are kMomentsMax at most. An
// erasure releases all; where something else is revoked (Engine::revocations()), they move on to
// what is stored then.
// Thread-safe; a thread of its own lets go of what was left behind, while there is any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "edgecase/clock.h"
#include "edgecase/engine.h"

namespace edgecase::query {

class PinnedMoments {
 public:
  static constexpr std::size_t kMomentsMax = 2;
  static constexpr std::int64_t kLeaseNs = 600'000'000'000;
  // One that nobody has read for so long makes way for another, at kMomentsMax.
  static constexpr std::int64_t kIdleNs = 10'000'000'000;

  static constexpr std::chrono::milliseconds kSweepPause{100};

  // Both outlive it. `sweep_pause` is for tests: how often the thread looks.
  PinnedMoments(Engine& engine, Clock& clock, std::chrono::milliseconds sweep_pause = kSweepPause)
      : engine_(engine), clock_(clock), sweep_pause_(sweep_pause) {}
  ~PinnedMoments();

  // Pins a moment and returns its name. Busy: kMomentsMax.
  Result<std::string> pin();
  // For a request; the lease begins anew. NotFound: released, or left behind.
  Result<std::shared_ptr<const Snapshot>> use(const std::string& name);
  // NotFound.
  Status release(const std::string& name);
  void release_all();
  // Lets go of what nobody used for kLeaseNs, and of what was revoked.
  void sweep();
  std::size_t count() const;

 private:
  struct Moment {
    std::shared_ptr<const Snapshot> snapshot;
    std::int64_t used_ns = 0;  // by boot_ns()
  };

  void watch();
  std::shared_ptr<const Snapshot> take_idle();  // mutex_ is held; null: none is

  Engine& engine_;
  Clock& clock_;
  const std::chrono::milliseconds sweep_pause_;
  mutable std::mutex mutex_;
  std::condition_variable ends_;
  std::map<std::string, Moment> moments_;
  std::uint64_t pinned_ = 0;  // ever
  bool watched_ = false;
  bool ending_ = false;
  std::thread watcher_;
};

}  // namespace edgecase::query
