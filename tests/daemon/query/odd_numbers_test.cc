// Numbers and times at which arithmetic goes wrong: windows of them are the same whether values are
// read or metadata tells of them, and what they must be.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "daemon/query/engine_room.h"
#include "wire/reading_format.h"

using namespace edgecase;
using wire::Aggregate;
using wire::Value;

namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

// "VALUE,TYPE" of each window, with the times before it where `with_times`.
std::string windows_of(test::EngineRoom& room, Aggregate aggregate, std::int64_t every_ns,
                       bool descending = false, bool with_times = false) {
  wire::QueryRequest request;
  request.aggregate = aggregate;
  request.every_ns = every_ns;
  request.descending = descending;
  auto cursor = room.service->query(room.principal, request);
  REQUIRE(cursor.ok());
  wire::ReadingFormatter csv(wire::ReadingFormat::Csv);
  wire::Reading reading;
  std::string all;
  for (;;) {
    const auto more = (*cursor)->next(reading);
    if (!more.ok()) return more.status().message();
    if (!*more) return all;
    std::string line;
    csv.reading(reading, line);
    line.pop_back();
    const std::size_t value = line.find(',', line.find('T'));
    if (!all.empty()) all += ' ';
    if (with_times) all += std::to_string(*reading.time_ns) + '=';
    all += line.substr(value + 1);
  }
}

}  // namespace

TEST_CASE("odd numbers: windows are what they must be, read or told of") {
  struct Case {
    std::string what;
    Value (*value)(int i);
    std::string sum, min, max, last;  // of 900
  };
  const Case cases[] = {
      {"ints beyond 2^53", [](int i) { return Value::of_int64((std::int64_t{1} << 53) + i); },
       "8106479329267297350,int" /* 900 * 2^53 + 899 * 450 */, "9007199254740992,int",
       "9007199254741891,int", "9007199254741891,int"},
      {"a sum beyond an int", [](int i) { return Value::of_int64(kLast - i); },
       "8.301034833169298e+21,float", "9223372036854774908,int", "9223372036854775807,int",
       "9223372036854774908,int"},
      {"zeros of both signs", [](int i) { return Value::of_float64(i % 2 == 0 ? -0.0 : 0.0); },
       "0,float", "-0.0,float", "-0.0,float", "0,float"},
      {"subnormals",
       [](int) { return Value::of_float64(std::numeric_limits<double>::denorm_min()); },
       "4.447e-321,float", "5e-324,float", "5e-324,float", "5e-324,float"},
      {"a sum beyond a double", [](int i) { return Value::of_float64(i < 600 ? 1e308 : -1e308); },
       "1.7976931348623157e+308,float", "-1e+308,float", "1e+308,float", "-1e+308,float"},
      {"types that change",
       [](int i) {
         if (i < 300) return Value::of_float64(0.5);
         if (i < 600) return Value::of_int64(2);
         if (i < 700) return Value::of_text("broken");
         return Value::of_bool(true);
       },
       "950,float", "0.5,float", "2,int", "true,bool"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    test::EngineRoom room;
    room.fill("d", 0, 900, c.value);
    for (const char* state : {"in memory", "flushed", "restarted", "merged"}) {
      CAPTURE(state);
      if (state == std::string("flushed")) REQUIRE(room.engine->flush().ok());
      if (state == std::string("restarted")) room.restart();
      if (state == std::string("merged")) {
        room.fill("d", 0, 900, c.value);
        REQUIRE(room.engine->flush().ok());
        REQUIRE(room.engine->compact({}, {}).ok());
      }
      for (const bool descending : {false, true}) {
        CAPTURE(descending);
        for (const std::int64_t every_ns : {3'600 * test::kRoomSecond, std::int64_t{0}, kLast}) {
          CAPTURE(every_ns);
          CHECK(windows_of(room, Aggregate::Count, every_ns, descending) == "900,int");
          CHECK(windows_of(room, Aggregate::Sum, every_ns, descending) == c.sum);
          CHECK(windows_of(room, Aggregate::Last, every_ns, descending) == c.last);
          // Which of two zeros is met first depends on the order.
          if (descending && c.what == "zeros of both signs") continue;
          CHECK(windows_of(room, Aggregate::Min, every_ns, descending) == c.min);
          CHECK(windows_of(room, Aggregate::Max, every_ns, descending) == c.max);
        }
      }
    }
  }
}

TEST_CASE("odd numbers: windows at both ends of time hold what lies there") {
  test::EngineRoom room;
  wire::ReadingBatch batch;
  for (int i = 0; i < 100; ++i) {
    batch.readings.push_back({"default", "d", "m", kFirst + i, Value::of_int64(i)});
    batch.readings.push_back({"default", "d", "m", kLast - i, Value::of_int64(i)});
  }
  const auto authorized = auth::authorize_write(room.principal, batch);
  REQUIRE(authorized.ok());
  const Status stored = room.pipeline->ingest(*authorized);
  INFO(stored.to_string());
  REQUIRE(stored.ok());
  for (const bool is_flushed : {false, true}) {
    CAPTURE(is_flushed);
    if (is_flushed) REQUIRE(room.engine->flush().ok());
    for (const bool descending : {false, true}) {
      CAPTURE(descending);
      const std::string first = std::to_string(kFirst),
                        last = std::to_string(kLast - kLast % 1'000);
      const std::string hours = windows_of(room, Aggregate::Count, 1'000, descending, true);
      CHECK(hours == (descending ? last + "=100,int " + first + "=100,int"
                                 : first + "=100,int " + last + "=100,int"));
      CHECK(windows_of(room, Aggregate::Sum, 0, descending) == "9900,int");
      CHECK(windows_of(room, Aggregate::Max, kLast, descending).size() > 0);
    }
  }
}

TEST_CASE("odd numbers: more windows than there may be are refused, none is answered wrongly") {
  test::EngineRoom room;
  room.fill("d", 0, 900, [](int i) { return Value::of_int64(i); });
  REQUIRE(room.engine->flush().ok());
  query::QueryLimits limits;
  limits.windows = 100;
  room.service->set_limits(limits);
  const std::string told = windows_of(room, Aggregate::Mean, 1);
  CHECK_MESSAGE(told.find("limits.query-windows") != std::string::npos, told);
}
