#include "catalog/catalog.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog_format.h"
#include "support/model_engine.h"

using namespace edgecase;
using catalog::Catalog;
using catalog::CatalogAdditions;
using catalog::CatalogLimits;
using catalog::SeriesId;
using test::ModelEngine;

namespace {

std::unique_ptr<Catalog> open_catalog(Engine& engine, const CatalogLimits& limits = {}) {
  auto catalog = Catalog::open(engine, limits);
  REQUIRE_MESSAGE(catalog.ok(), catalog.status().to_string());
  return std::move(catalog).value();
}

wire::Reading reading_of(std::string_view namespace_name, std::string_view device,
                         std::string_view sensor) {
  return {namespace_name, device, sensor, 0, wire::Value::of_float64(0)};
}

// Resolves one series, writes and confirms.
SeriesId add(Engine& engine, Catalog& catalog, std::string_view namespace_name,
             std::string_view device, std::string_view sensor) {
  const wire::Reading reading = reading_of(namespace_name, device, sensor);
  std::vector<SeriesId> ids;
  CatalogAdditions additions;
  REQUIRE(catalog.resolve({&reading, 1}, ids, additions).ok());
  WriteBatch batch;
  additions.append_to(batch);
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  catalog.confirm(additions);
  return ids.at(0);
}

Status try_resolve(Catalog& catalog, const std::vector<wire::Reading>& readings) {
  std::vector<SeriesId> ids;
  CatalogAdditions additions;
  return catalog.resolve(readings, ids, additions);
}

wire::Selector selector(std::string_view text) {
  return wire::parse_selector(text).value();
}

}  // namespace

TEST_CASE("catalog: names get numbers, which stay theirs after reopening") {
  ModelEngine engine;
  SeriesId a, b, c, d;
  {
    const auto catalog = open_catalog(engine);
    a = add(engine, *catalog, "default", "kitchen", "temp");
    b = add(engine, *catalog, "default", "kitchen", "hum");
    c = add(engine, *catalog, "default", "cellar", "temp");
    d = add(engine, *catalog, "home", "kitchen", "temp");
    CHECK(catalog->device_count() == 3);
    CHECK(catalog->series_count() == 4);
  }
  CHECK(a.device == b.device);
  CHECK(a.sensor != b.sensor);
  CHECK(a.device != c.device);
  CHECK(a.namespace_id != d.namespace_id);
  const auto catalog = open_catalog(engine);
  CHECK(catalog->device_count() == 3);
  CHECK(catalog->series_count() == 4);
  CHECK(add(engine, *catalog, "default", "kitchen", "temp") == a);
  CHECK(add(engine, *catalog, "default", "kitchen", "hum") == b);
  CHECK(add(engine, *catalog, "default", "cellar", "temp") == c);
  CHECK(add(engine, *catalog, "home", "kitchen", "temp") == d);
  // New ones get numbers that were never used.
  const SeriesId e = add(engine, *catalog, "default", "kitchen", "door");
  CHECK(e.device == a.device);
  CHECK(e.sensor != a.sensor);
  CHECK(e.sensor != b.sensor);
  const SeriesId f = add(engine, *catalog, "default", "attic", "temp");
  CHECK(f.device != a.device);
  CHECK(f.device != c.device);
}

TEST_CASE("catalog: namespaces of readings and the catalog's own lie as agreed") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  REQUIRE(catalog->ensure_namespace("home").ok());
  const auto home = engine.find_namespace("home");
  REQUIRE(home.ok());
  CHECK(home->options.placement == Placement::Values);
  CHECK(home->options.codec == GroupCodec::Series);
  CHECK(home->options.scope_bytes == 4);
  const auto own = engine.find_namespace("_catalog");
  REQUIRE(own.ok());
  CHECK(own->options.placement == Placement::Metadata);
  CHECK(own->options.codec == GroupCodec::Plain);
  CHECK(*catalog->ensure_namespace("home") == home->id);
  REQUIRE(catalog->ensure_namespace("_rejected").ok());
  CHECK(catalog->namespaces() == std::vector<std::string>{"_rejected", "default", "home"});
  CHECK(catalog->has_namespace("home"));
  CHECK_FALSE(catalog->has_namespace("_catalog"));
  CHECK(open_catalog(engine)->namespaces() ==
        std::vector<std::string>{"_rejected", "default", "home"});
}

TEST_CASE("catalog: the default namespace is there before its first reading") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  CHECK(catalog->namespaces() == std::vector<std::string>{"default"});
  CHECK(catalog->has_namespace("default"));
  CHECK(catalog->find("default", "kitchen", "temp").status().message().find("no device kitchen") ==
        0);
  CHECK(catalog->select("default", selector("*/*")).empty());
  CHECK(catalog->drop_namespace("default").ok());
  add(engine, *catalog, "default", "kitchen", "temp");
  CHECK(catalog->namespaces() == std::vector<std::string>{"default"});
  CHECK(catalog->drop_namespace("default").ok());
  CHECK(catalog->namespaces() == std::vector<std::string>{"default"});
}

TEST_CASE("catalog: wrong names are refused and create nothing") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  const std::string long_name(1'025, 'x');
  for (const wire::Reading& bad : {
           reading_of("", "d", "s"),
           reading_of("a/b", "d", "s"),
           reading_of("_catalog", "d", "s"),
           reading_of("_other", "d", "s"),
           reading_of("n", "", "s"),
           reading_of("n", "d", ""),
           reading_of("n", "d\n", "s"),
           reading_of("n", "d", long_name),
           reading_of("n", "d", "\xff"),
       }) {
    const Status status = try_resolve(*catalog, {reading_of("new", "d", "s"), bad});
    CHECK(status.code() == StatusCode::InvalidArgument);
  }
  CHECK(catalog->select("", selector("*")).empty());
  const Status status =
      try_resolve(*catalog, {reading_of("n", "d", "s"), reading_of("n", "", "s")});
  CHECK(status.message() == "reading 2: device name is empty");
}

TEST_CASE("catalog: what was not written durably is not shown, and is carried again") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  const std::vector<wire::Reading> readings = {reading_of("default", "d", "a"),
                                               reading_of("default", "d", "b"),
                                               reading_of("default", "d", "a")};
  std::vector<SeriesId> first_ids, second_ids;
  CatalogAdditions first, second, third;
  REQUIRE(catalog->resolve(readings, first_ids, first).ok());
  CHECK(first.size() == 3);  // one device, two sensors
  CHECK(first_ids[0] == first_ids[2]);
  WriteBatch batch;
  first.append_to(batch);
  engine.fail_next_write(out_of_space("full"));
  REQUIRE_FALSE(engine.write(batch, Durability::Sync).ok());
  CHECK(catalog->series_count() == 0);
  CHECK(catalog->find("default", "d", "a").status().code() == StatusCode::NotFound);
  CHECK(catalog->select("default", selector("*")).empty());

  REQUIRE(catalog->resolve(readings, second_ids, second).ok());
  CHECK(second.size() == 3);
  CHECK(second_ids == first_ids);
  batch.clear();
  second.append_to(batch);
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  catalog->confirm(second);
  catalog->confirm(second);  // twice does no harm
  CHECK(catalog->series_count() == 2);
  CHECK(catalog->device_count() == 1);
  REQUIRE(catalog->resolve(readings, second_ids, third).ok());
  CHECK(third.empty());
  CHECK(open_catalog(engine)->series_count() == 2);
}

TEST_CASE("catalog: find says what is missing") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  const SeriesId id = add(engine, *catalog, "default", "kitchen", "temp");
  const auto found = catalog->find("default", "kitchen", "temp");
  REQUIRE(found.ok());
  CHECK(found->id == id);
  CHECK(found->device == "kitchen");
  CHECK(catalog->find("x", "kitchen", "temp").status().message() == "no namespace x");
  CHECK(catalog->find("default", "x", "temp").status().message().find("no device x") == 0);
  CHECK(catalog->find("default", "kitchen", "x").status().message().find("no sensor x") == 0);
}

TEST_CASE("catalog: select is ordered, and all namespaces leave out the store's own") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  for (const char* namespace_name : {"zoo", "default", "_rejected"}) {
    for (const char* device : {"b", "a", "c*"}) {
      for (const char* sensor : {"y", "x"}) {
        add(engine, *catalog, namespace_name, device, sensor);
      }
    }
  }
  const auto names = [&](std::string_view namespace_name, std::string_view text) {
    std::string all;
    for (const auto& entry : catalog->select(namespace_name, selector(text))) {
      all += entry.namespace_name + ":" + entry.device + "/" + entry.sensor + " ";
    }
    return all;
  };
  CHECK(names("default", "*") ==
        "default:a/x default:a/y default:b/x default:b/y default:c*/x default:c*/y ");
  CHECK(names("", "a") == "default:a/x default:a/y zoo:a/x zoo:a/y ");
  CHECK(names("", "a/x") == "default:a/x zoo:a/x ");
  CHECK(names("_rejected", "a/x") == "_rejected:a/x ");
  CHECK(names("default", "c\\*/x") == "default:c*/x ");
  CHECK(names("default", "?/y") == "default:a/y default:b/y ");
  CHECK(names("default", "nothing/*").empty());
  CHECK(names("nowhere", "*").empty());
}

TEST_CASE("catalog: its memory is set aside in the engine, and has a limit of its own") {
  ModelEngine engine;
  const std::string name(wire::kNameMaxBytes - 6, 'n');
  std::uint64_t all = 0;
  {
    const auto catalog = open_catalog(engine, {.memory_bytes = 3u << 20});
    Status refused;
    int taken = 0;
    for (; refused.ok(); ++taken) {
      std::vector<std::string> names;
      for (int i = 0; i < 100; ++i) names.push_back(name + std::to_string(taken * 100 + i));
      std::vector<wire::Reading> readings;
      for (const std::string& each : names) readings.push_back(reading_of("one", name, each));
      std::vector<SeriesId> ids;
      CatalogAdditions additions;
      refused = catalog->resolve(readings, ids, additions);
      if (!refused.ok()) break;
      WriteBatch batch;
      additions.append_to(batch);
      REQUIRE(engine.write(batch, Durability::Sync).ok());
      catalog->confirm(additions);
    }
    CAPTURE(taken);
    CHECK(taken > 50);
    CHECK(refused.code() == StatusCode::LimitReached);
    CHECK(refused.message().find("storage.memory-limit") != std::string::npos);
    all = catalog->memory_bytes();
    CHECK(all <= 3u << 20);
    CHECK(all > 2u << 20);
    CHECK(engine.stats().set_aside_bytes + (512u << 10) > all);
    // What is there goes on, and what is kept as rejected.
    CHECK(try_resolve(*catalog, {reading_of("one", name, name + "0")}).ok());
    CHECK(try_resolve(*catalog, {reading_of("_rejected", "mqtt", "message")}).ok());
  }
  engine.set_aside(engine.stats().set_aside_bytes, 0);
  const auto catalog = open_catalog(engine);
  CHECK(engine.stats().set_aside_bytes + (512u << 10) > all);
}

TEST_CASE("catalog: each limit is Busy, names its setting, and leaves room for what still fits") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine, {.namespaces = 2, .devices = 3, .series = 4});
  add(engine, *catalog, "one", "a", "1");
  add(engine, *catalog, "two", "b", "1");
  Status status = try_resolve(*catalog, {reading_of("three", "a", "1")});
  CHECK(status.code() == StatusCode::LimitReached);
  CHECK(status.message().find("limits.namespaces") != std::string::npos);
  CHECK(catalog->ensure_namespace("_rejected").ok());

  status = try_resolve(*catalog, {reading_of("one", "c", "1"), reading_of("one", "d", "1")});
  CHECK(status.code() == StatusCode::LimitReached);
  CHECK(status.message().find("limits.devices") != std::string::npos);
  add(engine, *catalog, "one", "c", "1");

  status = try_resolve(*catalog, {reading_of("one", "c", "2"), reading_of("one", "c", "3")});
  CHECK(status.code() == StatusCode::LimitReached);
  CHECK(status.message().find("limits.series") != std::string::npos);
  // The same new series twice is one.
  CHECK(try_resolve(*catalog, {reading_of("one", "c", "2"), reading_of("one", "c", "2"),
                               reading_of("one", "a", "1")})
            .ok());
  CHECK(try_resolve(*catalog, {reading_of("one", "c", "4")}).code() == StatusCode::LimitReached);
  CHECK(try_resolve(*catalog, {reading_of("two", "b", "1")}).ok());
  // What limits refuse is kept as rejected, though that be the first.
  CHECK(try_resolve(*catalog, {reading_of("_rejected", "mqtt", "message")}).ok());
}

TEST_CASE("catalog: records that contradict each other are corruption") {
  const auto open_with = [](const std::vector<std::pair<Bytes, Bytes>>& records) {
    ModelEngine engine;
    const auto id = engine.create_namespace("_catalog", {});
    const auto readings = engine.create_namespace("default", {});
    REQUIRE(id.ok());
    REQUIRE(*readings == 2);
    WriteBatch batch;
    for (const auto& [key, value] : records) batch.put(*id, key, value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    return Catalog::open(engine, {}).status().code();
  };
  using catalog::encode_record;
  using catalog::encode_record_key;
  using catalog::FieldTag;
  using catalog::RecordKind;
  const Bytes format = encode_record_key({});
  const Bytes layout = encode_record(FieldTag::LayoutVersion, "\1");
  const Bytes device = encode_record_key({RecordKind::Device, 2, 1, 0});
  const Bytes sensor = encode_record_key({RecordKind::Sensor, 2, 1, 1});
  const Bytes name = encode_record(FieldTag::Name, "n");
  CHECK(open_with({}) == StatusCode::Ok);
  CHECK(open_with({{format, layout}, {device, name}, {sensor, name}}) == StatusCode::Ok);
  CHECK(open_with({{device, name}}) == StatusCode::Corruption);
  CHECK(open_with({{format, layout}, {sensor, name}}) == StatusCode::Corruption);
  CHECK(open_with({{format, layout}, {"X", name}}) == StatusCode::Corruption);
  CHECK(open_with({{format, layout}, {device, ""}}) == StatusCode::Corruption);
  CHECK(open_with({{format, layout}, {encode_record_key({RecordKind::Device, 9, 1, 0}), name}}) ==
        StatusCode::Corruption);
  CHECK(open_with({{format, layout},
                   {device, name},
                   {encode_record_key({RecordKind::Device, 2, 2, 0}), name}}) ==
        StatusCode::Corruption);
  CHECK(open_with({{format, encode_record(FieldTag::LayoutVersion, "\2")}}) ==
        StatusCode::Unsupported);
  CHECK(open_with({{format, encode_record(FieldTag::LayoutVersion, "")}}) ==
        StatusCode::Corruption);
}

TEST_CASE("catalog: opening passes on what the engine says") {
  ModelEngine engine;
  engine.fail_writes(out_of_space("full"));
  CHECK(Catalog::open(engine, {}).status().code() == StatusCode::OutOfSpace);
  engine.fail_writes(ok());
  engine.fail_next_read(io_error("bad block"));
  CHECK(Catalog::open(engine, {}).status().code() == StatusCode::IoError);
  CHECK(Catalog::open(engine, {}).ok());
  // What is damaged stops nobody.
  engine.fail_next_read(corruption("bad block"));
  const auto damaged = Catalog::open(engine, {});
  REQUIRE(damaged.ok());
  CHECK((*damaged)->is_damaged());
}

TEST_CASE("catalog: many threads agree on the numbers") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  constexpr int kThreads = 4;
  constexpr int kSeries = 200;
  std::vector<std::vector<SeriesId>> results(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSeries; ++i) {
        const std::string device = "device" + std::to_string(i / 10);
        const std::string sensor = "sensor" + std::to_string(i);
        const wire::Reading reading = reading_of("default", device, sensor);
        std::vector<SeriesId> ids;
        CatalogAdditions additions;
        if (!catalog->resolve({&reading, 1}, ids, additions).ok()) return;
        WriteBatch batch;
        additions.append_to(batch);
        if (!additions.empty() && !engine.write(batch, Durability::Sync).ok()) return;
        catalog->confirm(additions);
        results[static_cast<std::size_t>(t)].push_back(ids[0]);
        (void)catalog->select("default", wire::Selector{});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::pair<std::uint32_t, std::uint32_t>> distinct;
  for (const auto& ids : results) {
    CHECK(ids == results[0]);
    for (const SeriesId& id : ids) distinct.emplace(id.device, id.sensor);
  }
  CHECK(distinct.size() == kSeries);
  CHECK(catalog->series_count() == kSeries);
  CHECK(open_catalog(engine)->series_count() == kSeries);
}

TEST_CASE("catalog: a dropped namespace takes its names along") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine, {.namespaces = 2, .devices = 3, .series = 4});
  add(engine, *catalog, "kept", "a", "s");
  const SeriesId old = add(engine, *catalog, "doomed", "a", "s");
  add(engine, *catalog, "doomed", "b", "s");
  add(engine, *catalog, "doomed", "b", "t");
  // The limits are reached; a batch that is on its way names a series that is not durable yet.
  CHECK(try_resolve(*catalog, {reading_of("doomed", "c", "s")}).code() == StatusCode::LimitReached);
  CHECK(catalog->drop_namespace("none").code() == StatusCode::NotFound);
  CHECK(catalog->drop_namespace("").code() == StatusCode::NotFound);
  CHECK(catalog->drop_namespace("_catalog").code() == StatusCode::NotAllowed);
  REQUIRE(catalog->drop_namespace("doomed").ok());
  CHECK_FALSE(catalog->has_namespace("doomed"));
  CHECK(catalog->namespaces() == std::vector<std::string>{"default", "kept"});
  CHECK(catalog->device_count() == 1);
  CHECK(catalog->series_count() == 1);
  CHECK(catalog->select("doomed", selector("*/*")).empty());
  CHECK(catalog->select("", selector("*/*")).size() == 1);
  CHECK(catalog->find("doomed", "a", "s").status().code() == StatusCode::NotFound);

  // Room again, and a new one of the name is another one.
  const SeriesId fresh = add(engine, *catalog, "doomed", "b", "t");
  CHECK(fresh.namespace_id != old.namespace_id);
  CHECK(catalog->select("doomed", selector("*/*")).size() == 1);
  const auto reopened = open_catalog(engine);
  CHECK(reopened->series_count() == 2);
  CHECK(reopened->find("doomed", "b", "t")->id == fresh);
}

TEST_CASE("catalog: a batch that is on its way when its namespace is dropped brings nothing back") {
  ModelEngine engine;
  const auto catalog = open_catalog(engine);
  add(engine, *catalog, "doomed", "a", "s");
  const wire::Reading reading = reading_of("doomed", "b", "s");
  std::vector<SeriesId> ids;
  CatalogAdditions additions;
  REQUIRE(catalog->resolve({&reading, 1}, ids, additions).ok());
  REQUIRE(catalog->drop_namespace("doomed").ok());
  WriteBatch batch;
  additions.append_to(batch);
  batch.put(ids[0].namespace_id, "reading", "1");
  CHECK_FALSE(engine.write(batch, Durability::Sync).ok());
  catalog->confirm(additions);  // even if it had been written
  CHECK(catalog->device_count() == 0);
  CHECK(catalog->series_count() == 0);
}

TEST_CASE("catalog: names that a cut drop left behind are removed at the next start") {
  ModelEngine engine;
  NamespaceId id = 0;
  {
    const auto catalog = open_catalog(engine);
    id = add(engine, *catalog, "doomed", "a", "s").namespace_id;
    add(engine, *catalog, "kept", "a", "s");
  }
  REQUIRE(engine.drop_namespace(id).ok());
  const NamespaceId records = engine.find_namespace(catalog::kCatalogNamespace)->id;
  const auto count = [&] { return engine.range_stats(records, {}, {})->entries; };
  CHECK(count() == 5);
  CHECK(open_catalog(engine)->series_count() == 1);
  CHECK(count() == 3);
}

TEST_CASE("what is erased makes room, is found no more, and its numbers stay used") {
  ModelEngine engine;
  auto catalog = open_catalog(engine, {.namespaces = 2, .devices = 2, .series = 4});
  add(engine, *catalog, "default", "a", "x");
  const SeriesId second = add(engine, *catalog, "default", "b", "x");
  add(engine, *catalog, "default", "b", "y");
  CHECK(try_resolve(*catalog, {reading_of("default", "c", "x")}).code() ==
        StatusCode::LimitReached);
  const auto erase = [&](const catalog::Erased& erased) {
    WriteBatch batch, ranges;
    const auto take = [&ranges](const catalog::KeySpan& span) {
      ranges.erase_range(span.namespace_id, span.lower, span.upper);
      return ok();
    };
    REQUIRE(catalog->plan_erasure(erased, take, batch).ok());
    REQUIRE(engine.write(ranges, Durability::Sync).ok());
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    catalog->forget(erased);
  };
  erase({{}, {catalog->find("default", "a", "x").value()}});
  CHECK(catalog->series_count() == 2);
  CHECK(catalog->device_count() == 2);
  CHECK(catalog->devices("default", "*").size() == 2);
  erase({catalog->devices("default", "b"), {}});
  CHECK(catalog->series_count() == 0);
  CHECK(catalog->device_count() == 1);
  CHECK(catalog->find("default", "b", "x").status().code() == StatusCode::NotFound);
  CHECK(catalog->select("default", {"b", "*"}).empty());
  CHECK(catalog->select("", {}).empty());
  for (const bool reopened : {false, true}) {
    CAPTURE(reopened);
    if (reopened) catalog = open_catalog(engine, {.namespaces = 2, .devices = 2, .series = 4});
    const std::string sensor = reopened ? "later" : "sooner";
    CHECK(add(engine, *catalog, "default", "b", sensor).device > second.device);
    CHECK(add(engine, *catalog, "default", "a", sensor).sensor > 1);
  }
  // Rows without a name count once, however they went.
  REQUIRE(catalog->drop_namespace("default").ok());
  CHECK(catalog->series_count() == 0);
  CHECK(catalog->device_count() == 0);
  add(engine, *catalog, "plant", "a", "x");
  add(engine, *catalog, "plant", "b", "x");
  CHECK(try_resolve(*catalog, {reading_of("plant", "c", "x")}).code() == StatusCode::LimitReached);
}
