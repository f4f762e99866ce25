#include "forward/series_names.h"

#include <algorithm>

namespace edgecase::forward {

bool SeriesNames::wants(const std::string& namespace_name) const {
  return std::any_of(selections_.begin(), selections_.end(),
                     [&namespace_name](const config::ForwardSelection& each) {
                       return each.namespace_name == "*" || each.namespace_name == namespace_name;
                     });
}

bool SeriesNames::is_wanted(const catalog::SeriesEntry& entry) const {
  return std::any_of(
      selections_.begin(), selections_.end(), [&entry](const config::ForwardSelection& each) {
        return (each.namespace_name == "*" || each.namespace_name == entry.namespace_name) &&
               each.selector.matches(entry.device, entry.sensor);
      });
}

const SeriesNames::Series* SeriesNames::find(const catalog::SeriesId& id) {
  if (generation_ != catalog_.generation() ||
      (rules_ != nullptr && rules_generation_ != rules_->generation())) {
    forget();
  }
  auto found = series_.find(id);
  if (found == series_.end()) {
    if (!load_device({id.namespace_id, id.device})) return nullptr;
    found = series_.find(id);
  }
  return found == series_.end() ? nullptr : &found->second;
}

void SeriesNames::forget() {
  generation_ = catalog_.generation();
  if (rules_ != nullptr) rules_generation_ = rules_->generation();
  series_.clear();
  rows_seen_ = 0;
}

// Devices come in rows: a new one is behind those that were seen, any other is looked for from the
// beginning.
bool SeriesNames::load_device(const DeviceKey& wanted) {
  const std::uint32_t rows = catalog_.device_rows();
  const auto is_it = [&](std::uint32_t row) {
    const auto device = catalog_.device_at(row);
    if (!device.ok() || DeviceKey(device->namespace_id, device->id) != wanted) return false;
    remember(*device);
    return true;
  };
  const std::uint32_t seen = std::min(rows_seen_, rows);
  rows_seen_ = rows;
  for (std::uint32_t row = seen; row < rows; ++row)
    if (is_it(row)) return true;
  for (std::uint32_t row = 0; row < seen; ++row)
    if (is_it(row)) return true;
  return false;
}

void SeriesNames::remember(const catalog::DeviceEntry& device) {
  const wire::Selector all{wire::escape_name(device.device), "*"};
  std::vector<catalog::SeriesEntry> entries = catalog_.select(device.namespace_name, all);
  if (series_.size() + entries.size() > kSeriesMax) series_.clear();
  for (catalog::SeriesEntry& entry : entries) {
    const catalog::SeriesId id = entry.id;
    series_.insert_or_assign(id, series_of(std::move(entry)));
  }
}

SeriesNames::Series SeriesNames::series_of(catalog::SeriesEntry entry) const {
  Series series;
  series.is_wanted = is_wanted(entry);
  if (rules_ != nullptr && series.is_wanted) {
    const wire::Keeping keeping = rules_->keeping(entry);
    if (keeping.raw_ns != kRetentionForever) series.keeping = wire::keeping_text(keeping);
  }
  series.entry = pseudonyms_.of(std::move(entry));
  return series;
}

}  // namespace edgecase::forward
