// Entries that expire at about the same time lie in one value file, so that it goes whole. A bucket
// is a span of such times: its class says how long, as a power of two of nanoseconds. A retention
// is cut into 16 to 32 buckets, of a second at least.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "edgecase/retention.h"

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

}  // namespace edgecase::engine
