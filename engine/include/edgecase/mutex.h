// Locks that Clang checks: Mutex and SharedMutex, the scopes that hold them, a condition variable,
// and the annotations that say what a lock protects.
// Use: one private Mutex a class. EC_GUARDED_BY names it at each member it protects, EC_REQUIRES
// at functions that are called while it is held, EC_EXCLUDES at those that take it themselves.
// -Wthread-safety (an error in the presets of Clang) finds what is read or written without it.
// Clang looks into a lambda as into a function of its own: a condition that reads members stands
// in a loop around wait(), not in a lambda.
// Threads: every class here is for several. Lifetime: a lock outlives those that wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

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
#define EC_REQUIRES_SHARED(...) EC_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define EC_ACQUIRE(...) EC_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define EC_ACQUIRE_SHARED(...) EC_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define EC_RELEASE(...) EC_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EC_RELEASE_SHARED(...) EC_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define EC_TRY_ACQUIRE(...) EC_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define EC_EXCLUDES(...) EC_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define EC_ASSERT_HELD(...) EC_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define EC_RETURN_CAPABILITY(mutex) EC_THREAD_ANNOTATION(lock_returned(mutex))
#define EC_NO_THREAD_SAFETY_ANALYSIS EC_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace edgecase {

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

// Many readers or one writer.
class EC_CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() EC_ACQUIRE() { mutex_.lock(); }
  void unlock() EC_RELEASE() { mutex_.unlock(); }
  void lock_shared() EC_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() EC_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// What holds a shared mutex for its scope: with other readers, or alone.
class EC_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) EC_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() EC_RELEASE() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class EC_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) EC_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() EC_RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// What one thread at a time may do though no mutex says so, since something else hands it over: a
// queue, or a lane that runs one task after another. A name for Clang's analysis; holds nothing.
class EC_CAPABILITY("role") Role {};

// The role is the caller's for this scope, as something else ensures; say what, where it is used.
class EC_SCOPED_CAPABILITY RoleScope {
 public:
  explicit RoleScope(const Role& role) EC_ACQUIRE(role) { static_cast<void>(role); }
  ~RoleScope() EC_RELEASE() {}
  RoleScope(const RoleScope&) = delete;
  RoleScope& operator=(const RoleScope&) = delete;
};

// Wakes may be spurious: wait in a loop over the condition.
class CondVar {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

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
  // False once `deadline` has passed: for loops, whose turns share one patience.
  bool wait_until(Mutex& mutex, Deadline deadline) EC_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto result = condition_.wait_until(lock, deadline);
    lock.release();
    return result == std::cv_status::no_timeout;
  }
  static Deadline deadline_in(std::int64_t timeout_ns) {
    return std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace edgecase
