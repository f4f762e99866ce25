// Plans of tiers_life.h: drawn from a seed, as text, and made short.
#include <algorithm>
#include <utility>

#include "crash/plan_text.h"
#include "crash/tiers_life.h"
#include "edgecase/machine.h"

namespace edgecase::test {
namespace {

constexpr std::string_view kNames[kTierStepKinds] = {
    "write", "pass", "thin",   "time", "rule", "erase",  "ask", "flush", "compact",
    "work",  "fail", "unplug", "heal", "stop", "reopen", "cut", "kill"};

// How often, of a hundred; faults only in every other life.
struct Weight {
  TierStepKind kind;
  std::uint64_t weight;
  bool is_fault;
};
constexpr Weight kWeights[] = {{TierStepKind::Write, 34, false},  {TierStepKind::Pass, 14, false},
                               {TierStepKind::Thin, 4, false},    {TierStepKind::Time, 12, false},
                               {TierStepKind::Rule, 3, false},    {TierStepKind::Erase, 4, false},
                               {TierStepKind::Ask, 8, false},     {TierStepKind::Flush, 6, false},
                               {TierStepKind::Compact, 2, false}, {TierStepKind::Work, 10, false},
                               {TierStepKind::Reopen, 2, false},  {TierStepKind::Fail, 3, true},
                               {TierStepKind::Unplug, 1, true},   {TierStepKind::Heal, 4, true},
                               {TierStepKind::Stop, 4, true}};

TierStep draw_step(SeededRandom& random, bool has_faults) {
  std::uint64_t sum = 0;
  for (const Weight& each : kWeights) sum += each.is_fault && !has_faults ? 0 : each.weight;
  std::uint64_t at = random.below(sum);
  TierStepKind kind = TierStepKind::Write;
  for (const Weight& each : kWeights) {
    const std::uint64_t weight = each.is_fault && !has_faults ? 0 : each.weight;
    kind = each.kind;
    if (at < weight) break;
    at -= weight;
  }
  switch (kind) {
    case TierStepKind::Thin: return {kind, {1 + random.below(20'000)}};
    case TierStepKind::Time: return {kind, {1 + random.below(25)}};
    case TierStepKind::Rule: return {kind, {random.below(16)}};
    case TierStepKind::Work: return {kind, {1 + random.below(8)}};
    case TierStepKind::Fail: return {kind, {random.below(14), 1 + random.below(12)}};
    case TierStepKind::Stop: return {kind, {1 + random.below(120)}};
    default: return {kind, {random.below(1'000'000)}};
  }
}

bool breaks(const TierPlan& plan, std::size_t& lives_left) {
  if (lives_left == 0) return false;
  --lives_left;
  return !live_tiers(plan).broken.empty();
}

}  // namespace

TierPlan make_tier_plan(std::uint64_t seed) {
  SeededRandom random(seed ^ 0x71e75);
  TierPlan plan{seed, seed % 4 == 1, {{TierStepKind::Rule, {0}}}};
  const bool has_faults = random.below(2) == 0;
  for (std::uint64_t crashes = 1 + random.below(4); crashes > 0; --crashes) {
    for (std::uint64_t steps = 5 + random.below(40); steps > 0; --steps)
      plan.steps.push_back(draw_step(random, has_faults));
    // A crash mostly hits what tiers do.
    if (random.below(2) == 0) {
      plan.steps.push_back({TierStepKind::Time, {20 + random.below(30)}});
      plan.steps.push_back({TierStepKind::Stop, {1 + random.below(40)}});
      plan.steps.push_back({TierStepKind::Pass, {}});
    }
    const std::uint64_t detail = random.below(1'000'000);
    if (random.below(3) == 0) {
      plan.steps.push_back({TierStepKind::Kill, {detail}});
    } else {
      const std::uint64_t again = random.below(4) == 0 ? 1 + random.below(60) : 0;
      plan.steps.push_back({TierStepKind::Cut, {detail, random.below(6), again}});
    }
  }
  return plan;
}

std::string to_text(const TierPlan& plan) {
  std::string text = "tiers " + std::to_string(plan.seed) + (plan.is_encrypted ? " 1\n" : " 0\n");
  return append_steps(std::move(text), plan.steps, kNames);
}

std::optional<TierPlan> parse_tier_plan(std::string_view text) {
  TierPlan plan;
  const bool is_plan = take_steps(
      text, "tiers",
      [&](std::istream& words) {
        return static_cast<bool>(words >> plan.seed >> plan.is_encrypted);
      },
      kNames, plan.steps);
  return is_plan ? std::optional(std::move(plan)) : std::nullopt;
}

// Any steps in a row go, from the end, where what came before still has its effect.
TierPlan shrink_tiers(TierPlan plan, std::size_t lives_max) {
  if (!breaks(plan, lives_max)) return plan;
  std::size_t before = 0;
  do {
    before = plan.steps.size();
    for (std::size_t size = std::max<std::size_t>(1, before / 2); size > 0; size /= 2) {
      for (std::size_t end = plan.steps.size(); end > 0;) {
        const std::size_t begin = end > size ? end - size : 0;
        TierPlan shorter = plan;
        shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                            shorter.steps.begin() + static_cast<std::ptrdiff_t>(end));
        if (breaks(shorter, lives_max)) plan = std::move(shorter);
        end = begin;
      }
    }
  } while (plan.steps.size() < before && lives_max > 0);
  return plan;
}

}  // namespace edgecase::test
