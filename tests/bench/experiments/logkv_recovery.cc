// The logkv-recovery workload: the LogKV paper's experiment on lost power (figure 5). A process of
// its own puts and deletes, and is killed (SIGKILL) while it goes on; the store is opened again,
// and every key is held against what was acknowledged. EdgeCase acknowledges a batch when it is
// durable; NaiveKV, which knows no log, at once.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "bench/experiments/experiments.h"
#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualCounts[] = {100'000, 400'000, 700'000, 1'000'000};
constexpr std::uint64_t kSmokeCounts[] = {1'000, 2'000};
constexpr const char* kEngines[] = {kOwnStore, "naive-32k", "naive-1m", "naive-32m"};
constexpr std::uint32_t kUsualRecoveredValueBytes = 50;
constexpr std::uint32_t kUsualBatch = 100;
constexpr std::uint32_t kCommandsPerKey = 4;
constexpr std::uint32_t kPutPercent = 75;  // the others are deletes

// What the process that writes tells the one that kills it: plain memory, shared.
struct Progress {
  std::atomic<std::uint64_t> elapsed_ns;
  std::atomic<bool> done, failed;
  char message[512];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct UnmapProgress {
  void operator()(Progress* progress) const { ::munmap(progress, sizeof(Progress)); }
};

struct Outcome {
  double seconds = 0;           // of the commands
  double recovery_seconds = 0;  // until the store answers
  std::uint64_t truth = 0;      // keys that should be there
  std::uint64_t wrong = 0;      // another value, or there although deleted
  std::uint64_t missing = 0;
};

class KilledWriter {
 public:
  KilledWriter(const BenchOptions& options, std::string engine, std::uint64_t count)
      : options_(options),
        engine_(std::move(engine)),
        count_(count),
        keys_(std::max<std::uint64_t>(count / kCommandsPerKey, 1)),
        values_(options.seed, options.value_size_or(kUsualRecoveredValueBytes),
                options.compression_ratio) {}

  Result<Outcome> run() {
    EC_ASSIGN_OR_RETURN(const StoreDirectories directories,
                        create_store_directories(options_.metadata, options_.values));
    settings_.metadata_directory = directories.metadata;
    settings_.values_directory = directories.values;
    settings_.memory_bytes =
        options_.memory_bytes != 0 ? options_.memory_bytes : StoreSession::kUsualMemoryBytes;
    EC_TRY(write_and_kill());
    const auto start = std::chrono::steady_clock::now();
    EC_ASSIGN_OR_RETURN(const auto store, open_store(options_, engine_, settings_));
    outcome_.recovery_seconds = static_cast<double>(ns_since(start)) / 1e9;
    EC_TRY(compare_all(*store));
    return outcome_;
  }

 private:
  Status write_and_kill() {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return io_error(std::string("mmap: ") + std::strerror(errno));
    const std::unique_ptr<Progress, UnmapProgress> progress(new (memory) Progress{});
    const pid_t child = ::fork();
    if (child < 0) return io_error(std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
      const Status status = write_on(*progress);
      progress->message[status.to_string().copy(progress->message, sizeof(progress->message) - 1)] =
          '\0';
      progress->failed = true;
      ::_exit(1);
    }
    while (!progress->done && !progress->failed && !interrupted() &&
           ::waitpid(child, nullptr, WNOHANG) == 0) {
      sleep_ms(1);
    }
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    EC_TRY(check_interrupt());
    if (progress->failed) return io_error(engine_ + ": " + progress->message);
    if (!progress->done) return io_error(engine_ + ": its process died");
    outcome_.seconds = static_cast<double>(progress->elapsed_ns) / 1e9;
    return ok();
  }

  // In the child: ends only when something failed.
  Status write_on(Progress& progress) {
    EC_ASSIGN_OR_RETURN(const auto store, open_store(options_, engine_, settings_));
    KeyMaker keys(options_.key_size);
    const auto batch = store->make_batch();
    const std::uint32_t batch_size = options_.batch_or(kUsualBatch);
    SeededRandom random(options_.seed);
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t done = 0; done < count_;) {
      batch->clear();
      for (const std::uint64_t until = std::min(done + batch_size, count_); done < until; ++done) {
        const std::uint64_t key = random.below(keys_);
        if (is_put(random)) {
          batch->put(0, keys.of(key), values_.of(done));
        } else {
          batch->remove(0, keys.of(key));
        }
      }
      EC_TRY(store->write(*batch, true));
    }
    progress.elapsed_ns = ns_since(start);
    progress.done = true;
    while (true) ::pause();
  }

  static bool is_put(SeededRandom& random) { return random.below(100) < kPutPercent; }

  Status compare_all(BenchStore& store) {
    constexpr std::uint64_t kDeleted = ~std::uint64_t{0};
    std::vector<std::uint64_t> last(keys_, kDeleted);  // which command put it
    SeededRandom random(options_.seed);
    for (std::uint64_t done = 0; done < count_; ++done) {
      const std::uint64_t key = random.below(keys_);
      last[key] = is_put(random) ? done : kDeleted;
    }
    KeyMaker keys(options_.key_size);
    for (std::uint64_t key = 0; key < keys_; ++key) {
      const auto value = store.get(0, keys.of(key));
      const bool there = value.ok();
      if (!there && value.status().code() != StatusCode::NotFound) return value.status();
      const bool should = last[key] != kDeleted;
      outcome_.truth += should ? 1u : 0u;
      outcome_.missing += should && !there ? 1u : 0u;
      const bool wrong = there && (!should || ByteView(*value) != values_.of(last[key]));
      outcome_.wrong += wrong ? 1u : 0u;
    }
    return ok();
  }

  const BenchOptions& options_;
  const std::string engine_;
  const std::uint64_t count_;
  const std::uint64_t keys_;
  const ValueMaker values_;
  StoreSettings settings_;
  Outcome outcome_;
};

void add_rows(Report& report, const std::string& name, const std::vector<Outcome>& outcomes,
              std::uint64_t count) {
  const auto median_of = [&](const auto& of) {
    std::vector<double> all;
    for (const Outcome& outcome : outcomes) all.push_back(of(outcome));
    return median(std::move(all));
  };
  double errors = 0;
  for (const Outcome& each : outcomes) {
    errors = std::max(errors, 100 * static_cast<double>(each.wrong + each.missing) /
                                  static_cast<double>(each.truth));
  }
  report.more.emplace_back(name + "_per_second", median_of([count](const Outcome& outcome) {
                             return static_cast<double>(count) / outcome.seconds;
                           }));
  report.more.emplace_back(name + "_recovery_ms", median_of([](const Outcome& outcome) {
                             return outcome.recovery_seconds * 1e3;
                           }));
  report.more.emplace_back(name + "_error_percent", errors);  // the worst round
}

Status measure(const BenchOptions& options, std::uint64_t count, Report& report) {
  for (const char* engine : kEngines) {
    std::vector<Outcome> outcomes;
    for (std::uint32_t round = 0; round < options.rounds_or(1); ++round) {
      EC_TRY(check_interrupt());
      EC_ASSIGN_OR_RETURN(const Outcome outcome, KilledWriter(options, engine, count).run());
      outcomes.push_back(outcome);
      if (engine != kEngines[0]) continue;
      report.num += count;
      report.seconds += outcome.seconds;
      report.user_bytes += count * (options.key_size + report.value_size);
      report.latency.add(static_cast<std::uint64_t>(outcome.recovery_seconds * 1e9));
    }
    std::string name = "n" + std::to_string(count) + "_" + engine;
    std::replace(name.begin(), name.end(), '-', '_');
    add_rows(report, name, outcomes, count);
  }
  return ok();
}

}  // namespace

Result<Report> run_logkv_recovery(const BenchOptions& options) {
  EC_TRY(check_store_sizes(options));
  Report report;
  report.workload = options.workload;
  report.value_size = options.value_size_or(kUsualRecoveredValueBytes);
  report.sync = true;
  report.seed = options.seed;
  std::vector<std::uint64_t> counts(std::begin(kUsualCounts), std::end(kUsualCounts));
  if (options.smoke) counts.assign(std::begin(kSmokeCounts), std::end(kSmokeCounts));
  if (options.num != 0) counts.assign(1, options.num);
  for (const std::uint64_t count : counts) EC_TRY(measure(options, count, report));
  return report;
}

}  // namespace edgecase::cli::bench
