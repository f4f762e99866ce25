#include <doctest/doctest.h>

#include <cmath>

#include "compaction/merge_plan.h"
#include "compaction/useful_sources.h"
#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {

// What a few samples say of all tables, and of later.

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

// How much of a store is said to be garbage, by what can be counted and by what is deduced.

namespace {

struct Estimated : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  ArrivalSource carrier{garbage};

  void sink() {
    auto plan = pick_level0(*versions->current(), 1);
    REQUIRE(plan);
    carry_out(*std::move(plan), carrier, &garbage);
  }
  void sample_all() {
    garbage.sample_all(*versions->current());
    while (garbage.has_samples()) REQUIRE(garbage.take_sample(*versions->current(), true).ok());
  }
};

Version version_with(std::uint64_t file_bytes, std::uint64_t live_bytes) {
  Version version;
  ValueFileMetadata file;
  file.number = 1;
  file.size_bytes = file_bytes;
  version.value_files.emplace(1, file);
  version.live_bytes.emplace(1, live_bytes);
  return version;
}

}  // namespace

TEST_CASE("garbage share: dead bytes for each useful one, what is suspected counts") {
  CHECK(garbage_share(Version(), 0) == 0);
  CHECK(garbage_share(version_with(100, 100), 0) == 0);
  CHECK(garbage_share(version_with(150, 100), 0) == doctest::Approx(0.5));
  CHECK(garbage_share(version_with(150, 100), 25) == doctest::Approx(1.0));
  CHECK(garbage_share(version_with(150, 100), 1'000) > 100);  // nothing useful is left
  // What is yet to be flushed makes the store larger, not its garbage.
  CHECK(garbage_share(version_with(150, 100), 0, 100) == doctest::Approx(0.25));
}

TEST_CASE(
    "garbage estimate: tables that newer runs supersede are found by samples, the deadest "
    "first") {
  Estimated has;
  has.value_bytes = 200;
  has.flush(0, 2'000);
  has.sink();
  has.sample_all();
  CHECK(has.garbage.suspected_bytes() == 0);
  CHECK(has.garbage.dead_tables(*has.versions->current(), 0.2).empty());
  has.flush(0, 2'000);
  has.sink();
  has.sample_all();
  const auto dead = has.garbage.dead_tables(*has.versions->current(), 0.2);
  REQUIRE_FALSE(dead.empty());
  CHECK(dead.front().dead_share > 0.9);
  CHECK(dead.front().table->sequence_max <= 2'000);  // the older one
  CHECK(has.garbage.suspected_bytes() > 2'000 * 150);
  CHECK(has.garbage.share(*has.versions->current()) > 0.8);
  CHECK(has.garbage.dead_tables(*has.versions->current(), 1.1).empty());
}

TEST_CASE("garbage estimate: a table that was cleaned counts as clean") {
  Estimated has;
  has.value_bytes = 200;
  has.flush(0, 2'000);
  has.sink();
  has.flush(0, 2'000);
  has.sink();
  has.sample_all();
  const auto dead = has.garbage.dead_tables(*has.versions->current(), 0.2);
  REQUIRE_FALSE(dead.empty());
  has.garbage.note_clean({dead.front().table, 1});
  has.garbage.follow(*has.versions->current());
  CHECK(has.garbage.dead_tables(*has.versions->current(), 0.2).size() == dead.size() - 1);
}

TEST_CASE(
    "garbage estimate: a store that grows on a roomy drive may hold more, a full one may not") {
  Estimated has;
  has.host.roomy = true;
  has.value_bytes = 200;
  CHECK(has.garbage.grace() > 0);  // nothing is known to be replaced
  has.host.roomy = false;
  CHECK(has.garbage.grace() == 0);
  has.host.roomy = true;
  // Ever the same keys: what arrives replaces what is there.
  for (int i = 0; i < 12; ++i) {
    has.flush(0, 2'000);
    REQUIRE(has.garbage.look_at_growth(*has.versions->current()).ok());
    has.sink();
  }
  CHECK(has.garbage.grace() == doctest::Approx(0).epsilon(0.1));
}

TEST_CASE("garbage estimate: large values that the last merge saw superseded are expected again") {
  Estimated has;
  has.value_bytes = 64u << 10;
  for (int i = 0; i < 2; ++i) {
    has.flush(0, 20);
    has.sink();
  }
  CHECK(has.garbage.suspected_bytes() == 0);  // nothing was merged yet
  auto plan = pick_singles(*has.versions->current(), 2, UINT64_MAX);
  REQUIRE(plan);
  has.carry_out(*std::move(plan), has.carrier, &has.garbage);
  CHECK(has.garbage.suspected_bytes() == 0);  // one run: nothing waits to be superseded
  has.flush(0, 20);
  has.sink();
  CHECK(has.garbage.suspected_bytes() > 20 * (60u << 10));
  CHECK(has.garbage.dying_share() > 0.9);
}

}  // namespace edgecase::engine
