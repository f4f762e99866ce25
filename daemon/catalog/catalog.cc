#include "catalog/catalog.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "catalog/catalog_format.h"
#include "catalog/tier_spaces.h"
#include "edgecase/machine.h"
#include "wire/names.h"

namespace edgecase::catalog {
namespace {

// Readings are keyed by series and time, and a group holds one device's worth of one series. Views
// lie beside the metadata: there when the values drive is away, and never evicted.
NamespaceOptions reading_namespace_options(std::string_view name) {
  NamespaceOptions options;
  options.placement = name == wire::kViewsNamespace ? Placement::Metadata : Placement::Values;
  options.codec = GroupCodec::Series;
  options.scope_bytes = 4;  // the device
  return options;
}

// In a smaller batch most series come once: each reading is looked up.
constexpr std::size_t kRememberedMin = 1'024;

// By a quarter: twice as many would be more than there is room for.
template <typename Row>
std::size_t room_for(const std::vector<Row>& rows, std::size_t more) {
  const std::size_t needed = rows.size() + more;
  if (needed <= rows.capacity()) return rows.capacity();
  return std::max(needed, rows.capacity() + rows.capacity() / 4 + 16);
}

}  // namespace

void CatalogAdditions::append_to(WriteBatch& batch) {
  for (; appended_ < records_.size(); ++appended_)
    batch.put(catalog_namespace_, records_[appended_].key, records_[appended_].value);
}

std::vector<SeriesRow> CatalogAdditions::series() const {
  return {series_.begin(), series_.end()};
}

Result<std::unique_ptr<Catalog>> Catalog::open(Engine& engine, const CatalogLimits& limits) {
  std::unique_ptr<Catalog> catalog(new Catalog(engine, limits, system_random().next()));
  EC_TRY(catalog->load());
  return catalog;
}

std::uint32_t Catalog::find_namespace_row(std::string_view name) const {
  if (name.empty()) return kNoRow;  // a dropped one's
  for (std::size_t row = 0; row < namespaces_.size(); ++row) {
    if (namespaces_[row].name == name) return static_cast<std::uint32_t>(row);
  }
  return kNoRow;
}

std::uint32_t Catalog::find_device_row(std::uint32_t namespace_row, std::string_view name) const {
  const DeviceRow* const devices = devices_.data();
  return device_index_.find(hash_name(seed_, namespace_row, name), [&](std::uint32_t row) {
    return devices[row].namespace_row == namespace_row && devices[row].name == name;
  });
}

std::uint32_t Catalog::find_series_row(std::uint32_t device_row, std::string_view name) const {
  const SensorRow* const series = series_.data();
  const SensorNames* const names = &sensor_names_;
  return series_index_.find(hash_name(seed_, device_row, name), [&](std::uint32_t row) {
    return series[row].device_row == device_row && names->is(series[row].name, name);
  });
}

std::uint32_t Catalog::find_series_row(const wire::Reading& reading, Memo& memo) const {
  if (memo.namespace_row == kNoRow || reading.namespace_name != memo.namespace_name) {
    memo.namespace_row = find_namespace_row(reading.namespace_name);
    memo.namespace_name = reading.namespace_name;
    memo.device_row = kNoRow;
    if (memo.namespace_row == kNoRow) return kNoRow;
  }
  if (memo.device_row == kNoRow || reading.device != memo.device) {
    memo.device_row = find_device_row(memo.namespace_row, reading.device);
    memo.device = reading.device;
    if (memo.device_row == kNoRow) return kNoRow;
  }
  std::string name;
  return find_series_row(memo.device_row, reading, name);
}

std::uint32_t Catalog::add_namespace(std::string_view name, NamespaceId id) {
  namespaces_.push_back({std::string(name), id, 1});
  return static_cast<std::uint32_t>(namespaces_.size() - 1);
}

std::uint32_t Catalog::add_device(std::uint32_t namespace_row, std::string_view name,
                                  std::uint32_t id, OriginNumber origin) {
  const auto row = static_cast<std::uint32_t>(devices_.size());
  devices_.reserve(room_for(devices_, 1));
  devices_.push_back({names_.keep(name), namespace_row, id, 1, false});
  devices_.back().origin = origin;
  has_origins_ = has_origins_ || (origin != kOwnOrigin && origin != kNoOrigin);
  device_index_.insert(hash_name(seed_, namespace_row, name), row);
  NamespaceRow& owner = namespaces_[namespace_row];
  owner.next_device = std::max(owner.next_device, id + 1);
  devices_.back().before = std::exchange(owner.last_device, row);
  return row;
}

std::uint32_t Catalog::add_series(std::uint32_t device_row, std::string_view name,
                                  std::uint32_t id) {
  const auto row = static_cast<std::uint32_t>(series_.size());
  series_.reserve(room_for(series_, 1));
  series_.push_back({sensor_names_.keep(name), device_row, id, false});
  has_hashed_names_ = has_hashed_names_ || name.find('~') != std::string_view::npos;
  series_index_.insert(hash_name(seed_, device_row, name), row);
  DeviceRow& owner = devices_[device_row];
  owner.next_sensor = std::max(owner.next_sensor, id + 1);
  series_.back().before = std::exchange(owner.last_series, row);
  return row;
}

std::uint64_t Catalog::bytes_with(const Growth& growth) const {
  return room_for(devices_, growth.devices) * sizeof(DeviceRow) +
         room_for(series_, growth.series) * sizeof(SensorRow) +
         device_index_.memory_bytes(growth.devices) + series_index_.memory_bytes(growth.series) +
         sensor_names_.memory_bytes(growth.tails) + identities_.memory_bytes() +
         names_.used_bytes() + growth.names_bytes;
}

std::string Catalog::name_of(const SensorRow& series) const {
  std::string name;
  sensor_names_.read(series.name, name);
  return name;
}

std::uint64_t Catalog::memory_bytes() const {
  const ReaderLock lock(mutex_);
  return bytes_with({});
}

SeriesId Catalog::id_of(const SensorRow& series) const {
  const DeviceRow& device = devices_[series.device_row];
  return {namespaces_[device.namespace_row].id, device.id, series.id};
}

Result<NamespaceId> Catalog::ensure_namespace(std::string_view name) {
  {
    const ReaderLock lock(mutex_);
    const std::uint32_t row = find_namespace_row(name);
    if (row != kNoRow) return namespaces_[row].id;
  }
  EC_TRY(wire::check_name("namespace", name));
  if (!wire::is_readable_namespace(name)) {
    return invalid_argument("namespace " + std::string(name) +
                            ": names that begin with _ are the store's own");
  }
  const MutexLock creation(creation_mutex_);
  {
    const ReaderLock lock(mutex_);
    const std::uint32_t row = find_namespace_row(name);
    if (row != kNoRow) return namespaces_[row].id;
    if (counted_namespaces() >= limits_.namespaces && !name.starts_with('_')) {
      return count_limit("namespaces", limits_.namespaces);
    }
  }
  EC_ASSIGN_OR_RETURN(const NamespaceId id,
                      engine_.create_namespace(name, reading_namespace_options(name)));
  const WriterLock lock(mutex_);
  add_namespace(name, id);
  return id;
}

Status Catalog::drop_namespace(std::string_view name) {
  if (name.starts_with('_'))
    return not_allowed("namespace " + std::string(name) +
                       ": names that begin with _ are the store's own");
  const MutexLock creation(creation_mutex_);
  NamespaceId id = 0;
  {
    const ReaderLock lock(mutex_);
    const std::uint32_t row = find_namespace_row(name);
    if (row == kNoRow && name == wire::kDefaultNamespace) return ok();  // empty already
    if (row == kNoRow) return not_found("no namespace " + std::string(name));
    id = namespaces_[row].id;
  }
  // What waits to be noted of it (CommitCompanion) is durable first; a full drive has room for it.
  WriteBatch nothing;
  nothing.set_makes_room();
  EC_TRY(engine_.write(nothing, Durability::Sync));
  EC_TRY(drop_tier_spaces(engine_, id));
  EC_TRY(engine_.drop_namespace(id));
  forget_rows_of(name);
  // Cut short here, the records are removed by the next load().
  return remove_records_of(id);
}

void Catalog::forget_rows_of(std::string_view name) {
  const WriterLock lock(mutex_);
  const std::uint32_t namespace_row = find_namespace_row(name);
  ++generation_;
  namespaces_[namespace_row].name.clear();
  const auto belongs = [&](std::uint32_t device_row) EC_REQUIRES_SHARED(mutex_) {
    return devices_[device_row].namespace_row == namespace_row;
  };
  for (DeviceRow& device : devices_) {
    if (device.namespace_row != namespace_row || device.name.empty()) continue;
    ++dropped_devices_;
    if (std::exchange(device.durable, false)) --durable_devices_;
  }
  for (SensorRow& series : series_) {
    if (!belongs(series.device_row) || series.name.empty()) continue;
    ++dropped_series_;
    if (std::exchange(series.durable, false)) --durable_series_;
  }
}

// For good, as an erasure does: nobody can name them any more, and a full drive has room for it.
Status Catalog::remove_records_of(NamespaceId id) {
  WriteBatch batch;
  for (const RecordKind kind : {RecordKind::Device, RecordKind::Sensor}) {
    batch.erase_range(catalog_namespace_, encode_record_key({kind, id, 0, 0}),
                      encode_record_key({kind, id + 1, 0, 0}));
  }
  return engine_.write(batch, Durability::Sync);
}

std::vector<std::string> Catalog::namespaces() const {
  std::vector<std::string> names;
  {
    const ReaderLock lock(mutex_);
    for (const NamespaceRow& row : namespaces_) {
      if (!row.name.empty()) names.push_back(row.name);
    }
    if (find_namespace_row(wire::kDefaultNamespace) == kNoRow)
      names.emplace_back(wire::kDefaultNamespace);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Catalog::has_namespace(std::string_view name) const {
  if (name == wire::kDefaultNamespace) return true;
  const ReaderLock lock(mutex_);
  return find_namespace_row(name) != kNoRow;
}

Status Catalog::resolve(std::span<const wire::Reading> readings, std::vector<SeriesId>& ids,
                        CatalogAdditions& additions, SeriesMemo* earlier, Origins origins) {
  ids.resize(readings.size());
  std::vector<std::size_t> missed;
  SeriesMemo own;
  SeriesMemo& known = earlier == nullptr ? own : *earlier;
  const bool remember = readings.size() >= kRememberedMin;
  {
    const ReaderLock lock(mutex_);
    known.begin_look_up(generation_);
    Memo memo;
    for (std::size_t i = 0; i < readings.size(); ++i) {
      if (const SeriesId* const id = known.find(readings[i])) {
        ids[i] = *id;
        continue;
      }
      const std::uint32_t row = find_series_row(readings[i], memo);
      const bool is_new =
          row == kNoRow || !series_[row].durable || tells_identity(row, readings[i]);
      if (is_new || !is_whole(series_[row].device_row, origins)) {
        missed.push_back(i);
      } else {
        const SensorRow& series = series_[row];
        const DeviceRow& device = devices_[series.device_row];
        ids[i] = {namespaces_[device.namespace_row].id, device.id, series.id};
        known.note(readings[i], ids[i], remember);
      }
    }
  }
  if (missed.empty()) return ok();
  EC_TRY(prepare_names(readings, missed));
  return resolve_missed(readings, missed, ids, additions, origins);
}

void Catalog::find_ids(std::span<const wire::Reading* const> readings,
                       std::vector<SeriesId>& ids) const {
  ids.assign(readings.size(), {});
  const ReaderLock lock(mutex_);
  Memo memo;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const std::uint32_t row = find_series_row(*readings[i], memo);
    if (row == kNoRow || !series_[row].durable) continue;
    const DeviceRow& device = devices_[series_[row].device_row];
    ids[i] = {namespaces_[device.namespace_row].id, device.id, series_[row].id};
  }
}

// Everything that can be wrong with a name is found before anything is created.
Status Catalog::prepare_names(std::span<const wire::Reading> readings,
                              const std::vector<std::size_t>& missed) {
  const auto check = [&](std::size_t index, std::string_view what, std::string_view name) {
    const Status status = wire::check_name(what, name);
    if (status.ok()) return status;
    return status.with_context("reading " + std::to_string(index + 1) + ": ");
  };
  for (const std::size_t i : missed) {
    EC_TRY(check(i, "namespace", readings[i].namespace_name));
    EC_TRY(check(i, "device", readings[i].device));
    EC_TRY(check(i, "sensor", readings[i].sensor));
  }
  std::string_view ensured;
  for (const std::size_t i : missed) {
    if (readings[i].namespace_name == ensured) continue;
    EC_TRY(ensure_namespace(readings[i].namespace_name).status());
    ensured = readings[i].namespace_name;
  }
  return ok();
}

Status Catalog::resolve_missed(std::span<const wire::Reading> readings,
                               const std::vector<std::size_t>& missed, std::vector<SeriesId>& ids,
                               CatalogAdditions& additions, Origins origins) {
  additions.catalog_namespace_ = catalog_namespace_;
  const WriterLock lock(mutex_);
  for (const std::size_t i : missed) {
    if (find_namespace_row(readings[i].namespace_name) == kNoRow)
      return busy("namespace " + std::string(readings[i].namespace_name) +
                  " was dropped meanwhile");
  }
  EC_TRY(check_room(readings, missed));
  additions.readings_ += missed.size();
  for (const std::size_t i : missed) {
    const std::uint32_t series_row = find_or_add_series(readings[i], origins);
    const SensorRow& series = series_[series_row];
    const DeviceRow& device = devices_[series.device_row];
    if (!is_of(device, origins) && !readings[i].namespace_name.starts_with('_'))
      return busy("a device has just become another store's");
    ids[i] = id_of(series);
    RecordKey key{RecordKind::Device, ids[i].namespace_id, device.id, 0};
    const bool is_told = device.durable && !unclaimed_.contains(series.device_row);
    if (!is_told && additions.devices_.insert(series.device_row).second) {
      additions.records_.push_back({true, series.device_row, encode_record_key(key),
                                    record_of(series.device_row, device.durable)});
    }
    const bool is_whole = series.durable && !untold_.contains(series_row);
    if (!is_whole && additions.series_.insert(series_row).second) {
      key.kind = RecordKind::Sensor;
      key.sensor = series.id;
      additions.records_.push_back({false, series_row, encode_record_key(key), record_of(series)});
    }
  }
  return ok();
}

std::uint32_t Catalog::find_or_add_series(const wire::Reading& reading, Origins origins) {
  const std::uint32_t namespace_row = find_namespace_row(reading.namespace_name);
  std::uint32_t device_row = find_device_row(namespace_row, reading.device);
  if (device_row == kNoRow) {
    device_row = add_device(namespace_row, reading.device, namespaces_[namespace_row].next_device,
                            origins.empty() ? kNoOrigin : origins.front());
  }
  std::string name(reading.sensor);
  std::uint32_t series_row = find_series_row(device_row, reading, name);
  if (series_row == kNoRow) {
    series_row = add_series(device_row, name, devices_[device_row].next_sensor);
    set_identity(series_row, reading);
  } else if (reading.identity != nullptr &&
             series_[series_row].identity == IdentityTable::kUnknown) {
    set_identity(series_row, reading);
    untold_.insert(series_row);
  }
  return series_row;
}

void Catalog::confirm(const CatalogAdditions& additions) {
  if (additions.empty()) return;
  set_aside_.tell(memory_bytes());
  const WriterLock lock(mutex_);
  for (const CatalogAdditions::Record& record : additions.records_) {
    const std::uint32_t device_row = record.is_device ? record.row : series_[record.row].device_row;
    const DeviceRow& owner = devices_[device_row];
    if (namespaces_[owner.namespace_row].name.empty() || owner.name.empty()) continue;  // gone
    (record.is_device ? unclaimed_ : untold_).erase(record.row);
    bool& durable = record.is_device ? devices_[record.row].durable : series_[record.row].durable;
    if (durable) continue;  // another batch carried it too
    durable = true;
    ++(record.is_device ? durable_devices_ : durable_series_);
  }
}

std::size_t Catalog::device_count() const {
  const ReaderLock lock(mutex_);
  return durable_devices_;
}

std::size_t Catalog::series_count() const {
  const ReaderLock lock(mutex_);
  return durable_series_;
}

// The catalog's end of an erasure: records that go, numbers that stay used.

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
