// Whose turn it is to change the log and the memtables: one leads at a time, the others queue up
// and are taken along, or lead later.
//
// A writer that comes while nobody leads and nobody waits leads by one exchange of an atomic,
// without the mutex. It leaves as it came unless somebody has queued up meanwhile: a writer that is
// alone never takes a lock. All that a leader does happens before what the next one does, whichever
// way it came.
//
// Source: the three states (free, held, held and waited for) are those of the mutex in U. Drepper,
// "Futexes Are Tricky".
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

// CommitGathering says for how many writers the leader of a group commit waits before it syncs, and
// how long.
//
// Writers that take turns have a sync each: who comes while one is synced is too late for it, and
// who was synced comes again while the next one is. Where as many as wrote lately come within less
// than a sync takes, they share one, and each is done sooner. Where they do not, waiting was for
// nothing: it is tried again after twice as many groups as the last time.
//
// Source: PostgreSQL's commit_delay and commit_siblings, which are set there and learned here.
//
// Threads: none of its own; the engine calls it under its mutex.
class CommitGathering {
 public:
  static constexpr std::int64_t kWaitMaxNs = 1'000'000;
  // No part of a sync that takes less is worth waiting for: to wake a thread takes as long.
  static constexpr std::int64_t kSyncMinNs = 60'000;
  static constexpr std::uint32_t kPassesMax = 1'023;

  // Writers that are worth waiting for, the leader among them. 1: none.
  std::size_t expected() const { return passes_left_ == 0 && wait_ns() > 0 ? expected_ : 1; }
  std::int64_t wait_ns() const {
    return sync_ns_ < kSyncMinNs ? 0 : std::min(sync_ns_, kWaitMaxNs);
  }

  // The leader waited; whether as many had come then.
  void waited(bool all_came) {
    passes_ = all_came ? 0 : std::min(2 * passes_ + 1, kPassesMax);
    passes_left_ = passes_;
  }

  // A group of `writers` was synced, which took so long; so many others have come meanwhile.
  void synced(std::size_t writers, std::size_t came_meanwhile, std::int64_t sync_ns) {
    sync_ns_ = sync_ns_ == 0 ? sync_ns : (7 * sync_ns_ + sync_ns) / 8;
    expected_ = writers + came_meanwhile;
    if (passes_left_ > 0) --passes_left_;
  }

 private:
  std::size_t expected_ = 1;
  std::int64_t sync_ns_ = 0;  // smoothed
  std::uint32_t passes_ = 0;  // groups that pass without waiting, after it was for nothing
  std::uint32_t passes_left_ = 0;
};

// Held by the thread that leads: it alone changes what is EC_GUARDED_BY(leading), and the queue
// hands that over from one to the next.
inline constexpr Role leading;

class CommitQueue {
 public:
  // Bounds what a follower waits for, and by how much a memtable outgrows its limit.
  static constexpr std::size_t kGroupMaxBytes = 1u << 20;

  // One caller. Without a batch it wants to lead by itself.
  struct Writer {
    const WriteBatch* batch = nullptr;
    Durability durability = Durability::Async;
    Status status;
    std::uint64_t last = 0;                 // sequence of its entries
    std::int64_t answer_not_before_ns = 0;  // boot time; 0: at once
    // The queue's own.
    bool leads = false;
    bool done = false;
    std::optional<CondVar> wake;  // once it waits
  };

  // Whether the caller leads now; it does not wait for that, and is nobody's Writer. The group is
  // empty.
  bool try_lead() EC_TRY_ACQUIRE(true, leading);
  // Leaves, for a writer that led that way. Empties the group.
  void leave() EC_RELEASE(leading) EC_EXCLUDES(mutex_);

  // Until the writer leads: then the group has it and those behind it that go together, and none if
  // it has no batch. False: another one that led has done what it wanted.
  bool wait_for_turn(Writer& writer) EC_TRY_ACQUIRE(true, leading) EC_EXCLUDES(mutex_);
  // Ends the turn of a Writer that led. The log's sync took `synced_ns`; 0: none. Empties it.
  void finish(std::int64_t synced_ns) EC_RELEASE(leading) EC_EXCLUDES(mutex_);

  // Whose batches the leader commits.
  std::vector<Writer*>& group() EC_REQUIRES(leading) { return group_; }

  // Writers that lead or wait.
  std::size_t size() const EC_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return writers_.size();
  }

 private:
  enum class State : unsigned char { Free, Alone, Queued };

  bool wait_in_queue(Writer& writer) EC_EXCLUDES(mutex_);
  void gather() EC_REQUIRES(mutex_);
  void take_group() EC_REQUIRES(mutex_, leading);
  void pop() EC_REQUIRES(mutex_);
  void pass_on() EC_REQUIRES(mutex_);

  std::vector<Writer*> group_ EC_GUARDED_BY(leading);
  mutable Mutex mutex_;
  // Queued exactly while writers_ is not empty, when mutex_ is free.
  std::atomic<State> state_{State::Free};
  std::deque<Writer*> writers_ EC_GUARDED_BY(mutex_);
  CommitGathering gathering_ EC_GUARDED_BY(mutex_);
  std::size_t gathered_for_ EC_GUARDED_BY(mutex_) = 0;  // writers that the leader waits for
  CondVar gathered_;                                    // as many have come
};

}  // namespace edgecase::engine
