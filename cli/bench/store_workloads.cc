// The workloads on a store itself, whichever engine it is: fillseq fillrandom overwrite
// deleterandom readrandom hotkeys readmissing readseq seekrandom mixed. Each makes a private store,
// fills it where the workload begins with one, runs, and removes it.
#include "bench/workloads.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "edgecase/mutex.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualNum = 1'000'000;
constexpr std::uint64_t kSmokeNum = 2'000;
constexpr std::uint32_t kUsualStoreValueBytes = 50;
constexpr std::uint32_t kStoreFillBatch = 1'000;      // of a fill that is not what is measured
constexpr std::uint32_t kFillBatchBytes = 256 << 10;  // the same, of large values
constexpr std::uint64_t kSeekEntries = 100;           // read from each place that seekrandom seeks
constexpr std::uint64_t kKeysPerHotKey = 20;          // hotkeys: one key in twenty is hot,
constexpr std::uint64_t kHotPercent = 80;             // and so many gets in a hundred mean one
constexpr std::uint64_t kScanStride = 1'000;          // one reading of the clock a thousand entries
constexpr std::uint32_t kSampleStride = 16;           // operations of which one is timed

// Runs `work(thread, histogram)` on every thread and adds up what they measured.
class Crew {
 public:
  explicit Crew(std::atomic<std::uint64_t>& cpu_ns) : cpu_ns_(cpu_ns) {}

  template <typename Work>
  Status run(std::uint32_t threads, Histogram& latency, const Work& work) {
    std::vector<std::thread> crew;
    Mutex mutex;
    Status first;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      crew.emplace_back([&, thread] {
        auto own = std::make_unique<Histogram>();
        Status status = work(thread, *own);
        cpu_ns_ += thread_cpu_ns();
        const MutexLock lock(mutex);
        latency.merge(*own);
        if (first.ok()) first = std::move(status);
      });
    }
    for (std::thread& thread : crew) thread.join();
    return first;
  }

 private:
  std::atomic<std::uint64_t>& cpu_ns_;
};

class StoreWorkload {
 public:
  explicit StoreWorkload(const BenchOptions& options)
      : options_(options),
        num_(options.num_or(kUsualNum, kSmokeNum)),
        operations_(options.operations != 0 ? options.operations : num_),
        value_size_(options.value_size_or(kUsualStoreValueBytes)),
        batch_(options.batch_or(1)),
        threads_(options.threads_or(1)),
        stride_(batch_ == 1 && !options.sync && num_ > kSmokeNum ? kSampleStride : 1),
        values_(options.seed, std::min(value_size_, kValueSizeMaxBytes),
                options.compression_ratio) {}

  Result<Report> run() {
    EC_TRY(check_store_sizes(options_));
    EC_ASSIGN_OR_RETURN(session_,
                        StoreSession::create(options_, 1, StoreSession::kUsualMemoryBytes));
    Status status = measure();
    session_.reset();
    if (!status.ok()) return status;
    return std::move(report_);
  }

 private:
  // What becomes of one number: a put, or a delete.
  enum class Change : unsigned char { Put, Delete };
  // Where the hot keys lie: nowhere, among the others, or next to each other.
  enum class Hot : unsigned char { None, Scattered, Together };

  bool is(const char* workload) const { return options_.workload == workload; }
  bool late() const {
    return options_.seconds > 0 && static_cast<double>(ns_since(start_)) / 1e9 >= options_.seconds;
  }
  std::uint64_t entry_bytes() const { return options_.key_size + value_size_; }
  BenchStore& store() { return session_->store(); }

  Status measure() {
    report_.workload = options_.workload;
    report_.engine = options_.engine;
    report_.value_size = value_size_;
    report_.threads = threads_;
    report_.sync = options_.sync;
    report_.seed = options_.seed;
    const bool fills = is("fillseq") || is("fillrandom");
    const bool reads =
        is("readrandom") || is("readmissing") || is("readseq") || is("seekrandom") || is("hotkeys");
    if (!fills) EC_TRY(fill_first());
    if (reads && options_.cold) EC_TRY(session_->reopen_cold());
    reset_own_peak();
    const std::uint64_t os_written = own_usage().written_bytes;
    const std::uint64_t written = session_->device_bytes_written();
    if (!reads) session_->watch_space();
    start_ = SteadyClock::now();
    if (is("fillseq")) EC_TRY(fill_in_order());
    if (is("fillrandom") || is("overwrite")) EC_TRY(change_at_random(Change::Put));
    if (is("deleterandom")) EC_TRY(change_at_random(Change::Delete));
    if (is("readrandom") || is("readmissing")) EC_TRY(read_at_random(Hot::None));
    if (is("hotkeys")) EC_TRY(read_hot_keys());
    if (is("readseq")) EC_TRY(read_in_order());
    if (is("seekrandom")) EC_TRY(seek_at_random());
    if (is("mixed")) EC_TRY(read_and_write());
    report_.seconds = static_cast<double>(ns_since(start_)) / 1e9;
    report_.num = done_;
    report_.user_bytes = bytes_;
    // What a machine with other work to do still measures.
    if (done_ > 0) {
      report_.more.emplace_back("caller_cpu_us_per_operation",
                                static_cast<double>(cpu_ns_) / 1e3 / static_cast<double>(done_));
    }
    if (!reads) EC_TRY(settle_and_weigh(written, os_written));
    report_.more.emplace_back("bytes_on_drives", static_cast<double>(session_->table_bytes()));
    const Figures own = store().figures();
    report_.more.insert(report_.more.end(), own.begin(), own.end());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    return check_interrupt();
  }

  Status settle_and_weigh(std::uint64_t written, std::uint64_t os_written) {
    const auto start = SteadyClock::now();
    EC_TRY(session_->settle());
    report_.more.emplace_back("settle_seconds", static_cast<double>(ns_since(start)) / 1e9);
    const std::uint64_t peak = session_->stop_watching();
    count_live();
    const auto live = static_cast<double>(live_ * entry_bytes());
    if (const auto user_bytes = static_cast<double>(report_.user_bytes - read_bytes_);
        user_bytes > 0) {
      report_.write_amplification =
          static_cast<double>(session_->device_bytes_written() - written) / user_bytes;
      report_.more.emplace_back(
          "process_write_amplification",
          static_cast<double>(own_usage().written_bytes - os_written) / user_bytes);
    }
    if (live > 0) {
      report_.space_amplification = static_cast<double>(session_->table_bytes()) / live;
      report_.more.emplace_back("peak_space_amplification", static_cast<double>(peak) / live);
    }
    return ok();
  }

  // `count` changes of one thread; numbers from `first` on, or drawn from all of num_.
  Status change_range(Change change, std::uint64_t first, std::uint64_t count,
                      std::uint32_t batch_size, bool sync, SeededRandom* random, Histogram& latency,
                      std::uint64_t* changed = nullptr) {
    KeyMaker keys(options_.key_size);
    const auto batch = store().make_batch();
    LatencySampler sampler(latency, stride_);
    std::uint64_t done = 0;
    while (done < count) {
      const std::uint64_t until = std::min<std::uint64_t>(done + batch_size, count);
      sampler.begin();
      batch->clear();
      for (; done < until; ++done) {
        const std::uint64_t number = random != nullptr ? random->below(num_) : first + done;
        if (change == Change::Put) {
          batch->put(0, keys.of(number), values_.of(number + done));
        } else {
          batch->remove(0, keys.of(number));
        }
      }
      EC_TRY(store().write(*batch, sync));
      sampler.end();
      if (interrupted() || late()) break;
    }
    done_ += done;
    if (changed != nullptr) *changed = done;
    bytes_ += done * (change == Change::Put ? entry_bytes() : options_.key_size);
    return ok();
  }

  Status fill_in_order() {
    Crew crew(cpu_ns_);
    EC_TRY(crew.run(threads_, report_.latency, [&](std::uint32_t thread, Histogram& latency) {
      const std::uint64_t first = num_ * thread / threads_;
      return change_range(Change::Put, first, num_ * (thread + 1) / threads_ - first, batch_,
                          options_.sync, nullptr, latency);
    }));
    live_ = done_;
    return ok();
  }

  Status change_at_random(Change change) {
    changed_.resize(threads_);
    Crew crew(cpu_ns_);
    return crew.run(threads_, report_.latency, [&](std::uint32_t thread, Histogram& latency) {
      const std::uint64_t count =
          operations_ * (thread + 1) / threads_ - operations_ * thread / threads_;
      SeededRandom numbers = numbers_of(thread);
      return change_range(change, 0, count, batch_, options_.sync, &numbers, latency,
                          &changed_[thread]);
    });
  }

  SeededRandom numbers_of(std::uint32_t thread) const {
    return SeededRandom(options_.seed * 1000 + thread);
  }

  // Which numbers were drawn is found out when nothing is timed any more: a map of all of them is
  // in no processor's cache, and to note a key would take longer than half a put.
  void count_live() {
    if (changed_.empty()) return;
    std::vector<bool> is_met(num_);
    for (std::uint32_t thread = 0; thread < changed_.size(); ++thread) {
      SeededRandom numbers = numbers_of(thread);
      for (std::uint64_t i = 0; i < changed_[thread]; ++i) is_met[numbers.below(num_)] = true;
    }
    const auto met = static_cast<std::uint64_t>(std::count(is_met.begin(), is_met.end(), true));
    live_ = is("fillrandom") ? met : is("deleterandom") ? num_ - met : num_;
  }

  // Every number once, in order or in an order that jumps about.
  Status fill_first() {
    start_ = SteadyClock::now();
    const double seconds = std::exchange(options_.seconds, 0);
    const auto batch_size = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kFillBatchBytes / entry_bytes(), 1, kStoreFillBatch));
    Histogram ignored;
    if (options_.random_fill) {
      EC_TRY(fill_shuffled(batch_size));
    } else {
      EC_TRY(change_range(Change::Put, 0, num_, batch_size, false, nullptr, ignored));
    }
    options_.seconds = seconds;
    done_ = 0;
    bytes_ = 0;
    if (!options_.at_once) EC_TRY(session_->settle());
    return check_interrupt();
  }

  Status fill_shuffled(std::uint32_t batch_size) {
    std::vector<std::uint32_t> numbers(num_);
    for (std::uint64_t i = 0; i < num_; ++i) numbers[i] = static_cast<std::uint32_t>(i);
    SeededRandom random(options_.seed);
    for (std::uint64_t i = num_; i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
    KeyMaker keys(options_.key_size);
    const auto batch = store().make_batch();
    for (std::uint64_t i = 0; i < num_ && !interrupted();) {
      batch->clear();
      for (const std::uint64_t until = std::min(i + batch_size, num_); i < until; ++i) {
        batch->put(0, keys.of(numbers[i]), values_.of(numbers[i] + i));
      }
      EC_TRY(store().write(*batch, false));
    }
    return ok();
  }

  std::uint64_t draw(SeededRandom& random, Hot hot) const {
    if (hot == Hot::None) return random.below(num_);
    const std::uint64_t hot_keys = std::max<std::uint64_t>(num_ / kKeysPerHotKey, 1);
    const bool is_hot = random.below(100) < kHotPercent;
    if (hot == Hot::Together) {
      return is_hot ? random.below(hot_keys) : hot_keys + random.below(num_ - hot_keys);
    }
    if (is_hot) return random.below(hot_keys) * kKeysPerHotKey;
    const std::uint64_t number = random.below(num_);
    return number % kKeysPerHotKey != 0 ? number : std::min(number + 1, num_ - 1);
  }

  // All keys alike, then hot ones next to each other, then hot ones among the others: the last is
  // what the report is of.
  Status read_hot_keys() {
    double rates[3] = {};
    for (const Hot hot : {Hot::None, Hot::Together, Hot::Scattered}) {
      done_ = 0;
      bytes_ = 0;
      cpu_ns_ = 0;
      report_.latency = Histogram();
      start_ = SteadyClock::now();
      EC_TRY(read_at_random(hot));
      rates[static_cast<int>(hot)] =
          static_cast<double>(done_) / (static_cast<double>(ns_since(start_)) / 1e9);
    }
    const auto rate = [&rates](Hot hot) { return rates[static_cast<int>(hot)]; };
    report_.more.emplace_back("all_alike_per_second", rate(Hot::None));
    report_.more.emplace_back("hot_together_per_second", rate(Hot::Together));
    report_.more.emplace_back("ratio_to_all_alike", rate(Hot::Scattered) / rate(Hot::None));
    report_.more.emplace_back("together_ratio_to_all_alike", rate(Hot::Together) / rate(Hot::None));
    return ok();
  }

  Status read_at_random(Hot hot) {
    const bool missing = is("readmissing");
    Crew crew(cpu_ns_);
    return crew.run(threads_, report_.latency, [&](std::uint32_t thread, Histogram& latency) {
      KeyMaker keys(options_.key_size);
      SeededRandom random(options_.seed * 1000 + thread);
      LatencySampler sampler(latency, stride_);
      const std::uint64_t count = operations_ / threads_;
      std::uint64_t read = 0;
      for (; read < count && !interrupted() && !late(); ++read) {
        const std::uint64_t number = draw(random, hot);
        const ByteView key = missing ? keys.missing(number) : keys.of(number);
        sampler.begin();
        const auto value = store().get(0, key);
        sampler.end();
        if (missing && value.status().code() == StatusCode::NotFound) continue;
        if (!value.ok()) return value.status();
        if (missing) return corruption("a key that was never written");
        if (value->size() != value_size_) return corruption("a value of another size");
      }
      done_ += read;
      bytes_ += read * (missing ? options_.key_size : entry_bytes());
      return ok();
    });
  }

  // Gets and puts as a coin falls, of keys that are all there.
  Status read_and_write() {
    live_ = num_;
    Crew crew(cpu_ns_);
    return crew.run(threads_, report_.latency, [&](std::uint32_t thread, Histogram& latency) {
      KeyMaker keys(options_.key_size);
      SeededRandom random = numbers_of(thread);
      LatencySampler sampler(latency, stride_);
      const auto batch = store().make_batch();
      const std::uint64_t count = operations_ / threads_;
      std::uint64_t done = 0;
      std::uint64_t read = 0;
      for (; done < count && !interrupted() && !late(); ++done) {
        const ByteView key = keys.of(random.below(num_));
        const bool is_put = random.below(2) == 0;
        sampler.begin();
        if (is_put) {
          batch->clear();
          batch->put(0, key, values_.of(done));
          EC_TRY(store().write(*batch, options_.sync));
        } else {
          EC_ASSIGN_OR_RETURN(const Bytes value, store().get(0, key));
          if (value.size() != value_size_) return corruption("a value of another size");
          ++read;
        }
        sampler.end();
      }
      done_ += done;
      bytes_ += done * entry_bytes();
      read_bytes_ += read * entry_bytes();
      return ok();
    });
  }

  Status read_in_order() {
    Crew crew(cpu_ns_);
    return crew.run(threads_, report_.latency, [&](std::uint32_t, Histogram& latency) {
      std::uint64_t read = 0;
      std::uint64_t bytes = 0;
      auto before = SteadyClock::now();
      const Status status = store().scan({}, [&](ByteView key, ByteView value) {
        bytes += key.size() + value.size();
        if (++read % kScanStride != 0) return true;
        latency.add(ns_since(before) / kScanStride);
        before = SteadyClock::now();
        return !interrupted() && !late();
      });
      done_ += read;
      bytes_ += bytes;
      if (status.ok() && bytes != read * entry_bytes()) return corruption("entries of other sizes");
      return status;
    });
  }

  Status seek_at_random() {
    Crew crew(cpu_ns_);
    return crew.run(threads_, report_.latency, [&](std::uint32_t thread, Histogram& latency) {
      KeyMaker keys(options_.key_size);
      SeededRandom random(options_.seed * 1000 + thread);
      LatencySampler sampler(latency, 1);
      const std::uint64_t count = operations_ / threads_ / kSeekEntries;
      std::uint64_t read = 0;
      std::uint64_t bytes = 0;
      for (std::uint64_t seek = 0; seek < count && !interrupted() && !late(); ++seek) {
        const ByteView lower = keys.of(random.below(num_));
        sampler.begin();
        std::uint64_t left = kSeekEntries;
        EC_TRY(store().scan(lower, [&](ByteView key, ByteView value) {
          bytes += key.size() + value.size();
          ++read;
          return --left > 0;
        }));
        sampler.end();
      }
      done_ += read;
      bytes_ += bytes;
      return ok();
    });
  }

  BenchOptions options_;
  const std::uint64_t num_;
  const std::uint64_t operations_;
  const std::uint32_t value_size_;
  const std::uint32_t batch_;
  const std::uint32_t threads_;
  const std::uint32_t stride_;
  const ValueMaker values_;
  std::unique_ptr<StoreSession> session_;
  SteadyClock::time_point start_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> read_bytes_{0};  // of them, what mixed reads
  std::atomic<std::uint64_t> cpu_ns_{0};      // of the threads that call the store
  std::vector<std::uint64_t> changed_;        // by each thread, of numbers drawn at random
  std::uint64_t live_ = 0;                    // keys that a reader would find
  Report report_;
};

}  // namespace

Result<Report> run_store_workload(const BenchOptions& options) {
  return compare(options, [](const BenchOptions& one) { return StoreWorkload(one).run(); });
}

}  // namespace edgecase::cli::bench
