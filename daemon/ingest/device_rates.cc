#include "ingest/device_rates.h"

#include <algorithm>

namespace edgecase::ingest {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Buckets that are full again are looked for when there is no room, at most this often.
constexpr std::int64_t kSweepSpacingNs = kNsPerSecond;

}  // namespace

DeviceRates::DeviceRates(const DeviceRateLimits& limits)
    : limits_(limits),
      interval_ns_(limits.per_second == 0 ? 0 : kNsPerSecond / limits.per_second),
      burst_ns_(interval_ns_ * limits.burst) {}

std::int64_t DeviceRates::owed_ns(std::span<const catalog::SeriesId> of, std::int64_t now_ns) {
  if (!is_on() || now_ns >= all_paid_ns_.load(std::memory_order_relaxed)) return 0;
  const MutexLock lock(mutex_);
  std::int64_t most_ns = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (i > 0 && device_of(of[i]) == device_of(of[i - 1])) continue;
    most_ns = std::max(most_ns, owed_by(device_of(of[i]), now_ns));
  }
  return most_ns;
}

bool DeviceRates::admit(std::span<const catalog::SeriesId> of, std::int64_t now_ns,
                        Pacing& pacing) {
  pacing.owed_ns = 0;
  if (!is_on()) return true;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (i > 0 && device_of(of[i]) == device_of(of[i - 1])) continue;
    if (pacing.taken.contains(device_of(of[i]))) continue;
    pacing.owed_ns = std::max(pacing.owed_ns, owed_by(device_of(of[i]), now_ns));
  }
  if (pacing.owed_ns > 0) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  for (const catalog::SeriesId& id : of) pacing.taken.insert(device_of(id));
  return true;
}

void DeviceRates::charge(std::span<const catalog::SeriesId> of, std::int64_t now_ns) {
  if (!is_on()) return;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < of.size();) {
    const Device device = device_of(of[i]);
    std::size_t end = i + 1;
    while (end < of.size() && device_of(of[end]) == device) ++end;
    std::int64_t& full_at_ns = bucket_of(device, now_ns);
    full_at_ns = std::max(full_at_ns, now_ns) + static_cast<std::int64_t>(end - i) * interval_ns_;
    const std::int64_t paid_ns = full_at_ns - burst_ns_;
    if (paid_ns > all_paid_ns_.load(std::memory_order_relaxed)) {
      all_paid_ns_.store(paid_ns, std::memory_order_relaxed);
    }
    i = end;
  }
}

std::size_t DeviceRates::held() const {
  const MutexLock lock(mutex_);
  return full_at_ns_.size();
}

std::int64_t DeviceRates::owed_by(Device device, std::int64_t now_ns) {
  const auto found = full_at_ns_.find(device);
  if (found == full_at_ns_.end() && has_room(now_ns)) return 0;
  const std::int64_t full_at_ns = found == full_at_ns_.end() ? others_full_at_ns_ : found->second;
  return std::max<std::int64_t>(full_at_ns - burst_ns_ - now_ns, 0);
}

bool DeviceRates::has_room(std::int64_t now_ns) {
  if (full_at_ns_.size() >= limits_.devices_max && now_ns >= sweep_again_ns_) {
    sweep_again_ns_ = now_ns + kSweepSpacingNs;
    std::erase_if(full_at_ns_, [now_ns](const auto& each) { return each.second <= now_ns; });
  }
  return full_at_ns_.size() < limits_.devices_max;
}

std::int64_t& DeviceRates::bucket_of(Device device, std::int64_t now_ns) {
  if (const auto found = full_at_ns_.find(device); found != full_at_ns_.end()) {
    return found->second;
  }
  if (!has_room(now_ns)) return others_full_at_ns_;
  return full_at_ns_.try_emplace(device, now_ns).first->second;
}

}  // namespace edgecase::ingest
