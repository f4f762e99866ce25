#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemon/erase/erase_room.h"
#include "edgecase/machine.h"
#include "erase/erase_jobs.h"
#include "erase/erase_service.h"

namespace edgecase::erase {
namespace {

using namespace test;

// Some begin alike.
std::string pseudonym(std::uint64_t n) {
  const std::string tail = std::to_string(n);
  return "07fab" + std::string(1, "0369"[n % 4]) + "ee" + std::string(56 - tail.size(), '0') + tail;
}

TEST_CASE("an index answers every certificate that names a pseudonym") {
  SeededRandom random(20261127);
  for (int round = 0; round < 20; ++round) {
    CertificateIndex index;
    std::map<std::uint64_t, Certificate> all;
    std::uint64_t number = 0;
    for (int i = 0; i < 60; ++i) {
      Certificate each;
      each.number = number += 1 + random.below(3);
      for (std::uint64_t n = random.below(8); n > 0; --n)
        each.device_pseudonyms.push_back(pseudonym(random.below(12)));
      if (random.below(2) == 0) each.owner_pseudonym = pseudonym(100 + random.below(3));
      index.add(each);
      all[each.number] = each;
    }
    const std::uint64_t removed_below = random.below(number);
    index.remove_below(removed_below);
    all.erase(all.begin(), all.lower_bound(removed_below));
    for (std::uint64_t n = 0; n < 12; ++n) {
      const std::string device = pseudonym(n);
      std::set<std::uint64_t> may_be;
      std::optional<std::uint64_t> at = UINT64_MAX;
      while ((at = index.newest_below(*at, device, ""))) REQUIRE(may_be.insert(*at).second);
      for (const auto& [each, certificate] : all) {
        const auto& names = certificate.device_pseudonyms;
        if (std::find(names.begin(), names.end(), device) != names.end())
          CHECK(may_be.contains(each));
      }
      for (const std::uint64_t each : may_be) CHECK(all.contains(each));
    }
    REQUIRE_FALSE(all.empty());
    CHECK(index.newest_below(UINT64_MAX, "", "") == all.rbegin()->first);
    CHECK_FALSE(index.newest_below(all.begin()->first, "", ""));
  }
}

TEST_CASE("a certificate that names few is not looked into for others") {
  CertificateIndex index;
  Certificate one, many;
  one.number = 1;
  one.device_pseudonyms = {std::string(64, 'a')};
  one.owner_pseudonym = std::string(64, 'b');
  many.number = 2;
  many.device_pseudonyms.assign(CertificateIndex::kTagsMax + 1, std::string(64, 'c'));
  index.add(one);
  CHECK(index.newest_below(9, std::string(64, 'a'), "") == 1);
  CHECK(index.newest_below(9, std::string(64, 'a'), std::string(64, 'b')) == 1);
  CHECK_FALSE(index.newest_below(9, std::string(64, 'd'), ""));
  CHECK_FALSE(index.newest_below(9, std::string(64, 'a'), std::string(64, 'd')));
  index.add(many);
  CHECK(index.newest_below(9, std::string(64, 'd'), "") == 2);
  CHECK_FALSE(index.newest_below(2, std::string(64, 'd'), ""));
}

TEST_CASE("to find a device's certificate those of others are not read") {
  Room room;
  for (int i = 0; i < 20; ++i) {
    const std::string device = "device" + std::to_string(i);
    room.fill(device, "temp");
    REQUIRE(room.erase(device).ok());
  }
  for (const bool is_anew : {false, true}) {
    if (is_anew) room.restart();
    const std::uint64_t before = room.engine.stats().reads.gets;
    const auto found =
        room.service->certificates(catalog::DeviceName{"default", "device7"}, "", 20);
    REQUIRE(found.ok());
    REQUIRE(found->size() == 1);
    CHECK(found->front().number == 8);
    CHECK(room.engine.stats().reads.gets - before == 1);
  }
}

}  // namespace

// What certificates say of drives that keep what is overwritten.

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
  Certificate read = decode_certificate(encode_certificate(older)).value();
  CHECK(!read.level);
  CHECK(read.windows == 0);
  older.windows = 7;
  read = decode_certificate(encode_certificate(older)).value();
  CHECK(read.windows == 7);
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
