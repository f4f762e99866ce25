#include "erase/erase_worker.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "edgecase/wiped_stack.h"

namespace edgecase::erase {

EraseWorker::EraseWorker(EraseService& service, observe::Logger& logger)
    : service_(service), logger_(logger) {
  service_.on_pending([this] {
    const MutexLock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
  });
  is_asked_ = service_.has_pending();
  reach_ = service_.reach(service_.drives().last(), true);  // who starts the service says it
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "erase");
}

EraseWorker::~EraseWorker() {
  service_.end_waiting();
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void EraseWorker::run() {
  MutexLock lock(mutex_);
  std::int64_t pause_ns = kFirstPauseNs;
  while (!is_stopping_) {
    wait_for_work(kTakenBackPauseNs);
    if (is_stopping_) return;
    if (!is_asked_) {
      lock.unlock();
      // What fails is tried again by the next one.
      static_cast<void>(service_.forget_taken_back().ok());
      look_at_drives();
      lock.lock();
      continue;
    }
    is_asked_ = false;
    lock.unlock();
    const auto begun = std::chrono::steady_clock::now();
    const Status status = service_.drain();
    wipe_stack();
    tell(status);
    look_at_drives();
    if (status.ok()) {
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
      service_.rest(std::min<std::int64_t>(took.count(), kLongestRestNs));
      pause_ns = kFirstPauseNs;
      lock.lock();
      continue;
    }
    lock.lock();
    const bool away = status.code() == StatusCode::Unavailable;
    wait_for_work(away ? kAwayPauseNs : pause_ns);
    pause_ns = std::min(pause_ns * 2, kLongestPauseNs);
    is_asked_ = true;
  }
}

void EraseWorker::wait_for_work(std::int64_t patience_ns) {
  const CondVar::Deadline deadline = CondVar::deadline_in(patience_ns);
  while (!is_asked_ && !is_stopping_ && changed_.wait_until(mutex_, deadline)) {
  }
}

// A drive may be mounted anew, and otherwise.
void EraseWorker::look_at_drives() {
  const Reach reach = service_.reach(service_.drives().last(), true);
  if (reach.why == reach_.why) return;
  if (reach.level == ErasureLevel::Physical) {
    logger_.info("erase", "erasures are physical: both drives overwrite in place");
  } else {
    logger_.warning("erase", warning_of(reach));
  }
  reach_ = reach;
}

void EraseWorker::tell(const Status& status) {
  if (status.ok()) {
    logger_.info("erase", "the bytes of what was erased are gone");
  } else {
    logger_.log_keyed(
        observe::LogLevel::Warning, "erase", "pending",
        "what was erased is invisible, its bytes are not gone yet: " + status.to_string());
  }
}

}  // namespace edgecase::erase
