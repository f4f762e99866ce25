// erase: devices of a full store are erased one after another. How long the readings of each can
// still be read, how long its bytes are still on the drives, and what that writes.
#include "bench/workloads.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "bench/processes.h"
#include "bench/ttl.h"
#include "edgecase/engine.h"
#include "wire/reading_key.h"

namespace edgecase::cli::bench {
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
