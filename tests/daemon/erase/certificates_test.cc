// Many certificates: how they are found, and what they take.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "daemon/erase/erase_room.h"
#include "erase/erase_jobs.h"
#include "support/test_share.h"

namespace edgecase::erase {
namespace {

using namespace test;

std::vector<std::uint64_t> numbers_of(const std::vector<Certificate>& certificates) {
  std::vector<std::uint64_t> numbers;
  for (const Certificate& each : certificates) numbers.push_back(each.number);
  return numbers;
}

// Erases one after another, all of a kitchen but for each third, which is of a cellar and somebody.
void erase_many(Room& room, int count) {
  EraseRequest owned;
  owned.devices.owner = "somebody";
  for (int i = 1; i <= count; ++i) {
    room.clock.advance(kSecond);
    const bool is_third = i % 3 == 0;
    const std::string device = is_third ? "cellar" : "kitchen";
    REQUIRE(room.write(device, "temp", room.clock.wall_ns()));
    if (is_third)
      REQUIRE(
          room.devices->update({"default", device}, [](auto& s) { s.owner = "somebody"; }).ok());
    const auto erased = is_third ? room.service->erase(local(), owned) : room.erase(device);
    REQUIRE_MESSAGE(erased.ok(), erased.status().to_string());
    REQUIRE(erased->number == static_cast<std::uint64_t>(i));
  }
}

std::uint64_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  unsigned long long all = 0, resident = 0;
  REQUIRE(std::fscanf(file, "%llu %llu", &all, &resident) == 2);
  std::fclose(file);
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("certificates of a device or an owner are found page by page, newest first") {
  Room room;
  erase_many(room, 30);
  for (const bool is_anew : {false, true}) {
    if (is_anew) room.restart();
    const catalog::DeviceName cellar{"default", "cellar"}, kitchen{"default", "kitchen"};
    const std::vector<std::uint64_t> thirds = {30, 27, 24, 21, 18, 15, 12, 9, 6, 3};
    CHECK(numbers_of(*room.service->certificates(cellar, "", 100)) == thirds);
    CHECK(numbers_of(*room.service->certificates(std::nullopt, "somebody", 100)) == thirds);
    CHECK(numbers_of(*room.service->certificates(cellar, "somebody", 100)) == thirds);
    CHECK(room.service->certificates(kitchen, "somebody", 100)->empty());
    CHECK(room.service->certificates(kitchen, "", 100)->size() == 20);
    std::vector<std::uint64_t> found;
    std::uint64_t before = UINT64_MAX;
    while (true) {
      const auto page = room.service->certificates(cellar, "", 4, before);
      REQUIRE(page.ok());
      for (const std::uint64_t number : numbers_of(*page)) found.push_back(number);
      if (page->size() < 4) break;
      before = page->back().number;
    }
    CHECK(found == thirds);
    CHECK(numbers_of(*room.service->certificates(std::nullopt, "", 3, 3)) ==
          std::vector<std::uint64_t>{2, 1});
  }
}

TEST_CASE("of however many erasures that are pending each has its certificate") {
  constexpr std::uint64_t kCount = 120;  // in several batches
  Room room;
  erase_many(room, kCount);
  CHECK(room.service->pending_count() == kCount);
  room.restart();
  CHECK(room.service->pending_count() == kCount);
  room.clock.advance(kSecond);
  REQUIRE(room.service->drain().ok());
  CHECK(room.service->pending_count() == 0);
  const auto all = room.service->certificates(std::nullopt, "", 2 * kCount);
  REQUIRE(all.ok());
  REQUIRE(all->size() == kCount);
  for (const Certificate& each : *all) {
    CHECK(each.state == ErasureState::Done);
    CHECK(each.gone_ns == room.clock.wall_ns());
    CHECK(each.series == 1);
  }
  room.restart();
  CHECK(room.service->pending_count() == 0);
}

// kCertificatesMax of them with as many names as one holds are 70 MB of records, and were as much
// in memory.
TEST_CASE("as many certificates as may be take no memory") {
  const bool is_plain_build = edgecase::test::test_share_percent() == 100;
  const std::uint64_t count = edgecase::test::share_of(kCertificatesMax);
  Room room;
  const NamespaceId records = room.engine.find_namespace(kErasuresNamespace)->id;
  Certificate certificate;
  certificate.with_names = true;
  certificate.devices = kPseudonymsMax;
  for (std::uint64_t number = 1; number <= count; ++number) {
    certificate.number = number;
    certificate.state = number % 20 == 0 ? ErasureState::Pending : ErasureState::Done;
    certificate.device_pseudonyms.clear();
    for (std::size_t i = 0; i < kPseudonymsMax; ++i) {
      const std::string text = std::to_string(number * kPseudonymsMax + i);
      certificate.device_pseudonyms.push_back(std::string(64 - text.size(), '0') + text);
    }
    WriteBatch batch;
    batch.put(records, certificate_key(number), encode_certificate(certificate));
    REQUIRE(room.engine.write(batch, Durability::Sync).ok());
  }
  const std::uint64_t before = resident_bytes();
  const auto service = EraseService::open(
      {room.engine, *room.catalog, *room.devices, *room.retention, room.clock, room.random});
  REQUIRE(service.ok());
  CHECK((*service)->pending_count() == count / 20);
  const std::uint64_t after = resident_bytes();
  const std::uint64_t taken = after > before ? after - before : 0;
  CAPTURE(taken);
  if (is_plain_build) CHECK(taken < 4u << 20);
  CHECK(numbers_of(*(*service)->certificates(std::nullopt, "", 1)) ==
        std::vector<std::uint64_t>{count});
  CHECK((*service)->certificates(std::nullopt, "nobody", 1)->empty());
}

}  // namespace edgecase::erase
