// Retention rules, and what reads need to know of them.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/ordinal.h"
#include "compaction/purge.h"
#include "core/engine_impl.h"

namespace edgecase::engine {
namespace {

constexpr std::int64_t kLongAgoNs = std::numeric_limits<std::int64_t>::min();

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

Status EngineImpl::set_retention(std::vector<RetentionRule> rules) {
  if (rules.empty()) return ok();
  NamespaceInfo info;
  for (const RetentionRule& rule : rules) {
    if (rule.namespace_id != info.id) {
      EC_ASSIGN_OR_RETURN(info, versions_->find_namespace(rule.namespace_id));
    }
    EC_TRY(check_rule(rule, info));
  }
  // What the old rules hid stays hidden, unless nobody has confirmed that it was due.
  judge_leap();
  VersionEdit edit;
  edit.rule_changes = std::move(rules);
  const auto attempt = [&] {
    return versions_->change_retention(edit, expiry_clock_->removal_ns());
  };
  Status changed = attempt();
  if (!changed.ok()) changed = use_reserve(std::move(changed), attempt);
  EC_TRY(changed);
  revocations_.note();
  tables_->resize(memory_bytes() / kCacheShare);
  wal_->forget_expiries();
  compactor_->retry_at_once();
  return ok();
}

std::vector<RetentionRule> EngineImpl::retention_rules() const {
  std::vector<RetentionRule> all;
  const auto rules = versions_->retention();
  if (rules == nullptr) return all;
  all.reserve(rules->rule_count());
  for (const ScopeState& scope : rules->scopes()) {
    if (!scope.retention_ns) continue;
    all.push_back(
        {namespace_of(scope.prefix), Bytes(user_key_of(scope.prefix)), scope.retention_ns});
  }
  return all;
}

void EngineImpl::each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                                     const RetentionTaker& take) const {
  if (const auto rules = versions_->retention()) rules->each(id, prefixes, take);
}

std::int64_t EngineImpl::expiry_now_ns() {
  return expiry_clock_->now_ns();
}

ExpiryView EngineImpl::expiry_view(NamespaceId id) const {
  auto rules = versions_->retention();
  if (rules == nullptr || !rules->has_namespace(id)) return {};
  return {std::move(rules), expiry_clock_->now_ns(), options_.expiry};
}

ExpiryView EngineImpl::expiry_of_bytes() const {
  auto rules = versions_->retention();
  if (rules == nullptr) return {};
  return {std::move(rules), expiry_clock_->removal_ns(), options_.expiry};
}

const ExpiryView& EngineImpl::log_expiry() {
  auto rules = versions_->retention();
  if (rules.get() != log_expiry_.rules()) {
    // At the beginning of time nothing has expired but what earlier rules had let expire.
    log_expiry_ = ExpiryView(std::move(rules), kLongAgoNs);
    last_logged_id_ = 0;
    // What was said of records before may no longer be so.
    wal_->forget_expiries();
  }
  return log_expiry_;
}

std::int64_t EngineImpl::log_expiry_of(NamespaceId id, ByteView key) {
  if (key.size() < sizeof(std::uint64_t)) return kNeverNs;
  const ByteView part = key.substr(0, key.size() - sizeof(std::uint64_t));
  if (id != last_logged_id_ || part != ByteView(last_logged_part_)) {
    last_logged_id_ = id;
    last_logged_part_.assign(part);
    const Bytes full_part = make_full_key(id, part);
    last_logged_retention_ns_ = log_expiry_.retention_ns(full_part);
    last_logged_floor_ = log_expiry_.horizon(full_part);
  }
  const std::uint64_t ordinal = load_ordinal(key.data() + part.size());
  if (ordinal < last_logged_floor_) return kLongAgoNs;
  return expiry_of(time_of_ordinal(ordinal), last_logged_retention_ns_);
}

Result<bool> EngineImpl::clear_expired_log() {
  if (!recovered_) return false;
  const std::int64_t now_ns = expiry_clock_->removal_ns();
  if (!wal_->holds_expired(now_ns)) return true;
  if (wal_->needs_expired(now_ns)) {
    EC_TRY(try_turn_log(visible_.load()));
  }
  EC_ASSIGN_OR_RETURN(const std::uint64_t bytes, wal_->overwrite_expired(now_ns));
  log_overwritten_bytes_.fetch_add(bytes);
  return !wal_->holds_expired(now_ns);
}

// Only value files can be counted: what memtables hold of before comes there first, where it is
// more than what may go anyway.
bool EngineImpl::is_leap_in_files(std::int64_t lag_ns) {
  SequenceNumber through = 0;
  {
    MutexLock lock(mutex_);
    if (lag_ns > seen_lag_ns_) leap_sequence_ = visible_.load();
    seen_lag_ns_ = lag_ns;
    if (lag_ns == 0) return true;
    through = leap_sequence_;
    std::uint64_t older_bytes = 0;
    const auto count = [&](const auto& memtable) {
      if (memtable->first_sequence() != 0 && memtable->first_sequence() <= through)
        older_bytes += memtable->memory_bytes();
    };
    count(view_->active);
    std::ranges::for_each(view_->immutables, count);
    if (older_bytes <= kLeapBytesMin) return true;
  }
  if (recovered_) static_cast<void>(try_turn_log(through).ok());
  return false;
}

void EngineImpl::judge_leap() {
  const ExpiryClock::Reading at = expiry_clock_->read();
  auto rules = versions_->retention();
  const std::int64_t boot_ns = environment_.clock.boot_ns();
  // What is held stays so until expiry goes with the clock again; and a leap that was seen without
  // rules waits for the first.
  if (at.wait != ExpiryWait::None && leaps_.held_ns(boot_ns) > 0) return;
  if (rules == nullptr || !is_leap_in_files(at.lag_ns)) return;
  std::uint64_t leapt_bytes = 0, all_bytes = 0;
  if (at.lag_ns > 0) {
    const std::shared_ptr<const Version> version = versions_->current();
    const bool exact = options_.expiry == ExpiryMode::Exact;
    leapt_bytes = due_bytes(*version, {rules, at.now_ns, options_.expiry}, exact) -
                  due_bytes(*version, {rules, at.removal_ns(), options_.expiry}, exact);
    for (const auto& [number, file] : version->value_files) all_bytes += file.size_bytes;
  }
  if (leaps_.judge(leapt_bytes, all_bytes, boot_ns)) expiry_clock_->accept(at.lag_ns);
}

Status EngineImpl::note_expiry_mark(std::int64_t slack_ns) {
  if (versions_->retention() == nullptr) return ok();
  judge_leap();
  const std::int64_t now_ns = expiry_clock_->removal_ns();
  std::int64_t known_until_ns = 0;
  const std::uint64_t held_ns = leaps_.held_ns(environment_.clock.boot_ns());
  const VersionState known = versions_->state();
  if (__builtin_add_overflow(known.expiry_mark_ns, slack_ns, &known_until_ns) ||
      now_ns <= known_until_ns)
    return ok();
  VersionEdit edit;
  if (held_ns != 0 || known.held_ns != 0) edit.held_ns = held_ns;
  edit.expiry_mark_ns = now_ns;
  return versions_->apply(edit);
}

}  // namespace edgecase::engine
