// The sources of work that is due, but for erasure (erasure_source.h): what has expired, and what
// somebody asks to have merged.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "compaction/work_source.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"

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

}  // namespace edgecase::engine
