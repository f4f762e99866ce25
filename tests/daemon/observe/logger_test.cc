#include "observe/logger.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "daemon/observe/log_pipe.h"

namespace edgecase::observe {
namespace {

TEST_CASE("a plain line has time, level and area") {
  LogPipe pipe;
  LogClock clock;
  Logger logger(pipe.ends[1], LogStyle::Plain, clock);
  logger.warning("mqtt", "broker\ngone\x1b[31m");
  CHECK(pipe.text() == "2025-11-20T14:00:00.123Z warn  mqtt: broker gone [31m\n");
}

TEST_CASE("a journal line has the priority and no time") {
  LogPipe pipe;
  LogClock clock;
  Logger logger(pipe.ends[1], LogStyle::Journal, clock);
  logger.error("engine", "bad");
  logger.info("engine", "good");
  logger.debug("engine", "left out");
  CHECK(pipe.text() == "<3>engine: bad\n<6>engine: good\n");
}

TEST_CASE("the style follows JOURNAL_STREAM only when it names this very stream") {
  LogPipe pipe;
  struct stat status {};
  REQUIRE(fstat(pipe.ends[1], &status) == 0);
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  setenv("JOURNAL_STREAM", own.c_str(), 1);
  CHECK(log_style_of(pipe.ends[1]) == LogStyle::Journal);
  setenv("JOURNAL_STREAM", "1:2", 1);
  CHECK(log_style_of(pipe.ends[1]) == LogStyle::Plain);
  unsetenv("JOURNAL_STREAM");
  CHECK(log_style_of(pipe.ends[1]) == LogStyle::Plain);
}

TEST_CASE("repeats are held back and told when their window is over") {
  LogPipe pipe;
  LogClock clock;
  Logger logger(pipe.ends[1], LogStyle::Journal, clock);
  for (int i = 0; i < Logger::kBurst + 3; ++i) {
    logger.log_keyed(LogLevel::Warning, "mqtt", "bad topic", "bad topic " + std::to_string(i));
  }
  CHECK(pipe.text() ==
        "<4>mqtt: bad topic 0\n<4>mqtt: bad topic 1\n<4>mqtt: bad topic 2\n"
        "<4>mqtt: bad topic 3\n<4>mqtt: bad topic 4\n");
  clock.now_ns += Logger::kWindowNs;
  logger.log_keyed(LogLevel::Warning, "mqtt", "bad topic", "bad topic again");
  CHECK(pipe.text() == "<4>mqtt: 3 more like this: bad topic\n<4>mqtt: bad topic again\n");
}

TEST_CASE("what was held back is told at the end") {
  LogPipe pipe;
  LogClock clock;
  {
    Logger logger(pipe.ends[1], LogStyle::Journal, clock);
    for (int i = 0; i < Logger::kBurst + 1; ++i) logger.info("a", "same");
    pipe.text();
  }
  CHECK(pipe.text() == "<6>a: 1 more like this: same\n");
}

TEST_CASE("a flood of different lines takes bounded memory and all pass") {
  LogPipe pipe;
  LogClock clock;
  Logger logger(pipe.ends[1], LogStyle::Journal, clock);
  for (std::size_t i = 0; i < 3 * Logger::kKeysMax; ++i) {
    clock.now_ns += 1;
    logger.info("a", std::to_string(i));
    CHECK(pipe.text() == "<6>a: " + std::to_string(i) + "\n");
  }
}

TEST_CASE("a line is cut at its limit") {
  LogPipe pipe;
  LogClock clock;
  Logger logger(pipe.ends[1], LogStyle::Journal, clock);
  logger.info("a", std::string(2 * Logger::kLineMaxBytes, 'x'));
  CHECK(pipe.text() == "<6>a: " + std::string(Logger::kLineMaxBytes, 'x') + "...\n");
}

}  // namespace
}  // namespace edgecase::observe
