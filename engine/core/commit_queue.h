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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/commit_gathering.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

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
