#include "query/measurement_memo.h"

#include <algorithm>
#include <functional>

namespace edgecase::query {
namespace {

std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

}  // namespace

std::uint32_t tag_hash(std::string_view value) {
  return static_cast<std::uint32_t>(mixed(std::hash<std::string_view>()(value)));
}

Measurement::Of Measurement::of(const catalog::Catalog& catalog, const std::string& namespace_name,
                                const std::string& name,
                                std::span<const catalog::SeriesRow> readable) {
  Of of{namespace_name, name, catalog.generation(), readable.size(), 0};
  for (const catalog::SeriesRow row : readable) of.series_hash += mixed(row + 0x9e3779b97f4a7c15);
  return of;
}

Measurement::Hashes Measurement::hashes(const std::string& field, const std::string& tag) const {
  const MutexLock lock(mutex_);
  const auto found = hashes_.find({field, tag});
  return found == hashes_.end() ? nullptr : found->second;
}

void Measurement::keep_hashes(const std::string& field, const std::string& tag,
                              Hashes hashes) const {
  const MutexLock lock(mutex_);
  if (hashes_.size() >= kHashedMax) hashes_.clear();
  hashes_[{field, tag}] = std::move(hashes);
}

std::shared_ptr<const Measurement> MeasurementMemo::find(const Measurement::Of& of) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each->of_ == of; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front();
}

// With as many hashes as it may come to have.
std::size_t MeasurementMemo::bytes_of(const Measurement& measurement) {
  std::size_t series = 0, most = 0;
  for (const auto& [field, rows] : measurement.fields) {
    series += rows.size();
    most = std::max(most, rows.size());
  }
  return sizeof(catalog::SeriesRow) * (series + Measurement::kHashedMax * most) +
         128 * (measurement.fields.size() + measurement.tags.size());
}

void MeasurementMemo::keep(std::shared_ptr<const Measurement> measurement) {
  std::size_t bytes = bytes_of(*measurement);
  if (bytes > kBytesMax) return;
  const MutexLock lock(mutex_);
  // What was found before, of series that are others by now, is of no more use.
  kept_.remove_if([&](const auto& each) {
    return each->of_ == measurement->of_ || each->of_.generation != measurement->of_.generation;
  });
  kept_.push_front(std::move(measurement));
  std::size_t count = 0;
  for (auto at = kept_.begin(); at != kept_.end();) {
    if (count++ > 0) bytes += bytes_of(**at);
    at = count > kMeasurementsMax || bytes > kBytesMax ? kept_.erase(at) : std::next(at);
  }
}

}  // namespace edgecase::query
