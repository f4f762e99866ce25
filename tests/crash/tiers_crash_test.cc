// Tiers of retention on drives that lose their power, fail and are pulled (tiers_life.h): no
// question is answered otherwise than before, no late reading comes in, nothing is lost or counted
// twice.
#include <doctest/doctest.h>

#include <cstdlib>

#include "crash/tiers_life.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::test {

TEST_CASE("crash: tiers neither lose nor count twice, whatever happens to the drives") {
  const std::uint64_t first = test_seed(1);
  const std::uint64_t lives = seeds_of(300);
  MESSAGE("EDGECASE_TEST_SEED=" << first << ", " << lives << " seeds");
  TierReport all;
  for (std::uint64_t seed = first; seed < first + lives; ++seed) {
    const TierPlan plan = make_tier_plan(seed);
    const TierReport report = live_tiers(plan);
    if (!report.broken.empty()) {
      const TierPlan small = shrink_tiers(plan, 200);
      CHECK_MESSAGE(report.broken.empty(), "seed " << seed << ": " << report.broken << "\nshrunk:\n"
                                                   << to_text(small) << live_tiers(small).broken);
    }
    all.crashes += report.crashes;
    all.windows += report.windows;
    all.late += report.late;
    all.erasures += report.erasures;
  }
  if (std::getenv("EDGECASE_TEST_SEED") != nullptr) return;
  MESSAGE(all.crashes << " crashes, " << all.windows << " windows, " << all.late << " late, "
                      << all.erasures << " erasures");
  CHECK(all.crashes > 2 * lives);
  CHECK(all.windows > 20 * lives);
  CHECK(all.late > 20 * lives);
  CHECK(all.erasures > lives / 2);
}

TEST_CASE("crash: a plan of tiers is what its text says") {
  const TierPlan plan = make_tier_plan(7);
  const auto parsed = parse_tier_plan(to_text(plan));
  REQUIRE(parsed.has_value());
  CHECK(to_text(*parsed) == to_text(plan));
  CHECK_FALSE(parse_tier_plan("tiers 1 0\nwander 3\n").has_value());
  CHECK_FALSE(parse_tier_plan("pass\n").has_value());
}

// Faults that were found, as plans that showed them.
TEST_CASE("crash: tiers, regressions") {
  struct Case {
    const char* what;
    const char* plan;
  };
  for (const Case& each : {
           Case{"a window that a rule's change cuts was made anew without its older part",
                "tiers 34 0\nrule\nwrite 415593\npass\nrule 6\n"},
           Case{"a coarser tier was made without the window that the mark lies in",
                "tiers 104606 0\ntime 14\nwrite 330529\nrule 11\ntime 14\npass\nrule 9\npass\n"
                "rule 2\n"},
           Case{"the oracle took for durable a pass that a kill had left in the page cache alone",
                "tiers 77019535 0\nrule\nwrite 160836\nflush 373780\nwrite 662918\ntime 20\n"
                "thin 11296\nwrite 19191\nflush 996968\nstop 28\npass\nkill 334290\nstop 18\n"
                "ask 245912\n"},
       }) {
    CAPTURE(each.what);
    const auto plan = parse_tier_plan(each.plan);
    REQUIRE(plan.has_value());
    CHECK(live_tiers(*plan).broken == "");
  }
}

}  // namespace edgecase::test
