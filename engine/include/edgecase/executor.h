// Executor runs the engine's background work. The engine never starts a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace edgecase {

// Tasks of one lane run one after another, in the order given; lanes run side by side.
enum class Lane : unsigned char { Flush, Compaction };
inline constexpr int kLaneCount = 2;

class Executor {
 public:
  virtual ~Executor() = default;

  // Queues `task`. Thread-safe.
  virtual void schedule(Lane lane, std::function<void()> task) = 0;
  // The same, not before `delay_ns` from now have passed.
  virtual void schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) = 0;
  // For a caller that waits for background work and holds no lock. A threaded executor answers
  // false: wait on your own condition. A single-threaded one (tests) runs one task and answers
  // true, or false if there is none.
  virtual bool run_one() = 0;
};

// One named thread a lane; the destructor runs what is queued without delay, drops what is delayed,
// and joins.
std::unique_ptr<Executor> make_thread_executor();

}  // namespace edgecase
