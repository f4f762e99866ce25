// FreeSpace tells whether the drives have as much room left as writes have to leave
// (Options::keep_free_bytes). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "edgecase/clock.h"
#include "edgecase/file_system.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

// No more than this part of a small drive is kept.
inline constexpr std::uint64_t kKeepFreePart = 16;
// A drive is roomy of which this part is free.
inline constexpr std::uint64_t kRoomyPart = 4;
// While it is short, it is looked for so often.
inline constexpr std::int64_t kLookForSpaceNs = 500'000'000;

class FreeSpace {
 public:
  // Which drive has too little; Ok: neither, and `is_of_values` tells which had.
  struct Shortage {
    Status status;
    bool is_of_values = false;
    std::int64_t since_ns = 0;  // wall time
  };

  FreeSpace(FileSystem& file_system, Clock& clock, std::string metadata_directory,
            std::string values_directory, std::uint64_t keep_free_bytes);

  // Without a look.
  bool is_short() const { return short_.load(std::memory_order_relaxed); }
  Shortage shortage() const;
  // Without a look: of the values drive, as of the last one; false before.
  bool is_roomy() const { return roomy_.load(std::memory_order_relaxed); }
  // Asks the drives, whose own failures are no shortage. Once it is short, an eighth more than is
  // kept has to be free again. True: it has begun or ended.
  bool look();

 private:
  Status judge(const std::string& directory, const Result<Space>& space, bool was_short) const;

  FileSystem& file_system_;
  Clock& clock_;
  const std::string metadata_directory_;
  const std::string values_directory_;
  const std::uint64_t keep_free_bytes_;
  std::atomic<bool> short_{false};
  std::atomic<bool> roomy_{false};
  mutable Mutex mutex_;  // held across the look
  Shortage shortage_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::engine
