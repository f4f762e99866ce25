// Rules of how long entries live. One holds for a scope: everything in a namespace whose key begins
// with a prefix; of rules around a key the longest prefix wins. Only namespaces with
// GroupCodec::Series expire: the last 8 bytes of a key, big-endian with the sign bit flipped, are
// its time in nanoseconds since 1970. An entry is gone once its time is more than the retention
// ago.
//
// What has once expired never comes back, whatever becomes of the rules or of the clock. While the
// clock is not trusted, and for an hour after it was set forward by more than an hour, no more
// expires than had before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/write_batch.h"

namespace edgecase {

inline constexpr std::int64_t kRetentionForever = INT64_MAX;  // nanoseconds
// All namespaces together; scopes whose rule was cleared count as long as they hide something.
inline constexpr std::size_t kRetentionRulesMax = 1u << 16;

struct RetentionRule {
  NamespaceId namespace_id = 0;
  // Leading bytes of keys without their time; empty: the namespace.
  Bytes prefix;
  // Positive. None: as if there were no rule, the scope around it decides; outermost: forever.
  std::optional<std::int64_t> retention_ns;
  // Nothing was ever stored of the scope: the rule around it has let nothing of it expire. Means
  // nothing where the scope has, or had, a rule of its own.
  bool is_new = false;

  friend bool operator==(const RetentionRule&, const RetentionRule&) = default;
};

// What is to make room.
struct EvictionRequest {
  std::vector<NamespaceId> namespaces;  // with GroupCodec::Series
  std::uint64_t value_bytes = 0;        // about so much is to go of value files
  std::int64_t limit_ns = 0;            // nothing of that time and later goes
};

// What went, or would.
struct Eviction {
  std::int64_t before_ns = 0;     // everything of the namespaces before this time
  std::uint64_t value_bytes = 0;  // about; 0: nothing goes
};

}  // namespace edgecase
