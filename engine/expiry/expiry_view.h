// The rules at one moment: what has expired, and when the rest will. Empty where nothing ever does,
// which costs a read nothing. Owned by one thread: it remembers the last series it was asked about.
#pragma once

#include <memory>
#include <utility>

#include "expiry/retention_rules.h"

namespace edgecase::engine {

class ExpiryView {
 public:
  ExpiryView() = default;
  ExpiryView(std::shared_ptr<const RetentionRules> rules, std::int64_t now_ns)
      : rules_(std::move(rules)), now_ns_(now_ns) {}

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
  std::int64_t now_ns_ = 0;
  mutable Bytes part_;
  mutable std::uint64_t horizon_ = 0;
  mutable std::int64_t retention_ns_ = kRetentionForever;
};

}  // namespace edgecase::engine
