// The pipe that a logger writes to in a test, and its clock.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "edgecase/machine.h"

namespace edgecase::observe {

class LogClock final : public Clock {
 public:
  std::int64_t wall_ns() const override { return 1'763'647'200'123'456'789; }
  std::int64_t boot_ns() const override { return now_ns; }
  ClockTrust trust() const override { return ClockTrust::Trusted; }
  std::int64_t now_ns = 0;
};

// What was written to one end of a pipe.
struct LogPipe {
  LogPipe() { REQUIRE(pipe2(ends, O_NONBLOCK) == 0); }
  ~LogPipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::string text() const {
    std::string all(65536, '\0');
    const ssize_t got = read(ends[0], all.data(), all.size());
    all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return all;
  }
  int ends[2] = {-1, -1};
};

}  // namespace edgecase::observe
