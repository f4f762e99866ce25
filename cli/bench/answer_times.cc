// Time that passes until somebody has an answer.
//
// query: a private daemon is given one series of a reading a second, and asked for windows, all of
// it and its last one. Medians over rounds; figures of HTTP as a client has them.
//
// recovery: a log as full as it may be, and how long the engine takes to open with it.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "bench/loads.h"
#include "bench/processes.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "wire/contract.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kUsualQueryReadings = 1'000'000;
constexpr std::uint64_t kSmokeQueryReadings = 10'000;
constexpr std::uint32_t kQueryLinesPerRequest = 5'000;
constexpr int kLastRequests = 1'000;
constexpr const char* kSelector = "ns=bench&select=node-0/node.temperature";

double ns_to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

struct Timed {
  double seconds = 0;
  double first_row_ms = 0;
  std::uint64_t rows = 0;
};

Result<Timed> timed_get(HttpClient& client, const std::string& path_and_query) {
  Timed timed;
  const std::string request = http_request("GET", path_and_query, "", "");
  const auto start = SteadyClock::now();
  EC_ASSIGN_OR_RETURN(
      const HttpAnswer answer, client.exchange(request, [&timed](std::string_view piece) {
        timed.rows += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
      }));
  timed.seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  timed.first_row_ms = ns_to_ms(answer.first_body_ns);
  if (answer.status != 200) {
    return io_error("HTTP " + std::to_string(answer.status) + " to " + path_and_query);
  }
  if (timed.rows == 0) return not_found("no rows from " + path_and_query);
  return timed;
}

// The median of each figure over the rounds.
Result<Timed> median_get(HttpClient& client, const std::string& path_and_query,
                         std::uint32_t rounds) {
  std::vector<double> seconds, first_row_ms;
  Timed result;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    EC_TRY(check_interrupt());
    EC_ASSIGN_OR_RETURN(result, timed_get(client, path_and_query));
    seconds.push_back(result.seconds);
    first_row_ms.push_back(result.first_row_ms);
  }
  result.seconds = median(seconds);
  result.first_row_ms = median(first_row_ms);
  return result;
}

}  // namespace

Result<Report> run_query(const BenchOptions& options) {
  const std::uint64_t readings = options.num_or(kUsualQueryReadings, kSmokeQueryReadings);
  EC_ASSIGN_OR_RETURN(const auto daemon,
                      DaemonProcess::create({options.metadata, options.values, ""}));
  EC_TRY(daemon->start());
  EC_TRY(create_database(daemon->endpoint(), "bench"));
  SensorLineOptions lines;
  lines.lines = readings;
  lines.lines_per_body = kQueryLinesPerRequest;
  lines.devices = 1;
  lines.fields = 1;
  lines.seed = options.seed;
  EC_TRY(send_all(daemon->endpoint(), make_write_requests(make_sensor_bodies(lines), "bench"), 1, 0)
             .status());

  HttpClient client(daemon->endpoint());
  const std::uint32_t rounds = options.rounds_or(3) + 2;
  const std::string query = std::string(wire::routes::kQuery) + "?" + kSelector;
  Report report;
  report.workload = options.workload;
  report.value_size = 8;
  report.seed = options.seed;
  report.num = readings;
  report.user_bytes = readings * 16;

  EC_ASSIGN_OR_RETURN(const Timed mean,
                      median_get(client, query + "&every=1h&agg=mean&format=ndjson", rounds));
  report.seconds = mean.seconds;
  struct Question {
    const char *figure, *asked;
  };
  constexpr Question kQuestions[] = {{"min_hours_ms", "&every=1h&agg=min"},
                                     {"max_hours_ms", "&every=1h&agg=max"},
                                     {"count_hours_ms", "&every=1h&agg=count"},
                                     {"mean_10s_ms", "&every=10s&agg=mean"},
                                     {"json_ms", "&format=json"}};
  std::vector<std::pair<std::string, double>> more;
  for (const Question& each : kQuestions) {
    EC_ASSIGN_OR_RETURN(const Timed timed, median_get(client, query + each.asked, rounds));
    more.emplace_back(each.figure, timed.seconds * 1e3);
  }
  EC_ASSIGN_OR_RETURN(const Timed raw, median_get(client, query + "&format=csv", rounds));
  const std::string last = std::string(wire::routes::kLast) + "?" + kSelector + "&format=ndjson";
  for (int i = 0; i < kLastRequests; ++i) {
    EC_TRY(check_interrupt());
    EC_ASSIGN_OR_RETURN(const Timed one, timed_get(client, last));
    report.latency.add(static_cast<std::uint64_t>(one.seconds * 1e9));
  }
  report.peak_memory_bytes = usage_of(daemon->id()).peak_resident_bytes;
  report.more = {
      {"mean_rows", static_cast<double>(mean.rows)},
      {"mean_first_row_ms", mean.first_row_ms},
      {"mean_total_ms", mean.seconds * 1e3},
      {"csv_readings_per_second", static_cast<double>(readings) / raw.seconds},
      {"csv_first_row_ms", raw.first_row_ms},
      {"last_p50_ms", ns_to_ms(static_cast<std::int64_t>(report.latency.percentile_ns(0.5)))},
      {"last_p99_ms", ns_to_ms(static_cast<std::int64_t>(report.latency.percentile_ns(0.99)))}};
  for (auto& [figure, value] : more) report.more.emplace_back(std::move(figure), value);
  return report;
}

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
