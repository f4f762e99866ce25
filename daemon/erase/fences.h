// Fences keep erased readings from coming back. Redelivered, imported or restored, a reading with a
// time that was erased is refused. A fence stands around times of a series or of a device that is
// known by its pseudonym only, so the erased name is not kept.
//
// A fence is of one of two kinds (FenceKind). DESIGN.md says how a copy is told from what is new.
//
// And the gate that every write of readings passes: while it is closed nobody is between finding
// out the numbers of series and writing under them, so these can be erased with their names.
//
// Records, in the namespace `_erasures`, version 3; numbers big-endian: 'F' pseudonym -> version
// (1), the origin of the device (4), then of each range: flags (1; bit 0: FenceKind::Copies, bit 1:
// no end), number of its erasure (8), since (8), from (8), to (8). Version 2 has no origin, and is
// written where there is none. Version 1 is read: number of the erasure that set it last (8), then
// from (8), to (8) of each range; one without an end is two, to the last instant of time, and from
// it to itself.
//
// Thread-safe. A store without fences pays two uncontended locks a batch; readings that are later
// than every fence, or without a time, one comparison each.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "auth/hashing.h"
#include "catalog/catalog.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"
#include "wire/reading.h"

namespace edgecase::erase {

using auth::Pseudonym;
using auth::Pseudonyms;

inline constexpr std::size_t kFencesMax = 50'000;       // the one set longest ago gives way
inline constexpr std::size_t kRangesPerFenceMax = 256;  // also when one is read

// Nanoseconds; `from` included, `to` not. Without `to` it has no end: the last instant of time is
// in it.
struct TimeRange {
  std::int64_t from_ns = INT64_MIN;
  std::optional<std::int64_t> to_ns;

  // Some time of these, both included.
  bool holds(std::int64_t first_ns, std::int64_t last_ns) const {
    return from_ns <= last_ns && (!to_ns || first_ns < *to_ns);
  }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

enum class FenceKind : unsigned char {
  Lasting,  // refuses every reading with such a time, new ones too: `edgecase erase`
  Copies,   // refuses copies of what was there before it: statements of InfluxQL
};

// What one erasure keeps out of one series or device.
struct FencedRange {
  TimeRange times;
  std::uint64_t erasure = 0;  // its number
  std::int64_t since_ns = 0;  // 0: not known, set by version 1
  FenceKind kind = FenceKind::Lasting;

  friend bool operator==(const FencedRange&, const FencedRange&) = default;
};

struct Fence {
  std::vector<FencedRange> ranges;
  // The origin of a device that is gone: its name stays with it.
  catalog::OriginNumber owner = catalog::kNoOrigin;

  std::uint64_t newest_erasure() const;
  bool is_lasting() const;  // one of its ranges is
};

// Whether readings are a copy of what was stored once: a restore, an import.
struct Copied {
  bool is_copy = false;
  std::int64_t as_of_ns = INT64_MIN;  // it was made then; INT64_MIN: nobody knows when
};

// The value of its record.
Bytes encode_fence(const Fence& fence);

class Fences {
 public:
  Fences(NamespaceId records, Pseudonyms pseudonyms)
      : records_(records), pseudonyms_(std::move(pseudonyms)) {}

  // A record of `_erasures`, at start. Corruption, Unsupported.
  Status load(ByteView key, ByteView value);

  // Held from resolving names to the end of the write.
  class Pass {
   public:
    explicit Pass(Fences& fences) : fences_(fences) {}
    ~Pass() { fences_.leave(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Fences& fences_;
  };
  // Waits while the gate is closed.
  Pass enter() EC_EXCLUDES(gate_mutex_);

  // Held by an erasure from finding what matches to forgetting its names. One at a time.
  class Closed {
   public:
    explicit Closed(Fences& fences) : fences_(fences) {}
    ~Closed() { fences_.open_gate(); }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    Fences& fences_;
  };
  // Returns when everybody who was inside has left.
  Closed close() EC_EXCLUDES(gate_mutex_);

  // Which of the readings have a time that was erased; empty: none. Whoever asks has a Pass.
  // A window of a tier has all times in it. `catalog` knows what series are called whose name
  // another identity has; null: as they say.
  std::vector<bool> refused(std::span<const wire::Reading> readings, Copied copied = {},
                            const catalog::Catalog* catalog = nullptr) const EC_EXCLUDES(mutex_);
  // Whether the device was erased, names and all, since that time. Whoever asks has a Pass.
  bool is_erased(std::string_view namespace_name, std::string_view device,
                 std::int64_t since_ns) const EC_EXCLUDES(mutex_);
  // Whose the name of a device is that is gone.
  catalog::OriginNumber owner(std::string_view namespace_name, std::string_view device) const
      EC_EXCLUDES(mutex_);
  catalog::Catalog::OwnerOfName owners() const {
    return [this](std::string_view in, std::string_view device) { return owner(in, device); };
  }
  // Counts what was refused.
  void count_refused(std::uint64_t readings) { refused_.fetch_add(readings); }
  std::uint64_t refused_count() const { return refused_.load(); }

  // What adding `range` makes of the fence of `pseudonym`, as yet unknown to refused(). What it
  // covers of the same kind it replaces; where there are too many, those that touch become one, of
  // the later erasure. LimitReached: kRangesPerFenceMax.
  Result<Fence> with(const Pseudonym& pseudonym, const FencedRange& range) const
      EC_EXCLUDES(mutex_);
  using Planned = std::vector<std::pair<Pseudonym, Fence>>;  // by pseudonym, each once
  // The record of one, and which of the others, set longest ago, give way to those that are new;
  // those against copies alone first.
  void append_put(const Pseudonym& pseudonym, const Fence& fence, WriteBatch& batch) const;
  std::vector<Pseudonym> giving_way(const Planned& planned) const EC_EXCLUDES(mutex_);
  void append_remove(const Pseudonym& pseudonym, WriteBatch& batch) const;
  // Once durable.
  void set(const Pseudonym& pseudonym, Fence fence) EC_EXCLUDES(mutex_);
  void remove(const Pseudonym& pseudonym) EC_EXCLUDES(mutex_);

  // Ranges of all fences, those of the newest erasures first, `limit` at most; and how many more.
  struct Listed {
    Pseudonym pseudonym;
    FencedRange range;
  };
  struct Listing {
    std::vector<Listed> ranges;
    std::uint64_t more = 0;
  };
  Listing list(std::size_t limit) const EC_EXCLUDES(mutex_);
  // The fences with a range of that erasure, without it; one that had no other is empty.
  Planned without(std::uint64_t erasure) const EC_EXCLUDES(mutex_);

  // Another one whenever something was erased.
  std::uint64_t changes() const { return changes_.load(); }

  std::size_t size() const EC_EXCLUDES(mutex_);
  std::uint64_t memory_bytes() const;
  const Pseudonyms& pseudonyms() const { return pseudonyms_; }

 private:
  friend class Pass;
  friend class Closed;
  void leave() EC_EXCLUDES(gate_mutex_);
  void open_gate() EC_EXCLUDES(gate_mutex_);
  // Some time of these, both included.
  bool holds(const Pseudonym& pseudonym, std::int64_t first_ns, std::int64_t last_ns,
             Copied copied) const EC_REQUIRES_SHARED(mutex_);

  const NamespaceId records_;
  const Pseudonyms pseudonyms_;

  Mutex gate_mutex_;
  CondVar gate_changed_;
  std::uint64_t inside_ EC_GUARDED_BY(gate_mutex_) = 0;
  bool is_closed_ EC_GUARDED_BY(gate_mutex_) = false;

  mutable SharedMutex mutex_;
  std::map<Pseudonym, Fence> fences_ EC_GUARDED_BY(mutex_);
  // No fence of that kind holds from here on; INT64_MAX: one may hold that instant, too.
  std::atomic<std::int64_t> lasting_end_ns_{INT64_MIN}, copies_end_ns_{INT64_MIN};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace edgecase::erase
