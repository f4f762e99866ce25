// The thread `erase`: has EraseService drain what is pending, at start too, until it succeeds. As
// long as that took it rests afterwards, kLongestRestNs at most, while nobody waits: one erasure
// begins at once, and of many that follow one another more are done together.
//
// Use: start it when the service is open, destroy it before. A drive that is away is looked for
// every kAwayPauseNs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

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
  void run();
  void tell(const Status& status);
  void look_at_drives();

  EraseService& service_;
  observe::Logger& logger_;
  Reach reach_;  // as it was said last
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace edgecase::erase
