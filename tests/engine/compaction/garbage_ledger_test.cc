// What a few samples say of all tables, and of later.
#include "compaction/garbage_ledger.h"

#include <doctest/doctest.h>

#include <cmath>

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kTableBytes = 1000;

Version version_of(const std::vector<FileNumber>& numbers, std::uint8_t level = 1,
                   TableKind kind = TableKind::Groups) {
  Version version;
  for (const FileNumber number : numbers) {
    TableMetadata table;
    table.number = number;
    table.level = level;
    table.kind = kind;
    table.value_files = {{number, kTableBytes}};
    version.tables.push_back(std::make_shared<const TableMetadata>(table));
  }
  return version;
}

TEST_CASE("nothing is dead before a sample says so, and nothing dies while nobody writes") {
  GarbageLedger ledger;
  const Version version = version_of({1, 2});
  ledger.follow(version, 100);
  CHECK(ledger.dead_bytes() == 0);
  CHECK(ledger.is_stale(1));
  CHECK(ledger.age_bytes(1) == 100);
  ledger.note(1, 0.3);
  CHECK_FALSE(ledger.is_stale(1));
  CHECK(ledger.dead_share(1) == doctest::Approx(0.3));
  CHECK(ledger.dead_bytes() == 300);
  ledger.follow(version, 100);
  CHECK(ledger.dead_bytes() == 300);
  CHECK_FALSE(ledger.is_stale(1));
  CHECK(ledger.is_stale(2));
  ledger.follow(version, 150);
  CHECK(ledger.is_stale(1));
  CHECK(ledger.age_bytes(1) == 50);
}

TEST_CASE("two samples of a table tell the rate at which all of them die") {
  GarbageLedger ledger;
  const Version version = version_of({1, 2, 3});
  ledger.follow(version, 0);
  for (const FileNumber number : std::vector<FileNumber>{1, 2, 3}) ledger.note(number, 0);
  ledger.follow(version, 500);
  CHECK(ledger.dead_share(2) == 0);  // nothing was learned yet
  ledger.note(1, 1 - std::exp(-0.5));
  CHECK(ledger.dead_share(2) == doctest::Approx(1 - std::exp(-0.5)));
  ledger.follow(version, 1000);
  CHECK(ledger.dead_share(1) == doctest::Approx(1 - std::exp(-1.0)));
  CHECK(ledger.dead_share(2) == doctest::Approx(1 - std::exp(-1.0)));
  CHECK(ledger.dead_bytes() ==
        doctest::Approx(3 * kTableBytes * (1 - std::exp(-1.0))).epsilon(0.01));
  // A table that is new begins alive.
  const Version next = version_of({2, 3, 4});
  ledger.follow(next, 1000);
  CHECK(ledger.dead_share(1) == 0);
  CHECK(ledger.dead_share(4) == 0);
  ledger.follow(next, 1500);
  CHECK(ledger.dead_share(4) == doctest::Approx(1 - std::exp(-0.5)));
}

TEST_CASE("samples that err, and a table that is all dead, leave shares between 0 and 1") {
  GarbageLedger ledger;
  const Version version = version_of({1, 2});
  std::uint64_t written = 0;
  for (const double share : {0.5, 0.2, 0.6, 1.0, 0.0, 1.0, 1.0}) {
    ledger.follow(version, written);
    ledger.note(1, share);
    written += 100;
    ledger.follow(version, written);
    for (const FileNumber number : std::vector<FileNumber>{1, 2}) {
      CHECK(ledger.dead_share(number) >= 0);
      CHECK(ledger.dead_share(number) <= 1);
    }
  }
  CHECK(ledger.dead_bytes() <= 2 * kTableBytes);
}

TEST_CASE("only tables of groups below level 0 are followed") {
  for (const Version& version : {version_of({1}, 0), version_of({1}, 1, TableKind::Singles)}) {
    GarbageLedger ledger;
    ledger.follow(version, 10);
    ledger.note(1, 0.9);
    CHECK(ledger.dead_bytes() == 0);
    CHECK_FALSE(ledger.is_stale(1));
  }
}

}  // namespace
}  // namespace edgecase::engine
