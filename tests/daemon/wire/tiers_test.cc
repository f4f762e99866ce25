#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "wire/line_protocol.h"
#include "wire/reading_format.h"
#include "wire/reading_json.h"
#include "wire/tiers.h"

namespace edgecase::wire {
namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;
constexpr std::int64_t kDayNs = 24 * 60 * kMinuteNs;

TEST_CASE("how long readings are kept reads back as it was written") {
  for (const char* text : {"forever", "7d", "12h", "7d then 1m:90d then 1h:forever",
                           "1d then 10s:2d then 1m:3d then 1h:4d then 1d:forever"}) {
    CAPTURE(text);
    const Result<Keeping> keeping = parse_keeping(text);
    REQUIRE(keeping.ok());
    CHECK(keeping_text(*keeping) == text);
    const Result<std::vector<Tier>> tiers = parse_tiers(tiers_text(keeping->tiers));
    REQUIRE(tiers.ok());
    CHECK(*tiers == keeping->tiers);
  }
  const Result<Keeping> keeping = parse_keeping("7d then 1m:90d");
  REQUIRE(keeping.ok());
  CHECK(*keeping == Keeping{7 * kDayNs, {{kMinuteNs, 90 * kDayNs}}});
}

TEST_CASE("what makes no sense as a retention with tiers is refused") {
  for (const char* text : {"",
                           "0s",
                           "then 1m:90d",
                           "7d then",
                           "7d then ",
                           "7d then 1m",
                           "7d then 1m:",
                           "7d then :90d",
                           "7d then 1m:0s",
                           "7d then 500ms:90d",
                           "7d then 1500ms:90d",
                           "7d then 0s:90d",
                           "forever then 1m:forever",
                           "7d then 1m:7d",
                           "7d then 1m:1d",
                           "7d then 1m:90d then 1h:90d",
                           "7d then 1m:90d then 90s:1y",
                           "7d then 1h:90d then 1m:1y",
                           "7d then 1m:90d then 1m:1y",
                           "7d then 1m:forever then 1h:forever",
                           "7d then 1s:90d then 1d:1y",
                           "1d then 1s:2d then 2s:3d then 4s:4d then 8s:5d then 16s:6d",
                           "7d  then 1m:90d then",
                           "7d,1m:90d"}) {
    CAPTURE(text);
    CHECK(parse_keeping(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("tiers of a parameter are separated by commas") {
  CHECK(parse_tiers("")->empty());
  CHECK(parse_tiers("1m:90d,1h:forever")->size() == 2);
  for (const char* text : {",", "1m:90d,", "1m", "1m:90d,,1h:1y"}) {
    CAPTURE(text);
    CHECK(parse_tiers(text).status().code() == StatusCode::InvalidArgument);
  }
}

}  // namespace

namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

Value any_number(SeededRandom& random, bool is_float) {
  if (!is_float) return Value::of_int64(static_cast<std::int64_t>(random.next()));
  const double odd[] = {0.0, -0.0, 1e300,  -1e-300,
                        5.0, 0.1,  1.5e19, std::numeric_limits<double>::denorm_min()};
  return Value::of_float64(odd[random.next() % 8]);
}

// Its numbers have one type; some stand beside texts.
Window any_window(SeededRandom& random) {
  const bool is_float = random.next() % 2 == 0;
  Window window{
      .begin_ns = static_cast<std::int64_t>(random.next() % 1000) * kMinute - 500 * kMinute,
      .count = random.next() % 1000 + 1,
      .every_ns = kMinute};
  window.numbers = random.next() % 3 == 0 ? random.next() % (window.count + 1) : window.count;
  if (window.numbers == 0) return window;
  const Value low = any_number(random, is_float);
  const Value high = is_float ? Value::of_float64(std::max(low.float64, 1e301))
                              : Value::of_int64(std::numeric_limits<std::int64_t>::max());
  window.min = low;
  window.max = high;
  window.sum = any_number(random, is_float);
  if (window.numbers == window.count || random.next() % 2 == 0) window.first = low;
  if (window.numbers == window.count || random.next() % 2 == 0) window.last = high;
  return window;
}

Reading reading_of(const Window& window) {
  Reading reading;
  reading.namespace_name = "default";
  reading.device = "kitchen";
  reading.sensor = "temp";
  reading.time_ns = window.begin_ns;
  reading.window = &window;
  return reading;
}

Status maker_of(std::initializer_list<std::pair<const char*, Value>> columns) {
  WindowMaker maker;
  for (const auto& [name, value] : columns) EC_TRY(maker.take(name, value));
  return maker.make(0, kMinute).status();
}

TEST_CASE("a window's column has a name that reads back") {
  for (const WindowColumn column : kWindowColumns) {
    const std::string name = column_name("inside_max", column);
    CAPTURE(name);
    const std::optional<ColumnName> parts = parse_column_name(name);
    REQUIRE(parts);
    CHECK(parts->field == "inside_max");
    CHECK(parts->column == column);
  }
  CHECK(column_name("temp", WindowColumn::Count) == "temp_count");
}

TEST_CASE("a name without a field or a suffix is no column's") {
  for (const char* name : {"", "temp", "_count", "temp_", "temp_Count", "count"}) {
    CAPTURE(name);
    CHECK(!parse_column_name(name));
  }
}

TEST_CASE("a window that is printed reads back as it was") {
  SeededRandom random(20261129);
  for (const ReadingFormat format : {ReadingFormat::Ndjson, ReadingFormat::Line}) {
    for (int i = 0; i < 500; ++i) {
      const Window window = any_window(random);
      std::string text;
      ReadingFormatter(format).reading(reading_of(window), text);
      CAPTURE(text);
      ReadingBatch batch;
      if (format == ReadingFormat::Ndjson) {
        JsonDecodeOutcome outcome;
        REQUIRE(decode_readings_json(text, {}, batch, outcome).ok());
        REQUIRE(outcome.errors.empty());
      } else {
        LineProtocolOptions options;
        options.contexts = LineContexts::Followed;
        LineProtocolDecoder decoder(text, options);
        REQUIRE(decoder.next(batch));
        REQUIRE(decoder.errors().empty());
      }
      REQUIRE(batch.readings.size() == 1);
      const Reading& read = batch.readings.front();
      CHECK(read.device == "kitchen");
      CHECK(read.sensor == "temp");
      REQUIRE(read.window != nullptr);
      CHECK(*read.window == window);
      const bool is_zero = window.sum && window.sum->type == ValueType::Float64;
      if (is_zero)
        CHECK(std::signbit(read.window->sum->float64) == std::signbit(window.sum->float64));
    }
  }
}

TEST_CASE("lines behind a window's are readings again") {
  constexpr std::string_view kLines =
      "# CONTEXT-WINDOW: 1m\n"
      "temp,device=a value_count=1i,value_min=2,value_max=2,value_sum=2,value_first=2,value_last=2 "
      "0\n"
      "temp,device=a value=3 60000000000\n"
      "# CONTEXT-WINDOW:\n"
      "temp,device=a value_count=7i 60000000000\n";
  LineProtocolOptions options;
  options.contexts = LineContexts::Followed;
  LineProtocolDecoder decoder(kLines, options);
  ReadingBatch batch;
  REQUIRE(decoder.next(batch));
  REQUIRE(batch.readings.size() == 2);
  CHECK(batch.readings[0].sensor == "temp");
  CHECK(batch.readings[0].window != nullptr);
  CHECK(batch.readings[1].sensor == "temp.value_count");
  CHECK(batch.readings[1].window == nullptr);
  REQUIRE(decoder.errors().size() == 1);
  CHECK(decoder.errors()[0].line == 3);
}

TEST_CASE("what cannot be known of readings makes no window") {
  const Value one = Value::of_int64(1), two = Value::of_int64(2);
  CHECK(maker_of({{"v_count", one},
                  {"v_min", one},
                  {"v_max", one},
                  {"v_sum", one},
                  {"v_first", one},
                  {"v_last", one}})
            .ok());
  CHECK(maker_of({{"v_count", one}, {"v_numbers", Value::of_int64(0)}}).ok());
  for (const auto& columns :
       std::initializer_list<std::initializer_list<std::pair<const char*, Value>>>{
           {{"v_min", one}, {"v_max", one}, {"v_sum", one}},
           {{"v_count", Value::of_int64(0)}},
           {{"v_count", Value::of_int64(-1)}},
           {{"v_count", Value::of_float64(1)}},
           {{"v_count", one}, {"v_count", one}},
           {{"v_count", one}, {"v_numbers", two}},
           {{"v_count", one},
            {"v_min", two},
            {"v_max", one},
            {"v_sum", one},
            {"v_first", one},
            {"v_last", one}},
           {{"v_count", one},
            {"v_min", one},
            {"v_max", one},
            {"v_sum", one},
            {"v_first", two},
            {"v_last", one}},
           {{"v_count", one}, {"v_min", one}, {"v_max", one}, {"v_sum", one}},
           {{"v_count", one},
            {"v_min", one},
            {"v_max", one},
            {"v_sum", one},
            {"v_mean", two},
            {"v_first", one},
            {"v_last", one}},
           {{"v_count", one}, {"v_numbers", Value::of_int64(0)}, {"v_max", one}},
           {{"v_count", one}, {"v_min", Value::of_text("x")}}}) {
    CHECK(maker_of(columns).code() == StatusCode::InvalidArgument);
  }
}

}  // namespace
}  // namespace edgecase::wire
