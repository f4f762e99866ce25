#include "core/compaction_door.h"

#include <utility>

#include "core/commit_leader.h"
#include "core/drive_room.h"
#include "core/erasure_round.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/retention.h"
#include "core/values_drive.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

void CompactionDoor::schedule(std::int64_t delay_ns, std::function<void()> task) {
  store_.tasks.schedule_after(Lane::Compaction, delay_ns, std::move(task));
}

void CompactionDoor::publish() {
  owners_.pacer.look(owners_.flushes.written_bytes());
  store_.views.publish();
}

void CompactionDoor::revoke() {
  store_.revocations.note();
}

void CompactionDoor::report(const Status& health) {
  if (health.ok()) return store_.health.succeed(Work::Merge);
  store_.health.fail(Work::Merge, health);
}

std::uint64_t CompactionDoor::user_bytes() const {
  return owners_.leader.user_bytes();
}

std::uint64_t CompactionDoor::flushed_bytes() const {
  return owners_.flushes.written_bytes();
}

Status CompactionDoor::check_drives() {
  EC_TRY(check_metadata_identity(store_.environment.file_system, store_.options.metadata_directory,
                                 store_.id));
  return store_.uses_values_drive() ? owners_.values.check() : ok();
}

bool CompactionDoor::is_roomy() const {
  return owners_.room.is_roomy();
}

bool CompactionDoor::release_reserve() {
  return owners_.room.release_reserve();
}

std::set<FileNumber> CompactionDoor::lost_files() {
  return owners_.scrubber.lost_files();
}

bool CompactionDoor::look_for_damage(const std::vector<TablePointer>& tables) {
  return owners_.scrubber.look_at(tables);
}

ExpiryView CompactionDoor::expiry() {
  return store_.expiry_of_bytes();
}

RaiseLimits CompactionDoor::raise_limits() {
  return store_.feed_bounds.limits();
}

Result<bool> CompactionDoor::clear_expired_log() {
  EC_TRY(owners_.retention.note_mark());
  return owners_.retention.clear_log();
}

Result<bool> CompactionDoor::finish_erasure(SequenceNumber through) {
  return owners_.erasure.finish(through);
}

}  // namespace edgecase::engine
