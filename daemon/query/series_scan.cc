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

SeriesScan::SeriesScan(Engine& engine, const catalog::Catalog& catalog,
                       std::vector<catalog::SeriesRow> series, const TimeRange& range,
                       const ReadOptions& options)
    : engine_(engine),
      catalog_(catalog),
      series_(std::move(series)),
      range_(range),
      options_(options),
      is_of_moment_(options.snapshot != nullptr) {
  if (!is_of_moment_) options_.snapshot = engine_.snapshot();
}

bool SeriesScan::let_go() {
  if (is_of_moment_ || options_.snapshot == nullptr || !options_.snapshot->keeps_memory() ||
      !engine_.is_short_of_memory())
    return false;
  if (valid()) resting_at_ = iterator_->key();
  iterator_.reset();
  options_.snapshot.reset();
  return true;
}

Result<bool> SeriesScan::wake() {
  if (resting_at_.empty()) return true;
  const Bytes key = std::exchange(resting_at_, {});
  const catalog::SeriesId& id = current_.id;
  options_.snapshot = engine_.snapshot();
  EC_ASSIGN_OR_RETURN(iterator_, engine_.scan(id.namespace_id, key_range(id, range_), options_));
  iterator_->seek(key);
  EC_TRY(iterator_->status());
  return iterator_->valid() && iterator_->key() == ByteView(key);
}

Result<bool> SeriesScan::next_series() {
  static_cast<void>(let_go());
  resting_at_.clear();
  iterator_.reset();
  if (options_.patience != nullptr) EC_TRY(options_.patience->go_on());
  while (true) {
    if (next_ == series_.size()) return false;
    auto entry = catalog_.series_at(series_[next_++]);
    if (!entry.ok()) continue;
    current_ = *std::move(entry);
    break;
  }
  if (options_.snapshot == nullptr) options_.snapshot = engine_.snapshot();
  const catalog::SeriesId& id = current_.id;
  EC_ASSIGN_OR_RETURN(iterator_, engine_.scan(id.namespace_id, key_range(id, range_), options_));
  return true;
}

void SeriesScan::close() {
  resting_at_.clear();
  iterator_.reset();
  options_.snapshot.reset();
  next_ = series_.size();
}

Status SeriesScan::value(wire::Value& value) {
  const ByteView bytes = iterator_->value();
  if (!iterator_->valid()) return iterator_->status();
  // No stored value is empty.
  is_large_ = bytes.empty();
  if (is_large_) {
    value = wire::Value::of_text({});
    return ok();
  }
  if (!wire::decode_value(bytes, value)) return bad_value();
  return ok();
}

Result<std::unique_ptr<LargeText>> SeriesScan::large_text() {
  EC_ASSIGN_OR_RETURN(std::unique_ptr<LargeValue> large, iterator_->large_value());
  if (large == nullptr) return bad_value();
  auto text = LargeText::open(std::move(large), [this]() -> Result<std::unique_ptr<LargeValue>> {
    EC_ASSIGN_OR_RETURN(const bool is_there, wake());
    if (!is_there) return not_found("a value was deleted while it was read");
    return iterator_->large_value();
  });
  if (!text.ok() && text.status().code() == StatusCode::Corruption) return bad_value();
  return text;
}

Status SeriesScan::bad_value() const {
  return corruption("series " + series().namespace_name + " " + series().device + "/" +
                    series().sensor + " at time " + std::to_string(time_ns()) +
                    ": the stored value is none");
}

}  // namespace edgecase::query
