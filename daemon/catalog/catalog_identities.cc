// MemoryCatalog's identities of series: which series a reading's is, and what is recorded of it.
#include <algorithm>
#include <utility>

#include "catalog/catalog_format.h"
#include "catalog/memory_catalog.h"

namespace edgecase::catalog {

std::uint32_t MemoryCatalog::find_series_row(std::uint32_t device_row, const wire::Reading& reading,
                                             std::string& name) const {
  const std::uint32_t row = find_series_row(device_row, reading.sensor);
  if (reading.identity == nullptr) return row;
  const auto is_its = [&](std::uint32_t each, std::string_view sensor) EC_REQUIRES_SHARED(mutex_) {
    return is_of(series_[each], sensor, *reading.identity);
  };
  if (row == kNoRow ? !has_hashed_names_ : is_its(row, reading.sensor)) return row;
  // The name is another identity's, or was until that was erased. Two hashes alike, again and
  // again, are no accident.
  const Bytes identity =
      wire::encode_identity(wire::identity_of(*reading.identity, reading.device, reading.sensor));
  for (unsigned attempt = 0;; ++attempt) {
    std::string other = wire::name_of_taken(reading.sensor, identity, attempt);
    const std::uint32_t taken = find_series_row(device_row, other);
    const bool is_own = taken != kNoRow && identity_bytes_of(series_[taken]) == identity;
    if (taken != kNoRow && !is_own) continue;
    if (is_own || row != kNoRow) name = std::move(other);
    return taken;
  }
}

// `sensor`: by which name the identity is told.
bool MemoryCatalog::is_of(const SensorRow& series, std::string_view sensor,
                          const wire::SeriesIdentity& identity) const {
  if (series.identity == IdentityTable::kUnknown) return true;
  const bool is_its_name = sensor_names_.is(series.name, sensor);
  if (is_its_name && identities_.at(series.identity, sensor) == identity) return true;
  const std::string name = name_of(series);
  const wire::SeriesIdentity own = identities_.at(series.identity, name);
  // By one's name and by the other's text: they may be told in two ways.
  if (own.body.empty() && identity.body.empty() && is_its_name) return false;
  return identity_bytes_of(series) == wire::encode_identity(wire::identity_of(
                                          identity, devices_[series.device_row].name, sensor));
}

// Also that of its names.
Bytes MemoryCatalog::identity_bytes_of(const SensorRow& series) const {
  if (series.identity == IdentityTable::kUnknown) return {};
  const std::string name = name_of(series);
  return wire::encode_identity(wire::identity_of(identities_.at(series.identity, name),
                                                 devices_[series.device_row].name, name));
}

void MemoryCatalog::read_measurement(SeriesRow row, std::string& measurement) const {
  measurement.clear();
  const ReaderLock lock(mutex_);
  if (row >= series_.size() || !series_[row].durable) return;
  const SensorRow& series = series_[row];
  const bool is_told =
      series.identity != IdentityTable::kUnknown && series.identity != IdentityTable::kOfNames;
  if (is_told) {
    const wire::SeriesIdentity own = identities_.at(series.identity, {});
    if (own.body.empty() && own.measurement_bytes <= series.name.head.size()) {
      measurement = series.name.head.substr(0, own.measurement_bytes);
      return;
    }
  }
  sensor_names_.read(series.name, measurement);
  if (series.identity == IdentityTable::kUnknown) return;
  const wire::SeriesIdentity own = identities_.at(series.identity, measurement);
  if (own.body.empty()) {
    measurement.resize(std::min<std::size_t>(measurement.size(), own.measurement_bytes));
  } else {
    measurement = wire::measurement_of(own.body);
  }
}

std::string MemoryCatalog::sensor_name(const wire::Reading& reading) const {
  std::string name;
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(reading.namespace_name);
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, reading.device);
  if (device_row != kNoRow) find_series_row(device_row, reading, name);
  return name.empty() ? std::string(reading.sensor) : name;
}

bool MemoryCatalog::may_be(std::string_view namespace_name, std::string_view device,
                           std::string_view sensor, const wire::SeriesIdentity& identity) const {
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(namespace_name);
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, device);
  const std::uint32_t row = device_row == kNoRow ? kNoRow : find_series_row(device_row, sensor);
  return row != kNoRow && is_of(series_[row], sensor, identity);
}

bool MemoryCatalog::has_old(std::string_view namespace_name, std::string_view device,
                            std::string_view prefix) const {
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(namespace_name);
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, device);
  if (device_row == kNoRow) return false;
  std::string name;
  for (std::uint32_t row = devices_[device_row].last_series; row != kNoRow;
       row = series_[row].before) {
    const SensorRow& series = series_[row];
    sensor_names_.read(series.name, name);
    const bool is_begun = name.starts_with(prefix) && !name.empty() &&
                          (name.size() == prefix.size() || name[prefix.size()] == '.');
    const bool is_told = series.identity != IdentityTable::kUnknown &&
                         identities_.at(series.identity, name).body.empty();
    if (is_begun && !is_told) return true;
  }
  return false;
}

// Whether the reading brings what the series does not say durably.
bool MemoryCatalog::tells_identity(std::uint32_t series_row, const wire::Reading& reading) const {
  if (reading.identity != nullptr && series_[series_row].identity == IdentityTable::kUnknown)
    return true;
  return !untold_.empty() && untold_.contains(series_row);
}

void MemoryCatalog::set_identity(std::uint32_t series_row, const wire::Reading& reading) {
  SensorRow& series = series_[series_row];
  const std::string name = name_of(series);
  const wire::SeriesIdentity names = wire::identity_of_names(name);
  const wire::SeriesIdentity& given = reading.identity == nullptr ? names : *reading.identity;
  if (name == reading.sensor) {
    series.identity = identities_.keep(given, name);
    return;
  }
  // It is called otherwise, so that its name does not tell the identity.
  const std::string_view device = devices_[series.device_row].name;
  Bytes body;
  const wire::Identity identity = wire::identity_of(given, device, reading.sensor);
  series.identity = identities_.keep(wire::series_identity(identity, device, name, body), name);
}

Bytes MemoryCatalog::record_of(const SensorRow& series) const {
  Bytes record = encode_record(FieldTag::Name, name_of(series));
  if (series.identity == IdentityTable::kUnknown) return record;
  const bool is_of_names = series.identity == IdentityTable::kOfNames;
  append_record_field(FieldTag::Identity, is_of_names ? Bytes() : identity_bytes_of(series),
                      record);
  return record;
}

Status MemoryCatalog::load_identity(std::uint32_t series_row, ByteView value) {
  EC_ASSIGN_OR_RETURN(const bool is_told, has_record_field(value, FieldTag::Identity));
  if (!is_told) return ok();
  EC_ASSIGN_OR_RETURN(const ByteView bytes, find_record_field(value, FieldTag::Identity));
  SensorRow& series = series_[series_row];
  series.identity = IdentityTable::kOfNames;
  if (bytes.empty()) return ok();
  const std::string name = name_of(series);
  const auto identity = wire::decode_identity(bytes);
  if (!identity.ok()) {
    return corruption("catalog: series " + name + ": " + identity.status().message());
  }
  Bytes body;
  const std::string_view device = devices_[series.device_row].name;
  series.identity = identities_.keep(wire::series_identity(*identity, device, name, body), name);
  return ok();
}

}  // namespace edgecase::catalog
