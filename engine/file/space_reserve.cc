#include "file/space_reserve.h"

namespace edgecase::engine {

bool SpaceReserve::fill() {
  if (bytes_ == 0) return true;
  MutexLock lock(mutex_);
  bool is_whole = true;
  for (const std::string& path : paths_) is_whole = fill(path) && is_whole;
  return is_whole;
}

// A drive without room is asked first: an attempt would take all that is left while it lasts.
bool SpaceReserve::fill(const std::string& path) {
  const Result<std::uint64_t> size = file_system_.file_size(path);
  if (size.ok() && *size == bytes_) return true;
  if (size.ok() && !file_system_.remove_file(path).ok()) return false;
  const Result<Space> space = file_system_.space(path.substr(0, path.rfind('/')));
  if (space.ok() && space->free_bytes < bytes_) return false;
  return file_system_.create_log_file(path, bytes_).ok();
}

bool SpaceReserve::release() {
  MutexLock lock(mutex_);
  bool any = false;
  for (const std::string& path : paths_) any = file_system_.remove_file(path).ok() || any;
  return any;
}

}  // namespace edgecase::engine
