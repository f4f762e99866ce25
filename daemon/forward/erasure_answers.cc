// Erasures, as targets answer, and as their fences are lifted.
#include <map>
#include <utility>

#include "forward/erasures.h"

namespace edgecase::forward {

std::optional<std::pair<std::uint64_t, TargetErasure>> Erasures::next_lift(
    const std::string& target) const {
  const MutexLock lock(mutex_);
  for (const auto& [number, entry] : open_) {
    const auto at = find_target(entry.targets, target);
    // Until it has answered it has no fence.
    if (at != entry.targets.end() && at->lifts && at->step != ErasureStep::Waiting)
      return std::pair(number, *at);
  }
  return std::nullopt;
}

// Without targets: there is none.
Result<Erasures::Entry> Erasures::entry_of(std::uint64_t number) const {
  {
    const MutexLock lock(mutex_);
    if (const auto found = open_.find(number); found != open_.end()) return found->second;
  }
  const NamespaceId id = records_.id();
  if (id == 0) return Entry();
  const auto record = engine_.get(id, key_of(kOrders, number), uncached());
  if (record.status().code() == StatusCode::NotFound) return Entry();
  EC_TRY(record.status());
  return decode(number, *record);
}

Status Erasures::write(std::uint64_t number, Entry next) {
  const bool is_over = !is_open(next.targets);
  const NamespaceId id = records_.id();
  WriteBatch batch;
  batch.set_makes_room();
  batch.put(id, key_of(kOrders, number), encode(next));
  if (is_over) {
    erase_all(id, key_of(kKeys, number), batch);
    erase_all(id, key_of(kNames, number), batch);
  }
  EC_TRY(engine_.write(batch, Durability::Sync));
  {
    const MutexLock lock(mutex_);
    if (is_over) {
      open_.erase(number);
    } else {
      open_[number] = std::move(next);
    }
  }
  // What fails goes on by itself.
  if (is_over) static_cast<void>(engine_.erase().ok());
  return ok();
}

Status Erasures::note(std::uint64_t number, const TargetErasure& answer) {
  const MutexLock writing(write_mutex_);
  EC_ASSIGN_OR_RETURN(Entry next, entry_of(number));
  const auto at = find_target(next.targets, answer.target);
  if (at == next.targets.end() || !is_open({*at})) return ok();
  const bool lifts = at->lifts;  // somebody said so meanwhile
  *at = answer;
  at->answered_ns = clock_.wall_ns();
  at->lifts = lifts;
  return write(number, std::move(next));
}

Status Erasures::note_lifted(std::uint64_t number, const std::string& target) {
  const MutexLock writing(write_mutex_);
  EC_ASSIGN_OR_RETURN(Entry next, entry_of(number));
  const auto at = find_target(next.targets, target);
  if (at == next.targets.end() || !at->lifts) return ok();
  at->lifts = false;
  return write(number, std::move(next));
}

Status Erasures::lift(std::uint64_t number) {
  const MutexLock writing(write_mutex_);
  EC_ASSIGN_OR_RETURN(Entry next, entry_of(number));
  bool is_any = false;
  for (TargetErasure& each : next.targets) {
    // It has made fences, or will.
    const bool has_fences = !each.certificates.empty() || each.step == ErasureStep::Waiting;
    each.lifts = each.lifts || has_fences;
    is_any = is_any || has_fences;
  }
  return is_any ? write(number, std::move(next)) : ok();
}

void Erasures::ask_again(const std::string& target) {
  const MutexLock lock(mutex_);
  for (auto& [number, entry] : open_) {
    const auto at = find_target(entry.targets, target);
    if (at != entry.targets.end() && may_be_forgotten(*at)) at->step = ErasureStep::Waiting;
  }
}

Status Erasures::forget(const std::string& target) {
  std::map<std::uint64_t, bool> numbers;  // whether the erasure itself is unanswered
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, entry] : open_) {
      const auto at = find_target(entry.targets, target);
      if (at != entry.targets.end() && is_open({*at})) numbers[number] = !is_final(at->step);
    }
  }
  for (const auto& [number, is_unanswered] : numbers) {
    if (is_unanswered) {
      EC_TRY(note(number, {.target = target,
                           .step = ErasureStep::NotPossible,
                           .why = "the target was forgotten here"}));
    }
    EC_TRY(note_lifted(number, target));
  }
  return ok();
}

std::size_t Erasures::waiting(const std::string& target) const {
  const MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [number, entry] : open_) {
    const auto at = find_target(entry.targets, target);
    if (at != entry.targets.end() && is_open({*at})) ++count;
  }
  return count;
}

Result<std::vector<TargetErasure>> Erasures::of(std::uint64_t number) const {
  EC_ASSIGN_OR_RETURN(Entry entry, entry_of(number));
  return std::move(entry.targets);
}

}  // namespace edgecase::forward
