#include "compaction/request_source.h"

#include <algorithm>
#include <utility>

#include "compaction/picker.h"
#include "compaction/purge.h"

namespace edgecase::engine {
namespace {

// Life classes: each has runs of its own in a namespace.
constexpr std::size_t kLives = kLifeForever + 1;
// A single-threaded executor does its work in here; how long to wait before it is asked again.
constexpr std::int64_t kStallNs = 100'000'000;

}  // namespace

std::shared_ptr<CompactionRequest> RequestSource::add(const std::vector<NamespaceId>& ids,
                                                      ByteView lower, ByteView upper) {
  auto request = std::make_shared<CompactionRequest>();
  request->ids = ids;
  std::sort(request->ids.begin(), request->ids.end());
  request->ids.erase(std::unique(request->ids.begin(), request->ids.end()), request->ids.end());
  request->lower = lower;
  request->upper = upper;
  request->upto = context_.versions.flushed_sequence();
  MutexLock lock(mutex_);
  requests_.push_back(request);
  return request;
}

Status RequestSource::wait(const CompactionRequest& request) {
  MutexLock lock(mutex_);
  while (!request.done) {
    lock.unlock();
    const bool ran = context_.environment.executor.run_one();
    lock.lock();
    if (ran || request.done) continue;
    static_cast<void>(done_.wait_for(mutex_, kStallNs));
  }
  return request.status;
}

bool RequestSource::has_any() const {
  MutexLock lock(mutex_);
  return !requests_.empty();
}

Result<Offer> RequestSource::next(const LaneView& view) {
  for (;;) {
    if (current_ == nullptr) {
      MutexLock lock(mutex_);
      if (requests_.empty()) return Offer::none();
      current_ = requests_.front();
      step_ = 0;
    }
    EC_ASSIGN_OR_RETURN(Offer offer, next_of(*current_, *view.mergeable));
    if (offer.kind != Offer::Kind::None) return offer;
    finish(ok());
  }
}

// Steps: one for each namespace and life class, one to purge, one to empty files.
Result<Offer> RequestSource::next_of(const CompactionRequest& request, const Version& version) {
  const bool waits =
      std::any_of(version.level0.begin(), version.level0.end(),
                  [&](const TablePointer& table) { return table->sequence_min <= request.upto; });
  if (step_ == 0 && waits) {
    if (auto plan = pick_level0(version, 1)) return Offer::merge(*std::move(plan));
  }
  PurgeContext purge;
  purge.upto = request.upto;
  for (const NamespaceId id : request.ids)
    purge.within.push_back(
        {make_full_key(id, request.lower),
         request.upper.empty() ? make_full_key(id + 1, {}) : make_full_key(id, request.upper)});
  const std::size_t steps = request.ids.size() * kLives;
  while (step_ < steps) {
    const std::size_t step = step_++;
    const KeyBounds& bounds = purge.within[step / kLives];
    const auto life = static_cast<LifeClass>(step % kLives);
    if (auto plan =
            plan_everything(version, request.ids[step / kLives], life, bounds.lower, bounds.upper))
      return Offer::merge(*std::move(plan));
  }
  if (step_ == steps) {
    if (auto plan = pick_purge(version, purge)) return Offer::merge(*std::move(plan));
    ++step_;
    to_empty_.clear();
    for (const auto& [number, file] : version.value_files) to_empty_.insert(number);
  }
  EvacuationLimits limits = kQuietEvacuation;
  limits.among = &to_empty_;
  auto plan = pick_evacuation(version, limits);
  return plan ? Offer::merge(*std::move(plan)) : Offer::none();
}

void RequestSource::finish(const Status& status) {
  if (current_ == nullptr) return;
  MutexLock lock(mutex_);
  current_->done = true;
  current_->status = status;
  requests_.pop_front();
  current_.reset();
  done_.notify_all();
}

}  // namespace edgecase::engine
