// MemoryCatalog after a repair: numbers under which readings lie and whose names are lost get names
// in their place, so that they are never given to another device and their readings can be had.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "catalog/catalog_format.h"
#include "catalog/memory_catalog.h"
#include "edgecase/store_check.h"
#include "wire/reading_key.h"

namespace edgecase::catalog {
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

std::uint32_t MemoryCatalog::recovered_device(std::uint32_t namespace_row, std::uint32_t id) {
  const auto known = recovery_->devices.find({namespace_row, id});
  if (known != recovery_->devices.end()) return known->second;
  const std::string name = placeholder(id, [&](const std::string& each) EC_REQUIRES_SHARED(mutex_) {
    return find_device_row(namespace_row, each) != kNoRow;
  });
  const std::uint32_t row = add_device(namespace_row, name, id);
  recovery_->devices.emplace(std::pair(namespace_row, id), row);
  return row;
}

std::uint32_t MemoryCatalog::recovered_series(std::uint32_t device_row, std::uint32_t id) {
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
void MemoryCatalog::note_damage() {
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
void MemoryCatalog::recover_for_now() {
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
Status MemoryCatalog::recover_numbers_of(std::uint32_t namespace_row) {
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
void MemoryCatalog::pass_over_numbers_of_rules() {
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

Status MemoryCatalog::write_recovered() {
  constexpr std::uint32_t kRecordsPerBatch = 10'000;
  WriteBatch batch;
  const auto write_if = [&](bool full) -> Status {
    if (!full) return ok();
    EC_TRY(engine_.write(batch, Durability::Sync));
    batch.clear();
    return ok();
  };
  for (DeviceRow& device : devices_) {
    if (device.durable) continue;
    Bytes record = encode_record(FieldTag::Name, device.name);
    Bytes next;
    append_id(device.next_sensor, next);
    append_record_field(FieldTag::NextSensor, next, record);
    batch.put(
        catalog_namespace_,
        encode_record_key({RecordKind::Device, namespaces_[device.namespace_row].id, device.id, 0}),
        record);
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

Status MemoryCatalog::recover_numbers() {
  const auto namespaces = static_cast<std::uint32_t>(namespaces_.size());
  for (std::uint32_t row = 0; row < namespaces; ++row) EC_TRY(recover_numbers_of(row));
  pass_over_numbers_of_rules();
  EC_TRY(write_recovered());
  recovery_.reset();
  const auto mark = engine_.find_namespace(kRepairedNamespace);
  return mark.ok() ? engine_.drop_namespace(mark->id) : ok();
}

}  // namespace edgecase::catalog
