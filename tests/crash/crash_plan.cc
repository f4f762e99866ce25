#include "crash/crash_plan.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "crash/crash_state.h"
#include "crash/plan_text.h"
#include "edgecase/machine.h"

namespace edgecase::test {
namespace {

constexpr std::string_view kStepNames[kStepKinds] = {
    "write",  "ingest", "forget", "read",  "snapshot", "release",  "flush",  "compact", "work",
    "rest",   "create", "drop",   "fail",  "full",     "readonly", "unplug", "heal",    "stop",
    "reopen", "cut",    "kill",   "erase", "stamp",    "retain",   "pass",   "clock"};

class Planner {
 public:
  explicit Planner(std::uint64_t seed) : random_(seed) {
    plan_.seed = seed;
    plan_.memtable_bytes = std::uint64_t{4096} << random_.below(4);
    plan_.wal_segments = 2 + random_.below(kWalSegmentsFewMax - 1);
    // Every eighth life has a long log, of which little is synced or in tables.
    logs_ = seed % 8 == 7;
    if (logs_) {
      plan_.memtable_bytes = std::uint64_t{32768} << random_.below(4);
      plan_.wal_segments = kWalSegmentsFewMax + 6 + random_.below(36);
    }
    for (std::uint64_t& weight : weights_) weight = 0;
    for (const auto& [kind, most] : kUsual) set(kind, 1 + random_.below(most));
    // The swarm: each seed has some faults and lacks the others, so that none hides another.
    for (const auto& [kind, most] : kFaults) {
      if (random_.below(3) == 0) set(kind, 1 + random_.below(most));
    }
    kills_ = random_.below(3) == 0;
    policy_ = random_.below(3) == 0 ? random_.below(5) : static_cast<std::uint64_t>(CutPolicy::Any);
    recuts_ = random_.below(3) == 0;
  }

  Plan take() {
    for (std::size_t place = 0; place < kTimedPlace; ++place) {
      if (random_.below(4) != 0) add(StepKind::Create, {place});
    }
    for (std::uint64_t crashes = 1 + random_.below(3); crashes > 0; --crashes) {
      for (std::uint64_t steps = 5 + random_.below(45); steps > 0; --steps) add_any();
      add_crash();
    }
    return std::move(plan_);
  }

 private:
  struct Weight {
    StepKind kind;
    std::uint64_t most;
  };
  static constexpr Weight kUsual[] = {
      {StepKind::Write, 30}, {StepKind::Ingest, 15},  {StepKind::Forget, 3},
      {StepKind::Read, 4},   {StepKind::Snapshot, 2}, {StepKind::Release, 2},
      {StepKind::Flush, 4},  {StepKind::Compact, 2},  {StepKind::Work, 12},
      {StepKind::Rest, 3},   {StepKind::Create, 2},   {StepKind::Drop, 1},
      {StepKind::Reopen, 1}};
  static constexpr Weight kFaults[] = {{StepKind::Fail, 6},     {StepKind::Full, 2},
                                       {StepKind::ReadOnly, 1}, {StepKind::Unplug, 2},
                                       {StepKind::Heal, 4},     {StepKind::Stop, 2}};

  void set(StepKind kind, std::uint64_t weight) {
    weights_[static_cast<std::size_t>(kind)] = weight;
  }
  void add(StepKind kind, std::array<std::uint64_t, 5> arguments = {}) {
    plan_.steps.push_back({kind, arguments});
  }

  StepKind draw() {
    std::uint64_t sum = 0;
    for (const std::uint64_t weight : weights_) sum += weight;
    std::uint64_t at = random_.below(sum);
    std::size_t kind = 0;
    for (; at >= weights_[kind]; ++kind) at -= weights_[kind];
    return static_cast<StepKind>(kind);
  }

  // Short enough to be read and changed by hand.
  std::uint64_t detail() { return random_.below(1'000'000); }

  void add_any() {
    const StepKind kind = draw();
    switch (kind) {
      case StepKind::Write:
        return add(kind, {detail(), random_.below(logs_ ? 6 : 2) == 1 ? 1u : 0u});
      case StepKind::Work: return add(kind, {1 + random_.below(8)});
      case StepKind::Rest: return add(kind, {1 + random_.below(4)});
      case StepKind::Create:
      case StepKind::Drop: return add(kind, {random_.below(kTimedPlace)});
      case StepKind::Fail: return add_failure();
      case StepKind::Full: return add(kind, {1 + random_.below(2), random_.below(100'000)});
      case StepKind::ReadOnly: return add(kind, {1 + random_.below(2)});
      case StepKind::Stop: return add(kind, {1 + random_.below(80)});
      default: return add(kind, {detail()});
    }
  }

  void add_failure() {
    const Operation operation = kFailingOperations[random_.below(std::size(kFailingOperations))];
    const std::uint64_t error = random_.below(4) == 0 ? ENOSPC : EIO;
    add(StepKind::Fail, {static_cast<std::uint64_t>(operation), 1 + random_.below(12), error,
                         random_.below(4) == 0 ? 1u : 0u, random_.below(3)});
  }

  void add_crash() {
    const std::uint64_t again = recuts_ && random_.below(2) == 0 ? 1 + random_.below(60) : 0;
    if (kills_ && random_.below(2) == 0) return add(StepKind::Kill, {detail(), 0, again});
    add(StepKind::Cut, {detail(), policy_, again});
  }

  SeededRandom random_;
  Plan plan_;
  std::array<std::uint64_t, kStepKinds> weights_{};
  bool logs_ = false;
  bool kills_ = false;
  bool recuts_ = false;
  std::uint64_t policy_ = 0;
};

// Draws erasures from random numbers of their own, so that what else a seed does stays as it was.
void add_erasures(Plan& plan) {
  SeededRandom random(plan.seed ^ 0xe7a5e);
  if (random.below(2) == 0) return;
  const std::uint64_t rarity = 4 + random.below(20);
  std::vector<Step> steps;
  for (const Step& step : plan.steps) {
    steps.push_back(step);
    if (random.below(rarity) == 0)
      steps.push_back({StepKind::Erase, {random.below(1'000'000), random.below(3)}});
  }
  plan.steps = std::move(steps);
}

// The same: what has a time, rules by which it expires, and time that passes.
Step draw_expiry(SeededRandom& random, bool sets_clock) {
  const auto detail = [&] { return random.below(1'000'000); };
  const std::uint64_t drawn = random.below(20);
  if (drawn < 9) return {StepKind::Stamp, {detail(), random.below(2)}};
  if (drawn < 11) return {StepKind::Retain, {detail()}};
  if (drawn < 15) return {StepKind::Pass, {1 + random.below(8)}};
  if (drawn < 17) return {StepKind::Rest, {1 + random.below(random.below(4) == 0 ? 20 : 4)}};
  if (drawn < 18) return {StepKind::Flush, {detail()}};
  if (drawn < 19 && sets_clock) return {StepKind::Clock, {random.below(4), random.below(30)}};
  return {StepKind::Work, {1 + random.below(8)}};
}

void add_expiry(Plan& plan) {
  SeededRandom random(plan.seed ^ 0xe8b19e);
  if (random.below(2) == 0) return;
  const std::uint64_t rarity = 1 + random.below(4);
  const bool sets_clock = random.below(3) == 0;
  std::vector<Step> steps{{StepKind::Create, {kTimedPlace}},
                          {StepKind::Retain, {random.below(1'000'000)}}};
  for (const Step& step : plan.steps) {
    steps.push_back(step);
    if (random.below(rarity) == 0) steps.push_back(draw_expiry(random, sets_clock));
  }
  plan.steps = std::move(steps);
}

}  // namespace

bool has_step(const Plan& plan, StepKind kind) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [kind](const Step& step) { return step.kind == kind; });
}

Plan make_plan(std::uint64_t seed) {
  Plan plan = Planner(seed).take();
  add_erasures(plan);
  add_expiry(plan);
  return plan;
}

std::string to_text(const Plan& plan) {
  std::string text = "store " + std::to_string(plan.seed) + " " +
                     std::to_string(plan.memtable_bytes) + " " + std::to_string(plan.wal_segments) +
                     "\n";
  return append_steps(std::move(text), plan.steps, kStepNames);
}

std::optional<Plan> parse_plan(std::string_view text) {
  Plan plan;
  const bool is_plan = take_steps(
      text, "store",
      [&](std::istream& words) {
        return static_cast<bool>(words >> plan.seed >> plan.memtable_bytes >> plan.wal_segments);
      },
      kStepNames, plan.steps);
  return is_plan ? std::optional(std::move(plan)) : std::nullopt;
}

}  // namespace edgecase::test
