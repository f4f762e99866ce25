// What statements of InfluxQL erase: series that are found, behind fences against copies.
#include <doctest/doctest.h>

#include <vector>

#include "daemon/erase/erase_room.h"

namespace edgecase::erase {

using test::kHour;
using test::kNow;
using test::kSecond;
using test::local;
using test::Room;
using test::token;

TEST_CASE("what a statement erased may be written again, and no earlier copy of it") {
  Room room;
  room.fill("kitchen", "temp");
  room.fill("kitchen", "door");
  EraseRequest request = Room::request("*/*");
  request.fence = FenceKind::Copies;
  request.find = [&room]() -> Result<std::vector<catalog::SeriesRow>> {
    return room.catalog->select_rows("default", wire::parse_selector("kitchen/temp").value());
  };
  const auto copy = [&room](std::int64_t time_ns, std::int64_t as_of_ns) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "kitchen", "temp", time_ns, wire::Value::of_int64(1)});
    const auto authorized = auth::authorize_write(local(), batch);
    ingest::Outcome outcome;
    REQUIRE(room.pipeline->ingest(*authorized, &outcome, {}, {}, nullptr, {true, as_of_ns}).ok());
    return outcome.of(ingest::Loss::Erased) == 0;
  };
  SUBCASE("all times, with the name") {
    const auto made = room.service->erase(local(), request);
    REQUIRE(made.ok());
    CHECK(made->with_names);
    CHECK(made->readings == 10);
    CHECK_FALSE(room.catalog->find("default", "kitchen", "temp").ok());
    CHECK(room.readings_of("kitchen", "door") == 10);
    room.clock.advance(kSecond);
    for (const bool restarted : {false, true}) {
      if (restarted) room.restart();
      CHECK(room.write("kitchen", "temp", kNow - 3 * kHour));
      CHECK_FALSE(copy(kNow - 3 * kHour, kNow));
      CHECK_FALSE(copy(kNow - 3 * kHour, INT64_MIN));
      CHECK(copy(kNow - 3 * kHour, kNow + kSecond));
      CHECK(copy(kNow + kSecond, kNow));
    }
    CHECK(room.service->lift(made->number).ok());
    CHECK(room.service->lift(made->number).status().code() == StatusCode::NotFound);
    room.restart();
    CHECK(copy(kNow - 3 * kHour, kNow));
    CHECK(room.service->fences().size() == 0);
  }
  SUBCASE("a range, and the name where nothing is left") {
    request.from_ns = kNow - 5 * kHour;
    auto made = room.service->erase(local(), request);
    REQUIRE(made.ok());
    CHECK_FALSE(made->with_names);
    CHECK(room.readings_of("kitchen", "temp") == 5);
    CHECK_FALSE(copy(kNow - 5 * kHour, kNow));
    CHECK(copy(kNow - 6 * kHour, kNow));
    request.from_ns.reset();
    request.to_ns = kNow - 5 * kHour;
    made = room.service->erase(local(), request);
    REQUIRE(made.ok());
    CHECK(made->with_names);
    CHECK_FALSE(room.catalog->find("default", "kitchen", "temp").ok());
    CHECK(room.write("kitchen", "temp", kNow - 6 * kHour));
  }
  SUBCASE("a range that empties a device, which goes unless something is said of it") {
    request.from_ns = kNow - 20 * kHour;
    request.find = [&room]() -> Result<std::vector<catalog::SeriesRow>> {
      return room.catalog->select_rows("default", wire::parse_selector("*/*").value());
    };
    room.fill("cellar", "temp");
    room.fill("attic", "temp");
    REQUIRE(room.devices
                ->update({"default", "cellar"},
                         [](catalog::DeviceMetadata& said) { said.owner = "alice"; },
                         {kNow, "test"})
                .ok());
    REQUIRE(
        room.retention->set({"default", wire::parse_selector("attic").value(), 900 * kHour}).ok());
    const auto made = room.service->erase(local(), request);
    REQUIRE(made.ok());
    CHECK(made->with_names);
    CHECK(room.readings() == 0);
    CHECK(room.catalog->series_count() == 0);
    CHECK(room.catalog->devices("default", "kitchen").empty());
    CHECK(room.catalog->devices("default", "cellar").size() == 1);
    CHECK(room.catalog->devices("default", "attic").size() == 1);
    CHECK(room.retention->rules().size() == 1);
    room.restart();
    CHECK(room.catalog->devices("default", "*").size() == 2);
    CHECK(room.catalog->series_count() == 0);
  }
  SUBCASE("of several series one that may not be erased keeps all") {
    request.find = [&room]() -> Result<std::vector<catalog::SeriesRow>> {
      return room.catalog->select_rows("default", wire::Selector());
    };
    CHECK(room.service->erase(token("kitchen/temp"), request).status().code() ==
          StatusCode::NotAllowed);
    CHECK(room.readings() == 20);
    CHECK(room.service->erase(token("kitchen/*"), request)->devices == 1);
    CHECK(room.catalog->devices("default", "kitchen").empty());
  }
  SUBCASE("nothing") {
    request.find = []() -> Result<std::vector<catalog::SeriesRow>> {
      return std::vector<catalog::SeriesRow>();
    };
    CHECK(room.service->erase(local(), request).status().code() == StatusCode::NotFound);
  }
}

TEST_CASE("a lasting fence that is lifted lets erased times in again") {
  Room room;
  room.fill("kitchen", "temp");
  const auto made = room.erase("kitchen");
  REQUIRE(made.ok());
  CHECK_FALSE(room.write("kitchen", "temp", kNow - kHour));
  CHECK(room.service->lift(made->number).value() == 1);
  CHECK(room.write("kitchen", "temp", kNow - kHour));
}

}  // namespace edgecase::erase
