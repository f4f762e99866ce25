// Limits how many readings a second each device may bring: a token bucket a device, of
// `limits.device-rate` tokens a second, at most `limits.device-burst` of them kept.
//
// A batch is never cut in two, so one that finds a token is taken whole, and its device owes the
// rest: until that is paid off, nothing more is taken of it. On the average nobody gets more than
// the rate, and no batch is too large ever to be taken. Once `devices_max`
// buckets are held, those of devices that owe nothing and have spent nothing go; what still comes
// on top shares one bucket.
//
// Thread-safe. Times are of the boot clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "catalog/catalog.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"

namespace edgecase::ingest {

struct DeviceRateLimits {
  std::uint32_t per_second = 0;  // 0: no limit
  std::uint32_t burst = 10'000;
  std::uint32_t devices_max = 20'000;
};

// For people and headers: rounded up.
constexpr std::int64_t whole_seconds(std::int64_t ns) {
  return (ns + 999'999'999) / 1'000'000'000;
}

// One request that may come in several pieces: a device that was taken once is taken to its end.
struct Pacing {
  std::unordered_set<std::uint64_t> taken;  // devices
  std::int64_t owed_ns = 0;  // where it was refused: how long until it may come again
};

class DeviceRates {
 public:
  explicit DeviceRates(const DeviceRateLimits& limits);

  bool is_on() const { return interval_ns_ != 0; }
  const DeviceRateLimits& limits() const { return limits_; }

  // How long the one of these devices that owes the most still does; 0: none owes anything.
  std::int64_t owed_ns(std::span<const catalog::SeriesId> of, std::int64_t now_ns);
  // Whether they may be taken: false where one owes that `pacing` has not seen yet.
  bool admit(std::span<const catalog::SeriesId> of, std::int64_t now_ns, Pacing& pacing);
  // One token for each, whether it is there or not.
  void charge(std::span<const catalog::SeriesId> of, std::int64_t now_ns);

  // Buckets that take memory.
  std::size_t held() const;
  // How often a batch was refused, or who brought it was made to wait.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
  void count_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using Device = std::uint64_t;  // namespace and number
  static Device device_of(const catalog::SeriesId& id) {
    return std::uint64_t{id.namespace_id} << 32 | id.device;
  }
  std::int64_t owed_by(Device device, std::int64_t now_ns) EC_REQUIRES(mutex_);
  bool has_room(std::int64_t now_ns) EC_REQUIRES(mutex_);
  std::int64_t& bucket_of(Device device, std::int64_t now_ns) EC_REQUIRES(mutex_);

  const DeviceRateLimits limits_;
  const std::int64_t interval_ns_;  // of one token; 0: no limit
  const std::int64_t burst_ns_;
  std::atomic<std::int64_t> all_paid_ns_{0};  // nobody owes anything from then on
  std::atomic<std::uint64_t> refused_{0}, waits_{0};

  mutable Mutex mutex_;
  // When the bucket is full again.
  std::unordered_map<Device, std::int64_t> full_at_ns_ EC_GUARDED_BY(mutex_);
  // The same of those for whom there was no room.
  std::int64_t others_full_at_ns_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t sweep_again_ns_ EC_GUARDED_BY(mutex_) = 0;
};

}  // namespace edgecase::ingest
