#include "http/influx_query.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::http::test {
namespace {

using influxql::Cell;

Cell cell(Cell::Kind kind, std::int64_t integer, double number = 0, std::string text = {}) {
  Cell made;
  made.kind = kind;
  made.integer = integer;
  made.number = number;
  made.text = std::move(text);
  return made;
}

// East of UTC by an hour and a half.
struct Zone final : influxql::RowSource {
  explicit Zone(std::int64_t offset) : offset_seconds(offset) {}
  Result<bool> next_series(influxql::SeriesHead&) override { return false; }
  Result<bool> next_row(std::vector<Cell>&) override { return false; }
  std::int64_t offset_s(std::int64_t) const override { return offset_seconds; }
  std::int64_t offset_seconds;
};

// A series of one row, with tags, and what is said beside it.
std::string written(const InfluxShape& shape, std::string_view error = {},
                    std::string_view notice = {}) {
  const auto text = make_influx_text(shape);
  std::string out;
  const influxql::SeriesHead head{
      "c pu", {{"host", "a,b"}, {"none", ""}, {"z o", "q=1"}}, {"time", "f", "i", "b", "t", "n"}};
  text->begin_series(0, head, out);
  text->row({cell(Cell::Kind::Time, 1'500'000'000'000'000'000), cell(Cell::Kind::Float, 0, 1e-7),
             cell(Cell::Kind::Integer, INT64_MIN), cell(Cell::Kind::Bool, 1),
             cell(Cell::Kind::Text, 0, 0, "say \"x\",\ny"), Cell{}},
            Zone(0), out);
  text->end_series(false, false, out);
  text->end_statement(0, error, notice, out);
  text->end(out);
  return out;
}

}  // namespace

TEST_CASE("influx text: rows of numbers are written as they are row by row") {
  SeededRandom random(edgecase::test::test_seed(20261129));
  influxql::NumberRows rows;
  rows.columns.resize(2);
  rows.columns[1].kind = Cell::Kind::Integer;
  for (int i = 0; i < 4'000; ++i) {
    rows.times_ns.push_back(static_cast<std::int64_t>(random.next()));
    const double decimal = static_cast<double>(random.below(2'000'000)) / 1e4 - 100;
    double number = std::bit_cast<double>(random.next());
    if (i % 4 == 0) number = decimal;
    if (i % 4 == 1) number = decimal / 3;
    if (i % 4 == 2) number = std::ldexp(decimal, static_cast<int>(random.below(140)) - 70);
    if (!std::isfinite(number)) number = 0;
    rows.columns[0].add(cell(i % 7 == 0 ? Cell::Kind::Null : Cell::Kind::Float, 0, number));
    rows.columns[1].add(random.next() >> random.below(64));
  }
  for (const bool is_csv : {false, true}) {
    for (const bool is_pretty : {false, true}) {
      for (const std::int64_t epoch_ns : {0, 1'000'000}) {
        const InfluxShape shape{is_csv, is_pretty, epoch_ns, 0};
        std::string at_once, by_row;
        const auto many = make_influx_text(shape), one = make_influx_text(shape);
        const influxql::SeriesHead head{"m", {}, {"time", "a", "b"}};
        many->begin_series(0, head, at_once);
        one->begin_series(0, head, by_row);
        many->rows(rows, 0, 5, Zone(0), at_once);
        many->rows(rows, 5, rows.size(), Zone(0), at_once);
        std::vector<Cell> cells(3);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          cells[0] = cell(Cell::Kind::Time, rows.times_ns[i]);
          rows.columns[0].get(i, cells[1]);
          rows.columns[1].get(i, cells[2]);
          one->row(cells, Zone(0), by_row);
        }
        CHECK((at_once == by_row));
      }
    }
  }
}

TEST_CASE("influx text: a row of each kind of value, as JSON and as CSV") {
  CHECK(written({}) ==
        R"({"results":[{"statement_id":0,"series":[{"name":"c pu","tags":{"host":"a,b","none":"",)"
        R"("z o":"q=1"},"columns":["time","f","i","b","t","n"],"values":[["2017-07-14T02:40:00Z",)"
        R"(1e-7,-9223372036854775808,true,"say \"x\",\ny",null]]}]}]})"
        "\n");
  InfluxShape csv;
  csv.is_csv = true;
  CHECK(written(csv) ==
        "name,tags,time,f,i,b,t,n\n"
        "c pu,\"host=a\\,b,z\\ o=q\\=1\",1500000000000000000,0.0000001,-9223372036854775808,true,"
        "\"say \"\"x\"\",\ny\",\n");
  csv.epoch_ns = 1'000'000'000;
  CHECK(written(csv).find(",1500000000,") != std::string::npos);
}

TEST_CASE("influx text: an error and what is said beside stand behind the rows") {
  const std::string json = written({}, "it broke", "some is missing");
  CHECK(json.ends_with(
      R"(]}],"messages":[{"level":"warning","text":"some is missing"}],"error":"it broke"}]})"
      "\n"));
  InfluxShape csv;
  csv.is_csv = true;
  CHECK(written(csv, "it, broke", "some is missing")
            .ends_with("\n\nwarning\nsome is missing\n\nerror\n\"it, broke\"\n"));
  InfluxShape chunked;
  chunked.chunk_rows = 5;
  CHECK(written(chunked, "it broke")
            .ends_with("]}]}]}\n{\"results\":[{\"statement_id\":0,\"error\":\"it broke\"}]}\n"));
}

TEST_CASE("influx text: numbers and times as Go prints them") {
  struct Number {
    double value;
    const char* json;
    const char* plain;
  };
  for (const Number& c :
       {Number{0, "0", "0"}, Number{-0.0, "-0", "-0"}, Number{1, "1", "1"},
        Number{-2.5, "-2.5", "-2.5"}, Number{100, "100", "100"}, Number{0.1, "0.1", "0.1"},
        Number{1e-6, "0.000001", "0.000001"}, Number{-1.5e-7, "-1.5e-7", "-0.00000015"},
        Number{1e-10, "1e-10", "0.0000000001"},
        Number{123456789012345680000.0, "123456789012345680000", "123456789012345680000"},
        Number{1e21, "1e+21", "1000000000000000000000"},
        Number{1.25e100, "1.25e+100",
               "12500000000000000000000000000000000000000000000000000000000000000000000000000000000"
               "000000000000000000"},
        Number{std::nan(""), "null", "NaN"},
        Number{-std::numeric_limits<double>::infinity(), "null", "-Inf"}}) {
    CAPTURE(c.value);
    std::string json, plain;
    append_go_number(c.value, json);
    append_plain_number(c.value, plain);
    CHECK(json == c.json);
    CHECK(plain == c.plain);
  }
  struct Time {
    std::int64_t ns, offset_s;
    const char* text;
  };
  for (const Time& c :
       {Time{0, 0, "1970-01-01T00:00:00Z"}, Time{1, 0, "1970-01-01T00:00:00.000000001Z"},
        Time{120'000'000, 0, "1970-01-01T00:00:00.12Z"}, Time{0, 5400, "1970-01-01T01:30:00+01:30"},
        Time{0, -3600, "1969-12-31T23:00:00-01:00"},
        Time{INT64_MAX, 3600, "2262-04-11T23:47:16.854775807Z"}}) {
    std::string text;
    append_go_time(c.ns, c.offset_s, text);
    CHECK(text == c.text);
  }
}

}  // namespace edgecase::http::test
