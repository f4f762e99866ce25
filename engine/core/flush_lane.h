// FlushLane turns immutable memtables into tables: value tables, metadata tables, one manifest
// edit; then log segments come free. A flush that fails keeps its memtable and is tried again,
// later and later.
//
// Threads. The commit leader schedules flushes, waits for them when memtables are full, and gets
// Busy when they fail or take too long; anyone may wait until all that is written is in tables. The
// rest runs on Lane::Flush, one task after another, and waits for the drives. The mutex guards how
// flushes went, and is never held across I/O; that of Views is taken under it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "compaction/compactor.h"
#include "core/drives.h"
#include "core/pacer.h"
#include "core/store.h"
#include "edgecase/mutex.h"
#include "table/table_writer.h"
#include "version/version_set.h"

namespace edgecase::engine {

// Held by the task that runs on Lane::Flush.
inline constexpr Role flushing;

class FlushLane {
 public:
  // All outlive it.
  FlushLane(const Store& store, ValuesDrive& values, DriveRoom& room, Compactor& compactor,
            Pacer& pacer)
      : store_(store), values_(values), room_(room), compactor_(compactor), pacer_(pacer) {}

  // There is an immutable memtable.
  void schedule() EC_EXCLUDES(mutex_);
  // The values drive was away when the store was opened: looks for it until it is there.
  void await_values(const Status& why) EC_EXCLUDES(mutex_);

  // Flushes that succeeded since open; ask before looking whether there is something to wait for.
  std::uint64_t flushes() const EC_EXCLUDES(mutex_);
  // Returns when a flush has succeeded since there were `flushes_before`. Busy when flushes fail or
  // hang.
  Status wait_for(std::uint64_t flushes_before) EC_EXCLUDES(mutex_);
  // Returns when tables hold everything up to `through`, which is in immutable memtables or
  // written. Errors: the failure of a flush meanwhile.
  Status finish(SequenceNumber through) EC_EXCLUDES(mutex_);

  // What `attempt` answers once the room that is kept for erasing was let go; `failure` where that
  // is no matter of room, or none is kept.
  Status with_reserve(Status failure, const std::function<Status()>& attempt) EC_EXCLUDES(mutex_);

  // Bytes of tables, so far.
  std::uint64_t metadata_bytes() const { return metadata_bytes_.load(); }
  std::uint64_t value_bytes() const { return value_bytes_.load(); }
  std::uint64_t written_bytes() const { return value_bytes() + metadata_bytes(); }

 private:
  bool try_again() EC_REQUIRES(mutex_);
  void schedule_run();
  void run() EC_EXCLUDES(mutex_);
  Status write_out(const std::shared_ptr<Memtable>& memtable) EC_REQUIRES(flushing);
  TableWriterContext writer_context(ExpiryView expiry) EC_REQUIRES(flushing);
  Status commit(const TableOutput& output, const Memtable& memtable) EC_REQUIRES(flushing);
  void remove_tables(const TableOutput& output);
  void note_failure(const Status& failure) EC_EXCLUDES(mutex_);
  void note_success() EC_EXCLUDES(mutex_);

  // How flushes went, for those who wait.
  struct Course {
    std::uint64_t succeeded = 0;
    std::uint64_t failed = 0;
    SequenceNumber flushed_sequence = 0;  // of this process
    Status failure = {};                  // of the last one
    std::int64_t delay_ns = 0;            // until the next attempt after a failure
    // While flushes fail: whether a writer has had one tried, and from when on one may.
    bool is_asked = false;
    std::int64_t not_before_ns = 0;
  };

  const Store store_;
  ValuesDrive& values_;
  DriveRoom& room_;
  Compactor& compactor_;
  Pacer& pacer_;

  FileNumberBlock file_numbers_ EC_GUARDED_BY(flushing);
  std::uint64_t cuts_ EC_GUARDED_BY(flushing) = 0;
  // Files that an edit named which did not succeed for certain.
  std::vector<TableOutput> given_up_ EC_GUARDED_BY(flushing);

  mutable Mutex mutex_;
  CondVar changed_;  // a flush ended, well or not
  Course course_ EC_GUARDED_BY(mutex_);
  bool scheduled_ EC_GUARDED_BY(mutex_) = false;
  bool retry_scheduled_ EC_GUARDED_BY(mutex_) = false;

  std::atomic<std::uint64_t> metadata_bytes_{0};
  std::atomic<std::uint64_t> value_bytes_{0};
};

}  // namespace edgecase::engine
