#include "query/damage.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/model_engine.h"
#include "wire/reading_key.h"

namespace edgecase::query {
namespace {

struct Room {
  test::ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();

  catalog::SeriesId add(const std::string& device, const std::string& sensor) {
    const wire::Reading reading{"home", device, sensor, 1, wire::Value::of_float64(1)};
    std::vector<catalog::SeriesId> ids;
    catalog::CatalogAdditions additions;
    REQUIRE(catalog->resolve({&reading, 1}, ids, additions).ok());
    WriteBatch batch;
    additions.append_to(batch);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->confirm(additions);
    return ids[0];
  }
  std::vector<Damage> find(std::vector<LostRange> lost) {
    DamagedFile file;
    file.path = "/v/000000000007.val";
    file.lost = std::move(lost);
    engine.set_damaged({file});
    return find_damage(engine, *catalog);
  }
};

Bytes key(const catalog::SeriesId& id, std::int64_t time_ns) {
  return wire::make_reading_key({id.device, id.sensor, time_ns});
}

// "home/d/a 5..9"
std::string text_of(const LostSeries& lost) {
  return lost.namespace_name + "/" + lost.device + "/" + lost.sensor + " " +
         (lost.from_ns == INT64_MIN ? "" : std::to_string(lost.from_ns)) + ".." +
         (lost.to_ns == INT64_MAX ? "" : std::to_string(lost.to_ns));
}

std::string texts_of(const Damage& damage) {
  std::string all;
  for (const LostSeries& each : damage.lost) all += text_of(each) + "\n";
  return all;
}

}  // namespace

TEST_CASE("damage: nothing is said where nothing is damaged") {
  Room room;
  CHECK(find_damage(room.engine, *room.catalog).empty());
}

TEST_CASE("damage: what lies between two keys of one series is named with its times") {
  Room room;
  room.add("d", "a");
  const auto id = room.add("d", "b");
  room.add("d", "c");
  const auto found = room.find({{id.namespace_id, key(id, 5), key(id, 9)}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].file.path == "/v/000000000007.val");
  CHECK(texts_of(found[0]) == "home/d/b 5..9\n");
  CHECK_FALSE(found[0].lost_more);
}

TEST_CASE("damage: of several series the first and the last have a bound, those between none") {
  Room room;
  const auto a = room.add("d", "a");
  const auto b = room.add("d", "b");
  const auto c = room.add("e", "c");
  room.add("f", "c");
  CHECK(b.device == a.device);
  auto found = room.find({{a.namespace_id, key(a, 5), key(c, 9)}});
  REQUIRE(found.size() == 1);
  CHECK(texts_of(found[0]) == "home/d/a 5..\nhome/d/b ..\nhome/e/c ..9\n");
  found = room.find({{a.namespace_id, key(c, 5), std::nullopt}});
  CHECK(texts_of(found[0]) == "home/e/c 5..\nhome/f/c ..\n");
  found = room.find({{a.namespace_id, Bytes(), key(a, 3)}});
  CHECK(texts_of(found[0]) == "home/d/a ..3\n");
}

TEST_CASE("damage: what the store notes for itself has its namespace's name, what is gone none") {
  Room room;
  room.add("d", "a");
  const auto catalog_id = room.engine.find_namespace(catalog::kCatalogNamespace);
  REQUIRE(catalog_id.ok());
  auto found = room.find({{catalog_id->id, "a", Bytes("b")}});
  CHECK(texts_of(found[0]) == "_catalog// ..\n");
  found = room.find({{12345, "a", Bytes("b")}});
  CHECK(found[0].lost.empty());
}

TEST_CASE("damage: so many series of a file are named, and that there are more") {
  Room room;
  const auto first = room.add("d", "s0");
  catalog::SeriesId last = first;
  for (std::size_t i = 1; i <= kLostSeriesMax; ++i) last = room.add("d", "s" + std::to_string(i));
  const auto found = room.find({{first.namespace_id, key(first, 0), key(last, 0)}});
  CHECK(found[0].lost.size() == kLostSeriesMax);
  CHECK(found[0].lost_more);
}

}  // namespace edgecase::query
