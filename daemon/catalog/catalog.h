// Names to numbers: the devices and series of every namespace, kept in memory and, on the metadata
// drive, in the engine's namespace `_catalog` (Placement::Metadata). Thread-safe.
//
// A reading's engine key is device id (4 bytes), sensor id (4), time (8), all big-endian, the time
// with its sign bit flipped; its namespace is the engine namespace of the same name. Device ids
// count within a namespace, sensor ids within a device; neither is used twice. Record layout:
// catalog_format.h.
//
// Invariants: rows are only ever added, so row numbers are stable; the row of what was dropped or
// erased has no name, and what belongs to it counts no more; a series' records travel with
// its device's until that one is durable, so a durable series has a durable device. Locks: `mutex_`
// guards the tables, shared for lookups, and is never held across I/O; `creation_mutex_` makes
// namespaces one at a time and is held while the engine does so. Order: creation_mutex_, then
// mutex_. One class with many methods: each is a question about the same tables under one lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "catalog/names.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "wire/names.h"
#include "wire/reading.h"
#include "wire/selector.h"

namespace edgecase::catalog {

// Sets memory for tables aside in the engine, which is told in steps. Thread-safe.
class SetAside {
 public:
  static constexpr std::uint64_t kStepBytes = 256u << 10;

  explicit SetAside(Engine& engine) : engine_(engine) {}

  void tell(std::uint64_t bytes) EC_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (std::max(bytes, told_bytes_) - std::min(bytes, told_bytes_) < kStepBytes) return;
    engine_.set_aside(told_bytes_, bytes);
    told_bytes_ = bytes;
  }

 private:
  Engine& engine_;
  Mutex mutex_;
  std::uint64_t told_bytes_ EC_GUARDED_BY(mutex_) = 0;
};

inline constexpr std::string_view kCatalogNamespace = "_catalog";

struct Erased;     // below
struct KeySpan;    // below
struct RecordKey;  // catalog_format.h

// Is told of the ranges of keys that are to go, one after another; an error ends the plan.
using SpanTaker = std::function<Status(KeySpan span)>;

// Numbers of one holder; new devices get the first. None: a copy, which goes where its names say.
using Origins = std::span<const OriginNumber>;
inline constexpr OriginNumber kOwnOrigins[] = {kOwnOrigin};

struct SeriesEntry {
  std::string namespace_name;
  std::string device;
  std::string sensor;
  SeriesId id;
  // Its identity's bytes (wire/names.h); empty: that of its names.
  Bytes identity = {};
};

// The identity of an entry: that of its names where it came without one. Corruption: its bytes are
// none.
Result<wire::Identity> identity_of(const SeriesEntry& entry);

// Whose a device is, and what it is called there; empty: as here.
struct DeviceOrigin {
  std::string namespace_name, device;
  OriginNumber origin = kNoOrigin;
  std::string name_there;
};

struct DeviceEntry {
  std::string namespace_name, device;
  NamespaceId namespace_id = 0;
  std::uint32_t id = 0;
  OriginNumber origin = kNoOrigin;
};

using SeriesRow = std::uint32_t;
inline constexpr std::uint32_t kNoDevice = UINT32_MAX;
enum class RowOrder : unsigned char { ByName, Any };

// Reaching one is LimitReached, with the setting's name in the message.
struct CatalogLimits {
  std::size_t namespaces = 256;
  std::size_t devices = 20'000;  // all namespaces together
  std::size_t series = 100'000;
  // What the tables may take; what they do take is set aside in the engine.
  std::uint64_t memory_bytes = UINT64_MAX;
};

// The records of devices and series that readings need and that are not durable yet. Owned by one
// thread: filled by resolve(), of one batch of readings or of several that are written together,
// written with them, then confirmed.
class CatalogAdditions {
 public:
  // Adds the records that it has not added yet to `batch`, which must be the one that holds their
  // readings, or come before it.
  void append_to(WriteBatch& batch);
  bool empty() const { return records_.empty(); }
  std::size_t size() const { return records_.size(); }
  // How many of the readings were of series that are not durable.
  std::size_t readings() const { return readings_; }
  // The series among them, for Catalog::series_at() once they are confirmed.
  std::vector<SeriesRow> series() const;
  void clear() { *this = {}; }

 private:
  friend class Catalog;
  struct Record {
    bool is_device;
    std::uint32_t row;  // in the catalog's table of devices or of series
    Bytes key, value;
  };
  NamespaceId catalog_namespace_ = 0;
  std::vector<Record> records_;
  std::size_t appended_ = 0;
  std::size_t readings_ = 0;
  std::unordered_set<std::uint32_t> devices_, series_;  // rows that have their record
};

// Numbers under which there was something, and whose names were lost: what has a name in their
// place since this start.
struct RecoveredNames {
  std::size_t devices = 0;
  std::size_t series = 0;
};

// A reading that can never be stored.
struct Refusal {
  std::size_t reading = 0;
  Status why;
};

class Catalog {
 public:
  // Reads every record. After a repair (edgecase/store_check.h) it looks up under which numbers
  // readings lie, with a seek for each series, and names those that have none `recovered-<number>`:
  // durable on return. Errors: the engine's; Corruption for records that contradict each other;
  // Unsupported for a newer layout.
  static Result<std::unique_ptr<Catalog>> open(Engine& engine, const CatalogLimits& limits);

  // Creates it if there is none. InvalidArgument: a wrong name (wire/names.h), or one that begins
  // with `_` and is not `_rejected`. LimitReached: limits.namespaces.
  Result<NamespaceId> ensure_namespace(std::string_view name) EC_EXCLUDES(creation_mutex_, mutex_);
  // Everything in it is gone at once, with the names of its devices and sensors; one that is made
  // later under the same name is another. Errors: NotFound, NotAllowed (`_...`), the engine's.
  Status drop_namespace(std::string_view name) EC_EXCLUDES(creation_mutex_, mutex_);
  // User-visible ones and `_rejected`, sorted.
  // The default namespace is always there, empty before its first reading.
  std::vector<std::string> namespaces() const;

  // Finds or creates the series of each reading: `ids[i]` is that of `readings[i]`. What is new
  // joins `additions`, which the caller writes with the readings and then confirms. Until
  // confirmed the ids are used by this process only: find() and select() do not show them, and
  // every batch that uses them carries their records again. Errors: InvalidArgument (a name),
  // LimitReached, Busy (a namespace that is dropped), the engine's (a new one). A reading with an
  // identity is of the series that has it: where its name belongs to another one, of the one with a
  // hash behind that name. `earlier` is what slices before were found to be of; of no other
  // catalog. Busy, too: a device has become another origin's since place().
  Status resolve(std::span<const wire::Reading> readings, std::vector<SeriesId>& ids,
                 CatalogAdditions& additions, SeriesMemo* earlier = nullptr, Origins origins = {});
  // Makes the devices of these readings, which `origins` call so, the holder's, before resolve().
  // The same readings, or, where some are called otherwise here, all of them in `placed`, under the
  // names that they have. LimitReached: limits.devices.
  // `owner` knows names of devices that are gone and are their origin's still; null: none are.
  using OwnerOfName =
      std::function<OriginNumber(std::string_view namespace_name, std::string_view device)>;
  struct Placed {
    std::vector<wire::Reading> readings;
    wire::TextStore texts;
  };
  Result<std::span<const wire::Reading>> place(std::span<const wire::Reading> readings,
                                               Origins origins, Placed& placed,
                                               const OwnerOfName& owner = {});
  // What durable devices are called here that the holder calls so.
  std::vector<std::string> placed_names(std::string_view namespace_name, std::string_view device,
                                        Origins origins) const;
  // Durable devices by origin, and how many of them are not called as they are there.
  struct OriginCount {
    std::size_t devices = 0, renamed = 0;
  };
  std::map<OriginNumber, OriginCount> count_origins() const;
  // What a device's row has, for a backup. NotFound: it is gone, nobody's, or in one of the store's
  // own namespaces.
  Result<DeviceOrigin> origin_at(std::uint32_t row) const;
  // Takes what a backup has, durable on return, before their first reading or after it; namespaces
  // are made. What is somebody's here already stays: how many those are that are another's.
  // InvalidArgument: a name; LimitReached: limits.devices.
  Result<std::size_t> restore_origins(std::span<const DeviceOrigin> devices)
      EC_EXCLUDES(creation_mutex_, mutex_);
  // Which of the readings resolve() can never take as things are, in their order, and why: a name,
  // a limit. Those before have what room there is; the others fit together.
  std::vector<Refusal> unfit(std::span<const wire::Reading> readings) const;
  // After Engine::write returned Ok: what `additions` held is durable.
  void confirm(const CatalogAdditions& additions);

  // The ids of readings whose series is durable; sensor 0: it is not.
  void find_ids(std::span<const wire::Reading* const> readings, std::vector<SeriesId>& ids) const;
  // NotFound names what is missing.
  Result<SeriesEntry> find(std::string_view namespace_name, std::string_view device,
                           std::string_view sensor) const;
  // The series that match, ordered by namespace, device, sensor. An empty namespace means all but
  // those whose names begin with `_`.
  std::vector<SeriesEntry> select(std::string_view namespace_name,
                                  const wire::Selector& selector) const;
  // The same as numbers that lead to them for as long as the catalog is there.
  std::vector<SeriesRow> select_rows(std::string_view namespace_name,
                                     const wire::Selector& selector) const {
    return rows_of(namespace_name, {&selector, 1});
  }
  // The same of a selection, each series once.
  std::vector<SeriesRow> select_rows(std::string_view namespace_name,
                                     const wire::Selection& selection,
                                     RowOrder order = RowOrder::ByName) const;
  // Series that one of the selectors matches, each once and in the same order; RowOrder::Any: those
  // of a device follow one another in whatever order is least work.
  std::vector<SeriesRow> rows_of(std::string_view namespace_name,
                                 std::span<const wire::Selector> selectors,
                                 RowOrder order = RowOrder::ByName) const;
  // NotFound: the series is gone.
  Result<SeriesEntry> series_at(SeriesRow row) const;
  // The names alone, which is less work. False: the series is gone.
  bool read_names(SeriesRow row, std::string& namespace_name, std::string& device,
                  std::string& sensor) const;
  // The row of its device, for device_at(), which is less still; kNoDevice: the series is gone.
  std::uint32_t device_row_of(SeriesRow row) const;
  // Its entry and its identity, put into what those of another series were in; the entry's own
  // bytes of the identity stay empty. For listings of very many. False: the series is gone, or its
  // identity is damaged.
  bool read_series(SeriesRow row, SeriesEntry& entry, wire::Identity& identity) const;
  // The measurement of its identity alone, which is less work; empty: the series is gone.
  void read_measurement(SeriesRow row, std::string& measurement) const;
  // One after another what select() answers at once, until `take` returns an error, which is
  // answered then. What is gone when its turn comes is left out.
  Status each(std::string_view namespace_name, const wire::Selection& selection,
              const std::function<Status(const SeriesEntry&)>& take) const;
  // Devices, also those without a series left, in the same order and of the same namespaces.
  std::vector<DeviceEntry> devices(std::string_view namespace_name,
                                   std::string_view device_glob) const;
  // The same as numbers for device_at().
  std::vector<std::uint32_t> select_device_rows(std::string_view namespace_name,
                                                std::string_view device_glob) const;
  // Devices in the order in which they came, by row: 0 to before device_rows(), which only grows.
  // NotFound: the device is gone.
  std::uint32_t device_rows() const;
  Result<DeviceEntry> device_at(std::uint32_t row) const;
  // What the sensor of the reading's series is called, or would be: not as the reading says where
  // that name is another identity's.
  std::string sensor_name(const wire::Reading& reading) const;
  // Whether a series of that name has this identity, or none that is known.
  bool may_be(std::string_view namespace_name, std::string_view device, std::string_view sensor,
              const wire::SeriesIdentity& identity) const;
  // Whether a series of the device is called `prefix`, or that, `.` and more, and its name does not
  // tell its identity, as none of version 0.1 does.
  bool has_old(std::string_view namespace_name, std::string_view device,
               std::string_view prefix) const;
  // Whether there is such a namespace, user-visible or `_rejected`.
  bool has_namespace(std::string_view name) const;

  // Plans what is erased with its names (Erased): `take` gets the keys of its records, and
  // `batch` what keeps its numbers from being used again; `batch` is to be written with the removal
  // of the keys, or before it. Nobody may resolve() and write until forget() has followed.
  Status plan_erasure(const Erased& erased, const SpanTaker& take, WriteBatch& batch) const;
  // Once that is durable. A name that comes again is another device or series.
  void forget(const Erased& erased);
  // Another one whenever names went, erased or with their namespace.
  std::uint64_t generation() const { return generation_.load(); }

  // Durable ones.
  std::size_t device_count() const;
  std::size_t series_count() const;
  std::uint64_t memory_bytes() const;
  RecoveredNames recovered() const { return recovered_; }
  // Records of it cannot be read: what they named goes by names made up for this process, until a
  // repair says what is left.
  bool is_damaged() const { return is_damaged_; }

 private:
  Catalog(Engine& engine, const CatalogLimits& limits, std::uint64_t hash_seed)
      : engine_(engine), limits_(limits), seed_(hash_seed) {}

  // Before anything else, once: takes no lock, since nobody else sees the catalog yet.
  Status load() EC_NO_THREAD_SAFETY_ANALYSIS;

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
  Status claim_restored(std::span<const DeviceOrigin> devices, CatalogAdditions& additions,
                        std::size_t& others) EC_EXCLUDES(mutex_);
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

// The list of what an erasure takes whole, with all its times and its names, for those who keep
// records of devices and series: catalog, device index, retention. Each tells which keys are to go,
// a range after another, and once these are gone for good forgets what it has in memory.

// By number, so that ranges of neighbours follow each other.
struct Erased {
  std::vector<DeviceEntry> devices;  // id 0: something is said of it, and it never had a reading
  std::vector<SeriesEntry> series;   // of devices that stay
};

// Keys from `lower` to before `upper`; an empty `upper` is unbounded.
struct KeySpan {
  NamespaceId namespace_id = 0;
  Bytes lower, upper;

  friend bool operator==(const KeySpan&, const KeySpan&) = default;
};

// The span of one key.
inline KeySpan span_of_key(NamespaceId namespace_id, ByteView key) {
  return {namespace_id, Bytes(key), Bytes(key) + '\0'};
}
// The span of the keys that begin so.
inline KeySpan span_of_prefix(NamespaceId namespace_id, ByteView prefix) {
  Bytes upper(prefix);
  while (!upper.empty() && upper.back() == '\xff') upper.pop_back();
  if (!upper.empty()) upper.back() = static_cast<char>(upper.back() + 1);
  return {namespace_id, Bytes(prefix), std::move(upper)};
}

}  // namespace edgecase::catalog
