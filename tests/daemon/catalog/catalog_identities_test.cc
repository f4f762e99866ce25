// Devices of several origins: names stay while they are free, and none writes to another's.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "support/model_engine.h"

namespace edgecase::catalog {
namespace {

using test::ModelEngine;

std::unique_ptr<Catalog> opened_catalog(Engine& engine, const CatalogLimits& limits = {}) {
  auto catalog = Catalog::open(engine, limits);
  REQUIRE_MESSAGE(catalog.ok(), catalog.status().to_string());
  return std::move(catalog).value();
}

wire::Reading reading_from(std::string_view device,
                           const wire::SeriesIdentity* identity = nullptr) {
  wire::Reading reading{"n", device, "s", 0, wire::Value::of_float64(0)};
  reading.identity = identity;
  return reading;
}

// As the pipeline does it; the name that the device has got.
std::string write_from(Engine& engine, Catalog& catalog, const wire::Reading& reading,
                       std::vector<OriginNumber> origins, SeriesId* id = nullptr,
                       const Catalog::OwnerOfName& owner = {}) {
  Catalog::Placed placed;
  const auto here = catalog.place({&reading, 1}, origins, placed, owner);
  REQUIRE(here.ok());
  std::vector<SeriesId> ids;
  CatalogAdditions additions;
  const Status status = catalog.resolve(*here, ids, additions, nullptr, origins);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  WriteBatch batch;
  additions.append_to(batch);
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  catalog.confirm(additions);
  if (id != nullptr) *id = ids.front();
  return std::string(here->front().device);
}

}  // namespace

TEST_CASE("origins: a name is of the first, and each later one gets its own") {
  ModelEngine engine;
  auto catalog = opened_catalog(engine);
  SeriesId first, second, own;
  CHECK(write_from(engine, *catalog, reading_from("d"), {1}, &first) == "d");
  const std::string of_second = write_from(engine, *catalog, reading_from("d"), {2}, &second);
  const std::string of_own = write_from(engine, *catalog, reading_from("d"), {0}, &own);
  CHECK(of_second.starts_with("d~"));
  CHECK(of_own.starts_with("d~"));
  CHECK(std::set<std::string>{"d", of_second, of_own}.size() == 3);
  CHECK(std::set<std::uint32_t>{first.device, second.device, own.device}.size() == 3);
  for (int round = 0; round < 2; ++round) {
    CHECK(write_from(engine, *catalog, reading_from("d"), {1}) == "d");
    CHECK(write_from(engine, *catalog, reading_from("d"), {2}) == of_second);
    CHECK(write_from(engine, *catalog, reading_from("d"), {0}) == of_own);
    CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{2}) ==
          std::vector<std::string>{of_second});
    CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{3}).empty());
    // One that is called as another's is here is another still.
    CHECK(catalog->placed_names("n", of_second, std::vector<OriginNumber>{2}).empty());
    catalog = opened_catalog(engine);
  }
  CHECK(write_from(engine, *catalog, reading_from(of_second), {2}) != of_second);
  const auto counts = catalog->count_origins();
  CHECK(counts.at(1).devices == 1);
  CHECK(counts.at(2).devices == 2);
  CHECK(counts.at(2).renamed == 2);
}

TEST_CASE("origins: what is nobody's is of the first that writes to it") {
  ModelEngine engine;
  auto catalog = opened_catalog(engine);
  SeriesId restored, claimed;
  CHECK(write_from(engine, *catalog, reading_from("d"), {}, &restored) == "d");
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{7}).size() == 1);
  CHECK(write_from(engine, *catalog, reading_from("d"), {7}, &claimed) == "d");
  CHECK(claimed == restored);
  catalog = opened_catalog(engine);
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{8}).empty());
  CHECK(write_from(engine, *catalog, reading_from("d"), {8}) != "d");
  CHECK(write_from(engine, *catalog, reading_from("d"), {7}) == "d");
}

TEST_CASE("origins: a restored device that was renamed is whose name it has") {
  ModelEngine before, after;
  auto catalog = opened_catalog(before);
  write_from(before, *catalog, reading_from("d"), {1});
  const std::string renamed = write_from(before, *catalog, reading_from("d"), {2});
  catalog = opened_catalog(after);
  SeriesId restored, claimed;
  write_from(after, *catalog, reading_from("d"), {});
  write_from(after, *catalog, reading_from(renamed), {}, &restored);
  CHECK(write_from(after, *catalog, reading_from("d"), {2}, &claimed) == renamed);
  CHECK(claimed == restored);
  CHECK(write_from(after, *catalog, reading_from("d"), {1}) == "d");
  catalog = opened_catalog(after);
  CHECK(write_from(after, *catalog, reading_from("d"), {2}) == renamed);
}

TEST_CASE("origins: a backup says whose devices are, before their first reading and after") {
  ModelEngine before, after;
  auto catalog = opened_catalog(before);
  write_from(before, *catalog, reading_from("d"), {1});
  const std::string renamed = write_from(before, *catalog, reading_from("d"), {2});
  write_from(before, *catalog, reading_from("own"), {0});
  write_from(before, *catalog, reading_from("nobodys"), {});
  std::vector<DeviceOrigin> saved;
  for (std::uint32_t row = 0; row <= catalog->device_rows(); ++row) {
    if (auto origin = catalog->origin_at(row); origin.ok()) saved.push_back(*std::move(origin));
  }
  REQUIRE(saved.size() == 3);
  CHECK(saved[1].device == renamed);
  CHECK(saved[1].name_there == "d");
  catalog = opened_catalog(after);
  SeriesId restored, claimed;
  write_from(after, *catalog, reading_from("d"), {}, &restored);
  for (int round = 0; round < 2; ++round) {
    const auto others = catalog->restore_origins(saved);
    REQUIRE_MESSAGE(others.ok(), others.status().to_string());
    CHECK(*others == 0);
    catalog = opened_catalog(after);
  }
  CHECK(catalog->device_count() == 3);
  const std::string of_third = write_from(after, *catalog, reading_from("d"), {3});
  CHECK(of_third.starts_with("d~"));
  CHECK(of_third != renamed);
  CHECK(write_from(after, *catalog, reading_from("own"), {1}) != "own");
  CHECK(write_from(after, *catalog, reading_from("d"), {1}, &claimed) == "d");
  CHECK(claimed == restored);
  CHECK(write_from(after, *catalog, reading_from("d"), {2}) == renamed);
  CHECK(write_from(after, *catalog, reading_from("own"), {0}) == "own");
  // A copy goes where its name says, whosever that is.
  CHECK(write_from(after, *catalog, reading_from(renamed), {}) == renamed);
}

TEST_CASE("origins: what is somebody's already stays, and what cannot be is refused") {
  ModelEngine engine;
  const auto catalog = opened_catalog(engine, {.devices = 2});
  write_from(engine, *catalog, reading_from("d"), {1});
  const auto code_of = [&](const DeviceOrigin& device) {
    return catalog->restore_origins({&device, 1}).status().code();
  };
  const DeviceOrigin others{"n", "d", 2, ""}, renamed{"n", "d", 1, "e"};
  CHECK(*catalog->restore_origins({&others, 1}) == 1);
  CHECK(*catalog->restore_origins({&renamed, 1}) == 1);
  CHECK(code_of({"n", "", 1, ""}) == StatusCode::InvalidArgument);
  CHECK(code_of({"n", "a/b", 1, ""}) == StatusCode::InvalidArgument);
  CHECK(code_of({"n", "a", 1, "a/b"}) == StatusCode::InvalidArgument);
  CHECK(code_of({"_n", "a", 1, ""}) == StatusCode::InvalidArgument);
  CHECK(code_of({"n", "a", kNoOrigin, ""}) == StatusCode::InvalidArgument);
  CHECK(code_of({"n", "a", 1, ""}) == StatusCode::Ok);
  CHECK(code_of({"n", "b", 1, ""}) == StatusCode::LimitReached);
  CHECK(write_from(engine, *catalog, reading_from("d"), {1}) == "d");
}

TEST_CASE("origins: a holder goes on with what it was handed") {
  ModelEngine engine;
  const auto catalog = opened_catalog(engine);
  write_from(engine, *catalog, reading_from("d"), {1});
  const std::string own_name = write_from(engine, *catalog, reading_from("d"), {2});
  write_from(engine, *catalog, reading_from("e"), {2});
  CHECK(write_from(engine, *catalog, reading_from("d"), {1, 2}) == "d");
  CHECK(write_from(engine, *catalog, reading_from("e"), {1, 2}) == "e");
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{1, 2}) ==
        std::vector<std::string>{"d", own_name});
}

TEST_CASE("origins: two lines of one identity stay two") {
  ModelEngine engine;
  const auto catalog = opened_catalog(engine);
  // The device is called as the measurement: no tag says it.
  wire::Identity plain;
  plain.measurement = "s";
  plain.field = "value";
  Bytes body;
  const wire::SeriesIdentity identity = wire::series_identity(plain, "d", "s", body);
  write_from(engine, *catalog, reading_from("d", &identity), {1});
  const std::string other = write_from(engine, *catalog, reading_from("d", &identity), {2});
  const auto of_first = catalog->find("n", "d", "s"), of_second = catalog->find("n", other, "s");
  REQUIRE(of_first.ok());
  REQUIRE(of_second.ok());
  CHECK(identity_of(*of_first)->tags.empty());
  CHECK(identity_of(*of_second)->tags == wire::Identity::Tags{{"device", other}});
  // It is the same series the next time.
  SeriesId once, again;
  write_from(engine, *catalog, reading_from("d", &identity), {2}, &once);
  write_from(engine, *catalog, reading_from("d", &identity), {2}, &again);
  CHECK(once == of_second->id);
  CHECK(again == of_second->id);
}

TEST_CASE("origins: an erasure takes the name, and records that are rewritten keep whose it is") {
  ModelEngine engine;
  auto catalog = opened_catalog(engine);
  write_from(engine, *catalog, reading_from("d"), {1});
  SeriesId id;
  const std::string renamed = write_from(engine, *catalog, reading_from("d"), {2}, &id);
  Erased sensor;
  sensor.series.push_back(*catalog->find("n", renamed, "s"));
  WriteBatch batch;
  REQUIRE(catalog
              ->plan_erasure(
                  sensor, [](KeySpan) { return ok(); }, batch)
              .ok());
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  catalog->forget(sensor);
  catalog = opened_catalog(engine);
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{2}) ==
        std::vector<std::string>{renamed});
  Erased device;
  device.devices = catalog->devices("n", wire::escape_name(renamed));
  REQUIRE(device.devices.size() == 1);
  catalog->forget(device);
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{2}).empty());
  CHECK(catalog->placed_names("n", "d", std::vector<OriginNumber>{1}).size() == 1);
}

TEST_CASE("origins: the name of a device that is gone stays its origin's") {
  ModelEngine engine;
  const auto catalog = opened_catalog(engine);
  write_from(engine, *catalog, reading_from("other"), {1});
  const auto owner = [](std::string_view in, std::string_view device) {
    return in == "n" && device == "d" ? OriginNumber{1} : kNoOrigin;
  };
  const std::string second = write_from(engine, *catalog, reading_from("d"), {2}, nullptr, owner);
  CHECK(second.starts_with("d~"));
  CHECK(write_from(engine, *catalog, reading_from("d"), {0}, nullptr, owner).starts_with("d~"));
  CHECK(write_from(engine, *catalog, reading_from("d"), {1}, nullptr, owner) == "d");
  CHECK(write_from(engine, *catalog, reading_from("d"), {2}, nullptr, owner) == second);
  CHECK(catalog->devices("n", "other").at(0).origin == 1);
}

// What was written once is read for good.
TEST_CASE("origins: a device's record is as it is documented") {
  ModelEngine engine;
  const auto catalog = opened_catalog(engine);
  write_from(engine, *catalog, reading_from("d"), {1});
  SeriesId id;
  const std::string renamed = write_from(engine, *catalog, reading_from("d"), {2}, &id);
  const auto space = engine.find_namespace("_catalog");
  REQUIRE(space.ok());
  const auto record = engine.get(
      space->id, encode_record_key({RecordKind::Device, id.namespace_id, id.device, 0}), {});
  REQUIRE(record.ok());
  CHECK(renamed == "d~e4b5dfd92526bf51");
  CHECK(*record == Bytes("\x02\x01\x12", 3) + renamed +
                       Bytes("\x06\x04\0\0\0\x02\x07\x01"
                             "d",
                             9));
}

}  // namespace edgecase::catalog
