#include <algorithm>
#include <atomic>
#include <chrono>

#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint32_t kUsualRecoveryValueBytes = 50;
constexpr std::uint32_t kSeries = 1'000;
constexpr std::uint64_t kEntriesPerBatchMax = 1'000;
constexpr std::uint64_t kBatchBytes = 1u << 20;
constexpr std::uint32_t kKeyBytes = 12;  // series, time
constexpr std::uint64_t kSmokeWalBytes = 4u << 20;
constexpr std::uint64_t kSmokeSegmentBytes = 1u << 20;

// A file system on which no new file can be made: as with the values drive pulled, nothing leaves
// the write-ahead log.
class NoNewFiles final : public FileSystem {
 public:
  explicit NoNewFiles(FileSystem& inner) : inner_(inner) {}
  void shut() { shut_ = true; }

  Result<std::unique_ptr<WritableFile>> create_file(const std::string& path) override {
    if (shut_) return io_error(path + ": the drive is away");
    return inner_.create_file(path);
  }
  Result<std::unique_ptr<RandomAccessFile>> open_file(const std::string& path) override {
    return inner_.open_file(path);
  }
  Result<std::unique_ptr<LogFile>> create_log_file(const std::string& path,
                                                   std::uint64_t capacity_bytes) override {
    return inner_.create_log_file(path, capacity_bytes);
  }
  Result<std::unique_ptr<LogFile>> open_log_file(const std::string& path) override {
    return inner_.open_log_file(path);
  }
  Status create_directory(const std::string& path) override {
    return inner_.create_directory(path);
  }
  Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) override {
    return inner_.list_directory(path);
  }
  Status sync_directory(const std::string& path) override { return inner_.sync_directory(path); }
  Status rename_file(const std::string& from, const std::string& to) override {
    return inner_.rename_file(from, to);
  }
  Status remove_file(const std::string& path) override { return inner_.remove_file(path); }
  Result<std::uint64_t> file_size(const std::string& path) override {
    return inner_.file_size(path);
  }
  Result<Space> space(const std::string& path) override { return inner_.space(path); }
  Result<std::unique_ptr<FileLock>> lock_file(const std::string& path) override {
    return inner_.lock_file(path);
  }

 private:
  FileSystem& inner_;
  std::atomic<bool> shut_{false};
};

class CountRecovery final : public EventListener {
 public:
  void on_recovered(const RecoveryEvent& event) override { last_ = event; }
  RecoveryEvent last() const { return last_; }

 private:
  RecoveryEvent last_;
};

// As readings look to the engine: a series, a time, a number (or more bytes than one takes).
void add_batch(WriteBatch& batch, NamespaceId id, std::uint64_t first, std::uint64_t count,
               std::uint32_t value_bytes, SeededRandom& random) {
  batch.clear();
  for (std::uint64_t i = first; i < first + count; ++i) {
    Bytes key(kKeyBytes, '\0');
    const std::uint64_t series = i % kSeries;
    const std::uint64_t time = i / kSeries * 1'000'000'000;
    for (int byte = 0; byte < 4; ++byte) {
      key[static_cast<std::size_t>(3 - byte)] = static_cast<char>(series >> (8 * byte));
    }
    for (int byte = 0; byte < 8; ++byte) {
      key[static_cast<std::size_t>(11 - byte)] = static_cast<char>(time >> (8 * byte));
    }
    Bytes value(value_bytes, kIntegerTag);
    if (value_bytes > 1) value[1] = static_cast<char>(random.next());
    batch.put(id, key, value);
  }
}

// Writes until the engine takes no more, because log or memory is full, and gives the entries in
// the log.
Result<std::uint64_t> fill_log(const Options& options, const BenchOptions& bench) {
  NoNewFiles files(posix_file_system());
  EventListener listener;
  const auto executor = make_thread_executor();
  const Environment environment{files, system_clock(), system_random(), *executor, listener};
  EC_ASSIGN_OR_RETURN(const auto engine, Engine::open(options, environment));
  EC_ASSIGN_OR_RETURN(
      const NamespaceId id,
      engine->create_namespace("bench", {Placement::Values, GroupCodec::Series, 4}));
  files.shut();
  SeededRandom random(bench.seed);
  const std::uint64_t per_batch = std::clamp<std::uint64_t>(
      kBatchBytes / (kKeyBytes + bench.value_size_or(kUsualRecoveryValueBytes)), 1,
      kEntriesPerBatchMax);
  WriteBatch batch;
  for (std::uint64_t written = 0;; written += per_batch) {
    EC_TRY(check_interrupt());
    add_batch(batch, id, written, per_batch, bench.value_size_or(kUsualRecoveryValueBytes), random);
    const Status status = engine->write(batch, Durability::Async);
    if (status.code() == StatusCode::Busy && written > 0) return written;
    EC_TRY(status);
  }
}

}  // namespace

Result<Report> run_recovery(const BenchOptions& options) {
  Report report;
  report.workload = options.workload;
  report.value_size = options.value_size_or(kUsualRecoveryValueBytes);
  report.seed = options.seed;
  std::vector<double> seconds;
  RecoveryEvent event;
  for (std::uint32_t round = 0; round < options.rounds_or(3); ++round) {
    EC_ASSIGN_OR_RETURN(const StoreDirectories directories,
                        create_store_directories(options.metadata, options.values));
    Options store;
    store.metadata_directory = directories.metadata;
    store.values_directory = directories.values;
    if (options.smoke) {
      store.wal_limit_bytes = kSmokeWalBytes;
      store.wal_segment_bytes = kSmokeSegmentBytes;
    }
    EC_ASSIGN_OR_RETURN(report.num, fill_log(store, options));
    CountRecovery listener;
    const auto executor = make_thread_executor();
    const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                  listener};
    reset_own_peak();
    const auto start = std::chrono::steady_clock::now();
    EC_ASSIGN_OR_RETURN(const auto engine, Engine::open(store, environment));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    event = listener.last();
  }
  report.seconds = median(seconds);
  report.user_bytes = report.num * (kKeyBytes + options.value_size_or(kUsualRecoveryValueBytes));
  report.peak_memory_bytes = own_usage().peak_resident_bytes;
  report.more = {{"rounds", static_cast<double>(seconds.size())},
                 {"recovery_ms", report.seconds * 1e3},
                 {"wal_bytes", static_cast<double>(event.wal_bytes)},
                 {"wal_records", static_cast<double>(event.wal_records)},
                 {"seconds_per_gb", report.seconds / (static_cast<double>(event.wal_bytes) / 1e9)}};
  return report;
}

}  // namespace edgecase::cli::bench
