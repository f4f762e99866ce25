#include "query/listings.h"

#include <algorithm>

#include "query/cursors.h"
#include "query/series_scan.h"

namespace edgecase::query {
namespace {

double rate_of(std::uint64_t steps, std::int64_t first_ns, std::int64_t last_ns) {
  // As doubles: the distance may be more than an int64 holds.
  const double seconds = (static_cast<double>(last_ns) - static_cast<double>(first_ns)) / 1e9;
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

Result<SeriesInfo> describe(Engine& engine, catalog::SeriesEntry entry,
                            const ReadOptions& options) {
  SeriesInfo info;
  info.namespace_name = std::move(entry.namespace_name);
  info.device = std::move(entry.device);
  info.sensor = std::move(entry.sensor);
  const KeyRange keys = key_range(entry.id, {kFirstTime, std::nullopt});
  EC_ASSIGN_OR_RETURN(const RangeStats stats,
                      engine.range_stats(entry.id.namespace_id, keys, options));
  info.count = stats.entries;
  info.stored_bytes = stats.stored_bytes;
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    ReadOptions one_way = options;
    one_way.direction = direction;
    one_way.large_value_bytes = kLargeTextBytes;
    EC_ASSIGN_OR_RETURN(const auto iterator, engine.scan(entry.id.namespace_id, keys, one_way));
    EC_TRY(iterator->status());
    if (!iterator->valid()) continue;
    const std::int64_t time_ns = wire::time_of_reading_key(iterator->key().data());
    (direction == Direction::Forward ? info.first_ns : info.last_ns) = time_ns;
  }
  if (info.count > 0 && info.first_ns.has_value() && info.last_ns.has_value()) {
    info.readings_per_second = rate_of(info.count - 1, *info.first_ns, *info.last_ns);
  }
  return info;
}

void include(const SeriesInfo& series, DeviceInfo& device) {
  ++device.series;
  device.count += series.count;
  device.stored_bytes += series.stored_bytes;
  device.readings_per_second += series.readings_per_second;
  if (series.first_ns)
    device.first_ns = std::min(device.first_ns.value_or(*series.first_ns), *series.first_ns);
  if (series.last_ns)
    device.last_ns = std::max(device.last_ns.value_or(*series.last_ns), *series.last_ns);
}

}  // namespace

SeriesListing::SeriesListing(Engine& engine, const catalog::Catalog& catalog,
                             std::vector<catalog::SeriesRow> rows,
                             std::shared_ptr<const Snapshot> moment)
    : engine_(engine), catalog_(catalog), rows_(std::move(rows)), is_of_moment_(moment != nullptr) {
  options_.snapshot = is_of_moment_ ? std::move(moment) : engine.snapshot();
}

Result<bool> SeriesListing::next(SeriesInfo& info) {
  if (options_.snapshot == nullptr) options_.snapshot = engine_.snapshot();
  while (next_ < rows_.size()) {
    auto entry = catalog_.series_at(rows_[next_++]);
    if (!entry.ok()) continue;
    EC_ASSIGN_OR_RETURN(info, describe(engine_, *std::move(entry), options_));
    if (!is_of_moment_ || info.count > 0) return true;
  }
  options_.snapshot.reset();
  return false;
}

void SeriesListing::let_go() {
  if (!is_of_moment_ && options_.snapshot != nullptr && options_.snapshot->keeps_memory() &&
      engine_.is_short_of_memory())
    options_.snapshot.reset();
}

Result<bool> DeviceListing::next(DeviceInfo& info) {
  SeriesInfo series;
  if (following_) {
    series = *std::exchange(following_, std::nullopt);
  } else {
    EC_ASSIGN_OR_RETURN(const bool more, series_.next(series));
    if (!more) return false;
  }
  info = {};
  info.namespace_name = series.namespace_name;
  info.device = series.device;
  include(series, info);
  while (true) {
    EC_ASSIGN_OR_RETURN(const bool more, series_.next(series));
    if (!more) return true;
    if (series.namespace_name != info.namespace_name || series.device != info.device) {
      following_ = std::move(series);
      return true;
    }
    include(series, info);
  }
}

}  // namespace edgecase::query
