#include "ingest/ingest_pipeline.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "audit/audit_log.h"
#include "edgecase/machine.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"
#include "wire/reading.h"

using namespace edgecase;
using wire::Value;

namespace {

// A pipeline on an engine in memory.
struct Room {
  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  ingest::IngestPipeline pipeline{engine, *catalog, clock};
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};

  Status ingest(const wire::ReadingBatch& batch) {
    const auto authorized = auth::authorize_write(principal, batch);
    if (!authorized.ok()) return authorized.status();
    return pipeline.ingest(*authorized);
  }
  Status ingest(const std::vector<wire::Reading>& readings) {
    wire::ReadingBatch batch;
    batch.readings = readings;
    return ingest(batch);
  }
  // What is stored of a series, as "time=value-bytes" pairs.
  std::map<std::int64_t, Bytes> stored(std::string_view device, std::string_view sensor) {
    std::map<std::int64_t, Bytes> readings;
    const auto entry = catalog->find("default", device, sensor);
    if (!entry.ok()) return readings;
    auto scan = engine.scan(entry->id.namespace_id, {}, {}).value();
    for (; scan->valid(); scan->next()) {
      wire::ReadingKey key;
      REQUIRE(wire::decode_reading_key(scan->key(), key));
      if (key.device != entry->id.device || key.sensor != entry->id.sensor) continue;
      readings[key.time_ns] = Bytes(scan->value());
    }
    return readings;
  }
};

wire::Reading reading(std::string_view device, std::string_view sensor,
                      std::optional<std::int64_t> time_ns, const Value& value) {
  return {"default", device, sensor, time_ns, value};
}

Bytes encoded(const Value& value) {
  Bytes bytes;
  wire::append_value(value, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("ingest: readings of every type arrive, each batch with one sync") {
  Room room;
  const std::uint64_t syncs = room.engine.stats().wal_syncs;
  REQUIRE(room.ingest({reading("d", "f", 1, Value::of_float64(1.5)),
                       reading("d", "i", 2, Value::of_int64(-3)),
                       reading("d", "b", 3, Value::of_bool(true)),
                       reading("d", "t", 4, Value::of_text("on")),
                       reading("d", "x", 5, Value::of_bytes("\xff", "a/b"))})
              .ok());
  CHECK(room.engine.stats().wal_syncs == syncs + 1);
  CHECK(room.stored("d", "f").at(1) == encoded(Value::of_float64(1.5)));
  CHECK(room.stored("d", "i").at(2) == encoded(Value::of_int64(-3)));
  CHECK(room.stored("d", "b").at(3) == encoded(Value::of_bool(true)));
  CHECK(room.stored("d", "t").at(4) == encoded(Value::of_text("on")));
  CHECK(room.stored("d", "x").at(5) == encoded(Value::of_bytes("\xff", "a/b")));
  CHECK(room.pipeline.counters().batches == 1);
  CHECK(room.pipeline.counters().readings == 5);
  CHECK(room.pipeline.counters().failed_batches == 0);
}

TEST_CASE("ingest: writing a reading again replaces it") {
  Room room;
  REQUIRE(room.ingest({reading("d", "s", 1, Value::of_float64(1))}).ok());
  REQUIRE(room.ingest({reading("d", "s", 1, Value::of_int64(2)),
                       reading("d", "s", 1, Value::of_int64(3))})
              .ok());
  CHECK(room.stored("d", "s").size() == 1);
  CHECK(room.stored("d", "s").at(1) == encoded(Value::of_int64(3)));
}

TEST_CASE("ingest: an empty batch is nothing") {
  Room room;
  const std::uint64_t batches = room.engine.stats().batches;
  CHECK(room.ingest(std::vector<wire::Reading>{}).ok());
  CHECK(room.engine.stats().batches == batches);
  CHECK(room.pipeline.counters().batches == 0);
}

TEST_CASE("ingest: one bad reading refuses the batch and says which") {
  Room room;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Status status = room.ingest(
      {reading("d", "s", 1, Value::of_float64(1)), reading("d", "bad", 1, Value::of_float64(nan))});
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message().find("reading 2, d/bad: ") == 0);
  status = room.ingest(
      {reading("d", "s", 1, Value::of_float64(1)), reading("d", "a/b", 1, Value::of_float64(1))});
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message().find("reading 2") == 0);
  CHECK(room.stored("d", "s").empty());
  CHECK(room.catalog->series_count() == 0);
  CHECK(room.pipeline.counters().failed_batches == 2);
}

TEST_CASE("ingest: a failed write stores nothing and can be tried again") {
  Room room;
  const std::vector<wire::Reading> readings = {reading("d", "s", 1, Value::of_float64(1))};
  for (const Status& status : {out_of_space("full"), io_error("bad"), busy("wal limit")}) {
    room.engine.fail_next_write(status);
    CHECK(room.ingest(readings).code() == status.code());
    CHECK(room.stored("d", "s").empty());
    CHECK(room.catalog->series_count() == 0);
  }
  REQUIRE(room.ingest(readings).ok());
  CHECK(room.stored("d", "s").size() == 1);
  CHECK(room.catalog->series_count() == 1);
  CHECK(catalog::Catalog::open(room.engine, {}).value()->series_count() == 1);
  CHECK(room.pipeline.counters().failed_batches == 3);
  CHECK(room.pipeline.counters().batches == 1);
}

TEST_CASE("ingest: readings without a time get that of their arrival, none twice in a series") {
  Room room;
  constexpr std::int64_t kNow = test::ManualClock::kStartWallNs;
  REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(1)),
                       reading("d", "b", std::nullopt, Value::of_int64(2)),
                       reading("d", "a", std::nullopt, Value::of_int64(3)),
                       reading("d", "b", 7, Value::of_int64(4))})
              .ok());
  CHECK(room.stored("d", "a").at(kNow) == encoded(Value::of_int64(1)));
  CHECK(room.stored("d", "a").at(kNow + 1) == encoded(Value::of_int64(3)));
  CHECK(room.stored("d", "b").at(kNow) == encoded(Value::of_int64(2)));
  CHECK(room.stored("d", "b").at(7) == encoded(Value::of_int64(4)));

  SUBCASE("nor by another batch while the clock stands still") {
    for (int i = 0; i < 10; ++i) {
      REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(i))}).ok());
    }
    CHECK(room.stored("d", "a").size() == 12);
  }
  SUBCASE("nor after a small step back") {
    room.clock.set_wall_ns(kNow - 1'000'000);
    REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(9))}).ok());
    CHECK(room.stored("d", "a").size() == 3);
    CHECK(room.stored("d", "a").rbegin()->first > kNow + 1);
  }
  SUBCASE("a clock that was set back by much is followed") {
    constexpr std::int64_t kHour = 3'600'000'000'000;
    room.clock.set_wall_ns(kNow - kHour);
    REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(9))}).ok());
    CHECK(room.stored("d", "a").count(kNow - kHour) == 1);
  }
}

TEST_CASE(
    "ingest: while the clock is known to be wrong, nothing is dated back to what has expired") {
  Room room;
  constexpr std::int64_t kKnown = test::ManualClock::kStartWallNs;
  constexpr std::int64_t kDay = 86'400'000'000'000;
  room.engine.set_expiry_now_ns(kKnown);
  room.clock.set_wall_ns(kKnown - 200 * kDay);
  room.clock.set_trust(ClockTrust::Untrusted);
  REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(1)),
                       reading("d", "b", 7, Value::of_int64(2))})
              .ok());
  room.clock.advance(kDay);
  REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(3))}).ok());
  const std::int64_t first = kKnown + room.clock.boot_ns() - kDay;
  CHECK(room.stored("d", "a").count(first) == 1);
  CHECK(room.stored("d", "a").count(first + kDay) == 1);
  CHECK(room.stored("d", "b").count(7) == 1);

  room.clock.set_trust(ClockTrust::Trusted);
  REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(4))}).ok());
  CHECK(room.stored("d", "a").count(kKnown - 199 * kDay) == 1);

  room.clock.set_trust(ClockTrust::Untrusted);
  room.clock.set_wall_ns(kKnown + 300 * kDay);
  REQUIRE(room.ingest({reading("d", "a", std::nullopt, Value::of_int64(5))}).ok());
  CHECK(room.stored("d", "a").count(kKnown + 300 * kDay) == 1);
}

TEST_CASE("ingest: a batch over the engine's limit is written in pieces, all of them") {
  Room room;
  const std::string big(std::size_t{3} << 20, 'x');
  std::vector<wire::Reading> readings;
  for (int i = 0; i < 12; ++i) readings.push_back(reading("d", "s", i, Value::of_text(big)));
  const std::uint64_t before = room.engine.stats().batches;
  REQUIRE(room.ingest(readings).ok());
  CHECK(room.engine.stats().batches == before + 2);
  CHECK(room.stored("d", "s").size() == 12);
  CHECK(room.catalog->series_count() == 1);
}

TEST_CASE("ingest: the largest value passes") {
  Room room;
  const std::string big(wire::kEncodedValueMaxBytes - 1, 'x');
  REQUIRE(room.ingest({reading("d", "s", 1, Value::of_text(big)),
                       reading("d", "s", 2, Value::of_text(big)),
                       reading("d", "s", 3, Value::of_text(big))})
              .ok());
  CHECK(room.stored("d", "s").size() == 3);
  const std::string bigger(wire::kEncodedValueMaxBytes, 'x');
  CHECK(room.ingest({reading("d", "s", 4, Value::of_text(bigger))}).code() ==
        StatusCode::InvalidArgument);
}

TEST_CASE("ingest: records are durable with their readings, or not at all") {
  using Kind = ingest::RecordChange::Kind;
  Room room;
  const NamespaceId id = room.engine.create_namespace("records", {}).value();
  const auto value_of = [&](const char* key) {
    const auto found = room.engine.get(id, key, {});
    return found.ok() ? *found : "none";
  };
  const auto ingest = [&](const std::vector<wire::Reading>& readings,
                          const std::vector<ingest::RecordChange>& records) {
    wire::ReadingBatch batch;
    batch.readings = readings;
    const auto authorized = auth::authorize_write(room.principal, batch);
    REQUIRE(authorized.ok());
    const std::uint64_t syncs = room.engine.stats().wal_syncs;
    const Status status = room.pipeline.ingest(*authorized, nullptr, {}, records);
    if (status.ok()) CHECK(room.engine.stats().wal_syncs == syncs + 1);
    return status;
  };
  const wire::Reading one = reading("d", "s", 1, Value::of_int64(1));
  room.engine.fail_next_write(out_of_space("full"));
  CHECK(!ingest({one}, {{Kind::Put, id, "a", "1"}}).ok());
  CHECK(value_of("a") == "none");
  CHECK(room.stored("d", "s").empty());
  REQUIRE(ingest({one}, {{Kind::Put, id, "a", "1"}, {Kind::Put, id, "b", "1"}}).ok());
  CHECK(value_of("a") == "1");
  CHECK(room.stored("d", "s").size() == 1);
  // In their order, and without a reading.
  REQUIRE(ingest({}, {{Kind::Remove, id, "b", {}},
                      {Kind::Put, id, "b", "2"},
                      {Kind::Put, id, "a", "2"},
                      {Kind::Remove, id, "a", {}}})
              .ok());
  CHECK(value_of("a") == "none");
  CHECK(value_of("b") == "2");
  room.engine.fail_next_write(out_of_space("full"));
  CHECK(!ingest({}, {{Kind::Remove, id, "b", {}}}).ok());
  CHECK(value_of("b") == "2");
}

TEST_CASE("ingest: records are in no piece of a large batch but the last") {
  Room room;
  const NamespaceId id = room.engine.create_namespace("records", {}).value();
  const std::string big(wire::kEncodedValueMaxBytes - 1, 'x');
  wire::ReadingBatch batch;
  for (int i = 1; i <= 3; ++i) {
    batch.readings.push_back(reading("d", "s", i, Value::of_text(big)));
  }
  const auto authorized = auth::authorize_write(room.principal, batch);
  REQUIRE(authorized.ok());
  const ingest::RecordChange record{ingest::RecordChange::Kind::Put, id, "a", "1"};
  const std::uint64_t before = room.engine.stats().batches;
  REQUIRE(room.pipeline.ingest(*authorized, nullptr, {}, {&record, 1}).ok());
  const std::uint64_t pieces = room.engine.stats().batches - before;
  REQUIRE(pieces > 1);
  REQUIRE(room.engine.write({}, Durability::Sync).ok());
  for (std::uint64_t allowed = 0; allowed < pieces; ++allowed) {
    WriteBatch away;
    away.remove(id, "a");
    REQUIRE(room.engine.write(away, Durability::Sync).ok());
    room.engine.fail_writes_after(allowed, out_of_space("full"));
    CHECK(!room.pipeline.ingest(*authorized, nullptr, {}, {&record, 1}).ok());
    room.engine.fail_writes(ok());
    CHECK(!room.engine.get(id, "a", {}).ok());
  }
}

TEST_CASE("ingest: only the daemon writes to `_rejected`") {
  Room room;
  wire::Reading rejected = reading("d", "s", 1, Value::of_text("why"));
  rejected.namespace_name = wire::kRejectedNamespace;
  CHECK(room.ingest({rejected}).code() == StatusCode::NotAllowed);
  room.principal.kind = auth::PrincipalKind::Internal;
  CHECK(room.ingest({rejected}).ok());
}

TEST_CASE("ingest: many threads lose nothing") {
  Room room;
  constexpr int kThreads = 4;
  constexpr int kBatches = 50;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string own = "own" + std::to_string(t);
      for (int i = 0; i < kBatches; ++i) {
        const std::string fresh = "fresh" + std::to_string(i);
        const Status status =
            room.ingest({reading(own, "s", i, Value::of_int64(i)),
                         reading("shared", fresh, t, Value::of_int64(t)),
                         reading("shared", "untimed", std::nullopt, Value::of_int64(t))});
        if (!status.ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  for (int t = 0; t < kThreads; ++t) {
    CHECK(room.stored("own" + std::to_string(t), "s").size() == kBatches);
  }
  for (int i = 0; i < kBatches; ++i) {
    CHECK(room.stored("shared", "fresh" + std::to_string(i)).size() == kThreads);
  }
  CHECK(room.stored("shared", "untimed").size() == kThreads * kBatches);
  CHECK(room.pipeline.counters().readings == 3 * kThreads * kBatches);
}

TEST_CASE("the audit log tells each author's devices, however they take turns") {
  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random(1);
  test::TempDirectory directory;
  const auto catalog = catalog::Catalog::open(engine, {}).value();
  const auto log =
      audit::AuditLog::open(
          {.mode = audit::Mode::Strict, .head_directory = directory.path(), .runs_thread = false},
          {engine, posix_file_system(), clock, random})
          .value();
  ingest::IngestPipeline pipeline(engine, *catalog, clock, nullptr, nullptr, log.get());
  wire::ReadingBatch batch;
  for (const char* device : {"a", "b", "a", "c", "a"}) {
    wire::Reading& reading = batch.readings.emplace_back();
    reading.namespace_name = "default";
    reading.device = device;
    reading.sensor = "x";
    reading.value = Value::of_float64(1);
  }
  const auth::Principal listener{auth::PrincipalKind::Mqtt, "mqtt listener"};
  const auto authorized = auth::authorize_write(listener, batch);
  REQUIRE(authorized.ok());
  const ingest::Author authors[] = {{1, "one", "1"}, {2, "two", "2"}, {3, "one", "1"}};
  REQUIRE(pipeline.ingest(*authorized, nullptr, authors).ok());
  const auto cursor = audit::RecordCursor::open(*log, {}).value();
  std::vector<std::string> told;
  for (audit::Record record; cursor->next(record).value();) {
    std::string text = record.actor + " " + record.token;
    for (const audit::Target& target : record.targets) {
      for (const char* device : {"a", "b", "c"}) {
        if (log->names().of_device("default", device) == target.pseudonym) {
          text += std::string(" ") + device + std::to_string(target.count);
        }
      }
    }
    told.push_back(text);
  }
  CHECK(told == std::vector<std::string>{"mqtt listener  a1", "one 1 a1 b1 c1", "two 2 a1"});
}
