#include "query/query_service.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/query/listed.h"
#include "edgecase/machine.h"
#include "ingest/ingest_pipeline.h"
#include "query/cursors.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"
#include "wire/reading_format.h"

using namespace edgecase;
using wire::Aggregate;
using wire::Value;

namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// A store in memory, written through the pipeline.
struct QueryRoom {
  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  ingest::IngestPipeline pipeline{engine, *catalog, clock};
  query::QueryService service{engine, *catalog};
  auth::Principal principal{auth::PrincipalKind::Internal, "test"};

  void put(std::string_view namespace_name, std::string_view device, std::string_view sensor,
           std::int64_t time_ns, const Value& value) {
    wire::ReadingBatch batch;
    batch.readings.push_back({namespace_name, device, sensor, time_ns, value});
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    REQUIRE(pipeline.ingest(*authorized).ok());
  }
  void put(std::string_view sensor, std::int64_t time_ns, const Value& value) {
    put("default", "d", sensor, time_ns, value);
  }
};

wire::QueryRequest request_of(std::string_view selector) {
  wire::QueryRequest request;
  request.selection = wire::parse_selector(selector).value();
  return request;
}

// "d/s@5=1.5 ..." of a cursor run to its end.
std::string drain(query::ReadingCursor& cursor) {
  std::ostringstream text;
  wire::Reading reading;
  while (true) {
    const auto more = cursor.next(reading);
    REQUIRE_MESSAGE(more.ok(), more.status().to_string());
    if (!*more) break;
    if (reading.namespace_name != "default") text << reading.namespace_name << ":";
    text << reading.device << "/" << reading.sensor << "@" << *reading.time_ns << "=";
    std::string value;
    switch (reading.value.type) {
      case wire::ValueType::Float64: wire::append_double(reading.value.float64, value); break;
      case wire::ValueType::Int64: value = std::to_string(reading.value.int64) + "i"; break;
      case wire::ValueType::Bool: value = reading.value.boolean ? "true" : "false"; break;
      default: value = reading.value.text; break;
    }
    text << value << " ";
  }
  // The end stays the end.
  const auto again = cursor.next(reading);
  REQUIRE(again.ok());
  CHECK_FALSE(*again);
  return text.str();
}

std::string run(QueryRoom& room, const wire::QueryRequest& request) {
  auto cursor = room.service.query(room.principal, request);
  REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
  return drain(**cursor);
}

std::string aggregate(QueryRoom& room, std::string_view selector, Aggregate what,
                      std::int64_t every, bool descending = false) {
  wire::QueryRequest request = request_of(selector);
  request.aggregate = what;
  request.every_ns = every;
  request.descending = descending;
  return run(room, request);
}

}  // namespace

TEST_CASE("query: readings come by series, then time, either way") {
  QueryRoom room;
  for (const std::int64_t time : {30, -20, 10}) {
    room.put("b", time, Value::of_int64(time));
    room.put("a", time, Value::of_float64(static_cast<double>(time)));
  }
  room.put("default", "c", "x", 1, Value::of_bool(true));
  room.put("other", "d", "a", 1, Value::of_text("hi"));
  CHECK(run(room, request_of("*")) ==
        "c/x@1=true d/a@-20=-20 d/a@10=10 d/a@30=30 d/b@-20=-20i d/b@10=10i d/b@30=30i ");
  wire::QueryRequest request = request_of("d");
  request.descending = true;
  CHECK(run(room, request) ==
        "d/a@30=30 d/a@10=10 d/a@-20=-20 d/b@30=30i d/b@10=10i d/b@-20=-20i ");
  request = request_of("d/a");
  request.namespace_name = "";
  CHECK(run(room, request) == "d/a@-20=-20 d/a@10=10 d/a@30=30 other:d/a@1=hi ");
}

TEST_CASE("query: ranges are half open, at both ends of time too") {
  QueryRoom room;
  for (const std::int64_t time : {kMin, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, kMax}) {
    room.put("s", time, Value::of_bool(true));
  }
  const auto count = [&](std::int64_t from, std::optional<std::int64_t> to) {
    wire::QueryRequest request = request_of("d/s");
    request.from_ns = from;
    request.to_ns = to;
    const std::string forward = run(room, request);
    request.descending = true;
    const std::string backward = run(room, request);
    CHECK(forward.size() == backward.size());
    return std::count(forward.begin(), forward.end(), '=');
  };
  CHECK(count(kMin, std::nullopt) == 5);
  CHECK(count(kMin, kMax) == 4);
  CHECK(count(kMin, kMin) == 0);
  CHECK(count(kMin + 1, std::nullopt) == 4);
  CHECK(count(0, 1) == 1);
  CHECK(count(-1, 1) == 2);
  CHECK(count(2, std::nullopt) == 1);
  CHECK(count(kMax, std::nullopt) == 1);
  CHECK(count(5, 5) == 0);
}

TEST_CASE("query: the limit counts readings in all") {
  QueryRoom room;
  for (int i = 0; i < 3; ++i) {
    room.put("a", i, Value::of_int64(i));
    room.put("b", i, Value::of_int64(i));
  }
  const auto limited = [&](std::uint64_t limit, std::int64_t every = 0) {
    wire::QueryRequest request = request_of("*");
    request.limit = limit;
    request.every_ns = every;
    return run(room, request);
  };
  CHECK(limited(0).empty());
  CHECK(limited(1) == "d/a@0=0i ");
  CHECK(limited(4) == "d/a@0=0i d/a@1=1i d/a@2=2i d/b@0=0i ");
  CHECK(limited(100).size() == limited(6).size());
  CHECK(limited(2, 2) == "d/a@0=0.5 d/a@2=2 ");
}

TEST_CASE("query: what is missing, wrong or not allowed") {
  QueryRoom room;
  room.put("s", 1, Value::of_int64(1));
  const auto code = [&](const std::string& namespace_name, std::string_view selector) {
    wire::QueryRequest request = request_of(selector);
    request.namespace_name = namespace_name;
    return room.service.query(room.principal, request).status().code();
  };
  CHECK(code("default", "d/s") == StatusCode::Ok);
  CHECK(code("default", "d/x") == StatusCode::NotFound);
  CHECK(code("default", "x/s") == StatusCode::NotFound);
  CHECK(code("default", "x/*") == StatusCode::Ok);
  CHECK(code("default", "x") == StatusCode::Ok);
  CHECK(code("", "x/y") == StatusCode::NotFound);
  CHECK(code("nowhere", "*") == StatusCode::NotFound);
  CHECK(code("_rejected", "*") == StatusCode::Ok);
  CHECK(code("_catalog", "*") == StatusCode::NotAllowed);

  wire::QueryRequest request = request_of("d/s");
  request.from_ns = 2;
  request.to_ns = 1;
  CHECK(room.service.query(room.principal, request).status().code() == StatusCode::InvalidArgument);
  request = request_of("d/s");
  request.every_ns = -1;
  CHECK(room.service.query(room.principal, request).status().code() == StatusCode::InvalidArgument);
  QueryRoom empty;
  CHECK(run(empty, request_of("*")).empty());
}

TEST_CASE("query: all namespaces leave out `_rejected`, which is read by its name") {
  QueryRoom room;
  room.put("default", "d", "s", 1, Value::of_int64(1));
  room.put("_rejected", "d", "s", 1, Value::of_int64(2));
  wire::QueryRequest request = request_of("*");
  request.namespace_name = "";
  CHECK(run(room, request) == "d/s@1=1i ");
  request.namespace_name = "_rejected";
  CHECK(run(room, request) == "_rejected:d/s@1=2i ");
}

TEST_CASE("query: a cursor sees the store as it was, and lets go of it at its end") {
  QueryRoom room;
  room.put("s", 1, Value::of_int64(1));
  room.put("s", 2, Value::of_int64(2));
  REQUIRE(room.engine.open_views() == 0);
  {
    auto cursor = room.service.query(room.principal, request_of("d/s")).value();
    CHECK(room.engine.open_views() == 1);
    room.put("s", 3, Value::of_int64(3));
    room.put("s", 1, Value::of_int64(9));
    CHECK(drain(*cursor) == "d/s@1=1i d/s@2=2i ");
    CHECK(room.engine.open_views() == 0);
  }
  CHECK(run(room, request_of("d/s")) == "d/s@1=9i d/s@2=2i d/s@3=3i ");
  {
    auto cursor = room.service.query(room.principal, request_of("d/s")).value();
    wire::Reading reading;
    REQUIRE(*cursor->next(reading));
  }
  CHECK(room.engine.open_views() == 0);
}

TEST_CASE("query: windows are aligned to the epoch, before it too") {
  CHECK(query::window_start(0, 10) == 0);
  CHECK(query::window_start(9, 10) == 0);
  CHECK(query::window_start(10, 10) == 10);
  CHECK(query::window_start(-1, 10) == -10);
  CHECK(query::window_start(-10, 10) == -10);
  CHECK(query::window_start(-11, 10) == -20);
  CHECK(query::window_start(kMax, kMax) == kMax);
  CHECK(query::window_start(kMin, kMax) == kMin);
  CHECK(query::window_start(kMin + 1, 10) == kMin);  // its window begins before time does

  QueryRoom room;
  for (const std::int64_t time : {-25, -20, -11, -1, 0, 5, 10, 35}) {
    room.put("s", time, Value::of_int64(time));
  }
  CHECK(aggregate(room, "d/s", Aggregate::Count, 10) ==
        "d/s@-30=1i d/s@-20=2i d/s@-10=1i d/s@0=2i d/s@10=1i d/s@30=1i ");
  CHECK(aggregate(room, "d/s", Aggregate::Sum, 10, true) ==
        "d/s@30=35i d/s@10=10i d/s@0=5i d/s@-10=-1i d/s@-20=-31i d/s@-30=-25i ");
  CHECK(aggregate(room, "d/s", Aggregate::First, 20, true) ==
        "d/s@20=35i d/s@0=0i d/s@-20=-20i d/s@-40=-25i ");
  CHECK(aggregate(room, "d/s", Aggregate::Last, 20) ==
        "d/s@-40=-25i d/s@-20=-1i d/s@0=10i d/s@20=35i ");
}

TEST_CASE("query: windows at both ends of time hold what lies in them") {
  QueryRoom room;
  for (const std::int64_t time : {kMin, kMin + 1, kMax - 1, kMax}) {
    room.put("s", time, Value::of_int64(1));
  }
  for (const bool descending : {false, true}) {
    const std::string got =
        aggregate(room, "d/s", Aggregate::Count, std::int64_t{3'600'000'000'000}, descending);
    CHECK(std::count(got.begin(), got.end(), '=') == 2);
    CHECK(got.find("=2i") != std::string::npos);
  }
  CHECK(aggregate(room, "d/s", Aggregate::Count, 0) == "d/s@" + std::to_string(kMin) + "=4i ");
}

TEST_CASE("query: an aggregate without windows is one row a series, at the range's beginning") {
  QueryRoom room;
  for (const std::int64_t time : {5, 10, 20}) {
    room.put("a", time, Value::of_float64(static_cast<double>(time)));
    room.put("b", time, Value::of_int64(time));
  }
  for (const bool descending : {false, true}) {
    wire::QueryRequest request = request_of("*");
    request.aggregate = Aggregate::Max;
    request.descending = descending;
    CHECK(run(room, request) == "d/a@5=20 d/b@5=20i ");
    request.from_ns = 7;
    CHECK(run(room, request) == "d/a@7=20 d/b@7=20i ");
    request.to_ns = 20;
    CHECK(run(room, request) == "d/a@7=10 d/b@7=10i ");
    request.from_ns = 100;
    request.to_ns.reset();
    CHECK(run(room, request).empty());
  }
}

TEST_CASE("query: windows without a number have no row") {
  QueryRoom room;
  room.put("s", 1, Value::of_text("on"));
  room.put("s", 11, Value::of_text("off"));
  room.put("s", 12, Value::of_int64(4));
  room.put("s", 21, Value::of_bytes("x", ""));
  CHECK(aggregate(room, "d/s", Aggregate::Mean, 10) == "d/s@10=4 ");
  CHECK(aggregate(room, "d/s", Aggregate::Count, 10) == "d/s@0=1i d/s@10=2i d/s@20=1i ");
  CHECK(aggregate(room, "d/s", Aggregate::Last, 10) == "d/s@0=on d/s@10=4i d/s@20=x ");
  CHECK(aggregate(room, "d/s", Aggregate::Stddev, 10).empty());
}

TEST_CASE("query: minmax gives the least and the greatest reading of each window") {
  QueryRoom room;
  for (const auto& [time, value] : {std::pair(1, 3.0), {4, 9.0}, {7, 2.0}, {9, 9.0}})
    room.put("s", time, Value::of_float64(value));
  room.put("s", 12, Value::of_int64(5));
  room.put("s", 23, Value::of_text("x"));
  CHECK(aggregate(room, "d/s", Aggregate::MinMax, 10) == "d/s@4=9 d/s@7=2 d/s@12=5i ");
  CHECK(aggregate(room, "d/s", Aggregate::MinMax, 10, true) == "d/s@12=5i d/s@9=9 d/s@7=2 ");
  CHECK(aggregate(room, "d/s", Aggregate::MinMax, 0) == "d/s@4=9 d/s@7=2 ");
}

TEST_CASE("query: windows without an aggregate are means") {
  QueryRoom room;
  room.put("s", 1, Value::of_int64(1));
  room.put("s", 2, Value::of_int64(2));
  wire::QueryRequest request = request_of("d/s");
  request.every_ns = 10;
  CHECK(run(room, request) == "d/s@0=1.5 ");
}

TEST_CASE("query: last is the newest of each series") {
  QueryRoom room;
  for (const std::int64_t time : {-5, 1, 7}) {
    room.put("a", time, Value::of_int64(time));
    room.put("b", -time, Value::of_int64(time));
  }
  auto cursor =
      room.service.last(room.principal, "default", wire::parse_selector("*").value()).value();
  CHECK(drain(*cursor) == "d/a@7=7i d/b@5=-5i ");
  CHECK(room.engine.open_views() == 0);
  CHECK(room.service.last(room.principal, "default", wire::parse_selector("d/x").value())
            .status()
            .code() == StatusCode::NotFound);
}

TEST_CASE("query: what is stored of series and devices") {
  QueryRoom room;
  constexpr std::int64_t kApartNs = 1'000'000'000;
  for (int i = 0; i < 11; ++i) {
    room.put("default", "a", "x", i * kApartNs, Value::of_float64(1));
    room.put("default", "a", "y", 2 * i * kApartNs, Value::of_float64(1));
  }
  room.put("default", "b", "x", -1, Value::of_float64(1));
  const auto all = wire::parse_selector("*").value();
  const auto series =
      test::all_of<query::SeriesInfo>(room.service.list_series(room.principal, "default", all));
  REQUIRE(series.size() == 3);
  CHECK(series[0].device == "a");
  CHECK(series[0].sensor == "x");
  CHECK(series[0].count == 11);
  CHECK(series[0].first_ns == 0);
  CHECK(series[0].last_ns == 10 * kApartNs);
  CHECK(series[0].readings_per_second == doctest::Approx(1));
  CHECK(series[0].stored_bytes > 0);
  CHECK(series[1].readings_per_second == doctest::Approx(0.5));
  CHECK(series[2].first_ns == -1);
  CHECK(series[2].readings_per_second == 0);

  const auto devices =
      test::all_of<query::DeviceInfo>(room.service.list_devices(room.principal, "", all));
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].device == "a");
  CHECK(devices[0].series == 2);
  CHECK(devices[0].count == 22);
  CHECK(devices[0].first_ns == 0);
  CHECK(devices[0].last_ns == 20 * kApartNs);
  CHECK(devices[0].readings_per_second == doctest::Approx(1.5));
  CHECK(devices[1].series == 1);
  CHECK(room.engine.open_views() == 0);
  CHECK(room.service.list_devices(room.principal, "default", wire::parse_selector("x/y").value())
            .status()
            .code() == StatusCode::NotFound);
}

TEST_CASE("query: read errors come out as errors, damaged values are left out and named") {
  QueryRoom room;
  room.put("s", 1, Value::of_int64(1));
  auto cursor = room.service.query(room.principal, request_of("d/s")).value();
  room.engine.fail_next_read(unavailable("values drive is gone"));
  wire::Reading reading;
  CHECK(cursor->next(reading).status().code() == StatusCode::Unavailable);

  const auto id = room.catalog->find("default", "d", "s").value().id;
  WriteBatch batch;
  batch.put(id.namespace_id, wire::make_reading_key({id.device, id.sensor, 2}), "\x09rubbish");
  REQUIRE(room.engine.write(batch, Durability::Sync).ok());
  for (const std::int64_t every : {0, 10}) {
    wire::QueryRequest request = request_of("d/s");
    request.every_ns = every;
    request.from_ns = 2;
    cursor = room.service.query(room.principal, request).value();
    const auto more = cursor->next(reading);
    REQUIRE(more.ok());
    CHECK_FALSE(*more);
    const auto left_out = cursor->left_out()->named();
    REQUIRE(left_out.size() == 1);
    CHECK(left_out[0].device == "d");
    CHECK(left_out[0].why.code() == StatusCode::Corruption);
  }
}

TEST_CASE("query: windows agree with sums made by hand, whatever the times") {
  const std::uint64_t seed = 2025;
  INFO("seed " << seed);
  SeededRandom random(seed);
  for (int round = 0; round < 60; ++round) {
    QueryRoom room;
    std::map<std::int64_t, std::int64_t> model;
    for (int i = 0; i < 60; ++i) {
      const auto time = static_cast<std::int64_t>(random.below(2'000)) - 1'000;
      const auto value = static_cast<std::int64_t>(random.below(100)) - 50;
      model[time] = value;
      room.put("s", time, Value::of_int64(value));
    }
    const auto every = static_cast<std::int64_t>(1 + random.below(300));
    const auto from = static_cast<std::int64_t>(random.below(2'000)) - 1'000;
    const auto to = from + static_cast<std::int64_t>(random.below(1'500));
    std::map<std::int64_t, std::int64_t> sums;
    for (const auto& [time, value] : model) {
      if (time < from || time >= to) continue;
      std::int64_t start = time;
      while (start % every != 0) --start;
      sums[start] += value;
    }
    std::string forward, backward;
    for (const auto& [start, sum] : sums) {
      const std::string row = "d/s@" + std::to_string(start) + "=" + std::to_string(sum) + "i ";
      forward += row;
      backward.insert(0, row);
    }
    wire::QueryRequest request = request_of("d/s");
    request.from_ns = from;
    request.to_ns = to;
    request.every_ns = every;
    request.aggregate = Aggregate::Sum;
    CHECK(run(room, request) == forward);
    request.descending = true;
    CHECK(run(room, request) == backward);
  }
}
