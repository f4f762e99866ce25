#include "core/compaction_door.h"

#include <utility>

#include "compaction/purge.h"
#include "core/commit_leader.h"
#include "core/drives.h"
#include "core/erasure_round.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/retention.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

// Drops whole namespaces. Merges ask here what of their inputs is dead.

void EngineDropRule::begin_step() {
  version_ = versions_.current();
  if (auto rules = versions_.retention()) expiry_ = {std::move(rules), clock_.removal_ns(), mode_};
  range_hint_ = 0;
}

// What is kept of a version keeps its files.
void EngineDropRule::end_step() {
  version_ = nullptr;
  expiry_ = {};
  asked_.reset();
}

bool EngineDropRule::may_expire(NamespaceId id) {
  if (expiry_.empty()) return false;
  if (asked_ != id) {
    asked_ = id;
    asked_may_expire_ = expiry_.rules()->has_namespace(id);
  }
  return asked_may_expire_;
}

DropRule::Verdict EngineDropRule::judge_expiry(const UMetaRecord& record) {
  if (!may_expire(namespace_of(record.first))) return Verdict::Keep;
  const auto file = version_->value_files.find(record.pointer.file_number);
  if (file == version_->value_files.end()) return Verdict::Keep;
  if (is_over(file->second, record.first, record.last, expiry_)) return Verdict::Drop;
  if (record.type == ItemType::Single && expiry_.hides(record.first)) return Verdict::Drop;
  const bool is_emptied = given_up_permille(file->second, expiry_) >= kGivenUpPermille;
  if ((mode_ == ExpiryMode::Exact || is_emptied) && expiry_.hides_all(record.first, record.last))
    return Verdict::Drop;
  if (expiry_.rules()->changed_since(record.first, record.last, file->second.rule_epoch) ||
      expiry_.is_coarse(file->second.expiry_min_ns, file->second.expiry_max_ns))
    return Verdict::Rewrite;
  const bool looks =
      is_emptied || (mode_ == ExpiryMode::Exact && file->second.expiry_min_ns < expiry_.now_ns());
  const bool some_expired =
      looks && record.type != ItemType::Single && expiry_.may_hide(record.first, record.last);
  return some_expired ? Verdict::Inspect : Verdict::Keep;
}

DropRule::Verdict EngineDropRule::judge_item(const UMetaRecord& record) {
  if (versions_.dropped().contains(namespace_of(record.first))) return Verdict::Drop;
  const Verdict expired = judge_expiry(record);
  if (expired == Verdict::Drop || version_->range_deletes == nullptr) return expired;
  const RangeDeletes& deletes = *version_->range_deletes;
  if (deletes.covers(record.first, record.last, record.sequence_max)) return Verdict::Drop;
  if (expired != Verdict::Keep) return expired;
  return deletes.touches(record.first, record.last, record.sequence_min) ? Verdict::Inspect
                                                                         : Verdict::Keep;
}

bool EngineDropRule::drops_entry(ByteView full_key, SequenceNumber sequence) {
  const NamespaceId id = namespace_of(full_key);
  if (versions_.dropped().contains(id)) return true;
  if (may_expire(id) && expiry_.hides(full_key)) return true;
  return version_->range_deletes != nullptr &&
         version_->range_deletes->covering(full_key, UINT64_MAX, range_hint_) > sequence;
}

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
