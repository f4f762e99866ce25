// compact(): what somebody asks to have merged and waits for.
//
// First level 0, then each namespace once, then what else hides entries, then value files that are
// mostly dead. Each step is bounded by what was there when it was asked for or, of files, when
// their turn came: what others write meanwhile does not prolong it.
//
// Threads: requests come from any thread; the rest is the lane's.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "compaction/work_source.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

struct CompactionRequest {
  std::vector<NamespaceId> ids;  // ascending
  Bytes lower;
  Bytes upper;              // empty: unbounded
  SequenceNumber upto = 0;  // newest that was in tables when it was made
  bool done = false;
  Status status;
};

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
