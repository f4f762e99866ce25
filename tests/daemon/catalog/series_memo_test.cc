#include "catalog/names.h"

#include <doctest/doctest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "support/model_engine.h"

using namespace edgecase;
using catalog::SeriesId;
using catalog::SeriesMemo;

namespace {

// A catalog, and what one request after another remembers of it.
struct MemoRoom {
  test::ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  SeriesMemo memo;

  static wire::Reading reading(std::string_view name, std::uint32_t number) {
    wire::Reading made{name, "a", "s", 0, wire::Value::of_float64(0)};
    made.series_number = number;
    return made;
  }
  SeriesId store(const wire::Reading& reading) {
    std::vector<SeriesId> ids;
    catalog::CatalogAdditions additions;
    REQUIRE(catalog->resolve({&reading, 1}, ids, additions, &memo).ok());
    WriteBatch batch;
    additions.append_to(batch);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->confirm(additions);
    return ids.at(0);
  }
  void erase(const catalog::Erased& erased) {
    WriteBatch batch, ranges;
    const auto take = [&ranges](const catalog::KeySpan& span) {
      ranges.erase_range(span.namespace_id, span.lower, span.upper);
      return ok();
    };
    REQUIRE(catalog->plan_erasure(erased, take, batch).ok());
    REQUIRE(engine.write(ranges, Durability::Sync).ok());
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->forget(erased);
  }
};

}  // namespace

TEST_CASE("series memo: what is known by its number is not looked up, under one numbering") {
  MemoRoom room;
  room.memo.begin(1, 1);
  const SeriesId first = room.store(MemoRoom::reading("default", 5));
  CHECK(room.memo.find(MemoRoom::reading("default", 5)) == nullptr);  // it was not durable
  CHECK(room.store(MemoRoom::reading("default", 5)) == first);
  REQUIRE(room.memo.find(MemoRoom::reading("default", 5)) != nullptr);
  CHECK(*room.memo.find(MemoRoom::reading("default", 5)) == first);
  CHECK(room.memo.find(MemoRoom::reading("default", 4)) == nullptr);
  CHECK(room.memo.find(MemoRoom::reading("default", 6)) == nullptr);
  CHECK(room.memo.find(MemoRoom::reading("default", 0)) == nullptr);
  // The answer to another name shows that the number is believed.
  CHECK(room.store(MemoRoom::reading("other", 5)) == first);
  room.memo.begin(1, 2);
  CHECK(!(room.store(MemoRoom::reading("other", 5)) == first));
  room.memo.begin(1, 0);
  CHECK(room.store(MemoRoom::reading("default", 5)) == first);
  CHECK(room.memo.find(MemoRoom::reading("default", 5)) == nullptr);
}

TEST_CASE("series memo: numbers without end take no memory") {
  MemoRoom room;
  room.memo.begin(1, 1);
  for (int round = 0; round < 2; ++round)
    room.store(MemoRoom::reading("default", SeriesMemo::kNumbersMax));
  CHECK(room.memo.find(MemoRoom::reading("default", SeriesMemo::kNumbersMax)) == nullptr);
  CHECK(room.memo.memory_bytes() == 0);
}

TEST_CASE("series memo: nothing is known by an old number once devices, series, namespaces went") {
  MemoRoom room;
  room.memo.begin(1, 1);
  const wire::Reading reading = MemoRoom::reading("default", 1);
  room.store(reading);
  const SeriesId first = room.store(reading);
  REQUIRE(room.memo.find(reading) != nullptr);

  const catalog::SeriesEntry entry = room.catalog->find("default", "a", "s").value();
  SUBCASE("a device") {
    room.erase({{{"default", "a", entry.id.namespace_id, entry.id.device}}, {}});
    const SeriesId second = room.store(reading);
    CHECK(second.device != first.device);
  }
  SUBCASE("a series") {
    room.erase({{}, {entry}});
    const SeriesId second = room.store(reading);
    CHECK(second.device == first.device);
    CHECK(second.sensor != first.sensor);
  }
  SUBCASE("a namespace") {
    REQUIRE(room.catalog->drop_namespace("default").ok());
    const SeriesId second = room.store(reading);
    CHECK(second.namespace_id != first.namespace_id);
  }
  CHECK(room.catalog->find("default", "a", "s").ok());
}
