#include "query/pinned_moments.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace edgecase::query {
namespace {

Status unknown(const std::string& name) {
  return not_found("the moment " + name + " is not held any more");
}

}  // namespace

PinnedMoments::~PinnedMoments() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    ends_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
}

Result<std::string> PinnedMoments::pin() {
  sweep();
  // What is in tables by then is not kept in memory for it; where that fails, it is.
  static_cast<void>(engine_.flush().ok());
  std::shared_ptr<const Snapshot> snapshot = engine_.snapshot();
  std::shared_ptr<const Snapshot> given_up;  // let go of after the lock
  const MutexLock lock(mutex_);
  if (moments_.size() == kMomentsMax) given_up = take_idle();
  if (moments_.size() == kMomentsMax) {
    return busy("backups read " + std::to_string(kMomentsMax) +
                " moments of the store already, wait for one to end");
  }
  std::string name = std::to_string(clock_.wall_ns()) + "-" + std::to_string(++pinned_);
  moments_[name] = {std::move(snapshot), clock_.boot_ns()};
  if (!watched_) {
    if (watcher_.joinable()) watcher_.join();  // it has found nothing to watch, and ends
    watched_ = true;
    watcher_ = std::thread([this] { watch(); });
    pthread_setname_np(watcher_.native_handle(), "moments");
  }
  return name;
}

// The one that was used longest ago, where that is a while: of a backup that was killed, most
// likely. One that is not begins anew.
std::shared_ptr<const Snapshot> PinnedMoments::take_idle() {
  const auto idlest = std::min_element(
      moments_.begin(), moments_.end(),
      [](const auto& a, const auto& b) { return a.second.used_ns < b.second.used_ns; });
  if (clock_.boot_ns() - idlest->second.used_ns < kIdleNs ||
      idlest->second.snapshot.use_count() > 1)
    return nullptr;
  std::shared_ptr<const Snapshot> snapshot = std::move(idlest->second.snapshot);
  moments_.erase(idlest);
  return snapshot;
}

Result<std::shared_ptr<const Snapshot>> PinnedMoments::use(const std::string& name) {
  sweep();
  const MutexLock lock(mutex_);
  const auto found = moments_.find(name);
  if (found == moments_.end()) return unknown(name);
  found->second.used_ns = clock_.boot_ns();
  return found->second.snapshot;
}

Status PinnedMoments::release(const std::string& name) {
  std::shared_ptr<const Snapshot> snapshot;  // let go of after the lock
  const MutexLock lock(mutex_);
  const auto found = moments_.find(name);
  if (found == moments_.end()) return unknown(name);
  snapshot = std::move(found->second.snapshot);
  moments_.erase(found);
  return ok();
}

void PinnedMoments::release_all() {
  std::map<std::string, Moment> released;  // let go of after the lock
  const MutexLock lock(mutex_);
  released.swap(moments_);
}

void PinnedMoments::sweep() {
  std::vector<std::shared_ptr<const Snapshot>> left_behind;
  const std::int64_t now_ns = clock_.boot_ns();
  const MutexLock lock(mutex_);
  for (auto moment = moments_.begin(); moment != moments_.end();) {
    // One that a request reads is in use.
    const bool is_read = moment->second.snapshot.use_count() > 1;
    if (is_read) moment->second.used_ns = now_ns;
    if (moment->second.snapshot->revocations() != engine_.revocations())
      left_behind.push_back(std::exchange(moment->second.snapshot, engine_.snapshot()));
    if (now_ns - moment->second.used_ns <= kLeaseNs) {
      ++moment;
      continue;
    }
    left_behind.push_back(std::move(moment->second.snapshot));
    moment = moments_.erase(moment);
  }
}

std::size_t PinnedMoments::count() const {
  const MutexLock lock(mutex_);
  return moments_.size();
}

void PinnedMoments::watch() {
  MutexLock lock(mutex_);
  while (!ending_ && !moments_.empty()) {
    ends_.wait_for(mutex_, std::chrono::nanoseconds(sweep_pause_).count());
    lock.unlock();
    sweep();
    lock.lock();
  }
  watched_ = false;
}

}  // namespace edgecase::query
