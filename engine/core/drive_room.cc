#include "core/drive_room.h"

#include <algorithm>

#include "file/file_names.h"

namespace edgecase::engine {
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
