// Files that hold nothing but their place, one a drive: what must be written on a full drive finds
// room when they are let go. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "edgecase/file_system.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

class SpaceReserve {
 public:
  // 0 bytes: none is made.
  SpaceReserve(FileSystem& file_system, std::vector<std::string> paths, std::uint64_t bytes)
      : file_system_(file_system), paths_(std::move(paths)), bytes_(bytes) {}

  // Makes those that are not there. False: a drive has no room for its one. Does I/O.
  bool fill();
  // Whether there was anything to let go.
  bool release();

 private:
  bool fill(const std::string& path) EC_REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::vector<std::string> paths_;
  const std::uint64_t bytes_;
  Mutex mutex_;  // held across I/O
};

}  // namespace edgecase::engine
