// The sources of work that is due, but for erasure (erasure_source.h): what has expired, and what
// somebody asks to have merged; and how entries are found that are to go.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/work_source.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "expiry/retention_rules.h"

namespace edgecase::engine {

// ExpirySource frees what has expired by rules of retention: whole files at once, the rest by
// merges that leave it behind. Without rules it has nothing to do. Owned by the lane, but for
// stats().
class ExpirySource final : public WorkSource {
 public:
  ExpirySource(const CompactorContext& context, Removals& removals)
      : context_(context), removals_(removals) {}

  Urgency urgency() override;
  Result<Offer> next(const LaneView& view) override;
  // In Exact, what is to go within a second does not wait for the end of a merge.
  bool frees_more_than(std::uint64_t written_bytes) override;
  void committed(const FinishedMerge& merge, bool own) override;
  // What has expired makes room, and may use what is kept for that.
  bool settles(const Status& failure) override;
  std::optional<std::int64_t> look_again_in_ns() override;
  Status look_again() override;

  ExpiryStats stats() const;

 private:
  Status drop(const Version& version, const VersionEdit& edit);

  const CompactorContext& context_;
  Removals& removals_;
  bool manifest_names_expired_ = false;  // keys of files that have expired
  bool log_is_behind_ = false;           // it holds what has expired
  std::int64_t interrupts_not_before_ns_ = 0;

  mutable Mutex mutex_;
  ExpiryStats stats_ EC_GUARDED_BY(mutex_);
};

struct CompactionRequest {
  std::vector<NamespaceId> ids;  // ascending
  Bytes lower;
  Bytes upper;              // empty: unbounded
  SequenceNumber upto = 0;  // newest that was in tables when it was made
  bool done = false;
  Status status;
};

// compact(): what somebody asks to have merged and waits for.
//
// First level 0, then each namespace once, then what else hides entries, then value files that are
// mostly dead. Each step is bounded by what was there when it was asked for or, of files, when
// their turn came: what others write meanwhile does not prolong it.
//
// Threads: requests come from any thread; the rest is the lane's.
class RequestSource final : public WorkSource {
 public:
  explicit RequestSource(const CompactorContext& context) : context_(context) {}

  // Any thread: add(), then wake the lane, then wait().
  std::shared_ptr<CompactionRequest> add(const std::vector<NamespaceId>& ids, ByteView lower,
                                         ByteView upper);
  Status wait(const CompactionRequest& request);
  bool has_any() const;

  Urgency urgency() override { return has_any() ? Urgency::Due : Urgency::None; }
  Result<Offer> next(const LaneView& view) override;
  void discarded() override { step_ = 0; }
  // Whoever asked is told, and not kept waiting for what is tried again.
  void interrupted(const Status& failure) override { finish(failure); }

 private:
  Result<Offer> next_of(const CompactionRequest& request, const Version& version);
  void finish(const Status& status);

  const CompactorContext& context_;
  std::shared_ptr<CompactionRequest> current_;
  std::size_t step_ = 0;
  std::set<FileNumber> to_empty_;  // value files that were there when all else was merged

  mutable Mutex mutex_;
  CondVar done_;
  std::deque<std::shared_ptr<CompactionRequest>> requests_ EC_GUARDED_BY(mutex_);
};

// Finds entries that are to go for other reasons than a newer entry: they have expired, a changed
// rule gives them another time to go, or a range delete covers them. Pure functions of a version;
// engine/expiry/DESIGN.md.

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
