// The catalog of a store that was repaired: what lies under a number is never given to another
// name.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "edgecase/store_check.h"
#include "support/model_engine.h"
#include "wire/reading.h"

using namespace edgecase;
using catalog::Catalog;
using catalog::CatalogAdditions;
using catalog::FieldTag;
using catalog::RecordKind;
using catalog::SeriesId;
using test::ModelEngine;

namespace {

struct RepairedEngine {
  RepairedEngine() {
    readings =
        engine.create_namespace("default", {Placement::Values, GroupCodec::Series, 4}).value();
  }

  void mark() { REQUIRE(engine.create_namespace(kRepairedNamespace, {}).ok()); }
  void write(NamespaceId id, const Bytes& key, const Bytes& value) {
    WriteBatch batch;
    batch.put(id, key, value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  void reading(std::uint32_t device, std::uint32_t sensor, std::int64_t time_ns = 0) {
    write(readings, wire::make_reading_key({device, sensor, time_ns}), "\3");
  }
  void name(RecordKind kind, std::uint32_t device, std::uint32_t sensor, const Bytes& text) {
    write(engine.find_namespace(catalog::kCatalogNamespace)->id,
          catalog::encode_record_key({kind, readings, device, sensor}),
          catalog::encode_record(FieldTag::Name, text));
  }
  std::unique_ptr<Catalog> open() {
    auto opened = Catalog::open(engine, {});
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    return std::move(opened).value();
  }
  bool is_marked() const { return engine.find_namespace(kRepairedNamespace).ok(); }

  ModelEngine engine;
  NamespaceId readings = 0;
};

std::vector<std::string> names_of(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const auto& entry : catalog.select("default", {})) {
    names.push_back(entry.device + "/" + entry.sensor + "=" + std::to_string(entry.id.device) +
                    "." + std::to_string(entry.id.sensor));
  }
  return names;
}

SeriesId number_for(Catalog& catalog, std::string_view device, std::string_view sensor) {
  const wire::Reading reading{"default", device, sensor, 0, wire::Value::of_float64(0)};
  std::vector<SeriesId> ids;
  CatalogAdditions additions;
  REQUIRE(catalog.resolve({&reading, 1}, ids, additions).ok());
  return ids.at(0);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("catalog: numbers whose names are lost get others, and stay theirs") {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  for (const bool marked : {true, false}) {
    CAPTURE(marked);  // not: by a version that knew of no mark
    RepairedEngine store;
    if (marked) store.mark();
    store.write(store.readings, "short", "no reading");
    for (const std::int64_t time_ns : {kFirst, std::int64_t{5}, kLast})
      store.reading(1, 0xffffffff, time_ns);
    store.reading(2, 3);
    store.reading(2, 7, kFirst);
    store.reading(9, 1, kLast);
    const Names wanted = {"recovered-1/recovered-4294967295=1.4294967295",
                          "recovered-2/recovered-3=2.3", "recovered-2/recovered-7=2.7",
                          "recovered-9/recovered-1=9.1"};
    {
      const auto catalog = store.open();
      CHECK(names_of(*catalog) == wanted);
      CHECK(catalog->recovered().devices == 3);
      CHECK(catalog->recovered().series == 4);
      CHECK(catalog->device_count() == 3);
      CHECK(catalog->series_count() == 4);
      CHECK_FALSE(store.is_marked());
      CHECK(number_for(*catalog, "kitchen", "t").device == 10);
      CHECK(number_for(*catalog, "recovered-2", "new").sensor == 8);
    }
    const auto catalog = store.open();
    CHECK(names_of(*catalog) == wanted);
    CHECK(catalog->recovered().series == 0);
    CHECK(number_for(*catalog, "kitchen", "t").device == 10);
    CHECK(number_for(*catalog, "recovered-2", "new").sensor == 8);
  }
}

TEST_CASE("catalog: what is left of the names after a repair holds, the rest is made") {
  RepairedEngine store;
  store.open();  // the layout
  store.name(RecordKind::Device, 1, 0, "whole");
  store.name(RecordKind::Sensor, 1, 1, "a");
  store.name(RecordKind::Device, 2, 0, "half");
  store.name(RecordKind::Sensor, 3, 4, "orphan");       // its device is lost
  store.name(RecordKind::Device, 5, 0, "whole");        // an erased one, back again
  store.name(RecordKind::Device, 6, 0, "recovered-3");  // a name that is taken
  store.name(RecordKind::Sensor, 1, 2, "a");            // so is this
  for (const auto& [device, sensor] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {2, 8}, {3, 4}, {3, 5}})
    store.reading(device, sensor);
  CHECK(Catalog::open(store.engine, {}).status().code() == StatusCode::Corruption);
  store.mark();
  const auto catalog = store.open();
  CHECK(names_of(*catalog) == Names{"half/recovered-8=2.8", "recovered-3-2/orphan=3.4",
                                    "recovered-3-2/recovered-5=3.5", "whole/a=1.1",
                                    "whole/recovered-2=1.2"});
  CHECK(catalog->recovered().devices == 2);
  CHECK(catalog->devices("default", "*").size() == 5);
  CHECK(number_for(*catalog, "new", "s").device == 7);
  CHECK(number_for(*catalog, "half", "new").sensor == 9);
  const Names before = names_of(*catalog);
  CHECK(names_of(*store.open()) == before);
}

TEST_CASE("catalog: records without their layout are read after a repair alone") {
  RepairedEngine store;
  REQUIRE(store.engine.create_namespace(catalog::kCatalogNamespace, {}).ok());
  store.name(RecordKind::Device, 4, 0, "kept");
  CHECK(Catalog::open(store.engine, {}).status().code() == StatusCode::Corruption);
  store.mark();
  CHECK(store.open()->devices("default", "kept").size() == 1);
  CHECK(number_for(*store.open(), "new", "s").device == 5);
}

TEST_CASE("catalog: numbers that rules are left of after a repair are not given out") {
  RepairedEngine store;
  store.mark();
  const Bytes device_12("\0\0\0\14", 4);
  const std::vector<RetentionRule> rules = {{store.readings, "", 1},
                                            {store.readings, device_12, 1}};
  REQUIRE(store.engine.set_retention(rules).ok());
  CHECK(number_for(*store.open(), "new", "s").device == 13);
}

TEST_CASE("catalog: names that could not be made durable are made by the next start" *
          doctest::test_suite("bulk")) {
  for (const bool marked : {true, false}) {
    CAPTURE(marked);
    for (std::uint64_t writes = 0;; ++writes) {
      CAPTURE(writes);
      RepairedEngine store;
      if (marked) store.mark();
      for (std::uint32_t device = 1; device <= 6000; ++device) store.reading(device, 1);
      store.engine.fail_writes_after(writes, out_of_space("full"));
      const bool opened = Catalog::open(store.engine, {}).ok();
      store.engine.fail_writes(ok());
      CHECK(store.is_marked() == !opened);
      const auto catalog = store.open();
      CHECK(catalog->series_count() == 6000);
      CHECK(number_for(*catalog, "new", "s").device == 6001);
      CHECK_FALSE(store.is_marked());
      if (!opened) continue;
      CHECK(writes == 3);  // the layout, and two batches of names
      break;
    }
  }
}
