// EC_CHECK stops the process when an invariant of ours is broken, in every build. Never for input,
// never for what a drive returned: those have a Status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define EC_CHECK(condition)                                             \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::edgecase::engine::check_failed(#condition, __FILE__, __LINE__); \
    }                                                                   \
  } while (false)

namespace edgecase::engine {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace edgecase::engine
