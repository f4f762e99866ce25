// Lives of seeds one after another, and what of them broke a promise, shrunk. See soak.sh.
//
//   crash_soak --seeds N | --hours H [--first SEED]     lives of SEED, SEED + 1, ...
//   crash_soak --seed SEED                              one, with its plan and what became of it
//   crash_soak --plan FILE                              the same from a plan's text
//
// Exit codes: 0 every promise was held, 1 one was broken, 2 wrong usage
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "crash/crash_life.h"

namespace {

using namespace edgecase;
using namespace edgecase::test;
using SteadyClock = std::chrono::steady_clock;

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

struct Totals {
  std::uint64_t lives = 0, broken = 0, crashes = 0, acknowledged = 0, refused = 0, faults = 0,
                operations = 0;
  CrashCounters store;

  void add(const LifeReport& report) {
    ++lives;
    crashes += report.crashes;
    acknowledged += report.acknowledged;
    refused += report.refused;
    faults += report.faults;
    operations += report.operations;
    store.opened += report.store.opened;
    store.torn_tails += report.store.torn_tails;
    store.replayed += report.store.replayed;
    store.flushes += report.store.flushes;
    store.merges += report.store.merges;
    store.relocations += report.store.relocations;
    store.dropped_deletes += report.store.dropped_deletes;
    store.removed_files += report.store.removed_files;
    store.erasures += report.store.erasures;
    store.drops += report.store.drops;
    store.purges += report.store.purges;
  }
  void print(double seconds, std::uint64_t next) const {
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf(
        "%llu seeds in %.0f s (%.1f a second), next %llu: %llu broken; %llu crashes, %llu torn "
        "tails, %llu acknowledged, %llu refused, %llu faults, %llu operations; %llu flushes, %llu "
        "merges, %llu relocations, %llu deletes and %llu files removed; %llu erasures, %llu drops "
        "and %llu purges of what had expired\n",
        number(lives), seconds, static_cast<double>(lives) / seconds, number(next), number(broken),
        number(crashes), number(store.torn_tails), number(acknowledged), number(refused),
        number(faults), number(operations), number(store.flushes), number(store.merges),
        number(store.relocations), number(store.dropped_deletes), number(store.removed_files),
        number(store.erasures), number(store.drops), number(store.purges));
    std::fflush(stdout);
  }
};

int soak(const Arguments& arguments) {
  const auto begin = SteadyClock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  Totals totals;
  double printed = 0;
  std::uint64_t seed = arguments.first;
  const auto more = [&] {
    if (stopping != 0) return false;
    return arguments.seeds != 0 ? totals.lives < arguments.seeds
                                : passed() < arguments.hours * 3600;
  };
  for (; more(); ++seed) {
    std::snprintf(aborted_message, sizeof aborted_message, "aborted in seed %llu\n",
                  static_cast<unsigned long long>(seed));
    const Plan plan = make_plan(seed);
    const LifeReport report = live(plan);
    totals.add(report);
    if (!report.broken.empty()) {
      ++totals.broken;
      const Plan small = shrink(plan);
      std::printf("# seed %llu, step %zu: %s\n%s# step %zu: %s\n\n",
                  static_cast<unsigned long long>(seed), report.step, report.broken.c_str(),
                  to_text(small).c_str(), live(small).step, live(small).broken.c_str());
      std::fflush(stdout);
    }
    if (passed() > printed + 60) {
      printed = passed();
      totals.print(printed, seed + 1);
    }
  }
  totals.print(passed(), seed);
  return totals.broken == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fputs(
        "usage: crash_soak --seeds N | --hours H [--first SEED] | --seed SEED | "
        "--plan FILE\n",
        stderr);
    return 2;
  }
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
  std::signal(SIGABRT, on_abort);
  if (arguments.seed != 0) return run_one(make_plan(arguments.seed));
  if (arguments.plan == nullptr) return soak(arguments);
  std::ifstream file(arguments.plan);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto plan = parse_plan(text);
  if (plan) return run_one(*plan);
  std::fprintf(stderr, "%s: no plan\n", arguments.plan);
  return 2;
}
