// Metadata of devices: owner, purposes and objections of use, location, labels. An index leads back
// from an owner, a purpose, an objection or a label to the devices, by a range of keys that holds
// no more than the result.
//
// Records, in the engine's namespace `_devices` (Placement::Metadata); a name ends in a zero byte,
// which no name holds:
//   'D' namespace 0 device                   ->  version (2), owner, location, purposes,
//                                                objections, labels; a text is its length and its
//                                                bytes, a list its length and its texts, a label
//                                                two texts; all lengths are one byte. Version 3
//                                                has behind them how many consents (1) and of
//                                                each, oldest first, time (8), who, and but for
//                                                the last purposes and objections. Version 1 was
//                                                JSON
//   'O' owner 0 namespace 0 device           ->  nothing
//   'P' purpose 0 namespace 0 device         ->  nothing; 'X' the same of objections
//   'L' label '=' value 0 namespace 0 device ->  nothing
//   'S' namespace 0 device 0 term, as the key of its entry begins -> nothing: it was taken back
// A record and its index entries change in one batch. Terms that were taken back are noted until
// their bytes are asked to go, too: with the device's erasure, by forget_taken_back(), or when
// there are more than kNotesMax.
//
// Purposes and objections are in memory too (DeviceTerms), since every read asks for them; what
// that takes is set aside in the engine, and has a limit. All else is read where it is asked for,
// and of the devices that were asked for lately kept as it was read (RecentRecords).
// Thread-safe. `mutex_` guards what is in memory and is never held across I/O; `change_mutex_`
// makes changes one at a time and is held while the engine makes them durable. Order:
// change_mutex_, then mutex_.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"

namespace edgecase::catalog {

// Finds devices by words of their names and places: the terms, and the search over them.

using SipKey = std::array<std::uint64_t, 2>;

// SipHash-2-4 with 128 bits: of names that others choose, and that must not be taken for each other
// by their hashes alone. Without the key nobody can make two with the same one. Pure functions.
class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      word_ |= std::uint64_t{static_cast<unsigned char>(byte)} << 8 * (size_ % 8);
      if (++size_ % 8 == 0) take_word();
    }
  }
  std::array<std::uint64_t, 2> finish() {
    word_ |= size_ << 56;
    take_word();
    v2_ ^= 0xee;
    rounds(4);
    const std::uint64_t first = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    return {first, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void take_word() {
    v3_ ^= word_;
    rounds(2);
    v0_ ^= word_;
    word_ = 0;
  }
  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t word_ = 0;
  std::uint64_t size_ = 0;
};

// Purposes and objections, as one text.
Bytes terms_text(const std::vector<std::string>& purposes,
                 const std::vector<std::string>& objections);

struct TermsView {
  ByteView purposes, objections;  // lists, as they are in terms_text()

  bool is_empty() const { return purposes.empty() && objections.empty(); }
};
bool holds_term(ByteView list, std::string_view term);

// Purposes and objections of devices in memory, since every read asks for them. Each device takes
// 12 bytes of a hash of its name, by a key that nobody knows, and which of the sets of purposes and
// objections is its own; a set that many have is there once. Thread-compatible.
//
// A table of open addressing; what is removed leaves no gap behind.
class DeviceTerms {
 public:
  explicit DeviceTerms(Random& random)
      : key_{random.next(), random.next()}, slots_(kFirstCapacity) {}
  DeviceTerms(const DeviceTerms&) = delete;
  DeviceTerms& operator=(const DeviceTerms&) = delete;

  std::size_t size() const { return count_; }
  bool contains(std::string_view namespace_name, std::string_view device) const;
  // Empty where there is no such device. Until the next change.
  TermsView find(std::string_view namespace_name, std::string_view device) const;
  void set(std::string_view namespace_name, std::string_view device, const Bytes& terms);
  void remove(std::string_view namespace_name, std::string_view device);

  bool has_set(const Bytes& terms) const { return ids_.contains(terms); }
  static std::uint64_t set_bytes(const Bytes& terms);
  // With so many devices, and bytes of sets, more.
  std::uint64_t memory_bytes(std::size_t devices = 0, std::uint64_t more_set_bytes = 0) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kFirstCapacity = 64;  // a power of two, a quarter of it always empty

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t more_hash = 0;
    std::uint32_t set = kNone;  // kNone: the slot is empty
  };
  struct Set {
    const Bytes* text = nullptr;  // a key of ids_
    std::uint32_t devices = 0;
  };

  Slot key_of(std::string_view namespace_name, std::string_view device) const;
  std::size_t place_of(const Slot& key) const;
  std::uint32_t take_set(const Bytes& terms);
  void release_set(std::uint32_t id);
  void grow();

  const SipKey key_;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  std::unordered_map<Bytes, std::uint32_t> ids_;  // of sets
  std::vector<Set> sets_;
  std::vector<std::uint32_t> free_ids_;
  std::uint64_t set_bytes_ = 0;
};

// Records that were read lately, by their names, so that who reads the same again and again asks
// the engine once. When they take more than kBytesMax all go.
//
// A reader takes changes() before it reads, and notes what it found with that: it is kept only if
// no record has changed since. Who changes a record forgets it when the change is durable.
// Thread-safe.
class RecentRecords {
 public:
  static constexpr std::size_t kBytesMax = 1u << 20;
  static constexpr std::size_t kRecordMaxBytes = 1024;  // longer ones are not kept

  std::optional<Bytes> find(const Bytes& name) const EC_EXCLUDES(mutex_);
  std::uint64_t changes() const EC_EXCLUDES(mutex_);
  void note(const Bytes& name, const Bytes& record, std::uint64_t changes_before);
  void forget(const Bytes& name);
  // Where it is not known what has changed.
  void forget_all();
  std::size_t memory_bytes() const;

 private:
  // What an entry takes besides its bytes: the node of the map, and what the heap adds.
  static constexpr std::size_t kEntryBytes = 144;
  static std::size_t bytes_of(const Bytes& name, const Bytes& record) {
    return kEntryBytes + name.capacity() + record.capacity();
  }

  mutable SharedMutex mutex_;
  std::uint64_t changes_ EC_GUARDED_BY(mutex_) = 0;
  std::map<Bytes, Bytes> records_ EC_GUARDED_BY(mutex_);
  std::size_t bytes_ EC_GUARDED_BY(mutex_) = 0;
};

inline constexpr std::string_view kDevicesNamespace = "_devices";
inline constexpr std::size_t kTermsMax = 16;     // purposes, and objections, of a device
inline constexpr std::size_t kLabelsMax = 16;    // of a device
inline constexpr std::size_t kConsentsMax = 32;  // of a device: the last ones
inline constexpr std::size_t kConsentByMaxBytes = 64;
inline constexpr std::size_t kDevicesMax = 20'000;  // that something is said of; unless told else

// The one who says something of devices, and when. Nobody: nothing is noted.
struct Saying {
  std::int64_t time_ns = 0;
  std::string by;
};

// What was said that readings may be used for, and what not, from some time on.
struct Consent {
  std::int64_t time_ns = 0;
  std::string by;
  std::vector<std::string> purposes, objections;

  friend bool operator==(const Consent&, const Consent&) = default;
};

struct DeviceMetadata {
  std::string owner;
  std::vector<std::string> purposes, objections;  // sorted, each once
  std::string location;
  std::map<std::string, std::string> labels;
  // Kept by the index, oldest first, the last one as above: all since this owner was named.
  std::vector<Consent> consents;

  bool empty() const {
    return owner.empty() && purposes.empty() && objections.empty() && location.empty() &&
           labels.empty();
  }
  friend bool operator==(const DeviceMetadata&, const DeviceMetadata&) = default;
};

struct DeviceName {
  std::string namespace_name, device;

  friend auto operator<=>(const DeviceName&, const DeviceName&) = default;
};

// What is looked for; empty ones are not. All that are given must hold.
struct DeviceFilter {
  std::string owner, purpose, objection;
  std::vector<std::pair<std::string, std::string>> labels;

  bool empty() const {
    return owner.empty() && purpose.empty() && objection.empty() && labels.empty();
  }
  bool holds_for(const DeviceMetadata& said) const;
};

// A part of a long list of devices: those behind `after`, at most `limit`.
struct DevicePage {
  std::optional<DeviceName> after;
  std::size_t limit = SIZE_MAX;
};

// What becomes of what is said of one device.
struct DeviceChange {
  DeviceName name;
  std::function<void(DeviceMetadata&)> change;
};

struct DeviceIndexLimits {
  std::size_t devices = kDevicesMax;  // that something is said of
  std::uint64_t memory_bytes = UINT64_MAX;
};

inline DeviceFilter owned_by(std::string_view owner) {
  DeviceFilter filter;
  filter.owner = owner;
  return filter;
}

class DeviceIndex {
 public:
  static Result<std::unique_ptr<DeviceIndex>> open(Engine& engine,
                                                   const DeviceIndexLimits& limits = {});

  // Empty metadata where nothing is said of it. Errors: the engine's.
  Result<DeviceMetadata> metadata(const DeviceName& name) const;
  // Replaces all that is said; empty metadata removes it. Holds for the next read, durable on
  // return. InvalidArgument: a name or a limit of one device; LimitReached: one of
  // DeviceIndexLimits; the engine's.
  Status set(const DeviceName& name, const DeviceMetadata& metadata, const Saying& saying = {})
      EC_EXCLUDES(change_mutex_);
  // As set(), of what `change` makes of what is said by now; returns that.
  Result<DeviceMetadata> update(const DeviceName& name,
                                const std::function<void(DeviceMetadata&)>& change,
                                const Saying& saying = {}) EC_EXCLUDES(change_mutex_);

  // The same of many devices. All is checked before anything is changed, for which each change is
  // asked for twice; then it is made durable in batches, so that an error of the engine may find
  // some changed. Of a device that comes twice both changes are made, one after the other.
  Status update_all(std::span<const DeviceChange> changes, const Saying& saying = {})
      EC_EXCLUDES(change_mutex_);
  // The same of those that find() would answer, but for the store's own; `told` of each.
  Status update_found(std::string_view namespace_name, const DeviceFilter& filter,
                      const std::function<void(DeviceMetadata&)>& change, const Saying& saying,
                      const std::function<void(const DeviceName&)>& told)
      EC_EXCLUDES(change_mutex_);

  // By namespace and device; `namespace_name` empty: all. Reads as much of each range that the
  // filter names as the shortest one holds, and no more than the page needs. InvalidArgument: an
  // empty filter.
  Result<std::vector<DeviceName>> find(std::string_view namespace_name, const DeviceFilter& filter,
                                       const DevicePage& page = {}) const;

  // Owners of devices of which one at least is `counted`.
  Result<std::uint64_t> count_owners(const std::function<bool(const DeviceName&)>& counted) const;

  // Every device that something is said of, by namespace and name.
  Result<std::vector<DeviceName>> all(const DevicePage& page) const;

  // Whether readings of the device may be read for `purpose` (empty: none is stated). NotAllowed
  // says what is missing. A device with purposes or objections is read only for a stated purpose:
  // one of its purposes, if it has any, and none of its objections.
  Status check_purpose(std::string_view namespace_name, std::string_view device,
                       std::string_view purpose) const;

  // What a topic says of a new device; durable on return, so before its first reading is. One that
  // something is said of by now is left as it is.
  Status introduce(const DeviceName& name, const DeviceMetadata& metadata,
                   const Saying& saying = {}) EC_EXCLUDES(change_mutex_);

  // Forgets every device of a namespace that is dropped. Durable.
  Status forget_namespace(const std::string& namespace_name) EC_EXCLUDES(change_mutex_);

  // Devices that something is said of, by namespace and device; `namespace_name` empty: all but
  // those whose names begin with `_`.
  Result<std::vector<DeviceName>> select(std::string_view namespace_name,
                                         std::string_view device_glob) const;
  // The same one after another, until `take` returns an error, which is answered then.
  Status each(std::string_view namespace_name, std::string_view device_glob,
              const std::function<Status(const DeviceName&)>& take) const;

  // Grows with each change of what is said of any device, with each that goes, too.
  std::uint64_t changes() const { return recent_.changes(); }

  // Without what was read lately.
  std::uint64_t memory_bytes() const EC_EXCLUDES(mutex_);

  // Plans the erasure of devices (catalog.h): `take` gets the keys of their records. What is said
  // of devices does not change while change_lock() is held: until forget() has followed the durable
  // removal of the keys.
  Mutex& change_lock() EC_RETURN_CAPABILITY(change_mutex_) { return change_mutex_; }
  Status plan_erasure(const Erased& erased, const SpanTaker& take) EC_REQUIRES(change_mutex_);
  void forget(const Erased& erased) EC_REQUIRES(change_mutex_);
  // After a removal of which it is not known whether it is durable.
  void forget_recent();
  // Told of each of changes(), when it counts and before it is answered: who keeps what is said of
  // devices lets go of it. Set once, before other threads come.
  void on_change(std::function<void()> observer) { observer_ = std::move(observer); }
  // Has the bytes of terms that were taken back go with the next Engine::erase(): of up to
  // kNotesPerBatch. Durable.
  Status forget_taken_back() EC_EXCLUDES(change_mutex_);
  static constexpr std::uint64_t kNotesMax = 10'000;
  static constexpr std::uint64_t kNotesPerBatch = 200;

 private:
  struct Planned {
    DeviceName name;
    DeviceMetadata before, after;
  };
  // What changes would add to memory.
  struct Growth {
    std::size_t devices = 0;
    std::uint64_t set_bytes = 0;
    std::set<Bytes> sets;  // those
  };
  // The changes of devices in the order of their names, those of one together; empty: the end.
  using BatchSource = std::function<Result<std::vector<const DeviceChange*>>(bool is_first)>;

  DeviceIndex(Engine& engine, const DeviceIndexLimits& limits) : engine_(engine), limits_(limits) {}
  Status load() EC_EXCLUDES(change_mutex_);
  bool is_known(const DeviceName& name) const EC_EXCLUDES(mutex_);
  Result<DeviceMetadata> changed(const DeviceChange& change, const DeviceMetadata& before,
                                 const Saying& saying) const EC_REQUIRES(change_mutex_);
  Result<Planned> plan(std::span<const DeviceChange* const> changes, const Saying& saying,
                       bool is_alone) const EC_REQUIRES(change_mutex_);
  void count(const Planned& planned, Growth& growth) const EC_EXCLUDES(mutex_);
  Status check_room(const Growth& growth) const EC_EXCLUDES(mutex_);
  Status make_room_for_notes() EC_REQUIRES(change_mutex_);
  Result<DeviceMetadata> update_one(const DeviceChange& change, const Saying& saying)
      EC_REQUIRES(change_mutex_);
  Result<std::vector<Planned>> plan_batch(std::span<const DeviceChange* const> batch,
                                          const Saying& saying, bool is_alone) const
      EC_REQUIRES(change_mutex_);
  Status update_batches(const BatchSource& next, const Saying& saying, bool is_alone)
      EC_REQUIRES(change_mutex_);
  Result<std::vector<DeviceName>> records_in(std::string_view namespace_name,
                                             const DevicePage& page) const;
  struct Added {
    std::size_t ranges = 0, notes = 0;
  };
  Result<Added> append_change(const Planned& planned, WriteBatch& batch) const
      EC_REQUIRES(change_mutex_);
  Status tell_spans(const DeviceName& name, const DeviceMetadata& said, const SpanTaker& take) const
      EC_REQUIRES(change_mutex_);
  Status tell_joined(std::vector<KeySpan> spans, const SpanTaker& take) const;
  Status remove_taken_back() EC_REQUIRES(change_mutex_);
  Status write(std::span<const Planned> planned) EC_REQUIRES(change_mutex_);
  void append(const DeviceName& name, const DeviceMetadata& before, const DeviceMetadata& after,
              WriteBatch& batch) const;
  void remember(const DeviceName& name, const DeviceMetadata& metadata) EC_EXCLUDES(mutex_);
  void forget_recent(const DeviceName& name);
  void tell_memory() const;

  Engine& engine_;
  const DeviceIndexLimits limits_;
  NamespaceId records_ = 0;
  Mutex change_mutex_;
  std::uint64_t notes_ EC_GUARDED_BY(change_mutex_) = 0;  // at least as many as there are
  mutable SharedMutex mutex_;
  // Terms of every device that something is said of.
  DeviceTerms terms_ EC_GUARDED_BY(mutex_){system_random()};
  mutable RecentRecords recent_;  // by name_bytes()
  mutable SetAside set_aside_{engine_};
  std::function<void()> observer_;
};

// The records of DeviceIndex as bytes, and what may stand in them (device_records.cc).

// "namespace 0 device", as keys end in it, and back.
Bytes name_bytes(const DeviceName& name);
DeviceName parse_name(ByteView bytes);

// What the keys of a term begin with: kind, term, zero byte. And the first key behind all that
// begin so.
Bytes term_prefix(char kind, std::string_view term);
Bytes end_of(Bytes prefix);
// The prefixes of every term by which a device can be found.
std::vector<Bytes> index_prefixes(const DeviceMetadata& metadata);
std::vector<Bytes> prefixes_of(const DeviceFilter& filter);

// The key of the note that a term was taken back from a device, and back: device, term_prefix().
Bytes taken_back_key(const DeviceName& name, const Bytes& prefix);
std::pair<DeviceName, Bytes> parse_taken_back(ByteView key);

Bytes encode_metadata(const DeviceMetadata& metadata);
// Corruption; Unsupported: written by a newer version.
Result<DeviceMetadata> decode_metadata(ByteView record);

// InvalidArgument: a name, or more terms than a device may have.
Status check_metadata(const DeviceName& name, const DeviceMetadata& metadata);
// `after` keeps what consents there were, of one owner alone, and has another one where somebody
// says something else of owner, purposes or objections than `before`.
void note_consent(const DeviceMetadata& before, const Saying& saying, DeviceMetadata& after);
// Sorted, each once.
void tidy(std::vector<std::string>& terms);

}  // namespace edgecase::catalog
