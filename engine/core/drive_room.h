// Room on the drives: what writes leave free for others (free_space.h), and what is kept for that
// which makes room once a drive is full (space_reserve.h).
//
// Threads: any. look() runs after each flush and, while room is short, now and then on the flush
// lane; the reserve is filled on the compaction lane. Both ask the drives; nothing else waits.
#pragma once

#include <atomic>

#include "core/free_space.h"
#include "core/store.h"
#include "core/values_drive.h"
#include "file/space_reserve.h"

namespace edgecase::engine {

class DriveRoom {
 public:
  // Both outlive it.
  DriveRoom(const Store& store, ValuesDrive& values);

  // Asks the drives how much is free, and notes it in Health.
  void look();
  // Whether a batch may be written: OutOfSpace when a drive has less free than writes leave. What
  // makes room may, and what is of the metadata drive alone: that is little, and the store's own.
  Status check(const WriteBatch& batch) const;
  bool is_short() const { return free_space_.is_short(); }
  // Whether the values drive has room for what is not cleaned yet.
  bool is_roomy() const { return free_space_.is_roomy(); }

  // In the background: makes the files of the reserve that are not there, once there is room.
  void fill_reserve();
  // False: there was nothing to let go.
  bool release_reserve();

 private:
  void fill_reserve_later();

  const Store store_;
  ValuesDrive& values_;
  FreeSpace free_space_;
  SpaceReserve reserve_;
  std::atomic<bool> look_scheduled_{false};
  std::atomic<bool> fill_scheduled_{false};
};

}  // namespace edgecase::engine
