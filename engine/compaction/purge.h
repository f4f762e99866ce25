// Finds entries that are to go for other reasons than a newer entry: they have expired, a changed
// rule gives them another time to go, or a range delete covers them. Pure functions of a version;
// engine/expiry/DESIGN.md.
#pragma once

#include <optional>
#include <vector>

#include "compaction/merge_plan.h"
#include "expiry/retention_rules.h"

namespace edgecase::engine {

// What one merge may move.
inline constexpr std::uint64_t kPurgeBytesMax = 64u << 20;

// Full keys; an empty `upper` is unbounded.
struct KeyBounds {
  Bytes lower;
  Bytes upper;
};

struct PurgeContext {
  ExpiryView expiry;   // empty: there are no rules
  bool exact = false;  // entries go when they expire; else when their bucket has ended
  // Where what range deletes cover goes too, and single values that an entry of a group supersedes:
  // disjoint, in key order.
  std::vector<KeyBounds> within = {};
  // What is newer than that need not go.
  SequenceNumber upto = UINT64_MAX;
};

// When the bytes of a file, or of some of it, are to go: in `exact` mode what expires within
// kExactSpanMaxNs goes together.
std::int64_t due_ns(const ValueFileMetadata& file, bool exact);

// True when everything in the file has expired, and everything that it holds of [first, last] went
// there by rules that hold still.
bool is_over(const ValueFileMetadata& file, ByteView first, ByteView last,
             const ExpiryView& expiry);

// About how many of a thousand of a value file's bytes were given up: as if its entries lay evenly
// between its first and its last time; 0 where these are not known.
std::uint64_t given_up_permille(const ValueFileMetadata& file, const ExpiryView& expiry);
// From that share on what lives in the file is moved, so that the file goes.
inline constexpr std::uint64_t kGivenUpPermille = 300;
// Bytes of value files that go because of what was given up.
std::uint64_t given_up_waiting_bytes(const Version& version, const ExpiryView& expiry);

// Tables that hold nothing else than what has expired, and files to which nothing points then: no
// drive is read. Nothing when there are none.
std::optional<VersionEdit> pick_drop(const Version& version, const ExpiryView& expiry);
// Merges tables of one run, or of level 0, so that what is to go goes.
std::optional<MergePlan> pick_purge(const Version& version, const PurgeContext& context);
// Bytes of files that should be gone by now, or of which some should be.
std::uint64_t due_bytes(const Version& version, const ExpiryView& expiry, bool exact);
// When the next bucket ends, or, `exact`, the next entry expires; kNeverNs: not before a rule
// changes.
std::int64_t next_expiry_ns(const Version& version, bool exact);

}  // namespace edgecase::engine
