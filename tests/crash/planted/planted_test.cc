// The harness is tested too: each planted bug must be found within its number of seeds.
#include <doctest/doctest.h>

#include <cerrno>

#include "crash/crash_life.h"
#include "crash/planted/planted_drives.h"
#include "crash/planted/planted_source.h"
#include "crash/tiers_life.h"
#include "support/test_share.h"

namespace edgecase::test {

namespace {

PlantedSource planted_now = PlantedSource::None;

// Where lives cost ten times as much, only what is found soon is looked for.
constexpr std::uint64_t kSoonSeeds = 20;

struct Found {
  std::uint64_t seed = 0;  // 0: not found
  LifeReport report;
};

using MakePlan = Plan (*)(std::uint64_t seed);

// Something is erased, and the store opened twice before anybody sees to it: lives seldom leave it
// so long.
Plan erasure_over_restarts(std::uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  for (std::uint64_t place = 0; place < 4; ++place)
    plan.steps.push_back({StepKind::Create, {place}});
  for (std::uint64_t i = 0; i < 4; ++i)
    plan.steps.push_back({StepKind::Write, {100 * seed + i, 1}});
  plan.steps.push_back({StepKind::Erase, {seed, 0}});
  plan.steps.push_back({StepKind::Flush, {}});
  for (int i = 0; i < 2; ++i) plan.steps.push_back({StepKind::Reopen, {}});
  plan.steps.push_back({StepKind::Erase, {seed, 2}});
  return plan;
}

// Several segments that nobody has synced, then a sync, which may fail, and a power cut: twice.
Plan unsynced_segments(std::uint64_t seed) {
  SeededRandom random(seed);
  Plan plan;
  plan.seed = seed;
  plan.memtable_bytes = 256u << 10;
  plan.wal_segments = 40;
  for (std::uint64_t place = 0; place < 4; ++place)
    plan.steps.push_back({StepKind::Create, {place}});
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < 60; ++i)
      plan.steps.push_back({StepKind::Write, {random.below(1'000'000), 0}});
    if (random.below(2) == 0) {
      const auto sync = static_cast<std::uint64_t>(Operation::LogSync);
      plan.steps.push_back({StepKind::Fail, {sync, 1 + random.below(3), EIO, 0, 1}});
    }
    for (std::uint64_t i = random.below(3); i > 0; --i)
      plan.steps.push_back({StepKind::Write, {random.below(1'000'000), 1}});
    const std::uint64_t again = random.below(2) * (1 + random.below(20));
    const auto policy = static_cast<std::uint64_t>(CutPolicy::Any);
    plan.steps.push_back({StepKind::Cut, {random.below(1'000'000), policy, again}});
  }
  return plan;
}

Found find(std::uint64_t seeds, const WrapDrives& wrap, MakePlan make = make_plan) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    LifeReport report = live(make(seed), wrap);
    if (!report.broken.empty()) return {seed, std::move(report)};
  }
  return {};
}

void demand(const std::string& name, const std::string& what, std::uint64_t seeds,
            const WrapDrives& wrap, MakePlan make = make_plan) {
  if (seeds > kSoonSeeds && test_share_percent() < 100) return;
  CAPTURE(name);
  CAPTURE(what);
  const Found found = find(seeds, wrap, make);
  CHECK(found.seed != 0);
  if (found.seed != 0)
    MESSAGE(name << ": seed " << found.seed << " of " << seeds << ", " << found.report.broken);
}

}  // namespace

void plant(PlantedSource bug) {
  planted_now = bug;
}
bool planted(PlantedSource bug) {
  return planted_now == bug;
}

TEST_CASE("planted: bugs in the use of the drives are found") {
  plant(PlantedSource::None);
  for (const PlantedBug& bug : planted_bugs()) {
    demand(bug.name, bug.what, bug.seeds, bug.plant, bug.make);
    if (bug.make == make_plan) continue;
    CAPTURE(bug.name);
    CHECK(find(bug.seeds, {}, bug.make).report.broken == "");
  }
}

TEST_CASE("planted: bugs in the engine are found") {
  struct Case {
    PlantedSource bug;
    const char* name;
    const char* what;
    std::uint64_t seeds;
    MakePlan make = make_plan;
  };
  for (const Case& each :
       {Case{PlantedSource::DeleteDroppedEarly, "delete-dropped-early",
             "a merge drops a delete while older entries lie elsewhere", 1000},
        Case{PlantedSource::LogReleasedEarly, "log-released-early",
             "releases segments of the log that hold more than what was flushed", 400},
        Case{PlantedSource::ErasureLostByFlush, "erasure-lost-by-flush",
             "a flush takes an erased range for a range delete", 100},
        Case{PlantedSource::ErasureLostByManifest, "erasure-lost-by-manifest",
             "a new manifest forgets which erased ranges are pending", 20, erasure_over_restarts},
        Case{PlantedSource::SecondCopyUnread, "second-copy-unread",
             "does not go on with the second copy of a manifest whose first one is damaged", 100},
        Case{PlantedSource::LinkedTooEarly, "linked-too-early",
             "names the next segment of the log before that is durable", 400},
        Case{PlantedSource::OlderLeftUnsynced, "older-left-unsynced",
             "syncs the current segment of the log alone", 40, unsynced_segments},
        Case{PlantedSource::OlderTakenForDurable, "older-taken-for-durable",
             "says of segments of the log that they are durable when they are not", 40,
             unsynced_segments},
        Case{PlantedSource::FailedTakenForWhole, "failed-taken-for-whole",
             "counts on what a failed sync was to make durable", 40, unsynced_segments},
        Case{PlantedSource::DroppedStays, "dropped-stays",
             "leaves a segment of the log that was dropped as it was", 400, unsynced_segments},
        Case{PlantedSource::ErasedShownBySnapshots, "erased-shown-by-snapshots",
             "a snapshot shows what was erased after it was taken", 100},
        Case{PlantedSource::ExpiredReturns, "expired-returns",
             "a longer rule brings back what a shorter one had let expire", 100},
        Case{PlantedSource::ExpiredStaysInFiles, "expired-stays-in-files",
             "does not look for files that have expired", 100},
        Case{PlantedSource::DroppedByOldRules, "dropped-by-old-rules",
             "drops a file by a time that rules have changed since", 1500},
        Case{PlantedSource::ExpiredStaysInLog, "expired-stays-in-log",
             "does not overwrite what has expired in the log", 100},
        Case{PlantedSource::ExpiryFollowsJump, "expiry-follows-jump",
             "believes a clock that was set far ahead", 100},
        Case{PlantedSource::ExpiryBelievesStart, "expiry-believes-start",
             "believes a clock that is far ahead when the process begins", 100},
        Case{PlantedSource::OutputRemovedAfterFailure, "output-removed-after-failure",
             "removes tables that a failed edit may have named", 1500}}) {
    plant(each.bug);
    demand(each.name, each.what, each.seeds, {}, each.make);
  }
  plant(PlantedSource::None);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    CHECK(live(erasure_over_restarts(seed)).broken == "");
    CHECK(live(unsynced_segments(seed)).broken == "");
  }
}

TEST_CASE("planted: bugs in tiers, and in what answers from statistics, are found") {
  struct Case {
    PlantedSource bug;
    const char* name;
    std::uint64_t seeds;
  };
  for (const Case& each : {Case{PlantedSource::RawGoneEarly, "raw-gone-early", 200},
                           Case{PlantedSource::TierTwice, "tier-twice", 20},
                           Case{PlantedSource::MarkLate, "mark-late", 20},
                           Case{PlantedSource::LateTaken, "late-taken", 20},
                           Case{PlantedSource::StatisticsShadowed, "statistics-shadowed", 100},
                           Case{PlantedSource::StatisticsErased, "statistics-erased", 100}}) {
    if (each.seeds > kSoonSeeds && test_share_percent() < 100) continue;
    CAPTURE(each.name);
    plant(each.bug);
    std::string broken;
    std::uint64_t seed = 0;
    while (broken.empty() && seed < each.seeds) broken = live_tiers(make_tier_plan(++seed)).broken;
    plant(PlantedSource::None);
    CHECK_FALSE(broken.empty());
    CHECK(live_tiers(make_tier_plan(seed)).broken == "");
    MESSAGE(each.name << ": seed " << seed << " of " << each.seeds << ", " << broken);
  }
}

TEST_CASE("planted: what was found shrinks to a few steps that fail for the same reason") {
  plant(PlantedSource::None);
  const PlantedBug& bug = planted_bugs().front();
  const Found found = find(bug.seeds, bug.plant);
  REQUIRE(found.seed != 0);
  const Plan whole = make_plan(found.seed);
  const Plan small = shrink(whole, bug.plant, share_of(200));
  CHECK(small.steps.size() < whole.steps.size());
  CHECK_FALSE(live(small, bug.plant).broken.empty());
  CHECK(live(small).broken.empty());
}

}  // namespace edgecase::test
