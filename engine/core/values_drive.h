// Watches whether the values drive can be written to: it is there, it is ours, and nothing is
// missing on it. A drive that was away when the store was opened is *admitted* once it comes:
// locked and looked through before anything is written to it. Threads: any. The mutex is held
// across the look, which is done once.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "core/identity.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class ValuesDrive {
 public:
  // `look_through` locks the drive and looks for what is missing.
  ValuesDrive(FileSystem& file_system, std::string directory, const StoreId& store_id,
              bool is_admitted, std::function<Status()> look_through)
      : file_system_(file_system),
        directory_(std::move(directory)),
        store_id_(store_id),
        look_through_(std::move(look_through)),
        is_admitted_(is_admitted) {}

  bool is_admitted() const { return is_admitted_.load(std::memory_order_acquire); }
  // Ok: it can be written to. Does I/O.
  Status check() EC_EXCLUDES(mutex_) {
    EC_TRY(check_values_identity(file_system_, directory_, store_id_));
    if (is_admitted()) return ok();
    MutexLock lock(mutex_);
    if (is_admitted()) return ok();
    EC_TRY(look_through_());
    is_admitted_.store(true, std::memory_order_release);
    return ok();
  }

 private:
  FileSystem& file_system_;
  const std::string directory_;
  const StoreId store_id_;
  const std::function<Status()> look_through_;
  Mutex mutex_;
  std::atomic<bool> is_admitted_;
};

}  // namespace edgecase::engine
