#include "erase/fences.h"

#include <algorithm>
#include <deque>
#include <string>
#include <tuple>

#include "erase/erase_records.h"
#include "wire/big_endian.h"

namespace edgecase::erase {
namespace {

constexpr char kFenceRecord = 'F';
constexpr char kFenceVersion = 1;
constexpr std::size_t kHeadBytes = 1 + 8;

std::uint64_t take_number(ByteView& bytes) {
  const std::uint64_t number = wire::read_big_endian(bytes);
  bytes.remove_prefix(8);
  return number;
}

Bytes key_of(const Pseudonym& pseudonym) {
  return Bytes(1, kFenceRecord) + Bytes(auth::view_of(pseudonym));
}

void append_range(std::int64_t from_ns, std::int64_t to_ns, Bytes& value) {
  wire::append_big_endian(static_cast<std::uint64_t>(from_ns), value);
  wire::append_big_endian(static_cast<std::uint64_t>(to_ns), value);
}

bool ends_before(const TimeRange& range, std::int64_t time_ns) {
  return range.to_ns && *range.to_ns < time_ns;
}

using SeriesName = std::tuple<std::string_view, std::string_view, std::string_view>;

}  // namespace

Status Fences::load(ByteView key, ByteView value) {
  Pseudonym pseudonym{};
  if (key.size() != 1 + pseudonym.size() || value.size() < kHeadBytes ||
      (value.size() - kHeadBytes) % 16 != 0) {
    return corruption("the record of a fence is cut");
  }
  if (value.front() != kFenceVersion)
    return unsupported("a fence was written by a newer version of EdgeCase");
  std::copy(key.begin() + 1, key.end(), pseudonym.begin());
  value.remove_prefix(1);
  Fence fence;
  fence.erasure = take_number(value);
  while (!value.empty()) {
    const auto from_ns = static_cast<std::int64_t>(take_number(value));
    const auto to_ns = static_cast<std::int64_t>(take_number(value));
    if (from_ns < INT64_MAX) {
      fence.ranges.push_back({from_ns, to_ns});
    } else if (!fence.ranges.empty() && fence.ranges.back().to_ns == INT64_MAX) {
      fence.ranges.back().to_ns.reset();
    } else {
      fence.ranges.push_back({INT64_MAX, std::nullopt});
    }
  }
  set(pseudonym, std::move(fence));
  return ok();
}

Fences::Pass Fences::enter() {
  const MutexLock lock(gate_mutex_);
  while (is_closed_) gate_changed_.wait(gate_mutex_);
  ++inside_;
  return Pass(*this);
}

void Fences::leave() {
  const MutexLock lock(gate_mutex_);
  if (--inside_ == 0 && is_closed_) gate_changed_.notify_all();
}

Fences::Closed Fences::close() {
  const MutexLock lock(gate_mutex_);
  while (is_closed_) gate_changed_.wait(gate_mutex_);
  is_closed_ = true;
  while (inside_ != 0) gate_changed_.wait(gate_mutex_);
  return Closed(*this);
}

void Fences::open_gate() {
  const MutexLock lock(gate_mutex_);
  is_closed_ = false;
  gate_changed_.notify_all();
}

bool Fences::holds(const Pseudonym& pseudonym, std::int64_t time_ns) const {
  const auto found = fences_.find(pseudonym);
  if (found == fences_.end()) return false;
  const std::vector<TimeRange>& ranges = found->second.ranges;
  return std::any_of(ranges.begin(), ranges.end(),
                     [time_ns](const TimeRange& range) { return range.holds(time_ns); });
}

bool Fences::is_erased(std::string_view namespace_name, std::string_view device,
                       std::int64_t since_ns) const {
  const ReaderLock lock(mutex_);
  return holds(pseudonyms_.of_device(namespace_name, device), since_ns);
}

std::vector<bool> Fences::refused(std::span<const wire::Reading> readings,
                                  const catalog::Catalog* catalog) const {
  std::vector<bool> refused;
  const std::int64_t end_ns = end_ns_.load(std::memory_order_acquire);
  if (end_ns == INT64_MIN) return refused;
  struct Names {
    Pseudonym of_device, of_series;
  };
  std::map<SeriesName, Names> known;
  std::deque<std::string> renamed;  // that `known` views
  const ReaderLock lock(mutex_);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const wire::Reading& reading = readings[i];
    if (!reading.time_ns || (*reading.time_ns >= end_ns && end_ns != INT64_MAX)) continue;
    std::string_view sensor = reading.sensor;
    if (catalog != nullptr && reading.identity != nullptr) {
      std::string name = catalog->sensor_name(reading);
      if (name != sensor) sensor = renamed.emplace_back(std::move(name));
    }
    const auto [at, is_new] =
        known.try_emplace(SeriesName(reading.namespace_name, reading.device, sensor));
    Names& names = at->second;
    if (is_new) {
      names = {pseudonyms_.of_device(reading.namespace_name, reading.device),
               pseudonyms_.of_series(reading.namespace_name, reading.device, sensor)};
    }
    if (!holds(names.of_device, *reading.time_ns) && !holds(names.of_series, *reading.time_ns))
      continue;
    refused.resize(readings.size());
    refused[i] = true;
  }
  return refused;
}

Result<Fence> Fences::with(const Pseudonym& pseudonym, std::uint64_t erasure,
                           TimeRange range) const {
  Fence fence;
  {
    const ReaderLock lock(mutex_);
    if (const auto found = fences_.find(pseudonym); found != fences_.end()) fence = found->second;
  }
  fence.erasure = erasure;
  std::vector<TimeRange> apart;
  for (const TimeRange& each : fence.ranges) {
    if (ends_before(each, range.from_ns) || ends_before(range, each.from_ns)) {
      apart.push_back(each);
    } else {
      const bool has_end = range.to_ns && each.to_ns;
      range = {std::min(range.from_ns, each.from_ns),
               has_end ? std::optional(std::max(*range.to_ns, *each.to_ns)) : std::nullopt};
    }
  }
  const auto behind = std::find_if(apart.begin(), apart.end(), [&range](const TimeRange& each) {
    return range.from_ns < each.from_ns;
  });
  apart.insert(behind, range);
  if (apart.size() > kRangesPerFenceMax) {
    return limit_reached("parts of one series were erased " + std::to_string(kRangesPerFenceMax) +
                         " times already; erase from the beginning, or all of it");
  }
  fence.ranges = std::move(apart);
  return fence;
}

Bytes encode_fence(const Fence& fence) {
  Bytes value(1, kFenceVersion);
  wire::append_big_endian(fence.erasure, value);
  for (const TimeRange& range : fence.ranges) {
    // One that begins with the last instant is told by its second half alone.
    if (range.from_ns < INT64_MAX)
      append_range(range.from_ns, range.to_ns.value_or(INT64_MAX), value);
    if (!range.to_ns) append_range(INT64_MAX, INT64_MAX, value);
  }
  return value;
}

void Fences::append_put(const Pseudonym& pseudonym, const Fence& fence, WriteBatch& batch) const {
  batch.put(records_, key_of(pseudonym), encode_fence(fence));
}

void Fences::append_remove(const Pseudonym& pseudonym, WriteBatch& batch) const {
  batch.remove(records_, key_of(pseudonym));
}

std::vector<Pseudonym> Fences::giving_way(const Planned& planned) const {
  const auto is_planned = [&planned](const Pseudonym& pseudonym) {
    const auto at = std::lower_bound(
        planned.begin(), planned.end(), pseudonym,
        [](const auto& each, const Pseudonym& wanted) { return each.first < wanted; });
    return at != planned.end() && at->first == pseudonym;
  };
  const ReaderLock lock(mutex_);
  if (fences_.size() + planned.size() <= kFencesMax) return {};
  std::vector<std::pair<std::uint64_t, Pseudonym>> by_age;
  for (const auto& [pseudonym, fence] : fences_) {
    if (!is_planned(pseudonym)) by_age.emplace_back(fence.erasure, pseudonym);
  }
  const std::size_t all = by_age.size() + planned.size();
  std::vector<Pseudonym> oldest;
  if (all <= kFencesMax) return oldest;
  std::sort(by_age.begin(), by_age.end());
  by_age.resize(std::min(by_age.size(), all - kFencesMax));
  for (const auto& [erasure, pseudonym] : by_age) oldest.push_back(pseudonym);
  return oldest;
}

void Fences::set(const Pseudonym& pseudonym, Fence fence) {
  const WriterLock lock(mutex_);
  const std::int64_t end_ns =
      fence.ranges.empty() ? INT64_MIN : fence.ranges.back().to_ns.value_or(INT64_MAX);
  if (end_ns > end_ns_.load()) end_ns_.store(end_ns, std::memory_order_release);
  fences_[pseudonym] = std::move(fence);
  changes_.fetch_add(1);
}

void Fences::remove(const Pseudonym& pseudonym) {
  const WriterLock lock(mutex_);
  fences_.erase(pseudonym);  // end_ns_ stays: it may be too late, never too early
}

// Two nodes and what the allocator adds; most fences have one range.
std::uint64_t Fences::memory_bytes() const {
  constexpr std::uint64_t kBytesPerFence = 160;
  return size() * kBytesPerFence;
}

std::size_t Fences::size() const {
  const ReaderLock lock(mutex_);
  return fences_.size();
}

}  // namespace edgecase::erase
