// The store's clock, and the watch over what it makes expire.
#pragma once

#include "audit/audit_log.h"
#include "edgecase/clock.h"
#include "edgecase/engine.h"
#include "edgecase/stats.h"
#include "observe/logger.h"

namespace edgecase::app {

// The machine's clock, as far as what the store knows bears it out: behind the latest time that it
// has known it is not trusted, unless a time server confirms it. The engine itself is given the
// machine's. Thread-safe once follow() was called.
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

// Says in the log, and of what is held in the audit log too, when expiry stops to go with the clock
// and when it does again. One thread.
class ExpiryWatch {
 public:
  // Both outlive it.
  ExpiryWatch(observe::Logger& logger, audit::AuditLog& audit) : logger_(logger), audit_(audit) {}

  void look(const ExpiryStats& stats);

 private:
  void note(const char* operation, std::uint64_t bytes);

  observe::Logger& logger_;
  audit::AuditLog& audit_;
  ExpiryWait wait_ = ExpiryWait::None;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace edgecase::app
