// tidy: allow-file line-length: expected lines of output are kept whole
#include "forward/batch.h"

#include <doctest/doctest.h>

#include "wire/reading_json.h"

namespace edgecase::forward {
namespace {

Batch columns_of(const std::vector<std::pair<std::uint32_t, std::int64_t>>& lines) {
  Batch batch;
  for (const char* sensor : {"a", "b"}) {
    batch.columns.push_back({.head = R"({"namespace":"n","device":"d","sensor":")" +
                                     std::string(sensor) + R"(","time":")",
                             .is_int = sensor[0] == 'b'});
  }
  for (const auto& [column, time_ns] : lines) {
    batch.text += std::to_string(batch.lines.size()) + "\n";
    batch.lines.push_back({.end = static_cast<std::uint32_t>(batch.text.size()),
                           .namespace_id = 1,
                           .key = {.device = 1, .sensor = column, .time_ns = time_ns},
                           .column = column});
  }
  return batch;
}

TEST_CASE("batch: columns that take turns are an object each, one reading is as any other") {
  const Batch batch = columns_of({{0, 1}, {1, 1}, {0, 3}, {1, 4}, {0, 10}});
  CHECK(
      batch.body_of(0, 5) ==
      R"({"namespace":"n","device":"d","sensor":"a","time":"1970-01-01T00:00:00.000000001Z","steps":[2,7],"values":[0,2,4]})"
      "\n"
      R"({"namespace":"n","device":"d","sensor":"b","time":"1970-01-01T00:00:00.000000001Z","steps":[3],"values":[1,3],"type":"int"})"
      "\n");
  CHECK(
      batch.body_of(3, 4) ==
      R"({"namespace":"n","device":"d","sensor":"b","time":"1970-01-01T00:00:00.000000004Z","value":3,"type":"int"})"
      "\n");
  CHECK(batch.body_of(2, 2).empty());
}

TEST_CASE("batch: what a request brings is what was put into it, whole lines among columns too") {
  Batch batch = columns_of({{0, INT64_MIN}, {0, INT64_MAX}, {1, -5}, {1, 5}, {0, 7}});
  const std::string text = R"({"namespace":"n","device":"d","sensor":"t","time":1,"value":"x"})";
  batch.text += text + "\n";
  batch.lines.push_back(
      {.end = static_cast<std::uint32_t>(batch.text.size()), .namespace_id = 1, .key = {}});
  wire::ReadingBatch read;
  wire::JsonDecodeOutcome outcome;
  REQUIRE(wire::decode_readings_json(batch.body_of(0, 6), {}, read, outcome).ok());
  CHECK(outcome.bad == 0);
  REQUIRE(read.readings.size() == 6);
  std::int64_t sum = 0;
  for (const wire::Reading& reading : read.readings) {
    if (reading.value.type == wire::ValueType::Text) continue;
    const bool is_int = reading.value.type == wire::ValueType::Int64;
    const std::int64_t line =
        is_int ? reading.value.int64 : static_cast<std::int64_t>(reading.value.float64);
    CHECK(reading.time_ns == batch.lines[static_cast<std::size_t>(line)].key.time_ns);
    CHECK(is_int == (reading.sensor == "b"));
    sum += line;
  }
  CHECK(sum == 0 + 1 + 2 + 3 + 4);
}

}  // namespace
}  // namespace edgecase::forward
