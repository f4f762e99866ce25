// Counters that one thread at a time adds to and any reads: no locked instruction.
#pragma once

#include <atomic>
#include <cstdint>

namespace edgecase::engine {

// Adds while nobody else does: another caller for `counter` must have a happens-before with this
// call.
inline void add_alone(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace edgecase::engine
