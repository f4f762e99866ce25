#include "expiry/retention_rules.h"

#include <algorithm>
#include <functional>
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

}  // namespace

RetentionRules::RetentionRules(std::vector<ScopeState> scopes) {
  for (ScopeState& each : scopes) {
    epoch_ = std::max(epoch_, each.epoch);
    scopes_[std::move(each.prefix)] = {each.retention_ns, each.floor, each.epoch};
  }
  index();
}

void RetentionRules::index() {
  sizes_.clear();
  for (const auto& [prefix, scope] : scopes_) sizes_.push_back(prefix.size());
  std::sort(sizes_.rbegin(), sizes_.rend());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
}

RetentionRules::Scopes::const_iterator RetentionRules::innermost(ByteView part) const {
  for (const std::size_t size : sizes_) {
    if (size > part.size()) continue;
    const auto found = scopes_.find(part.substr(0, size));
    if (found != scopes_.end()) return found;
  }
  return scopes_.end();
}

// The retention that holds for a scope, which need not be there.
std::optional<std::int64_t> RetentionRules::own_or_outer(ByteView prefix) const {
  for (const std::size_t size : sizes_) {
    if (size > prefix.size()) continue;
    const auto found = scopes_.find(prefix.substr(0, size));
    if (found != scopes_.end() && found->second.retention_ns) return found->second.retention_ns;
  }
  return std::nullopt;
}

std::int64_t RetentionRules::retention_ns(ByteView part) const {
  return own_or_outer(part).value_or(kRetentionForever);
}

std::uint64_t RetentionRules::horizon(ByteView part, std::int64_t now_ns) const {
  const std::uint64_t given_up = given_up_below(namespace_of(part));
  const auto scope = innermost(part);
  if (scope == scopes_.end()) return given_up;
  return std::max({given_up, scope->second.floor, horizon_at(now_ns, retention_ns(part))});
}

// Everything below `prefix` that follows its retention remembers what that has let expire.
void RetentionRules::settle(ByteView prefix, std::int64_t now_ns) {
  for (auto at = scopes_.lower_bound(prefix); at != scopes_.end() && at->first.starts_with(prefix);
       ++at)
    at->second.floor = std::max(at->second.floor, horizon(at->first, now_ns));
}

bool RetentionRules::change(std::span<const ScopeState> changes, std::int64_t now_ns) {
  // The epoch is the largest of the scopes', also when they are read again: without a scope that
  // changes there is no new one.
  const RuleEpoch next = epoch_ + 1;
  for (const ScopeState& each : changes) {
    if (!each.retention_ns && !scopes_.contains(each.prefix)) continue;
    epoch_ = next;
    // The scope begins with what the one around it has let expire; so do those within.
    const std::uint64_t floor = horizon(each.prefix, now_ns);
    settle(each.prefix, now_ns);
    const auto [at, added] = scopes_.try_emplace(each.prefix);
    at->second.retention_ns = each.retention_ns;
    at->second.floor = std::max(at->second.floor, floor);
    at->second.epoch = epoch_;
    const auto size =
        std::lower_bound(sizes_.begin(), sizes_.end(), each.prefix.size(), std::greater<>());
    if (added && (size == sizes_.end() || *size != each.prefix.size()))
      sizes_.insert(size, each.prefix.size());
  }
  if (scopes_.size() > kRetentionRulesMax) prune(now_ns);
  return scopes_.size() <= kRetentionRulesMax;
}

// Forgets scopes without a rule that hide nothing which the scope around them does not hide. That
// they were there is remembered by their namespace's epoch.
void RetentionRules::prune(std::int64_t now_ns) {
  std::vector<NamespaceId> pruned;
  for (auto at = scopes_.begin(); at != scopes_.end();) {
    const ByteView prefix = at->first;
    const bool is_namespace = prefix.size() == kNamespacePrefixBytes;
    const auto outer = innermost(prefix.substr(0, prefix.size() - (is_namespace ? 0 : 1)));
    const bool idle = !at->second.retention_ns && !is_namespace;
    const std::uint64_t hidden =
        outer == scopes_.end() ? 0 : horizon(prefix.substr(0, outer->first.size()), now_ns);
    if (!idle || at->second.floor > hidden) {
      ++at;
      continue;
    }
    pruned.push_back(namespace_of(prefix));
    at = scopes_.erase(at);
  }
  for (const NamespaceId id : pruned) scopes_[make_full_key(id, {})].epoch = epoch_;
  index();
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
  std::erase_if(scopes_, [id](const auto& each) { return namespace_of(each.first) == id; });
  // Somebody must remember the epoch, or files would seem to know of later changes.
  const bool known = std::any_of(scopes_.begin(), scopes_.end(),
                                 [this](const auto& each) { return each.second.epoch == epoch_; });
  if (!known && epoch_ != 0) scopes_[make_full_key(id, {})].epoch = epoch_;
  index();
}

bool RetentionRules::has_namespace(NamespaceId id) const {
  if (given_up_.contains(id)) return true;
  const Bytes prefix = make_full_key(id, {});
  const auto found = scopes_.lower_bound(prefix);
  return found != scopes_.end() && found->first.starts_with(prefix);
}

std::vector<ScopeState> RetentionRules::scopes() const {
  std::vector<ScopeState> all;
  all.reserve(scopes_.size());
  for (const auto& [prefix, scope] : scopes_)
    all.push_back({prefix, scope.retention_ns, scope.floor, scope.epoch});
  return all;
}

bool RetentionRules::changed_since(ByteView first, ByteView last, RuleEpoch epoch) const {
  if (epoch >= epoch_) return false;
  // Scopes around the first key, then those that begin within.
  for (const std::size_t size : sizes_) {
    if (size > first.size()) continue;
    const auto found = scopes_.find(first.substr(0, size));
    if (found != scopes_.end() && found->second.epoch > epoch) return true;
  }
  for (auto at = scopes_.lower_bound(first); at != scopes_.end() && at->first <= last; ++at)
    if (at->second.epoch > epoch) return true;
  return false;
}

}  // namespace edgecase::engine
