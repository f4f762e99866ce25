#include "retention/eviction.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>

#include "catalog/tier_spaces.h"
#include "wire/reading.h"

namespace edgecase::retention {
namespace {

bool is_out_of_space(const Stats& stats) {
  return stats.values.degraded.code() == StatusCode::OutOfSpace ||
         stats.metadata.degraded.code() == StatusCode::OutOfSpace;
}

// A series' readings before that time.
KeyRange times_before(const catalog::SeriesId& id, std::int64_t before_ns) {
  char first[wire::kReadingKeyBytes], end[wire::kReadingKeyBytes];
  wire::encode_reading_key({id.device, id.sensor, INT64_MIN}, first);
  wire::encode_reading_key({id.device, id.sensor, before_ns}, end);
  return {Bytes(first, sizeof first), Bytes(end, sizeof end)};
}

}  // namespace

Eviction::Eviction(EvictionParts parts) : parts_(std::move(parts)) {
  for (const std::string& name : namespaces()) {
    const auto info = parts_.engine.find_namespace(name);
    if (!info.ok()) continue;
    latest_before_ns_ =
        std::max(latest_before_ns_.load(), parts_.engine.evicted_before_ns(info->id));
  }
}

Eviction::~Eviction() {
  stop();
}

void Eviction::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Eviction::start() {
  {
    const MutexLock lock(mutex_);
    status_.is_on = true;
  }
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "evict");
}

void Eviction::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    lock.lock();
    const CondVar::Deadline deadline = CondVar::deadline_in(kLookNs);
    while (!stopping_ && changed_.wait_until(mutex_, deadline)) {
    }
  }
}

// The store's own; what records of the daemon's take is small and bounded.
std::vector<std::string> Eviction::namespaces() const {
  std::vector<std::string> names = parts_.catalog.namespaces();
  std::erase_if(names, [](const std::string& name) { return name.starts_with('_'); });
  return names;
}

// One that both directories lie on is one drive.
std::vector<Eviction::Drive> Eviction::drives(const Stats& stats) const {
  std::vector<Drive> drives;
  std::uint64_t first_device = 0;
  for (const bool values : {true, false}) {
    const std::string& directory = values ? parts_.values_directory : parts_.metadata_directory;
    const auto space = parts_.file_system.space(directory);
    if (!space.ok()) continue;  // away: nothing that is done here brings it back
    const std::uint64_t own_bytes = values ? stats.values.live_bytes : stats.metadata.live_bytes;
    if (!drives.empty() && space->device == first_device) {
      drives.front().own_bytes += own_bytes;
      continue;
    }
    first_device = space->device;
    const std::uint64_t share = space->total_bytes / kWatermarkShare;
    const std::uint64_t kept = parts_.keep_free_bytes + parts_.keep_free_bytes / 4;
    drives.push_back({directory, space->free_bytes,
                      std::max(std::min(share, kWatermarkMaxBytes), std::min(share, kept)),
                      own_bytes, values});
  }
  return drives;
}

void Eviction::look() {
  const Stats stats = parts_.engine.stats();
  const std::vector<Drive> all = drives(stats);
  const auto low = std::find_if(all.begin(), all.end(), [](const Drive& d) { return d.is_low(); });
  {
    const MutexLock lock(mutex_);
    status_.makes_room = low != all.end();
    if (low == all.end()) status_.blocked.clear();
  }
  if (low == all.end()) {
    waits_for_room_ = false;
  } else if (parts_.thinning == nullptr ? !must_wait(stats) : !must_wait_for_thinned(stats)) {
    make_room(*low, stats);
  }
}

// What was evicted is not counted twice: its bytes go first.
bool Eviction::must_wait(const Stats& stats) const {
  if (!waits_for_room_) return false;
  const bool is_urgent = is_out_of_space(stats);
  const bool is_going = stats.expiry.evicted_waiting_bytes > 0 || stats.expiry.removals_wait;
  const std::int64_t passed_ns = parts_.clock.boot_ns() - evicted_at_boot_ns_;
  const std::int64_t patience_ns = is_urgent  ? kUrgentPatienceNs
                                   : is_going ? kRoomPatienceNs
                                              : kLookNs;
  return passed_ns < patience_ns;
}

// The same of what has become windows, also before the last start: it is erased here.
bool Eviction::must_wait_for_thinned(const Stats& stats) {
  const std::int64_t now_ns = parts_.clock.boot_ns();
  if (!std::exchange(waits_for_room_, true)) evicted_at_boot_ns_ = now_ns;
  const std::int64_t patience_ns = is_out_of_space(stats) ? kUrgentPatienceNs : kRoomPatienceNs;
  const bool is_over = now_ns - evicted_at_boot_ns_ >= patience_ns;
  return parts_.thinning->is_going(is_over) && !is_over;
}

// What has to go of the value layer; the metadata drive is relieved in the same proportion.
std::uint64_t Eviction::value_bytes_for(const Drive& drive, const Stats& stats) const {
  const std::uint64_t wanted = drive.watermark_bytes + drive.watermark_bytes / 4 -
                               std::min(drive.free_bytes, drive.watermark_bytes);
  const std::uint64_t all = stats.values.live_bytes;
  double bytes = static_cast<double>(wanted);
  if (!drive.holds_values && drive.own_bytes > 0)
    bytes = bytes / static_cast<double>(drive.own_bytes) * static_cast<double>(all);
  return std::clamp(static_cast<std::uint64_t>(bytes), all / kStepShareMin + 1,
                    all / kStepShareMax + 1);
}

// The latest time that the store has known, or the clock, if that is later: one that expiry waits
// to follow must not keep a full drive full.
std::int64_t Eviction::limit_ns() const {
  return std::max(parts_.engine.expiry_now_ns(), parts_.clock.wall_ns());
}

void Eviction::count_readings(const std::vector<std::string>& names, EvictionStep& step) const {
  std::vector<catalog::SeriesEntry> all;
  for (const std::string& name : names) {
    auto series = parts_.catalog.select(name, {});
    std::move(series.begin(), series.end(), std::back_inserter(all));
  }
  const std::size_t stride = all.size() / kCountedSeriesMax + 1;
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < all.size(); i += stride) {
    const auto stats = parts_.engine.range_stats(all[i].id.namespace_id,
                                                 times_before(all[i].id, step.before_ns), {});
    if (stats.ok()) counted += stats->entries;
    if (unsent_ != nullptr)
      unsent_->count_leaving(Leaving::Evicted, all[i], INT64_MIN, step.before_ns, stride);
    step.is_exact = step.is_exact && stats.ok();
  }
  step.is_exact = step.is_exact && stride == 1;
  step.readings = counted * stride;
}

void Eviction::make_room(const Drive& drive, const Stats& stats) {
  if (drive.own_bytes < drive.watermark_bytes)
    return block(drive.directory + " is full of other things than readings");
  return parts_.thinning == nullptr ? evict(drive, stats) : thin(drive, stats);
}

void Eviction::thin(const Drive& drive, const Stats& stats) {
  const std::int64_t limit = limit_ns();
  const std::uint64_t bytes = value_bytes_for(drive, stats);
  const std::int64_t spared =
      unsent_ == nullptr ? limit : std::min(limit, unsent_->waits_from_ns());
  Thinned thinned = parts_.thinning->thin_oldest(bytes, spared);
  if (thinned.readings == 0 && spared < limit) thinned = parts_.thinning->thin_oldest(bytes, limit);
  evicted_at_boot_ns_ = parts_.clock.boot_ns();
  if (thinned.readings == 0) return block(thinned.left);
  {
    const MutexLock lock(mutex_);
    status_.thinned_readings += thinned.readings;
    status_.thinned_windows += thinned.windows;
    status_.last_at_ns = parts_.clock.wall_ns();
    if (!status_.first_at_ns) status_.first_at_ns = status_.last_at_ns;
    status_.blocked.clear();
  }
  if (parts_.events.thinned) parts_.events.thinned(thinned, drive.directory);
}

void Eviction::evict(const Drive& drive, const Stats& stats) {
  const std::vector<std::string> names = namespaces();
  EvictionRequest request;
  for (const std::string& name : names) {
    const auto info = parts_.engine.find_namespace(name);
    if (!info.ok()) continue;
    request.namespaces.push_back(info->id);
    for (const catalog::TierSpace& tier : catalog::tier_spaces_of(parts_.engine, info->id))
      request.namespaces.push_back(tier.id);
  }
  request.value_bytes = value_bytes_for(drive, stats);
  const std::int64_t limit = limit_ns();
  request.limit_ns = unsent_ == nullptr ? limit : std::min(limit, unsent_->waits_from_ns());
  edgecase::Eviction plan = parts_.engine.plan_eviction(request);
  if (plan.value_bytes == 0 && request.limit_ns < limit) {
    request.limit_ns = limit;
    plan = parts_.engine.plan_eviction(request);
  }
  if (plan.value_bytes == 0)
    return block("no reading on " + drive.directory + " is older than the clock");
  EvictionStep step{.before_ns = plan.before_ns,
                    .readings = 0,
                    .is_exact = true,
                    .value_bytes = plan.value_bytes,
                    .drive = drive.directory,
                    .free_bytes = drive.free_bytes,
                    .watermark_bytes = drive.watermark_bytes};
  count_readings(names, step);
  if (parts_.events.begun) parts_.events.begun(step);
  // Before the engine knows: nobody is acknowledged a reading that it would hide.
  latest_before_ns_ = std::max(latest_before_ns_.load(), step.before_ns);
  const Status done = parts_.engine.evict(request.namespaces, step.before_ns);
  evicted_at_boot_ns_ = parts_.clock.boot_ns();
  waits_for_room_ = true;
  if (done.ok()) {
    const MutexLock lock(mutex_);
    ++status_.evictions;
    status_.readings += step.readings;
    status_.value_bytes += step.value_bytes;
    status_.last_at_ns = parts_.clock.wall_ns();
    if (!status_.first_at_ns) status_.first_at_ns = status_.last_at_ns;
    status_.blocked.clear();
  }
  if (parts_.events.done) parts_.events.done(step, done);
}

void Eviction::block(const std::string& why) {
  {
    const MutexLock lock(mutex_);
    if (status_.blocked == why) return;
    status_.blocked = why;
  }
  if (parts_.events.blocked) parts_.events.blocked(why);
}

std::vector<bool> Eviction::refused(std::span<const wire::Reading> readings) const {
  std::vector<bool> refused;
  const std::int64_t latest_ns = latest_before_ns_.load();
  if (latest_ns == INT64_MIN) return refused;
  std::map<std::string_view, std::int64_t> known;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const wire::Reading& reading = readings[i];
    if (!reading.time_ns || *reading.time_ns >= latest_ns) continue;
    const auto [at, is_new] = known.try_emplace(reading.namespace_name, INT64_MIN);
    if (is_new) {
      const auto info = parts_.engine.find_namespace(reading.namespace_name);
      if (info.ok()) at->second = parts_.engine.evicted_before_ns(info->id);
    }
    if (*reading.time_ns >= at->second) continue;
    refused.resize(readings.size());
    refused[i] = true;
  }
  return refused;
}

EvictionStatus Eviction::status() const {
  const MutexLock lock(mutex_);
  EvictionStatus status = status_;
  status.refused_readings = refused_.load();
  const std::int64_t before_ns = latest_before_ns_.load();
  if (before_ns != INT64_MIN) status.before_ns = before_ns;
  return status;
}

}  // namespace edgecase::retention
