// The catalog's end of an erasure: records that go, numbers that stay used.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"

namespace edgecase::catalog {

std::vector<DeviceEntry> Catalog::devices(std::string_view namespace_name,
                                          std::string_view device_glob) const {
  std::vector<DeviceEntry> entries;
  for (const std::uint32_t row : select_device_rows(namespace_name, device_glob)) {
    auto entry = device_at(row);
    if (entry.ok()) entries.push_back(std::move(entry).value());
  }
  return entries;
}

std::vector<std::uint32_t> Catalog::select_device_rows(std::string_view namespace_name,
                                                       std::string_view device_glob) const {
  std::vector<std::uint32_t> rows;
  const ReaderLock lock(mutex_);
  if (!namespace_name.empty() && wire::is_literal(device_glob)) {
    const std::uint32_t namespace_row = find_namespace_row(namespace_name);
    if (namespace_row == kNoRow) return rows;
    const std::uint32_t found = find_device_row(namespace_row, wire::unescape_name(device_glob));
    if (found != kNoRow && devices_[found].durable) rows.push_back(found);
    return rows;
  }
  for (const NamespaceRow& owner : namespaces_) {
    const bool in_scope = namespace_name.empty()
                              ? !owner.name.empty() && !owner.name.starts_with('_')
                              : owner.name == namespace_name;
    if (!in_scope) continue;
    for (std::uint32_t at = owner.last_device; at != kNoRow; at = devices_[at].before) {
      if (devices_[at].durable && wire::glob_matches(device_glob, devices_[at].name))
        rows.push_back(at);
    }
  }
  std::sort(rows.begin(), rows.end(),
            [this](std::uint32_t a, std::uint32_t b) EC_REQUIRES_SHARED(mutex_) {
              const DeviceRow &one = devices_[a], &other = devices_[b];
              return std::tie(namespaces_[one.namespace_row].name, one.name) <
                     std::tie(namespaces_[other.namespace_row].name, other.name);
            });
  return rows;
}

std::uint32_t Catalog::device_rows() const {
  const ReaderLock lock(mutex_);
  return static_cast<std::uint32_t>(devices_.size());
}

Result<DeviceEntry> Catalog::device_at(std::uint32_t row) const {
  const ReaderLock lock(mutex_);
  if (row >= devices_.size()) return not_found("no device has this row");
  const DeviceRow& device = devices_[row];
  const NamespaceRow& owner = namespaces_[device.namespace_row];
  if (device.name.empty() || owner.name.empty()) return not_found("the device is gone");
  return DeviceEntry{owner.name, std::string(device.name), owner.id, device.id, device.origin};
}

Status Catalog::plan_erasure(const Erased& erased, const SpanTaker& take, WriteBatch& batch) const {
  std::set<NamespaceId> marked;
  for (const RecordKind kind : {RecordKind::Device, RecordKind::Sensor}) {
    for (const DeviceEntry& device : erased.devices) {
      if (device.id == 0) continue;
      marked.insert(device.namespace_id);
      // Keys of sensors begin like that of their device.
      Bytes key = encode_record_key({RecordKind::Device, device.namespace_id, device.id, 0});
      key.front() = static_cast<char>(kind);
      EC_TRY(take(span_of_prefix(catalog_namespace_, key)));
    }
  }
  for (const SeriesEntry& series : erased.series) {
    const RecordKey key{RecordKind::Sensor, series.id.namespace_id, series.id.device,
                        series.id.sensor};
    EC_TRY(take(span_of_prefix(catalog_namespace_, encode_record_key(key))));
  }
  const ReaderLock lock(mutex_);
  if (!marked.empty()) {
    Bytes next;
    for (const NamespaceRow& row : namespaces_) {
      if (row.name.empty() || (!row.is_marked && !marked.contains(row.id))) continue;
      append_id(row.id, next);
      append_id(row.next_device, next);
    }
    Bytes layout =
        encode_record(FieldTag::LayoutVersion, Bytes(1, static_cast<char>(kLayoutVersion)));
    append_record_field(FieldTag::NextDevices, next, layout);
    batch.put(catalog_namespace_, encode_record_key({}), layout);
  }
  std::set<std::uint32_t> rewritten;
  for (const SeriesEntry& series : erased.series) {
    const std::uint32_t device_row =
        find_device_row(find_namespace_row(series.namespace_name), series.device);
    if (device_row == kNoRow || !rewritten.insert(device_row).second) continue;
    batch.put(catalog_namespace_,
              encode_record_key({RecordKind::Device, series.id.namespace_id, series.id.device, 0}),
              record_of(device_row, true));
  }
  return ok();
}

// With mutex_ held alone.
void Catalog::forget_series(std::uint32_t series_row) {
  SensorRow& series = series_[series_row];
  if (series.name.empty()) return;
  sensor_names_.give_back(series.name);
  identities_.give_back(std::exchange(series.identity, IdentityTable::kUnknown));
  untold_.erase(series_row);
  ++dropped_series_;
  if (std::exchange(series.durable, false)) --durable_series_;
}

void Catalog::forget(const Erased& erased) {
  const WriterLock lock(mutex_);
  ++generation_;
  for (const DeviceEntry& device : erased.devices) {
    const std::uint32_t namespace_row = find_namespace_row(device.namespace_name);
    if (namespace_row == kNoRow || device.id == 0) continue;
    namespaces_[namespace_row].is_marked = true;
    const std::uint32_t device_row = find_device_row(namespace_row, device.device);
    if (device_row == kNoRow) continue;
    DeviceRow& row = devices_[device_row];
    for (std::uint32_t at = row.last_series; at != kNoRow; at = series_[at].before)
      forget_series(at);
    NameStore::wipe(std::exchange(row.name, {}));
    names_there_.erase(device_row);
    unclaimed_.erase(device_row);
    ++dropped_devices_;
    if (std::exchange(row.durable, false)) --durable_devices_;
  }
  for (const SeriesEntry& series : erased.series) {
    const std::uint32_t namespace_row = find_namespace_row(series.namespace_name);
    const std::uint32_t device_row =
        namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, series.device);
    if (device_row == kNoRow) continue;
    const std::uint32_t series_row = find_series_row(device_row, series.sensor);
    if (series_row != kNoRow) forget_series(series_row);
  }
}

}  // namespace edgecase::catalog
