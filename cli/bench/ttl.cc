#include "bench/ttl.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "bench/interrupt.h"
#include "bench/marked_files.h"
#include "bench/overwriting_store.h"
#include "bench/process_usage.h"
#include "bench/redis_process.h"
#include "edgecase/engine.h"
#include "output.h"
#include "wire/reading_key.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::uint64_t kUsualKeys = 128'000;
constexpr std::uint64_t kSmokeKeys = 2'000;
constexpr std::uint64_t kKeysMax = 100'000'000;
constexpr std::uint64_t kEarlyOneIn = 5;
constexpr std::uint32_t kValueBytes = 100;
constexpr std::uint64_t kKeysPerBatch = 1'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLateNs = 5 * 86'400 * kSecondNs;  // after the others
// Time to put the keys before the fifth of them expires.
constexpr std::int64_t kLeadNs = 3 * kSecondNs;
constexpr std::uint64_t kSlowKeysPerSecond = 40'000;
// A trial of so many tells how fast Redis takes keys; it may get slower by this before the last.
constexpr std::uint64_t kTrialKeys = 100'000;
constexpr double kSlowerLater = 2.5;
constexpr std::int64_t kGoneWithinNs = 120 * kSecondNs;
constexpr std::int64_t kRedisWithinNs = 60 * kSecondNs;
constexpr std::int64_t kReadAheadNs = 20'000'000;  // before the instant
constexpr std::int64_t kReadBehindNs = 100'000'000;
constexpr std::string_view kMarker = "expires-early.";  // in no other bytes

std::int64_t now_ns() {
  return system_clock().wall_ns();
}
double ms_since(std::int64_t instant_ns, std::int64_t at_ns) {
  return static_cast<double>(at_ns - instant_ns) / 1e6;
}
bool is_early(std::uint64_t number) {
  return number % kEarlyOneIn == 0;
}
std::uint64_t early_keys(std::uint64_t keys) {
  return (keys + kEarlyOneIn - 1) / kEarlyOneIn;
}
std::int64_t instant_for(std::uint64_t keys, double keys_per_second = kSlowKeysPerSecond) {
  return now_ns() + kLeadNs +
         static_cast<std::int64_t>(static_cast<double>(keys) / keys_per_second * kSecondNs);
}

// Its first bytes tell early from late, the others cannot be compressed.
class Values {
 public:
  Values(std::uint64_t seed, std::uint32_t bytes) : random_(seed), bytes_(bytes) {}
  std::string next(bool early) {
    std::string value = early ? std::string(kMarker) : "expires-late.";
    while (value.size() < bytes_) {
      std::uint64_t bits = random_.next();
      for (int i = 0; i < 8 && value.size() < bytes_; ++i, bits >>= 8)
        value += static_cast<char>(bits);
    }
    return value;
  }

 private:
  SeededRandom random_;
  const std::uint32_t bytes_;
};

Status wait_until(std::int64_t time_ns) {
  while (now_ns() < time_ns) {
    EC_TRY(check_interrupt());
    sleep_ms(1);
  }
  return ok();
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
    if (keys_ > kKeysMax || keys_ < kEarlyOneIn)
      return invalid_argument("ttl takes from 5 to 100000000 keys");
    if (report_.value_size < kMarker.size())
      return invalid_argument("values of ttl have at least 14 bytes");
    reset_own_peak();
    EC_TRY(open());
    instant_ns_ = instant_for(keys_);
    EC_TRY(put_all());
    EC_TRY(read_around_instant());
    EC_TRY(wait_until_gone());
    EC_TRY(count_what_is_left());
    report_.peak_memory_bytes = own_usage().peak_resident_bytes;
    store_.reset();
    if (options_.has_peer("redis")) EC_TRY(run_redis());
    return report_;
  }

 private:
  void add(const char* name, double value) { report_.more.emplace_back(name, value); }

  Status open() {
    EC_ASSIGN_OR_RETURN(
        store_, OverwritingStore::open(options_, ExpiryMode::Exact, {.codec = GroupCodec::Series}));
    const RetentionRule rule{store_->space(), {}, kLateNs};
    return store_->engine().set_retention({rule});
  }

  // A series each; by its time, and the one rule, a key expires at the instant or kLateNs later.
  Bytes key(std::uint64_t number) const {
    return wire::make_reading_key({static_cast<std::uint32_t>(number), 1,
                                   is_early(number) ? instant_ns_ - kLateNs : instant_ns_});
  }

  Status put_all() {
    const auto start = std::chrono::steady_clock::now();
    Values values(options_.seed, static_cast<std::uint32_t>(report_.value_size));
    WriteBatch batch;
    for (std::uint64_t i = 0; i < keys_; ++i) {
      batch.put(store_->space(), key(i), values.next(is_early(i)));
      if ((i + 1) % kKeysPerBatch != 0 && i + 1 != keys_) continue;
      EC_TRY(check_interrupt());
      EC_TRY(store_->engine().write(batch, Durability::Async));
      batch.clear();
    }
    EC_TRY(store_->engine().flush());
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report_.user_bytes = keys_ * (report_.value_size + wire::kReadingKeyBytes);
    if (now_ns() > instant_ns_ - kReadAheadNs)
      return busy("this machine is too slow: the first keys expired before the last was put");
    // What cannot be found now would not be missed later.
    if (files_in_tables().empty()) return corruption("no file holds what was put");
    return ok();
  }

  static bool is_log(const MarkedFile& file) {
    return file.path.find("/wal/") != std::string::npos;
  }
  std::vector<MarkedFile> files_in_tables() const {
    std::vector<MarkedFile> files = store_->files_with(kMarker);
    std::erase_if(files, is_log);
    return files;
  }

  // Gets of keys that expire, from just before the instant on.
  Status read_around_instant() {
    EC_TRY(wait_until(instant_ns_ - kReadAheadNs));
    SeededRandom random(options_.seed + 1);
    std::int64_t last_read_ns = 0;
    bool was_readable = false;
    std::uint64_t reads = 0;
    while (now_ns() < instant_ns_ + kReadBehindNs) {
      const std::uint64_t number = random.below(early_keys(keys_)) * kEarlyOneIn;
      const std::int64_t before_ns = now_ns();
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
    while (now_ns() < instant_ns_ + kGoneWithinNs) {
      EC_TRY(check_interrupt());
      const std::int64_t begun_ns = now_ns();
      const ExpiryStats expiry = store_->engine().stats().expiry;
      // A search of all bytes takes longer than what it waits for: none begins before the engine
      // says that it is done.
      const bool is_done = expiry.waiting_bytes == 0 && !expiry.bytes_wait;
      if (is_done && files_in_tables().empty()) {
        add("gone_ms", ms_since(instant_ns_, begun_ns));
        const Stats stats = store_->engine().stats();
        add("dropped_files", static_cast<double>(stats.expiry.dropped_files));
        add("purges", static_cast<double>(stats.expiry.purges));
        add("logs_with_bytes", static_cast<double>(store_->files_with(kMarker).size()));
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
      ++(iterator->value().starts_with(kMarker) ? early : late);
    EC_TRY(iterator->status());
    const std::uint64_t expected = keys_ - early_keys(keys_);
    const double wrong =
        static_cast<double>(early + (late > expected ? late - expected : expected - late));
    add("correct_percent", 100 * (1 - wrong / static_cast<double>(keys_)));
    return ok();
  }

  // So many keys, with their times as PXAT.
  Status fill(RedisClient& client, std::uint64_t keys, std::int64_t instant_ms) {
    Values values(options_.seed, static_cast<std::uint32_t>(report_.value_size));
    std::vector<std::vector<std::string>> commands;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::int64_t end_ms = is_early(i) ? instant_ms : instant_ms + kLateNs / 1'000'000;
      commands.push_back({"SET", "key" + std::to_string(i), values.next(is_early(i)), "PXAT",
                          std::to_string(end_ms)});
      if (commands.size() < kKeysPerBatch && i + 1 != keys) continue;
      EC_TRY(check_interrupt());
      EC_TRY(client.call(commands).status());
      commands.clear();
    }
    return ok();
  }

  // When the keys are to expire: not before all are there.
  Result<std::int64_t> redis_instant_ms(RedisClient& client) {
    const std::uint64_t trial = std::min(keys_, kTrialKeys);
    const std::int64_t begun_ns = now_ns();
    EC_TRY(fill(client, trial, (begun_ns + kLateNs) / 1'000'000));
    const double seconds = static_cast<double>(now_ns() - begun_ns) / kSecondNs;
    EC_TRY(client.call({{"FLUSHALL"}}).status());
    const double per_second = static_cast<double>(trial) / std::max(seconds, 1e-3) / kSlowerLater;
    return instant_for(keys_, std::min<double>(per_second, kSlowKeysPerSecond)) / 1'000'000;
  }

  Status run_redis() {
    if (!RedisProcess::is_installed()) {
      print_error(
          "edgecase bench ttl: redis-server is not installed "
          "(packaging/install-dependencies.sh peers)\n");
      return ok();
    }
    EC_ASSIGN_OR_RETURN(const auto redis, RedisProcess::start(options_.metadata));
    EC_ASSIGN_OR_RETURN(RedisClient client, RedisClient::connect(redis->endpoint()));
    EC_ASSIGN_OR_RETURN(const std::int64_t instant_ms, redis_instant_ms(client));
    EC_TRY(fill(client, keys_, instant_ms));
    const std::int64_t instant_ns = instant_ms * 1'000'000;
    if (now_ns() > instant_ns) {
      print_error(
          "edgecase bench ttl: the first keys expired before Redis had the last: this "
          "machine is too slow for so many\n");
      return ok();
    }
    EC_TRY(wait_until(instant_ns));
    const std::uint64_t expected = keys_ - early_keys(keys_);
    std::uint64_t left = keys_;
    std::int64_t asked_ns = 0;
    while (left > expected && now_ns() < instant_ns + kRedisWithinNs) {
      EC_TRY(check_interrupt());
      EC_ASSIGN_OR_RETURN(left, client.call({{"DBSIZE"}}));
      asked_ns = now_ns();
      sleep_ms(1);
    }
    add("redis_removed_ms", ms_since(instant_ns, asked_ns));
    add("redis_keys_left", static_cast<double>(left - std::min(left, expected)));
    add("redis_files_with_bytes",
        static_cast<double>(files_with(redis->directory(), kMarker).size()));
    add("redis_peak_memory_bytes", static_cast<double>(usage_of(redis->id()).peak_resident_bytes));
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

}  // namespace edgecase::cli::bench
