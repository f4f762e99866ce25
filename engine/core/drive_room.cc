#include "core/drive_room.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"

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

namespace {

constexpr std::int64_t kFillReserveNs = 10'000'000'000;

}  // namespace

DriveRoom::DriveRoom(const Store& store, ValuesDrive& values)
    : store_(store),
      values_(values),
      free_space_(store.environment.file_system, store.environment.clock,
                  store.options.metadata_directory, store.options.values_directory,
                  store.options.keep_free_bytes),
      reserve_(store.environment.file_system,
               {reserve_path(store.options.metadata_directory),
                reserve_path(store.options.values_directory)},
               store.options.erasure_reserve_bytes) {}

void DriveRoom::look() {
  free_space_.look();
  const FreeSpace::Shortage shortage = free_space_.shortage();
  if (!shortage.status.ok()) {
    store_.health.fail(Work::Space, shortage.status);
  } else if (store_.health.is_failing(Work::Space)) {
    store_.health.succeed(Work::Space);
  }
  if (!is_short() || look_scheduled_.exchange(true)) return;
  store_.tasks.schedule_after(Lane::Flush, kLookForSpaceNs, [this] {
    look_scheduled_ = false;
    look();
  });
}

Status DriveRoom::check(const WriteBatch& batch) const {
  if (!is_short() || batch.makes_room()) return ok();
  const std::vector<NamespaceId>& ids = batch.namespaces();
  const bool is_of_metadata_alone = std::all_of(ids.begin(), ids.end(), [this](NamespaceId id) {
    const auto info = store_.versions.find_namespace(id);
    return info.ok() && info->options.placement == Placement::Metadata;
  });
  return is_of_metadata_alone ? ok() : free_space_.shortage().status;
}

void DriveRoom::fill_reserve() {
  if (store_.options.erasure_reserve_bytes == 0) return;
  store_.tasks.schedule(Lane::Compaction, [this] {
    // Not into the directory that an unmounted drive leaves behind.
    if (!values_.check().ok() || !reserve_.fill()) fill_reserve_later();
  });
}

// Not while an erasure is pending: that needs the room, and has it filled when it is done.
void DriveRoom::fill_reserve_later() {
  if (fill_scheduled_.exchange(true)) return;
  store_.tasks.schedule_after(Lane::Compaction, kFillReserveNs, [this] {
    fill_scheduled_ = false;
    if (store_.versions.has_erasures()) {
      fill_reserve_later();
    } else {
      fill_reserve();
    }
  });
}

bool DriveRoom::release_reserve() {
  if (!reserve_.release()) return false;
  fill_reserve_later();
  return true;
}

}  // namespace edgecase::engine
