// The machine's clock, as far as what the store knows bears it out: behind the latest time that it
// has known it is not trusted, unless a time server confirms it. The engine itself is given the
// machine's. Thread-safe once follow() was called.
#pragma once

#include "edgecase/clock.h"
#include "edgecase/engine.h"

namespace edgecase::app {

class StoreClock final : public Clock {
 public:
  // How exactly the store knows it over a crash.
  static constexpr std::int64_t kBehindMaxNs = 60'000'000'000;

  explicit StoreClock(Clock& machine) : machine_(machine) {}
  // From now on; the engine outlives whoever asks for trust().
  void follow(Engine& engine) { engine_ = &engine; }

  std::int64_t wall_ns() const override { return machine_.wall_ns(); }
  std::int64_t boot_ns() const override { return machine_.boot_ns(); }
  bool synchronised() const override { return machine_.synchronised(); }

  ClockTrust trust() const override {
    if (machine_.trust() == ClockTrust::Untrusted || engine_ == nullptr) return machine_.trust();
    std::int64_t latest_ns = 0;
    const bool is_behind = !__builtin_add_overflow(machine_.wall_ns(), kBehindMaxNs, &latest_ns) &&
                           latest_ns < engine_->expiry_now_ns();
    return is_behind && !synchronised() ? ClockTrust::Untrusted : ClockTrust::Trusted;
  }

 private:
  Clock& machine_;
  Engine* engine_ = nullptr;
};

}  // namespace edgecase::app
