// Records of targets: their places, the readings that they refused, and the name of this store to
// them. They lie in the engine's namespace `_forward` on the metadata drive, which no query shows.
// Thread-safe.
//
//   key 'T' name                      -> a Record: version 3, flags (1: paused, 2: at rest), 8
//                                        readings and 8 bytes sent, 8 undelivered, 8 not to be
//                                        held by the target, 8 not kept there; 4 times 8 that went
//                                        unsent (retention::Leaving), which version 1 has not; 8
//                                        until when the expired are counted, since version 3; then
//                                        the cursor (cursor.h)
//   key 'U' name, 0, 4 namespace, key -> a Refusal: 2 status of HTTP, 8 nanoseconds since 1970;
//                                        status 0: it is missing there (forwarding.h)
//   key 'S' name                      -> a Shape: 8 nanoseconds, then the salt; none: readings go
//                                        as they are
//   key 'B' name                      -> 8: the position that a target which began with what is new
//                                        began behind
//   key 'O'                           -> 16 number of the store; 1: whether the newest run was
//                                        answered; 8 for each run, the newest first, kRunsMax of
//                                        them (Lineage)
//   keys 'W' and 'X'                  -> windows that are owed, and that went (thinned.h)
//   keys 'P' and 'Y'                  -> summaries of hours (summaries.h)
//   keys 'E', 'K' and 'N'             -> erasures that targets have to be told of (erasures.h)
//
// Numbers are big-endian. Of a refused reading its key alone is kept, no name and no value: what is
// erased is not found here either.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "forward/cursor.h"
#include "retention/eviction.h"
#include "wire/reading.h"

namespace edgecase::forward {

inline constexpr std::string_view kForwardNamespace = "_forward";
// Refused readings that are kept of one target; what is refused beyond them is counted.
inline constexpr std::size_t kUndeliveredMax = 10'000;

// Readings that went before a target had them, by retention::Leaving.
using UnsentCounts = std::array<std::uint64_t, retention::kLeavings>;

// No time is known.
inline constexpr std::int64_t kUncounted = INT64_MIN;

struct Totals {
  std::uint64_t readings = 0, bytes = 0;  // answered for; of the link
  std::uint64_t undelivered = 0;          // refused one by one
  std::uint64_t unfit = 0;                // that a target of this kind cannot hold
  std::uint64_t not_kept = 0;             // taken, and not kept there: expired, erased, replaced
  UnsentCounts unsent = {};
  std::int64_t expired_until_ns = kUncounted;  // what expires until then is counted in `unsent`
};

// Whether there is something to add.
inline bool add(const UnsentCounts& counts, Totals& totals) {
  bool is_any = false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    totals.unsent[i] += counts[i];
    is_any = is_any || counts[i] > 0;
  }
  return is_any;
}

struct Record {
  bool is_paused = false;
  bool is_at_rest = false;  // not configured: its cursor is one open range
  Totals totals;
  Cursor cursor;
};

struct Refusal {
  Place place;
  std::uint16_t status = 0;
  std::int64_t at_ns = 0;
};
// It was not refused: the target was found to lack it, and it goes again.
inline bool is_missing(const Refusal& refusal) {
  return refusal.status == 0;
}

// How readings look at a target, for as long as it has a place: what is erased, or verified, is
// asked for by the same names as it went.
struct Shape {
  std::int64_t every_ns = 0;  // of windows; 0: as they are
  Bytes salt = {};            // of pseudonyms; empty: devices go under their names
};
inline constexpr std::size_t kSaltBytes = 32;

class Records {
 public:
  // Writes nothing: the namespace is made with the first record. Errors: the engine's.
  static Result<std::unique_ptr<Records>> open(Engine& engine);

  // By name. A place that is not what was written is the beginning of everything. Unsupported: of a
  // newer version.
  Result<std::vector<std::pair<std::string, Record>>> load() const;
  // Durable on return, and with it everything that was committed before.
  Status write(const std::string& name, const Record& record);
  // Durable with the next write().
  Status write_begin(const std::string& name, CommitPosition begin);
  // 0: with everything, or it is not known.
  Result<CommitPosition> begin(const std::string& name) const;
  // Durable with the next write().
  Status write_shape(const std::string& name, const Shape& shape);
  // Corruption: names at the target cannot be told any more.
  Result<Shape> shape(const std::string& name) const;
  // With what it refused.
  Status forget(const std::string& name);

  // The oldest `most` of those that are kept, in the order of their keys, behind a place.
  Result<std::vector<Refusal>> refusals(const std::string& name, const Place& behind,
                                        std::size_t most) const;
  Result<std::size_t> count_refusals(const std::string& name) const;
  // Whether it refused that reading.
  Result<bool> is_refused(const std::string& name, const Place& place) const;
  // Durable on return.
  Status add_refusals(const std::string& name, const std::vector<Refusal>& refusals);
  Status remove_refusals(const std::string& name, const std::vector<Refusal>& refusals);

  // The number of `_forward`; 0: none yet.
  NamespaceId id() const { return id_; }
  // The same; the namespace is made where there is none.
  Result<NamespaceId> made_id() EC_EXCLUDES(mutex_);

 private:
  explicit Records(Engine& engine) : engine_(engine) {}

  Engine& engine_;
  Mutex mutex_;
  std::atomic<NamespaceId> id_{0};  // 0: none yet; made under mutex_
};

Bytes encode_record(const Record& record);
Result<Record> decode_record(ByteView bytes);

// Numbers in records, big-endian.
template <typename Integer>
void append_number(Integer number, Bytes& out) {
  wire::append_big_endian(static_cast<std::uint64_t>(number), out, sizeof(Integer));
}

// Takes it off the front; false where there is too little.
template <typename Integer>
bool take_number(ByteView& bytes, Integer& number) {
  if (bytes.size() < sizeof(Integer)) return false;
  number = static_cast<Integer>(wire::read_big_endian(bytes.substr(0, sizeof(Integer))));
  bytes.remove_prefix(sizeof(Integer));
  return true;
}

// The name of this store at an EdgeCase that it forwards to (ingest/origins.h): its number, drawn
// once, and its runs. A run is drawn when something is first sent after a start, once a target has
// answered in the run before; so one that is answered twice is of two copies of this store.
//
// Thread-safe; the lock is held while the record is written.
class Lineage {
 public:
  Lineage(Engine& engine, Records& records, Random& random)
      : engine_(engine), records_(records), random_(random) {}

  // A line of a request's head. `is_known`: the target has answered since the start, and needs not
  // be told of runs before. The run is durable on return.
  Result<std::string> header(bool is_known) EC_EXCLUDES(mutex_);
  // The store's number, 32 hexadecimal digits.
  Result<std::string> store() EC_EXCLUDES(mutex_);
  // A target has taken something.
  void note_answered() EC_EXCLUDES(mutex_);

 private:
  Status begin() EC_REQUIRES(mutex_);
  Status write(Durability durability) EC_REQUIRES(mutex_);

  Engine& engine_;
  Records& records_;
  Random& random_;
  Mutex mutex_;
  bool has_begun_ EC_GUARDED_BY(mutex_) = false;
  bool is_answered_ EC_GUARDED_BY(mutex_) = false;
  Bytes store_ EC_GUARDED_BY(mutex_), runs_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
