// Names in the catalog: series and devices by them, and by selectors in their order; and what of
// new ones its limits leave room for.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "wire/names.h"

namespace edgecase::catalog {

Status Catalog::each(std::string_view namespace_name, const wire::Selection& selection,
                     const std::function<Status(const SeriesEntry&)>& take) const {
  for (const SeriesRow row : select_rows(namespace_name, selection)) {
    if (const auto entry = series_at(row); entry.ok()) EC_TRY(take(*entry));
  }
  return ok();
}

std::vector<SeriesEntry> Catalog::select(std::string_view namespace_name,
                                         const wire::Selector& selector) const {
  std::vector<SeriesEntry> entries;
  for (const SeriesRow row : select_rows(namespace_name, selector)) {
    if (auto entry = series_at(row); entry.ok()) entries.push_back(*std::move(entry));
  }
  return entries;
}

std::vector<SeriesRow> Catalog::select_rows(std::string_view namespace_name,
                                            const wire::Selection& selection,
                                            RowOrder order) const {
  std::vector<SeriesRow> rows = rows_of(namespace_name, selection.selectors, order);
  if (selection.identity.empty()) return rows;
  // One after another, so that nobody who writes waits for all of them.
  std::string measurement;
  std::erase_if(rows, [&](SeriesRow row) {
    read_measurement(row, measurement);
    if (!selection.identity.allow_measurement(measurement)) return true;
    const auto entry = series_at(row);
    if (!entry.ok()) return true;
    const auto identity = identity_of(*entry);
    return !identity.ok() || !selection.identity.hold_for(*identity);
  });
  return rows;
}

Result<wire::Identity> identity_of(const SeriesEntry& entry) {
  if (!entry.identity.empty()) return wire::decode_identity(entry.identity);
  return wire::Identity{entry.sensor,
                        {{std::string(wire::kDeviceTag), entry.device}},
                        std::string(wire::kValueField)};
}

Result<SeriesEntry> Catalog::find(std::string_view namespace_name, std::string_view device,
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

std::vector<SeriesRow> Catalog::rows_of(std::string_view namespace_name,
                                        std::span<const wire::Selector> selectors,
                                        RowOrder order) const {
  std::vector<SeriesRow> rows;
  const ReaderLock lock(mutex_);
  std::vector<std::uint32_t> owners;
  if (!namespace_name.empty()) {
    const std::uint32_t row = find_namespace_row(namespace_name);
    if (row != kNoRow) owners.push_back(row);
  } else {
    for (std::uint32_t row = 0; row < namespaces_.size(); ++row) {
      const std::string& name = namespaces_[row].name;
      if (!name.empty() && wire::is_writable_namespace(name)) owners.push_back(row);
    }
    std::sort(owners.begin(), owners.end(),
              [this](std::uint32_t a, std::uint32_t b)
                  EC_REQUIRES_SHARED(mutex_) { return namespaces_[a].name < namespaces_[b].name; });
  }
  std::vector<std::uint32_t> devices;
  for (const std::uint32_t owner : owners) {
    devices.clear();
    append_devices_of(owner, selectors, devices);
    for (const std::uint32_t row : devices) append_series_of(row, selectors, order, rows);
  }
  return rows;
}

// In the order of their names, each once.
void Catalog::append_devices_of(std::uint32_t namespace_row,
                                std::span<const wire::Selector> selectors,
                                std::vector<std::uint32_t>& devices) const {
  const bool are_named =
      std::all_of(selectors.begin(), selectors.end(),
                  [](const wire::Selector& each) { return wire::is_literal(each.device); });
  if (are_named) {
    for (const wire::Selector& each : selectors) {
      const std::uint32_t row = find_device_row(namespace_row, wire::unescape_name(each.device));
      if (row != kNoRow) devices.push_back(row);
    }
  } else {
    for (std::uint32_t row = namespaces_[namespace_row].last_device; row != kNoRow;
         row = devices_[row].before) {
      const bool is_meant =
          std::any_of(selectors.begin(), selectors.end(),
                      [&](const wire::Selector& each) EC_REQUIRES_SHARED(mutex_) {
                        return wire::glob_matches(each.device, devices_[row].name);
                      });
      if (is_meant) devices.push_back(row);
    }
  }
  if (devices.size() < 2) return;
  std::sort(devices.begin(), devices.end(),
            [this](std::uint32_t a, std::uint32_t b)
                EC_REQUIRES_SHARED(mutex_) { return devices_[a].name < devices_[b].name; });
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
}

// Each once.
void Catalog::append_series_of(std::uint32_t device_row, std::span<const wire::Selector> selectors,
                               RowOrder order, std::vector<SeriesRow>& rows) const {
  const auto before = static_cast<std::ptrdiff_t>(rows.size());
  std::vector<std::string_view> globs;
  for (const wire::Selector& each : selectors) {
    const bool is_of_device =
        selectors.size() == 1 || wire::glob_matches(each.device, devices_[device_row].name);
    if (!is_of_device) continue;
    if (!wire::is_literal(each.sensor)) {
      globs.emplace_back(each.sensor);
      continue;
    }
    const std::uint32_t row = find_series_row(device_row, wire::unescape_name(each.sensor));
    if (row != kNoRow && series_[row].durable) rows.push_back(row);
  }
  constexpr std::string_view kAll = "*";
  const bool are_all = std::find(globs.begin(), globs.end(), kAll) != globs.end();
  std::string name;
  for (std::uint32_t row = globs.empty() ? kNoRow : devices_[device_row].last_series; row != kNoRow;
       row = series_[row].before) {
    if (!series_[row].durable) continue;
    if (are_all) {
      rows.push_back(row);
      continue;
    }
    sensor_names_.read(series_[row].name, name);
    const bool is_meant = std::any_of(globs.begin(), globs.end(), [&name](std::string_view glob) {
      return wire::glob_matches(glob, name);
    });
    if (is_meant) rows.push_back(row);
  }
  if (order == RowOrder::Any) {
    std::sort(rows.begin() + before, rows.end());
  } else {
    std::sort(rows.begin() + before, rows.end(),
              [this](std::uint32_t a, std::uint32_t b) EC_REQUIRES_SHARED(mutex_) {
                return a != b && sensor_names_.is_before(series_[a].name, series_[b].name);
              });
  }
  rows.erase(std::unique(rows.begin() + before, rows.end()), rows.end());
}

SeriesEntry Catalog::entry_of(std::uint32_t series_row) const {
  const SensorRow& series = series_[series_row];
  const DeviceRow& device = devices_[series.device_row];
  const bool is_of_names =
      series.identity == IdentityTable::kUnknown || series.identity == IdentityTable::kOfNames;
  return {namespaces_[device.namespace_row].name, std::string(device.name), name_of(series),
          id_of(series), is_of_names ? Bytes() : identity_bytes_of(series)};
}

Result<SeriesEntry> Catalog::series_at(SeriesRow row) const {
  const ReaderLock lock(mutex_);
  if (row >= series_.size() || !series_[row].durable) return not_found("the series is gone");
  return entry_of(row);
}

std::uint32_t Catalog::device_row_of(SeriesRow row) const {
  const ReaderLock lock(mutex_);
  return row < series_.size() && series_[row].durable ? series_[row].device_row : kNoDevice;
}

bool Catalog::read_series(SeriesRow row, SeriesEntry& entry, wire::Identity& identity) const {
  const ReaderLock lock(mutex_);
  if (row >= series_.size() || !series_[row].durable) return false;
  const SensorRow& series = series_[row];
  const DeviceRow& device = devices_[series.device_row];
  entry.namespace_name = namespaces_[device.namespace_row].name;
  entry.device = device.name;
  sensor_names_.read(series.name, entry.sensor);
  entry.id = id_of(series);
  entry.identity.clear();
  const wire::SeriesIdentity own = series.identity == IdentityTable::kUnknown
                                       ? wire::identity_of_names(entry.sensor)
                                       : identities_.at(series.identity, entry.sensor);
  return wire::read_identity(own, device.name, entry.sensor, identity);
}

bool Catalog::read_names(SeriesRow row, std::string& namespace_name, std::string& device,
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

Status Catalog::count_limit(const std::string& what, std::size_t limit) {
  return limit_reached("the limit of " + std::to_string(limit) + " " + what +
                       " is reached (setting limits." + what + ")");
}

Status Catalog::names_limit() const {
  return limit_reached("the names of devices and series take the " +
                       std::to_string(limits_.memory_bytes >> 20) +
                       " MiB of memory that are theirs (setting storage.memory-limit)");
}

void Catalog::add_sensor_name(std::string_view name, std::set<std::string_view>& tails,
                              Growth& growth) const {
  const std::string_view tail = name.substr(SensorNames::head_bytes(name));
  growth.names_bytes += name.size() - tail.size();
  if (tail.empty() || sensor_names_.has_tail(tail) || !tails.insert(tail).second) return;
  ++growth.tails;
  growth.names_bytes += tail.size();
}

// A batch over a limit creates nothing, so that smaller ones still fit.
Status Catalog::check_room(std::span<const wire::Reading> readings,
                           const std::vector<std::size_t>& missed) const {
  const std::size_t devices = devices_.size() - dropped_devices_;
  const std::size_t series = series_.size() - dropped_series_;
  const bool fits =
      bytes_with({missed.size(), missed.size(), missed.size(),
                  missed.size() * (wire::kDeviceNameMaxBytes + wire::kSensorNameMaxBytes)}) <=
      limits_.memory_bytes;
  if (fits && devices + missed.size() <= limits_.devices &&
      series + missed.size() <= limits_.series) {
    return ok();
  }
  std::set<std::pair<std::string_view, std::string_view>> new_devices;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> new_series;
  for (const std::size_t i : missed) {
    const wire::Reading& reading = readings[i];
    // What is kept as rejected because of a limit must not fail of that limit.
    if (!wire::is_writable_namespace(reading.namespace_name)) continue;
    Memo memo;
    if (find_series_row(reading, memo) != kNoRow) continue;
    new_series.emplace(reading.namespace_name, reading.device, reading.sensor);
    if (memo.device_row == kNoRow) new_devices.emplace(reading.namespace_name, reading.device);
  }
  if (!new_devices.empty() && devices + new_devices.size() > limits_.devices) {
    return count_limit("devices", limits_.devices);
  }
  if (!new_series.empty() && series + new_series.size() > limits_.series) {
    return count_limit("series", limits_.series);
  }
  Growth growth{new_devices.size(), new_series.size()};
  for (const auto& [namespace_name, device] : new_devices) growth.names_bytes += device.size();
  std::set<std::string_view> tails;
  for (const auto& [namespace_name, device, sensor] : new_series)
    add_sensor_name(sensor, tails, growth);
  if (!new_series.empty() && bytes_with(growth) > limits_.memory_bytes) {
    return names_limit();
  }
  return ok();
}

// The store's own do not count: `_rejected` is for what could not be stored elsewhere.
std::size_t Catalog::counted_namespaces() const {
  return static_cast<std::size_t>(std::count_if(
      namespaces_.begin(), namespaces_.end(),
      [](const NamespaceRow& each) { return !each.name.empty() && !each.name.starts_with('_'); }));
}

std::vector<Refusal> Catalog::unfit(std::span<const wire::Reading> readings) const {
  std::vector<Refusal> refused;
  std::set<std::string_view> new_namespaces;
  std::set<std::pair<std::string_view, std::string_view>> new_devices;
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> new_series;
  std::set<std::string_view> new_tails;
  Growth growth;  // by those that fit
  const ReaderLock lock(mutex_);
  const std::size_t namespaces = counted_namespaces();
  const std::size_t devices = devices_.size() - dropped_devices_;
  const std::size_t series = series_.size() - dropped_series_;
  const auto judge = [&](const wire::Reading& reading) EC_REQUIRES_SHARED(mutex_) -> Status {
    Memo memo;
    if (find_series_row(reading, memo) != kNoRow) return ok();
    EC_TRY(wire::check_name("namespace", reading.namespace_name));
    EC_TRY(wire::check_name("device", reading.device));
    EC_TRY(wire::check_name("sensor", reading.sensor));
    if (!wire::is_writable_namespace(reading.namespace_name)) return ok();
    const bool has_namespace = reading.namespace_name.starts_with('_') ||
                               find_namespace_row(reading.namespace_name) != kNoRow ||
                               new_namespaces.contains(reading.namespace_name);
    if (!has_namespace && namespaces + new_namespaces.size() >= limits_.namespaces)
      return count_limit("namespaces", limits_.namespaces);
    const auto device = std::pair(reading.namespace_name, reading.device);
    const auto name = std::tuple(reading.namespace_name, reading.device, reading.sensor);
    if (new_series.contains(name)) return ok();
    const bool has_device = memo.device_row != kNoRow || new_devices.contains(device);
    if (!has_device && devices + new_devices.size() >= limits_.devices)
      return count_limit("devices", limits_.devices);
    if (series + new_series.size() >= limits_.series) return count_limit("series", limits_.series);
    Growth grown = growth;
    ++grown.series;
    add_sensor_name(reading.sensor, new_tails, grown);
    if (!has_device) {
      ++grown.devices;
      grown.names_bytes += reading.device.size();
    }
    if (bytes_with(grown) > limits_.memory_bytes) return names_limit();
    growth = grown;
    if (!has_namespace) new_namespaces.insert(reading.namespace_name);
    if (!has_device) new_devices.insert(device);
    new_series.insert(name);
    return ok();
  };
  for (std::size_t i = 0; i < readings.size(); ++i) {
    Status fits = judge(readings[i]);
    if (!fits.ok()) refused.push_back({i, std::move(fits)});
  }
  return refused;
}

}  // namespace edgecase::catalog
