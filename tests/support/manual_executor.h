// An executor whose tasks run when a test says so, on the thread that says so: with it a whole
// engine is single-threaded and the same seed gives the same run.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "edgecase/machine.h"
#include "edgecase/options.h"

namespace edgecase::test {

class ManualExecutor final : public Executor {
 public:
  // With a seed the lane that goes next is drawn; without one the flush lane goes first.
  ManualExecutor() = default;
  explicit ManualExecutor(std::uint64_t seed) : random_(seed), drawn_(true) {}

  void schedule(Lane lane, std::function<void()> task) override;
  void schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) override;
  bool run_one() override;

  // Runs what is queued, and what that queues, until nothing is; returns how many tasks that were.
  std::size_t run_all();
  // Time passes: tasks due by now join their lanes.
  void advance(std::int64_t ns);
  std::size_t queued() const;  // without the delayed ones
  std::size_t delayed() const;
  // What a crash does.
  void drop_all();

 private:
  struct Delayed {
    Lane lane;
    std::function<void()> task;
  };

  mutable std::mutex mutex_;
  std::deque<std::function<void()>> lanes_[kLaneCount];
  std::multimap<std::int64_t, Delayed> delayed_;
  std::int64_t now_ns_ = 0;
  SeededRandom random_{0};
  bool drawn_ = false;
};

}  // namespace edgecase::test
