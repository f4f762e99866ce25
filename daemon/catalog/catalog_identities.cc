// The names of series and devices where they come from: identities of series (which series a
// reading is of, what is recorded of it), and origins of devices (whose each is, and what it is
// called here).

#include <algorithm>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "catalog/names.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::catalog {

std::uint32_t Catalog::find_series_row(std::uint32_t device_row, const wire::Reading& reading,
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
bool Catalog::is_of(const SensorRow& series, std::string_view sensor,
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
Bytes Catalog::identity_bytes_of(const SensorRow& series) const {
  if (series.identity == IdentityTable::kUnknown) return {};
  const std::string name = name_of(series);
  return wire::encode_identity(wire::identity_of(identities_.at(series.identity, name),
                                                 devices_[series.device_row].name, name));
}

void Catalog::read_measurement(SeriesRow row, std::string& measurement) const {
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

std::string Catalog::sensor_name(const wire::Reading& reading) const {
  std::string name;
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(reading.namespace_name);
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, reading.device);
  if (device_row != kNoRow) find_series_row(device_row, reading, name);
  return name.empty() ? std::string(reading.sensor) : name;
}

bool Catalog::may_be(std::string_view namespace_name, std::string_view device,
                     std::string_view sensor, const wire::SeriesIdentity& identity) const {
  const ReaderLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(namespace_name);
  const std::uint32_t device_row =
      namespace_row == kNoRow ? kNoRow : find_device_row(namespace_row, device);
  const std::uint32_t row = device_row == kNoRow ? kNoRow : find_series_row(device_row, sensor);
  return row != kNoRow && is_of(series_[row], sensor, identity);
}

bool Catalog::has_old(std::string_view namespace_name, std::string_view device,
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
bool Catalog::tells_identity(std::uint32_t series_row, const wire::Reading& reading) const {
  if (reading.identity != nullptr && series_[series_row].identity == IdentityTable::kUnknown)
    return true;
  return !untold_.empty() && untold_.contains(series_row);
}

void Catalog::set_identity(std::uint32_t series_row, const wire::Reading& reading) {
  SensorRow& series = series_[series_row];
  if (series.durable) ++generation_;  // what is known by identities is to be asked for again
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

Bytes Catalog::record_of(const SensorRow& series) const {
  Bytes record = encode_record(FieldTag::Name, name_of(series));
  if (series.identity == IdentityTable::kUnknown) return record;
  const bool is_of_names = series.identity == IdentityTable::kOfNames;
  append_record_field(FieldTag::Identity, is_of_names ? Bytes() : identity_bytes_of(series),
                      record);
  return record;
}

Status Catalog::load_identity(std::uint32_t series_row, ByteView value) {
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

namespace {

// By which the hash of a name is made.
Bytes taken_key(OriginNumber origin, std::string_view device) {
  Bytes key;
  append_id(origin, key);
  return key + Bytes(device);
}

bool contains(Origins origins, OriginNumber number) {
  return std::find(origins.begin(), origins.end(), number) != origins.end();
}

bool is_same_view(std::string_view a, std::string_view b) {
  return a.data() == b.data() && a.size() == b.size();
}

// The identity under another name: where no tag is the device's name, one says it from now on, so
// that two origins' lines of one identity stay two.
const wire::SeriesIdentity* renamed(const wire::Reading& reading, std::string_view name,
                                    wire::TextStore& texts) {
  if (reading.identity == nullptr || !reading.identity->device_keys.empty())
    return reading.identity;
  wire::Identity identity = wire::identity_of(*reading.identity, reading.device, reading.sensor);
  const auto is_before = [](const auto& tag, std::string_view key) { return tag.first < key; };
  const auto at =
      std::lower_bound(identity.tags.begin(), identity.tags.end(), wire::kDeviceTag, is_before);
  if (at != identity.tags.end() && at->first == wire::kDeviceTag) {
    at->second = name;
  } else {
    identity.tags.emplace(at, wire::kDeviceTag, name);
  }
  Bytes body;
  const wire::SeriesIdentity made = wire::series_identity(identity, name, reading.sensor, body);
  return texts.keep_object(wire::SeriesIdentity{
      made.measurement_bytes, texts.keep(made.device_keys), texts.keep(made.body)});
}

}  // namespace

Bytes Catalog::record_of(std::uint32_t device_row, bool says_next) const {
  const DeviceRow& device = devices_[device_row];
  Bytes record = encode_record(FieldTag::Name, device.name);
  Bytes number;
  if (says_next) {
    append_id(device.next_sensor, number);
    append_record_field(FieldTag::NextSensor, number, record);
  }
  if (device.origin == kNoOrigin) return record;
  number.clear();
  append_id(device.origin, number);
  append_record_field(FieldTag::Origin, number, record);
  const auto there = names_there_.find(device_row);
  if (there != names_there_.end()) append_record_field(FieldTag::NameThere, there->second, record);
  return record;
}

Status Catalog::load_origin(std::uint32_t device_row, ByteView value) {
  EC_ASSIGN_OR_RETURN(const ByteView origin, find_record_field(value, FieldTag::Origin));
  EC_ASSIGN_OR_RETURN(const ByteView there, find_record_field(value, FieldTag::NameThere));
  for (const OriginNumber number : decode_ids(origin)) devices_[device_row].origin = number;
  const OriginNumber number = devices_[device_row].origin;
  has_origins_ = has_origins_ || (number != kOwnOrigin && number != kNoOrigin);
  if (!there.empty()) names_there_[device_row] = there;
  return ok();
}

bool Catalog::is_placed(std::uint32_t device_row, std::string_view device, Origins origins) const {
  const DeviceRow& row = devices_[device_row];
  if (!contains(origins, row.origin)) return false;
  const auto there = names_there_.find(device_row);
  return device == (there == names_there_.end() ? row.name : std::string_view(there->second));
}

std::uint32_t Catalog::find_placed(std::uint32_t namespace_row, std::string_view device,
                                   Origins origins, const OwnerOfName& owner,
                                   std::string& name) const {
  const std::uint32_t row = find_device_row(namespace_row, device);
  name = device;
  if (row != kNoRow && is_placed(row, device, origins)) return row;
  OriginNumber of_name = kNoOrigin;
  if (row != kNoRow) {
    of_name = devices_[row].origin;
  } else if (owner) {
    of_name = owner(namespaces_[namespace_row].name, device);
  }
  const bool is_taken = of_name != kNoOrigin && (row != kNoRow || !contains(origins, of_name));
  if (!is_taken && row == kNoRow && names_there_.empty()) return kNoRow;
  // The name is another's, or was when this one came. Two hashes alike are no accident.
  std::string free;
  for (const OriginNumber origin : origins) {
    for (unsigned attempt = 0;; ++attempt) {
      std::string other = wire::name_of_taken(device, taken_key(origin, device), attempt,
                                              wire::kDeviceNameMaxBytes);
      const std::uint32_t taken = find_device_row(namespace_row, other);
      if (taken != kNoRow && is_placed(taken, device, origins)) return taken;
      if (taken != kNoRow && devices_[taken].origin == kNoOrigin) {
        name = std::move(other);  // its own, that was restored
        return kNoRow;
      }
      if (taken != kNoRow) continue;
      if (free.empty()) free = std::move(other);
      break;
    }
  }
  if (is_taken) name = std::move(free);
  return kNoRow;
}

std::uint32_t Catalog::claim(std::uint32_t namespace_row, std::string_view device,
                             std::string_view name, OriginNumber origin) {
  const std::uint32_t nobodys = find_device_row(namespace_row, name);
  if (nobodys != kNoRow) {
    devices_[nobodys].origin = origin;
    if (name != device) names_there_[nobodys] = device;
    if (devices_[nobodys].durable) unclaimed_.insert(nobodys);
    has_origins_ = has_origins_ || origin != kOwnOrigin;
    ++generation_;  // memos are to ask again, so that the record is written
    return nobodys;
  }
  const std::uint32_t row =
      add_device(namespace_row, name, namespaces_[namespace_row].next_device, origin);
  if (name != device) names_there_[row] = device;
  return row;
}

Result<std::span<const wire::Reading>> Catalog::place(std::span<const wire::Reading> readings,
                                                      Origins origins, Placed& placed,
                                                      const OwnerOfName& owner) {
  const auto is_next = [](const wire::Reading& a, const wire::Reading& b) {
    return is_same_view(a.device, b.device) && is_same_view(a.namespace_name, b.namespace_name);
  };
  // In a namespace that is new no name is taken, and in the store's own ones each is everybody's.
  const auto namespace_of = [this](const wire::Reading& reading) EC_REQUIRES_SHARED(mutex_) {
    return reading.namespace_name.starts_with('_') ? kNoRow
                                                   : find_namespace_row(reading.namespace_name);
  };
  std::vector<std::uint32_t> rows(readings.size(), kNoRow);
  bool is_new = false, is_other = false;
  std::string name;
  {
    const ReaderLock lock(mutex_);
    if (origins.empty() || (!has_origins_ && origins.front() == kOwnOrigin)) return readings;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const wire::Reading& reading = readings[i];
      if (i > 0 && is_next(reading, readings[i - 1])) {
        rows[i] = rows[i - 1];
        continue;
      }
      const std::uint32_t in = namespace_of(reading);
      if (in == kNoRow) continue;
      rows[i] = find_placed(in, reading.device, origins, owner, name);
      is_new = is_new || rows[i] == kNoRow;
      is_other = is_other || (rows[i] != kNoRow && devices_[rows[i]].name != reading.device);
    }
  }
  if (is_new) {
    const WriterLock lock(mutex_);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const wire::Reading& reading = readings[i];
      const std::uint32_t in = namespace_of(reading);
      if (rows[i] != kNoRow || in == kNoRow || !wire::check_name("device", reading.device).ok())
        continue;
      rows[i] = find_placed(in, reading.device, origins, owner, name);
      const bool adds = rows[i] == kNoRow && find_device_row(in, name) == kNoRow;
      if (adds && name == reading.device) continue;  // free: resolve() adds it, where there is room
      if (adds && devices_.size() - dropped_devices_ >= limits_.devices)
        return count_limit("devices", limits_.devices);
      if (rows[i] == kNoRow) rows[i] = claim(in, reading.device, name, origins.front());
      is_other = is_other || devices_[rows[i]].name != reading.device;
    }
  }
  if (!is_other) return readings;
  rename(readings, rows, placed);
  return std::span<const wire::Reading>(placed.readings);
}

void Catalog::rename(std::span<const wire::Reading> readings,
                     const std::vector<std::uint32_t>& rows, Placed& placed) const {
  const ReaderLock lock(mutex_);
  placed.readings.assign(readings.begin(), readings.end());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    wire::Reading& reading = placed.readings[i];
    if (rows[i] == kNoRow) continue;
    const std::string_view name = devices_[rows[i]].name;
    if (name.empty() || name == reading.device) continue;
    const bool is_as_before = i > 0 && rows[i] == rows[i - 1] &&
                              readings[i].identity == readings[i - 1].identity &&
                              is_same_view(readings[i].sensor, readings[i - 1].sensor);
    reading.identity =
        is_as_before ? placed.readings[i - 1].identity : renamed(reading, name, placed.texts);
    reading.device = name;
  }
}

std::vector<std::string> Catalog::placed_names(std::string_view namespace_name,
                                               std::string_view device, Origins origins) const {
  std::vector<std::string> names;
  const ReaderLock lock(mutex_);
  const std::uint32_t owner = find_namespace_row(namespace_name);
  if (owner == kNoRow) return names;
  const auto note = [&](std::uint32_t row) EC_REQUIRES_SHARED(mutex_) {
    if (row != kNoRow && devices_[row].durable) names.emplace_back(devices_[row].name);
  };
  const std::uint32_t row = find_device_row(owner, device);
  if (row != kNoRow && (devices_[row].origin == kNoOrigin || is_placed(row, device, origins)))
    note(row);
  for (const auto& [renamed_row, there] : names_there_) {
    if (devices_[renamed_row].namespace_row == owner && is_placed(renamed_row, device, origins))
      note(renamed_row);
  }
  return names;
}

std::map<OriginNumber, Catalog::OriginCount> Catalog::count_origins() const {
  std::map<OriginNumber, OriginCount> counts;
  const ReaderLock lock(mutex_);
  for (std::uint32_t row = 0; row < devices_.size(); ++row) {
    const DeviceRow& device = devices_[row];
    if (!device.durable || namespaces_[device.namespace_row].name.empty()) continue;
    OriginCount& count = counts[device.origin];
    ++count.devices;
    if (names_there_.contains(row)) ++count.renamed;
  }
  return counts;
}

Result<DeviceOrigin> Catalog::origin_at(std::uint32_t row) const {
  const ReaderLock lock(mutex_);
  if (row >= devices_.size()) return not_found("no device has this row");
  const DeviceRow& device = devices_[row];
  const std::string& owner = namespaces_[device.namespace_row].name;
  if (device.name.empty() || owner.empty()) return not_found("the device is gone");
  if (device.origin == kNoOrigin || owner.starts_with('_'))
    return not_found("the device is nobody's");
  const auto there = names_there_.find(row);
  return DeviceOrigin{owner, std::string(device.name), device.origin,
                      there == names_there_.end() ? "" : there->second};
}

Result<std::size_t> Catalog::restore_origins(std::span<const DeviceOrigin> devices) {
  for (const DeviceOrigin& each : devices) {
    EC_TRY(wire::check_name("namespace", each.namespace_name));
    EC_TRY(wire::check_name("device", each.device));
    if (!each.name_there.empty()) EC_TRY(wire::check_name("device", each.name_there));
    if (each.namespace_name.starts_with('_') || each.origin == kNoOrigin)
      return invalid_argument("device " + each.device + " is nobody's");
  }
  for (const DeviceOrigin& each : devices) EC_TRY(ensure_namespace(each.namespace_name).status());
  CatalogAdditions additions;
  std::size_t others = 0;
  EC_TRY(claim_restored(devices, additions, others));
  if (additions.empty()) return others;
  WriteBatch batch;
  additions.append_to(batch);
  EC_TRY(engine_.write(batch, Durability::Sync));
  confirm(additions);
  return others;
}

Status Catalog::claim_restored(std::span<const DeviceOrigin> devices, CatalogAdditions& additions,
                               std::size_t& others) {
  additions.catalog_namespace_ = catalog_namespace_;
  const WriterLock lock(mutex_);
  for (const DeviceOrigin& each : devices) {
    const std::uint32_t owner = find_namespace_row(each.namespace_name);
    if (owner == kNoRow) return busy("namespace " + each.namespace_name + " was dropped meanwhile");
    const std::string& there = each.name_there.empty() ? each.device : each.name_there;
    std::uint32_t row = find_device_row(owner, each.device);
    if (row == kNoRow && devices_.size() - dropped_devices_ >= limits_.devices)
      return count_limit("devices", limits_.devices);
    if (row == kNoRow || devices_[row].origin == kNoOrigin) {
      row = claim(owner, there, each.device, each.origin);
    } else if (!is_placed(row, there, Origins(&each.origin, 1))) {
      ++others;
      continue;
    }
    const DeviceRow& device = devices_[row];
    const bool is_told = device.durable && !unclaimed_.contains(row);
    if (is_told || !additions.devices_.insert(row).second) continue;
    const RecordKey key{RecordKind::Device, namespaces_[owner].id, device.id, 0};
    additions.records_.push_back(
        {true, row, encode_record_key(key), record_of(row, device.durable)});
  }
  return ok();
}

static_assert(wire::kSensorNameMaxBytes < 1u << 11);

std::uint32_t IdentityTable::keep_keys(std::string_view keys) {
  const auto found = keys_index_.find(keys);
  if (found != keys_index_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(keys_.size());
  keys_.push_back(names_.keep(keys));
  keys_index_.emplace(keys_.back(), number);
  return number;
}

IdentityTable::Handle IdentityTable::keep(const wire::SeriesIdentity& identity,
                                          std::string_view sensor) {
  if (identity == wire::identity_of_names(sensor)) return kOfNames;
  const std::uint32_t keys = keep_keys(identity.device_keys);
  if (identity.body.empty()) return kByName | keys << kMeasurementBits | identity.measurement_bytes;
  return kByBody | bodies_.keep(keys, identity.body);
}

void IdentityTable::give_back(Handle handle) {
  if ((handle & kKinds) != kByBody) return;
  bodies_.give_back(handle & ~kKinds);
}

wire::SeriesIdentity IdentityTable::at(Handle handle, std::string_view sensor) const {
  const Handle rest = handle & ~kKinds;
  switch (handle & kKinds) {
    case kByName:
      return {static_cast<std::uint16_t>(rest & ((1u << kMeasurementBits) - 1)),
              keys_[rest >> kMeasurementBits],
              {}};
    case kByBody: return {0, keys_[bodies_.parent(rest)], bodies_.text(rest)};
    default: return wire::identity_of_names(sensor);
  }
}

}  // namespace edgecase::catalog
