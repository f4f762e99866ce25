// The rules at one moment: what has expired, and when the rest will. Empty where nothing ever does,
// which costs a read nothing. Owned by one thread: it remembers the last series it was asked about.
#pragma once

#include <memory>
#include <utility>

#include "edgecase/options.h"
#include "expiry/bucket.h"
#include "expiry/retention_rules.h"

namespace edgecase::engine {

class ExpiryView {
 public:
  ExpiryView() = default;
  ExpiryView(std::shared_ptr<const RetentionRules> rules, std::int64_t now_ns,
             ExpiryMode mode = ExpiryMode::Bounded)
      : rules_(std::move(rules)), now_ns_(now_ns), mode_(mode) {}

  bool empty() const { return rules_ == nullptr; }
  std::int64_t now_ns() const { return now_ns_; }
  RuleEpoch epoch() const { return rules_ == nullptr ? 0 : rules_->epoch(); }
  const RetentionRules* rules() const { return rules_.get(); }
  // Empty when nothing in the namespace expires.
  ExpiryView of_namespace(NamespaceId id) const {
    return rules_ != nullptr && rules_->has_namespace(id) ? *this : ExpiryView();
  }

  bool hides(ByteView full_key) const {
    return rules_ != nullptr && has_time(full_key) &&
           ordinal_in(full_key) < horizon(scope_part(full_key));
  }
  // Entries of the series with smaller ordinals have expired.
  std::uint64_t horizon(ByteView part) const {
    look_at(part);
    return horizon_;
  }
  std::int64_t retention_ns(ByteView part) const {
    look_at(part);
    return retention_ns_;
  }
  // Everything of the namespace before that was given up; kEverNs: nothing was.
  std::int64_t given_up_before_ns(NamespaceId id) const {
    return rules_ == nullptr ? kEverNs : time_of_ordinal(rules_->given_up_below(id));
  }
  // Where an entry of that time goes.
  Bucket bucket_of(std::int64_t time_ns, std::int64_t retention_ns) const {
    if (mode_ == ExpiryMode::Bounded) return engine::bucket_of(time_ns, retention_ns);
    const std::int64_t left_ns = left_until(expiry_of(time_ns, retention_ns));
    return engine::bucket_of(time_ns, retention_ns, std::min(left_ns, retention_ns),
                             kExactBucketClassMin);
  }
  // Whether what expires from `first_ns` to `last_ns` is to be cut finer by now.
  bool is_coarse(std::int64_t first_ns, std::int64_t last_ns) const {
    if (mode_ == ExpiryMode::Bounded || rules_ == nullptr || last_ns == kNeverNs) return false;
    std::int64_t span_ns = 0;
    if (__builtin_sub_overflow(last_ns, first_ns, &span_ns)) return false;
    return span_ns >= kExactSpanMaxNs && left_until(first_ns) / 2 < span_ns;
  }

  // Whether a key of [first, last] may have expired.
  bool may_hide(ByteView first, ByteView last) const {
    if (rules_ == nullptr) return false;
    const bool one_series =
        has_time(first) && has_time(last) && scope_part(first) == scope_part(last);
    return !one_series || hides(first);
  }

  // Whether every key of [first, last] has; false where that cannot be told from the two.
  bool hides_all(ByteView first, ByteView last) const {
    const bool one_series =
        has_time(first) && has_time(last) && scope_part(first) == scope_part(last);
    return one_series && hides(last);
  }

 private:
  void look_at(ByteView part) const {
    if (rules_ == nullptr || (part_ == part && !part.empty())) return;
    part_.assign(part);
    horizon_ = rules_->horizon(part, now_ns_);
    retention_ns_ = rules_->retention_ns(part);
  }

  std::shared_ptr<const RetentionRules> rules_;
  std::int64_t left_until(std::int64_t time_ns) const {
    std::int64_t left_ns = 0;
    return __builtin_sub_overflow(time_ns, now_ns_, &left_ns) ? kNeverNs : left_ns;
  }

  std::int64_t now_ns_ = 0;
  ExpiryMode mode_ = ExpiryMode::Bounded;
  mutable Bytes part_;
  mutable std::uint64_t horizon_ = 0;
  mutable std::int64_t retention_ns_ = kRetentionForever;
};

}  // namespace edgecase::engine
