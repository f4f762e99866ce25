// The thread `erase`: has EraseService drain what is pending, at start too, until it succeeds. As
// long as that took it rests afterwards, kLongestRestNs at most, while nobody waits: one erasure
// begins at once, and of many that follow one another more are done together.
//
// Use: start it when the service is open, destroy it before. A drive that is away is looked for
// every kAwayPauseNs.
#pragma once

#include <cstdint>
#include <thread>

#include "edgecase/mutex.h"
#include "erase/erase_service.h"
#include "observe/logger.h"

namespace edgecase::erase {

inline constexpr std::int64_t kFirstPauseNs = 20'000'000;
inline constexpr std::int64_t kLongestPauseNs = 5'000'000'000;
inline constexpr std::int64_t kAwayPauseNs = 1'000'000'000;
// What is asked after a long round is to be gone within a second, too.
inline constexpr std::int64_t kLongestRestNs = 500'000'000;
// Between looks for terms that were taken back from devices, while nothing is erased.
inline constexpr std::int64_t kTakenBackPauseNs = 30'000'000'000;

class EraseWorker {
 public:
  EraseWorker(EraseService& service, observe::Logger& logger);
  // Lets a drain() under way finish; nobody waits for certificates any more.
  ~EraseWorker();

 private:
  void run() EC_EXCLUDES(mutex_);
  // Returns when something is asked for, the worker is to stop, or time is up.
  void wait_for_work(std::int64_t patience_ns) EC_REQUIRES(mutex_);
  void tell(const Status& status);
  void look_at_drives();

  EraseService& service_;
  observe::Logger& logger_;
  Reach reach_;  // as it was said last; the thread's
  Mutex mutex_;
  CondVar changed_;
  bool is_asked_ EC_GUARDED_BY(mutex_) = false;
  bool is_stopping_ EC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace edgecase::erase
