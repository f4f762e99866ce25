// ttl beside Redis: the keys of `edgecase bench ttl`, with the same times, in a private Redis: when
// it has removed those that expired, and what its append-only file still holds of them.
#include <algorithm>
#include <vector>

#include "bench/experiments/experiments.h"
#include "bench/peers/redis_process.h"
#include "bench/processes.h"
#include "bench/removal.h"
#include "bench/store_session.h"
#include "bench/workloads.h"
#include "output.h"

namespace edgecase::cli::bench {
namespace {

// A trial of so many tells how fast Redis takes keys; it may get slower by this before the last.
constexpr std::uint64_t kTrialKeys = 100'000;
constexpr double kSlowerLater = 2.5;
constexpr std::int64_t kRedisWithinNs = 60 * kTtlSecondNs;

class TtlInRedis {
 public:
  // Adds to what ttl has measured of EdgeCase.
  TtlInRedis(const BenchOptions& options, Report& report)
      : options_(options), keys_(report.num), report_(report) {}

  Status run() {
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
    if (wall_now_ns() > instant_ns) {
      print_error(
          "edgecase bench ttl: the first keys expired before Redis had the last: this "
          "machine is too slow for so many\n");
      return ok();
    }
    EC_TRY(wait_until_wall(instant_ns));
    const std::uint64_t expected = keys_ - early_keys(keys_);
    std::uint64_t left = keys_;
    std::int64_t asked_ns = 0;
    while (left > expected && wall_now_ns() < instant_ns + kRedisWithinNs) {
      EC_TRY(check_interrupt());
      EC_ASSIGN_OR_RETURN(left, client.call({{"DBSIZE"}}));
      asked_ns = wall_now_ns();
      sleep_ms(1);
    }
    add("redis_removed_ms", static_cast<double>(asked_ns - instant_ns) / 1e6);
    add("redis_keys_left", static_cast<double>(left - std::min(left, expected)));
    add("redis_files_with_bytes",
        static_cast<double>(files_with(redis->directory(), kTtlMarker).size()));
    add("redis_peak_memory_bytes", static_cast<double>(usage_of(redis->id()).peak_resident_bytes));
    return ok();
  }

 private:
  void add(const char* name, double value) { report_.more.emplace_back(name, value); }

  // Puts `keys` keys, with their times as PXAT.
  Status fill(RedisClient& client, std::uint64_t keys, std::int64_t instant_ms) {
    TtlValues values(options_.seed, static_cast<std::uint32_t>(report_.value_size));
    std::vector<std::vector<std::string>> commands;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::int64_t end_ms =
          expires_early(i) ? instant_ms : instant_ms + kTtlLateNs / 1'000'000;
      commands.push_back({"SET", "key" + std::to_string(i), values.next(expires_early(i)), "PXAT",
                          std::to_string(end_ms)});
      if (commands.size() < kTtlKeysPerBatch && i + 1 != keys) continue;
      EC_TRY(check_interrupt());
      EC_TRY(client.call(commands).status());
      commands.clear();
    }
    return ok();
  }

  // When the keys are to expire: not before all are there.
  Result<std::int64_t> redis_instant_ms(RedisClient& client) {
    const std::uint64_t trial = std::min(keys_, kTrialKeys);
    const std::int64_t begun_ns = wall_now_ns();
    EC_TRY(fill(client, trial, (begun_ns + kTtlLateNs) / 1'000'000));
    const double seconds = static_cast<double>(wall_now_ns() - begun_ns) / kTtlSecondNs;
    EC_TRY(client.call({{"FLUSHALL"}}).status());
    const double per_second = static_cast<double>(trial) / std::max(seconds, 1e-3) / kSlowerLater;
    return ttl_instant_ns(keys_, std::min<double>(per_second, kTtlSlowKeysPerSecond)) / 1'000'000;
  }

  const BenchOptions& options_;
  const std::uint64_t keys_;
  Report& report_;
};

}  // namespace

Result<Report> run_ttl_beside_redis(const BenchOptions& options) {
  EC_ASSIGN_OR_RETURN(Report report, run_ttl(options));
  if (options.has_peer("redis")) EC_TRY(TtlInRedis(options, report).run());
  return report;
}

}  // namespace edgecase::cli::bench
