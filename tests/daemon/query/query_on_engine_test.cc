// The way in and out on the engine itself: what it answers must be what the one in memory answers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/query/listed.h"
#include "edgecase/machine.h"
#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"
#include "support/test_data.h"
#include "support/test_share.h"
#include "wire/reading_format.h"

using namespace edgecase;
using wire::Aggregate;
using wire::Value;

namespace {

constexpr std::int64_t kEngineSecond = 1'000'000'000;
constexpr std::uint64_t kTelemetryMessages = 25'335;  // in the file

std::unique_ptr<catalog::Catalog> open_catalog(Engine& engine) {
  const catalog::CatalogLimits limits;
  auto catalog = catalog::Catalog::open(engine, limits);
  REQUIRE_MESSAGE(catalog.ok(), catalog.status().to_string());
  return std::move(catalog).value();
}

// Everything above an engine.
struct Floor {
  explicit Floor(Engine& below) : engine(below) {}

  Engine& engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = open_catalog(engine);
  ingest::IngestPipeline pipeline{engine, *catalog, clock};
  query::QueryService service{engine, *catalog};
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};

  void ingest(const wire::ReadingBatch& batch) {
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    const Status status = pipeline.ingest(*authorized);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
  }
  std::string drain(Result<std::unique_ptr<query::ReadingCursor>> cursor) {
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    std::string text;
    wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
    wire::Reading reading;
    while (true) {
      const auto more = (*cursor)->next(reading);
      if (!more.ok()) FAIL(more.status().to_string());
      if (!*more) return text;
      formatter.reading(reading, text);
    }
  }
  std::string query(const wire::QueryRequest& request) {
    return drain(service.query(principal, request));
  }
};

class RealEngine {
 public:
  RealEngine() { open(); }
  void open() {
    engine_.reset();
    Options options;
    options.metadata_directory = directory_ / "m";
    options.values_directory = directory_ / "v";
    options.memory_limit_bytes = 8u << 20;
    options.memtable_bytes = 1u << 20;  // many flushes
    options.group_span_ns = 3600 * kEngineSecond;
    auto engine = Engine::open(
        options, {posix_file_system(), system_clock(), system_random(), *executor_, listener_});
    REQUIRE_MESSAGE(engine.ok(), engine.status().to_string());
    engine_ = std::move(engine).value();
  }
  Engine& operator*() { return *engine_; }

 private:
  test::TempDirectory directory_;
  EventListener listener_;
  std::unique_ptr<Executor> executor_ = make_thread_executor();
  std::unique_ptr<Engine> engine_;
};

// Batches as devices would send them: real telemetry where there is some, and every type of value.
std::vector<wire::ReadingBatch> make_batches() {
  std::vector<wire::ReadingBatch> batches(1);
  const std::uint64_t seed = 77;
  SeededRandom random(seed);
  const std::uint64_t readings = std::max<std::uint64_t>(test::share_of(6'000), 1'500);
  for (std::uint64_t i = 0; i < readings; ++i) {
    if (batches.back().readings.size() > 500) batches.emplace_back();
    wire::ReadingBatch& batch = batches.back();
    const auto time = (static_cast<std::int64_t>(random.below(4'000)) - 2'000) * kEngineSecond;
    const std::string device = "device " + std::to_string(random.below(5));
    const std::string text(random.below(3) == 0 ? 6'000 : random.below(40), 'x');
    const Value values[] = {Value::of_float64(static_cast<double>(random.below(1'000)) / 10),
                            Value::of_int64(static_cast<std::int64_t>(random.next())),
                            Value::of_bool(random.below(2) == 0), Value::of_text(batch.keep(text)),
                            Value::of_bytes(batch.keep(text), "text/plain")};
    const std::uint64_t kind = random.below(5);
    batch.readings.push_back({"default", batch.keep(device),
                              batch.keep("sensor" + std::to_string(kind)), time, values[kind]});
  }
  const auto data = test::read_test_data("mqtt_env_telemetry_h00-12.jsonl.gz");
  std::istringstream lines(data.value_or(""));
  std::uint64_t left = test::share_of(kTelemetryMessages);
  for (std::string line; left > 0 && std::getline(lines, line); --left) {
    if (batches.back().readings.size() > 2'000) batches.emplace_back();
    wire::ReadingBatch& batch = batches.back();
    const auto message = nlohmann::json::parse(line);
    const std::string_view device = batch.keep(message["device_id"].get<std::string>());
    const auto time_ns = static_cast<std::int64_t>(message["ts"].get<double>() * 1e9);
    for (const auto& [name, value] : message["data"].items()) {
      const Value stored = value.is_boolean() ? Value::of_bool(value.get<bool>())
                                              : Value::of_float64(value.get<double>());
      batch.readings.push_back({"telemetry", device, batch.keep(name), time_ns, stored});
    }
  }
  return batches;
}

std::vector<wire::QueryRequest> make_requests() {
  std::vector<wire::QueryRequest> requests;
  for (const bool descending : {false, true}) {
    wire::QueryRequest request;
    request.namespace_name = "";
    request.descending = descending;
    requests.push_back(request);
    request.namespace_name = "default";
    request.from_ns = -300 * kEngineSecond;
    request.to_ns = 700 * kEngineSecond;
    requests.push_back(request);
    request.limit = 321;
    requests.push_back(request);
    request.limit.reset();
    request.every_ns = 60 * kEngineSecond;
    for (const Aggregate aggregate : {Aggregate::First, Aggregate::Max, Aggregate::Count}) {
      request.aggregate = aggregate;
      requests.push_back(request);
    }
    request.every_ns = 0;
    request.namespace_name = "";
    request.aggregate = Aggregate::P95;
    requests.push_back(request);
  }
  return requests;
}

void check_same(Floor& real, Floor& model) {
  for (const wire::QueryRequest& request : make_requests()) {
    const std::string got = real.query(request);
    CHECK(!got.empty());
    CHECK((got == model.query(request)));  // not printed: megabytes
  }
  const wire::Selector everything;
  CHECK(real.drain(real.service.last(real.principal, "", everything)) ==
        model.drain(model.service.last(model.principal, "", everything)));
  const auto got =
      test::all_of<query::SeriesInfo>(real.service.list_series(real.principal, "", everything));
  const auto want =
      test::all_of<query::SeriesInfo>(model.service.list_series(model.principal, "", everything));
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(got[i].device + "/" + got[i].sensor);
    CHECK(got[i].sensor == want[i].sensor);
    CHECK(got[i].count == want[i].count);
    CHECK(got[i].first_ns == want[i].first_ns);
    CHECK(got[i].last_ns == want[i].last_ns);
  }
}

}  // namespace

TEST_CASE("on the engine: queries answer as the model does, flushed, reopened or neither") {
  RealEngine real_engine;
  test::ModelEngine model_engine;
  auto real = std::make_unique<Floor>(*real_engine);
  Floor model(model_engine);
  std::vector<wire::ReadingBatch> batches = make_batches();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    real->ingest(batches[i]);
    model.ingest(batches[i]);
    if (i == batches.size() / 2) REQUIRE((*real_engine).flush().ok());
  }
  check_same(*real, model);
  REQUIRE((*real_engine).flush().ok());
  check_same(*real, model);
  real.reset();
  real_engine.open();
  real = std::make_unique<Floor>(*real_engine);
  check_same(*real, model);
}

TEST_CASE("on the engine: a cursor keeps its snapshot over flushes and writes") {
  RealEngine real_engine;
  Floor floor(*real_engine);
  const auto put = [&](std::int64_t value) {
    wire::ReadingBatch batch;
    for (std::int64_t i = 0; i < 2'000; ++i) {
      batch.readings.push_back({"default", "d", "s", i, Value::of_int64(value)});
    }
    floor.ingest(batch);
  };
  put(1);
  const wire::QueryRequest everything;
  auto cursor = floor.service.query(floor.principal, everything).value();
  wire::Reading reading;
  REQUIRE(*cursor->next(reading));
  for (std::int64_t value = 2; value < 5; ++value) {
    put(value);
    REQUIRE((*real_engine).flush().ok());
  }
  std::int64_t seen = 1;
  while (*cursor->next(reading)) {
    CHECK(reading.value.int64 == 1);
    CHECK(reading.time_ns == seen);
    ++seen;
  }
  CHECK(seen == 2'000);
}

TEST_CASE("on the engine: windows of hours are answered by metadata, as by values") {
  RealEngine real_engine;
  auto floor = std::make_unique<Floor>(*real_engine);
  const auto put = [&](std::int64_t from_s, std::int64_t step_s, std::int64_t count) {
    wire::ReadingBatch batch;
    for (std::int64_t i = 0; i < count; ++i)
      batch.readings.push_back({"default", "d", "s", (from_s + i * step_s) * kEngineSecond,
                                Value::of_float64(static_cast<double>(i % 97) / 10 - 3)});
    floor->ingest(batch);
  };
  // Across 1970, from the middle of an hour on.
  put(-5'000, 1, 12'000);
  REQUIRE((*real_engine).flush().ok());
  const auto ask = [&](Aggregate aggregate, std::int64_t every_s, bool descending,
                       query::ReadAccount& account) {
    wire::QueryRequest request;
    request.from_ns = std::numeric_limits<std::int64_t>::min();
    request.aggregate = aggregate;
    request.every_ns = every_s * kEngineSecond;
    request.descending = descending;
    auto cursor = floor->service.query(floor->principal, request);
    REQUIRE(cursor.ok());
    std::vector<std::string> rows;
    wire::Reading reading;
    for (;;) {
      const auto more = (*cursor)->next(reading);
      REQUIRE(more.ok());
      if (!*more) break;
      wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
      formatter.reading(reading, rows.emplace_back());
    }
    account = (*cursor)->account();
    if (descending) std::reverse(rows.begin(), rows.end());
    return rows;
  };
  constexpr Aggregate kAll[] = {Aggregate::Count, Aggregate::Min,   Aggregate::Max,
                                Aggregate::Sum,   Aggregate::Mean,  Aggregate::First,
                                Aggregate::Last,  Aggregate::Stddev};
  const auto compare = [&](bool is_whole) {
    for (const Aggregate aggregate : kAll) {
      for (const std::int64_t every_s : {3'600, 7'200, 86'400, 600, 0}) {
        CAPTURE(static_cast<int>(aggregate));
        CAPTURE(every_s);
        query::ReadAccount told, read;
        const auto rows = ask(aggregate, every_s, false, told);
        // What stddev comes to hangs on their order.
        const auto reversed = ask(aggregate, every_s, true, read);
        if (aggregate != Aggregate::Stddev) CHECK(rows == reversed);
        CHECK(read.groups_from_metadata == told.groups_from_metadata);
        CHECK(read.readings_decoded == told.readings_decoded);
        CHECK(told.readings_from_metadata + told.readings_decoded == 12'000);
        if (aggregate == Aggregate::Stddev) CHECK(told.readings_from_metadata == 0);
        if (aggregate == Aggregate::Stddev || every_s == 600) continue;
        CHECK(told.readings_from_metadata > 0);
        if (is_whole) CHECK(told.readings_decoded == 0);
      }
    }
  };
  compare(true);
  put(-1'000, 7, 300);  // late ones lie in memory, across groups
  compare(false);
  REQUIRE((*real_engine).flush().ok());
  compare(false);
}

TEST_CASE("on the engine: windows asked for again are those of decoded groups, and decode none") {
  RealEngine real_engine;
  Floor floor(*real_engine);
  wire::ReadingBatch batch;
  // Across 1970; of two decimals, whose sums are none of doubles.
  for (std::int64_t i = 0; i < 9'000; ++i)
    batch.readings.push_back({"default", "d", "s", (i - 5'000) * kEngineSecond,
                              Value::of_float64(static_cast<double>(i * 7919 % 10'007) / 100)});
  floor.ingest(batch);
  REQUIRE((*real_engine).flush().ok());
  std::uint64_t groups = 0;  // that were decoded last
  const auto ask = [&](Aggregate aggregate, std::int64_t every_s, bool descending) {
    wire::QueryRequest request;
    request.from_ns = -4'983 * kEngineSecond;  // a group is cut
    request.aggregate = aggregate;
    request.every_ns = every_s * kEngineSecond;
    request.descending = descending;
    const std::uint64_t before = thread_reads().groups;
    std::istringstream text(floor.query(request));
    groups = thread_reads().groups - before;
    std::vector<std::string> rows;
    for (std::string line; std::getline(text, line);) rows.push_back(line);
    if (descending) std::reverse(rows.begin(), rows.end());
    return rows;
  };
  for (const std::int64_t every_s : {10, 7, 60}) {
    for (const Aggregate aggregate : {Aggregate::Mean, Aggregate::Sum, Aggregate::Count}) {
      CAPTURE(wire::aggregate_name(aggregate));
      CAPTURE(every_s);
      const auto decoded = ask(aggregate, every_s, true);
      const std::uint64_t all = groups;
      REQUIRE(all > 5);
      for (int again = 0; again < 3; ++again) CHECK(ask(aggregate, every_s, false) == decoded);
      CHECK(groups == 1);  // that is cut
    }
  }
  // What is erased is in no sum.
  const auto before = ask(Aggregate::Count, 10, false);
  WriteBatch erasing;
  const catalog::SeriesId id = floor.catalog->find("default", "d", "s")->id;
  erasing.erase_range(id.namespace_id, wire::make_reading_key({id.device, id.sensor, 0}),
                      wire::make_reading_key({id.device, id.sensor, 20 * kEngineSecond}));
  REQUIRE((*real_engine).write(erasing, Durability::Sync).ok());
  const auto after = ask(Aggregate::Count, 10, false);
  CHECK(after == [&] {
    auto left = before;
    std::erase_if(left, [](const std::string& each) {
      return each.find("1970-01-01T00:00:00.") != std::string::npos ||
             each.find("1970-01-01T00:00:10.") != std::string::npos;
    });
    return left;
  }());
  CHECK(after.size() + 2 == before.size());
}

TEST_CASE("listings of many series tell what each by itself does") {
  RealEngine store;
  Floor f(*store);
  constexpr int kDevices = 40, kSensors = 10;  // more than a listing looks at one by one
  SeededRandom random(5);
  for (int round = 0; round < 3; ++round) {
    wire::ReadingBatch batch;
    for (int i = 0; i < 4 * kDevices * kSensors; ++i) {
      const int series = i % (kDevices * kSensors);
      const std::string device = "d" + std::to_string(series / kSensors);
      const std::string sensor = "s" + std::to_string(series % kSensors);
      // Some replace what an earlier round wrote.
      const auto time_ns = static_cast<std::int64_t>(random.below(20)) * kEngineSecond;
      batch.readings.push_back({"default", batch.keep(device), batch.keep(sensor), time_ns,
                                Value::of_float64(static_cast<double>(i))});
    }
    f.ingest(batch);
    if (round < 2) REQUIRE((*store).flush().ok());
  }
  const auto all =
      test::all_of<query::SeriesInfo>(f.service.list_series(f.principal, "default", {}));
  REQUIRE(all.size() == kDevices * kSensors);
  std::uint64_t readings = 0;
  for (const query::SeriesInfo& info : all) {
    CAPTURE(info.device);
    CAPTURE(info.sensor);
    const auto one = test::all_of<query::SeriesInfo>(
        f.service.list_series(f.principal, "default", wire::Selector{info.device, info.sensor}));
    REQUIRE(one.size() == 1);
    CHECK(info.count == one[0].count);
    CHECK(info.first_ns == one[0].first_ns);
    CHECK(info.last_ns == one[0].last_ns);
    CHECK(info.readings_per_second == one[0].readings_per_second);
    CHECK(info.stored_bytes > 0);
    readings += info.count;
  }
  std::uint64_t of_devices = 0;
  for (const query::DeviceInfo& info :
       test::all_of<query::DeviceInfo>(f.service.list_devices(f.principal, "default", {})))
    of_devices += info.count;
  CHECK(of_devices == readings);
}

TEST_CASE("on the engine: readers and writers side by side see whole batches") {
  RealEngine real_engine;
  Floor floor(*real_engine);
  constexpr int kBatches = 60;
  std::thread writer([&] {
    for (int i = 0; i < kBatches; ++i) {
      wire::ReadingBatch batch;
      for (int j = 0; j < 50; ++j) {
        batch.readings.push_back({"default", "d", "s", i * 50 + j, Value::of_int64(i)});
      }
      const auto authorized = auth::authorize_write(floor.principal, batch);
      if (!floor.pipeline.ingest(*authorized).ok()) std::abort();
    }
  });
  std::uint64_t last_count = 0;
  while (last_count < kBatches * 50) {
    wire::QueryRequest request;
    request.aggregate = Aggregate::Count;
    auto cursor = floor.service.query(floor.principal, request).value();
    wire::Reading reading;
    const auto more = cursor->next(reading);
    if (!more.ok() || (*more && reading.value.int64 % 50 != 0)) break;
    if (!*more) continue;
    if (static_cast<std::uint64_t>(reading.value.int64) < last_count) break;
    last_count = static_cast<std::uint64_t>(reading.value.int64);
  }
  writer.join();
  CHECK(last_count == kBatches * 50);
}
