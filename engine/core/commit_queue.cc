#include "core/commit_queue.h"

#include "edgecase/status.h"

namespace edgecase::engine {
namespace {

// From here on another one may lead.
void hand_over() EC_RELEASE(leading) EC_NO_THREAD_SAFETY_ANALYSIS {}

}  // namespace

bool CommitQueue::try_lead() {
  State expected = State::Free;
  return state_.compare_exchange_strong(expected, State::Alone, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

void CommitQueue::leave() {
  group_.clear();
  hand_over();
  State expected = State::Alone;
  if (state_.compare_exchange_strong(expected, State::Free, std::memory_order_release,
                                     std::memory_order_relaxed))
    return;
  MutexLock lock(mutex_);
  pass_on();
}

bool CommitQueue::wait_for_turn(Writer& writer) {
  return wait_in_queue(writer);
}

bool CommitQueue::wait_in_queue(Writer& writer) {
  MutexLock lock(mutex_);
  writers_.push_back(&writer);
  if (writers_.size() == 1) {
    writer.leads = state_.exchange(State::Queued, std::memory_order_acq_rel) == State::Free;
  } else if (gathered_for_ > 0 && writers_.size() >= gathered_for_) {
    gathered_.notify_one();
  }
  if (!writer.leads) writer.wake.emplace();
  while (!writer.leads && !writer.done) writer.wake->wait(mutex_);
  if (!writer.leads) return false;
  if (writer.durability == Durability::Sync) gather();
  const RoleScope leads(leading);
  take_group();
  return true;
}

// Others who will want a sync as soon share the leader's own (CommitGathering).
void CommitQueue::gather() {
  gathered_for_ = gathering_.expected();
  if (writers_.size() < gathered_for_) {
    static_cast<void>(gathered_.wait_for(mutex_, gathering_.wait_ns()));
    gathering_.waited(writers_.size() >= gathered_for_);
  }
  gathered_for_ = 0;
}

void CommitQueue::take_group() {
  std::size_t bytes = 0;
  for (Writer* waiting : writers_) {
    if (waiting->batch == nullptr) break;
    bytes += waiting->batch->size_bytes();
    if (!group_.empty() && bytes > kGroupMaxBytes) break;
    group_.push_back(waiting);
  }
}

void CommitQueue::finish(std::int64_t synced_ns) {
  MutexLock lock(mutex_);
  if (synced_ns > 0) gathering_.synced(group_.size(), writers_.size() - group_.size(), synced_ns);
  if (group_.empty()) pop();
  for (const Writer* finished : group_) {
    EC_CHECK(writers_.front() == finished);
    pop();
  }
  group_.clear();
  hand_over();
  pass_on();
}

// What it points to may be gone afterwards.
void CommitQueue::pop() {
  Writer& finished = *writers_.front();
  writers_.pop_front();
  finished.done = true;
  if (finished.wake) finished.wake->notify_one();
}

// The next one leads, if there is one.
void CommitQueue::pass_on() {
  if (writers_.empty()) {
    state_.store(State::Free, std::memory_order_release);
    return;
  }
  Writer& next = *writers_.front();
  next.leads = true;
  if (next.wake) next.wake->notify_one();
}

}  // namespace edgecase::engine
