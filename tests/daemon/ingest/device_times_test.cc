#include "ingest/reading_times.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ingest/ingest_pipeline.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

using namespace edgecase;
using wire::TimeSource;

namespace {

constexpr std::int64_t kOneSecondNs = 1'000'000'000;
constexpr std::int64_t kClockStartNs = test::ManualClock::kStartWallNs;

// A pipeline on an engine in memory. Times count seconds from its clock's start.
struct ClockRoom {
  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  std::unique_ptr<ingest::IngestPipeline> pipeline =
      std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock);
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};

  struct Said {
    double value = 0;
    std::int64_t second = 0;
    TimeSource source = TimeSource::Measured;
    const char* sensor = "t";
  };

  // As messages that came together; the n-th arrived n nanoseconds after the clock's time.
  std::string bring(const std::vector<Said>& all, Status fail = ok()) {
    wire::ReadingBatch batch;
    std::vector<ingest::DeviceTimes::Asked> asked;
    for (const Said& said : all) {
      batch.readings.push_back({"default", "d", said.sensor,
                                kClockStartNs + said.second * kOneSecondNs,
                                wire::Value::of_float64(said.value)});
      batch.readings.back().time_source = said.source;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].source == TimeSource::Given) continue;
      asked.push_back({&batch.readings[i], pipeline->times().take_arrival_time()});
    }
    const auto replaced = pipeline->times().settle(asked);
    if (!fail.ok()) {
      engine.fail_next_write(fail);
      CHECK(!ingest(batch).ok());
    }
    REQUIRE(ingest(batch).ok());
    return std::to_string(replaced.repeated) + " repeated " + std::to_string(replaced.stale) +
           " stale";
  }
  Status ingest(const wire::ReadingBatch& batch) {
    return pipeline->ingest(*auth::authorize_write(principal, batch));
  }
  // "1@-5 2@0+": values and seconds; `+` is behind those that arrived then.
  std::string stored(const char* sensor = "t") {
    std::string text;
    const auto entry = catalog->find("default", "d", sensor);
    if (!entry.ok()) return text;
    auto scan = engine.scan(entry->id.namespace_id, {}, {}).value();
    for (; scan->valid(); scan->next()) {
      wire::ReadingKey key;
      wire::Value value;
      REQUIRE(wire::decode_reading_key(scan->key(), key));
      REQUIRE(wire::decode_value(scan->value(), value));
      if (key.sensor != entry->id.sensor) continue;
      if (!text.empty()) text += ' ';
      text += std::to_string(static_cast<int>(value.float64)) + "@" +
              std::to_string((key.time_ns - kClockStartNs) / kOneSecondNs);
      if ((key.time_ns - kClockStartNs) % kOneSecondNs != 0) text += '+';
    }
    return text;
  }
  void start_again() {
    catalog = catalog::Catalog::open(engine, {}).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock);
    clock.advance(kOneSecondNs);
  }
};

constexpr TimeSource kLastHeard = TimeSource::LastHeard;

}  // namespace

TEST_CASE("device times: what no clock says is not believed") {
  constexpr std::int64_t kDayNs = 86'400 * kOneSecondNs;
  struct Case {
    std::int64_t time_ns;
    bool trusted;
    bool believed;
  };
  for (const Case& c :
       {Case{kClockStartNs, true, true}, Case{kClockStartNs - 9'000 * kDayNs, true, true},
        Case{ingest::kFirstBelievableNs, true, true},
        Case{ingest::kFirstBelievableNs - 1, true, false}, Case{0, true, false},
        Case{0, false, false}, Case{-1, true, false}, Case{INT64_MIN, true, false},
        Case{INT64_MAX, true, false}, Case{INT64_MAX, false, false},
        Case{kClockStartNs + kDayNs, true, true}, Case{kClockStartNs + kDayNs + 1, true, false},
        Case{kClockStartNs + 900 * kDayNs, false, true}}) {
    CAPTURE(c.time_ns);
    std::optional<std::int64_t> now_ns;
    if (c.trusted) now_ns = kClockStartNs;
    CHECK(ingest::is_believable_time(c.time_ns, now_ns, kDayNs) == c.believed);
  }
  CHECK(ingest::is_believable_time(kClockStartNs + 900 * kDayNs, kClockStartNs, INT64_MAX));
}

TEST_CASE("device times: two values of a clock that stands never share an instant") {
  ClockRoom room;
  SUBCASE("in one group") {
    CHECK(room.bring({{1, -5}, {2, -5}, {3, -5}, {1, -5}}) == "3 repeated 0 stale");
  }
  SUBCASE("in one group after another") {
    for (const double value : {1, 2, 3, 1}) room.bring({{value, -5}});
  }
  SUBCASE("over a restart") {
    room.bring({{1, -5}});
    room.start_again();
    room.bring({{2, -5}});
    room.bring({{3, -5}});
    room.bring({{1, -5}});
    CHECK(room.stored() == "1@-5 2@1 3@1+ 1@1+");
    return;
  }
  SUBCASE("though the drive refuses meanwhile") {
    CHECK(room.bring({{1, -5}, {2, -5}, {3, -5}, {1, -5}}, io_error("broken")) ==
          "3 repeated 0 stale");
  }
  CHECK(room.stored() == "1@-5 2@0+ 3@0+ 1@0+");
}

TEST_CASE("device times: a clock of whole seconds loses nothing") {
  ClockRoom room;
  room.bring({{1, -9}, {2, -9}, {3, -8}, {4, -8}, {5, -7}});
  CHECK(room.stored() == "1@-9 3@-8 5@-7 2@0+ 4@0+");
}

TEST_CASE("device times: what comes once more changes nothing, what comes late is where it was") {
  ClockRoom room;
  room.bring({{1, -9}, {2, -8}, {3, -7}});
  CHECK(room.bring({{1, -9}, {2, -8}, {3, -7}}) == "0 repeated 0 stale");
  room.start_again();
  CHECK(room.bring({{1, -9}, {3, -7}, {9, -20}}) == "0 repeated 0 stale");
  CHECK(room.stored() == "9@-20 1@-9 2@-8 3@-7");
  CHECK(room.bring({{4, -8}}) == "1 repeated 0 stale");
  CHECK(room.stored() == "9@-20 1@-9 2@-8 3@-7 4@1+");
}

TEST_CASE("device times: last heard counts only where it is newer than the series") {
  ClockRoom room;
  SUBCASE("repeated with a new value, series by series") {
    room.bring({{100, -5, kLastHeard, "battery"}, {21, -5, kLastHeard}});
    CHECK(room.bring({{100, -5, kLastHeard, "battery"}, {22, -5, kLastHeard}}) ==
          "1 repeated 0 stale");
    CHECK(room.stored("battery") == "100@-5");
    CHECK(room.stored() == "21@-5 22@0+");
  }
  SUBCASE("yesterday's") {
    room.bring({{21, -5}});
    CHECK(room.bring({{22, -86'400, kLastHeard}}) == "0 repeated 1 stale");
    CHECK(room.stored() == "21@-5 22@0+");
  }
  SUBCASE("before what arrived without a time, or over HTTP") {
    room.bring({{20, -9, kLastHeard}});
    room.bring({{21, -5, TimeSource::Given}});
    CHECK(room.bring({{22, -6, kLastHeard}}) == "0 repeated 1 stale");
    CHECK(room.bring({{23, -5, kLastHeard}}) == "0 repeated 1 stale");
    CHECK(room.stored() == "20@-9 21@-5 22@0+ 23@0+");
  }
  SUBCASE("of the first message of a series") {
    room.bring({{22, -86'400, kLastHeard}});
    CHECK(room.stored() == "22@-86400");
  }
}

TEST_CASE("device times: another value that cannot be read is not replaced either") {
  ClockRoom room;
  room.bring({{1, -5}});
  room.engine.fail_next_read(unavailable("the drive is away"));
  CHECK(room.bring({{2, -5}}) == "1 repeated 0 stale");
  CHECK(room.stored() == "1@-5 2@0+");
}

TEST_CASE("device times: more series than are remembered") {
  ClockRoom room;
  const std::size_t series = ingest::DeviceTimes::kSeriesMax / 64;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < series; ++i) names.push_back("s" + std::to_string(i));
  for (int round = 0; round < 2; ++round) {
    std::vector<ClockRoom::Said> all;
    for (const std::string& name : names)
      all.push_back({double(round), -5, kLastHeard, name.c_str()});
    const std::string replaced = room.bring(all);
    CHECK(replaced ==
          (round == 0 ? "0 repeated 0 stale" : std::to_string(series) + " repeated 0 stale"));
  }
}

TEST_CASE("device times: a clock stands also where what it dated is gone") {
  ClockRoom room;
  room.bring({{1, -5}});
  room.bring({{1, -5}});
  const auto id = room.catalog->find("default", "d", "t")->id;
  const std::vector<std::int64_t> times{kClockStartNs - 5 * kOneSecondNs};
  REQUIRE(room.pipeline->times().forget(id, times).ok());
  CHECK(room.bring({{2, -5}}) == "1 repeated 0 stale");
  CHECK(room.bring({{1, -5}}) == "1 repeated 0 stale");
  CHECK(room.stored() == "2@0+ 1@0+");
}

TEST_CASE("device times: records of one message that arrived at once share no instant either") {
  ClockRoom room;
  wire::ReadingBatch batch;
  std::vector<ingest::DeviceTimes::Asked> asked;
  for (const double value : {1.0, 2.0, 3.0}) {
    batch.readings.push_back(
        {"default", "d", "t", kClockStartNs - kOneSecondNs, wire::Value::of_float64(value)});
    batch.readings.back().time_source = TimeSource::Measured;
  }
  const std::int64_t arrival_ns = room.pipeline->times().take_arrival_times(3);
  for (wire::Reading& reading : batch.readings) asked.push_back({&reading, arrival_ns});
  CHECK(room.pipeline->times().settle(asked).repeated == 2);
  CHECK(batch.readings[0].time_ns == kClockStartNs - kOneSecondNs);
  CHECK(batch.readings[1].time_ns == arrival_ns);
  CHECK(batch.readings[2].time_ns == arrival_ns + 1);
}
