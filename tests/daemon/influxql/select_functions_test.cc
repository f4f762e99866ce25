// What SELECT with functions answers, beside what influxd 1.6.7 answered to the same lines and
// statements; and what it knows of readings that are erased while it answers.
#include <doctest/doctest.h>

#include "daemon/influxql/select_room.h"
#include "wire/reading.h"

using namespace edgecase;
using test::SelectRoom;

namespace {

constexpr std::string_view kSummedLines =
    R"(cpu,host=a,zone=x v=1,n=1i,s="one",b=true 1000000000
cpu,host=a,zone=x v=2.5,n=2i 2000000000
cpu,host=b,zone=x v=3,n=3i,s="three" 1000000000
cpu,host=b,zone=y v=4,b=false 3000000000
cpu,host=c v=5,n=-7i,s="" 2000000000
mem,host=a v=10i,free=5 1000000000
mem,host=b v=20i,free=6 2000000000
mem,host=b free=7 4000000000
)";

struct SummingCase {
  std::string_view statement;
  std::string_view answer;
};

constexpr SummingCase kSummingCases[] = {
    {"SELECT count(distinct(host)) FROM cpu", ""},
    {"SELECT mean(nosuch) FROM cpu", ""},
    {"SELECT count(nosuch) FROM cpu", ""},
    {"SELECT mean(host) FROM cpu", ""},
    {"SELECT count(host) FROM cpu", ""},
    {"SELECT mean(s) FROM cpu", "unsupported mean iterator type: *query.stringInterruptIterator"},
    {"SELECT sum(b) FROM cpu", "unsupported sum iterator type: *query.booleanInterruptIterator"},
    {"SELECT mean(abs(v)) FROM cpu", "expected field argument in mean()"},
    {"SELECT mean(v + 1) FROM cpu", "expected field argument in mean()"},
    {"SELECT mean() FROM cpu", "invalid number of arguments for mean, expected 1, got 0"},
    {"SELECT mean(v, n) FROM cpu", "invalid number of arguments for mean, expected 1, got 2"},
    {"SELECT percentile(v) FROM cpu",
     "invalid number of arguments for percentile, expected 2, got 1"},
    {"SELECT mean(*::tag) FROM cpu", "unable to use tag wildcard in mean()"},
    {"SELECT max(v::string) FROM cpu", ""},
    {"SELECT count(s::boolean) FROM cpu", ""},
    {"SELECT max(s::string) FROM cpu",
     "unsupported max iterator type: *query.stringInterruptIterator"},
    {"SELECT count(distinct(host)) FROM (SELECT v, host FROM cpu)", "cpu time count | 0s 3"},
    {"SELECT count(host) FROM (SELECT v FROM cpu GROUP BY host)", "cpu time count | 0s 5"},
    {"SELECT last(host) FROM (SELECT v FROM cpu GROUP BY host)", "cpu time last | 3s b"},
    {"SELECT mean(host) FROM (SELECT * FROM cpu)",
     "unsupported mean iterator type: *query.stringInterruptIterator"},
    {"SELECT top(v, zone, 3) FROM cpu", "cpu time top zone | 1s 3 x | 2s 5 - | 3s 4 y"},
    {"SELECT stddev(n) / sum(n) FROM cpu WHERE n = 0", ""},
    {"SELECT stddev(v) / 0 FROM cpu WHERE v = 5", "cpu time stddev | 0s 0"},
    {"SELECT stddev(v) / 2 FROM cpu WHERE v = 5", "cpu time stddev | 0s -"},
    {"SELECT * , mean(v) FROM cpu", "mixing aggregate and non-aggregate queries is not supported"},
};

// Series `s` of `m` with a reading each nanosecond.
struct ErasingRoom : SelectRoom {
  static constexpr int kCount = 2'000;

  ErasingRoom() {
    std::string lines;
    for (int i = 0; i < kCount; ++i)
      lines += "m v=" + std::to_string(i) + "i " + std::to_string(i) + "\n";
    REQUIRE(write(lines));
    series =
        catalog->series_at(catalog->select_rows("default", wire::Selector{}).front()).value().id;
  }
  void erase(std::int64_t from_ns, std::int64_t to_ns) {
    WriteBatch batch;
    batch.erase_range(series.namespace_id,
                      wire::make_reading_key({series.device, series.sensor, from_ns}),
                      wire::make_reading_key({series.device, series.sensor, to_ns}));
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  std::unique_ptr<influxql::RowSource> begin(std::string_view text) {
    auto rows = run(text);
    REQUIRE(rows.ok());
    influxql::SeriesHead head;
    REQUIRE((*rows)->next_series(head).value());
    return *std::move(rows);
  }
  static std::int64_t next_time(influxql::RowSource& rows) {
    std::vector<influxql::Cell> row;
    REQUIRE(rows.next_row(row).value());
    return row[0].integer;
  }

  catalog::SeriesId series;
};

}  // namespace

TEST_CASE("select: with functions it answers as influxd 1.6.7 does") {
  SelectRoom room;
  REQUIRE(room.write(kSummedLines));
  for (const SummingCase& c : kSummingCases) {
    CAPTURE(c.statement);
    const std::string answer = room.ask(c.statement);
    CAPTURE(answer);
    CHECK(test::is_same_answer(answer, c.answer));
  }
}

TEST_CASE(
    "select: rows know of what they gave, and pass over what is erased before they come to it") {
  ErasingRoom room;
  const auto rows = room.begin("SELECT v FROM m");
  for (int i = 0; i < 100; ++i) REQUIRE(ErasingRoom::next_time(*rows) == i);
  CHECK_FALSE(rows->is_given_revoked());
  room.erase(1'500, 1'600);  // nothing of it was read
  CHECK_FALSE(rows->is_given_revoked());
  query::GivenReadings given = rows->take_given();
  room.erase(10, 20);  // that was taken
  CHECK(given.is_revoked());
  CHECK_FALSE(rows->is_given_revoked());
  rows->let_go();
  for (int i = 100; i < 1'500; ++i) REQUIRE(ErasingRoom::next_time(*rows) == i);
  REQUIRE(ErasingRoom::next_time(*rows) == 1'600);
  room.erase(1'400, 1'450);  // that was given since
  CHECK(rows->is_given_revoked());
}

TEST_CASE("select: a sum knows of all that it was made of, however long ago") {
  ErasingRoom room;
  const auto rows = room.begin("SELECT cumulative_sum(v) FROM m");
  for (int i = 0; i < 1'000; ++i) REQUIRE(ErasingRoom::next_time(*rows) == i);
  static_cast<void>(rows->take_given());
  CHECK_FALSE(rows->is_given_revoked());
  room.erase(0, 10);
  CHECK(rows->is_given_revoked());
}

TEST_CASE("select: windows are refused before anything is read where there are too many") {
  SelectRoom room;
  REQUIRE(room.write(kSummedLines));
  room.asking.limits.windows = 10;
  CHECK(room.ask("SELECT mean(v) FROM cpu WHERE time >= 0 AND time < 11s GROUP BY time(1s)") ==
        "max-select-buckets limit exceeded: (11/10); limits.query-windows is 10");
  room.asking.limits.points = 0;
  CHECK(room.ask("SELECT mean(v) FROM cpu WHERE time >= '1700-01-01' GROUP BY time(1ns)")
            .starts_with("max-select-buckets limit exceeded: ("));
}

TEST_CASE("select: a gap of too many windows is refused before the first of them is made") {
  SelectRoom room;
  REQUIRE(room.write("gap v=1 0\ngap v=2 1000000000000"));
  room.asking.limits.windows = 1'000;
  for (const std::string order : {"", " ORDER BY time DESC"}) {
    const std::string of_all = "SELECT mean(v) FROM gap GROUP BY time(1ns)" + order;
    CHECK_MESSAGE(room.ask(of_all) ==
                      "max-select-buckets limit exceeded: (1000000000001/1000); "
                      "limits.query-windows is 1000",
                  room.ask(of_all));
    CHECK(room.ask("SELECT derivative(mean(v)) FROM gap GROUP BY time(1ns)" + order)
              .starts_with("max-select-buckets limit exceeded: ("));
    // Rows that are asked for, and no more, are had.
    CHECK_FALSE(room.ask(of_all + " LIMIT 3").starts_with("max-"));
    CHECK_FALSE(room.ask("SELECT mean(v) FROM gap GROUP BY time(1s) fill(none)" + order)
                    .starts_with("max-"));
    CHECK_FALSE(room.ask("SELECT mean(v) FROM gap GROUP BY time(2s)" + order).starts_with("max-"));
  }
}
