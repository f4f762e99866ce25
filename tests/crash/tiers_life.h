// A life of a store with tiers of retention, on simulated drives that fail and lose their power:
// readings, late ones and overwrites, windows made of them, by age and to make room, rules that
// change, erasures, restarts. All the daemon's parts that tiers touch work on the real engine; one
// thread, so that a plan decides everything. After each crash, and now and then, every question
// must be answered as tiers_model.h says.
//
//   tiers 17 1            seed, encrypted
//   write 93              a step a line
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace edgecase::test {

// In brackets the arguments. `detail` is a seed from which the rest of the step follows.
enum class TierStepKind : unsigned char {
  Write,  // [detail] up to 60 readings of a series, of the last hours
  Pass,   // what is due becomes windows; what was hidden is erased
  Thin,   // [bytes] to make room
  Time,   // [minutes]
  Rule,   // [which]
  Erase,  // [detail] a range of times of a series
  Ask,    // [detail] some questions
  Flush,
  Compact,
  Work,    // [tasks] background work
  Fail,    // [operation, nth]
  Unplug,  // the values drive
  Heal,    // all that ails the drives ends
  Stop,    // [nth] the machine stops at that operation
  Reopen,
  Cut,   // [seed, CutPolicy, again] power cut; again: another, so many operations after it
  Kill,  // [seed]
};
inline constexpr std::size_t kTierStepKinds = static_cast<std::size_t>(TierStepKind::Kill) + 1;

struct TierStep {
  TierStepKind kind = TierStepKind::Pass;
  std::array<std::uint64_t, 3> arguments{};
};

struct TierPlan {
  std::uint64_t seed = 0;
  bool is_encrypted = false;
  std::vector<TierStep> steps;
};

TierPlan make_tier_plan(std::uint64_t seed);
std::string to_text(const TierPlan& plan);
// Nothing when it is no plan's text.
std::optional<TierPlan> parse_tier_plan(std::string_view text);

struct TierReport {
  std::string broken;  // which promise; empty: none
  std::uint64_t crashes = 0, written = 0, late = 0, windows = 0, erasures = 0, answers = 0;
  std::uint64_t summaries = 0;  // groups that answered from statistics
};

TierReport live_tiers(const TierPlan& plan);
// The shortest plan of `lives_max` that still breaks a promise.
TierPlan shrink_tiers(TierPlan plan, std::size_t lives_max);

}  // namespace edgecase::test
