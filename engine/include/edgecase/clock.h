// Time, as the engine and the daemon are given it, and the time of the build, which is past
// whatever a clock says. Implementations are thread-safe.
#pragma once

#include <cstdint>

namespace edgecase {

enum class ClockTrust : unsigned char { Trusted, Untrusted };

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since 1970-01-01 UTC. May jump either way.
  virtual std::int64_t wall_ns() const = 0;
  // Nanoseconds since boot, suspended time included. Never goes back.
  virtual std::int64_t boot_ns() const = 0;
  // Whether wall_ns() may decide that data is old.
  virtual ClockTrust trust() const = 0;
  // Whether a time server confirms wall_ns(): not what somebody has set since, nor what a machine
  // starts with. False where nobody can tell.
  virtual bool synchronised() const { return false; }
};

// The machine's clocks. Lives for the length of the process.
Clock& system_clock();

// When this program was built, in nanoseconds since 1970-01-01 UTC; SOURCE_DATE_EPOCH where the
// build was given one.
std::int64_t build_time_ns();

}  // namespace edgecase
