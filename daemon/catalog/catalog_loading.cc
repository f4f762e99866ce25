// MemoryCatalog's beginning: from the engine's records to tables.
#include <algorithm>
#include <utility>

#include "catalog/catalog_format.h"
#include "catalog/memory_catalog.h"
#include "edgecase/store_check.h"
#include "wire/names.h"

namespace edgecase::catalog {
namespace {

std::string where(NamespaceId id, std::uint32_t device) {
  return "catalog: namespace " + std::to_string(id) + ", device " + std::to_string(device);
}

}  // namespace

Status MemoryCatalog::load() {
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

Status MemoryCatalog::open_namespace() {
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
Status MemoryCatalog::mark_repaired_before() {
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

Status MemoryCatalog::load_records() {
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

Status MemoryCatalog::load_record(ByteView key_bytes, ByteView value) {
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

Status MemoryCatalog::load_device(std::uint32_t namespace_row, std::uint32_t id, ByteView name,
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
  return ok();
}

Status MemoryCatalog::load_series(std::uint32_t namespace_row, const RecordKey& key, ByteView name,
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

}  // namespace edgecase::catalog
