// Lives of stores on drives that fail and lose their power: see README.md. A life that breaks a
// promise is printed with the command that runs it again, and shrunk to a plan for regressions/.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "crash/crash_life.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {

namespace {

// A bit of everything, in few operations on the drives.
constexpr const char* kShortLife = R"(store 7 4096 2
create
create 1
create 4
write 11
write 12 1
ingest 13
flush
write 14 1
ingest 15
work 4
drop 1
create 2
write 16
flush
compact 17
write 18 1
rest 1
write 19
)";

// Nothing, and said why, when a promise was broken.
std::optional<LifeReport> life_of(const Plan& plan, const std::string& again) {
  LifeReport report = live(plan);
  if (report.broken.empty()) return report;
  const Plan small = shrink(plan, {}, 300);
  FAIL_CHECK("step " << report.step << ": " << report.broken << "\nagain: " << again
                     << "\nshrunk (tests/crash/regressions/NAME.plan):\n"
                     << to_text(small) << "which breaks: " << live(small).broken);
  return std::nullopt;
}

Plan short_life() {
  const auto plan = parse_plan(kShortLife);
  REQUIRE(plan.has_value());
  return *plan;
}

enum class From : std::uint8_t { TheMaking, TheMade };

// With `fault` from the making of the store on, or once it is made; ends with `after`.
Plan short_life(From from, const Step& fault, const Step& after) {
  Plan plan = short_life();
  plan.steps.insert(plan.steps.begin() + (from == From::TheMade ? 1 : 0), fault);
  plan.steps.push_back(after);
  return plan;
}

}  // namespace

TEST_CASE("crash: every promise holds over lives of random faults and crashes") {
  const std::uint64_t first = test_seed(1);
  const bool one = std::getenv("EDGECASE_TEST_SEED") != nullptr;
  const std::uint64_t seeds = one                           ? 1
                              : test_share_percent() == 100 ? 2'000
                                                            : 4 * test_share_percent();
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << seeds << " seeds");
  CrashCounters store;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Plan plan = make_plan(seed);
    const auto life = life_of(plan, "tests/run.sh --seed " + std::to_string(seed) +
                                        " --filter 'crash: every promise holds over'");
    if (!life) return;
    store.torn_tails += life->store.torn_tails;
    store.dropped_segments += life->store.dropped_segments;
    store.merges += life->store.merges;
    store.relocations += life->store.relocations;
    store.dropped_deletes += life->store.dropped_deletes;
    store.removed_files += life->store.removed_files;
    store.erasures += life->store.erasures;
    store.drops += life->store.drops;
    store.purges += life->store.purges;
  }
  if (seeds < 100) return;
  CHECK(store.torn_tails > 0);
  CHECK(store.dropped_segments > 0);
  CHECK(store.merges > 0);
  CHECK(store.relocations > 0);
  CHECK(store.dropped_deletes > 0);
  CHECK(store.removed_files > 0);
  CHECK(store.erasures > 0);
  CHECK(store.drops > 0);
  CHECK(store.purges > 0);
}

TEST_CASE("crash: every promise holds wherever in a short life the power fails") {
  std::uint64_t first = 0;
  for (const CutPolicy policy :
       {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All, CutPolicy::Sectors, CutPolicy::Torn}) {
    first = first % share_step() + 1;  // another one each time
    for (std::uint64_t nth = first;; nth += share_step()) {
      const Plan plan = short_life(From::TheMaking, {StepKind::Stop, {nth}},
                                   {StepKind::Cut, {nth, static_cast<std::uint64_t>(policy)}});
      const auto life = life_of(plan, "this test");
      if (!life) return;
      if (life->stops == 0) break;
    }
  }
}

TEST_CASE("crash: every promise holds wherever in a short life the process is killed") {
  for (std::uint64_t nth = 1;; nth += share_step()) {
    const Plan plan = short_life(From::TheMaking, {StepKind::Stop, {nth}}, {StepKind::Kill, {nth}});
    const auto life = life_of(plan, "this test");
    if (!life) return;
    if (life->stops == 0) break;
  }
}

TEST_CASE("crash: every promise holds wherever in a recovery the power fails") {
  constexpr std::uint64_t kOperationsMin = 40;  // a recovery has that many at least
  std::uint64_t first = 0;
  for (const CutPolicy policy :
       {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All, CutPolicy::Sectors, CutPolicy::Torn}) {
    first = first % share_step() + 1;
    for (std::uint64_t nth = first; nth <= 3 * kOperationsMin; nth += share_step()) {
      Plan plan = short_life();
      plan.steps.push_back({StepKind::Cut, {nth, static_cast<std::uint64_t>(policy), nth}});
      if (!life_of(plan, "this test")) return;
    }
  }
}

TEST_CASE("crash: every promise holds whichever operation of a short life fails") {
  struct Case {
    std::uint64_t error, sticky, root;
  };
  for (const Case& each : {Case{EIO, 0, 0}, Case{ENOSPC, 0, 0}, Case{EIO, 1, 1}, Case{EIO, 1, 2}}) {
    for (std::uint64_t nth = 1;; nth += share_step()) {
      const Step fault{StepKind::Fail, {0, nth, each.error, each.sticky, each.root}};
      const Plan plan = short_life(From::TheMade, fault, {StepKind::Kill, {nth}});
      const auto life = life_of(plan, "this test");
      if (!life) return;
      if (life->faults == 0) break;
    }
  }
}

TEST_CASE("crash: the same plan gives the same life") {
  for (std::uint64_t seed = 1; seed <= share_of(20); ++seed) {
    CAPTURE(seed);
    const LifeReport one = live(make_plan(seed));
    const LifeReport other = live(make_plan(seed));
    CHECK(one.operations == other.operations);
    CHECK(one.acknowledged == other.acknowledged);
    CHECK(one.store.replayed == other.store.replayed);
  }
}

TEST_CASE("crash: a plan reads back as it was written") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string text = to_text(make_plan(seed));
    const auto plan = parse_plan("# what it was\n" + text);
    REQUIRE(plan.has_value());
    CHECK(to_text(*plan) == text);
  }
  for (const char* wrong : {"", "write 1\n", "store 1 2 3\nwrite x\n", "store 1 2 3\nleap 1\n",
                            "store 1\n", "store 1 2 3\nwrite 1 2 3 4 5 6\n"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_plan(wrong).has_value());
  }
}

TEST_CASE("crash: what once broke a promise does so no more") {
  std::set<std::filesystem::path> plans;
  for (const auto& entry : std::filesystem::directory_iterator(EDGECASE_CRASH_REGRESSIONS))
    plans.insert(entry.path());
  REQUIRE_FALSE(plans.empty());
  for (const auto& path : plans) {
    CAPTURE(path.filename().string());
    std::ifstream file(path);
    const auto plan = parse_plan(std::string(std::istreambuf_iterator<char>(file), {}));
    REQUIRE(plan.has_value());
    const LifeReport report = live(*plan);
    CHECK(report.broken == "");
  }
}

}  // namespace edgecase::test
