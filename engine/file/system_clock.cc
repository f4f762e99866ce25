#include "file/system_clock.h"

#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>

#include "base/check.h"
#include "edgecase/clock.h"

namespace edgecase::engine {

bool was_synchronised(const char* mark_path, std::int64_t wall_ns) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  constexpr std::int64_t kFreshSeconds = 3600;
  struct stat mark {};
  if (stat(mark_path, &mark) != 0) return false;
  const std::int64_t age_seconds = wall_ns / kNsPerSecond - mark.st_mtim.tv_sec;
  // The clock may be slewed back a little after an answer.
  return age_seconds >= -1 && age_seconds <= kFreshSeconds;
}

}  // namespace edgecase::engine

#ifndef EC_BUILD_UNIX_SECONDS
#error "engine/CMakeLists.txt defines EC_BUILD_UNIX_SECONDS for this file"
#endif

namespace edgecase {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t read_clock_ns(clockid_t id) {
  timespec time{};
  EC_CHECK(clock_gettime(id, &time) == 0);
  return static_cast<std::int64_t>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

// Trusts wall time when it is past the date of this build, which no board that lost its clock
// starts at, or when it is synchronised. That the kernel says (adjtimex() not TIME_ERROR and
// without STA_UNSYNC, which setting the clock brings back), or, where a sandbox refuses adjtimex(),
// systemd-timesyncd.
class SystemClock final : public Clock {
 public:
  std::int64_t wall_ns() const override { return read_clock_ns(CLOCK_REALTIME); }
  std::int64_t boot_ns() const override { return read_clock_ns(CLOCK_BOOTTIME); }

  ClockTrust trust() const override {
    return wall_ns() > build_time_ns() || synchronised() ? ClockTrust::Trusted
                                                         : ClockTrust::Untrusted;
  }

  bool synchronised() const override {
    timex state{};  // modes 0: only asks
    const int answer = adjtimex(&state);
    if (answer >= 0) return answer != TIME_ERROR && !(state.status & STA_UNSYNC);
    return engine::was_synchronised(engine::kTimesyncdMark, wall_ns());
  }
};

}  // namespace

std::int64_t build_time_ns() {
  return std::int64_t{EC_BUILD_UNIX_SECONDS} * kNanosecondsPerSecond;
}

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace edgecase
