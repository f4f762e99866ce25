#include "edgecase/machine.h"

#include <sys/resource.h>

#include <doctest/doctest.h>

#include <cerrno>
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

// The soft limit of this process, for as long as this lives.
class LowerLimit {
 public:
  LowerLimit(decltype(RLIMIT_AS) which, rlim_t value) : which_(which) {
    REQUIRE(::getrlimit(which_, &before_) == 0);
    const rlimit lower{value, before_.rlim_max};
    REQUIRE(::setrlimit(which_, &lower) == 0);
    rlimit now{};
    REQUIRE(::getrlimit(which_, &now) == 0);
    is_taken_ = now.rlim_cur == value;
  }
  ~LowerLimit() { ::setrlimit(which_, &before_); }

  // An emulated processor (qemu-user) leaves limits of memory as they are, and reports no error.
  bool is_taken() const { return is_taken_; }

 private:
  decltype(RLIMIT_AS) which_;
  rlimit before_{};
  bool is_taken_ = false;
};

TEST_CASE("machine: an error that a limit causes names it and its value") {
  {
    const LowerLimit limit(RLIMIT_FSIZE, 123456);
    CHECK(limit_of_error(EFBIG) == " (the limit RLIMIT_FSIZE, ulimit -f, is 123456 bytes)");
  }
  const LowerLimit limit(RLIMIT_NOFILE, 321);
  CHECK(limit_of_error(EMFILE) == " (the limit RLIMIT_NOFILE, ulimit -n, is 321 files)");
  CHECK(limit_of_error(ENOENT).empty());
}

TEST_CASE("machine: the nearer limit of memory is named, in no more room than there is") {
  char text[100];
  {
    const LowerLimit data(RLIMIT_DATA, rlim_t{1} << 40);
    if (data.is_taken()) {
      CHECK(std::string(text, limit_of_memory(text, sizeof text)) ==
            "the limit RLIMIT_DATA (ulimit -d) is 1073741824 KiB");
    } else {
      MESSAGE("skipped: no limit of memory can be set here");
    }
  }
  const std::size_t size = limit_of_memory(text, 10);
  CHECK(std::string(text) == "the syste");
  CHECK(size >= 10);
}

}  // namespace
}  // namespace edgecase
