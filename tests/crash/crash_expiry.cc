#include "crash/crash_expiry.h"

#include <algorithm>
#include <utility>

namespace edgecase::test {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kRetentionsNs[] = {kSecondNs, 3 * kSecondNs, 8 * kSecondNs, 20 * kSecondNs,
                                          45 * kSecondNs};
constexpr std::int64_t kRetentionMaxNs = 45 * kSecondNs;
// Between two looks, for which a rest moves time on once more.
constexpr std::int64_t kExactBoundNs = kSecondNs + 2 * kExactExpiryCheckNs;
// Until the bucket has ended, and then until the next look.
constexpr std::int64_t kBucketMaxNs = kRetentionMaxNs / 16 + kSecondNs;
constexpr std::int64_t kBoundedBoundNs = kBucketMaxNs + kExpiryCheckNs + 3 * kSecondNs;

Bytes scope_prefix(std::size_t scope) {
  if (scope == kTimedSeries) return {};
  return engine_key(kTimedPlace, scope * kKeysPerPlace / kTimedSeries).substr(0, 2);
}

}  // namespace

ScopedRule draw_rule(SeededRandom& detail) {
  ScopedRule rule;
  rule.scope = detail.below(kTimedScopes);
  const std::uint64_t drawn = detail.below(std::size(kRetentionsNs) + 2);
  if (drawn < std::size(kRetentionsNs)) rule.retention_ns = kRetentionsNs[drawn];
  if (drawn == std::size(kRetentionsNs)) rule.retention_ns = kRetentionForever;
  return rule;
}

RetentionRule to_retention_rule(const ScopedRule& rule, NamespaceId id) {
  return {id, scope_prefix(rule.scope), rule.retention_ns};
}

void ExpiryOracle::Rules::settle(std::int64_t now_ns) {
  for (std::size_t series = 0; series < kTimedSeries; ++series) {
    const auto retention = retention_ns[series] ? retention_ns[series] : retention_ns[kTimedSeries];
    if (!retention || *retention == kRetentionForever) continue;
    floor_ns[series] = std::max(floor_ns[series], now_ns - *retention);
  }
}

void ExpiryOracle::Rules::set(const ScopedRule& rule, std::int64_t now_ns) {
  settle(now_ns);
  retention_ns[rule.scope] = rule.retention_ns;
  settle(now_ns);
}

void ExpiryOracle::acknowledge(const ScopedRule& rule) {
  others_.clear();
  rules_.set(rule, now_ns_);
  note_hidden();
}

void ExpiryOracle::refuse(const ScopedRule& rule) {
  std::vector<Rules> before = others_;
  before.push_back(rules_);
  for (Rules& rules : before) {
    rules.set(rule, now_ns_);
    if (std::ranges::find(others_, rules) == others_.end()) others_.push_back(rules);
  }
}

std::vector<ExpiryOracle::Rules> ExpiryOracle::possible(
    const std::vector<RetentionRule>& found) const {
  std::array<std::optional<std::int64_t>, kTimedScopes> retention_ns;
  for (const RetentionRule& rule : found) {
    for (std::size_t scope = 0; scope < kTimedScopes; ++scope) {
      if (scope_prefix(scope) == rule.prefix) retention_ns[scope] = rule.retention_ns;
    }
  }
  std::vector<Rules> possible(1, rules_);
  possible.insert(possible.end(), others_.begin(), others_.end());
  std::erase_if(possible, [&](const Rules& rules) { return rules.retention_ns != retention_ns; });
  return possible;
}

std::vector<std::size_t> ExpiryOracle::disputed(const std::vector<RetentionRule>& found) const {
  const std::vector<Rules> rules = possible(found);
  std::vector<std::size_t> keys;
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    const auto hide = std::ranges::count_if(rules, [&](const Rules& r) { return r.hides(key); });
    if (hide != 0 && hide != std::ssize(rules)) keys.push_back(key);
  }
  return keys;
}

std::string ExpiryOracle::settle(const std::vector<RetentionRule>& found, const State& shown) {
  const std::vector<Rules> possible = this->possible(found);
  if (possible.empty()) return "other rules of retention hold than were set last";
  rules_ = possible.front();
  std::ptrdiff_t hidden_most = -1;
  for (const Rules& rules : possible) {
    std::ptrdiff_t hidden = 0;
    bool shows_hidden = false;
    for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
      if (!rules.hides(key)) continue;
      ++hidden;
      shows_hidden = shows_hidden || shown.places[kTimedPlace][key] != 0;
    }
    if (shows_hidden || hidden <= hidden_most) continue;
    hidden_most = hidden;
    rules_ = rules;
  }
  others_.clear();
  note_hidden();
  return {};
}

void ExpiryOracle::forget() {
  rules_ = Rules();
  others_.clear();
  handed_in_.fill({});
  leaving_.clear();
}

void ExpiryOracle::reach(std::int64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  rules_.settle(now_ns_);
  for (Rules& other : others_) other.settle(now_ns_);
  if (!is_unsure()) note_hidden();
}

bool ExpiryOracle::Rules::hides(std::size_t key) const {
  return timed_time_ns(key) < floor_ns[key * kTimedSeries / kKeysPerPlace];
}

void ExpiryOracle::note_hidden() {
  for (std::size_t key = 0; key < kKeysPerPlace; ++key) {
    if (!is_hidden(key)) continue;
    for (const ValueNumber value : handed_in_[key])
      leaving_.push_back({value, rested_ns_, now_ns_});
    handed_in_[key].clear();
  }
}

void ExpiryOracle::note_handed_in(const Changes& changes) {
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::Put && change.place == kTimedPlace)
      handed_in_[change.key].push_back(change.value);
  }
  note_hidden();
}

void ExpiryOracle::disturb() {
  for (Leaving& each : leaving_) each.since_ns = rested_ns_;
}

void ExpiryOracle::note_rest(std::int64_t ns, std::int64_t now_ns) {
  rested_ns_ += ns;
  const std::int64_t stood_still_ns = ns - std::max<std::int64_t>(now_ns - now_ns_, 0);
  if (mode_ == ExpiryMode::Exact || stood_still_ns <= 0) return;
  // A bucket does not end while nobody can tell the time.
  for (Leaving& each : leaving_) {
    if (now_ns_ - each.expired_ns < kBucketMaxNs) each.since_ns += stood_still_ns;
  }
}

std::int64_t ExpiryOracle::bound_ns() const {
  return mode_ == ExpiryMode::Exact ? kExactBoundNs : kBoundedBoundNs;
}

std::vector<ValueNumber> ExpiryOracle::take_gone() {
  std::vector<ValueNumber> gone;
  std::erase_if(leaving_, [&](const Leaving& each) {
    if (rested_ns_ - each.since_ns < bound_ns()) return false;
    gone.push_back(each.value);
    return true;
  });
  return gone;
}

}  // namespace edgecase::test
