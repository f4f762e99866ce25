// Lives of seeds one after another, and what of them broke a promise, shrunk. See soak.sh.
//
//   crash_soak --seeds N | --hours H [--first SEED] [--processes N] [--log FILE --commit NAME]
//                                                       lives of SEED, SEED + 1, ...
//   crash_soak --seed SEED                              one, with its plan and what became of it
//   crash_soak --plan FILE                              the same from a plan's text
//
// --lives tiers: those of tiers_life.h.
//
// Exit codes: 0 every promise was held, 1 one was broken, 2 wrong usage
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "crash/crash_life.h"
#include "crash/soak_workers.h"
#include "crash/tiers_life.h"

namespace {

using namespace edgecase;
using namespace edgecase::test;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kRangeSeeds = 1000;
constexpr double kPrintEverySeconds = 60;
constexpr int kLookEveryMs = 20;
constexpr std::size_t kShrunkLives = 500;

volatile std::sig_atomic_t stopping = 0;
char aborted_message[64] = "";

void on_stop(int) {
  stopping = 1;
}

// A broken invariant ends the process: say which seed it was.
void on_abort(int) {
  static_cast<void>(std::fputs(aborted_message, stderr));
}

struct Arguments {
  std::uint64_t seeds = 0;
  double hours = 0;
  std::uint64_t first = 1;
  std::uint64_t seed = 0;
  const char* plan = nullptr;
  std::uint64_t processes = 1;
  const char* log = nullptr;
  const char* commit = "?";
  bool are_tiers = false;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--seeds") {
      arguments.seeds = std::strtoull(value, nullptr, 10);
    } else if (name == "--hours") {
      arguments.hours = std::strtod(value, nullptr);
    } else if (name == "--first") {
      arguments.first = std::strtoull(value, nullptr, 10);
    } else if (name == "--seed") {
      arguments.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--plan") {
      arguments.plan = value;
    } else if (name == "--processes") {
      arguments.processes = std::strtoull(value, nullptr, 10);
    } else if (name == "--log") {
      arguments.log = value;
    } else if (name == "--commit") {
      arguments.commit = value;
    } else if (name == "--lives") {
      arguments.are_tiers = std::strcmp(value, "tiers") == 0;
    } else {
      return false;
    }
  }
  const int modes = (arguments.seeds != 0) + (arguments.hours > 0) + (arguments.seed != 0) +
                    (arguments.plan != nullptr);
  return argc % 2 == 1 && modes == 1;
}

int run_one(const Plan& plan) {
  std::printf("%s", to_text(plan).c_str());
  std::fflush(stdout);
  const LifeReport report = live(plan);
  std::printf("# %llu crashes, %llu batches acknowledged, %llu refused, %llu faults\n",
              static_cast<unsigned long long>(report.crashes),
              static_cast<unsigned long long>(report.acknowledged),
              static_cast<unsigned long long>(report.refused),
              static_cast<unsigned long long>(report.faults));
  if (report.broken.empty()) return 0;
  std::printf("# step %zu: %s\n# shrunk:\n", report.step, report.broken.c_str());
  const Plan small = shrink(plan);
  std::printf("%s# step %zu: %s\n", to_text(small).c_str(), live(small).step,
              live(small).broken.c_str());
  return 1;
}

int run_one(const TierPlan& plan) {
  std::printf("%s", to_text(plan).c_str());
  std::fflush(stdout);
  const TierReport report = live_tiers(plan);
  std::printf("# %" PRIu64 " crashes, %" PRIu64 " readings, %" PRIu64 " late, %" PRIu64
              " windows, %" PRIu64 " answers\n",
              report.crashes, report.written, report.late, report.windows, report.answers);
  if (report.broken.empty()) return 0;
  const TierPlan small = shrink_tiers(plan, kShrunkLives);
  std::printf("# %s\n# shrunk:\n%s# %s\n", report.broken.c_str(), to_text(small).c_str(),
              live_tiers(small).broken.c_str());
  return 1;
}

// Seeds from one on, as they come; a line for every so many that are done, of which no seed is in
// two.
class Ranges {
 public:
  Ranges(const Arguments& arguments) : arguments_(arguments), begin_(arguments.first) {}

  // All before `end` is done. True: there was something to say.
  bool note(const SoakWorkers& workers, std::uint64_t end) {
    if (end <= begin_) return false;
    std::uint64_t broken = 0;
    for (const std::uint64_t seed : workers.broken()) broken += seed >= begin_ && seed < end;
    const bool written = arguments_.log == nullptr || append(end, broken);
    begin_ = end;
    return written;
  }
  std::uint64_t begin() const { return begin_; }

 private:
  bool append(std::uint64_t end, std::uint64_t broken) const {
    std::FILE* const file = std::fopen(arguments_.log, "a");
    if (file == nullptr) return complain();
    char now[32] = "";
    const std::time_t time = std::time(nullptr);
    std::tm utc{};
    std::strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &utc));
    std::fprintf(file, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", now, arguments_.commit,
                 begin_, end - begin_, broken);
    return std::fclose(file) == 0 || complain();
  }
  bool complain() const {
    std::fprintf(stderr, "%s: %s\n", arguments_.log, std::strerror(errno));
    return false;
  }

  const Arguments& arguments_;
  std::uint64_t begin_;
};

void print(const SoakWorkers& workers, const Arguments& arguments, double seconds) {
  const SoakTotals totals = workers.totals();
  const std::uint64_t next = workers.done_before();
  std::printf("%" PRIu64 " seeds in %.0f s (%.1f a second), next %" PRIu64 ": %zu broken; %" PRIu64
              " crashes, %" PRIu64 " torn tails, %" PRIu64 " segments dropped, %" PRIu64
              " acknowledged, %" PRIu64 " refused, %" PRIu64 " faults, %" PRIu64
              " operations; %" PRIu64 " flushes, %" PRIu64 " merges, %" PRIu64
              " relocations, %" PRIu64 " deletes and %" PRIu64 " files removed; %" PRIu64
              " erasures, %" PRIu64 " drops and %" PRIu64 " purges of what had expired\n",
              next - arguments.first, seconds,
              static_cast<double>(next - arguments.first) / seconds, next, workers.broken().size(),
              totals.crashes, totals.store.torn_tails, totals.store.dropped_segments,
              totals.acknowledged, totals.refused, totals.faults, totals.operations,
              totals.store.flushes, totals.store.merges, totals.store.relocations,
              totals.store.dropped_deletes, totals.store.removed_files, totals.store.erasures,
              totals.store.drops, totals.store.purges);
  std::fflush(stdout);
}

bool live_seed(std::uint64_t seed, SoakTotals& totals) {
  std::snprintf(aborted_message, sizeof aborted_message, "aborted in seed %" PRIu64 "\n", seed);
  const Plan plan = make_plan(seed);
  const LifeReport report = live(plan);
  totals.add(report);
  if (report.broken.empty()) return true;
  const Plan small = shrink(plan);
  std::printf("# seed %" PRIu64 ", step %zu: %s\n%s# step %zu: %s\n\n", seed, report.step,
              report.broken.c_str(), to_text(small).c_str(), live(small).step,
              live(small).broken.c_str());
  std::fflush(stdout);
  return false;
}

bool live_tier_seed(std::uint64_t seed, SoakTotals& totals) {
  std::snprintf(aborted_message, sizeof aborted_message, "aborted in seed %" PRIu64 "\n", seed);
  const TierPlan plan = make_tier_plan(seed);
  const TierReport report = live_tiers(plan);
  LifeReport as_others;
  as_others.crashes = report.crashes;
  as_others.acknowledged = report.written;
  as_others.refused = report.late;
  totals.add(as_others);
  if (report.broken.empty()) return true;
  const TierPlan small = shrink_tiers(plan, kShrunkLives);
  std::printf("# seed %" PRIu64 ": %s\n%s# %s\n\n", seed, report.broken.c_str(),
              to_text(small).c_str(), live_tiers(small).broken.c_str());
  std::fflush(stdout);
  return false;
}

int soak(const Arguments& arguments) {
  const auto begin = SteadyClock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  const std::uint64_t end = arguments.seeds != 0 ? arguments.first + arguments.seeds : UINT64_MAX;
  SoakWorkers workers(arguments.processes, arguments.first, end,
                      arguments.are_tiers ? live_tier_seed : live_seed);
  Ranges ranges(arguments);
  double printed = 0;
  bool written = true;
  while (workers.look_after()) {
    poll(nullptr, 0, kLookEveryMs);
    if (stopping != 0 || (arguments.hours > 0 && passed() >= arguments.hours * 3600))
      workers.stop();
    const std::uint64_t done = workers.done_before();
    if (done - ranges.begin() >= kRangeSeeds) written = ranges.note(workers, done) && written;
    if (passed() < printed + kPrintEverySeconds) continue;
    printed = passed();
    print(workers, arguments, printed);
  }
  const std::uint64_t done = workers.done_before();
  if (done > ranges.begin()) written = ranges.note(workers, done) && written;
  print(workers, arguments, passed());
  return workers.broken().empty() && written ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fputs(
        "usage: crash_soak --seeds N | --hours H [--first SEED] [--processes N] [--log FILE "
        "--commit NAME] | --seed SEED | --plan FILE, with --lives tiers\n",
        stderr);
    return 2;
  }
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
  std::signal(SIGABRT, on_abort);
  if (arguments.seed != 0) {
    return arguments.are_tiers ? run_one(make_tier_plan(arguments.seed))
                               : run_one(make_plan(arguments.seed));
  }
  if (arguments.plan == nullptr) return soak(arguments);
  std::ifstream file(arguments.plan);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const auto plan = parse_tier_plan(text)) return run_one(*plan);
  const auto plan = parse_plan(text);
  if (plan) return run_one(*plan);
  std::fprintf(stderr, "%s: no plan\n", arguments.plan);
  return 2;
}
