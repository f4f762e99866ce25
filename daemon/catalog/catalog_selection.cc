// MemoryCatalog's lookups: series by their names, and by selectors in the order of their names.
#include <algorithm>
#include <utility>

#include "catalog/memory_catalog.h"
#include "wire/names.h"

namespace edgecase::catalog {

Status Catalog::each(std::string_view namespace_name, const wire::Selector& selector,
                     const std::function<Status(const SeriesEntry&)>& take) const {
  for (const SeriesRow row : select_rows(namespace_name, selector)) {
    if (const auto entry = series_at(row); entry.ok()) EC_TRY(take(*entry));
  }
  return ok();
}

Result<SeriesEntry> MemoryCatalog::find(std::string_view namespace_name, std::string_view device,
                                        std::string_view sensor) const {
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(namespace_name);
  if (namespace_row == kNoRow && namespace_name != wire::kDefaultNamespace)
    return not_found("no namespace " + std::string(namespace_name));
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, device);
  if (device_row == kNoRow || !devices_[device_row].durable) {
    return not_found("no device " + std::string(device) + " in namespace " +
                     std::string(namespace_name));
  }
  const std::uint32_t series_row = find_series_row(device_row, sensor);
  if (series_row == kNoRow || !series_[series_row].durable) {
    return not_found("no sensor " + std::string(sensor) + " of device " + std::string(device) +
                     " in namespace " + std::string(namespace_name));
  }
  return entry_of(series_row);
}

std::vector<SeriesEntry> MemoryCatalog::select(std::string_view namespace_name,
                                               const wire::Selector& selector) const {
  std::vector<SeriesEntry> entries;
  for (const SeriesRow row : select_rows(namespace_name, selector)) {
    if (auto entry = series_at(row); entry.ok()) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::vector<SeriesRow> MemoryCatalog::select_rows(std::string_view namespace_name,
                                                  const wire::Selector& selector) const {
  std::vector<SeriesRow> rows;
  const ReaderLock lock(mutex_);
  if (!namespace_name.empty() && wire::is_literal(selector.device)) {
    const std::uint32_t namespace_row = find_namespace_row(namespace_name);
    if (namespace_row == kNoRow) return rows;
    const std::uint32_t device_row =
        find_device_row(namespace_row, wire::unescape_name(selector.device));
    if (device_row != kNoRow) append_series_of(device_row, selector.sensor, rows);
    return rows;
  }
  std::vector<const NamespaceRow*> owners;
  for (const NamespaceRow& owner : namespaces_) {
    const bool in_scope = namespace_name.empty()
                              ? !owner.name.empty() && !owner.name.starts_with('_')
                              : owner.name == namespace_name;
    if (in_scope) owners.push_back(&owner);
  }
  std::sort(owners.begin(), owners.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  std::vector<std::uint32_t> devices;
  for (const NamespaceRow* owner : owners) {
    devices.clear();
    for (std::uint32_t row = owner->last_device; row != kNoRow; row = devices_[row].before) {
      if (wire::glob_matches(selector.device, devices_[row].name)) devices.push_back(row);
    }
    std::sort(devices.begin(), devices.end(),
              [this](std::uint32_t a, std::uint32_t b)
                  EC_REQUIRES_SHARED(mutex_) { return devices_[a].name < devices_[b].name; });
    for (const std::uint32_t row : devices) append_series_of(row, selector.sensor, rows);
  }
  return rows;
}

// In the order of their names.
void MemoryCatalog::append_series_of(std::uint32_t device_row, std::string_view sensor_glob,
                                     std::vector<SeriesRow>& rows) const {
  if (wire::is_literal(sensor_glob)) {
    const std::uint32_t row = find_series_row(device_row, wire::unescape_name(sensor_glob));
    if (row != kNoRow && series_[row].durable) rows.push_back(row);
    return;
  }
  const auto before = static_cast<std::ptrdiff_t>(rows.size());
  std::string name;
  for (std::uint32_t row = devices_[device_row].last_series; row != kNoRow;
       row = series_[row].before) {
    if (!series_[row].durable) continue;
    sensor_names_.read(series_[row].name, name);
    if (wire::glob_matches(sensor_glob, name)) rows.push_back(row);
  }
  std::sort(rows.begin() + before, rows.end(),
            [this](std::uint32_t a, std::uint32_t b) EC_REQUIRES_SHARED(mutex_) {
              return sensor_names_.is_before(series_[a].name, series_[b].name);
            });
}

SeriesEntry MemoryCatalog::entry_of(std::uint32_t series_row) const {
  const SensorRow& series = series_[series_row];
  const DeviceRow& device = devices_[series.device_row];
  const bool is_of_names =
      series.identity == IdentityTable::kUnknown || series.identity == IdentityTable::kOfNames;
  return {namespaces_[device.namespace_row].name, std::string(device.name), name_of(series),
          id_of(series), is_of_names ? Bytes() : identity_bytes_of(series)};
}

Result<SeriesEntry> MemoryCatalog::series_at(SeriesRow row) const {
  const ReaderLock lock(mutex_);
  if (row >= series_.size() || !series_[row].durable) return not_found("the series is gone");
  return entry_of(row);
}

bool MemoryCatalog::read_names(SeriesRow row, std::string& namespace_name, std::string& device,
                               std::string& sensor) const {
  const ReaderLock lock(mutex_);
  if (row >= series_.size() || !series_[row].durable) return false;
  const SensorRow& series = series_[row];
  const DeviceRow& owner = devices_[series.device_row];
  namespace_name = namespaces_[owner.namespace_row].name;
  device = owner.name;
  sensor_names_.read(series.name, sensor);
  return true;
}

}  // namespace edgecase::catalog
