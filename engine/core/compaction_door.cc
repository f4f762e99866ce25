#include "core/compaction_door.h"

#include <utility>

namespace edgecase::engine {

void EngineImpl::CompactionDoor::schedule(std::int64_t delay_ns, std::function<void()> task) {
  engine_.schedule_on_compaction(delay_ns, std::move(task));
}

void EngineImpl::CompactionDoor::publish() {
  engine_.publish_version();
}

void EngineImpl::CompactionDoor::revoke() {
  engine_.revocations_.note();
}

void EngineImpl::CompactionDoor::report(const Status& health) {
  EventListener& listener = engine_.environment_.listener;
  if (health.ok()) return listener.on_resumed(name_of(engine_.compaction_failure_layer_));
  engine_.compaction_failure_layer_ = layer_of(health);
  listener.on_degraded(name_of(engine_.compaction_failure_layer_), health);
}

std::uint64_t EngineImpl::CompactionDoor::user_bytes() const {
  return engine_.user_bytes_written_.load();
}

std::uint64_t EngineImpl::CompactionDoor::flushed_bytes() const {
  return engine_.table_value_bytes_.load() + engine_.table_metadata_bytes_.load();
}

Status EngineImpl::CompactionDoor::check_values() {
  return engine_.values_layer_is_used() ? engine_.check_values() : ok();
}

bool EngineImpl::CompactionDoor::is_roomy() const {
  return engine_.free_space_.is_roomy();
}

bool EngineImpl::CompactionDoor::release_reserve() {
  return engine_.release_reserve();
}

std::set<FileNumber> EngineImpl::CompactionDoor::lost_files() {
  return engine_.scrubber_->lost_files();
}

bool EngineImpl::CompactionDoor::look_for_damage(const std::vector<TablePointer>& tables) {
  return engine_.scrubber_->look_at(tables);
}

ExpiryView EngineImpl::CompactionDoor::expiry() {
  return engine_.expiry_of_bytes();
}

Result<bool> EngineImpl::CompactionDoor::clear_expired_log() {
  EC_TRY(engine_.note_expiry_mark(kExpiryMarkNs));
  return engine_.clear_expired_log();
}

Result<bool> EngineImpl::CompactionDoor::finish_erasure(SequenceNumber through) {
  return engine_.finish_erasure(through);
}

}  // namespace edgecase::engine
