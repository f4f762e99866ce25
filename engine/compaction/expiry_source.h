// ExpirySource frees what has expired by rules of retention: whole files at once, the rest by
// merges that leave it behind. Without rules it has nothing to do. Owned by the lane, but for
// stats().
#pragma once

#include "compaction/removals.h"
#include "compaction/work_source.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
