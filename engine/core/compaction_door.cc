#include "core/compaction_door.h"

#include <utility>

namespace edgecase::engine {

void EngineImpl::CompactionDoor::schedule(std::int64_t delay_ns, std::function<void()> task) {
  engine_.tasks_.schedule_after(Lane::Compaction, delay_ns, std::move(task));
}

void EngineImpl::CompactionDoor::publish() {
  engine_.pacer_->look(engine_.flushes_->written_bytes());
  engine_.views_->publish();
}

void EngineImpl::CompactionDoor::revoke() {
  engine_.revocations_.note();
}

void EngineImpl::CompactionDoor::report(const Status& health) {
  if (health.ok()) return engine_.health_.succeed(Work::Merge);
  engine_.health_.fail(Work::Merge, health);
}

std::uint64_t EngineImpl::CompactionDoor::user_bytes() const {
  return engine_.leader_->user_bytes();
}

std::uint64_t EngineImpl::CompactionDoor::flushed_bytes() const {
  return engine_.flushes_->written_bytes();
}

Status EngineImpl::CompactionDoor::check_values() {
  return engine_.store_->uses_values_drive() ? engine_.values_->check() : ok();
}

bool EngineImpl::CompactionDoor::is_roomy() const {
  return engine_.room_->is_roomy();
}

bool EngineImpl::CompactionDoor::release_reserve() {
  return engine_.room_->release_reserve();
}

std::set<FileNumber> EngineImpl::CompactionDoor::lost_files() {
  return engine_.scrubber_->lost_files();
}

bool EngineImpl::CompactionDoor::look_for_damage(const std::vector<TablePointer>& tables) {
  return engine_.scrubber_->look_at(tables);
}

ExpiryView EngineImpl::CompactionDoor::expiry() {
  return engine_.store_->expiry_of_bytes();
}

Result<bool> EngineImpl::CompactionDoor::clear_expired_log() {
  EC_TRY(engine_.retention_->note_mark());
  return engine_.retention_->clear_log();
}

Result<bool> EngineImpl::CompactionDoor::finish_erasure(SequenceNumber through) {
  return engine_.erasure_->finish(through);
}

}  // namespace edgecase::engine
