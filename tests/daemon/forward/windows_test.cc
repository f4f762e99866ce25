#include "forward/windows.h"

#include <doctest/doctest.h>

#include <map>

#include "support/model_engine.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;

struct WindowsBench {
  WindowsBench() : id(engine.create_namespace("default", {}).value()) {}
  void store(std::int64_t time_ns, const wire::Value& value) {
    Bytes encoded;
    wire::append_value(value, encoded);
    WriteBatch batch;
    batch.put(id, wire::make_reading_key({1, 2, time_ns}), encoded);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  // The window in which `time_ns` lies: text of each column's value.
  std::map<std::string, std::string> columns(std::int64_t time_ns) {
    std::map<std::string, std::string> found;
    unfit = 0;
    const auto is_whole = Windows(engine, kMinuteNs)
                              .compute(id, {1, 2, time_ns}, nullptr, nullptr, unfit,
                                       [&](wire::WindowColumn column, const wire::Value& value) {
                                         found[std::string(wire::column_suffix(column))] =
                                             text_of(value);
                                       });
    REQUIRE(is_whole.ok());
    CHECK(*is_whole);
    return found;
  }
  static std::string text_of(const wire::Value& value) {
    switch (value.type) {
      case wire::ValueType::Float64: return "f" + std::to_string(value.float64);
      case wire::ValueType::Int64: return "i" + std::to_string(value.int64);
      case wire::ValueType::Bool: return value.boolean ? "true" : "false";
      default: return std::string(value.text);
    }
  }

  test::ModelEngine engine;
  NamespaceId id;
  std::uint64_t unfit = 0;
};

using Found = std::map<std::string, std::string>;

TEST_CASE("windows: columns are of all readings of the window, and of no other") {
  WindowsBench bench;
  bench.store(kMinuteNs - 1, wire::Value::of_int64(100));
  bench.store(kMinuteNs, wire::Value::of_int64(3));
  bench.store(kMinuteNs + 5, wire::Value::of_int64(-1));
  bench.store(2 * kMinuteNs - 1, wire::Value::of_int64(2));
  bench.store(2 * kMinuteNs, wire::Value::of_int64(100));
  const Found expected{{"_count", "i3"},       {"_min", "i-1"},  {"_max", "i3"}, {"_sum", "i4"},
                       {"_mean", "f1.333333"}, {"_first", "i3"}, {"_last", "i2"}};
  CHECK(bench.columns(kMinuteNs + 7) == expected);
  CHECK(bench.columns(10 * kMinuteNs).empty());
}

TEST_CASE("windows: texts are counted, first and last, and have no mean") {
  WindowsBench bench;
  bench.store(0, wire::Value::of_text("a"));
  bench.store(1, wire::Value::of_text("b"));
  CHECK(bench.columns(0) == Found{{"_count", "i2"}, {"_first", "a"}, {"_last", "b"}});
  bench.store(2, wire::Value::of_bool(true));
  const Found mixed{{"_count", "i3"}, {"_min", "true"},       {"_max", "true"}, {"_sum", "i1"},
                    {"_first", "a"},  {"_mean", "f1.000000"}, {"_last", "true"}};
  CHECK(bench.columns(0) == mixed);
}

TEST_CASE("windows: they begin at whole ones, before 1970 and at the ends of time too") {
  CHECK(window_begin_ns(-1, kMinuteNs) == -kMinuteNs);
  CHECK(window_begin_ns(0, kMinuteNs) == 0);
  CHECK(window_begin_ns(kMinuteNs, kMinuteNs) == kMinuteNs);
  CHECK(window_begin_ns(INT64_MIN, kMinuteNs) == INT64_MIN);
  WindowsBench bench;
  bench.store(INT64_MIN, wire::Value::of_int64(1));
  bench.store(INT64_MAX, wire::Value::of_int64(2));
  CHECK(bench.columns(INT64_MIN).at("_count") == "i1");
  CHECK(bench.columns(INT64_MAX).at("_count") == "i1");
}

TEST_CASE("windows: a round takes what was committed before it, late readings, and nothing twice") {
  const Round round{.boundary = 10, .over_ns = 100, .before_upto = 5, .before_over_ns = 40};
  CHECK(round.takes(10, 200));   // committed while the window was open: it goes in any case
  CHECK(round.takes(11, 100));   // late
  CHECK(!round.takes(11, 101));  // open: the next round's
  CHECK(!round.takes(5, 40));    // went along with the round before
  CHECK(round.takes(5, 41));
  CHECK(round.takes(6, 40));
  CHECK(Round{}.takes(1, INT64_MAX));
}

}  // namespace
}  // namespace edgecase::forward
