#include "expiry/retention_rules.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

namespace edgecase::engine {
namespace {

// What an entry's time must be at least, `retention_ns` after it, to be there still.
std::uint64_t horizon_at(std::int64_t now_ns, std::int64_t retention_ns) {
  std::int64_t oldest_ns = 0;
  if (retention_ns == kRetentionForever || __builtin_sub_overflow(now_ns, retention_ns, &oldest_ns))
    return 0;
  return ordinal_of_time(oldest_ns);
}

bool same_prefix(const ScopeState& a, const ScopeState& b) {
  return a.prefix == b.prefix;
}

}  // namespace

RetentionRules::RetentionRules(std::vector<ScopeState> scopes) : scopes_(std::move(scopes)) {
  // A prefix that is there twice is what it was said to be last.
  std::ranges::stable_sort(scopes_, {}, &ScopeState::prefix);
  scopes_.erase(scopes_.begin(), std::unique(scopes_.rbegin(), scopes_.rend(), same_prefix).base());
  for (const ScopeState& each : scopes_) epoch_ = std::max(epoch_, each.epoch);
  index();
}

void RetentionRules::index() {
  sizes_.clear();
  for (const ScopeState& each : scopes_) {
    const std::size_t size = each.prefix.size();
    const auto at = std::lower_bound(sizes_.begin(), sizes_.end(), size, std::greater<>());
    if (at == sizes_.end() || *at != size) sizes_.insert(at, size);
  }
}

RetentionRules::Scopes::iterator RetentionRules::lower_bound(ByteView prefix) {
  return std::lower_bound(
      scopes_.begin(), scopes_.end(), prefix,
      [](const ScopeState& scope, ByteView sought) { return ByteView(scope.prefix) < sought; });
}

RetentionRules::Scopes::const_iterator RetentionRules::lower_bound(ByteView prefix) const {
  return const_cast<RetentionRules*>(this)->lower_bound(prefix);
}

const ScopeState* RetentionRules::find(ByteView prefix) const {
  const auto at = lower_bound(prefix);
  return at == scopes_.end() || ByteView(at->prefix) != prefix ? nullptr : &*at;
}

const ScopeState* RetentionRules::innermost(ByteView part) const {
  for (const std::size_t size : sizes_) {
    if (size > part.size()) continue;
    if (const ScopeState* scope = find(part.substr(0, size))) return scope;
  }
  return nullptr;
}

// The retention that holds for a scope, which need not be there.
std::optional<std::int64_t> RetentionRules::own_or_outer(ByteView prefix) const {
  for (const std::size_t size : sizes_) {
    if (size > prefix.size()) continue;
    const ScopeState* scope = find(prefix.substr(0, size));
    if (scope != nullptr && scope->retention_ns) return scope->retention_ns;
  }
  return std::nullopt;
}

void RetentionRules::each(NamespaceId id, const KeyRange& prefixes,
                          const Engine::RetentionTaker& take) const {
  for (auto at = lower_bound(make_full_key(id, prefixes.lower));
       at != scopes_.end() && namespace_of(at->prefix) == id; ++at) {
    const ByteView prefix = user_key_of(at->prefix);
    if (!prefixes.upper.empty() && prefix >= prefixes.upper) return;
    if (at->retention_ns) take(prefix, *at->retention_ns);
  }
}

std::size_t RetentionRules::rule_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(scopes_, [](const ScopeState& each) { return !!each.retention_ns; }));
}

std::size_t RetentionRules::memory_bytes() const {
  std::size_t bytes = scopes_.capacity() * sizeof(ScopeState);
  for (const ScopeState& each : scopes_) {
    if (each.prefix.capacity() > Bytes().capacity()) bytes += each.prefix.capacity() + 1;
  }
  return bytes;
}

std::int64_t RetentionRules::retention_ns(ByteView part) const {
  return own_or_outer(part).value_or(kRetentionForever);
}

std::uint64_t RetentionRules::horizon(ByteView part, std::int64_t now_ns) const {
  const std::uint64_t given_up = given_up_below(namespace_of(part));
  const ScopeState* scope = innermost(part);
  if (scope == nullptr) return given_up;
  return std::max({given_up, scope->floor, horizon_at(now_ns, retention_ns(part))});
}

// Everything below `prefix` that follows its retention remembers what that has let expire.
void RetentionRules::settle(ByteView prefix, std::int64_t now_ns) {
  for (auto at = lower_bound(prefix); at != scopes_.end() && at->prefix.starts_with(prefix); ++at)
    at->floor = std::max(at->floor, horizon(at->prefix, now_ns));
}

// Without a rule, and hiding what the scopes around them do: as if they were not there. All at
// once, since each moves what lies behind it.
void RetentionRules::add_missing(std::span<const RetentionRule> changes, std::int64_t now_ns) {
  Scopes missing;
  for (const RetentionRule& each : changes) {
    Bytes prefix = make_full_key(each.namespace_id, each.prefix);
    if (!each.retention_ns || find(prefix) != nullptr) continue;
    const std::uint64_t floor = each.is_new ? 0 : horizon(prefix, now_ns);
    missing.push_back({std::move(prefix), std::nullopt, floor, 0});
  }
  if (missing.empty()) return;
  const auto before = [](const ScopeState& a, const ScopeState& b) { return a.prefix < b.prefix; };
  std::sort(missing.begin(), missing.end(), before);
  missing.erase(std::unique(missing.begin(), missing.end(), same_prefix), missing.end());
  Scopes all;
  all.reserve(scopes_.size() + missing.size());
  std::merge(std::move_iterator(scopes_.begin()), std::move_iterator(scopes_.end()),
             std::move_iterator(missing.begin()), std::move_iterator(missing.end()),
             std::back_inserter(all), before);
  scopes_ = std::move(all);
  index();
}

bool RetentionRules::change(std::span<const RetentionRule> changes, std::int64_t now_ns) {
  // What the old rules have let expire stays so, in these scopes and within them. First of all:
  // none may follow a rule meanwhile that is neither its old nor its new one.
  for (const RetentionRule& each : changes) {
    const Bytes prefix = make_full_key(each.namespace_id, each.prefix);
    if (each.retention_ns || find(prefix) != nullptr) settle(prefix, now_ns);
  }
  add_missing(changes, now_ns);
  // The epoch is the largest of the scopes', also when they are read again: without a scope that
  // changes there is no new one.
  const RuleEpoch next = epoch_ + 1;
  for (const RetentionRule& each : changes) {
    const Bytes prefix = make_full_key(each.namespace_id, each.prefix);
    const auto at = lower_bound(prefix);
    if (at == scopes_.end() || at->prefix != prefix) continue;  // cleared, and never there
    epoch_ = next;
    at->retention_ns = each.retention_ns;
    at->epoch = epoch_;
  }
  if (scopes_.size() > kRetentionRulesMax) prune(now_ns);
  return scopes_.size() <= kRetentionRulesMax;
}

// Forgets scopes without a rule that hide nothing which the scope around them does not hide. Their
// namespace's epoch remembers that they were there.
void RetentionRules::prune(std::int64_t now_ns) {
  std::vector<bool> idle(scopes_.size());
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    const ByteView prefix = scopes_[i].prefix;
    if (scopes_[i].retention_ns || prefix.size() == kNamespacePrefixBytes) continue;
    const ScopeState* outer = innermost(prefix.substr(0, prefix.size() - 1));
    const std::uint64_t hidden =
        outer == nullptr ? 0 : horizon(prefix.substr(0, outer->prefix.size()), now_ns);
    idle[i] = scopes_[i].floor <= hidden;
  }
  std::set<NamespaceId> pruned;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    if (idle[i]) {
      pruned.insert(namespace_of(scopes_[i].prefix));
    } else {
      std::swap(scopes_[kept++], scopes_[i]);
    }
  }
  scopes_.resize(kept);
  for (const NamespaceId id : pruned) remember_epoch_in(id);
  index();
}

// Remembers the epoch of scopes that are gone.
void RetentionRules::remember_epoch_in(NamespaceId id) {
  const Bytes prefix = make_full_key(id, {});
  auto at = lower_bound(prefix);
  if (at == scopes_.end() || at->prefix != prefix)
    at = scopes_.insert(at, {prefix, std::nullopt, 0, 0});
  at->epoch = epoch_;
}

void RetentionRules::give_up(const GivenUp& more) {
  std::uint64_t& below = given_up_[more.namespace_id];
  below = std::max(below, ordinal_of_time(more.before_ns));
}

std::vector<GivenUp> RetentionRules::given_up() const {
  std::vector<GivenUp> all;
  all.reserve(given_up_.size());
  for (const auto& [id, below] : given_up_) all.push_back({id, time_of_ordinal(below)});
  return all;
}

std::uint64_t RetentionRules::given_up_below(NamespaceId id) const {
  const auto found = given_up_.find(id);
  return found == given_up_.end() ? 0 : found->second;
}

void RetentionRules::forget_namespace(NamespaceId id) {
  given_up_.erase(id);
  std::erase_if(scopes_, [id](const ScopeState& each) { return namespace_of(each.prefix) == id; });
  // Somebody must remember the epoch, or files would seem to know of later changes.
  const bool known =
      std::ranges::any_of(scopes_, [this](const ScopeState& each) { return each.epoch == epoch_; });
  if (!known && epoch_ != 0) remember_epoch_in(id);
  index();
}

bool RetentionRules::has_namespace(NamespaceId id) const {
  if (given_up_.contains(id)) return true;
  const Bytes prefix = make_full_key(id, {});
  const auto found = lower_bound(prefix);
  return found != scopes_.end() && found->prefix.starts_with(prefix);
}

bool RetentionRules::changed_since(ByteView first, ByteView last, RuleEpoch epoch) const {
  if (epoch >= epoch_) return false;
  // Scopes around the first key, then those that begin within.
  for (const std::size_t size : sizes_) {
    if (size > first.size()) continue;
    const ScopeState* around = find(first.substr(0, size));
    if (around != nullptr && around->epoch > epoch) return true;
  }
  for (auto at = lower_bound(first); at != scopes_.end() && at->prefix <= last; ++at)
    if (at->epoch > epoch) return true;
  return false;
}

ExpiryClock::ExpiryClock(Clock& clock, std::int64_t mark_ns) : clock_(clock) {
  reading_.now_ns = mark_ns;
  // How long the machine was off nobody knows: the first reading may be a jump like others.
  if (mark_ns == kNoMarkNs) return;
  wall_ns_ = mark_ns;
  boot_ns_ = clock.boot_ns();
}

ExpiryClock::Reading ExpiryClock::read() {
  MutexLock lock(mutex_);
  follow();
  return reading_;
}

void ExpiryClock::accept(std::int64_t lag_ns) {
  MutexLock lock(mutex_);
  reading_.lag_ns = std::max<std::int64_t>(reading_.lag_ns - lag_ns, 0);
}

void ExpiryClock::note(ExpiryWait wait, std::int64_t boot_ns) {
  if (reading_.wait != wait) reading_.wait_since_boot_ns = boot_ns;
  reading_.wait = wait;
}

void ExpiryClock::follow() {
  const std::int64_t boot_ns = clock_.boot_ns();
  if (clock_.trust() != ClockTrust::Trusted) return note(ExpiryWait::Untrusted, boot_ns);
  const std::int64_t wall_ns = clock_.wall_ns();
  std::int64_t& now_ns = reading_.now_ns;
  std::int64_t& lag_ns = reading_.lag_ns;
  if (lag_ns > 0 && now_ns - wall_ns > kJumpMaxNs) {
    const std::int64_t removal_ns = reading_.removal_ns();
    now_ns = std::max(wall_ns, removal_ns);
    lag_ns = now_ns - removal_ns;
    wall_ns_.reset();
  }
  // What the clock would show had nobody set it.
  const std::int64_t expected_ns = wall_ns_ ? *wall_ns_ + (boot_ns - boot_ns_) : wall_ns;
  const std::int64_t known_ns = std::max(expected_ns, now_ns);
  if (!is_followed(wall_ns, boot_ns, known_ns)) {
    now_ns = known_ns;
    return note(ExpiryWait::Jump, boot_ns);
  }
  note(ExpiryWait::None, boot_ns);
  if (wall_ns - known_ns >= kLeapMinNs) lag_ns += wall_ns - known_ns;
  if (lag_ns > 0 && clock_.synchronised()) lag_ns = 0;
  jump_offset_ns_.reset();
  wall_ns_ = wall_ns;
  boot_ns_ = boot_ns;
  now_ns = std::max(now_ns, wall_ns);
}

bool ExpiryClock::is_followed(std::int64_t wall_ns, std::int64_t boot_ns,
                              std::int64_t expected_ns) {
  if (wall_ns - expected_ns <= kJumpMaxNs) return true;
  const std::int64_t offset_ns = wall_ns - boot_ns;
  if (!jump_offset_ns_ || std::abs(offset_ns - *jump_offset_ns_) > kJumpMaxNs) {
    jump_offset_ns_ = offset_ns;
    jump_boot_ns_ = boot_ns;
  }
  return boot_ns - jump_boot_ns_ >= kJumpSettleNs || clock_.synchronised();
}

}  // namespace edgecase::engine
