#include "erase/fences.h"

#include <algorithm>
#include <deque>
#include <string>
#include <tuple>

#include "erase/erase_jobs.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::erase {
namespace {

constexpr char kFenceRecord = 'F';
constexpr char kFenceVersion = 3, kWithoutOwner = 2;
constexpr int kOwnerBytes = 4;
constexpr std::uint8_t kOfCopies = 1, kNoEnd = 2;
constexpr std::size_t kRangeBytes = 1 + 4 * 8;

std::uint64_t take_number(ByteView& bytes) {
  const std::uint64_t number = wire::read_big_endian(bytes);
  bytes.remove_prefix(8);
  return number;
}

std::int64_t take_time(ByteView& bytes) {
  return static_cast<std::int64_t>(take_number(bytes));
}

Bytes key_of(const Pseudonym& pseudonym) {
  return Bytes(1, kFenceRecord) + Bytes(auth::view_of(pseudonym));
}

// Behind the version.
Result<Fence> decode_version_1(ByteView value) {
  if (value.size() < 8 || (value.size() - 8) % 16 != 0)
    return corruption("the record of a fence is cut");
  Fence fence;
  FencedRange range;
  range.erasure = take_number(value);
  while (!value.empty()) {
    const std::int64_t from_ns = take_time(value), to_ns = take_time(value);
    if (from_ns == INT64_MAX && !fence.ranges.empty() &&
        fence.ranges.back().times.to_ns == INT64_MAX) {
      fence.ranges.back().times.to_ns.reset();
      continue;
    }
    range.times = {from_ns, to_ns};
    if (from_ns == INT64_MAX) range.times.to_ns.reset();
    fence.ranges.push_back(range);
  }
  return fence;
}

Result<Fence> decode_version_2(ByteView value) {
  if (value.size() % kRangeBytes != 0) return corruption("the record of a fence is cut");
  Fence fence;
  while (!value.empty()) {
    const auto flags = static_cast<std::uint8_t>(value.front());
    value.remove_prefix(1);
    if ((flags & ~(kOfCopies | kNoEnd)) != 0)
      return unsupported("a fence was written by a newer version of EdgeCase");
    FencedRange& range = fence.ranges.emplace_back();
    range.kind = (flags & kOfCopies) != 0 ? FenceKind::Copies : FenceKind::Lasting;
    range.erasure = take_number(value);
    range.since_ns = take_time(value);
    range.times.from_ns = take_time(value);
    range.times.to_ns = take_time(value);
    if ((flags & kNoEnd) != 0) range.times.to_ns.reset();
  }
  return fence;
}

bool covers(const TimeRange& outer, const TimeRange& inner) {
  return outer.from_ns <= inner.from_ns &&
         (!outer.to_ns || (inner.to_ns && *inner.to_ns <= *outer.to_ns));
}

bool ends_before(const TimeRange& range, std::int64_t time_ns) {
  return range.to_ns && *range.to_ns < time_ns;
}

bool starts_before(const FencedRange& a, const FencedRange& b) {
  return std::tuple(a.kind, a.times.from_ns, a.erasure) <
         std::tuple(b.kind, b.times.from_ns, b.erasure);
}

// Ranges of one kind that touch become one, of the later erasure. They are in order.
void join(std::vector<FencedRange>& ranges) {
  std::vector<FencedRange> apart;
  for (const FencedRange& each : ranges) {
    if (apart.empty() || apart.back().kind != each.kind ||
        ends_before(apart.back().times, each.times.from_ns)) {
      apart.push_back(each);
      continue;
    }
    FencedRange& last = apart.back();
    const bool has_end = last.times.to_ns && each.times.to_ns;
    last.times.to_ns =
        has_end ? std::optional(std::max(*last.times.to_ns, *each.times.to_ns)) : std::nullopt;
    last.since_ns = std::max(last.since_ns, each.since_ns);
    last.erasure = std::max(last.erasure, each.erasure);
  }
  ranges = std::move(apart);
}

using SeriesName = std::tuple<std::string_view, std::string_view, std::string_view>;

}  // namespace

std::uint64_t Fence::newest_erasure() const {
  std::uint64_t newest = 0;
  for (const FencedRange& each : ranges) newest = std::max(newest, each.erasure);
  return newest;
}

bool Fence::is_lasting() const {
  return std::any_of(ranges.begin(), ranges.end(),
                     [](const FencedRange& each) { return each.kind == FenceKind::Lasting; });
}

Status Fences::load(ByteView key, ByteView value) {
  Pseudonym pseudonym{};
  if (key.size() != 1 + pseudonym.size() || value.empty())
    return corruption("the record of a fence is cut");
  std::copy(key.begin() + 1, key.end(), pseudonym.begin());
  const char version = value.front();
  if (version < 1 || version > kFenceVersion)
    return unsupported("a fence was written by a newer version of EdgeCase");
  value.remove_prefix(1);
  catalog::OriginNumber owner = catalog::kNoOrigin;
  if (version > kWithoutOwner) {
    if (value.size() < kOwnerBytes) return corruption("the record of a fence is cut");
    owner = static_cast<catalog::OriginNumber>(wire::read_big_endian(value.substr(0, kOwnerBytes)));
    value.remove_prefix(kOwnerBytes);
  }
  EC_ASSIGN_OR_RETURN(Fence fence,
                      version == 1 ? decode_version_1(value) : decode_version_2(value));
  fence.owner = owner;
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

bool Fences::holds(const Pseudonym& pseudonym, std::int64_t first_ns, std::int64_t last_ns,
                   Copied copied) const {
  const auto found = fences_.find(pseudonym);
  if (found == fences_.end()) return false;
  const std::vector<FencedRange>& ranges = found->second.ranges;
  return std::any_of(ranges.begin(), ranges.end(), [&](const FencedRange& range) {
    if (!range.times.holds(first_ns, last_ns)) return false;
    return range.kind == FenceKind::Lasting ||
           (copied.is_copy && copied.as_of_ns <= range.since_ns);
  });
}

bool Fences::is_erased(std::string_view namespace_name, std::string_view device,
                       std::int64_t since_ns) const {
  const ReaderLock lock(mutex_);
  return holds(pseudonyms_.of_device(namespace_name, device), since_ns, since_ns, {true, since_ns});
}

catalog::OriginNumber Fences::owner(std::string_view namespace_name,
                                    std::string_view device) const {
  const ReaderLock lock(mutex_);
  if (fences_.empty()) return catalog::kNoOrigin;
  const auto found = fences_.find(pseudonyms_.of_device(namespace_name, device));
  return found == fences_.end() ? catalog::kNoOrigin : found->second.owner;
}

std::vector<bool> Fences::refused(std::span<const wire::Reading> readings, Copied copied,
                                  const catalog::Catalog* catalog) const {
  std::vector<bool> refused;
  const std::int64_t lasting_end_ns = lasting_end_ns_.load(std::memory_order_acquire);
  const std::int64_t copies_end_ns =
      std::max(lasting_end_ns, copies_end_ns_.load(std::memory_order_acquire));
  if (copies_end_ns == INT64_MIN) return refused;
  struct Names {
    Pseudonym of_device, of_series;
  };
  std::map<SeriesName, Names> known;
  std::deque<std::string> renamed;  // that `known` views
  const ReaderLock lock(mutex_);
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const wire::Reading& reading = readings[i];
    // When what comes again was made, nobody knows.
    const Copied how = reading.comes_again && !copied.is_copy ? Copied{.is_copy = true} : copied;
    const std::int64_t end_ns = how.is_copy ? copies_end_ns : lasting_end_ns;
    const bool is_behind = end_ns == INT64_MIN ||
                           (reading.time_ns && *reading.time_ns >= end_ns && end_ns != INT64_MAX);
    if (!reading.time_ns || is_behind) continue;
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
    const std::int64_t last_ns =
        *reading.time_ns + (reading.window == nullptr ? 0 : reading.window->every_ns - 1);
    if (!holds(names.of_device, *reading.time_ns, last_ns, how) &&
        !holds(names.of_series, *reading.time_ns, last_ns, how))
      continue;
    refused.resize(readings.size());
    refused[i] = true;
  }
  return refused;
}

Result<Fence> Fences::with(const Pseudonym& pseudonym, const FencedRange& range) const {
  Fence fence;
  {
    const ReaderLock lock(mutex_);
    if (const auto found = fences_.find(pseudonym); found != fences_.end()) fence = found->second;
  }
  std::vector<FencedRange>& ranges = fence.ranges;
  std::erase_if(ranges, [&range](const FencedRange& each) {
    return each.kind == range.kind && covers(range.times, each.times);
  });
  ranges.insert(std::upper_bound(ranges.begin(), ranges.end(), range, starts_before), range);
  if (ranges.size() > kRangesPerFenceMax) join(ranges);
  if (ranges.size() > kRangesPerFenceMax) {
    return limit_reached("parts of one series were erased " + std::to_string(kRangesPerFenceMax) +
                         " times already; erase from the beginning, or all of it");
  }
  return fence;
}

Bytes encode_fence(const Fence& fence) {
  const bool has_owner = fence.owner != catalog::kNoOrigin;
  Bytes value(1, has_owner ? kFenceVersion : kWithoutOwner);
  if (has_owner) wire::append_big_endian(fence.owner, value, kOwnerBytes);
  for (const FencedRange& range : fence.ranges) {
    const bool is_of_copies = range.kind == FenceKind::Copies;
    value += static_cast<char>((is_of_copies ? kOfCopies : 0) | (range.times.to_ns ? 0 : kNoEnd));
    wire::append_big_endian(range.erasure, value);
    for (const std::int64_t time_ns :
         {range.since_ns, range.times.from_ns, range.times.to_ns.value_or(INT64_MAX)})
      wire::append_big_endian(static_cast<std::uint64_t>(time_ns), value);
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
  std::vector<std::tuple<bool, std::uint64_t, Pseudonym>> by_age;
  for (const auto& [pseudonym, fence] : fences_) {
    if (!is_planned(pseudonym))
      by_age.emplace_back(fence.is_lasting(), fence.newest_erasure(), pseudonym);
  }
  const std::size_t all = by_age.size() + planned.size();
  std::vector<Pseudonym> oldest;
  if (all <= kFencesMax) return oldest;
  std::sort(by_age.begin(), by_age.end());
  by_age.resize(std::min(by_age.size(), all - kFencesMax));
  for (const auto& [is_lasting, erasure, pseudonym] : by_age) oldest.push_back(pseudonym);
  return oldest;
}

Fences::Listing Fences::list(std::size_t limit) const {
  const auto is_before = [](const Listed& a, const Listed& b) {
    if (a.range.erasure != b.range.erasure) return a.range.erasure > b.range.erasure;
    return std::tie(a.pseudonym, a.range.times.from_ns) <
           std::tie(b.pseudonym, b.range.times.from_ns);
  };
  Listing listing;
  std::vector<Listed>& newest = listing.ranges;  // a heap: its last one in front
  const ReaderLock lock(mutex_);
  for (const auto& [pseudonym, fence] : fences_) {
    for (const FencedRange& range : fence.ranges) {
      newest.push_back({pseudonym, range});
      std::push_heap(newest.begin(), newest.end(), is_before);
      if (newest.size() <= limit) continue;
      std::pop_heap(newest.begin(), newest.end(), is_before);
      newest.pop_back();
      ++listing.more;
    }
  }
  std::sort_heap(newest.begin(), newest.end(), is_before);
  return listing;
}

Fences::Planned Fences::without(std::uint64_t erasure) const {
  Planned planned;
  const ReaderLock lock(mutex_);
  for (const auto& [pseudonym, fence] : fences_) {
    Fence rest = fence;
    const std::size_t lifted = std::erase_if(
        rest.ranges, [erasure](const FencedRange& each) { return each.erasure == erasure; });
    if (lifted > 0) planned.emplace_back(pseudonym, std::move(rest));
  }
  return planned;
}

void Fences::set(const Pseudonym& pseudonym, Fence fence) {
  const WriterLock lock(mutex_);
  for (const FencedRange& range : fence.ranges) {
    const std::int64_t end_ns = range.times.to_ns.value_or(INT64_MAX);
    std::atomic<std::int64_t>& last =
        range.kind == FenceKind::Lasting ? lasting_end_ns_ : copies_end_ns_;
    if (end_ns > last.load()) last.store(end_ns, std::memory_order_release);
  }
  fences_[pseudonym] = std::move(fence);
  changes_.fetch_add(1);
}

void Fences::remove(const Pseudonym& pseudonym) {
  const WriterLock lock(mutex_);
  fences_.erase(pseudonym);  // the ends stay: they may be too late, never too early
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
