#include "query/query_service.h"

#include <pthread.h>
#include <sys/resource.h>

#include <exception>
#include <utility>

#include "edgecase/bytes.h"

namespace edgecase::query {
namespace {

// As threads that read have it: whoever stores, or asks for health, goes first.
constexpr int kNice = 5;

}  // namespace

SideThread::~SideThread() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    called_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool SideThread::try_start(std::function<void()> job) {
  const MutexLock lock(mutex_);
  if (is_busy_ || is_ending_) return false;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
      pthread_setname_np(thread_.native_handle(), "query-side");
    } catch (const std::exception&) {
      return false;  // no memory, or no thread to be had
    }
  }
  is_busy_ = true;
  job_ = std::move(job);
  called_.notify_all();
  return true;
}

void SideThread::work() {
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread
  MutexLock lock(mutex_);
  for (;;) {
    while (!job_ && !is_ending_) called_.wait(mutex_);
    if (!job_) return;
    std::function<void()> job = std::exchange(job_, nullptr);
    lock.unlock();
    job();
    job = nullptr;
    wipe_stack();
    lock.lock();
    is_busy_ = false;
  }
}

}  // namespace edgecase::query
