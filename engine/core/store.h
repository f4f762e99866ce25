// Store: the things that all owners of an open store share. It owns nothing: everything here
// outlives them, and is thread-safe. EngineImpl puts it together.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/read_view.h"
#include "core/wal.h"
#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"
#include "expiry/retention_rules.h"
#include "feed/raise_limits.h"
#include "file/file_remover.h"
#include "table/table_cache.h"
#include "version/version_set.h"

namespace edgecase::engine {

// In the order in which a drive's degradation is told where several fail.
enum class Work : unsigned char { Log, Flush, Space, Merge };
inline constexpr std::size_t kWorkCount = 4;

// Health keeps which of the engine's work fails: since when, on which drive, and what writers are
// refused with. The listener hears when some work begins to fail and when it succeeds again.
//
// Use: whoever does a piece of work says fail() or succeed() after each attempt.
// Threads: any. It waits for nothing; the listener is called without the lock.
class Health {
 public:
  Health(Clock& clock, EventListener& listener) : clock_(clock), listener_(listener) {}

  // The newest failure counts. One that does not say its drive is of the metadata drive: whatever
  // works on value files says so.
  void fail(Work work, const Status& cause);
  void succeed(Work work);

  Status failure(Work work) const;
  // Without the lock.
  bool is_failing(Work work) const {
    return is_failing_[index(work)].load(std::memory_order_acquire);
  }
  // Whether flushes or the log fail for lack of space.
  bool lacks_space() const;

  // The leader's, of each batch: whether there was room for it. A refusal holds until flushes
  // succeed and the log is whole, whatever small batch still fits.
  void note_prepared(const Status& prepared);

  // Which drives are degraded, and what writers are refused with.
  void add_to(Stats& stats) const;

 private:
  struct State {
    Status failure = {};
    std::int64_t since_ns = 0;  // wall time
  };

  static std::size_t index(Work work) { return static_cast<std::size_t>(work); }
  void accept_writes() EC_REQUIRES(mutex_);

  Clock& clock_;
  EventListener& listener_;
  mutable Mutex mutex_;
  std::array<State, kWorkCount> states_ EC_GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, kWorkCount> is_failing_{};  // stored under mutex_
  Status refused_ EC_GUARDED_BY(mutex_);
  std::atomic<bool> refuses_{false};  // whether that is an error; stored under mutex_
};

// The engine's background tasks: each runs on a lane of the executor, and none once the engine is
// about to go. A task that comes up later must find that out without touching the engine: it shares
// a gate with it.
// Use: schedule(); close() first in the destructor of whoever owns what tasks use. Thread-safe.
class BackgroundTasks {
 public:
  explicit BackgroundTasks(Executor& executor) : executor_(executor) {}

  void schedule(Lane lane, std::function<void()> task) {
    executor_.schedule(lane, behind_gate(std::move(task)));
  }
  void schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) {
    executor_.schedule_after(lane, delay_ns, behind_gate(std::move(task)));
  }
  // As Executor::run_one(), for a caller that waits for one of these tasks.
  bool run_one() { return executor_.run_one(); }

  bool closed() const { return gate_->closed(); }
  // Lets no task begin any more and waits for those that run.
  void close() { gate_->close(); }

 private:
  class Gate {
   public:
    // False once closed. Each true needs a leave().
    bool enter() {
      MutexLock lock(mutex_);
      if (closed_) return false;
      ++inside_;
      return true;
    }
    void leave() {
      MutexLock lock(mutex_);
      if (--inside_ == 0) empty_.notify_all();
    }
    bool closed() const {
      MutexLock lock(mutex_);
      return closed_;
    }
    void close() {
      MutexLock lock(mutex_);
      closed_ = true;
      while (inside_ > 0) empty_.wait(mutex_);
    }

   private:
    mutable Mutex mutex_;
    CondVar empty_;
    bool closed_ EC_GUARDED_BY(mutex_) = false;
    int inside_ EC_GUARDED_BY(mutex_) = 0;
  };

  std::function<void()> behind_gate(std::function<void()> task) {
    return [gate = gate_, task = std::move(task)] {
      if (!gate->enter()) return;
      task();
      gate->leave();
    };
  }

  Executor& executor_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

// Shares of memory_limit_bytes: memtables, of which there are three at most, and the cache; the
// rest is for the log's mapping and for what a flush sorts and gathers. Others may set some of the
// limit aside. Thread-safe; holds no lock.
class MemoryBudget {
 public:
  // Both outlive it.
  MemoryBudget(const Options& options, const VersionSet& versions)
      : options_(options), versions_(versions) {}

  // What is not set aside, nor taken by the lists of files and rules.
  std::uint64_t bytes() const {
    const std::uint64_t limit = options_.memory_limit_bytes;
    const std::uint64_t others = set_aside_bytes() + versions_.memory_bytes();
    return std::max(limit - std::min(limit, others), kMemoryLimitMinBytes);
  }
  std::uint64_t memtable_bytes() const {
    return options_.memtable_bytes != 0 ? options_.memtable_bytes : bytes() / kMemtableShare;
  }
  std::uint64_t cache_bytes() const { return bytes() / kCacheShare; }
  // Memtables that snapshots and iterators alone keep: more is short of memory.
  std::uint64_t kept_bytes_max() const { return options_.memory_limit_bytes / kKeptShare; }

  // Engine::set_aside().
  void set_aside(std::uint64_t before, std::uint64_t now) {
    set_aside_bytes_.fetch_add(now - before, std::memory_order_relaxed);
  }
  std::uint64_t set_aside_bytes() const { return set_aside_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kMemtableShare = 8;
  static constexpr std::uint64_t kCacheShare = 5;
  static constexpr std::uint64_t kKeptShare = 8;

  const Options& options_;
  const VersionSet& versions_;
  std::atomic<std::uint64_t> set_aside_bytes_{0};
};

struct Store {
  const Options& options;
  const Environment& environment;
  StoreId id;
  BackgroundTasks& tasks;
  Health& health;
  MemoryBudget& budget;
  KeyRing* keys;  // null: not encrypted
  VersionSet& versions;
  Wal& wal;
  TableCache& tables;
  FileRemover& remover;
  ExpiryClock& expiry_clock;
  Views& views;
  Revocations& revocations;
  const FeedBounds& feed_bounds;

  // By the time at which reads of the namespace do not see entries any more. Empty: never.
  ExpiryView expiry_of_reads(NamespaceId namespace_id) const {
    auto rules = versions.retention();
    if (rules == nullptr || !rules->has_namespace(namespace_id)) return {};
    return {std::move(rules), expiry_clock.now_ns(), options.expiry};
  }
  // By the time at which bytes go.
  ExpiryView expiry_of_bytes() const {
    auto rules = versions.retention();
    if (rules == nullptr) return {};
    return {std::move(rules), expiry_clock.removal_ns(), options.expiry};
  }
  // Whether any namespace has its values on the values drive.
  bool uses_values_drive() const {
    const auto all = versions.state().namespaces;
    return std::any_of(all.begin(), all.end(), [](const NamespaceInfo& info) {
      return info.options.placement == Placement::Values;
    });
  }
};

}  // namespace edgecase::engine
