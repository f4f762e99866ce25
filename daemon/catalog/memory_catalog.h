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
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/names.h"
#include "edgecase/mutex.h"
#include "wire/names.h"

namespace edgecase::catalog {

struct RecordKey;  // catalog_format.h

class MemoryCatalog final : public Catalog {
 public:
  MemoryCatalog(Engine& engine, const CatalogLimits& limits, std::uint64_t hash_seed)
      : engine_(engine), limits_(limits), seed_(hash_seed) {}

  // Before anything else, once: takes no lock, since nobody else sees the catalog yet.
  Status load() EC_NO_THREAD_SAFETY_ANALYSIS;

  std::vector<Refusal> unfit(std::span<const wire::Reading> readings) const override;
  Result<NamespaceId> ensure_namespace(std::string_view name) override
      EC_EXCLUDES(creation_mutex_, mutex_);
  Status drop_namespace(std::string_view name) override EC_EXCLUDES(creation_mutex_, mutex_);
  std::vector<std::string> namespaces() const override;
  Status resolve(std::span<const wire::Reading> readings, std::vector<SeriesId>& ids,
                 CatalogAdditions& additions, SeriesMemo* earlier, Origins origins) override;
  Result<std::span<const wire::Reading>> place(std::span<const wire::Reading> readings,
                                               Origins origins, Placed& placed,
                                               const OwnerOfName& owner) override;
  std::vector<std::string> placed_names(std::string_view namespace_name, std::string_view device,
                                        Origins origins) const override;
  std::map<OriginNumber, OriginCount> count_origins() const override;
  void find_ids(std::span<const wire::Reading* const> readings,
                std::vector<SeriesId>& ids) const override;
  void confirm(const CatalogAdditions& additions) override;
  Result<SeriesEntry> find(std::string_view namespace_name, std::string_view device,
                           std::string_view sensor) const override;
  std::vector<SeriesRow> rows_of(std::string_view namespace_name,
                                 std::span<const wire::Selector> selectors,
                                 RowOrder order = RowOrder::ByName) const override;
  Result<SeriesEntry> series_at(SeriesRow row) const override;
  bool read_names(SeriesRow row, std::string& namespace_name, std::string& device,
                  std::string& sensor) const override;
  std::uint32_t device_row_of(SeriesRow row) const override;
  bool read_series(SeriesRow row, SeriesEntry& entry, wire::Identity& identity) const override;
  void read_measurement(SeriesRow row, std::string& measurement) const override;
  std::vector<DeviceEntry> devices(std::string_view namespace_name,
                                   std::string_view device_glob) const override;
  std::uint32_t device_rows() const override;
  Result<DeviceEntry> device_at(std::uint32_t row) const override;
  std::string sensor_name(const wire::Reading& reading) const override;
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
    OriginNumber origin = kNoOrigin;
  };
  struct SensorRow {
    SensorNames::Name name;
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

  // While a repaired store is loaded: rows by namespace's or device's row and id.
  struct Recovery {
    using Rows = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;
    Rows devices, series;
  };

  std::uint32_t find_namespace_row(std::string_view name) const EC_REQUIRES_SHARED(mutex_);
  std::uint32_t find_device_row(std::uint32_t namespace_row, std::string_view name) const
      EC_REQUIRES_SHARED(mutex_);
  std::uint32_t find_series_row(std::uint32_t device_row, std::string_view name) const
      EC_REQUIRES_SHARED(mutex_);
  std::uint32_t find_series_row(const wire::Reading& reading, Memo& memo) const
      EC_REQUIRES_SHARED(mutex_);
  // The row of the reading's identity; `name` is what it is called, where that is not its name.
  std::uint32_t find_series_row(std::uint32_t device_row, const wire::Reading& reading,
                                std::string& name) const EC_REQUIRES_SHARED(mutex_);
  bool is_of(const SensorRow& series, std::string_view sensor,
             const wire::SeriesIdentity& identity) const EC_REQUIRES_SHARED(mutex_);
  bool tells_identity(std::uint32_t series_row, const wire::Reading& reading) const
      EC_REQUIRES_SHARED(mutex_);
  void set_identity(std::uint32_t series_row, const wire::Reading& reading) EC_REQUIRES(mutex_);
  Bytes record_of(const SensorRow& series) const EC_REQUIRES_SHARED(mutex_);
  Bytes record_of(std::uint32_t device_row, bool says_next) const EC_REQUIRES_SHARED(mutex_);
  // The device that the holder calls so. kNoRow: none yet; `name` is what it will be called.
  std::uint32_t find_placed(std::uint32_t namespace_row, std::string_view device, Origins origins,
                            const OwnerOfName& owner, std::string& name) const
      EC_REQUIRES_SHARED(mutex_);
  // Whether the holder may write to it; and nothing is to be recorded of it either.
  static bool is_of(const DeviceRow& device, Origins origins) {
    return origins.empty() || device.origin == kNoOrigin ||
           std::find(origins.begin(), origins.end(), device.origin) != origins.end();
  }
  bool is_whole(std::uint32_t device_row, Origins origins) const EC_REQUIRES_SHARED(mutex_) {
    return is_of(devices_[device_row], origins) &&
           (unclaimed_.empty() || !unclaimed_.contains(device_row));
  }
  void rename(std::span<const wire::Reading> readings, const std::vector<std::uint32_t>& rows,
              Placed& placed) const EC_EXCLUDES(mutex_);
  bool is_placed(std::uint32_t device_row, std::string_view device, Origins origins) const
      EC_REQUIRES_SHARED(mutex_);
  std::uint32_t claim(std::uint32_t namespace_row, std::string_view device, std::string_view name,
                      OriginNumber origin) EC_REQUIRES(mutex_);
  Bytes identity_bytes_of(const SensorRow& series) const EC_REQUIRES_SHARED(mutex_);
  std::uint32_t add_namespace(std::string_view name, NamespaceId id) EC_REQUIRES(mutex_);
  std::uint32_t add_device(std::uint32_t namespace_row, std::string_view name, std::uint32_t id,
                           OriginNumber origin = kNoOrigin) EC_REQUIRES(mutex_);
  std::uint32_t add_series(std::uint32_t device_row, std::string_view name, std::uint32_t id)
      EC_REQUIRES(mutex_);
  SeriesId id_of(const SensorRow& series) const EC_REQUIRES_SHARED(mutex_);
  // What the tables take, with so much more in them.
  struct Growth {
    std::size_t devices = 0, series = 0, tails = 0;
    std::uint64_t names_bytes = 0;
  };
  // Adds a name that is new; `tails` are those met before.
  void add_sensor_name(std::string_view name, std::set<std::string_view>& tails,
                       Growth& growth) const EC_REQUIRES_SHARED(mutex_);
  std::string name_of(const SensorRow& series) const EC_REQUIRES_SHARED(mutex_);
  std::uint64_t bytes_with(const Growth& growth) const EC_REQUIRES_SHARED(mutex_);
  SeriesEntry entry_of(std::uint32_t series_row) const EC_REQUIRES_SHARED(mutex_);
  void append_devices_of(std::uint32_t namespace_row, std::span<const wire::Selector> selectors,
                         std::vector<std::uint32_t>& devices) const EC_REQUIRES_SHARED(mutex_);
  void append_series_of(std::uint32_t device_row, std::span<const wire::Selector> selectors,
                        RowOrder order, std::vector<SeriesRow>& rows) const
      EC_REQUIRES_SHARED(mutex_);
  std::size_t counted_namespaces() const EC_REQUIRES_SHARED(mutex_);
  static Status count_limit(const std::string& what, std::size_t limit);
  Status names_limit() const;
  Status check_room(std::span<const wire::Reading> readings,
                    const std::vector<std::size_t>& missed) const EC_REQUIRES_SHARED(mutex_);
  std::uint32_t find_or_add_series(const wire::Reading& reading, Origins origins)
      EC_REQUIRES(mutex_);

  Status prepare_names(std::span<const wire::Reading> readings,
                       const std::vector<std::size_t>& missed);
  Status resolve_missed(std::span<const wire::Reading> readings,
                        const std::vector<std::size_t>& missed, std::vector<SeriesId>& ids,
                        CatalogAdditions& additions, Origins origins);
  Status open_namespace() EC_REQUIRES(mutex_);
  Status load_records() EC_REQUIRES(mutex_);
  Status mark_repaired_before();
  Status load_record(ByteView key, ByteView value) EC_REQUIRES(mutex_);
  Status load_device(std::uint32_t namespace_row, std::uint32_t id, ByteView name, ByteView value)
      EC_REQUIRES(mutex_);
  Status load_origin(std::uint32_t device_row, ByteView value) EC_REQUIRES(mutex_);
  Status load_series(std::uint32_t namespace_row, const RecordKey& key, ByteView name,
                     ByteView value) EC_REQUIRES(mutex_);
  Status load_identity(std::uint32_t series_row, ByteView value) EC_REQUIRES(mutex_);
  // The row of what may have lost its name (catalog_loading.cc), made if there is none.
  std::uint32_t recovered_device(std::uint32_t namespace_row, std::uint32_t id) EC_REQUIRES(mutex_);
  std::uint32_t recovered_series(std::uint32_t device_row, std::uint32_t id) EC_REQUIRES(mutex_);
  Status recover_numbers() EC_REQUIRES(mutex_);
  Status recover_numbers_of(std::uint32_t namespace_row) EC_REQUIRES(mutex_);
  void pass_over_numbers_of_rules() EC_REQUIRES(mutex_);
  Status write_recovered() EC_REQUIRES(mutex_);
  void note_damage() EC_REQUIRES(mutex_);
  void recover_for_now() EC_REQUIRES(mutex_);
  Status remove_records_of(NamespaceId id);
  void forget_rows_of(std::string_view name) EC_EXCLUDES(mutex_);
  void forget_series(std::uint32_t series_row) EC_REQUIRES(mutex_);

  Engine& engine_;
  const CatalogLimits limits_;
  const std::uint64_t seed_;
  NamespaceId catalog_namespace_ = 0;

  Mutex creation_mutex_;
  mutable SharedMutex mutex_;
  std::atomic<std::uint64_t> generation_{1};  // changed under mutex_
  std::vector<NamespaceRow> namespaces_ EC_GUARDED_BY(mutex_);
  std::vector<DeviceRow> devices_ EC_GUARDED_BY(mutex_);
  std::vector<SensorRow> series_ EC_GUARDED_BY(mutex_);
  NameIndex device_index_ EC_GUARDED_BY(mutex_);
  NameIndex series_index_ EC_GUARDED_BY(mutex_);
  NameStore names_ EC_GUARDED_BY(mutex_);
  SensorNames sensor_names_ EC_GUARDED_BY(mutex_){names_, seed_};
  IdentityTable identities_ EC_GUARDED_BY(mutex_){names_, seed_};
  // Series whose identity was met by this process and is not durable: it travels with their
  // readings until it is.
  std::unordered_set<std::uint32_t> untold_ EC_GUARDED_BY(mutex_);
  // Devices of others than this store, or none: where there is none, names are as they come.
  bool has_origins_ EC_GUARDED_BY(mutex_) = false;
  // What their origin calls devices that are called otherwise here, by row; and durable ones whose
  // record does not say their origin yet.
  std::unordered_map<std::uint32_t, std::string> names_there_ EC_GUARDED_BY(mutex_);
  std::unordered_set<std::uint32_t> unclaimed_ EC_GUARDED_BY(mutex_);
  // Whether a series may have got a hash into its name, since another identity had it.
  bool has_hashed_names_ EC_GUARDED_BY(mutex_) = false;
  std::size_t durable_devices_ EC_GUARDED_BY(mutex_) = 0;
  std::size_t durable_series_ EC_GUARDED_BY(mutex_) = 0;
  std::size_t dropped_devices_ EC_GUARDED_BY(mutex_) = 0;  // rows
  std::size_t dropped_series_ EC_GUARDED_BY(mutex_) = 0;
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
