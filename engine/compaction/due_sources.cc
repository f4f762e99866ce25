#include "compaction/due_sources.h"

#include <algorithm>
#include <utility>

#include "compaction/picker.h"
#include "compaction/purge.h"

namespace edgecase::engine {
namespace {

// Between two merges that make way for what has expired: some merge comes to an end.
constexpr std::int64_t kInterruptsEveryNs = 1'000'000'000;
// What is due at a time has expired when that has passed.
constexpr std::int64_t kPastDueNs = 1'000'000;

}  // namespace

Urgency ExpirySource::urgency() {
  return context_.versions.retention() == nullptr ? Urgency::None : Urgency::Due;
}

Result<Offer> ExpirySource::next(const LaneView& view) {
  const PurgeContext purge{context_.host.expiry(), context_.is_exact()};
  if (purge.expiry.empty()) return Offer::none();
  // What has expired goes unread, damaged or not.
  if (const auto edit = pick_drop(*view.all, purge.expiry)) {
    EC_TRY(drop(*view.all, *edit));
    return Offer::step();
  }
  if (auto plan = pick_purge(*view.mergeable, purge)) {
    {
      MutexLock lock(mutex_);
      ++stats_.purges;
    }
    manifest_names_expired_ = true;
    return Offer::merge(*std::move(plan));
  }
  if (!context_.is_exact() || !manifest_names_expired_) return Offer::none();
  // The manifest tells of tables that are gone by their first and last keys.
  EC_TRY(context_.versions.forget_past());
  manifest_names_expired_ = false;
  return Offer::step();
}

Status ExpirySource::drop(const Version& version, const VersionEdit& edit) {
  EC_TRY(context_.host.check_drives());  // or the files would stay on a drive that comes back
  EC_TRY(context_.versions.apply(edit));
  context_.host.publish();
  context_.host.revoke();
  manifest_names_expired_ = true;
  if (context_.is_exact()) removals_.hurry();
  MutexLock lock(mutex_);
  ++stats_.drops;
  stats_.dropped_files += edit.removed_value_files.size();
  for (const FileNumber number : edit.removed_value_files)
    stats_.dropped_bytes += version.value_files.at(number).size_bytes;
  return ok();
}

bool ExpirySource::frees_more_than(std::uint64_t written_bytes) {
  const std::int64_t now_ns = context_.environment.clock.boot_ns();
  if (!context_.is_exact() || now_ns < interrupts_not_before_ns_) return false;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty() || due_bytes(*context_.versions.current(), expiry, true) <= written_bytes)
    return false;
  interrupts_not_before_ns_ = now_ns + kInterruptsEveryNs;
  return true;
}

void ExpirySource::committed(const FinishedMerge& merge, bool own) {
  if (own) context_.host.revoke();
  if (merge.edit.removed_value_files.empty()) return;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty()) return;
  MutexLock lock(mutex_);
  for (const FileNumber number : merge.edit.removed_value_files) {
    const ValueFileMetadata& file = merge.before.value_files.at(number);
    if (expiry.now_ns() <= due_ns(file, context_.is_exact())) continue;
    ++stats_.dropped_files;
    stats_.dropped_bytes += file.size_bytes;
  }
}

bool ExpirySource::settles(const Status& failure) {
  return failure.code() == StatusCode::OutOfSpace && context_.host.release_reserve();
}

// In Exact the next look is when something is due, if that is sooner.
std::optional<std::int64_t> ExpirySource::look_again_in_ns() {
  if (context_.versions.retention() == nullptr) return std::nullopt;
  if (!context_.is_exact()) return log_is_behind_ ? kExactExpiryCheckNs : kExpiryCheckNs;
  const ExpiryView expiry = context_.host.expiry();
  if (expiry.empty()) return kExactExpiryCheckNs;
  const std::int64_t due = next_expiry_ns(*context_.versions.current(), true);
  if (due < expiry.now_ns() || due - expiry.now_ns() >= kExactExpiryCheckNs)
    return kExactExpiryCheckNs;
  return due - expiry.now_ns() + kPastDueNs;
}

Status ExpirySource::look_again() {
  removals_.retry();
  const Result<bool> cleared = context_.host.clear_expired_log();
  log_is_behind_ = !cleared.ok() || !*cleared;
  return cleared.status();
}

ExpiryStats ExpirySource::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

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
