#include "columnar/table.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

#include "daemon/columnar/parquet_reader.h"
#include "wire/reading.h"

namespace edgecase::columnar {
namespace {

using Rows = std::map<std::string, std::vector<std::string>>;  // "-": null

wire::Value random_value(std::mt19937_64& random, unsigned kinds, std::string& text) {
  const std::uint64_t number = random();
  switch (random() % kinds) {
    case 0: return wire::Value::of_float64(static_cast<double>(number % 400) / 10);
    case 1: return wire::Value::of_float64(std::bit_cast<double>(number & 0x7fefffffffffffff));
    case 2: return wire::Value::of_int64(static_cast<std::int64_t>(number));
    case 3: return wire::Value::of_bool(number % 2 == 0);
    case 4:
      text = std::string(number % 40, static_cast<char>('a' + number % 26));
      return wire::Value::of_text(text);
    default:
      text = std::string(number % 40, static_cast<char>(number));
      return wire::Value::of_bytes(text, number % 2 == 0 ? "image/jpeg" : "");
  }
}

void expect(const wire::Reading& reading, Rows& want) {
  const wire::Value& value = reading.value;
  const auto is = [&](wire::ValueType type) { return value.type == type; };
  const auto bits = [](double number) {
    return std::to_string(std::bit_cast<std::uint64_t>(number));
  };
  want["namespace"].emplace_back(reading.namespace_name);
  want["device"].emplace_back(reading.device);
  want["sensor"].emplace_back(reading.sensor);
  want["time"].push_back(std::to_string(*reading.time_ns));
  want["type"].emplace_back(wire::value_type_name(value.type));
  std::string number = "-";
  if (is(wire::ValueType::Float64)) number = bits(value.float64);
  if (is(wire::ValueType::Int64)) number = bits(static_cast<double>(value.int64));
  if (is(wire::ValueType::Bool)) number = bits(value.boolean ? 1 : 0);
  want["value"].push_back(number);
  want["value_int"].push_back(is(wire::ValueType::Int64) ? std::to_string(value.int64) : "-");
  std::string boolean = "-";
  if (is(wire::ValueType::Bool)) boolean = value.boolean ? "1" : "0";
  want["value_bool"].push_back(boolean);
  want["value_text"].emplace_back(is(wire::ValueType::Text) ? value.text : "-");
  want["value_bytes"].emplace_back(is(wire::ValueType::Bytes) ? value.text : "-");
  const std::string_view type =
      value.content_type.empty() ? wire::kDefaultContentType : value.content_type;
  want["content_type"].emplace_back(is(wire::ValueType::Bytes) ? type : "-");
}

Rows rows_of(const ReadFile& read) {
  Rows rows;
  for (const auto& [name, column] : read.columns) {
    auto& all = rows[name];
    std::size_t next = 0;
    for (const bool is_there : column.is_there)
      all.push_back(is_there ? column.values.at(next++) : "-");
  }
  return rows;
}

}  // namespace

TEST_CASE("parquet: random readings come back, of whatever types") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (unsigned round = 0; round < 12; ++round) {
    const unsigned kinds = round % 6 + 1;
    CAPTURE(kinds);
    ReadingTable table;
    ParquetWriter writer;
    std::string file;
    Rows want;
    writer.begin(table.columns(), {{"k", "v"}}, file);
    for (std::uint64_t group = random() % 3; group > 0; --group) {
      for (int series = 0; series < 3; ++series) {
        const std::string sensor = "s" + std::to_string(random() % 3);
        const auto first = static_cast<std::int64_t>(random());
        for (std::uint64_t i = random() % 400 + (series == 0 ? 1 : 0); i > 0; --i) {
          std::string text;
          wire::Reading reading;
          reading.namespace_name = "default";
          reading.device = "d";
          reading.sensor = sensor;
          reading.time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                                      i * 1'000'000 + random() % 9);
          reading.value = random_value(random, kinds, text);
          expect(reading, want);
          table.add(reading);
        }
      }
      REQUIRE(writer.group(table.columns(), table.rows(), file).ok());
      table.clear_rows();
    }
    writer.end(file);
    const ReadFile read = read_parquet(file);
    CHECK(read.footer[3].number == static_cast<std::int64_t>(want["time"].size()));
    CHECK(read.footer[5].list.at(0)[2].text == "v");
    if (!want["time"].empty()) CHECK(rows_of(read) == want);
  }
}

TEST_CASE("parquet: numbers that come as arrays are rows like others") {
  const std::vector<std::int64_t> times = {2, 3, 5};
  const std::vector<std::uint64_t> floats = {std::bit_cast<std::uint64_t>(0.5), 0,
                                             std::bit_cast<std::uint64_t>(-2.0)};
  const std::vector<std::uint64_t> ints = {7, static_cast<std::uint64_t>(-1), 0};
  ReadingTable table;
  Rows want;
  for (const bool is_float : {true, false, true}) {
    wire::Reading reading;
    reading.namespace_name = "default";
    reading.device = "d";
    reading.sensor = is_float ? "f" : "i";
    reading.time_ns = 1;
    reading.value = is_float ? wire::Value::of_float64(1.5) : wire::Value::of_int64(1);
    expect(reading, want);
    table.add(reading);
    const wire::Numbers numbers{times, is_float ? floats : ints, is_float};
    table.add(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      reading.time_ns = times[i];
      reading.value = numbers.value(i);
      expect(reading, want);
    }
  }
  CHECK(table.rows() == 12);
  ParquetWriter writer;
  std::string file;
  writer.begin(table.columns(), {}, file);
  REQUIRE(writer.group(table.columns(), table.rows(), file).ok());
  writer.end(file);
  CHECK(rows_of(read_parquet(file)) == want);
}

TEST_CASE("parquet: a sensor that reads each second takes little more than a byte a reading") {
  ReadingTable table;
  ParquetWriter writer;
  std::string file;
  writer.begin(table.columns(), {}, file);
  wire::Reading reading;
  reading.namespace_name = "default";
  reading.device = "kitchen";
  reading.sensor = "temp";
  std::mt19937_64 random(48);
  double value = 21;
  for (std::int64_t i = 0; !table.is_full(); ++i) {
    reading.time_ns = i * 1'000'000'000;
    value += (static_cast<double>(random() % 3) - 1) / 10;
    reading.value = wire::Value::of_float64(std::round(value * 10) / 10);
    table.add(reading);
  }
  REQUIRE(table.rows() == kRowsPerGroup);
  REQUIRE(writer.group(table.columns(), table.rows(), file).ok());
  writer.end(file);
  CHECK(file.size() < kRowsPerGroup * 3 / 2);
}

TEST_CASE("parquet: a cell that is not told is null, and its type is told all the same") {
  ReadingTable table;
  wire::Reading reading;
  reading.sensor = "image";
  reading.time_ns = 1;
  reading.value = wire::Value::of_bytes({}, "image/png");
  table.add(reading, false);
  ParquetWriter writer;
  std::string file;
  writer.begin(table.columns(), {}, file);
  REQUIRE(writer.group(table.columns(), table.rows(), file).ok());
  writer.end(file);
  Rows rows = rows_of(read_parquet(file));
  CHECK(rows["type"] == std::vector<std::string>{"bytes"});
  CHECK(rows["value_bytes"] == std::vector<std::string>{"-"});
  CHECK(rows["content_type"] == std::vector<std::string>{"image/png"});
}

TEST_CASE("parquet: a group ends where its texts take a mebibyte") {
  ReadingTable table;
  const std::string text(1'000, 'x');
  wire::Reading reading;
  reading.time_ns = 1;
  reading.value = wire::Value::of_text(text);
  while (!table.is_full()) table.add(reading);
  CHECK(table.rows() == kTextBytesPerGroup / 1'000 + 1);
  table.clear_rows();
  CHECK_FALSE(table.is_full());
}

}  // namespace edgecase::columnar
