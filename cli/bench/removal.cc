#include "bench/removal.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "bench/processes.h"
#include "bench/workloads.h"
#include "edgecase/engine.h"
#include "wire/reading.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::size_t kPieceBytes = 4u << 20;

// Pieces overlap by the marker's length.
bool holds(const std::string& path, std::string_view marker, std::uint64_t& size) {
  std::ifstream file(path, std::ios::binary);
  std::string piece;
  std::size_t kept = 0;
  const std::boyer_moore_horspool_searcher searcher(marker.begin(), marker.end());
  while (file) {
    piece.resize(kept + kPieceBytes);
    file.read(piece.data() + kept, kPieceBytes);
    const auto got = static_cast<std::size_t>(file.gcount());
    size += got;
    piece.resize(kept + got);
    if (std::search(piece.begin(), piece.end(), searcher) != piece.end()) return true;
    kept = std::min(piece.size(), marker.size() - 1);
    piece.erase(0, piece.size() - kept);
  }
  return false;
}

}  // namespace

std::vector<MarkedFile> files_with(const std::string& directory, std::string_view marker) {
  std::vector<MarkedFile> found;
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(directory, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone)) continue;
    MarkedFile file{at->path().string(), 0};
    if (holds(file.path, marker, file.bytes)) found.push_back(std::move(file));
  }
  return found;
}

Result<std::unique_ptr<OverwritingStore>> OverwritingStore::open(const BenchOptions& options,
                                                                 ExpiryMode expiry,
                                                                 const NamespaceOptions& space) {
  std::unique_ptr<OverwritingStore> store(new OverwritingStore());
  EC_ASSIGN_OR_RETURN(store->directories_,
                      create_store_directories(options.metadata, options.values));
  Options wanted;
  wanted.metadata_directory = store->directories_.metadata;
  wanted.values_directory = store->directories_.values;
  wanted.expiry = expiry;
  wanted.removal = Removal::Overwrite;
  if (options.memory_bytes != 0) wanted.memory_limit_bytes = options.memory_bytes;
  const Environment environment{posix_file_system(), system_clock(), system_random(),
                                *store->executor_, store->listener_};
  EC_ASSIGN_OR_RETURN(store->engine_, Engine::open(wanted, environment));
  EC_ASSIGN_OR_RETURN(store->space_, store->engine_->create_namespace("bench", space));
  return store;
}

std::vector<MarkedFile> OverwritingStore::files_with(std::string_view marker) const {
  std::vector<MarkedFile> files = bench::files_with(directories_.metadata, marker);
  for (MarkedFile& each : bench::files_with(directories_.values, marker))
    files.push_back(std::move(each));
  return files;
}

namespace {

constexpr std::uint64_t kUsualKeys = 128'000;
constexpr std::uint64_t kSmokeKeys = 2'000;
constexpr std::uint64_t kKeysMax = 100'000'000;
constexpr std::uint32_t kValueBytes = 100;
constexpr std::int64_t kGoneWithinNs = 120 * kTtlSecondNs;
constexpr std::int64_t kReadAheadNs = 20'000'000;  // before the instant
constexpr std::int64_t kReadBehindNs = 100'000'000;

double ms_since(std::int64_t instant_ns, std::int64_t at_ns) {
  return static_cast<double>(at_ns - instant_ns) / 1e6;
}

class TtlRun {
 public:
  explicit TtlRun(const BenchOptions& options)
      : options_(options), keys_(options.num_or(kUsualKeys, kSmokeKeys)) {}

  Result<Report> run() {
    report_.workload = options_.workload;
    report_.num = keys_;
    report_.value_size = options_.value_size_or(kValueBytes);
    report_.seed = options_.seed;
    if (keys_ > kKeysMax || keys_ < kTtlEarlyOneIn)
      return invalid_argument("ttl takes from 5 to 100000000 keys");
    if (report_.value_size < kTtlMarker.size())
      return invalid_argument("values of ttl have at least 14 bytes");
    reset_own_peak();
    EC_TRY(open());
    instant_ns_ = ttl_instant_ns(keys_);
    EC_TRY(put_all());
    EC_TRY(read_around_instant());
    EC_TRY(wait_until_gone());
    EC_TRY(count_what_is_left());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    store_.reset();
    return report_;
  }

 private:
  void add(const char* name, double value) { report_.more.emplace_back(name, value); }

  Status open() {
    EC_ASSIGN_OR_RETURN(
        store_, OverwritingStore::open(options_, ExpiryMode::Exact, {.codec = GroupCodec::Series}));
    const RetentionRule rule{store_->space(), {}, kTtlLateNs};
    return store_->engine().set_retention({rule});
  }

  // A series each; by its time, and the one rule, a key expires at the instant or kTtlLateNs later.
  Bytes key(std::uint64_t number) const {
    return wire::make_reading_key({static_cast<std::uint32_t>(number), 1,
                                   expires_early(number) ? instant_ns_ - kTtlLateNs : instant_ns_});
  }

  Status put_all() {
    const auto start = std::chrono::steady_clock::now();
    TtlValues values(options_.seed, static_cast<std::uint32_t>(report_.value_size));
    WriteBatch batch;
    for (std::uint64_t i = 0; i < keys_; ++i) {
      batch.put(store_->space(), key(i), values.next(expires_early(i)));
      if ((i + 1) % kTtlKeysPerBatch != 0 && i + 1 != keys_) continue;
      EC_TRY(check_interrupt());
      EC_TRY(store_->engine().write(batch, Durability::Async));
      batch.clear();
    }
    EC_TRY(store_->engine().flush());
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report_.user_bytes = keys_ * (report_.value_size + wire::kReadingKeyBytes);
    if (wall_now_ns() > instant_ns_ - kReadAheadNs)
      return busy("this machine is too slow: the first keys expired before the last was put");
    // What cannot be found now would not be missed later.
    if (files_in_tables().empty()) return corruption("no file holds what was put");
    return ok();
  }

  static bool is_log(const MarkedFile& file) {
    return file.path.find("/wal/") != std::string::npos;
  }
  std::vector<MarkedFile> files_in_tables() const {
    std::vector<MarkedFile> files = store_->files_with(kTtlMarker);
    std::erase_if(files, is_log);
    return files;
  }

  // Gets of keys that expire, from just before the instant on.
  Status read_around_instant() {
    EC_TRY(wait_until_wall(instant_ns_ - kReadAheadNs));
    SeededRandom random(options_.seed + 1);
    std::int64_t last_read_ns = 0;
    bool was_readable = false;
    std::uint64_t reads = 0;
    while (wall_now_ns() < instant_ns_ + kReadBehindNs) {
      const std::uint64_t number = random.below(early_keys(keys_)) * kTtlEarlyOneIn;
      const std::int64_t before_ns = wall_now_ns();
      const auto got = store_->engine().get(store_->space(), key(number), {});
      if (!got.ok() && got.status().code() != StatusCode::NotFound) return got.status();
      ++reads;
      if (!got.ok()) continue;
      last_read_ns = before_ns;
      was_readable = was_readable || before_ns < instant_ns_;
    }
    if (!was_readable && reads > 0 && last_read_ns == 0)
      return corruption("keys could not be read before they expired");
    add("readable_after_ms", last_read_ns <= instant_ns_ ? 0 : ms_since(instant_ns_, last_read_ns));
    return ok();
  }

  // A search counts from its begin: what it does not find was gone by then.
  Status wait_until_gone() {
    while (wall_now_ns() < instant_ns_ + kGoneWithinNs) {
      EC_TRY(check_interrupt());
      const std::int64_t begun_ns = wall_now_ns();
      const ExpiryStats expiry = store_->engine().stats().expiry;
      // A search of all bytes takes longer than what it waits for: none begins before the engine
      // says that it is done.
      const bool is_done = expiry.waiting_bytes == 0 && !expiry.bytes_wait;
      if (is_done && files_in_tables().empty()) {
        add("gone_ms", ms_since(instant_ns_, begun_ns));
        const Stats stats = store_->engine().stats();
        add("dropped_files", static_cast<double>(stats.expiry.dropped_files));
        add("purges", static_cast<double>(stats.expiry.purges));
        add("logs_with_bytes", static_cast<double>(store_->files_with(kTtlMarker).size()));
        return ok();
      }
      sleep_ms(1);
    }
    return unavailable("two minutes after they expired, files hold keys: is this clock set?");
  }

  Status count_what_is_left() {
    EC_ASSIGN_OR_RETURN(const auto iterator, store_->engine().scan(store_->space(), {}, {}));
    std::uint64_t early = 0, late = 0;
    for (; iterator->valid(); iterator->next())
      ++(iterator->value().starts_with(kTtlMarker) ? early : late);
    EC_TRY(iterator->status());
    const std::uint64_t expected = keys_ - early_keys(keys_);
    const double wrong =
        static_cast<double>(early + (late > expected ? late - expected : expected - late));
    add("correct_percent", 100 * (1 - wrong / static_cast<double>(keys_)));
    return ok();
  }

  const BenchOptions options_;
  const std::uint64_t keys_;
  std::unique_ptr<OverwritingStore> store_;
  std::int64_t instant_ns_ = 0;
  Report report_;
};

}  // namespace

Result<Report> run_ttl(const BenchOptions& options) {
  return TtlRun(options).run();
}

// erase: devices of a full store are erased one after another. How long the readings of each can
// still be read, how long its bytes are still on the drives, and what that writes.

namespace {

constexpr std::uint64_t kUsualErasedReadings = 1'000'000;
constexpr std::uint64_t kSmokeErasedReadings = 4'000;
constexpr std::uint64_t kReadingsMax = 1'000'000'000;
constexpr std::uint32_t kUsualDevices = 10'000;
constexpr std::uint32_t kSmokeDevices = 20;
constexpr std::uint64_t kUsualErasures = 5;
constexpr std::uint64_t kSmokeErasures = 2;
constexpr std::uint64_t kReadingsPerBatch = 1'000;
constexpr std::uint32_t kNumberSensor = 1;
constexpr std::uint32_t kTextSensor = 2;  // of devices that are erased, one reading
constexpr std::int64_t kFirstTimeNs = 1'700'000'000'000'000'000;
constexpr std::int64_t kStepNs = 1'000'000;
constexpr int kQuietLooks = 10;
constexpr int kLookMs = 200;
constexpr std::string_view kErasedMarker = "of-an-erased-device.";  // in no other bytes

using SteadyClock = std::chrono::steady_clock;

double ms_since(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

class EraseRun {
 public:
  explicit EraseRun(const BenchOptions& options)
      : options_(options),
        readings_(options.num_or(kUsualErasedReadings, kSmokeErasedReadings)),
        devices_(options.devices != 0 ? options.devices
                 : options.smoke      ? kSmokeDevices
                                      : kUsualDevices),
        erasures_(options.operations != 0 ? options.operations
                  : options.smoke         ? kSmokeErasures
                                          : kUsualErasures),
        random_(options.seed) {}

  Result<Report> run() {
    report_.workload = options_.workload;
    report_.value_size = options_.value_size_or(wire::kNumberValueBytes);
    report_.seed = options_.seed;
    if (readings_ > kReadingsMax || readings_ < devices_)
      return invalid_argument("erase takes from one reading a device to 1000000000 in all");
    if (erasures_ > devices_)
      return invalid_argument("--operations is at most the number of devices");
    reset_own_peak();
    EC_TRY(open());
    EC_TRY(fill());
    EC_TRY(erase_all());
    EC_TRY(count_what_is_left());
    add("devices", devices_);
    add("readings", static_cast<double>(readings_));
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    store_.reset();
    return std::move(report_);
  }

 private:
  void add(const char* name, double value) { report_.more.emplace_back(name, value); }

  Status open() {
    EC_ASSIGN_OR_RETURN(store_,
                        OverwritingStore::open(options_, ExpiryMode::Bounded,
                                               {.codec = GroupCodec::Series,
                                                .scope_bytes = sizeof(wire::ReadingKey::device)}));
    return ok();
  }

  // A device that is erased. They lie evenly among the others, the first and the last of all with
  // them: files begin and end with those.
  std::uint32_t victim(std::uint64_t erasure) const {
    return static_cast<std::uint32_t>(erasure * (devices_ - 1) /
                                      std::max<std::uint64_t>(1, erasures_ - 1));
  }

  Bytes value() {
    if (report_.value_size == wire::kNumberValueBytes) {
      Bytes bytes;
      wire::append_value(wire::Value::of_float64(static_cast<double>(random_.below(4'000)) / 100),
                         bytes);
      return bytes;
    }
    Bytes bytes(1, static_cast<char>(wire::ValueTag::Text));
    while (bytes.size() < report_.value_size)
      bytes.push_back(static_cast<char>('a' + random_.below(26)));
    return bytes;
  }

  Status fill() {
    const auto start = SteadyClock::now();
    WriteBatch batch;
    for (std::uint64_t i = 0; i < readings_; ++i) {
      const std::uint64_t device = options_.random_fill ? random_.below(devices_) : i % devices_;
      const auto time_ns = kFirstTimeNs + static_cast<std::int64_t>(i) * kStepNs;
      batch.put(
          store_->space(),
          wire::make_reading_key({static_cast<std::uint32_t>(device), kNumberSensor, time_ns}),
          value());
      if (batch.count() < kReadingsPerBatch && i + 1 != readings_) continue;
      EC_TRY(check_interrupt());
      EC_TRY(store_->engine().write(batch, Durability::Async));
      batch.clear();
    }
    for (std::uint64_t i = 0; i < erasures_; ++i)
      batch.put(store_->space(), wire::make_reading_key({victim(i), kTextSensor, kFirstTimeNs}),
                Bytes(1, static_cast<char>(wire::ValueTag::Text)) + std::string(kErasedMarker));
    EC_TRY(store_->engine().write(batch, Durability::Sync));
    EC_TRY(store_->engine().flush());
    add("fill_seconds", ms_since(start) / 1e3);
    if (!options_.at_once) {
      const auto merging = SteadyClock::now();
      EC_TRY(store_->engine().compact({store_->space()}, {}));
      EC_TRY(wait_for_rest());
      add("settle_seconds", ms_since(merging) / 1e3);
    }
    // What cannot be found now would not be missed later.
    if (store_->files_with(kErasedMarker).empty()) return corruption("no file holds what was put");
    EC_ASSIGN_OR_RETURN(entries_, count_all());
    const Stats stats = store_->engine().stats();
    add("bytes_on_drives",
        static_cast<double>(stats.metadata.live_bytes + stats.values.live_bytes));
    add("runs", static_cast<double>(stats.compaction.runs + stats.compaction.level0_tables));
    return ok();
  }

  // What merges have replaced is overwritten beside everything else.
  Status wait_for_rest() {
    const auto overwritten = [&] { return store_->engine().stats().erasure.overwritten_bytes; };
    std::uint64_t before = overwritten();
    for (int quiet = 0; quiet < kQuietLooks; sleep_ms(kLookMs)) {
      EC_TRY(check_interrupt());
      quiet = overwritten() == before ? quiet + 1 : 0;
      before = overwritten();
    }
    return ok();
  }

  Status erase_all() {
    std::vector<double> hidden_ms;
    std::vector<double> gone_ms;
    std::uint64_t rewritten_bytes = 0;
    std::uint64_t overwritten_bytes = 0;
    for (std::uint64_t i = 0; i < erasures_; ++i) {
      EC_TRY(check_interrupt());
      const KeyRange range{device_prefix(victim(i)), device_prefix(victim(i) + 1)};
      EC_ASSIGN_OR_RETURN(const RangeStats own,
                          store_->engine().range_stats(store_->space(), range, {}));
      entries_ -= own.entries;
      report_.user_bytes += own.entries * (wire::kReadingKeyBytes + report_.value_size);
      WriteBatch batch;
      batch.erase_range(store_->space(), range.lower, range.upper);
      const auto start = SteadyClock::now();
      EC_TRY(store_->engine().write(batch, Durability::Sync));
      EC_TRY(check_hidden(range));
      hidden_ms.push_back(ms_since(start));
      EC_ASSIGN_OR_RETURN(const ErasureReport erased, store_->engine().erase());
      gone_ms.push_back(ms_since(start));
      report_.latency.add(static_cast<std::uint64_t>(gone_ms.back() * 1e6));
      report_.seconds += gone_ms.back() / 1e3;
      rewritten_bytes += erased.rewritten_bytes;
      overwritten_bytes += erased.overwritten_bytes;
      ++report_.num;
    }
    const auto each = static_cast<double>(erasures_);
    add("hidden_ms", median(hidden_ms));
    add("hidden_ms_max", *std::max_element(hidden_ms.begin(), hidden_ms.end()));
    add("gone_ms", median(gone_ms));
    add("gone_ms_max", *std::max_element(gone_ms.begin(), gone_ms.end()));
    add("rewritten_bytes", static_cast<double>(rewritten_bytes) / each);
    add("overwritten_bytes", static_cast<double>(overwritten_bytes) / each);
    return ok();
  }

  Result<std::uint64_t> count_all() {
    EC_ASSIGN_OR_RETURN(const RangeStats all,
                        store_->engine().range_stats(store_->space(), {}, {}));
    return all.entries;
  }

  static Bytes device_prefix(std::uint32_t device) {
    return wire::make_reading_key({device, 0, INT64_MIN}).substr(0, sizeof device);
  }

  Status check_hidden(const KeyRange& range) {
    EC_ASSIGN_OR_RETURN(const auto iterator, store_->engine().scan(store_->space(), range, {}));
    if (iterator->valid()) return corruption("a reading of an erased device was read");
    return iterator->status();
  }

  Status count_what_is_left() {
    EC_ASSIGN_OR_RETURN(const std::uint64_t left, count_all());
    const std::uint64_t wrong = left > entries_ ? left - entries_ : entries_ - left;
    add("correct_percent",
        100 * (1 - static_cast<double>(wrong) / static_cast<double>(readings_ + erasures_)));
    add("files_with_bytes", static_cast<double>(store_->files_with(kErasedMarker).size()));
    return ok();
  }

  const BenchOptions options_;
  const std::uint64_t readings_;
  const std::uint32_t devices_;
  const std::uint64_t erasures_;
  SeededRandom random_;
  std::unique_ptr<OverwritingStore> store_;
  std::uint64_t entries_ = 0;  // that should be there
  Report report_;
};

}  // namespace

Result<Report> run_erase_devices(const BenchOptions& options) {
  return EraseRun(options).run();
}

}  // namespace edgecase::cli::bench
