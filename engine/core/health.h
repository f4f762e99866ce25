// Health keeps which of the engine's work fails: since when, on which drive, and what writers are
// refused with. The listener hears when some work begins to fail and when it succeeds again.
//
// Use: whoever does a piece of work says fail() or succeed() after each attempt.
// Threads: any. It waits for nothing; the listener is called without the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

#include "edgecase/clock.h"
#include "edgecase/event_listener.h"
#include "edgecase/mutex.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"

namespace edgecase::engine {

// In the order in which a drive's degradation is told where several fail.
enum class Work : unsigned char { Log, Flush, Space, Merge };
inline constexpr std::size_t kWorkCount = 4;

class Health {
 public:
  Health(Clock& clock, EventListener& listener) : clock_(clock), listener_(listener) {}

  // The newest failure counts. One that does not say its drive is of the metadata drive: whatever
  // works on value files says so.
  void fail(Work work, const Status& cause);
  void succeed(Work work);

  Status failure(Work work) const;
  // Without the lock.
  bool is_failing(Work work) const {
    return is_failing_[index(work)].load(std::memory_order_acquire);
  }
  // Whether flushes or the log fail for lack of space.
  bool lacks_space() const;

  // The leader's, of each batch: whether there was room for it. A refusal holds until flushes
  // succeed and the log is whole, whatever small batch still fits.
  void note_prepared(const Status& prepared);

  // Which drives are degraded, and what writers are refused with.
  void add_to(Stats& stats) const;

 private:
  struct State {
    Status failure = {};
    std::int64_t since_ns = 0;  // wall time
  };

  static std::size_t index(Work work) { return static_cast<std::size_t>(work); }
  void accept_writes() EC_REQUIRES(mutex_);

  Clock& clock_;
  EventListener& listener_;
  mutable Mutex mutex_;
  std::array<State, kWorkCount> states_ EC_GUARDED_BY(mutex_);
  std::array<std::atomic<bool>, kWorkCount> is_failing_{};  // stored under mutex_
  Status refused_ EC_GUARDED_BY(mutex_);
  std::atomic<bool> refuses_{false};  // whether that is an error; stored under mutex_
};

}  // namespace edgecase::engine
