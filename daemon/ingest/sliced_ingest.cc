#include "ingest/sliced_ingest.h"

#include <algorithm>

namespace edgecase::ingest {
namespace {

// No more is reserved at first: most requests are small.
constexpr std::size_t kReservedMaxBytes = 1u << 20;

}  // namespace

SlicedIngest::SlicedIngest(IngestPipeline& pipeline, const auth::Principal& principal,
                           Pacing* pacing, std::size_t bytes, Slices& slices)
    : pipeline_(pipeline), principal_(principal), pacing_(pacing), slices_(slices) {
  slices_.abandon();  // of a request that did not come to its end
  slices_.series.forget_places();
  slices_.gathered.batch.reserve(0, std::min(bytes, kReservedMaxBytes));
}

Status SlicedIngest::enter() {
  if (pipeline_.fences_ == nullptr || inside_) return ok();
  if (pipeline_.undated_ != nullptr) EC_TRY(pipeline_.undated_->date_this_boot(*pipeline_.fences_));
  inside_.emplace(*pipeline_.fences_);
  return ok();
}

Status SlicedIngest::add(const auth::AuthorizedBatch& slice, Outcome& outcome) {
  if (slice.batch().readings.empty()) return ok();
  const std::uint64_t not_stored_before = outcome.not_stored();
  Status status = store(slice, outcome);
  if (!status.ok()) {
    pipeline_.failed_batches_.fetch_add(1, std::memory_order_relaxed);
    slices_.abandon();
    inside_.reset();
    return status;
  }
  readings_ += slice.batch().readings.size() - (outcome.not_stored() - not_stored_before);
  // Everything is in the engine.
  if (slices_.gathered.batch.count() == 0) inside_.reset();
  return ok();
}

Status SlicedIngest::store(const auth::AuthorizedBatch& slice, Outcome& outcome) {
  EC_TRY(enter());
  slices_.series.begin(slice.batch().text_id(), slice.batch().numbering);
  return pipeline_.store_inside({principal_, slice.batch().readings, {}, {}, pacing_, &slices_},
                                outcome);
}

Status SlicedIngest::finish() {
  Status status;
  if (slices_.gathered.batch.count() > 0)
    status = pipeline_.commit(principal_, slices_.gathered, Durability::Sync);
  if (status.ok()) status = pipeline_.settle(slices_.fresh);
  slices_.abandon();
  inside_.reset();
  if (!status.ok()) {
    pipeline_.failed_batches_.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  if (readings_ > 0) pipeline_.batches_.fetch_add(1, std::memory_order_relaxed);
  pipeline_.readings_.fetch_add(std::exchange(readings_, 0), std::memory_order_relaxed);
  return ok();
}

}  // namespace edgecase::ingest
