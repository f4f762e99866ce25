// An erasure at a target: what its names and times are there (Eraser), and what becomes of it as
// the target answers and its fences are lifted (Erasures).
#include <algorithm>
#include <map>
#include <utility>

#include "forward/eraser.h"
#include "forward/erasures.h"

namespace edgecase::forward {
namespace {

constexpr char kSharesName[] =
    "columns of its windows have the name of a series whose readings are to stay";
constexpr char kUnknownLength[] = "how long the windows were that went there is not known here";

// `there` becomes that column of the series.
void name_column(const catalog::SeriesEntry& series, wire::WindowColumn column, ErasedName& there) {
  catalog::SeriesEntry called = column_of(series, column);
  there.sensor = std::move(called.sensor);
  there.identity = std::move(called.identity);
}

catalog::SeriesEntry entry_of(const ErasedName& name) {
  return {.namespace_name = name.namespace_name,
          .device = name.device,
          .sensor = name.sensor,
          .id = {},
          .identity = name.identity};
}

}  // namespace

// Windows go whole.
ErasureOrder Eraser::order_there(ErasureOrder order) const {
  if (every_ns_ == 0 || order.has_all_times) return order;
  if (order.range.from_ns != INT64_MIN)
    order.range.from_ns = window_begin_ns(order.range.from_ns, every_ns_);
  if (order.range.to_ns) {
    const std::int64_t begin_ns = window_begin_ns(*order.range.to_ns - 1, every_ns_);
    std::int64_t end_ns = 0;
    if (__builtin_add_overflow(begin_ns, every_ns_, &end_ns)) {
      order.range.to_ns.reset();
    } else {
      order.range.to_ns = end_ns;
    }
  }
  return order;
}

bool Eraser::Wish::takes(const SentWindows::Span& span) const {
  if (order.has_all_times) return true;
  const std::int64_t from_ns = order.range.from_ns;
  if (span.end_ns <= from_ns || (order.range.to_ns && span.begin_ns >= *order.range.to_ns))
    return false;
  return !cut_by_ns ||
         (!span.has_several_lengths() && window_begin_ns(*cut_by_ns, span.every_ns) == from_ns);
}

Status Eraser::each_there(const Wish& wish, const ErasedName& name, const NameTaker& take,
                          TargetErasure& result) const {
  const bool goes_whole = watched_.takes_device(name.namespace_name, name.device);
  ErasedName there = name;
  there.is_of_device = name.is_of_device && goes_whole;
  if (name.is_device) {
    there.device = pseudonyms_.of(name.namespace_name, name.device);
    if (goes_whole && !wish.cut_by_ns) take(there);
    return ok();
  }
  if (!watched_.takes(name.namespace_name, name.device, name.sensor)) return ok();
  const catalog::SeriesEntry entry = pseudonyms_.of(entry_of(name));
  there.device = entry.device;
  there.sensor = entry.sensor;
  there.identity = entry.identity;
  if (every_ns_ == 0) {
    if (!wish.cut_by_ns) take(there);
    return windows_ == nullptr ? ok() : each_column(wish, name, std::move(there), take, result);
  }
  if (name.is_gone && windows_ != nullptr)
    return each_guessed_column(wish, name, std::move(there), take);
  // Longer ones went of what had become these.
  if (wish.cut_by_ns) return each_column(wish, name, std::move(there), take, result);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    name_column(entry, column, there);
    take(there);
  }
  return ok();
}

Status Eraser::each_column(const Wish& wish, const ErasedName& name, ErasedName there,
                           const NameTaker& take, TargetErasure& result) const {
  if (name.is_gone) return each_guessed_column(wish, name, std::move(there), take);
  if (name.id.sensor == 0) return ok();
  EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(name.id));
  WindowColumns columns = 0;
  for (const SentWindows::Span& each : sent.spans)
    if (wish.takes(each)) columns |= each.columns;
  if (columns == 0) return ok();
  const catalog::SeriesEntry entry = entry_of(there), here = entry_of(name);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    if ((columns & column_bit(column)) == 0) continue;
    if (every_ns_ == 0 &&
        windows_->is_series(name.namespace_name, name.device, column_of(here, column).sensor)) {
      worsen(result, ErasureStep::NotPossible, kSharesName);
      continue;
    }
    name_column(entry, column, there);
    take(there);
  }
  return ok();
}

// Nobody knows which part of the name of what had gone here before is its field: columns are asked
// for by both names that they may have. InfluxDB is not asked for it at all.
Status Eraser::each_guessed_column(const Wish& wish, const ErasedName& name, ErasedName there,
                                   const NameTaker& take) const {
  if (kind_ != Kind::EdgeCase) return ok();
  WindowColumns columns = every_ns_ > 0 && !wish.cut_by_ns ? kAllWindowColumns : 0;
  if (name.id.sensor != 0) {
    EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(name.id));
    for (const SentWindows::Span& each : sent.spans)
      if (wish.takes(each)) columns |= each.columns;
  } else if (columns == 0 && !wish.cut_by_ns) {
    EC_ASSIGN_OR_RETURN(const bool has_any, windows_->has_any());
    if (has_any) columns = kAllWindowColumns;
  }
  const std::size_t tags = std::min(there.sensor.find('{'), there.sensor.size());
  const std::string stem = there.sensor.substr(0, tags), tail = there.sensor.substr(tags);
  for (const wire::WindowColumn column : wire::kWindowColumns) {
    if ((columns & column_bit(column)) == 0) continue;
    for (const char* field : {"", ".value"}) {
      there.sensor = stem + field + std::string(wire::column_suffix(column)) + tail;
      if (every_ns_ > 0 || !windows_->is_series(name.namespace_name, name.device, there.sensor))
        take(there);
    }
  }
  return ok();
}

Status Eraser::find_gone(const ErasureOrder& order, std::vector<ErasedName>& names,
                         TargetErasure& result) const {
  if (windows_ == nullptr || kind_ != Kind::EdgeCase) return ok();
  for (ErasedName& each : names) {
    if (!each.is_gone || each.is_device ||
        !watched_.takes(each.namespace_name, each.device, each.sensor))
      continue;
    const auto gone = windows_->find_gone(each.namespace_name, each.device, each.sensor);
    if (!gone.ok() && gone.status().code() != StatusCode::Corruption) return gone.status();
    if (gone.ok() && gone->id) each.id = *gone->id;
    if ((gone.ok() && (gone->id || gone->knows_all)) || order.has_all_times) continue;
    worsen(result, ErasureStep::NotPossible, kUnknownLength);
  }
  return ok();
}

// Windows that begin before the range and end in it, or behind.
Result<std::set<std::int64_t>> Eraser::cut_windows(const ErasureOrder& order,
                                                   const std::vector<ErasedName>& names,
                                                   TargetErasure& result) const {
  std::set<std::int64_t> begins_ns;
  const std::int64_t from_ns = order.range.from_ns;
  if (windows_ == nullptr || order.has_all_times || from_ns == INT64_MIN) return begins_ns;
  for (const ErasedName& each : names) {
    if (each.is_device || each.id.sensor == 0) continue;
    EC_ASSIGN_OR_RETURN(const SentWindows sent, windows_->of(each.id));
    for (const SentWindows::Span& span : sent.spans) {
      if (span.has_several_lengths()) {
        if (span.begin_ns < from_ns && from_ns < span.end_ns)
          worsen(result, ErasureStep::NotPossible, kUnknownLength);
        continue;
      }
      const std::int64_t begin_ns = window_begin_ns(from_ns, span.every_ns);
      if (begin_ns < from_ns && span.begin_ns <= begin_ns && begin_ns < span.end_ns)
        begins_ns.insert(begin_ns);
    }
  }
  return begins_ns;
}

Eraser::Groups Eraser::groups_of(const std::vector<ErasedName>& there,
                                 TargetErasure& result) const {
  Groups groups;
  for (const ErasedName& each : there) {
    if (each.is_device && !each.is_gone) continue;
    auto identity = wire::decode_identity(each.identity);
    if (!identity.ok()) {
      worsen(result, ErasureStep::NotPossible, "what its lines were called is not known here");
      continue;
    }
    groups[{database_of(each.namespace_name), identity->measurement, std::move(identity->tags)}]
        .insert(identity->field);
  }
  return groups;
}

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
