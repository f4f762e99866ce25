#include "ingest/reading_times.h"

#include <algorithm>
#include <optional>

#include "wire/reading_key.h"
#include "wire/undated_time.h"

namespace edgecase::ingest {
namespace {

// When the clock was set back by more than this, arrival times follow it; a smaller step back, or a
// clock too coarse to tell two batches apart, must not give one time twice.
constexpr std::int64_t kArrivalHoldNs = 1'000'000'000;

}  // namespace

bool ReadingTimes::is_believable(std::int64_t time_ns) const {
  std::optional<std::int64_t> trusted_now_ns;
  if (clock_.trust() == ClockTrust::Trusted) trusted_now_ns = clock_.wall_ns();
  return is_believable_time(time_ns, trusted_now_ns, ahead_ns_);
}

// What was erased, and what was dated, is no longer what was remembered of it.
DeviceTimes::Replaced ReadingTimes::settle(std::span<const DeviceTimes::Asked> asked) {
  if (asked.empty()) return {};
  std::uint64_t epoch = catalog_.generation();
  if (fences_ != nullptr) epoch += fences_->changes();
  if (undated_ != nullptr) epoch += undated_->changes();
  return device_times_.settle(asked, epoch);
}

std::int64_t ReadingTimes::arrival_clock_ns() {
  const bool is_trusted = clock_.trust() == ClockTrust::Trusted;
  if (!is_trusted && undated_ != nullptr) {
    if (const auto undated_ns = undated_->arrival_ns()) return *undated_ns;
  }
  // A clock that is behind must not date what arrives back to what was evicted, nor, while it is
  // known to be wrong, to what has expired: then the latest time that the store has known, and the
  // time since the machine was started, are nearer to the truth.
  std::int64_t now = clock_.wall_ns();
  if (!is_trusted) now = std::max(now, engine_.expiry_now_ns() + clock_.boot_ns());
  return eviction_ == nullptr ? now : std::max(now, eviction_->earliest_arrival_ns());
}

// Returns the first of `count` nanoseconds that no other batch gets.
std::int64_t ReadingTimes::take_arrival_times(std::int64_t count) {
  std::int64_t last = last_arrival_ns_.load(std::memory_order_relaxed);
  std::int64_t first = 0;
  do {
    const std::int64_t now = arrival_clock_ns();
    first = now > last || last - now > kArrivalHoldNs ? now : last + 1;
  } while (
      !last_arrival_ns_.compare_exchange_weak(last, first + count - 1, std::memory_order_relaxed));
  return first;
}

Status ReadingTimes::forget(const catalog::SeriesId& series,
                            std::span<const std::int64_t> times_ns) {
  // What is being moved would come back under its new time.
  std::optional<MutexLock> no_moves;
  if (undated_ != nullptr && std::any_of(times_ns.begin(), times_ns.end(), wire::is_undated_time)) {
    no_moves.emplace(undated_->moves_mutex());
  }
  WriteBatch batch;
  char key[wire::kReadingKeyBytes];
  for (const std::int64_t time_ns : times_ns) {
    wire::encode_reading_key({series.device, series.sensor, time_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
    const std::int64_t moved_ns = dated_ns(time_ns);
    if (moved_ns == time_ns) continue;
    wire::encode_reading_key({series.device, series.sensor, moved_ns}, key);
    batch.remove(series.namespace_id, ByteView(key, sizeof key));
  }
  return engine_.write(batch, Durability::Async);
}

}  // namespace edgecase::ingest
