// The catalog's limits: what of new names still fits them.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "catalog/catalog.h"
#include "wire/names.h"

namespace edgecase::catalog {

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
