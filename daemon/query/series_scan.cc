#include "query/series_scan.h"

#include <string>
#include <utility>

namespace edgecase::query {

KeyRange key_range(const catalog::SeriesId& series, const TimeRange& range) {
  KeyRange keys;
  keys.lower = wire::make_reading_key({series.device, series.sensor, range.from_ns});
  if (range.to_ns.has_value()) {
    keys.upper = wire::make_reading_key({series.device, series.sensor, *range.to_ns});
    return keys;
  }
  // No time is past the last one: the bound is the series prefix that comes next.
  keys.upper = keys.lower.substr(0, wire::kSeriesPrefixBytes);
  while (!keys.upper.empty() && keys.upper.back() == '\xff') keys.upper.pop_back();
  if (!keys.upper.empty()) ++keys.upper.back();
  return keys;
}

SeriesScan::SeriesScan(Engine& engine, std::vector<catalog::SeriesEntry> series,
                       const TimeRange& range, const ReadOptions& options)
    : engine_(engine), series_(std::move(series)), range_(range), options_(options) {}

Result<bool> SeriesScan::next_series() {
  iterator_.reset();
  if (next_ == series_.size()) return false;
  current_ = next_++;
  const catalog::SeriesId& id = series_[current_].id;
  EC_ASSIGN_OR_RETURN(iterator_, engine_.scan(id.namespace_id, key_range(id, range_), options_));
  return true;
}

void SeriesScan::close() {
  iterator_.reset();
  options_.snapshot.reset();
  next_ = series_.size();
}

Status SeriesScan::value(wire::Value& value) {
  const ByteView bytes = iterator_->value();
  if (!iterator_->valid()) return iterator_->status();
  if (!wire::decode_value(bytes, value)) return bad_value();
  return ok();
}

Status SeriesScan::bad_value() const {
  return corruption("series " + series().namespace_name + " " + series().device + "/" +
                    series().sensor + " at time " + std::to_string(time_ns()) +
                    ": the stored value is none");
}

}  // namespace edgecase::query
