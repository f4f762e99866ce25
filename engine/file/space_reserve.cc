#include "file/space_reserve.h"

namespace edgecase::engine {

void SpaceReserve::fill() {
  if (bytes_ == 0) return;
  MutexLock lock(mutex_);
  for (const std::string& path : paths_) fill(path);
}

void SpaceReserve::fill(const std::string& path) {
  const Result<std::uint64_t> size = file_system_.file_size(path);
  if (size.ok() && *size == bytes_) return;
  if (size.ok() && !file_system_.remove_file(path).ok()) return;
  static_cast<void>(file_system_.create_log_file(path, bytes_).ok());
}

bool SpaceReserve::release() {
  MutexLock lock(mutex_);
  bool any = false;
  for (const std::string& path : paths_) any = file_system_.remove_file(path).ok() || any;
  return any;
}

}  // namespace edgecase::engine
