#include "observe/engine_events.h"

#include <doctest/doctest.h>

#include <string>

#include "daemon/observe/log_pipe.h"

namespace edgecase::observe {
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
