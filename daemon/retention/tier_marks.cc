#include "retention/retention_service.h"

#include <algorithm>
#include <utility>

#include "retention/retention_records.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::retention {
namespace {

constexpr char kMarkVersion = 1;
constexpr std::size_t kMarkHeadBytes = 1 + 2 * sizeof(std::int64_t);

}  // namespace

Result<TierMark> TierMarks::decode(ByteView value) {
  const Status cut = corruption("a record of a series that is thinned is cut");
  if (value.empty()) return cut;
  if (value.front() != kMarkVersion)
    return unsupported("tiers were made by a newer version of EdgeCase");
  const std::size_t rest = value.size() < kMarkHeadBytes ? 1 : value.size() - kMarkHeadBytes;
  if (rest % sizeof(std::int64_t) != 0 || rest / sizeof(std::int64_t) > wire::kTiersMax) return cut;
  TierMark mark;
  mark.before_ns = static_cast<std::int64_t>(wire::read_big_endian(value.substr(1, 8)));
  mark.erased_ns = static_cast<std::int64_t>(wire::read_big_endian(value.substr(9, 8)));
  for (std::size_t at = kMarkHeadBytes; at < value.size(); at += sizeof(std::int64_t))
    mark.every_ns.push_back(static_cast<std::int64_t>(wire::read_big_endian(value.substr(at, 8))));
  return mark;
}

Status TierMarks::load(ByteView key, ByteView value) {
  if (key.size() != 1 + kTopicKeyBytes)
    return corruption("a record of a series that is thinned is cut");
  EC_ASSIGN_OR_RETURN(TierMark mark, decode(value));
  const auto number = [](ByteView bytes) {
    return static_cast<std::uint32_t>(wire::read_big_endian(bytes.substr(0, 4)));
  };
  set({number(key.substr(1)), number(key.substr(5)), number(key.substr(9))}, std::move(mark));
  return ok();
}

Result<TierMark> TierMarks::find_in(Engine& engine, NamespaceId records,
                                    const catalog::SeriesId& series,
                                    const std::shared_ptr<const Snapshot>& snapshot) {
  ReadOptions options;
  options.fill_cache = false;
  options.snapshot = snapshot;
  const auto value = engine.get(records, kRecord + topic_key(series), options);
  if (value.status().code() == StatusCode::NotFound) return TierMark();
  EC_TRY(value.status());
  return decode(*value);
}

std::int64_t TierMarks::reach_ns(const catalog::SeriesId& series) const {
  const Key key = key_of(series);
  const ReaderLock lock(mutex_);
  const auto mark = marks_.find(key);
  const auto announced = announced_.find(key);
  return std::max(mark == marks_.end() ? INT64_MIN : mark->second.before_ns,
                  announced == announced_.end() ? INT64_MIN : announced->second);
}

TierMark TierMarks::find(const catalog::SeriesId& series) const {
  const ReaderLock lock(mutex_);
  const auto found = marks_.find(key_of(series));
  if (found == marks_.end()) return {};
  return {found->second.before_ns, found->second.erased_ns, lists_[found->second.tiers]};
}

std::vector<catalog::SeriesId> TierMarks::waiting(std::size_t most) const {
  std::vector<catalog::SeriesId> waiting;
  const ReaderLock lock(mutex_);
  for (const auto& [key, entry] : marks_) {
    if (waiting.size() == most) break;
    if (entry.erased_ns < entry.before_ns)
      waiting.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  return waiting;
}

std::size_t TierMarks::size() const {
  const ReaderLock lock(mutex_);
  return marks_.size();
}

void TierMarks::append(NamespaceId records, const catalog::SeriesId& series, const TierMark& mark,
                       WriteBatch& batch) {
  const Bytes key = kRecord + topic_key(series);
  // A series without tiers has no mark: whatever comes is stored as it came.
  if (mark.every_ns.empty()) return batch.remove(records, key);
  Bytes value(1, kMarkVersion);
  wire::append_big_endian(static_cast<std::uint64_t>(mark.before_ns), value);
  wire::append_big_endian(static_cast<std::uint64_t>(mark.erased_ns), value);
  for (const std::int64_t every_ns : mark.every_ns)
    wire::append_big_endian(static_cast<std::uint64_t>(every_ns), value);
  batch.put(records, key, value);
}

void TierMarks::set(const catalog::SeriesId& series, TierMark mark) {
  const WriterLock lock(mutex_);
  if (mark.every_ns.empty()) {
    marks_.erase(key_of(series));
    return;
  }
  auto list = std::find(lists_.begin(), lists_.end(), mark.every_ns);
  if (list == lists_.end()) list = lists_.insert(lists_.end(), std::move(mark.every_ns));
  marks_[key_of(series)] = {mark.before_ns, mark.erased_ns,
                            static_cast<std::uint32_t>(list - lists_.begin())};
  raise_latest(mark.before_ns);
}

void TierMarks::raise_latest(std::int64_t before_ns) {
  latest_ns_.store(std::max(latest_ns_.load(), before_ns));
}

void TierMarks::announce(const catalog::SeriesId& series, std::int64_t before_ns) {
  const WriterLock lock(mutex_);
  announced_[key_of(series)] = before_ns;
  raise_latest(before_ns);
}

void TierMarks::withdraw_all() {
  const WriterLock lock(mutex_);
  announced_.clear();
}

void TierMarks::note_copied(std::int64_t now_ns) {
  const std::int64_t last_ns = last_copy_ns_.exchange(now_ns);
  if (last_ns == INT64_MIN || now_ns >= last_ns + kCopyRestNs) first_copy_ns_.store(now_ns);
}

bool TierMarks::takes_copies(std::int64_t now_ns) const {
  const std::int64_t first_ns = first_copy_ns_.load(), last_ns = last_copy_ns_.load();
  return first_ns != INT64_MIN && now_ns < last_ns + kCopyRestNs &&
         now_ns < first_ns + kCopiesMaxNs;
}

std::vector<bool> TierMarks::refused(std::span<const wire::Reading> readings,
                                     const catalog::Catalog& catalog) const {
  std::vector<bool> refused;
  const std::int64_t latest_ns = latest_ns_.load();
  if (latest_ns == INT64_MIN) return refused;
  std::vector<const wire::Reading*> old;
  for (const wire::Reading& reading : readings) {
    if (reading.time_ns && *reading.time_ns < latest_ns) old.push_back(&reading);
  }
  if (old.empty()) return refused;
  std::vector<catalog::SeriesId> ids;
  catalog.find_ids(old, ids);
  const ReaderLock lock(mutex_);
  for (std::size_t i = 0; i < old.size(); ++i) {
    const Key key = key_of(ids[i]);
    const auto mark = marks_.find(key);
    const auto announced = announced_.find(key);
    const std::int64_t before_ns =
        std::max(mark == marks_.end() ? INT64_MIN : mark->second.before_ns,
                 announced == announced_.end() ? INT64_MIN : announced->second);
    if (*old[i]->time_ns >= before_ns) continue;
    refused.resize(readings.size());
    refused[static_cast<std::size_t>(old[i] - readings.data())] = true;
  }
  return refused;
}

Status TierMarks::plan_erasure(NamespaceId records, const catalog::Erased& erased,
                               const catalog::SpanTaker& take) const {
  for (const catalog::DeviceEntry& device : erased.devices) {
    if (device.id == 0) continue;
    Bytes prefix = kRecord + topic_key({device.namespace_id, device.id, 0});
    prefix.resize(prefix.size() - sizeof(std::uint32_t));  // without the sensor
    EC_TRY(take(catalog::span_of_prefix(records, prefix)));
  }
  for (const catalog::SeriesEntry& series : erased.series)
    EC_TRY(take(catalog::span_of_prefix(records, kRecord + topic_key(series.id))));
  return ok();
}

void TierMarks::forget(const catalog::Erased& erased) {
  const WriterLock lock(mutex_);
  for (const catalog::DeviceEntry& device : erased.devices) {
    if (device.id == 0) continue;
    marks_.erase(marks_.lower_bound({device.namespace_id, device.id, 0}),
                 marks_.upper_bound({device.namespace_id, device.id, UINT32_MAX}));
  }
  for (const catalog::SeriesEntry& series : erased.series) marks_.erase(key_of(series.id));
}

std::uint64_t TierMarks::memory_bytes() const {
  constexpr std::uint64_t kNodeBytes = 80;  // of a map
  const ReaderLock lock(mutex_);
  return (marks_.size() + announced_.size()) * kNodeBytes;
}

}  // namespace edgecase::retention
