#include "forward/unsent.h"

#include <algorithm>
#include <utility>

#include "wire/reading.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

using retention::Leaving;

ReadOptions newer_than(CommitPosition position) {
  ReadOptions options = without_damaged();
  options.fill_cache = false;
  options.newer_than = position;
  return options;
}

// `time_ns - span_ns`, or the beginning of time.
std::int64_t before(std::int64_t time_ns, std::int64_t span_ns) {
  std::int64_t result = 0;
  return __builtin_sub_overflow(time_ns, span_ns, &result) ? INT64_MIN : result;
}

KeyRange keys_of(const catalog::SeriesId& id, std::int64_t from_ns, std::int64_t to_ns) {
  return erase::range_of_series(
      id, {from_ns, to_ns == INT64_MAX ? std::nullopt : std::optional(to_ns)});
}

// What of the range of keys lies behind the place; nothing: none of it.
std::optional<KeyRange> behind(const std::optional<Place>& place, NamespaceId id, KeyRange keys) {
  if (!place || place->namespace_id < id) return keys;
  if (place->namespace_id > id) return std::nullopt;
  keys.lower = std::max(keys.lower, place->key + '\0');
  if (!keys.upper.empty() && keys.upper <= keys.lower) return std::nullopt;
  return keys;
}

}  // namespace

const char* leaving_name(Leaving why) {
  switch (why) {
    case Leaving::Expired: return "expired";
    case Leaving::Evicted: return "evicted";
    case Leaving::Erased: return "erased";
    case Leaving::Thinned: break;
  }
  return "thinned";
}

void Unsent::set_targets(std::vector<Watch> all) {
  const MutexLock lock(mutex_);
  std::map<std::string, State> next;
  for (Watch& each : all) {
    State state;
    if (const auto found = states_.find(each.target.name); found != states_.end())
      state = std::move(found->second);
    else
      state.counted_until_ns = each.expired_until_ns;
    state.watch = std::move(each);
    next[state.watch.target.name] = std::move(state);
  }
  states_ = std::move(next);
}

void Unsent::set_cursor(const std::string& target, const Cursor& cursor, const Cursor& kept) {
  const MutexLock lock(mutex_);
  const auto found = states_.find(target);
  if (found == states_.end()) return;
  found->second.watch.cursor = cursor;
  found->second.watch.kept = kept;
}

bool Unsent::take(const std::string& target, Totals& totals) {
  const MutexLock lock(mutex_);
  const auto found = states_.find(target);
  if (found == states_.end()) return false;
  totals.expired_until_ns = found->second.counted_until_ns;
  return add(std::exchange(found->second.counts, {}), totals);
}

std::optional<std::int64_t> Unsent::oldest_ns(const std::string& target) const {
  const MutexLock lock(mutex_);
  const auto found = states_.find(target);
  if (found == states_.end() || found->second.oldest_ns == INT64_MAX) return std::nullopt;
  return found->second.oldest_ns;
}

// Until it is looked at, all that it spares at most; then also what has come since.
std::int64_t Unsent::waits_from_ns(const State& state) const {
  const std::int64_t keep_ns = state.watch.keep_ns;
  if (keep_ns == 0) return INT64_MAX;
  const std::int64_t spared_ns = before(engine_.expiry_now_ns(), keep_ns);
  const std::int64_t since_ns = before(state.looked_ns, kLookMinNs);
  return std::max(std::min(state.oldest_ns, since_ns), spared_ns);
}

std::int64_t Unsent::waits_from_ns(const catalog::SeriesEntry& series) const {
  const MutexLock lock(mutex_);
  std::int64_t from_ns = INT64_MAX;
  for (const auto& [name, state] : states_) {
    if (state.watch.target.takes(series.namespace_name, series.device, series.sensor))
      from_ns = std::min(from_ns, waits_from_ns(state));
  }
  return from_ns;
}

std::int64_t Unsent::waits_from_ns() const {
  const MutexLock lock(mutex_);
  std::int64_t from_ns = INT64_MAX;
  for (const auto& [name, state] : states_) from_ns = std::min(from_ns, waits_from_ns(state));
  return from_ns;
}

std::map<std::string, Unsent::State> Unsent::states() const {
  const MutexLock lock(mutex_);
  return states_;
}

Status Unsent::each_series(const Watch& watch, const Taker& take) const {
  for (const std::string& name : catalog_.namespaces()) {
    if (name.starts_with('_')) continue;
    for (const catalog::SeriesRow row :
         catalog_.select_rows(name, wire::Selector(), catalog::RowOrder::Any)) {
      if (is_stopping_) return cancelled("the daemon stops");
      const auto series = catalog_.series_at(row);
      if (!series.ok() ||
          !watch.target.takes(series->namespace_name, series->device, series->sensor)) {
        continue;
      }
      EC_TRY(take(*series));
    }
  }
  return ok();
}

Result<bool> Unsent::has_waiting(const Watch& watch) const {
  for (const NamespaceInfo& each : engine_.namespaces()) {
    if (each.name.starts_with('_')) continue;
    const auto at = engine_.scan(each.id, {}, newer_than(watch.cursor.oldest()));
    if (at.status().code() == StatusCode::NotFound) continue;  // dropped meanwhile
    EC_TRY(at.status());
    if ((*at)->valid()) return true;
    EC_TRY((*at)->status());
  }
  return false;
}

// Keys of a series come by their times: its first one that is newer is the oldest that waits.
Result<std::int64_t> Unsent::first_newer(NamespaceId id, const KeyRange& keys,
                                         CommitPosition after) const {
  if (after >= engine_.committed()) return INT64_MAX;
  const auto at = engine_.scan(id, keys, newer_than(after));
  if (at.status().code() == StatusCode::NotFound) return INT64_MAX;  // dropped meanwhile
  EC_TRY(at.status());
  wire::ReadingKey key;
  const bool is_reading = (*at)->valid() && wire::decode_reading_key((*at)->key(), key) &&
                          !wire::is_undated_time(key.time_ns);
  EC_TRY((*at)->status());
  return is_reading ? key.time_ns : INT64_MAX;
}

Status Unsent::find_oldest(State& state) const {
  std::int64_t oldest_ns = INT64_MAX;
  const Cursor& cursor = state.watch.cursor;
  const Status looked = each_series(state.watch, [&](const catalog::SeriesEntry& series) -> Status {
    const NamespaceId id = series.id.namespace_id;
    KeyRange keys = keys_of(series.id, state.watch.from_ns, oldest_ns);
    CommitPosition after = cursor.fresh_after();
    for (const Backlog& each : cursor.backlog()) {
      const auto rest = behind(each.done_to, id, keys);
      if (!rest) continue;
      // What of the range lies before its place and behind the next range's beginning is rare.
      keys.lower = each.after == cursor.oldest() ? rest->lower : keys.lower;
      after = each.after;
      break;
    }
    EC_ASSIGN_OR_RETURN(const std::int64_t first_ns, first_newer(id, keys, after));
    oldest_ns = std::min(oldest_ns, first_ns);
    return ok();
  });
  if (looked.ok()) state.oldest_ns = oldest_ns;
  return looked;
}

Result<std::uint64_t> Unsent::count(const Watch& watch, const catalog::SeriesEntry& series,
                                    std::int64_t from_ns, std::int64_t to_ns) const {
  from_ns = std::max(from_ns, watch.from_ns);
  if (from_ns >= to_ns) return std::uint64_t{0};
  const NamespaceId id = series.id.namespace_id;
  const KeyRange keys = keys_of(series.id, from_ns, to_ns);
  const auto newer = [&](const KeyRange& range, CommitPosition position) -> Result<std::uint64_t> {
    if (position >= engine_.committed()) return std::uint64_t{0};
    const auto stats = engine_.range_stats(id, range, newer_than(position));
    if (stats.status().code() == StatusCode::NotFound) return std::uint64_t{0};
    EC_TRY(stats.status());
    return stats->entries;
  };
  EC_ASSIGN_OR_RETURN(std::uint64_t readings, newer(keys, watch.cursor.fresh_after()));
  for (const Backlog& each : watch.cursor.backlog()) {
    const auto rest = behind(each.done_to, id, keys);
    if (!rest) continue;
    EC_ASSIGN_OR_RETURN(const std::uint64_t all, newer(*rest, each.after));
    EC_ASSIGN_OR_RETURN(const std::uint64_t later, newer(*rest, each.upto));
    readings += all - std::min(all, later);
  }
  return readings;
}

void Unsent::count_leaving(Leaving why, const catalog::SeriesEntry& series, std::int64_t from_ns,
                           std::int64_t to_ns, std::uint64_t weight) {
  for (const auto& [name, state] : states()) {
    if (!state.watch.target.takes(series.namespace_name, series.device, series.sensor)) continue;
    const auto readings = count(state.watch, series, from_ns, to_ns);
    if (!readings.ok() || *readings == 0) continue;
    const MutexLock lock(mutex_);
    if (const auto found = states_.find(name); found != states_.end())
      found->second.counts[static_cast<std::size_t>(why)] += *readings * weight;
  }
}

Status Unsent::leave_thinned(const catalog::SeriesEntry& series, std::int64_t before_ns,
                             WriteBatch& batch) {
  const NamespaceId id = series.id.namespace_id;
  for (const auto& [name, state] : states()) {
    const Watch& watch = state.watch;
    if (!watch.target.takes(series.namespace_name, series.device, series.sensor)) continue;
    const auto readings = count(watch, series, INT64_MIN, before_ns);
    if (readings.ok() && *readings > 0) {
      const MutexLock lock(mutex_);
      if (const auto found = states_.find(name); found != states_.end())
        found->second.counts[static_cast<std::size_t>(Leaving::Thinned)] += *readings;
    }
    if (thinned_ == nullptr) continue;
    // What was answered and may be forgotten there has gone here, if it has to go again.
    const Cursor& cursor = watch.kept ? *watch.kept : watch.cursor;
    const KeyRange keys = keys_of(series.id, watch.from_ns, before_ns);
    EC_ASSIGN_OR_RETURN(std::int64_t first_ns, first_newer(id, keys, cursor.fresh_after()));
    for (const Backlog& each : cursor.backlog()) {
      const auto rest = behind(each.done_to, id, keys);
      if (!rest) continue;
      EC_ASSIGN_OR_RETURN(const std::int64_t one_ns, first_newer(id, *rest, each.after));
      first_ns = std::min(first_ns, one_ns);
    }
    if (first_ns < before_ns)
      EC_TRY(thinned_->owe(name, series.id, first_ns, before_ns, readings.ok() ? *readings : 0,
                           batch));
  }
  return ok();
}

void Unsent::count_dropped(const std::string& namespace_name) {
  for (const catalog::SeriesRow row :
       catalog_.select_rows(namespace_name, wire::Selector(), catalog::RowOrder::Any)) {
    if (const auto series = catalog_.series_at(row); series.ok())
      count_leaving(Leaving::Erased, *series, INT64_MIN, INT64_MAX, 1);
  }
}

Status Unsent::look(bool finds) {
  const std::int64_t begun_ns = clock_.boot_ns();
  const CommitPosition committed = engine_.committed();
  const bool is_first = seen_ == 0;
  if (is_first) seen_ = committed;
  const std::int64_t offset_ns = held_ == nullptr ? 0 : held_->offset_ns();
  const std::int64_t now_ns = engine_.expiry_now_ns();
  std::map<std::string, State> all = states();
  Status problem;
  const auto note = [&problem](const Status& status) {
    if (problem.ok()) problem = status;
  };
  for (auto& [name, state] : all) {
    const Cursor& cursor = state.watch.cursor;
    state.is_behind = !cursor.backlog().empty() || cursor.fresh_after() < seen_;
    // A start waits for its first look, and mostly it is the store's own commits that are newer.
    if (is_first && state.is_behind) {
      const Result<bool> waits = has_waiting(state.watch);
      note(waits.status());
      state.is_behind = !waits.ok() || *waits;
    }
    if (!state.is_behind) {
      state.oldest_ns = INT64_MAX;
    } else if (finds) {
      note(find_oldest(state));
    }
    state.looked_ns = now_ns;
  }
  seen_ = committed;
  note(hold(all, now_ns));
  const std::int64_t ahead_ns = 2 * look_again_in_ns_;
  for (auto& [name, state] : all) note(count_expiring(state, now_ns, ahead_ns));
  if (held_ != nullptr) all.empty() ? held_->follow_always() : held_->follow(offset_ns);
  note(expire_sent(all, now_ns));
  {
    const MutexLock lock(mutex_);
    for (auto& [name, state] : states_) {
      const auto found = all.find(name);
      if (found == all.end()) continue;
      const State& seen = found->second;
      state.is_behind = seen.is_behind;
      state.looked_ns = seen.looked_ns;
      state.is_held = seen.is_held;
      state.oldest_ns = seen.oldest_ns;
      state.leap = seen.leap;
    }
  }
  look_again_in_ns_ =
      std::clamp((clock_.boot_ns() - begun_ns) * kRestShare, kLookMinNs, kLookMaxNs);
  return problem;
}

// A hold begins shortly before a rule takes what waits, and ends when it is young again, or sent.
Status Unsent::hold(std::map<std::string, State>& all, std::int64_t now_ns) {
  if (rules_ == nullptr || now_ns == INT64_MIN) return ok();
  const std::int64_t shortest_ns = rules_->shortest_ns();
  std::vector<retention::Hold> holds;
  Status problem;
  for (auto& [name, state] : all) {
    const Watch& watch = state.watch;
    const bool was_held = state.is_held;
    state.is_held = false;
    if (watch.keep_ns > 0 && state.oldest_ns != INT64_MAX && shortest_ns != kRetentionForever &&
        watch.target.selections) {
      const std::int64_t margin_ns =
          was_held ? shortest_ns / 2
                   : std::max(shortest_ns / kHoldShare, kHoldBeforeNs + 2 * look_again_in_ns_);
      // It may be younger than the engine's time, and a short rule take it before the next look.
      state.is_held = state.oldest_ns < before(now_ns, shortest_ns - margin_ns);
    }
    if (!state.is_held) {
      if (was_held) problem = count_past_rules(state, now_ns);
      continue;
    }
    retention::Hold& made = holds.emplace_back();
    made.target = name;
    made.keep_ns = watch.keep_ns;
    for (const config::ForwardSelection& each : *watch.target.selections)
      made.parts.push_back({each.namespace_name, each.selector});
  }
  if (holds.empty()) expired_ns_.clear();
  EC_TRY(rules_->set_holds(std::move(holds)));
  return problem;
}

// What a hold has spared and its rule takes as the hold ends: other targets may lack it.
Status Unsent::count_past_rules(const State& state, std::int64_t now_ns) {
  return each_series(state.watch, [&](const catalog::SeriesEntry& series) -> Status {
    const wire::Keeping keeping = rules_->keeping(series);
    if (keeping.tiers.empty() && keeping.raw_ns < state.watch.keep_ns)
      count_leaving(Leaving::Expired, series, INT64_MIN, before(now_ns, keeping.raw_ns), 1);
    return ok();
  });
}

// While something is held, what is older than all that waits expires by its rule, a 16th of its
// time late at most.
Status Unsent::expire_sent(const std::map<std::string, State>& all, std::int64_t now_ns) {
  if (rules_ == nullptr || now_ns == INT64_MIN) return ok();
  std::map<std::int64_t, std::int64_t> next = expired_ns_;
  WriteBatch batch;
  const auto write = [&]() -> Status {
    if (batch.range_deletes() == 0) return ok();
    EC_TRY(engine_.write(batch, Durability::Sync));
    batch.clear();
    return ok();
  };
  bool is_any = false;
  for (const auto& each : all) {
    const State& state = each.second;
    if (!state.is_held) continue;
    const Status looked = each_series(state.watch, [&](const catalog::SeriesEntry& series) {
      const wire::Keeping keeping = rules_->keeping(series);
      if (!keeping.tiers.empty() || keeping.raw_ns >= state.watch.keep_ns) return ok();
      const std::int64_t due_ns = before(now_ns, keeping.raw_ns);
      // Up to here the engine has let them expire when the hold began.
      const auto [done, is_new] = expired_ns_.try_emplace(keeping.raw_ns, due_ns);
      next.try_emplace(keeping.raw_ns, done->second);
      const std::int64_t upto_ns = std::min(due_ns, state.oldest_ns);
      const bool is_due =
          upto_ns > done->second && (upto_ns == state.oldest_ns ||
                                     before(upto_ns, done->second) >= keeping.raw_ns / kHoldShare);
      if (is_new || !is_due) return ok();
      next[keeping.raw_ns] = std::max(next[keeping.raw_ns], upto_ns);
      count_leaving(Leaving::Expired, series, INT64_MIN, upto_ns, 1);
      const KeyRange keys = keys_of(series.id, INT64_MIN, upto_ns);
      batch.erase_range(series.id.namespace_id, keys.lower, keys.upper);
      is_any = true;
      return batch.range_deletes() < kRangeDeletesPerBatchMax ? ok() : write();
    });
    EC_TRY(looked);
  }
  EC_TRY(write());
  expired_ns_ = std::move(next);
  // A round of erasure takes up what is flushed.
  return is_any ? engine_.flush() : ok();
}

// What expires before the look after next and still waits. What a leap takes is readable before it
// alone, so it is counted then; it counts once the engine's time has leapt.
Status Unsent::count_expiring(State& state, std::int64_t now_ns, std::int64_t ahead_ns) {
  if (rules_ == nullptr) return ok();
  std::uint64_t expired = 0;
  std::int64_t begin_ns = state.counted_until_ns == kUncounted ? now_ns : state.counted_until_ns;
  if (state.leap && now_ns > state.leap->half_ns) {
    expired = state.leap->expired;
    begin_ns = std::max(begin_ns, state.leap->until_ns);
  }
  state.leap.reset();
  const std::int64_t end_ns = std::max(begin_ns, now_ns + ahead_ns);
  EC_ASSIGN_OR_RETURN(const std::uint64_t soon, expiring(state, begin_ns, end_ns));
  {
    const MutexLock lock(mutex_);
    const auto found = states_.find(state.watch.target.name);
    if (found == states_.end()) return ok();
    found->second.counts[static_cast<std::size_t>(Leaving::Expired)] += expired + soon;
    found->second.counted_until_ns = end_ns;
  }
  const std::int64_t wall_ns = clock_.wall_ns();
  if (wall_ns <= end_ns || clock_.trust() != ClockTrust::Trusted) return ok();
  Leap leap{.half_ns = now_ns, .until_ns = wall_ns + ahead_ns};
  if (now_ns != INT64_MIN) leap.half_ns += (wall_ns - now_ns) / 2;  // else it knows no time yet
  EC_ASSIGN_OR_RETURN(leap.expired, expiring(state, end_ns, leap.until_ns));
  state.leap = leap;
  return ok();
}

Result<std::uint64_t> Unsent::expiring(const State& state, std::int64_t begin_ns,
                                       std::int64_t end_ns) const {
  std::uint64_t readings = 0;
  const std::int64_t shortest_ns = rules_->shortest_ns();
  if (!state.is_behind || shortest_ns == kRetentionForever ||
      state.oldest_ns >= before(end_ns, shortest_ns)) {
    return readings;
  }
  EC_TRY(each_series(state.watch, [&](const catalog::SeriesEntry& series) -> Status {
    const std::int64_t rule_ns = rules_->expiry_ns(series);
    if (rule_ns == kRetentionForever) return ok();
    EC_ASSIGN_OR_RETURN(
        const std::uint64_t some,
        count(state.watch, series, before(begin_ns, rule_ns), before(end_ns, rule_ns)));
    readings += some;
    return ok();
  }));
  return readings;
}

}  // namespace edgecase::forward
