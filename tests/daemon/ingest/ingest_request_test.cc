#include "ingest/ingest_pipeline.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "audit/audit_log.h"
#include "edgecase/machine.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"
#include "wire/line_protocol.h"
#include "wire/reading.h"

using namespace edgecase;
using wire::Value;

namespace {

// A pipeline with fences, and optionally an audit log, on an engine in memory.
struct RequestRoom {
  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{1};
  test::TempDirectory directory;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  erase::Fences fences{engine.create_namespace("_erasures", {}).value(),
                       auth::Pseudonyms(Bytes(32, 'k'))};
  std::unique_ptr<audit::AuditLog> log;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  ingest::IngestBuffers buffers;  // of one request after another

  explicit RequestRoom(audit::Mode mode = audit::Mode::Off, ingest::DeviceRateLimits rates = {}) {
    log = audit::AuditLog::open(
              {.mode = mode, .head_directory = directory.path(), .runs_thread = false},
              {engine, posix_file_system(), clock, random})
              .value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock, nullptr, nullptr,
                                                        log.get(), &fences, rates);
  }
  // Readings of times [from, to) of two devices' sensor `s`, in one slice.
  Status add(ingest::IngestRequest& request, std::int64_t from, std::int64_t to,
             const Value& value = Value::of_int64(1)) {
    wire::ReadingBatch batch;
    for (std::int64_t at = from; at < to; ++at) {
      for (const char* const device : {"a", "b"})
        batch.readings.push_back({"default", device, "s", at, value});
    }
    ingest::Outcome outcome;
    return pipeline->add(request, *auth::authorize_write(principal, batch), outcome);
  }
  // Introduces all series, so that no slice brings new ones.
  void introduce() {
    ingest::IngestRequest request(principal, nullptr, 0, buffers);
    REQUIRE(add(request, 0, 1).ok());
    REQUIRE(pipeline->finish(request).ok());
  }
  std::map<std::string, std::map<std::int64_t, double>> stored() {
    std::map<std::string, std::map<std::int64_t, double>> all;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> names;
    NamespaceId id = 0;
    for (const catalog::SeriesEntry& entry : catalog->select("default", {"*", "*"})) {
      names[{entry.id.device, entry.id.sensor}] = entry.device + "/" + entry.sensor;
      id = entry.id.namespace_id;
    }
    for (auto at = engine.scan(id, {}, {}).value(); at->valid(); at->next()) {
      wire::ReadingKey key;
      Value value;
      REQUIRE(wire::decode_reading_key(at->key(), key));
      REQUIRE(wire::decode_value(at->value(), value));
      const bool is_float = value.type == wire::ValueType::Float64;
      all[names.at({key.device, key.sensor})][key.time_ns] =
          is_float ? value.float64 : static_cast<double>(value.int64);
    }
    return all;
  }
};

}  // namespace

TEST_CASE("ingest requests: slices of one request are one batch, with one sync, and one record") {
  RequestRoom room(audit::Mode::Batched);
  room.introduce();
  REQUIRE(room.log->flush().ok());
  const auto before = room.engine.stats();
  const auto counted = room.pipeline->counters();
  ingest::IngestRequest request(room.principal, nullptr, 100, room.buffers);
  for (std::int64_t from = 1; from < 31; from += 10)
    REQUIRE(room.add(request, from, from + 10).ok());
  CHECK(room.engine.stats().batches == before.batches);
  CHECK(room.stored().at("a/s").size() == 1);
  REQUIRE(room.pipeline->finish(request).ok());
  CHECK(room.engine.stats().batches == before.batches + 1);
  CHECK(room.engine.stats().wal_syncs == before.wal_syncs + 1);
  CHECK(room.stored().at("a/s").size() == 31);
  CHECK(room.stored().at("b/s").size() == 31);
  CHECK(room.pipeline->counters().batches == counted.batches + 1);
  CHECK(room.pipeline->counters().readings == counted.readings + 60);
  REQUIRE(room.pipeline->finish(request).ok());  // nothing is left
  CHECK(room.engine.stats().batches == before.batches + 1);

  REQUIRE(room.log->flush().ok());
  const auto cursor = audit::RecordCursor::open(*room.log, {}).value();
  std::vector<std::uint64_t> counts;
  for (audit::Record record; cursor->next(record).value();) {
    if (record.operation != "ingest") continue;
    REQUIRE(record.targets.size() == 2);
    CHECK(record.targets[0].count == record.targets[1].count);
    counts.push_back(record.targets[0].count);
  }
  CHECK(counts == std::vector<std::uint64_t>{1, 30});
}

TEST_CASE("ingest requests: what is gathered is bounded, and all of it durable at the end") {
  RequestRoom room;
  room.introduce();
  const auto before = room.engine.stats();
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  for (std::int64_t from = 1; from < 100'001; from += 1'000)
    REQUIRE(room.add(request, from, from + 1'000).ok());
  const std::uint64_t commits = room.engine.stats().batches - before.batches;
  CHECK(commits >= 2);
  CHECK(commits <= 4);
  CHECK(room.engine.stats().wal_syncs == before.wal_syncs);
  REQUIRE(room.pipeline->finish(request).ok());
  CHECK(room.engine.stats().wal_syncs == before.wal_syncs + 1);
  CHECK(room.stored().at("b/s").size() == 100'001);
}

TEST_CASE("ingest requests: a slice that is refused takes with it what waited") {
  RequestRoom room;
  room.introduce();
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  REQUIRE(room.add(request, 1, 10).ok());
  CHECK(room.add(request, 10, 11, Value::of_text("\xff")).code() == StatusCode::InvalidArgument);
  CHECK(room.stored().at("a/s").size() == 1);
  CHECK(room.pipeline->counters().failed_batches == 1);
  // Nobody waits for it: the gate is free.
  CHECK((room.fences.close(), true));
}

TEST_CASE("ingest requests: a drive that refuses is told at the end, and nothing is stored") {
  RequestRoom room(audit::Mode::Batched);
  room.introduce();
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  REQUIRE(room.add(request, 1, 10).ok());
  room.engine.fail_next_write(out_of_space("drive is full"));
  CHECK(room.pipeline->finish(request).code() == StatusCode::OutOfSpace);
  CHECK(room.stored().at("a/s").size() == 1);
  CHECK(room.pipeline->counters().readings == 2);
  CHECK(room.pipeline->counters().failed_batches == 1);
  CHECK((room.fences.close(), true));
}

TEST_CASE("ingest requests: values that are not copied, rates and followers do not wait") {
  RequestRoom room;
  room.introduce();
  const auto waits = [&room](std::int64_t at, const Value& value) {
    const std::uint64_t syncs = room.engine.stats().wal_syncs;
    ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
    REQUIRE(room.add(request, at, at + 1, value).ok());
    const bool waited = room.engine.stats().wal_syncs == syncs;
    REQUIRE(room.pipeline->finish(request).ok());
    CHECK(room.engine.stats().wal_syncs == syncs + 1);
    return waited;
  };
  CHECK(waits(2, Value::of_int64(1)));
  const std::string large(WriteBatch::kBorrowedMinBytes, 'x');
  CHECK(!waits(3, Value::of_text(large)));
  CHECK(waits(4, Value::of_text("short")));
  REQUIRE(room.pipeline->feed().read({}, [](const wire::Reading&) { return true; }).ok());
  CHECK(!waits(5, Value::of_int64(1)));

  RequestRoom limited(audit::Mode::Off, {.per_second = 1'000'000});
  limited.introduce();
  const std::uint64_t syncs = limited.engine.stats().wal_syncs;
  ingest::Pacing pacing;
  ingest::IngestRequest request(limited.principal, &pacing, 0, limited.buffers);
  REQUIRE(limited.add(request, 1, 2).ok());
  CHECK(limited.engine.stats().wal_syncs == syncs + 1);
}

TEST_CASE("ingest requests: few readings of new series wait, and their records go once") {
  RequestRoom room;
  const auto before = room.engine.stats();
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  REQUIRE(room.add(request, 1, 3).ok());
  REQUIRE(room.add(request, 3, 5).ok());
  CHECK(room.engine.stats().batches == before.batches);
  CHECK(room.catalog->series_count() == 0);
  REQUIRE(room.pipeline->finish(request).ok());
  CHECK(room.engine.stats().batches == before.batches + 1);
  CHECK(room.engine.stats().wal_syncs == before.wal_syncs + 1);
  // Eight readings, two devices and their sensors.
  CHECK(room.engine.stats().entries_written == before.entries_written + 12);
  CHECK(room.catalog->series_count() == 2);
  CHECK(room.stored().at("b/s").size() == 4);
  const auto again = catalog::Catalog::open(room.engine, {}).value();
  CHECK(again->select("default", {"*", "*"}).size() == 2);
  REQUIRE(room.add(request, 5, 6).ok());
  REQUIRE(room.pipeline->finish(request).ok());
  CHECK(room.engine.stats().entries_written == before.entries_written + 14);
}

TEST_CASE("ingest requests: many readings of new series are committed as they come") {
  RequestRoom room;
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  REQUIRE(room.add(request, 0, 300).ok());
  CHECK(room.catalog->series_count() == 0);
  REQUIRE(room.add(request, 300, 600).ok());
  CHECK(room.catalog->series_count() == 2);
  CHECK(room.stored().at("a/s").size() == 600);
  const std::uint64_t syncs = room.engine.stats().wal_syncs;
  REQUIRE(room.add(request, 600, 2'000).ok());
  CHECK(room.engine.stats().wal_syncs == syncs);
  REQUIRE(room.pipeline->finish(request).ok());
}

TEST_CASE("ingest requests: new series that were not stored are new to the next request, too") {
  RequestRoom room;
  {
    ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
    REQUIRE(room.add(request, 1, 10).ok());
    SUBCASE("the drive refuses") {
      room.engine.fail_next_write(out_of_space("drive is full"));
      CHECK(room.pipeline->finish(request).code() == StatusCode::OutOfSpace);
    }
    SUBCASE("a later slice is refused") {
      CHECK(room.add(request, 10, 11, Value::of_text("\xff")).code() ==
            StatusCode::InvalidArgument);
    }
    SUBCASE("the request breaks off") {}
  }
  CHECK(room.catalog->series_count() == 0);
  CHECK(room.catalog->select("default", {"*", "*"}).empty());
  room.introduce();
  CHECK(room.stored().at("a/s").size() == 1);
  const auto again = catalog::Catalog::open(room.engine, {}).value();
  CHECK(again->select("default", {"*", "*"}).size() == 2);
}

TEST_CASE("ingest requests: a rule that is set while new series wait holds for them, too") {
  RequestRoom room;
  room.introduce();
  const auto retention =
      retention::RetentionService::open(room.engine, *room.catalog, kRetentionForever).value();
  ingest::IngestPipeline pipeline(room.engine, *room.catalog, room.clock, retention.get());
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  wire::ReadingBatch batch;
  for (const char* const device : {"warm-1", "cold-1"})
    batch.readings.push_back({"default", device, "s", 1, Value::of_int64(1)});
  ingest::Outcome outcome;
  REQUIRE(pipeline.add(request, *auth::authorize_write(room.principal, batch), outcome).ok());
  constexpr std::int64_t kHour = 3'600'000'000'000;
  REQUIRE(retention->set({"default", wire::parse_selector("warm-*/*").value(), kHour}).ok());
  CHECK(room.engine.retention_rules().empty());
  REQUIRE(pipeline.finish(request).ok());
  REQUIRE(room.engine.retention_rules().size() == 1);
  CHECK(room.engine.retention_rules().front().retention_ns == kHour);
  const auto entry = room.catalog->find("default", "warm-1", "s").value();
  const wire::ReadingKey first{entry.id.device, 0, 0};
  CHECK(wire::make_reading_key(first).starts_with(room.engine.retention_rules().front().prefix));
}

TEST_CASE("ingest requests: an erasure waits for what was begun, and what follows it for its end") {
  RequestRoom room;
  room.introduce();
  ingest::IngestRequest request(room.principal, nullptr, 0, room.buffers);
  REQUIRE(room.add(request, 1, 2).ok());
  std::atomic<bool> begins{false};
  std::size_t seen = 0;
  std::thread eraser([&] {
    begins = true;
    const erase::Fences::Closed closed = room.fences.close();
    seen = room.stored().at("a/s").size();
  });
  while (!begins) std::this_thread::yield();
  // Also while it waits at the gate, which must not wait for itself.
  for (std::int64_t at = 2; at < 1'000; ++at) REQUIRE(room.add(request, at, at + 1).ok());
  REQUIRE(room.pipeline->finish(request).ok());
  eraser.join();
  CHECK(seen == 1'000);
  REQUIRE(room.add(request, 1'000, 1'001).ok());
  REQUIRE(room.pipeline->finish(request).ok());
  CHECK(room.stored().at("a/s").size() == 1'001);
}

TEST_CASE(
    "ingest requests: names that move or give way to others from slice to slice are told apart") {
  RequestRoom room;
  SeededRandom random(7);
  std::string body;
  std::map<std::string, std::map<std::int64_t, double>> wanted;
  for (std::int64_t at = 0; at < 20'000; ++at) {
    // In stretches, so that slices meet known names, with sets that are forgotten between.
    const std::uint64_t device = random.below(2) * 3'000 + static_cast<std::uint64_t>(at / 4);
    const std::string name = "d" + std::to_string(device % 4'000);
    body += "m,host=" + name;
    if (at % 3 == 0) body += ",place=x\\ y";  // a name that is built
    body += " value=" + std::to_string(at) + ",other=" + std::to_string(at) + ".5 " +
            std::to_string(at) + "\n";
    const std::string tags = at % 3 == 0 ? "{place=x y}" : "";
    wanted[name + "/m" + tags][at] = static_cast<double>(at);
    wanted[name + "/m.other" + tags][at] = static_cast<double>(at) + 0.5;
  }
  for (int round = 0; round < 2; ++round) {
    wire::LineProtocolDecoder decoder(body, {});
    ingest::IngestRequest request(room.principal, nullptr, body.size(), room.buffers);
    wire::ReadingBatch batch;
    ingest::Outcome outcome;
    for (int slice = 0; decoder.next(batch); ++slice) {
      REQUIRE(
          room.pipeline->add(request, *auth::authorize_write(room.principal, batch), outcome).ok());
      if (slice % 5 == 4) batch.clear();
      batch.clear_readings();
    }
    REQUIRE(room.pipeline->finish(request).ok());
    CHECK(room.stored() == wanted);
  }
}
