#include "file/time_sync.h"

#include <sys/stat.h>

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
