#include "edgecase/processor.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace edgecase {
namespace {

#if defined(__x86_64__)
constexpr const char* kFlags = "flags";
#else
constexpr const char* kFlags = "Features";
#endif

TEST_CASE("processor: AES instructions are there when the kernel names them") {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with(kFlags)) continue;
    std::istringstream words(line);
    bool named = false;
    for (std::string word; words >> word;) named = named || word == "aes";
    CHECK(has_aes_instructions() == named);
    return;
  }
  MESSAGE("skipped: the kernel names no features of the processor");
}

}  // namespace
}  // namespace edgecase
