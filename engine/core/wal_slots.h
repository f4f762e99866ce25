// The slots of the write-ahead log: files of one size, made before they are used. A slot is free,
// or in use by a segment, or resists removal; what each may still hold of old records is known, so
// that what was erased or has expired can be overwritten.
//
// Threads: any. The commit leader takes slots, Lane::Compaction makes and overwrites them. Whoever
// writes a slot holds create_mutex_ meanwhile, and whoever finds none free waits for that; the
// other mutex guards the lists and is never held across I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/entry.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

struct WalSlot {
  std::uint64_t index = 0;
  std::uint64_t capacity_bytes = 0;
  // Its file holds nothing of older records, of no use that was made of it.
  SequenceNumber oldest = 0;
  static constexpr std::int64_t kNotKnown = std::numeric_limits<std::int64_t>::min();
  // Nothing in its file expires before; not known of slots that were there at the start.
  std::int64_t expires_ns = kNotKnown;
  // Behind these it holds nothing but zeros.
  std::uint64_t dirty_bytes = std::numeric_limits<std::uint64_t>::max();
};

class WalSlots {
 public:
  using Choice = std::function<bool(const WalSlot&)>;

  // Slots have `segment_bytes`, but for the large one of a large batch; all of them together
  // `limit_bytes` at most.
  WalSlots(FileSystem& file_system, std::string metadata_directory, std::uint64_t segment_bytes,
           std::uint64_t limit_bytes);

  // What was there at the start: slots that segments use, and those that hold nothing needed.
  // Before any other call. Does I/O: free slots get names that are durable.
  Status adopt(const std::vector<WalSlot>& used, std::vector<WalSlot> free);

  // The file of a slot.
  std::string path(std::uint64_t index) const;
  // The largest a slot may be: two of them and an ordinary one must have room, or nothing could
  // ever follow a large one.
  std::uint64_t large_max_bytes() const { return (limit_bytes_ - segment_bytes_) / 2; }

  // A free slot, or a new one. Errors: Busy at the limit, InvalidArgument for more than a slot may
  // have, OutOfSpace, IoError.
  Result<WalSlot> take(std::uint64_t capacity_bytes) EC_EXCLUDES(create_mutex_, mutex_);
  // The manifest needs no record in it any more.
  void give_back(const WalSlot& slot) EC_EXCLUDES(mutex_);
  // What held records is overwritten first. If that fails it keeps its name until it can be done,
  // or is recognised at recovery by its number.
  Status remove(const WalSlot& slot) EC_EXCLUDES(mutex_);

  // Whether one more could be made ready for the next segment; makes it. Does I/O.
  bool needs_one() const EC_EXCLUDES(mutex_);
  Status prepare_one() EC_EXCLUDES(create_mutex_, mutex_);

  // Whether one of those that no segment uses is such, or resists removal.
  bool any_free(const Choice& is_such) const EC_EXCLUDES(mutex_);
  bool any_resists(const Choice& is_such) const EC_EXCLUDES(mutex_);
  // Overwrites the free ones that are such, and removes those that resisted. Does I/O.
  Status overwrite(const Choice& is_such) EC_EXCLUDES(create_mutex_, mutex_);
  std::uint64_t overwritten_bytes() const { return overwritten_bytes_.load(); }
  // From now on nothing is known of when anything in them expires.
  void forget_expiries() EC_EXCLUDES(mutex_);

 private:
  Status name_again(std::vector<WalSlot>& free) EC_EXCLUDES(mutex_);
  void count(const WalSlot& slot) EC_REQUIRES(mutex_);
  std::uint64_t take_index() EC_REQUIRES(mutex_);
  bool take_free(std::uint64_t capacity_bytes, WalSlot& slot) EC_EXCLUDES(mutex_);
  bool reserve_space(std::uint64_t capacity_bytes) EC_REQUIRES(create_mutex_) EC_EXCLUDES(mutex_);
  Result<WalSlot> create(std::uint64_t capacity_bytes) EC_REQUIRES(create_mutex_)
      EC_EXCLUDES(mutex_);

  FileSystem& file_system_;
  const std::string metadata_directory_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> overwritten_bytes_{0};

  Mutex create_mutex_;  // held while a slot is written; taken before mutex_
  mutable Mutex mutex_;
  std::vector<WalSlot> free_ EC_GUARDED_BY(mutex_);
  std::vector<WalSlot> resisting_ EC_GUARDED_BY(mutex_);  // could not be overwritten and deleted
  std::vector<bool> used_indexes_ EC_GUARDED_BY(mutex_);
  std::uint64_t total_bytes_ EC_GUARDED_BY(mutex_) = 0;  // capacity of all slots
};

}  // namespace edgecase::engine
