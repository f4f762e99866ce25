// CompactionHost is what compaction needs of the engine around it. Through this one interface it
// knows nothing of logs, memtables and drives that come and go. The engine implements it
// (core/compaction_door.h); tests do so with a few lines. It outlives the compactor.
//
// Threads: the compaction lane calls all of it; others may come to schedule() and is_roomy(). No
// lock of compaction is held during a call.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "edgecase/status.h"
#include "expiry/expiry_view.h"
#include "feed/raise_limits.h"
#include "version/version.h"

namespace edgecase::engine {

class CompactionHost {
 public:
  virtual ~CompactionHost() = default;

  // Queues a task on the compaction lane, not before the delay has passed. No task runs once the
  // compactor is gone.
  virtual void schedule(std::int64_t delay_ns, std::function<void()> task) = 0;

  // An edit was applied: readers see the current version from now on.
  virtual void publish() = 0;
  // Bytes of what has expired or was erased left the current version. Readers of an older one hold
  // them back; they are told.
  virtual void revoke() = 0;
  // A merge failed; or, Ok, merges succeed again.
  virtual void report(const Status& health) = 0;

  // Bytes of writes so far, and of the tables that flushes made of them.
  virtual std::uint64_t user_bytes() const = 0;
  virtual std::uint64_t flushed_bytes() const = 0;

  // Ok when both drives answer and are the store's: what cannot be read now is damaged, then.
  virtual Status check_drives() = 0;
  // Whether the values drive has room for garbage that is not cleaned yet.
  virtual bool is_roomy() const = 0;
  // A drive is full: whether there is room now that was kept for this.
  virtual bool release_reserve() = 0;
  // Files of which something that lives cannot be read.
  virtual std::set<FileNumber> lost_files() = 0;
  // A merge of these tables failed: whether more such files are found among them and what they
  // point to.
  virtual bool look_for_damage(const std::vector<TablePointer>& tables) = 0;

  // The rules of retention as they are now; empty when there are none.
  virtual ExpiryView expiry() = 0;
  // How far entries may rise that are written again.
  virtual RaiseLimits raise_limits() = 0;
  // Makes durable what time expiry has reached, and takes what has expired out of the log. False:
  // to be called again soon.
  virtual Result<bool> clear_expired_log() = 0;
  // No table and no value file holds anything of what was erased up to this sequence: clears the
  // rest. False: somebody holds on to it, or a flush must come first; to be called again.
  virtual Result<bool> finish_erasure(SequenceNumber through) = 0;
};

}  // namespace edgecase::engine
