#include "crash/soak_workers.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "edgecase/status.h"

namespace edgecase::test {
namespace {

constexpr std::uint64_t kNoSeed = UINT64_MAX;
constexpr std::size_t kBrokenMax = 4096;
constexpr pid_t kNoProcess = -1;

}  // namespace

void SoakTotals::add(const LifeReport& report) {
  add(SoakTotals{1, report.crashes, report.acknowledged, report.refused, report.faults,
                 report.operations, report.store});
}

void SoakTotals::add(const SoakTotals& other) {
  lives += other.lives;
  crashes += other.crashes;
  acknowledged += other.acknowledged;
  refused += other.refused;
  faults += other.faults;
  operations += other.operations;
  store.opened += other.store.opened;
  store.torn_tails += other.store.torn_tails;
  store.dropped_segments += other.store.dropped_segments;
  store.replayed += other.store.replayed;
  store.flushes += other.store.flushes;
  store.merges += other.store.merges;
  store.relocations += other.store.relocations;
  store.dropped_deletes += other.store.dropped_deletes;
  store.removed_files += other.store.removed_files;
  store.erasures += other.store.erasures;
  store.drops += other.store.drops;
  store.purges += other.store.purges;
}

struct SoakWorkers::Shared {
  struct Worker {
    std::atomic<std::uint64_t> seed{kNoSeed};  // or one before it
    SoakTotals totals;
  };
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::size_t> broken_count{0};
  std::array<std::atomic<std::uint64_t>, kBrokenMax> broken{};
  std::array<Worker, kSoakProcessesMax> workers;
};

SoakWorkers::SoakWorkers(std::size_t processes, std::uint64_t first, std::uint64_t end,
                         LiveSeed live)
    : processes_(std::clamp<std::size_t>(processes, 1, kSoakProcessesMax)),
      end_(end),
      live_(std::move(live)) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EC_CHECK(memory != MAP_FAILED);
  shared_ = new (memory) Shared;
  shared_->next = first;
  processes_of_.fill(kNoProcess);
  for (std::size_t worker = 0; worker < processes_; ++worker) start(worker);
}

SoakWorkers::~SoakWorkers() {
  stop();
  for (std::size_t i = 0; i < processes_; ++i) {
    if (processes_of_[i] != kNoProcess) waitpid(processes_of_[i], nullptr, 0);
  }
  munmap(shared_, sizeof(Shared));
}

void SoakWorkers::start(std::size_t worker) {
  std::fflush(nullptr);
  const pid_t process = fork();
  EC_CHECK(process >= 0);
  if (process > 0) {
    processes_of_[worker] = process;
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // the parent's
  std::signal(SIGTERM, SIG_IGN);
  work(worker);
  std::fflush(nullptr);
  _exit(0);
}

void SoakWorkers::work(std::size_t worker) {
  Shared::Worker& self = shared_->workers[worker];
  while (!shared_->stopping) {
    self.seed = shared_->next.load();
    const std::uint64_t seed = shared_->next++;
    if (seed >= end_) break;
    self.seed = seed;
    if (!live_(seed, self.totals)) note_broken(seed);
  }
  self.seed = kNoSeed;
}

void SoakWorkers::note_broken(std::uint64_t seed) {
  const std::size_t at = shared_->broken_count++;
  if (at < kBrokenMax) shared_->broken[at] = seed;
}

bool SoakWorkers::look_after() {
  bool working = false;
  for (std::size_t i = 0; i < processes_; ++i) {
    if (processes_of_[i] == kNoProcess) continue;
    working = true;
    int status = 0;
    if (waitpid(processes_of_[i], &status, WNOHANG) != processes_of_[i]) continue;
    processes_of_[i] = kNoProcess;
    const std::uint64_t seed = shared_->workers[i].seed.exchange(kNoSeed);
    if (WIFEXITED(status) && seed == kNoSeed) continue;
    std::printf("# seed %llu: the process died of it (%s %d)\n",
                static_cast<unsigned long long>(seed), WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    note_broken(seed);
    if (!shared_->stopping) start(i);
  }
  return working;
}

void SoakWorkers::stop() {
  shared_->stopping = true;
}

std::uint64_t SoakWorkers::done_before() const {
  std::uint64_t before = std::min(shared_->next.load(), end_);
  for (std::size_t i = 0; i < processes_; ++i)
    before = std::min(before, shared_->workers[i].seed.load());
  return before;
}

std::vector<std::uint64_t> SoakWorkers::broken() const {
  const std::size_t count = std::min(shared_->broken_count.load(), kBrokenMax);
  return {shared_->broken.begin(), shared_->broken.begin() + static_cast<std::ptrdiff_t>(count)};
}

SoakTotals SoakWorkers::totals() const {
  SoakTotals totals;
  for (std::size_t i = 0; i < processes_; ++i) totals.add(shared_->workers[i].totals);
  return totals;
}

}  // namespace edgecase::test
