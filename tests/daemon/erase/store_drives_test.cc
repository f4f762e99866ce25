// What certificates say of drives that keep what is overwritten.
#include "erase/store_drives.h"

#include <doctest/doctest.h>

#include "daemon/erase/erase_room.h"
#include "erase/erase_records.h"

namespace edgecase::erase {
namespace {

using namespace test;

DriveFacts facts(std::uint64_t id, Overwrites overwrites, const char* why = "") {
  return {.overwrites = overwrites, .file_system = "ext4", .why = why, .id = id};
}

constexpr Overwrites kInPlace = Overwrites::InPlace;
constexpr Overwrites kElsewhere = Overwrites::Elsewhere;
constexpr Overwrites kUnknown = Overwrites::Unknown;

}  // namespace

TEST_CASE("drives: one that did not overwrite in place is remembered, whatever it does later") {
  Room room;
  const NamespaceId records = room.engine.find_namespace(kErasuresNamespace)->id;
  StoreDrives now{facts(1, kInPlace), facts(2, kElsewhere, "it journals data")};
  const auto look = [&now] { return now; };
  auto watch = DriveWatch::open(room.engine, records, look).value();
  CHECK(!watch->look().overwrite_in_place());
  now.values = facts(2, kInPlace);
  StoreDrives seen = watch->look();
  CHECK(seen.values.overwrites == kElsewhere);
  CHECK(seen.values.why.find("it journals data") != std::string::npos);
  CHECK(seen.metadata.overwrites == kInPlace);

  watch = DriveWatch::open(room.engine, records, look).value();
  CHECK(watch->look().values.overwrites == kElsewhere);
  now.values = facts(3, kInPlace);  // another drive
  CHECK(watch->look().overwrite_in_place());
  // What could not be seen once may well be seen later.
  now.values = facts(4, kUnknown, "it is hidden");
  CHECK(!watch->look().overwrite_in_place());
  now.values = facts(4, kInPlace);
  CHECK(watch->look().overwrite_in_place());
  CHECK(watch->last().overwrite_in_place());
}

TEST_CASE("drives: what happened between two looks counts as the worse of them") {
  const StoreDrives good{facts(1, kInPlace), facts(2, kInPlace)};
  const StoreDrives bad{facts(1, kInPlace), facts(2, kElsewhere, "it is btrfs")};
  CHECK(worse_of(good, good).overwrite_in_place());
  CHECK(!worse_of(good, bad).overwrite_in_place());
  CHECK(!worse_of(bad, good).overwrite_in_place());
  CHECK(obstacle_of(good).empty());
  CHECK(obstacle_of(worse_of(bad, good)) == "the values drive: it is btrfs");
}

TEST_CASE("a certificate says what was true when it was made") {
  Room room;
  StoreDrives now{facts(1, kInPlace), facts(2, kInPlace)};
  room.look = [&now] { return now; };
  room.restart();
  const auto erase = [&](const char* device) {
    REQUIRE(room.write(device, "s", 1000));
    const auto begun = room.service->erase(local(), Room::request(device));
    REQUIRE(begun.ok());
    CHECK(room.service->reach_of(*begun).level == ErasureLevel::Logical);
    REQUIRE(room.service->drain().ok());
    return room.service->certificate(begun->number).value();
  };
  const Certificate first = erase("a");
  CHECK(room.service->reach_of(first).level == ErasureLevel::Physical);
  now.metadata = facts(1, kUnknown, "it is fuse");
  const Certificate second = erase("b");
  const Reach reach = room.service->reach_of(second);
  CHECK(reach.level == ErasureLevel::Logical);
  CHECK(reach.why == "the metadata drive: it is fuse");
  CHECK(warning_of(reach).find("it is fuse") != std::string::npos);
  // Neither becomes the other.
  CHECK(room.service->reach_of(first).level == ErasureLevel::Physical);
  now.metadata = facts(1, kInPlace);
  CHECK(room.service->reach_of(second).level == ErasureLevel::Logical);

  // One of an older version does not say.
  Certificate older = first;
  older.level.reset();
  const Certificate read = decode_certificate(encode_certificate(older)).value();
  CHECK(!read.level);
  CHECK(room.service->drives().look().overwrite_in_place());
  CHECK(room.service->reach_of(read).level == ErasureLevel::Physical);
  now.values = facts(2, kElsewhere, "it is btrfs");
  room.restart();
  CHECK(room.service->reach_of(read).level == ErasureLevel::Logical);
  CHECK(room.service->reach_of(first).level == ErasureLevel::Physical);
  CHECK(decode_certificate(R"({"version":1,"level":"absolute"})").status().code() ==
        StatusCode::Corruption);
}

}  // namespace edgecase::erase
