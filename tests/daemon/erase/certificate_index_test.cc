#include "erase/certificate_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemon/erase/erase_room.h"
#include "edgecase/random.h"

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
}  // namespace edgecase::erase
