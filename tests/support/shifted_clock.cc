// Loaded before a daemon (LD_PRELOAD), which then sees the clocks of a machine that somebody sets,
// or that was left running: three numbers in the file that EDGECASE_TEST_CLOCK names, native
// int64: what is added to wall time and to the time since the machine was started, in nanoseconds,
// and whether a time server has confirmed the clock. The file may change at any time.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

using Numbers = const volatile std::int64_t;

Numbers* numbers() {
  static Numbers* const mapped = [] {
    static constexpr std::int64_t kNothing[3] = {0, 0, 0};
    const char* const path = std::getenv("EDGECASE_TEST_CLOCK");
    if (path == nullptr) return static_cast<Numbers*>(kNothing);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) std::abort();
    void* const at = mmap(nullptr, sizeof kNothing, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) std::abort();
    return static_cast<Numbers*>(at);
  }();
  return mapped;
}

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, id, time);
  if (result != 0 || (id != CLOCK_REALTIME && id != CLOCK_BOOTTIME))
    return static_cast<int>(result);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns =
      time->tv_sec * kSecond + time->tv_nsec + numbers()[id == CLOCK_REALTIME ? 0 : 1];
  time->tv_sec = ns / kSecond;
  time->tv_nsec = ns % kSecond;
  return 0;
}

extern "C" int adjtimex(timex* state) noexcept {
  *state = {};
  if (numbers()[2] != 0) return TIME_OK;
  state->status = STA_UNSYNC;
  return TIME_ERROR;
}
