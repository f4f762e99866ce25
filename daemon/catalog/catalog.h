// Names to numbers: the devices and series of every namespace, kept in memory and, on the metadata
// drive, in the engine's namespace `_catalog` (Placement::Metadata). Thread-safe.
//
// A reading's engine key is device id (4 bytes), sensor id (4), time (8), all big-endian, the time
// with its sign bit flipped; its namespace is the engine namespace of the same name. Device ids
// count within a namespace, sensor ids within a device; neither is used twice. Record layout:
// catalog_format.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"
#include "wire/identity.h"
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
class SeriesMemo;  // series_memo.h

// Is told of the ranges of keys that are to go, one after another; an error ends the plan.
using SpanTaker = std::function<Status(KeySpan span)>;

// Whose a device is: the store that its readings come from, by the number that it has here
// (ingest/origins.h). A name is of the first that writes to it; of another one's device of that
// name, `~` and a hash come behind it.
using OriginNumber = std::uint32_t;
inline constexpr OriginNumber kOwnOrigin = 0;          // written here
inline constexpr OriginNumber kNoOrigin = UINT32_MAX;  // nobody's yet: restored, or of before
// Numbers of one holder; new devices get the first. None: a copy, which goes where its names say.
using Origins = std::span<const OriginNumber>;
inline constexpr OriginNumber kOwnOrigins[] = {kOwnOrigin};

struct SeriesId {
  NamespaceId namespace_id = 0;
  std::uint32_t device = 0;
  std::uint32_t sensor = 0;

  friend bool operator==(const SeriesId&, const SeriesId&) = default;
};

struct SeriesEntry {
  std::string namespace_name;
  std::string device;
  std::string sensor;
  SeriesId id;
  // Its identity's bytes (wire/identity.h); empty: that of its names.
  Bytes identity = {};
};

// The identity of an entry: that of its names where it came without one. Corruption: its bytes are
// none.
Result<wire::Identity> identity_of(const SeriesEntry& entry);

struct DeviceEntry {
  std::string namespace_name, device;
  NamespaceId namespace_id = 0;
  std::uint32_t id = 0;
  OriginNumber origin = kNoOrigin;
};

// Named limits (CONTRACT promise 5); reaching one is Busy with the setting's name in the message.
using SeriesRow = std::uint32_t;
inline constexpr std::uint32_t kNoDevice = UINT32_MAX;
enum class RowOrder : unsigned char { ByName, Any };

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
  friend class MemoryCatalog;
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
  virtual ~Catalog() = default;

  // Creates it if there is none. InvalidArgument: a wrong name (wire/names.h), or one that begins
  // with `_` and is not `_rejected`. LimitReached: limits.namespaces.
  virtual Result<NamespaceId> ensure_namespace(std::string_view name) = 0;
  // Everything in it is gone at once, with the names of its devices and sensors; one that is made
  // later under the same name is another. Errors: NotFound, NotAllowed (`_...`), the engine's.
  virtual Status drop_namespace(std::string_view name) = 0;
  // User-visible ones and `_rejected`, sorted.
  // Sorted. The default namespace is always there, empty before its first reading.
  virtual std::vector<std::string> namespaces() const = 0;

  // Finds or creates the series of each reading: `ids[i]` is that of `readings[i]`. What is new
  // joins `additions`, which the caller writes with the readings and then confirms. Until
  // confirmed the ids are used by this process only: find() and select() do not show them, and
  // every batch that uses them carries their records again. Errors: InvalidArgument (a name),
  // LimitReached, Busy (a namespace that is dropped), the engine's (a new one). A reading with an
  // identity is of the series that has it: where its name belongs to another one, of the one with a
  // hash behind that name. `earlier` is what
  // slices before were found to be of (series_memo.h); of no other catalog.
  // Busy, too: a device has become another origin's since place().
  virtual Status resolve(std::span<const wire::Reading> readings, std::vector<SeriesId>& ids,
                         CatalogAdditions& additions, SeriesMemo* earlier = nullptr,
                         Origins origins = {}) = 0;
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
  virtual Result<std::span<const wire::Reading>> place(std::span<const wire::Reading> readings,
                                                       Origins origins, Placed& placed,
                                                       const OwnerOfName& owner = {}) = 0;
  // What durable devices are called here that the holder calls so.
  virtual std::vector<std::string> placed_names(std::string_view namespace_name,
                                                std::string_view device, Origins origins) const = 0;
  // Durable devices by origin, and how many of them are not called as they are there.
  struct OriginCount {
    std::size_t devices = 0, renamed = 0;
  };
  virtual std::map<OriginNumber, OriginCount> count_origins() const = 0;
  // Which of the readings resolve() can never take as things are, in their order, and why: a name,
  // a limit. Those before have what room there is; the others fit together.
  virtual std::vector<Refusal> unfit(std::span<const wire::Reading> readings) const = 0;
  // After Engine::write returned Ok: what `additions` held is durable.
  virtual void confirm(const CatalogAdditions& additions) = 0;

  // The ids of readings whose series is durable; sensor 0: it is not.
  virtual void find_ids(std::span<const wire::Reading* const> readings,
                        std::vector<SeriesId>& ids) const = 0;
  // NotFound names what is missing.
  virtual Result<SeriesEntry> find(std::string_view namespace_name, std::string_view device,
                                   std::string_view sensor) const = 0;
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
  virtual std::vector<SeriesRow> rows_of(std::string_view namespace_name,
                                         std::span<const wire::Selector> selectors,
                                         RowOrder order = RowOrder::ByName) const = 0;
  // NotFound: the series is gone.
  virtual Result<SeriesEntry> series_at(SeriesRow row) const = 0;
  // The names alone, which is less work. False: the series is gone.
  virtual bool read_names(SeriesRow row, std::string& namespace_name, std::string& device,
                          std::string& sensor) const = 0;
  // The row of its device, for device_at(), which is less still; kNoDevice: the series is gone.
  virtual std::uint32_t device_row_of(SeriesRow row) const = 0;
  // Its entry and its identity, put into what those of another series were in; the entry's own
  // bytes of the identity stay empty. For listings of very many. False: the series is gone, or its
  // identity is damaged.
  virtual bool read_series(SeriesRow row, SeriesEntry& entry, wire::Identity& identity) const = 0;
  // The measurement of its identity alone, which is less work; empty: the series is gone.
  virtual void read_measurement(SeriesRow row, std::string& measurement) const = 0;
  // One after another what select() answers at once, until `take` returns an error, which is
  // answered then. What is gone when its turn comes is left out.
  Status each(std::string_view namespace_name, const wire::Selection& selection,
              const std::function<Status(const SeriesEntry&)>& take) const;
  // Devices, also those without a series left, in the same order and of the same namespaces.
  virtual std::vector<DeviceEntry> devices(std::string_view namespace_name,
                                           std::string_view device_glob) const = 0;
  // The same as numbers for device_at().
  virtual std::vector<std::uint32_t> select_device_rows(std::string_view namespace_name,
                                                        std::string_view device_glob) const = 0;
  // Devices in the order in which they came, by row: 0 to before device_rows(), which only grows.
  // NotFound: the device is gone.
  virtual std::uint32_t device_rows() const = 0;
  virtual Result<DeviceEntry> device_at(std::uint32_t row) const = 0;
  // What the sensor of the reading's series is called, or would be: not as the reading says where
  // that name is another identity's.
  virtual std::string sensor_name(const wire::Reading& reading) const = 0;
  // Whether a series of that name has this identity, or none that is known.
  virtual bool may_be(std::string_view namespace_name, std::string_view device,
                      std::string_view sensor, const wire::SeriesIdentity& identity) const = 0;
  // Whether a series of the device is called `prefix`, or that, `.` and more, and its name does not
  // tell its identity, as none of version 0.1 does.
  virtual bool has_old(std::string_view namespace_name, std::string_view device,
                       std::string_view prefix) const = 0;
  // Whether there is such a namespace, user-visible or `_rejected`.
  virtual bool has_namespace(std::string_view name) const = 0;

  // Plans what is erased with its names (Erased): `take` gets the keys of its records, and
  // `batch` what keeps its numbers from being used again; `batch` is to be written with the removal
  // of the keys, or before it. Nobody may resolve() and write until forget() has followed.
  virtual Status plan_erasure(const Erased& erased, const SpanTaker& take,
                              WriteBatch& batch) const = 0;
  // Once that is durable. A name that comes again is another device or series.
  virtual void forget(const Erased& erased) = 0;
  // Another one whenever names went, erased or with their namespace.
  virtual std::uint64_t generation() const = 0;

  // Durable ones.
  virtual std::size_t device_count() const = 0;
  virtual std::size_t series_count() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;
  virtual RecoveredNames recovered() const = 0;
  // Records of it cannot be read: what they named goes by names made up for this process, until a
  // repair says what is left.
  virtual bool is_damaged() const { return false; }
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
