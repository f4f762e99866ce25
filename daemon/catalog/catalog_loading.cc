// MemoryCatalog's beginning: from the engine's records to tables.
#include <algorithm>

#include "catalog/catalog_format.h"
#include "catalog/memory_catalog.h"
#include "wire/names.h"

namespace edgecase::catalog {

Status MemoryCatalog::load() {
  EC_TRY(open_namespace());
  for (const NamespaceInfo& info : engine_.namespaces()) {
    const bool visible = !info.name.starts_with('_') || info.name == wire::kRejectedNamespace;
    if (!visible) continue;
    NamespaceRow& row = namespaces_[add_namespace(info.name, info.id)];
    for (std::size_t i = 0; i + 1 < next_devices_.size(); i += 2) {
      if (next_devices_[i] != info.id) continue;
      row.next_device = next_devices_[i + 1];
      row.is_marked = true;
    }
  }
  return load_records();
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
  if (record.status().code() != StatusCode::NotFound) return record.status();
  // Without this record there is none: the first start, or one that was cut before this write.
  EC_ASSIGN_OR_RETURN(const RangeStats stats, engine_.range_stats(catalog_namespace_, {}, {}));
  if (stats.entries != 0) return corruption("catalog: records, but no layout record");
  WriteBatch batch;
  batch.put(catalog_namespace_, key,
            encode_record(FieldTag::LayoutVersion, Bytes(1, static_cast<char>(kLayoutVersion))));
  return engine_.write(batch, Durability::Sync);
}

Status MemoryCatalog::load_records() {
  EC_ASSIGN_OR_RETURN(const auto iterator, engine_.scan(catalog_namespace_, {}, {}));
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
  const std::string where = "catalog: namespace " + std::to_string(key.namespace_id) + ", device " +
                            std::to_string(key.device);
  if (namespace_row == kNoRow) {
    if (std::find(leftover_.begin(), leftover_.end(), key.namespace_id) != leftover_.end())
      return ok();
    // Its drop was durable, and cut short before its names were removed; or it was never there.
    const auto scanned = engine_.scan(key.namespace_id, {}, {});
    if (scanned.status().code() != StatusCode::NotFound)
      return corruption(where + ": there is no such namespace");
    leftover_.push_back(key.namespace_id);
    return ok();
  }
  if (key.kind == RecordKind::Device) {
    if (find_device_row(namespace_row, name) != kNoRow) {
      return corruption(where + ": its name is taken");
    }
    DeviceRow& device = devices_[add_device(namespace_row, name, key.device)];
    device.durable = true;
    EC_ASSIGN_OR_RETURN(const ByteView next, find_record_field(value, FieldTag::NextSensor));
    for (const std::uint32_t id : decode_ids(next)) device.next_sensor = id;
    ++durable_devices_;
    return ok();
  }
  // A device's sensors follow one another, and devices were loaded in this order too.
  while (loading_device_ < devices_.size() &&
         (devices_[loading_device_].namespace_row != namespace_row ||
          devices_[loading_device_].id != key.device)) {
    ++loading_device_;
  }
  if (loading_device_ == devices_.size()) return corruption(where + ": sensors of no device");
  const auto device_row = static_cast<std::uint32_t>(loading_device_);
  if (find_series_row(device_row, name) != kNoRow) {
    return corruption(where + ": two sensors of one name");
  }
  series_[add_series(device_row, name, key.sensor)].durable = true;
  ++durable_series_;
  return ok();
}

}  // namespace edgecase::catalog
