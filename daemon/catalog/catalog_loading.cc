#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/catalog_format.h"
#include "edgecase/store_check.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::catalog {

// The catalog's beginning: from the engine's records to tables.

namespace {

std::string where(NamespaceId id, std::uint32_t device) {
  return "catalog: namespace " + std::to_string(id) + ", device " + std::to_string(device);
}

}  // namespace

Status Catalog::load() {
  if (engine_.find_namespace(kRepairedNamespace).ok()) recovery_ = std::make_unique<Recovery>();
  EC_TRY(open_namespace());
  for (const NamespaceInfo& info : engine_.namespaces()) {
    if (!wire::is_readable_namespace(info.name)) continue;
    NamespaceRow& row = namespaces_[add_namespace(info.name, info.id)];
    for (std::size_t i = 0; i + 1 < next_devices_.size(); i += 2) {
      if (next_devices_[i] != info.id) continue;
      row.next_device = next_devices_[i + 1];
      row.is_marked = true;
    }
  }
  EC_TRY(load_records());
  if (is_damaged_) {
    recover_for_now();
  } else if (recovery_ != nullptr) {
    EC_TRY(recover_numbers());
  }
  set_aside_.tell(memory_bytes());
  return ok();
}

Status Catalog::open_namespace() {
  auto found = engine_.find_namespace(kCatalogNamespace);
  if (found.ok()) {
    catalog_namespace_ = found->id;
  } else if (found.status().code() == StatusCode::NotFound) {
    NamespaceOptions options;
    options.placement = Placement::Metadata;
    EC_ASSIGN_OR_RETURN(catalog_namespace_, engine_.create_namespace(kCatalogNamespace, options));
  } else {
    return found.status();
  }
  const Bytes key = encode_record_key({});
  const auto record = engine_.get(catalog_namespace_, key, {});
  if (record.ok()) {
    EC_ASSIGN_OR_RETURN(const ByteView version,
                        decode_record_field(*record, FieldTag::LayoutVersion));
    if (version.size() != 1) return corruption("catalog: the layout's version is cut short");
    const auto number = static_cast<unsigned char>(version.front());
    if (number == kLayoutVersion) {
      EC_ASSIGN_OR_RETURN(const ByteView next, find_record_field(*record, FieldTag::NextDevices));
      next_devices_ = decode_ids(next);
      return ok();
    }
    return unsupported("catalog: layout " + std::to_string(number) +
                       " was written by another version of the program");
  }
  if (record.status().code() == StatusCode::Corruption) {
    note_damage();
    return ok();
  }
  if (record.status().code() != StatusCode::NotFound) return record.status();
  // Without this record there is none: the first start, or one that was cut before this write; or a
  // repair could not bring it back.
  EC_ASSIGN_OR_RETURN(const RangeStats stats, engine_.range_stats(catalog_namespace_, {}, {}));
  if (recovery_ == nullptr) {
    if (stats.entries != 0) return corruption("catalog: records, but no layout record");
    EC_TRY(mark_repaired_before());
  }
  WriteBatch batch;
  batch.put(catalog_namespace_, key,
            encode_record(FieldTag::LayoutVersion, Bytes(1, static_cast<char>(kLayoutVersion))));
  return engine_.write(batch, Durability::Sync);
}

// Namespaces of readings come after the layout record. Those who repaired a store before there was
// a mark left none.
Status Catalog::mark_repaired_before() {
  const std::vector<NamespaceInfo> known = engine_.namespaces();
  if (std::none_of(known.begin(), known.end(), [](const NamespaceInfo& info) {
        return wire::is_readable_namespace(info.name);
      }))
    return ok();
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  EC_TRY(engine_.create_namespace(kRepairedNamespace, options).status());
  recovery_ = std::make_unique<Recovery>();
  return ok();
}

Status Catalog::load_records() {
  ReadOptions options;
  options.on_damage = [this](const DamagedKeys&) EC_REQUIRES(mutex_) { note_damage(); };
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(catalog_namespace_, {}, options));
  // Devices come before sensors: 'D' < 'S'.
  for (; iterator->valid(); iterator->next()) {
    const Bytes key(iterator->key());
    const ByteView value = iterator->value();
    if (!iterator->valid()) break;
    EC_TRY(load_record(key, value));
  }
  EC_TRY(iterator->status());
  for (const NamespaceId id : leftover_) EC_TRY(remove_records_of(id));
  leftover_.clear();
  return ok();
}

Status Catalog::load_record(ByteView key_bytes, ByteView value) {
  EC_ASSIGN_OR_RETURN(const RecordKey key, decode_record_key(key_bytes));
  if (key.kind == RecordKind::Format) return ok();
  EC_ASSIGN_OR_RETURN(const ByteView name, decode_record_field(value, FieldTag::Name));
  EC_TRY(wire::check_name("stored", name));
  std::uint32_t namespace_row = kNoRow;
  for (std::size_t row = 0; row < namespaces_.size(); ++row) {
    if (namespaces_[row].id == key.namespace_id) namespace_row = static_cast<std::uint32_t>(row);
  }
  if (namespace_row == kNoRow) {
    if (std::find(leftover_.begin(), leftover_.end(), key.namespace_id) != leftover_.end())
      return ok();
    // Its drop was durable, and cut short before its names were removed; or it was never there.
    const auto scanned = engine_.scan(key.namespace_id, {}, {});
    if (scanned.status().code() != StatusCode::NotFound)
      return corruption(where(key.namespace_id, key.device) + ": there is no such namespace");
    leftover_.push_back(key.namespace_id);
    return ok();
  }
  if (key.kind == RecordKind::Device) return load_device(namespace_row, key.device, name, value);
  return load_series(namespace_row, key, name, value);
}

Status Catalog::load_device(std::uint32_t namespace_row, std::uint32_t id, ByteView name,
                            ByteView value) {
  EC_ASSIGN_OR_RETURN(const ByteView next, find_record_field(value, FieldTag::NextSensor));
  std::uint32_t row = kNoRow;
  if (find_device_row(namespace_row, name) == kNoRow) {
    row = add_device(namespace_row, name, id);
    devices_[row].durable = true;
    ++durable_devices_;
    if (recovery_ != nullptr) recovery_->devices.emplace(std::pair(namespace_row, id), row);
  } else if (recovery_ != nullptr) {
    // The series is of a device of that name that was there before, and was erased.
    row = recovered_device(namespace_row, id);
  } else {
    return corruption(where(namespaces_[namespace_row].id, id) + ": its name is taken");
  }
  for (const std::uint32_t sensor : decode_ids(next)) devices_[row].next_sensor = sensor;
  return load_origin(row, value);
}

Status Catalog::load_series(std::uint32_t namespace_row, const RecordKey& key, ByteView name,
                            ByteView value) {
  std::uint32_t device_row = kNoRow;
  if (recovery_ != nullptr) {
    device_row = recovered_device(namespace_row, key.device);
  } else {
    // A device's sensors follow one another, and devices were loaded in this order too.
    while (loading_device_ < devices_.size() &&
           (devices_[loading_device_].namespace_row != namespace_row ||
            devices_[loading_device_].id != key.device)) {
      ++loading_device_;
    }
    if (loading_device_ == devices_.size())
      return corruption(where(key.namespace_id, key.device) + ": sensors of no device");
    device_row = static_cast<std::uint32_t>(loading_device_);
  }
  if (find_series_row(device_row, name) != kNoRow) {
    if (recovery_ == nullptr)
      return corruption(where(key.namespace_id, key.device) + ": two sensors of one name");
    recovered_series(device_row, key.sensor);
    return ok();
  }
  const std::uint32_t row = add_series(device_row, name, key.sensor);
  EC_TRY(load_identity(row, value));
  series_[row].durable = true;
  ++durable_series_;
  if (recovery_ != nullptr) recovery_->series.emplace(std::pair(device_row, key.sensor), row);
  return ok();
}

// The catalog after a repair: numbers under which readings lie and whose names are lost get names
// in their place, so that they are never given to another device and their readings can be had.

namespace {

constexpr std::string_view kPlaceholder = "recovered-";

// The first of `recovered-7`, `recovered-7-2`, … that is not `taken`.
std::string placeholder(std::uint32_t id, const std::function<bool(const std::string&)>& taken) {
  const std::string first = std::string(kPlaceholder) + std::to_string(id);
  std::string name = first;
  for (std::uint64_t i = 2; taken(name); ++i) name = first + "-" + std::to_string(i);
  return name;
}

// The first eight bytes of a reading's key as one number.
std::uint64_t prefix_number(const wire::ReadingKey& key) {
  return std::uint64_t{key.device} << 32 | key.sensor;
}

Bytes first_key_of(std::uint64_t prefix) {
  return wire::make_reading_key({static_cast<std::uint32_t>(prefix >> 32),
                                 static_cast<std::uint32_t>(prefix),
                                 std::numeric_limits<std::int64_t>::min()});
}

}  // namespace

std::uint32_t Catalog::recovered_device(std::uint32_t namespace_row, std::uint32_t id) {
  const auto known = recovery_->devices.find({namespace_row, id});
  if (known != recovery_->devices.end()) return known->second;
  const std::string name = placeholder(id, [&](const std::string& each) EC_REQUIRES_SHARED(mutex_) {
    return find_device_row(namespace_row, each) != kNoRow;
  });
  const std::uint32_t row = add_device(namespace_row, name, id);
  recovery_->devices.emplace(std::pair(namespace_row, id), row);
  return row;
}

std::uint32_t Catalog::recovered_series(std::uint32_t device_row, std::uint32_t id) {
  const auto known = recovery_->series.find({device_row, id});
  if (known != recovery_->series.end()) return known->second;
  const std::string name = placeholder(id, [&](const std::string& each) EC_REQUIRES_SHARED(mutex_) {
    return find_series_row(device_row, each) != kNoRow;
  });
  const std::uint32_t row = add_series(device_row, name, id);
  recovery_->series.emplace(std::pair(device_row, id), row);
  return row;
}

// Some records cannot be read. From here on what they would have named is made up, as after a
// repair.
void Catalog::note_damage() {
  is_damaged_ = true;
  if (recovery_ != nullptr) return;
  recovery_ = std::make_unique<Recovery>();
  for (std::uint32_t row = 0; row < devices_.size(); ++row)
    recovery_->devices.emplace(std::pair(devices_[row].namespace_row, devices_[row].id), row);
  for (std::uint32_t row = 0; row < series_.size(); ++row)
    recovery_->series.emplace(std::pair(series_[row].device_row, series_[row].id), row);
}

// Nothing of it is written: a repair may bring the records back. Numbers that are lost with them
// are not given to others.
void Catalog::recover_for_now() {
  constexpr std::uint32_t kDevicesPassedOver = 1u << 20;
  constexpr std::uint32_t kSensorsPassedOver = 1u << 16;
  const auto pass_over = [](std::uint32_t& next, std::uint32_t count) {
    next = std::max(next, next + count);
  };
  const auto namespaces = static_cast<std::uint32_t>(namespaces_.size());
  // What cannot be looked for now, since values are away, has no names.
  for (std::uint32_t row = 0; row < namespaces; ++row)
    static_cast<void>(recover_numbers_of(row).ok());
  for (NamespaceRow& row : namespaces_) pass_over(row.next_device, kDevicesPassedOver);
  for (DeviceRow& device : devices_) {
    pass_over(device.next_sensor, kSensorsPassedOver);
    if (std::exchange(device.durable, true)) continue;
    ++durable_devices_;
    ++recovered_.devices;
  }
  for (SensorRow& series : series_) {
    if (std::exchange(series.durable, true)) continue;
    ++durable_series_;
    ++recovered_.series;
  }
  recovery_.reset();
}

// One seek a series, whatever it holds.
Status Catalog::recover_numbers_of(std::uint32_t namespace_row) {
  ReadOptions options = is_damaged_ ? without_damaged() : ReadOptions();
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator,
                      engine_.scan(namespaces_[namespace_row].id, {}, options));
  while (iterator->valid()) {
    wire::ReadingKey key;
    if (!wire::decode_reading_key(iterator->key(), key)) {
      iterator->next();  // nobody's reading
      continue;
    }
    recovered_series(recovered_device(namespace_row, key.device), key.sensor);
    const std::uint64_t prefix = prefix_number(key);
    if (prefix == std::numeric_limits<std::uint64_t>::max()) break;
    iterator->seek(first_key_of(prefix + 1));
  }
  return iterator->status().with_context(
      "after a repair the first start looks up in the values which numbers devices have: ");
}

// Rules that are left count, too: what they hide belongs to those who had the number.
void Catalog::pass_over_numbers_of_rules() {
  for (const RetentionRule& rule : engine_.retention_rules()) {
    if (rule.prefix.size() < 4) continue;
    Bytes padded = rule.prefix;
    padded.resize(wire::kReadingKeyBytes, '\0');
    wire::ReadingKey key;
    if (!wire::decode_reading_key(padded, key)) continue;
    for (NamespaceRow& row : namespaces_) {
      if (row.id == rule.namespace_id) row.next_device = std::max(row.next_device, key.device + 1);
    }
  }
}

Status Catalog::write_recovered() {
  constexpr std::uint32_t kRecordsPerBatch = 10'000;
  WriteBatch batch;
  const auto write_if = [&](bool full) -> Status {
    if (!full) return ok();
    EC_TRY(engine_.write(batch, Durability::Sync));
    batch.clear();
    return ok();
  };
  for (std::uint32_t row = 0; row < devices_.size(); ++row) {
    const DeviceRow& device = devices_[row];
    if (device.durable) continue;
    batch.put(
        catalog_namespace_,
        encode_record_key({RecordKind::Device, namespaces_[device.namespace_row].id, device.id, 0}),
        record_of(row, true));
    EC_TRY(write_if(batch.count() >= kRecordsPerBatch));
  }
  for (const SensorRow& series : series_) {
    if (series.durable) continue;
    const SeriesId id = id_of(series);
    batch.put(catalog_namespace_,
              encode_record_key({RecordKind::Sensor, id.namespace_id, id.device, id.sensor}),
              encode_record(FieldTag::Name, name_of(series)));
    EC_TRY(write_if(batch.count() >= kRecordsPerBatch));
  }
  EC_TRY(write_if(batch.count() > 0));
  for (DeviceRow& device : devices_) {
    if (std::exchange(device.durable, true)) continue;
    ++durable_devices_;
    ++recovered_.devices;
  }
  for (SensorRow& series : series_) {
    if (std::exchange(series.durable, true)) continue;
    ++durable_series_;
    ++recovered_.series;
  }
  return ok();
}

Status Catalog::recover_numbers() {
  const auto namespaces = static_cast<std::uint32_t>(namespaces_.size());
  for (std::uint32_t row = 0; row < namespaces; ++row) EC_TRY(recover_numbers_of(row));
  pass_over_numbers_of_rules();
  EC_TRY(write_recovered());
  recovery_.reset();
  const auto mark = engine_.find_namespace(kRepairedNamespace);
  return mark.ok() ? engine_.drop_namespace(mark->id) : ok();
}

}  // namespace edgecase::catalog
