// The tables of the catalog in memory: names that are kept once, the ids that stand for them, rows;
// and what a request remembers of its look-ups (SeriesMemo).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/engine.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::catalog {

// Keeps names, one behind the other. They are never moved: a process that takes in many would
// otherwise have them between all that it takes and gives back besides, and could return none of
// that. A name that is wiped leaves its room empty. Thread-compatible.
class NameStore {
 public:
  // The view holds as long as the store.
  std::string_view keep(std::string_view name) {
    if (left_ < name.size()) {
      chunks_.emplace_back(new char[kChunkBytes]);
      next_ = chunks_.back().get();
      left_ = kChunkBytes;
    }
    char* const kept = next_;
    if (!name.empty()) std::memcpy(kept, name.data(), name.size());
    next_ += name.size();
    left_ -= name.size();
    used_bytes_ += name.size();
    return {kept, name.size()};
  }
  // Wipes a name that was kept: nothing of it is left in memory.
  static void wipe(std::string_view kept) {
    if (!kept.empty()) std::memset(const_cast<char*>(kept.data()), 0, kept.size());
  }
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  // Large enough that allocators map each chunk for itself; unused parts take no memory.
  static constexpr std::size_t kChunkBytes = 4u << 20;

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::uint64_t used_bytes_ = 0;
};

inline constexpr std::uint32_t kNoRow = 0xffffffff;

// `seed` is random, so that nobody outside can choose names that collide. `parent` is the row or id
// that the name belongs to.
inline std::uint32_t hash_name(std::uint64_t seed, std::uint32_t parent, std::string_view name) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  const auto mix = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * kMultiplier;
    return state ^ state >> 29;
  };
  std::uint64_t state = mix(seed, std::uint64_t{parent} << 32 | name.size());
  const char* data = name.data();
  std::size_t left = name.size();
  for (; left >= 8; data += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    state = mix(state, word);
  }
  std::uint64_t tail = 0;
  for (std::size_t i = 0; i < left; ++i) {
    tail = tail << 8 | static_cast<unsigned char>(data[i]);
  }
  state = mix(state, tail);
  return static_cast<std::uint32_t>(state >> 32);
}

// Finds table rows by name: an open-addressing hash table of row numbers, 8 bytes a slot. It does
// not hold the names: the caller, who does, tells whether a row is the one it looks for. Rows are
// never removed. Thread-compatible.
class NameIndex {
 public:
  NameIndex() : slots_(kFirstCapacity) {}

  // The row for which `matches(row)` holds, among those inserted with `hash`; kNoRow if none.
  template <typename Matches>
  std::uint32_t find(std::uint32_t hash, const Matches& matches) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask; slots_[i].row != kNoRow; i = (i + 1) & mask) {
      if (slots_[i].hash == hash && matches(slots_[i].row)) return slots_[i].row;
    }
    return kNoRow;
  }

  // With so many rows more.
  std::uint64_t memory_bytes(std::size_t more = 0) const {
    std::uint64_t slots = slots_.size();
    while ((count_ + more) * 2 > slots) slots *= 2;
    return slots * sizeof(Slot);
  }

  // `row` must not be there yet.
  void insert(std::uint32_t hash, std::uint32_t row) {
    if (++count_ * 2 > slots_.size()) grow();
    place({hash, row});
  }

 private:
  static constexpr std::size_t kFirstCapacity = 64;  // a power of two, always at least half empty

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t row = kNoRow;
  };

  void place(Slot slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = slot.hash & mask;
    while (slots_[i].row != kNoRow) i = (i + 1) & mask;
    slots_[i] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.row != kNoRow) place(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

// Keeps texts that several series have in common once each, as rows of a table: the tags of a tag
// set, the bytes of an identity. Who has a text gives it back; nothing of it is left in memory once
// nobody has it. For Catalog and IdentityTable. Thread-compatible.
class SharedTexts {
 public:
  // `names` holds the texts, and outlives the table; `seed` as of NameIndex.
  SharedTexts(NameStore& names, std::uint64_t seed) : names_(names), seed_(seed) {}

  // The row of a text that is not empty; one more has it. `parent` is told apart, too.
  std::uint32_t keep(std::uint32_t parent, std::string_view text) {
    const std::uint32_t hash = hash_name(seed_, parent, text);
    std::uint32_t row = find(hash, parent, text);
    if (row == kNoRow) {
      row = static_cast<std::uint32_t>(rows_.size());
      rows_.push_back({names_.keep(text), parent, 0});
      index_.insert(hash, row);
    }
    ++rows_[row].users;
    return row;
  }
  void give_back(std::uint32_t row) {
    if (--rows_[row].users == 0) NameStore::wipe(std::exchange(rows_[row].text, {}));
  }

  bool has(std::uint32_t parent, std::string_view text) const {
    return find(hash_name(seed_, parent, text), parent, text) != kNoRow;
  }
  std::string_view text(std::uint32_t row) const { return rows_[row].text; }
  std::uint32_t parent(std::uint32_t row) const { return rows_[row].parent; }

  // Without the texts; with so many more.
  std::uint64_t memory_bytes(std::size_t more = 0) const {
    std::uint64_t rows = rows_.capacity();
    while (rows < rows_.size() + more) rows = 2 * rows + 1;
    return rows * sizeof(Row) + index_.memory_bytes(more);
  }

 private:
  struct Row {
    std::string_view text;
    std::uint32_t parent = 0;
    std::uint32_t users = 0;
  };

  std::uint32_t find(std::uint32_t hash, std::uint32_t parent, std::string_view text) const {
    return index_.find(hash, [&](std::uint32_t row) {
      return rows_[row].parent == parent && rows_[row].text == text;
    });
  }

  NameStore& names_;
  const std::uint64_t seed_;
  std::vector<Row> rows_;
  NameIndex index_;
};

// Names of sensors as the catalog keeps them: what line protocol's tags put in braces at a name's
// end is mostly that of other fields of the same tag set, and is kept once for all of them. For
// Catalog. Thread-compatible.
class SensorNames {
 public:
  // Empty: of what is gone.
  struct Name {
    std::string_view head;
    std::uint32_t tail = kNoRow;  // kNoRow: it has none

    bool empty() const { return head.empty() && tail == kNoRow; }
  };

  // `names` holds the texts, and outlives the table; `seed` as of NameIndex.
  SensorNames(NameStore& names, std::uint64_t seed) : names_(names), tails_(names, seed) {}

  // Where the tags begin; the name's end, where it has none.
  static std::size_t head_bytes(std::string_view name) {
    return name.ends_with('}') ? std::min(name.find('{'), name.size()) : name.size();
  }

  Name keep(std::string_view name) {
    const std::size_t head = head_bytes(name);
    Name kept{names_.keep(name.substr(0, head)), kNoRow};
    if (head < name.size()) kept.tail = tails_.keep(0, name.substr(head));
    return kept;
  }
  // Leaves it empty.
  void give_back(Name& name) {
    NameStore::wipe(name.head);
    if (name.tail != kNoRow) tails_.give_back(name.tail);
    name = Name();
  }

  std::string_view tail(const Name& name) const {
    return name.tail == kNoRow ? std::string_view() : tails_.text(name.tail);
  }
  bool has_tail(std::string_view tail) const { return tails_.has(0, tail); }
  bool is(const Name& name, std::string_view text) const {
    if (name.tail == kNoRow) return name.head == text;
    const std::string_view tags = tails_.text(name.tail);
    return text.size() == name.head.size() + tags.size() && text.starts_with(name.head) &&
           text.ends_with(tags);
  }
  // Whether `a` is sorted before `b`, by bytes.
  bool is_before(const Name& a, const Name& b) const {
    std::string_view left = a.head, right = b.head;
    std::string_view left_tail = tail(a), right_tail = tail(b);
    while (true) {
      if (left.empty()) left = std::exchange(left_tail, {});
      if (right.empty()) right = std::exchange(right_tail, {});
      const std::size_t both = std::min(left.size(), right.size());
      if (both == 0) return left.empty() && !right.empty();
      const int order = left.compare(0, both, right, 0, both);
      if (order != 0) return order < 0;
      left.remove_prefix(both);
      right.remove_prefix(both);
    }
  }
  // Puts the whole name into `text`.
  void read(const Name& name, std::string& text) const {
    text.assign(name.head);
    text += tail(name);
  }

  // Without the texts; with so many more tails.
  std::uint64_t memory_bytes(std::size_t more_tails = 0) const {
    return tails_.memory_bytes(more_tails);
  }

 private:
  NameStore& names_;
  SharedTexts tails_;
};

// The table of series' identities, as far as their names do not say them, in four bytes each. Texts
// that several series have in common are kept once. See wire/names.h. Thread-compatible.
class IdentityTable {
 public:
  // What a series' row holds.
  using Handle = std::uint32_t;
  static constexpr Handle kUnknown = 0;  // a record of version 1 says nothing of it
  static constexpr Handle kOfNames = 1;

  // `names` and `seed` as of NameIndex; outlives the table.
  IdentityTable(NameStore& names, std::uint64_t seed) : names_(names), bodies_(names, seed) {}

  // Keeps the identity of a series that is called `sensor`; each is given back once.
  Handle keep(const wire::SeriesIdentity& identity, std::string_view sensor);
  // Nothing of it is left in memory once nobody else has it.
  void give_back(Handle handle);
  // Not of kUnknown.
  wire::SeriesIdentity at(Handle handle, std::string_view sensor) const;

  std::uint64_t memory_bytes() const {
    return bodies_.memory_bytes() + keys_.capacity() * sizeof(std::string_view);
  }

 private:
  // A handle is one of the two above, or has its kind in the two bits at its top. By name: the
  // number of its keys, and how long the measurement is; by body: the body's row.
  static constexpr Handle kByName = 1u << 30, kByBody = 2u << 30, kKinds = 3u << 30;
  static constexpr unsigned kMeasurementBits = 11;

  std::uint32_t keep_keys(std::string_view keys);

  NameStore& names_;
  std::vector<std::string_view> keys_;
  std::map<std::string_view, std::uint32_t> keys_index_;
  SharedTexts bodies_;  // parent: the number of their keys
};

// The catalog's rows. Rows are only ever added: one that has no name is of what is gone.

// Whose a device is: the store that its readings come from, by the number that it has here
// (ingest/origins.h). A name is of the first that writes to it; of another one's device of that
// name, `~` and a hash come behind it.
using OriginNumber = std::uint32_t;
inline constexpr OriginNumber kOwnOrigin = 0;          // written here
inline constexpr OriginNumber kNoOrigin = UINT32_MAX;  // nobody's yet: restored, or older

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

struct SeriesId {
  NamespaceId namespace_id = 0;
  std::uint32_t device = 0;
  std::uint32_t sensor = 0;

  friend bool operator==(const SeriesId&, const SeriesId&) = default;
};

// A memo of the series that readings were found to be of: large batches, and requests that come
// again and again, have each looked up once. Two ways to recognise one:
//
//   by its number, between slices and between requests, as long as ReadingBatch::numbering stays
//   by where its names lie, where it has none: views with the same address and size hold the same
//   name within a batch, and between slices of one request as long as ReadingBatch::text_id() stays
//
// What it answers is what a look-up would: the catalog, which alone asks it, has it forget
// everything when a series was erased or dropped since. One thread.
class SeriesMemo {
 public:
  // Numbers from here on; series with greater ones are not remembered.
  static constexpr std::uint32_t kNumbersMax = 128u << 10;

  // Before a batch with names under that id, and with that numbering.
  void begin(std::uint64_t text_id, std::uint64_t numbering) {
    if (text_id != text_id_) slots_.clear();
    if (numbering != numbering_) numbered_.clear();
    text_id_ = text_id;
    numbering_ = numbering;
  }
  // Names may lie elsewhere from here on: another request comes.
  void forget_places() { slots_.clear(); }
  // The catalog's: of when it is asked.
  void begin_look_up(std::uint64_t generation) {
    if (generation == generation_) return;
    generation_ = generation;
    slots_.clear();
    numbered_.clear();
  }

  // Null: not known.
  const SeriesId* find(const wire::Reading& reading) const {
    if (is_numbered(reading)) {
      if (reading.series_number >= numbered_.size()) return nullptr;
      const SeriesId& id = numbered_[reading.series_number];
      return id.sensor == 0 ? nullptr : &id;
    }
    return slots_.empty() ? nullptr : find_by_place(reading);
  }
  // Notes that the series is durable. Small batches, in which most series come once, are not worth
  // remembering places.
  void note(const wire::Reading& reading, const SeriesId& id, bool by_place) {
    if (!is_numbered(reading)) {
      if (by_place) note_place(reading, id);
      return;
    }
    const std::uint32_t number = reading.series_number;
    if (number >= kNumbersMax) return;
    if (number >= numbered_.size()) numbered_.resize(number + 1);
    numbered_[number] = id;
  }

  std::size_t memory_bytes() const {
    return slots_.capacity() * sizeof(Slot) + numbered_.capacity() * sizeof(SeriesId);
  }

 private:
  static constexpr unsigned kSlotBits = 11;
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;
  static constexpr std::size_t kWays = 8;  // where one may be, beginning at its place

  struct Place {
    const char* data = nullptr;
    std::size_t size = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Slot {
    Place sensor, device, namespace_name;
    SeriesId id;
  };
  static Place place(std::string_view name) { return {name.data(), name.size()}; }
  static std::size_t place_of(const wire::Reading& reading) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    const auto sensor = reinterpret_cast<std::uintptr_t>(reading.sensor.data());
    const auto device = reinterpret_cast<std::uintptr_t>(reading.device.data());
    return static_cast<std::size_t>((sensor * 31 + device) * kOdd >> (64 - kSlotBits));
  }

  bool is_numbered(const wire::Reading& reading) const {
    return numbering_ != 0 && reading.series_number != 0;
  }
  const SeriesId* find_by_place(const wire::Reading& reading) const {
    const std::size_t first = place_of(reading);
    for (std::size_t i = 0; i < kWays; ++i) {
      const Slot& slot = slots_[(first + i) % kSlots];
      if (slot.sensor == place(reading.sensor) && slot.device == place(reading.device) &&
          slot.namespace_name == place(reading.namespace_name))
        return &slot.id;
    }
    return nullptr;
  }
  void note_place(const wire::Reading& reading, const SeriesId& id) {
    if (slots_.empty()) slots_.resize(kSlots);
    const std::size_t first = place_of(reading);
    std::size_t at = first;
    for (std::size_t i = 0; i < kWays && slots_[at].sensor.data != nullptr; ++i)
      at = (first + i) % kSlots;
    slots_[at] = {place(reading.sensor), place(reading.device), place(reading.namespace_name), id};
  }

  std::uint64_t generation_ = 0;
  std::uint64_t text_id_ = 0;
  std::uint64_t numbering_ = 0;
  std::vector<Slot> slots_;
  std::vector<SeriesId> numbered_;  // by number; sensor 0: not known
};

}  // namespace edgecase::catalog
