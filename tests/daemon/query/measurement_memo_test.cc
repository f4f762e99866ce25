#include "query/measurement_memo.h"

#include <doctest/doctest.h>

#include <numeric>

#include "daemon/influxql/select_room.h"

namespace edgecase {
namespace {

using query::Measurement;
using query::MeasurementMemo;

std::shared_ptr<const Measurement> measured(const Measurement::Of& of, std::size_t series = 1) {
  auto made = std::make_shared<Measurement>(of);
  std::vector<catalog::SeriesRow>& rows = made->fields["v"];
  rows.resize(series);
  std::iota(rows.begin(), rows.end(), 0u);
  return made;
}

TEST_CASE("measurement memo: an entry is of one list of series, in whatever order") {
  test::SelectRoom room;
  const auto of = [&](std::vector<catalog::SeriesRow> readable) {
    return Measurement::of(*room.catalog, "default", "m", readable);
  };
  MeasurementMemo memo;
  memo.keep(measured(of({1, 2, 3})));
  CHECK(memo.find(of({1, 2, 3})) != nullptr);
  CHECK(memo.find(of({3, 1, 2})) != nullptr);
  CHECK(memo.find(of({1, 2})) == nullptr);
  CHECK(memo.find(of({1, 2, 4})) == nullptr);
  CHECK(memo.find(of({1, 2, 3, 4})) == nullptr);
  CHECK(memo.find(Measurement::of(*room.catalog, "default", "n",
                                  std::vector<catalog::SeriesRow>{1, 2, 3})) == nullptr);
}

TEST_CASE("measurement memo: what was asked for longest ago makes room") {
  const auto of = [](std::uint64_t series) {
    return Measurement::Of{"default", "m", 1, series, series};
  };
  MeasurementMemo memo;
  for (std::uint64_t i = 0; i < MeasurementMemo::kMeasurementsMax; ++i) memo.keep(measured(of(i)));
  CHECK(memo.find(of(0)) != nullptr);
  memo.keep(measured(of(100)));
  CHECK(memo.find(of(0)) != nullptr);
  CHECK(memo.find(of(1)) == nullptr);
  memo.keep(measured(of(200), MeasurementMemo::kBytesMax / 40));
  CHECK(memo.find(of(200)) != nullptr);
  memo.keep(measured(of(300), MeasurementMemo::kBytesMax / 4));
  CHECK(memo.find(of(300)) == nullptr);
  auto later = of(400);
  later.generation = 2;
  memo.keep(measured(later));
  CHECK(memo.find(of(200)) == nullptr);
}

TEST_CASE("measurement memo: series that come and go are seen at once, by tags too") {
  test::SelectRoom room;
  REQUIRE(room.write("m,host=a v=1 1000000000\nm,host=b v=2 1000000000\n"));
  const std::string question = "SELECT v FROM m WHERE 'b' = host AND (time > 0)";
  for (int i = 0; i < 3; ++i) CHECK(room.ask(question) == "m time v | 1s 2");
  CHECK(room.ask("SELECT v FROM m WHERE host = 'b' OR host = 'a'") == "m time v | 1s 1 | 1s 2");
  CHECK(room.ask("SELECT v FROM m WHERE host = 'b' AND host = 'a'").empty());
  REQUIRE(room.write("m,host=b,zone=z v=3 2000000000\nm,host=b w=4 2000000000\n"));
  for (int i = 0; i < 2; ++i) CHECK(room.ask(question) == "m time v | 1s 2 | 2s 3");
  for (int i = 0; i < 2; ++i)
    CHECK(room.ask("SELECT v FROM m WHERE host = 'b' AND zone = ''") == "m time v | 1s 2");
  catalog::Erased erased;
  erased.series = room.catalog->select("default", *wire::parse_selector("b/*"));
  REQUIRE(erased.series.size() == 3);
  room.catalog->forget(erased);
  for (int i = 0; i < 2; ++i) CHECK(room.ask(question).empty());
}

}  // namespace
}  // namespace edgecase
