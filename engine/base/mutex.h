// Mutex, MutexLock and CondVar that Clang's thread-safety analysis understands, and its
// annotations. One mutex a class, private, with EC_GUARDED_BY on what it protects.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define EC_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define EC_THREAD_ANNOTATION(x)
#endif

#define EC_CAPABILITY(name) EC_THREAD_ANNOTATION(capability(name))
#define EC_SCOPED_CAPABILITY EC_THREAD_ANNOTATION(scoped_lockable)
#define EC_GUARDED_BY(mutex) EC_THREAD_ANNOTATION(guarded_by(mutex))
#define EC_PT_GUARDED_BY(mutex) EC_THREAD_ANNOTATION(pt_guarded_by(mutex))
#define EC_REQUIRES(...) EC_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EC_ACQUIRE(...) EC_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define EC_RELEASE(...) EC_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EC_TRY_ACQUIRE(...) EC_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define EC_EXCLUDES(...) EC_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define EC_ASSERT_HELD(...) EC_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define EC_RETURN_CAPABILITY(mutex) EC_THREAD_ANNOTATION(lock_returned(mutex))
#define EC_NO_THREAD_SAFETY_ANALYSIS EC_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace edgecase::engine {

class EC_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() EC_ACQUIRE() { mutex_.lock(); }
  void unlock() EC_RELEASE() { mutex_.unlock(); }
  bool try_lock() EC_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for its scope; may let it go in between, for I/O.
class EC_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) EC_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() EC_RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() EC_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() EC_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Wakes may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  void wait(Mutex& mutex) EC_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when `timeout_ns` passed first. Monotonic time.
  bool wait_for(Mutex& mutex, std::int64_t timeout_ns) EC_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto result = condition_.wait_for(lock, std::chrono::nanoseconds(timeout_ns));
    lock.release();
    return result == std::cv_status::no_timeout;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace edgecase::engine
