// What somebody asked for and waits for, compact(); and what merges may choose from where files are
// damaged.
#include <algorithm>
#include <utility>

#include "compaction/compactor.h"
#include "compaction/purge.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kLives = kLifeForever + 1;

}  // namespace

Status Compactor::compact(const std::vector<NamespaceId>& ids, ByteView lower, ByteView upper) {
  auto request = std::make_shared<Request>();
  request->ids = ids;
  std::sort(request->ids.begin(), request->ids.end());
  request->ids.erase(std::unique(request->ids.begin(), request->ids.end()), request->ids.end());
  request->lower = lower;
  request->upper = upper;
  request->upto = context_.versions.flushed_sequence();
  {
    MutexLock lock(mutex_);
    requests_.push_back(request);
  }
  wake();
  MutexLock lock(mutex_);
  while (!request->done) {
    lock.unlock();
    const bool ran = context_.environment.executor.run_one();
    lock.lock();
    if (ran || request->done) continue;
    static_cast<void>(request_done_.wait_for(mutex_, kCompactStallNs));
  }
  return request->status;
}

bool Compactor::is_asked() const {
  MutexLock lock(mutex_);
  return !requests_.empty();
}

// First level 0, then each namespace once, then what else hides entries. Each step is bounded by
// what was there when it was asked for or, of files, when their turn came: what others write
// meanwhile does not prolong it.
Result<bool> Compactor::pick_requested(const Version& version) {
  for (;;) {
    if (current_ == nullptr) {
      MutexLock lock(mutex_);
      if (requests_.empty()) return false;
      current_ = requests_.front();
      current_step_ = 0;
    }
    const SequenceNumber upto = current_->upto;
    const bool waits = std::any_of(version.level0.begin(), version.level0.end(),
                                   [&](const auto& table) { return table->sequence_min <= upto; });
    if (current_step_ == 0 && waits) {
      if (auto plan = pick_level0(version, 1)) return start(*std::move(plan));
    }
    PurgeContext purge;
    purge.upto = upto;
    for (const NamespaceId id : current_->ids)
      purge.within.push_back({make_full_key(id, current_->lower),
                              current_->upper.empty() ? make_full_key(id + 1, {})
                                                      : make_full_key(id, current_->upper)});
    const std::size_t steps = current_->ids.size() * kLives;
    while (current_step_ < steps) {
      const std::size_t step = current_step_++;
      const KeyBounds& bounds = purge.within[step / kLives];
      const auto life = static_cast<LifeClass>(step % kLives);
      if (auto plan = plan_everything(version, current_->ids[step / kLives], life, bounds.lower,
                                      bounds.upper))
        return start(*std::move(plan));
    }
    if (current_step_ == steps) {
      if (auto plan = pick_purge(version, purge)) return start(*std::move(plan));
      ++current_step_;
      to_empty_.clear();
      for (const auto& [number, file] : version.value_files) to_empty_.insert(number);
    }
    EvacuationLimits limits = kQuietEvacuation;
    limits.among = &to_empty_;
    if (auto plan = pick_evacuation(version, limits)) return start(*std::move(plan));
    finish_request(ok());
  }
}

void Compactor::finish_request(const Status& status) {
  MutexLock lock(mutex_);
  current_->done = true;
  current_->status = status;
  requests_.pop_front();
  current_.reset();
  request_done_.notify_all();
}

// What lies in damaged files is lost, not dead: nobody may take it for that, or merge what overlaps
// it as if it were not there. So such runs stay as they are until a repair says what is left of
// them.
std::shared_ptr<const Version> Compactor::mergeable(std::shared_ptr<const Version> version) {
  std::set<FileNumber> lost = context_.host.lost_files();
  if (lost.empty()) {
    mergeable_.reset();
    return version;
  }
  if (mergeable_ == nullptr || mergeable_of_.lock() != version || mergeable_without_ != lost) {
    mergeable_ = std::make_shared<const Version>(without_runs(*version, lost));
    mergeable_of_ = version;
    mergeable_without_ = std::move(lost);
  }
  return mergeable_;
}

// A merge failed. Whether that was for damage that nobody knew of: others go on without those runs.
bool Compactor::sets_apart(const Status& failure) {
  const StatusCode code = failure.code();
  const bool is_damage = code == StatusCode::Corruption || code == StatusCode::Unavailable ||
                         code == StatusCode::IoError;
  if (!is_damage || !context_.host.check_values().ok()) return false;
  std::vector<TablePointer> tables;
  if (job_ != nullptr) {
    for (const auto* inputs : {&job_->plan().groups, &job_->plan().singles})
      for (const MergeInput& input : *inputs)
        tables.insert(tables.end(), input.begin(), input.end());
    for (const MergeInput& input : job_->plan().newer_groups)
      tables.insert(tables.end(), input.begin(), input.end());
  } else {
    // A survey, or a sample, may have been of any.
    tables = mergeable(context_.versions.current())->tables;
  }
  return context_.host.look_for_damage(tables);
}

}  // namespace edgecase::engine
