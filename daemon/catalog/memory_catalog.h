// The Catalog: tables of namespaces, devices and series in memory, and their records in the engine.
//
// Invariants: rows are only ever added, so row numbers are stable; the row of what was dropped or
// erased has no name, and what belongs to it counts no more; a series' records travel with
// its device's until that one is durable, so a durable series has a durable device. Locks: `mutex_`
// guards the tables, shared for lookups, and is never held across I/O; `creation_mutex_` makes
// namespaces one at a time and is held while the engine does so. Order: creation_mutex_, then
// mutex_.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/identity_table.h"
#include "catalog/name_index.h"
#include "catalog/name_store.h"
#include "catalog/set_aside.h"
#include "wire/names.h"

namespace edgecase::catalog {

struct RecordKey;  // catalog_format.h

// Names that begin with `_` are the store's own.
inline bool is_visible(std::string_view namespace_name) {
  return !namespace_name.starts_with('_') || namespace_name == wire::kRejectedNamespace;
}

class MemoryCatalog final : public Catalog {
 public:
  MemoryCatalog(Engine& engine, const CatalogLimits& limits, std::uint64_t hash_seed)
      : engine_(engine), limits_(limits), seed_(hash_seed) {}

  // Before anything else, once.
  Status load();

  std::vector<Refusal> unfit(std::span<const wire::Reading> readings) const override;
  Result<NamespaceId> ensure_namespace(std::string_view name) override;
  Status drop_namespace(std::string_view name) override;
  std::vector<std::string> namespaces() const override;
  Status resolve(std::span<const wire::Reading> readings, std::vector<SeriesId>& ids,
                 CatalogAdditions& additions, SeriesMemo* earlier) override;
  void find_ids(std::span<const wire::Reading* const> readings,
                std::vector<SeriesId>& ids) const override;
  void confirm(const CatalogAdditions& additions) override;
  Result<SeriesEntry> find(std::string_view namespace_name, std::string_view device,
                           std::string_view sensor) const override;
  std::vector<SeriesEntry> select(std::string_view namespace_name,
                                  const wire::Selector& selector) const override;
  std::vector<SeriesRow> select_rows(std::string_view namespace_name,
                                     const wire::Selector& selector) const override;
  Result<SeriesEntry> series_at(SeriesRow row) const override;
  std::vector<DeviceEntry> devices(std::string_view namespace_name,
                                   std::string_view device_glob) const override;
  std::uint32_t device_rows() const override;
  Result<DeviceEntry> device_at(std::uint32_t row) const override;
  bool may_be(std::string_view namespace_name, std::string_view device, std::string_view sensor,
              const wire::SeriesIdentity& identity) const override;
  bool has_old(std::string_view namespace_name, std::string_view device,
               std::string_view prefix) const override;
  bool has_namespace(std::string_view name) const override;
  std::vector<std::uint32_t> select_device_rows(std::string_view namespace_name,
                                                std::string_view device_glob) const override;
  Status plan_erasure(const Erased& erased, const SpanTaker& take,
                      WriteBatch& batch) const override;
  void forget(const Erased& erased) override;
  std::uint64_t generation() const override { return generation_.load(); }
  std::size_t device_count() const override;
  std::size_t series_count() const override;
  std::uint64_t memory_bytes() const override;
  RecoveredNames recovered() const override { return recovered_; }
  bool is_damaged() const override { return is_damaged_; }

 private:
  struct NamespaceRow {
    std::string name;
    NamespaceId id = 0;
    std::uint32_t next_device = 1;
    std::uint32_t last_device = kNoRow;  // the row added last
    bool is_marked = false;  // next_device is kept on the drive, since a device was erased
  };
  struct DeviceRow {
    std::string_view name;  // in names_, as that of a sensor
    std::uint32_t namespace_row = 0;
    std::uint32_t id = 0;
    std::uint32_t next_sensor = 1;
    bool durable = false;
    std::uint32_t last_series = kNoRow;  // the row added last
    std::uint32_t before = kNoRow;       // the row of the same namespace that was added before
  };
  struct SensorRow {
    std::string_view name;
    std::uint32_t device_row = 0;
    std::uint32_t id = 0;
    bool durable = false;
    std::uint32_t before = kNoRow;  // the row of the same device that was added before
    IdentityTable::Handle identity = IdentityTable::kUnknown;
  };
  // Neighbours in a batch mostly share namespace and device.
  struct Memo {
    std::string_view namespace_name, device;
    std::uint32_t namespace_row = kNoRow;
    std::uint32_t device_row = kNoRow;
  };

  // Of a store that was repaired, while it is loaded: rows by namespace's or device's row and id.
  struct Recovery {
    using Rows = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;
    Rows devices, series;
  };

  // All need mutex_, those that add need it alone.
  std::uint32_t find_namespace_row(std::string_view name) const;
  std::uint32_t find_device_row(std::uint32_t namespace_row, std::string_view name) const;
  std::uint32_t find_series_row(std::uint32_t device_row, std::string_view name) const;
  std::uint32_t find_series_row(const wire::Reading& reading, Memo& memo) const;
  // That of the reading's identity; `name` is what it is called, where that is not its name.
  std::uint32_t find_series_row(std::uint32_t device_row, const wire::Reading& reading,
                                std::string& name) const;
  bool is_of(const SensorRow& series, std::string_view sensor,
             const wire::SeriesIdentity& identity) const;
  bool tells_identity(std::uint32_t series_row, const wire::Reading& reading) const;
  void set_identity(std::uint32_t series_row, const wire::Reading& reading);
  Bytes record_of(const SensorRow& series) const;
  Bytes identity_bytes_of(const SensorRow& series) const;
  std::uint32_t add_namespace(std::string_view name, NamespaceId id);
  std::uint32_t add_device(std::uint32_t namespace_row, std::string_view name, std::uint32_t id);
  std::uint32_t add_series(std::uint32_t device_row, std::string_view name, std::uint32_t id);
  SeriesId id_of(const SensorRow& series) const;
  // What the tables take, with so much more in them.
  struct Growth {
    std::size_t devices = 0, series = 0;
    std::uint64_t names_bytes = 0;
  };
  std::uint64_t bytes_with(const Growth& growth) const;
  SeriesEntry entry_of(std::uint32_t series_row) const;
  void append_series_of(std::uint32_t device_row, std::string_view sensor_glob,
                        std::vector<SeriesRow>& rows) const;
  std::size_t counted_namespaces() const;
  Status names_limit() const;
  Status check_room(std::span<const wire::Reading> readings,
                    const std::vector<std::size_t>& missed) const;
  std::uint32_t find_or_add_series(const wire::Reading& reading);

  Status prepare_names(std::span<const wire::Reading> readings,
                       const std::vector<std::size_t>& missed);
  Status resolve_missed(std::span<const wire::Reading> readings,
                        const std::vector<std::size_t>& missed, std::vector<SeriesId>& ids,
                        CatalogAdditions& additions);
  Status open_namespace();
  Status load_records();
  Status mark_repaired_before();
  Status load_record(ByteView key, ByteView value);
  Status load_device(std::uint32_t namespace_row, std::uint32_t id, ByteView name, ByteView value);
  Status load_series(std::uint32_t namespace_row, const RecordKey& key, ByteView name,
                     ByteView value);
  Status load_identity(std::uint32_t series_row, ByteView value);
  // Of what may have lost its name (catalog_recovery.cc): the row, made if there is none.
  std::uint32_t recovered_device(std::uint32_t namespace_row, std::uint32_t id);
  std::uint32_t recovered_series(std::uint32_t device_row, std::uint32_t id);
  Status recover_numbers();
  Status recover_numbers_of(std::uint32_t namespace_row);
  void pass_over_numbers_of_rules();
  Status write_recovered();
  void note_damage();
  void recover_for_now();
  Status remove_records_of(NamespaceId id);
  void forget_rows_of(std::string_view name);
  void forget_series(std::uint32_t series_row);

  Engine& engine_;
  const CatalogLimits limits_;
  const std::uint64_t seed_;
  NamespaceId catalog_namespace_ = 0;

  std::mutex creation_mutex_;
  mutable std::shared_mutex mutex_;
  std::atomic<std::uint64_t> generation_{1};  // changed under mutex_
  std::vector<NamespaceRow> namespaces_;
  std::vector<DeviceRow> devices_;
  std::vector<SensorRow> series_;
  NameIndex device_index_, series_index_;
  NameStore names_;
  IdentityTable identities_{names_, seed_};
  // Series whose identity was met by this process and is not durable: it travels with their
  // readings until it is.
  std::unordered_set<std::uint32_t> untold_;
  std::size_t durable_devices_ = 0;
  std::size_t durable_series_ = 0;
  std::size_t dropped_devices_ = 0;  // rows
  std::size_t dropped_series_ = 0;
  SetAside set_aside_{engine_};
  // load() alone: the device whose sensors come, and namespaces whose drop was cut short.
  std::size_t loading_device_ = 0;
  std::vector<std::uint32_t> next_devices_;  // of FieldTag::NextDevices
  std::vector<NamespaceId> leftover_;
  std::unique_ptr<Recovery> recovery_;  // null: every number has its name
  bool is_damaged_ = false;             // set before anybody else sees it
  RecoveredNames recovered_;
};

}  // namespace edgecase::catalog
