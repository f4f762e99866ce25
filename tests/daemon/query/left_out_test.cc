// What is damaged is named and left out; everything else is answered.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ingest/ingest_pipeline.h"
#include "query/left_out.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::query {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kReadings = 400;

// Three devices, each in value tables of its own.
struct House {
  House() {
    options.metadata_directory = "/m/store";
    options.values_directory = "/v/store";
    options.memory_limit_bytes = 8u << 20;
    options.wal_segment_bytes = 1u << 20;
    options.wal_limit_bytes = 8u << 20;
    open();
    for (const char* device : {"attic", "kitchen", "porch"}) {
      store(device);
      REQUIRE(engine->flush().ok());
      if (std::string(device) == "kitchen") kitchen_files = value_files();
    }
  }
  void close() {
    service.reset();
    pipeline.reset();
    catalog.reset();
    engine.reset();
    executor.drop_all();
  }
  void open() {
    close();
    auto opened = Engine::open(options, {disk, clock, random, executor, listener});
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    engine = *std::move(opened);
    auto names = catalog::Catalog::open(*engine, {});
    REQUIRE_MESSAGE(names.ok(), names.status().to_string());
    catalog = *std::move(names);
    pipeline = std::make_unique<ingest::IngestPipeline>(*engine, *catalog, clock);
    service = std::make_unique<QueryService>(*engine, *catalog);
  }
  // Letters that do not repeat: a page of them is not packed, and a value is found as it is.
  static std::string noise(int i) {
    std::string text;
    auto state = static_cast<std::uint32_t>(i + 1) * 2'654'435'761u;
    for (int at = 0; at < 80; ++at) {
      state = state * 1'664'525u + 1'013'904'223u;
      text += "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[state >> 26];
    }
    return text;
  }
  void store(const std::string& device) {
    wire::ReadingBatch batch;
    for (int i = 0; i < kReadings; ++i)
      batch.readings.push_back(
          {"default", device, "note", i * kSecondNs,
           wire::Value::of_text(batch.keep(device + std::to_string(i) + "n" + noise(i)))});
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    REQUIRE(pipeline->ingest(*authorized).ok());
  }
  std::vector<std::string> value_files() const {
    std::vector<std::string> paths;
    for (const auto& [path, contents] : disk.durable_contents())
      if (path.starts_with("/v/") && path.ends_with(".val")) paths.push_back(path);
    return paths;
  }
  struct Answer {
    std::map<std::string, int> readings;  // by device
    std::vector<LeftOutReadings> left_out;
  };
  Answer drain(Result<std::unique_ptr<ReadingCursor>> cursor) {
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    Answer answer;
    wire::Reading reading;
    while (true) {
      const auto more = (*cursor)->next(reading);
      REQUIRE_MESSAGE(more.ok(), more.status().to_string());
      if (!*more) break;
      ++answer.readings[std::string(reading.device)];
    }
    answer.left_out = (*cursor)->left_out()->named();
    return answer;
  }
  Answer query(const wire::QueryRequest& request = all()) {
    return drain(service->query(principal, request));
  }
  static wire::QueryRequest all() {
    wire::QueryRequest request;
    request.namespace_name = "default";
    return request;
  }
  // One bit of a value of the kitchen's, which is `i`.
  void damage_kitchen(int i) {
    const std::string needle = "kitchen" + std::to_string(i) + "n";
    for (const std::string& path : value_files()) {
      const std::size_t at = disk.contents(path).find(needle);
      if (at == Bytes::npos) continue;
      disk.flip_bit(path, at + 2, 1);
      return;
    }
    FAIL("it is nowhere");
  }

  test::MemoryFileSystem disk{{"/m", "/v"}};
  test::ManualClock clock;
  SeededRandom random{1};
  test::ManualExecutor executor;
  EventListener listener;
  Options options;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<QueryService> service;
  auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  std::vector<std::string> kitchen_files;
};

}  // namespace

TEST_CASE("left out: nothing where nothing is damaged") {
  House house;
  const auto answer = house.query();
  CHECK(answer.left_out.empty());
  CHECK(answer.readings.size() == 3);
}

TEST_CASE("left out: a file of values that is missing costs its series alone") {
  House house;
  house.close();
  REQUIRE(house.kitchen_files.size() >= 2);
  REQUIRE(house.disk.remove_file(house.kitchen_files.back()).ok());
  house.open();
  const auto answer = house.query();
  CHECK(answer.readings.at("attic") == kReadings);
  CHECK(answer.readings.at("porch") == kReadings);
  CHECK_FALSE(answer.readings.contains("kitchen"));
  REQUIRE(answer.left_out.size() == 1);
  CHECK(answer.left_out[0].device == "kitchen");
  CHECK(answer.left_out[0].sensor == "note");
  CHECK(answer.left_out[0].why.code() == StatusCode::Corruption);

  auto listing = house.service->list_series(house.principal, "default", {});
  REQUIRE(listing.ok());
  SeriesInfo info;
  std::map<std::string, SeriesInfo> listed;
  while (listing->next(info).value()) listed[info.device] = info;
  REQUIRE(listed.size() == 3);
  CHECK(listed["attic"].count == kReadings);
  CHECK_FALSE(listed["attic"].damaged);
  CHECK(listed["kitchen"].damaged);
  CHECK(listing->left_out()->named().size() == 1);

  // It takes writes, also of what is lost.
  house.store("kitchen");
  CHECK(house.query().readings.at("attic") == kReadings);
}

TEST_CASE("left out: one flipped bit costs the readings around it, and no older one stands in") {
  House house;
  house.damage_kitchen(200);
  house.open();
  const auto answer = house.query();
  CHECK(answer.readings.at("attic") == kReadings);
  CHECK(answer.readings.at("kitchen") < kReadings);
  REQUIRE(answer.left_out.size() == 1);
  CHECK(*answer.left_out[0].from_ns <= 200 * kSecondNs);
  CHECK(*answer.left_out[0].to_ns >= 200 * kSecondNs);

  SUBCASE("newest first is the same") {
    wire::QueryRequest request = House::all();
    request.descending = true;
    const auto reverse = house.query(request);
    CHECK(reverse.readings.at("attic") == kReadings);
    CHECK(reverse.left_out.size() == 1);
  }
  SUBCASE("a window with damage has no row, the others do") {
    wire::QueryRequest request = House::all();
    request.every_ns = kReadings * kSecondNs;
    request.aggregate = wire::Aggregate::Count;
    const auto windows = house.query(request);
    CHECK(windows.readings.at("attic") == 1);
    CHECK_FALSE(windows.readings.contains("kitchen"));
    CHECK(windows.left_out.size() == 1);
  }
  SUBCASE("the newest reading is told where it can be read") {
    const auto last = house.drain(house.service->last(house.principal, "default", {}));
    CHECK(last.readings.at("attic") == 1);
    CHECK(last.readings.size() + last.left_out.size() == 3);
  }
}

TEST_CASE("left out: where the newest reading is lost, none that is older stands in") {
  House house;
  house.damage_kitchen(kReadings - 1);
  house.open();
  const auto last = house.drain(house.service->last(house.principal, "default", {}));
  CHECK(last.readings.at("attic") == 1);
  CHECK_FALSE(last.readings.contains("kitchen"));
  REQUIRE(last.left_out.size() == 1);
  CHECK(last.left_out[0].device == "kitchen");
}

TEST_CASE("left out: a metadata table that is missing takes names with it, not the start") {
  House house;
  house.close();
  std::vector<std::string> tables;
  for (const auto& [path, contents] : house.disk.durable_contents())
    if (path.ends_with(".meta")) tables.push_back(path);
  REQUIRE(!tables.empty());
  int told = 0, told_where = 0;
  for (const std::string& path : tables) {
    CAPTURE(path);
    const Bytes contents = house.disk.contents(path);
    REQUIRE(house.disk.remove_file(path).ok());
    house.open();
    CHECK(house.engine->damaged_files().size() == 1);
    const auto answer = house.query();
    int readings = 0;
    for (const auto& [device, count] : answer.readings) readings += count;
    CAPTURE(readings);
    // Nothing is missing in silence.
    CHECK((readings == 3 * kReadings || !answer.left_out.empty()));
    told += answer.left_out.empty() ? 0 : 1;
    // `where` names what it cannot look for, and tells of the rest.
    const auto devices = catalog::DeviceIndex::open(*house.engine);
    REQUIRE(devices.ok());
    const auto where = find_whereabouts(*house.service, **devices, house.principal, "default", {});
    const bool has_names = where.ok() || where.status().code() != StatusCode::NotFound;
    REQUIRE_MESSAGE((where.ok() || !has_names), where.status().to_string());
    if (where.ok() && !where->left_out.empty()) ++told_where;
    house.close();
    house.disk.set_contents(path, contents);
  }
  CHECK(told > 0);
  CHECK(told_where > 0);
  house.open();
  CHECK(house.query().readings.size() == 3);
}

TEST_CASE("left out: readings that follow one another are one, others are counted") {
  LeftOut left_out;
  const Status why = corruption("x");
  left_out.add({"default", "d", "s", 5, 9, why});
  left_out.add({"default", "d", "s", 12, std::nullopt, why});
  REQUIRE(left_out.named().size() == 1);
  CHECK(left_out.named()[0].from_ns == 5);
  CHECK_FALSE(left_out.named()[0].to_ns);
  for (std::size_t i = 0; i < LeftOut::kNamedMax + 3; ++i)
    left_out.add({"default", "d" + std::to_string(i), "s", 1, 1, why});
  CHECK(left_out.named().size() == LeftOut::kNamedMax);
  CHECK(left_out.more() == 4);
  const wire::Json json = left_out_json(left_out, 2);
  REQUIRE(json.size() == 3);
  CHECK(json[0]["device"] == "d");
  CHECK(json[2]["more"] == LeftOut::kNamedMax - 2 + 4);
}

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
