// The rules of all namespaces, what they have let expire, and what follows from them: the
// ExpiryView of one moment, and the buckets that files are cut by. Immutable once shared; plain
// data.
//
// A scope's *floor* is what its past rules had let expire when they last changed: entries below it
// are gone for ever. It makes a rule that is lengthened, cleared or replaced bring nothing back. A
// scope's *epoch* counts changes: files that were cut by older rules do not tell when what they
// hold of it expires.
//
// Beside the rules stands what was *given up* in a namespace to make room: everything before one
// time, in all its scopes, whatever rules say. It changes no epoch, since buckets stay as they are.
//
// ExpiryClock is the time by which all this is asked, LeapGuard what holds back a leap of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"
#include "edgecase/stats.h"

namespace edgecase::engine {

inline constexpr std::int64_t kNeverNs = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kEverNs = std::numeric_limits<std::int64_t>::min();
// What a store holds that has never known a time.
inline constexpr std::int64_t kNoMarkNs = kEverNs;

// The ordinal that a key ends in, from its time and back.
inline std::uint64_t ordinal_of_time(std::int64_t time_ns) {
  return static_cast<std::uint64_t>(time_ns) ^ std::uint64_t{1} << 63;
}
inline std::int64_t time_of_ordinal(std::uint64_t ordinal) {
  return static_cast<std::int64_t>(ordinal ^ std::uint64_t{1} << 63);
}

// `time + retention`, kNeverNs where that is out of range.
inline std::int64_t expiry_of(std::int64_t time_ns, std::int64_t retention_ns) {
  std::int64_t sum = 0;
  if (retention_ns == kRetentionForever || __builtin_add_overflow(time_ns, retention_ns, &sum))
    return kNeverNs;
  return sum;
}

// Entries that expire at about the same time lie in one value file, so that it goes whole. A bucket
// is a span of such times: its class says how long, as a power of two of nanoseconds. A retention
// is cut into 16 to 32 buckets, of a second at least.
struct Bucket {
  std::uint8_t bucket_class = 0;   // log2 of its length in nanoseconds; 0: never expires
  std::int64_t end_ns = kNeverNs;  // everything in it expires before

  bool expires() const { return end_ns != kNeverNs; }
  friend bool operator==(const Bucket&, const Bucket&) = default;
  friend bool operator<(const Bucket& a, const Bucket& b) {
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.bucket_class < b.bucket_class;
  }
};

inline constexpr std::uint8_t kBucketClassMin = 30;  // 1.07 s
inline constexpr std::uint8_t kBucketClassMax = 62;

// Where entries go when they expire, a bucket is cut finer as its time comes near: none is longer
// than a sixteenth of what is left until then.
inline constexpr std::uint8_t kExactBucketClassMin = 28;  // 0.27 s
inline constexpr std::int64_t kExactSpanMaxNs = std::int64_t{1} << kExactBucketClassMin;

// `left_ns`: until it expires, or the retention; with the least class that is wanted.
inline Bucket bucket_of(std::int64_t time_ns, std::int64_t retention_ns, std::int64_t left_ns,
                        std::uint8_t class_min) {
  const std::int64_t expiry_ns = expiry_of(time_ns, retention_ns);
  if (expiry_ns == kNeverNs) return {};
  const auto sixteenth = static_cast<std::uint64_t>(std::max<std::int64_t>(left_ns, 0)) / 16;
  const int bits = static_cast<int>(std::bit_width(sixteenth));
  const auto width = static_cast<std::uint8_t>(std::max<int>(bits - 1, class_min));
  // Behind the end of time there is no bucket: what would end there never expires.
  const std::int64_t index = (expiry_ns >> width) + 1;
  if (index > (kNeverNs >> width)) return {};
  return {width, index * (std::int64_t{1} << width)};
}

// How long entries last, of their buckets: what is of one class has no more than 16 times as long
// as others of it. 0 stands for entries of any class.
using LifeClass = std::uint8_t;
inline constexpr LifeClass kLifeForever = 10;

inline LifeClass life_class_of(const Bucket& bucket) {
  if (!bucket.expires()) return kLifeForever;
  const int above = std::max(bucket.bucket_class - kExactBucketClassMin, 0);
  return static_cast<LifeClass>(1 + above / 4);
}
static_assert(1 + (kBucketClassMax - kExactBucketClassMin) / 4 < kLifeForever);

inline Bucket bucket_of(std::int64_t time_ns, std::int64_t retention_ns) {
  return bucket_of(time_ns, retention_ns, retention_ns, kBucketClassMin);
}

using RuleEpoch = std::uint64_t;  // 0: before the first rule

struct ScopeState {
  Bytes prefix;  // begins with the namespace, as full keys do
  std::optional<std::int64_t> retention_ns;
  std::uint64_t floor = 0;  // an ordinal
  RuleEpoch epoch = 0;

  friend bool operator==(const ScopeState&, const ScopeState&) = default;
};

// Everything of a namespace before that time is gone for ever.
struct GivenUp {
  NamespaceId namespace_id = 0;
  std::int64_t before_ns = 0;

  friend bool operator==(const GivenUp&, const GivenUp&) = default;
};

// A full key without its time. Shorter ones have none and never expire.
inline bool has_time(ByteView full_key) {
  return full_key.size() >= kNamespacePrefixBytes + sizeof(std::uint64_t);
}
inline ByteView scope_part(ByteView full_key) {
  return full_key.substr(0, full_key.size() - sizeof(std::uint64_t));
}
inline std::uint64_t ordinal_in(ByteView full_key) {
  return load_ordinal(full_key.data() + full_key.size() - sizeof(std::uint64_t));
}

class RetentionRules {
 public:
  RetentionRules() = default;
  explicit RetentionRules(std::vector<ScopeState> scopes);

  // The rules after these changes at `now_ns`, which is at or after that of all changes before.
  // They change at once: no scope follows one in between. The last of several changes of one scope
  // counts. False: more than kRetentionRulesMax scopes.
  bool change(std::span<const RetentionRule> changes, std::int64_t now_ns);
  void forget_namespace(NamespaceId id);
  // Nothing changes where more was given up before.
  void give_up(const GivenUp& more);

  bool empty() const { return scopes_.empty() && given_up_.empty(); }
  bool has_namespace(NamespaceId id) const;
  RuleEpoch epoch() const { return epoch_; }
  // In the order of their prefixes.
  const std::vector<ScopeState>& scopes() const { return scopes_; }
  void each(NamespaceId id, const KeyRange& prefixes, const Engine::RetentionTaker& take) const;
  // Scopes that have a rule.
  std::size_t rule_count() const;
  std::size_t memory_bytes() const;
  std::vector<GivenUp> given_up() const;
  // An ordinal: what lies below was given up; 0: nothing was.
  std::uint64_t given_up_below(NamespaceId id) const;

  // The retention of keys that begin with `part` (scope_part()).
  std::int64_t retention_ns(ByteView part) const;
  // What lies below is gone; 0: nothing.
  std::uint64_t horizon(ByteView part, std::int64_t now_ns) const;
  // Whether a rule for some key of [first, last] has changed since.
  bool changed_since(ByteView first, ByteView last, RuleEpoch epoch) const;

 private:
  using Scopes = std::vector<ScopeState>;

  Scopes::iterator lower_bound(ByteView prefix);
  Scopes::const_iterator lower_bound(ByteView prefix) const;
  // Null: there is none.
  const ScopeState* find(ByteView prefix) const;
  const ScopeState* innermost(ByteView part) const;
  std::optional<std::int64_t> own_or_outer(ByteView prefix) const;
  void add_missing(std::span<const RetentionRule> changes, std::int64_t now_ns);
  void remember_epoch_in(NamespaceId id);
  void settle(ByteView prefix, std::int64_t now_ns);
  void prune(std::int64_t now_ns);
  void index();

  Scopes scopes_;                                  // by prefix
  std::map<NamespaceId, std::uint64_t> given_up_;  // ordinals
  std::vector<std::size_t> sizes_;                 // of prefixes, the longest first
  RuleEpoch epoch_ = 0;
};

// The rules at one moment: what has expired, and when the rest will. Empty where nothing ever does,
// which costs a read nothing. Owned by one thread: it remembers the last series it was asked about.
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

// The time by which entries expire: ExpiryClock follows wall time as far as it is to be trusted,
// and LeapGuard holds back what a leap of it would let go. Thread-safe.

// It never goes back, and stands still while the clock is not trusted. A clock that is further
// ahead than kJumpMaxNs of what time has passed since it was followed last, in this process or by
// the store's mark, is followed when a time server confirms it, or after kJumpSettleNs; until then
// time goes on as it did.
//
// Two times: by the one entries are hidden, by the other their bytes go. The other lags behind by
// what the clock has leapt forward without confirmation, until that is accepted. While it does, a
// clock that is set back takes both back, no further than the other: what was hidden by a wrong
// clock is there again.
class ExpiryClock {
 public:
  static constexpr std::int64_t kJumpMaxNs = 3'600'000'000'000;
  static constexpr std::int64_t kJumpSettleNs = 3'600'000'000'000;
  // What is less may come from reading two clocks one after the other.
  static constexpr std::int64_t kLeapMinNs = 1'000'000'000;

  struct Reading {
    std::int64_t now_ns = kNoMarkNs;
    std::int64_t lag_ns = 0;
    ExpiryWait wait = ExpiryWait::None;
    std::int64_t wait_since_boot_ns = 0;

    std::int64_t removal_ns() const { return now_ns - lag_ns; }
  };

  // `mark_ns`: what the store knows was reached before.
  ExpiryClock(Clock& clock, std::int64_t mark_ns);

  Reading read();
  std::int64_t now_ns() { return read().now_ns; }
  std::int64_t removal_ns() { return read().removal_ns(); }
  // Gives up this much of the lag.
  void accept(std::int64_t lag_ns);

 private:
  void follow() EC_REQUIRES(mutex_);
  bool is_followed(std::int64_t wall_ns, std::int64_t boot_ns, std::int64_t expected_ns)
      EC_REQUIRES(mutex_);
  void note(ExpiryWait wait, std::int64_t boot_ns) EC_REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  Reading reading_ EC_GUARDED_BY(mutex_);
  // The last time that was taken over from the wall, and when that was.
  std::optional<std::int64_t> wall_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t boot_ns_ EC_GUARDED_BY(mutex_) = 0;
  // A jump that is waited for: wall - boot, and since when.
  std::optional<std::int64_t> jump_offset_ns_ EC_GUARDED_BY(mutex_);
  std::int64_t jump_boot_ns_ EC_GUARDED_BY(mutex_) = 0;
};

// Bounds how much may go because the clock leapt forward and nobody confirmed it: a share
// of all bytes in kLeapHoldNs. The rest is held for as long; meanwhile somebody may notice, or a
// time server set the clock right. Then it goes. A new process goes on with the time that was left.
// Entries that expire as time passes are not asked for here, nor those that a rule lets expire.
// Thread-safe.

inline constexpr std::uint64_t kLeapBytesMin = 1u << 20;  // less is no alarm
inline constexpr std::uint64_t kLeapShare = 4;            // a quarter of all bytes
inline constexpr std::int64_t kLeapHoldNs = 24LL * 3600 * 1'000'000'000;

class LeapGuard {
 public:
  // For so long others before have held what a leap let expire.
  void resume(std::uint64_t held_ns) {
    held_before_ns_ = static_cast<std::int64_t>(std::min<std::uint64_t>(held_ns, kLeapHoldNs));
  }
  // `leapt_bytes` of `all_bytes` are due only since the clock leapt. True: they may go.
  bool judge(std::uint64_t leapt_bytes, std::uint64_t all_bytes, std::int64_t boot_ns) {
    MutexLock lock(mutex_);
    const bool waited = held_bytes_ > 0 && boot_ns - held_since_boot_ns_ >= kLeapHoldNs;
    if (waited || boot_ns - judged_boot_ns_ >= kLeapHoldNs) {
      judged_boot_ns_ = boot_ns;
      gone_bytes_ = 0;
    }
    const std::uint64_t bytes_max = std::max(kLeapBytesMin, all_bytes / kLeapShare);
    if (leapt_bytes == 0 || waited || gone_bytes_ + leapt_bytes <= bytes_max) {
      gone_bytes_ += waited ? 0 : leapt_bytes;
      held_bytes_ = 0;
      held_before_ns_ = 0;
      return true;
    }
    if (held_bytes_ == 0) held_since_boot_ns_ = boot_ns - held_before_ns_;
    held_bytes_ = leapt_bytes;
    return false;
  }

  std::uint64_t held_bytes() const { return held_bytes_; }  // 0: nothing is held
  std::int64_t held_since_boot_ns() const { return held_since_boot_ns_; }
  // For resume().
  std::uint64_t held_ns(std::int64_t boot_ns) const {
    const std::int64_t ns =
        held_bytes_ > 0 ? boot_ns - held_since_boot_ns_ : held_before_ns_.load();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
  }

 private:
  Mutex mutex_;
  std::int64_t judged_boot_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t gone_bytes_ EC_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> held_bytes_ = 0;
  std::atomic<std::int64_t> held_since_boot_ns_ = 0;
  std::atomic<std::int64_t> held_before_ns_ = 0;
};

}  // namespace edgecase::engine
