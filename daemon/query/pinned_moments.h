// Moments of the store that backups read, request by request: each is a snapshot with a name, held
// until it is released or nobody has used it for kLeaseNs. A pinned moment keeps on the drives what
// was replaced or deleted since, and a memtable in memory, so there are kMomentsMax at most. An
// erasure releases all; where something else is revoked (Engine::revocations()), they move on to
// what is stored then.
// Thread-safe; a thread of its own lets go of what was left behind, while there is any.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"

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
  Result<std::string> pin() EC_EXCLUDES(mutex_);
  // For a request; the lease begins anew. NotFound: released, or left behind.
  Result<std::shared_ptr<const Snapshot>> use(const std::string& name) EC_EXCLUDES(mutex_);
  // NotFound.
  Status release(const std::string& name) EC_EXCLUDES(mutex_);
  void release_all() EC_EXCLUDES(mutex_);
  // Lets go of what nobody used for kLeaseNs, and of what was revoked.
  void sweep() EC_EXCLUDES(mutex_);
  std::size_t count() const EC_EXCLUDES(mutex_);

 private:
  struct Moment {
    std::shared_ptr<const Snapshot> snapshot;
    std::int64_t used_ns = 0;  // by boot_ns()
  };

  void watch() EC_EXCLUDES(mutex_);
  std::shared_ptr<const Snapshot> take_idle() EC_REQUIRES(mutex_);  // null: none is

  Engine& engine_;
  Clock& clock_;
  const std::chrono::milliseconds sweep_pause_;
  mutable Mutex mutex_;
  CondVar ends_;
  std::map<std::string, Moment> moments_ EC_GUARDED_BY(mutex_);
  std::uint64_t pinned_ EC_GUARDED_BY(mutex_) = 0;  // ever
  bool watched_ EC_GUARDED_BY(mutex_) = false;
  bool ending_ EC_GUARDED_BY(mutex_) = false;
  std::thread watcher_
      EC_GUARDED_BY(mutex_);  // the destructor joins it, when nobody calls any more
};

}  // namespace edgecase::query
