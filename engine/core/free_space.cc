#include "core/free_space.h"

#include <algorithm>
#include <utility>

namespace edgecase::engine {

FreeSpace::FreeSpace(FileSystem& file_system, Clock& clock, std::string metadata_directory,
                     std::string values_directory, std::uint64_t keep_free_bytes)
    : file_system_(file_system),
      clock_(clock),
      metadata_directory_(std::move(metadata_directory)),
      values_directory_(std::move(values_directory)),
      keep_free_bytes_(keep_free_bytes) {}

FreeSpace::Shortage FreeSpace::shortage() const {
  MutexLock lock(mutex_);
  return shortage_;
}

Status FreeSpace::judge(const std::string& directory, const Result<Space>& space,
                        bool was_short) const {
  if (!space.ok()) return ok();
  const std::uint64_t kept = std::min(keep_free_bytes_, space->total_bytes / kKeepFreePart);
  if (space->free_bytes >= kept + (was_short ? kept / 8 : 0)) return ok();
  return Status::of_file(StatusCode::OutOfSpace, "", directory,
                         ": of the drive " + std::to_string(space->free_bytes >> 20) +
                             " MiB are free, and writes leave " + std::to_string(kept >> 20) +
                             " MiB of it");
}

bool FreeSpace::look() {
  MutexLock lock(mutex_);
  const auto values = file_system_.space(values_directory_);
  roomy_.store(values.ok() && values->free_bytes >= values->total_bytes / kRoomyPart,
               std::memory_order_relaxed);
  if (keep_free_bytes_ == 0) return false;
  const bool was_short = !shortage_.status.ok();
  Shortage found;
  found.status = judge(metadata_directory_, file_system_.space(metadata_directory_),
                       was_short && !shortage_.is_of_values)
                     .on(Drive::Metadata);
  if (found.status.ok()) {
    found.status =
        judge(values_directory_, values, was_short && shortage_.is_of_values).on(Drive::Values);
    found.is_of_values = !found.status.ok();
  }
  const bool is_now_short = !found.status.ok();
  if (!is_now_short) found.is_of_values = shortage_.is_of_values;
  found.since_ns = was_short ? shortage_.since_ns : clock_.wall_ns();
  shortage_ = std::move(found);
  short_.store(is_now_short, std::memory_order_relaxed);
  return was_short != is_now_short;
}

}  // namespace edgecase::engine
