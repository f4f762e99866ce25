#include "core/retention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compaction/due_sources.h"

namespace edgecase::engine {
namespace {

// How far the durable mark of expiry time may lie behind.
constexpr std::int64_t kMarkNs = 60'000'000'000;

Status check_rule(const RetentionRule& rule, const NamespaceInfo& info) {
  if (info.options.codec != GroupCodec::Series)
    return invalid_argument("namespace " + info.name + " has no times: nothing in it expires");
  if (rule.prefix.size() > kKeySizeMaxBytes)
    return invalid_argument("the prefix of a retention rule is longer than a key");
  if (rule.retention_ns && *rule.retention_ns <= 0)
    return invalid_argument("a retention is at least a nanosecond");
  return ok();
}

}  // namespace

Status Retention::set(std::vector<RetentionRule> rules) {
  if (rules.empty()) return ok();
  NamespaceInfo info;
  for (const RetentionRule& rule : rules) {
    if (rule.namespace_id != info.id) {
      EC_ASSIGN_OR_RETURN(info, store_.versions.find_namespace(rule.namespace_id));
    }
    EC_TRY(check_rule(rule, info));
  }
  // What the old rules hid stays hidden, unless nobody has confirmed that it was due.
  judge_leap();
  VersionEdit edit;
  edit.rule_changes = std::move(rules);
  const auto attempt = [&] {
    return store_.versions.change_retention(edit, store_.expiry_clock.removal_ns());
  };
  Status changed = attempt();
  if (!changed.ok()) changed = flushes_.with_reserve(std::move(changed), attempt);
  EC_TRY(changed);
  store_.revocations.note();
  store_.tables.resize(store_.budget.cache_bytes());
  store_.wal.forget_expiries();
  compactor_.retry_at_once();
  return ok();
}

std::vector<RetentionRule> Retention::rules() const {
  std::vector<RetentionRule> all;
  const auto rules = store_.versions.retention();
  if (rules == nullptr) return all;
  all.reserve(rules->rule_count());
  for (const ScopeState& scope : rules->scopes()) {
    if (!scope.retention_ns) continue;
    all.push_back(
        {namespace_of(scope.prefix), Bytes(user_key_of(scope.prefix)), scope.retention_ns});
  }
  return all;
}

void Retention::each(NamespaceId id, const KeyRange& prefixes,
                     const Engine::RetentionTaker& take) const {
  if (const auto rules = store_.versions.retention()) rules->each(id, prefixes, take);
}

Status Retention::evict(std::span<const NamespaceId> ids, std::int64_t before_ns) {
  std::vector<GivenUp> given_up;
  for (const NamespaceId id : ids) {
    EC_ASSIGN_OR_RETURN(const NamespaceInfo info, store_.versions.find_namespace(id));
    if (info.options.codec != GroupCodec::Series)
      return invalid_argument("namespace " + info.name + " has no times: nothing of it is oldest");
    given_up.push_back({id, before_ns});
  }
  EC_TRY(store_.versions.give_up(std::move(given_up)));
  store_.revocations.note();
  compactor_.retry_at_once();
  return ok();
}

std::int64_t Retention::evicted_before_ns(NamespaceId id) const {
  const auto rules = store_.versions.retention();
  return rules == nullptr ? kEverNs : time_of_ordinal(rules->given_up_below(id));
}

Eviction Retention::plan_eviction(const EvictionRequest& request) const {
  const auto rules = store_.versions.retention();
  return engine::plan_eviction(request, *store_.versions.current(), rules.get());
}

Result<bool> Retention::clear_log() {
  if (!leader_.is_replayed()) return false;
  const std::int64_t now_ns = store_.expiry_clock.removal_ns();
  if (!store_.wal.holds_expired(now_ns)) return true;
  if (store_.wal.needs_expired(now_ns)) EC_TRY(leader_.try_turn_log(store_.views.visible()));
  EC_TRY(store_.wal.overwrite_expired(now_ns));
  return !store_.wal.holds_expired(now_ns);
}

// Only value files can be counted: what memtables hold of before comes there first, where it is
// more than what may go anyway. False: to be asked again, that is on its way.
bool Retention::is_leap_in_files(std::int64_t lag_ns) {
  SequenceNumber through = 0;
  {
    MutexLock lock(mutex_);
    if (lag_ns > seen_lag_ns_) leap_sequence_ = store_.views.visible();
    seen_lag_ns_ = lag_ns;
    if (lag_ns == 0) return true;
    through = leap_sequence_;
  }
  const std::shared_ptr<const ReadView> view = store_.views.now().view;
  std::uint64_t older_bytes = 0;
  const auto count = [&](const auto& memtable) {
    if (memtable->first_sequence() != 0 && memtable->first_sequence() <= through)
      older_bytes += memtable->memory_bytes();
  };
  count(view->active);
  std::ranges::for_each(view->immutables, count);
  if (older_bytes <= kLeapBytesMin) return true;
  static_cast<void>(leader_.try_turn_log(through).ok());
  return false;
}

void Retention::judge_leap() {
  const ExpiryClock::Reading at = store_.expiry_clock.read();
  auto rules = store_.versions.retention();
  const std::int64_t boot_ns = store_.environment.clock.boot_ns();
  // What is held stays so until expiry goes with the clock again; and a leap that was seen without
  // rules waits for the first.
  if (at.wait != ExpiryWait::None && leaps_.held_ns(boot_ns) > 0) return;
  if (rules == nullptr || !is_leap_in_files(at.lag_ns)) return;
  std::uint64_t leapt_bytes = 0, all_bytes = 0;
  if (at.lag_ns > 0) {
    const std::shared_ptr<const Version> version = store_.versions.current();
    const bool exact = store_.options.expiry == ExpiryMode::Exact;
    leapt_bytes = due_bytes(*version, {rules, at.now_ns, store_.options.expiry}, exact) -
                  due_bytes(*version, {rules, at.removal_ns(), store_.options.expiry}, exact);
    for (const auto& [number, file] : version->value_files) all_bytes += file.size_bytes;
  }
  if (leaps_.judge(leapt_bytes, all_bytes, boot_ns)) store_.expiry_clock.accept(at.lag_ns);
}

Status Retention::note_mark() {
  return note_mark_within(kMarkNs);
}

Status Retention::note_mark_within(std::int64_t slack_ns) {
  if (store_.versions.retention() == nullptr) return ok();
  judge_leap();
  const std::int64_t now_ns = store_.expiry_clock.removal_ns();
  std::int64_t known_until_ns = 0;
  const std::uint64_t held_ns = leaps_.held_ns(store_.environment.clock.boot_ns());
  const VersionState known = store_.versions.state();
  if (__builtin_add_overflow(known.expiry_mark_ns, slack_ns, &known_until_ns) ||
      now_ns <= known_until_ns)
    return ok();
  VersionEdit edit;
  if (held_ns != 0 || known.held_ns != 0) edit.held_ns = held_ns;
  edit.expiry_mark_ns = now_ns;
  return store_.versions.apply(edit);
}

void Retention::add_to(Stats& stats, const Version& version) const {
  ExpiryStats& expiry = stats.expiry;
  const bool exact = store_.options.expiry == ExpiryMode::Exact;
  const ExpiryClock::Reading at = store_.expiry_clock.read();
  expiry.next_ns = next_expiry_ns(version, exact);
  expiry.now_ns = at.now_ns;
  expiry.wait = at.wait;
  expiry.waits = at.wait == ExpiryWait::None ? 0 : 1;
  expiry.wait_since_boot_ns = at.wait_since_boot_ns;
  expiry.held_bytes = leaps_.held_bytes();
  expiry.held_since_boot_ns = leaps_.held_since_boot_ns();
  const ExpiryView of_bytes = store_.expiry_of_bytes();
  expiry.evicted_waiting_bytes = of_bytes.empty() ? 0 : given_up_waiting_bytes(version, of_bytes);
  expiry.removals_wait = store_.remover.has_waiting(FileRemover::Urgency::Whenever);
  expiry.bytes_wait = store_.versions.has_obsolete_files() ||
                      store_.remover.has_bytes(FileRemover::Urgency::Whenever);
  const auto rules = store_.versions.retention();
  expiry.rules = rules == nullptr ? 0 : rules->rule_count();
  for (const auto& [number, file] : version.value_files) {
    const std::int64_t evicted_before_ns =
        rules == nullptr ? kEverNs : time_of_ordinal(rules->given_up_below(file.namespace_id));
    expiry.oldest_ns = std::min(expiry.oldest_ns, std::max(file.time_min_ns, evicted_before_ns));
    if (due_ns(file, exact) < at.now_ns) expiry.waiting_bytes += file.size_bytes;
  }
}

namespace {

// What goes may be three quarters of what was asked for, or twice as much, where files go whole
// with that: it costs nothing, and moving the rest of one does.
constexpr double kLeastShare = 0.75;
constexpr double kMostShare = 2;

// A value file's entries, as if they lay evenly.
struct Spread {
  std::int64_t first_ns;
  std::int64_t last_ns;
  std::uint64_t bytes;

  std::uint64_t before(std::int64_t time_ns) const {
    if (time_ns <= first_ns) return 0;
    if (last_ns < time_ns) return bytes;
    const double span_ns = static_cast<double>(last_ns) - static_cast<double>(first_ns);
    const double gone_ns = static_cast<double>(time_ns) - static_cast<double>(first_ns);
    return span_ns <= 0 ? 0
                        : static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                                     std::min(gone_ns / span_ns, 1.0));
  }
};

std::uint64_t bytes_older_than(const std::vector<Spread>& files, std::int64_t time_ns) {
  std::uint64_t bytes = 0;
  for (const Spread& each : files) bytes += each.before(time_ns);
  return bytes;
}

// The least time before which `wanted_bytes` lie; `limit_ns` where there are fewer.
std::int64_t time_for(const std::vector<Spread>& files, std::uint64_t wanted_bytes,
                      std::int64_t limit_ns) {
  std::int64_t low_ns = kEverNs, high_ns = limit_ns;
  while (low_ns < high_ns) {
    // Half way, without going out of range.
    const std::int64_t middle_ns = (low_ns >> 1) + (high_ns >> 1) + (low_ns & high_ns & 1);
    if (bytes_older_than(files, middle_ns) >= wanted_bytes) {
      high_ns = middle_ns;
    } else {
      low_ns = middle_ns + 1;
    }
  }
  return high_ns;
}

// The time itself, or one close to it at which a file ends.
std::int64_t at_end_of_file(const std::vector<Spread>& files, const EvictionRequest& request,
                            std::int64_t time_ns) {
  std::int64_t earlier_ns = kEverNs, later_ns = request.limit_ns;
  for (const Spread& each : files) {
    if (each.last_ns >= request.limit_ns) continue;
    if (each.last_ns < time_ns) {
      earlier_ns = std::max(earlier_ns, each.last_ns + 1);
    } else {
      later_ns = std::min(later_ns, each.last_ns + 1);
    }
  }
  const auto wanted = static_cast<double>(request.value_bytes);
  const auto goes_before = [&](std::int64_t at_ns) {
    return static_cast<double>(bytes_older_than(files, at_ns));
  };
  if (earlier_ns != kEverNs && goes_before(earlier_ns) >= wanted * kLeastShare) return earlier_ns;
  if (later_ns < request.limit_ns && goes_before(later_ns) <= wanted * kMostShare) return later_ns;
  return time_ns;
}

}  // namespace

Eviction plan_eviction(const EvictionRequest& request, const Version& version,
                       const RetentionRules* rules) {
  std::vector<Spread> files;
  for (const auto& [number, file] : version.value_files) {
    const auto live = version.live_bytes.find(number);
    if (live == version.live_bytes.end() || file.time_max_ns == kNeverNs ||
        std::find(request.namespaces.begin(), request.namespaces.end(), file.namespace_id) ==
            request.namespaces.end())
      continue;
    // What went before takes no part.
    const std::uint64_t below = rules == nullptr ? 0 : rules->given_up_below(file.namespace_id);
    const Spread whole{file.time_min_ns, file.time_max_ns, live->second};
    const std::uint64_t gone = whole.before(time_of_ordinal(below));
    if (gone == whole.bytes) continue;
    files.push_back(
        {std::max(file.time_min_ns, time_of_ordinal(below)), file.time_max_ns, whole.bytes - gone});
  }
  if (request.value_bytes == 0) return {};
  Eviction eviction;
  eviction.before_ns = time_for(files, request.value_bytes, request.limit_ns);
  eviction.before_ns = at_end_of_file(files, request, eviction.before_ns);
  eviction.value_bytes = bytes_older_than(files, eviction.before_ns);
  return eviction;
}

}  // namespace edgecase::engine
