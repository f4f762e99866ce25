#include "support/manual_executor.h"

namespace edgecase::test {

void ManualExecutor::schedule(Lane lane, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  lanes_[static_cast<int>(lane)].push_back(std::move(task));
}

void ManualExecutor::schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) {
  if (delay_ns <= 0) return schedule(lane, std::move(task));
  const std::lock_guard lock(mutex_);
  delayed_.emplace(now_ns_ + delay_ns, Delayed{lane, std::move(task)});
}

bool ManualExecutor::run_one() {
  std::function<void()> task;
  {
    const std::lock_guard lock(mutex_);
    auto& flush = lanes_[static_cast<int>(Lane::Flush)];
    auto& compaction = lanes_[static_cast<int>(Lane::Compaction)];
    if (flush.empty() && compaction.empty()) return false;
    bool flush_first = !flush.empty();
    if (drawn_ && !flush.empty() && !compaction.empty()) flush_first = random_.below(2) == 0;
    auto& lane = flush_first ? flush : compaction;
    task = std::move(lane.front());
    lane.pop_front();
  }
  task();
  return true;
}

std::size_t ManualExecutor::run_all() {
  std::size_t count = 0;
  while (run_one()) ++count;
  return count;
}

void ManualExecutor::advance(std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  now_ns_ += ns;
  while (!delayed_.empty() && delayed_.begin()->first <= now_ns_) {
    Delayed& due = delayed_.begin()->second;
    lanes_[static_cast<int>(due.lane)].push_back(std::move(due.task));
    delayed_.erase(delayed_.begin());
  }
}

std::size_t ManualExecutor::queued() const {
  const std::lock_guard lock(mutex_);
  return lanes_[0].size() + lanes_[1].size();
}

std::size_t ManualExecutor::delayed() const {
  const std::lock_guard lock(mutex_);
  return delayed_.size();
}

void ManualExecutor::drop_all() {
  std::deque<std::function<void()>> lanes[kLaneCount];
  std::multimap<std::int64_t, Delayed> delayed;
  const std::lock_guard lock(mutex_);
  lanes[0].swap(lanes_[0]);
  lanes[1].swap(lanes_[1]);
  delayed.swap(delayed_);
}

}  // namespace edgecase::test
