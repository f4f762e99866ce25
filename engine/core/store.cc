#include "core/store.h"

#include <string_view>
#include <utility>

namespace edgecase::engine {
namespace {

std::string_view layer_of(const Status& failure) {
  return failure.drive() == Drive::Values ? "values" : "metadata";
}

}  // namespace

void Health::fail(Work work, const Status& cause) {
  const Status failure = cause.on(Drive::Metadata);
  {
    MutexLock lock(mutex_);
    State& state = states_[index(work)];
    const bool first = state.failure.ok();
    if (first) state.since_ns = clock_.wall_ns();
    state.failure = failure;
    is_failing_[index(work)].store(true, std::memory_order_release);
    if (!first) return;
  }
  listener_.on_degraded(layer_of(failure), failure);
}

void Health::succeed(Work work) {
  Status until_now;
  {
    MutexLock lock(mutex_);
    State& state = states_[index(work)];
    std::swap(until_now, state.failure);
    is_failing_[index(work)].store(false, std::memory_order_release);
    accept_writes();
  }
  if (!until_now.ok()) listener_.on_resumed(layer_of(until_now));
}

Status Health::failure(Work work) const {
  MutexLock lock(mutex_);
  return states_[index(work)].failure;
}

bool Health::lacks_space() const {
  MutexLock lock(mutex_);
  return states_[index(Work::Flush)].failure.code() == StatusCode::OutOfSpace ||
         states_[index(Work::Log)].failure.code() == StatusCode::OutOfSpace;
}

void Health::accept_writes() {
  if (!states_[index(Work::Flush)].failure.ok() || !states_[index(Work::Log)].failure.ok()) return;
  refused_ = ok();
  refuses_.store(false, std::memory_order_relaxed);
}

void Health::note_prepared(const Status& prepared) {
  if (prepared.code() == StatusCode::InvalidArgument) return;
  if (prepared.ok() && !refuses_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  if (prepared.ok()) return accept_writes();
  refused_ = prepared;
  refuses_.store(true, std::memory_order_relaxed);
}

void Health::add_to(Stats& stats) const {
  MutexLock lock(mutex_);
  stats.refused = refused_;
  for (const State& state : states_) {
    if (state.failure.ok()) continue;
    LayerStats& layer = state.failure.drive() == Drive::Values ? stats.values : stats.metadata;
    if (!layer.degraded.ok()) continue;
    layer.degraded = state.failure;
    layer.degraded_since_ns = state.since_ns;
  }
}

}  // namespace edgecase::engine
