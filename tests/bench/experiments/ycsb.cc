// The core workloads of YCSB on a store: ycsb-a … ycsb-f. Load, settle, run.
#include "bench/experiments/experiments.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualYcsbNum = 1'000'000;
constexpr std::uint64_t kSmokeYcsbNum = 2'000;
constexpr std::uint32_t kUsualYcsbValueBytes = 50;
constexpr std::uint32_t kLoadBatchBytes = 64u << 10;
constexpr std::uint32_t kYcsbKeyMinBytes = 16;
constexpr std::uint64_t kScanMax = 100;  // records of one scan, 1 to so many

enum class Kind : unsigned char { Read, Update, Insert, Scan, ReadModifyWrite };
constexpr const char* kKindNames[] = {"read", "update", "insert", "scan", "read_modify_write"};
constexpr std::size_t kKinds = std::size(kKindNames);

enum class Chooser : unsigned char { Zipfian, Latest };

// Percent of each kind.
struct Mix {
  const char* name;
  std::array<unsigned, kKinds> percent;
  Chooser chooser;
};
constexpr Mix kMixes[] = {{"ycsb-a", {50, 50, 0, 0, 0}, Chooser::Zipfian},
                          {"ycsb-b", {95, 5, 0, 0, 0}, Chooser::Zipfian},
                          {"ycsb-c", {100, 0, 0, 0, 0}, Chooser::Zipfian},
                          {"ycsb-d", {95, 0, 5, 0, 0}, Chooser::Latest},
                          {"ycsb-e", {0, 0, 5, 95, 0}, Chooser::Zipfian},
                          {"ycsb-f", {50, 0, 0, 0, 50}, Chooser::Zipfian}};

const Mix& mix_of(const std::string& workload) {
  for (const Mix& mix : kMixes) {
    if (workload == mix.name) return mix;
  }
  return kMixes[0];
}

// "user", then the hash of the number in decimal: 24 bytes hold all of it, fewer its last digits.
class YcsbKeys {
 public:
  explicit YcsbKeys(std::uint32_t size) : key_(size, '0') {
    key_.replace(0, kPrefix.size(), kPrefix);
  }
  ByteView of(std::uint64_t number) {
    std::uint64_t hash = ycsb_hash(number);
    for (std::size_t i = key_.size(); i-- > kPrefix.size(); hash /= 10) {
      key_[i] = static_cast<char>('0' + hash % 10);
    }
    return key_;
  }

 private:
  static constexpr std::string_view kPrefix = "user";
  Bytes key_;
};

class Ycsb {
 public:
  explicit Ycsb(const BenchOptions& options)
      : options_(options),
        mix_(mix_of(options.workload)),
        num_(options.num_or(kUsualYcsbNum, kSmokeYcsbNum)),
        operations_(options.operations != 0 ? options.operations : num_),
        value_size_(options.value_size_or(kUsualYcsbValueBytes)),
        threads_(options.threads_or(1)),
        values_(options.seed, std::min(value_size_, kValueSizeMaxBytes), options.compression_ratio),
        inserts_(num_) {}

  Result<Report> run() {
    EC_TRY(check_store_sizes(options_, kYcsbKeyMinBytes));
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, 1, StoreSession::kUsualMemoryBytes));
    const Status status = measure();
    session_.reset();
    if (!status.ok()) return status;
    return std::move(report_);
  }

 private:
  // What one thread has seen.
  struct Tally {
    std::array<Histogram, kKinds> latency;
    std::uint64_t done = 0;
    std::uint64_t bytes = 0;
    std::uint64_t written_bytes = 0;
  };

  // One thread's hands: what it draws from and writes with.
  struct Worker {
    Worker(const Ycsb& ycsb, std::uint64_t seed)
        : random(seed),
          zipfian(ycsb.num_ + ycsb.expected_inserts()),
          latest(ycsb.num_),
          keys(ycsb.options_.key_size),
          batch(ycsb.session_->store().make_batch()) {}

    SeededRandom random;
    ScrambledZipfian zipfian;
    Latest latest;
    YcsbKeys keys;
    std::unique_ptr<BenchBatch> batch;
    // What a scan found: YCSB's clients are handed all records, not shown them one by one. A store
    // that shows what lies in a mapped file has not read it yet.
    Bytes found;
  };

  BenchStore& store() const { return session_->store(); }
  std::uint64_t entry_bytes() const { return options_.key_size + value_size_; }
  // YCSB draws among twice as many as it will insert, so that new records are read too.
  std::uint64_t expected_inserts() const {
    return operations_ * mix_.percent[static_cast<std::size_t>(Kind::Insert)] / 100 * 2;
  }
  bool late() const {
    return options_.seconds > 0 && static_cast<double>(ns_since(start_)) / 1e9 >= options_.seconds;
  }

  Status measure() {
    report_.workload = options_.workload;
    report_.engine = options_.engine;
    report_.value_size = value_size_;
    report_.threads = threads_;
    report_.sync = options_.sync;
    report_.seed = options_.seed;
    EC_TRY(load());
    if (!options_.at_once) EC_TRY(session_->settle());
    if (options_.cold) EC_TRY(session_->reopen_cold());
    EC_TRY(check_interrupt());
    reset_own_peak();
    const std::uint64_t written = session_->device_bytes_written();
    EC_TRY(run_threads());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    EC_TRY(session_->settle());
    if (written_bytes_ > 0) {
      report_.write_amplification =
          static_cast<double>(session_->device_bytes_written() - written) /
          static_cast<double>(written_bytes_);
    }
    report_.space_amplification = static_cast<double>(session_->table_bytes()) /
                                  static_cast<double>(inserts_.limit() * entry_bytes());
    const Figures own = store().figures();
    report_.more.insert(report_.more.end(), own.begin(), own.end());
    return check_interrupt();
  }

  Status load() {
    YcsbKeys keys(options_.key_size);
    const auto batch = store().make_batch();
    const std::uint64_t each = std::max<std::uint64_t>(kLoadBatchBytes / entry_bytes(), 1);
    const auto start = SteadyClock::now();
    for (std::uint64_t i = 0; i < num_ && !interrupted();) {
      batch->clear();
      for (const std::uint64_t until = std::min(i + each, num_); i < until; ++i) {
        batch->put(0, keys.of(i), values_.of(i));
      }
      EC_TRY(store().write(*batch, false));
    }
    report_.more.emplace_back("load_per_second", static_cast<double>(num_) /
                                                     (static_cast<double>(ns_since(start)) / 1e9));
    return check_interrupt();
  }

  Status run_threads() {
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::uint32_t i = 0; i < threads_; ++i) {
      workers.push_back(std::make_unique<Worker>(*this, options_.seed * 1000 + i));
    }
    std::vector<std::thread> crew;
    std::mutex mutex;
    Status first;
    std::uint64_t cpu_ns = 0;
    std::array<Histogram, kKinds> latency;
    start_ = SteadyClock::now();
    for (std::uint32_t i = 0; i < threads_; ++i) {
      crew.emplace_back([&, i] {
        auto tally = std::make_unique<Tally>();
        Status status = work(*workers[i], i, *tally);
        const std::lock_guard lock(mutex);
        if (first.ok()) first = std::move(status);
        cpu_ns += thread_cpu_ns();
        report_.num += tally->done;
        report_.user_bytes += tally->bytes;
        written_bytes_ += tally->written_bytes;
        for (std::size_t kind = 0; kind < kKinds; ++kind) latency[kind].merge(tally->latency[kind]);
      });
    }
    for (std::thread& thread : crew) thread.join();
    report_.seconds = static_cast<double>(ns_since(start_)) / 1e9;
    EC_TRY(first);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      report_.latency.merge(latency[kind]);
      if (latency[kind].count() == 0) continue;
      const std::string name = kKindNames[kind];
      for (const auto& [label, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}}) {
        report_.more.emplace_back(name + "_" + label + "_us",
                                  static_cast<double>(latency[kind].percentile_ns(share)) / 1e3);
      }
    }
    if (report_.num > 0) {
      report_.more.emplace_back(
          "caller_cpu_us_per_operation",
          static_cast<double>(cpu_ns) / 1e3 / static_cast<double>(report_.num));
    }
    return ok();
  }

  Status work(Worker& worker, std::uint32_t thread, Tally& tally) {
    const std::uint64_t count =
        operations_ * (thread + 1) / threads_ - operations_ * thread / threads_;
    for (; tally.done < count && !interrupted() && !late(); ++tally.done) {
      const SteadyClock::time_point intended = wait_for_turn(thread, tally.done);
      const Kind kind = draw_kind(worker.random);
      EC_TRY(one(worker, kind, tally));
      tally.latency[static_cast<std::size_t>(kind)].add(ns_since(intended));
    }
    return ok();
  }

  // With --rate, operations begin at times of their own, however long those before them took: what
  // waits behind a slow one is late, and counted so.
  SteadyClock::time_point wait_for_turn(std::uint32_t thread, std::uint64_t done) const {
    if (options_.rate <= 0) return SteadyClock::now();
    const double seconds = (static_cast<double>(done) * threads_ + thread) / options_.rate;
    const auto intended = start_ + std::chrono::duration_cast<SteadyClock::duration>(
                                       std::chrono::duration<double>(seconds));
    std::this_thread::sleep_until(intended);
    return intended;
  }

  Kind draw_kind(Random& random) const {
    std::uint64_t left = random.next() % 100;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (left < mix_.percent[kind]) return static_cast<Kind>(kind);
      left -= mix_.percent[kind];
    }
    return Kind::Read;
  }

  // Among the records that are there.
  std::uint64_t draw_record(Worker& worker) const {
    const std::uint64_t limit = inserts_.limit();
    if (mix_.chooser == Chooser::Latest) return worker.latest.next(worker.random, limit);
    while (true) {
      const std::uint64_t number = worker.zipfian.next(worker.random);
      if (number < limit) return number;
    }
  }

  Status one(Worker& worker, Kind kind, Tally& tally) {
    switch (kind) {
      case Kind::Read: return read(worker, draw_record(worker), tally);
      case Kind::Update: return put(worker, draw_record(worker), tally);
      case Kind::Scan: return scan(worker, draw_record(worker), tally);
      case Kind::ReadModifyWrite: {
        const std::uint64_t number = draw_record(worker);
        EC_TRY(read(worker, number, tally));
        return put(worker, number, tally);
      }
      case Kind::Insert: break;
    }
    const std::uint64_t number = inserts_.take();
    EC_TRY(put(worker, number, tally));
    inserts_.written(number);
    return ok();
  }

  Status read(Worker& worker, std::uint64_t number, Tally& tally) {
    const auto value = store().get(0, worker.keys.of(number));
    if (!value.ok()) return value.status();
    if (value->size() != value_size_) return corruption("a value of another size");
    tally.bytes += entry_bytes();
    return ok();
  }

  Status put(Worker& worker, std::uint64_t number, Tally& tally) {
    worker.batch->clear();
    worker.batch->put(0, worker.keys.of(number), values_.of(worker.random.next() >> 32));
    EC_TRY(store().write(*worker.batch, options_.sync));
    tally.bytes += entry_bytes();
    tally.written_bytes += entry_bytes();
    return ok();
  }

  Status scan(Worker& worker, std::uint64_t number, Tally& tally) {
    std::uint64_t left = 1 + worker.random.next() % kScanMax;
    worker.found.clear();
    EC_TRY(store().scan(worker.keys.of(number), [&](ByteView key, ByteView value) {
      worker.found.append(key).append(value);
      return --left > 0;
    }));
    if (worker.found.empty()) return corruption("a scan that found nothing");
    tally.bytes += worker.found.size();
    return ok();
  }

  const BenchOptions& options_;
  const Mix& mix_;
  const std::uint64_t num_;
  const std::uint64_t operations_;
  const std::uint32_t value_size_;
  const std::uint32_t threads_;
  const ValueMaker values_;
  InsertSequence inserts_;
  std::unique_ptr<StoreSession> session_;
  SteadyClock::time_point start_;
  std::uint64_t written_bytes_ = 0;
  Report report_;
};

}  // namespace

Result<Report> run_ycsb(const BenchOptions& options) {
  return compare(options, [](const BenchOptions& one) { return Ycsb(one).run(); });
}

}  // namespace edgecase::cli::bench
