#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "daemon/observe/log_pipe.h"
#include "observe/logger.h"

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

namespace {

// The line that is logged of a recovery, and what metrics say then.
struct Told {
  explicit Told(const RecoveryEvent& event) {
    LogPipe pipe;
    LogClock clock;
    Logger logger(pipe.ends[1], LogStyle::Journal, clock);
    Metrics metrics;
    EngineEvents(logger, metrics).on_recovered(event);
    line = pipe.text();
    figures = metrics.render();
  }
  std::string line;
  std::string figures;
};

RecoveryEvent usual_recovery() {
  RecoveryEvent event;
  event.tables = 3;
  event.wal_records = 12;
  event.wal_bytes = 4'096;
  event.elapsed_ns = 7'900'000;
  return event;
}

constexpr const char* kUsual =
    "<6>engine: store open in 7 ms: 3 tables, 12 batches (4096 bytes) replayed from the log";

}  // namespace

TEST_CASE("engine events: a recovery is a line and a figure") {
  const Told told(usual_recovery());
  CHECK(told.line == std::string(kUsual) + "\n");
  CHECK(told.figures.find("edgecase_engine_recovery_seconds 0.0079\n") != std::string::npos);
}

TEST_CASE("engine events: a recovery says what of the log was dropped, and why") {
  RecoveryEvent event = usual_recovery();
  event.torn_tail = true;
  CHECK(Told(event).line ==
        std::string(kUsual) + "; an unfinished, unacknowledged write at its end was dropped\n");
  // Where segments are gone their end is no news.
  event.dropped_segments = 2;
  CHECK(Told(event).line ==
        std::string(kUsual) +
            "; what was never synced behind a gap was dropped, with 2 segments of the log\n");
}

TEST_CASE("engine events: a recovery says that copies of the manifest differed") {
  RecoveryEvent event = usual_recovery();
  event.manifest_copies_differed = true;
  CHECK(Told(event).line.find("; one copy of the manifest lacked its last edit") !=
        std::string::npos);
}

}  // namespace edgecase::observe
