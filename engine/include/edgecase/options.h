// Every knob of the engine: unit, default, limits. And what the engine is given from outside:
// files, clock, random numbers, an Executor for its background work, an EventListener for what it
// reports. Then rules of how long entries live, and what makes room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "edgecase/machine.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase {

// Tasks of one lane run one after another, in the order given; lanes run side by side.
enum class Lane : unsigned char { Flush, Compaction };
inline constexpr int kLaneCount = 2;

// Runs the engine's background work. The engine never starts a thread of its own.
class Executor {
 public:
  virtual ~Executor() = default;

  // Queues `task`. Thread-safe.
  virtual void schedule(Lane lane, std::function<void()> task) = 0;
  // The same, not before `delay_ns` from now have passed.
  virtual void schedule_after(Lane lane, std::int64_t delay_ns, std::function<void()> task) = 0;
  // For a caller that waits for background work and holds no lock. A threaded executor answers
  // false: wait on your own condition. A single-threaded one (tests) runs one task and answers
  // true, or false if there is none.
  virtual bool run_one() = 0;
};

// One named thread a lane; the destructor runs what is queued without delay, drops what is delayed,
// and joins.
std::unique_ptr<Executor> make_thread_executor();

struct RecoveryEvent {
  std::uint64_t tables = 0;
  std::uint64_t wal_segments = 0;
  std::uint64_t wal_records = 0;  // replayed: newer than the last flush
  std::uint64_t wal_bytes = 0;
  bool torn_tail = false;  // the last segment ended in an unfinished, unacknowledged record
  // Behind a segment of which a power cut took something that nobody had synced.
  std::uint64_t dropped_segments = 0;
  // One copy of the manifest lacked its last edit: unfinished when the power failed, or damaged.
  bool manifest_copies_differed = false;
  std::int64_t elapsed_ns = 0;
};

struct FlushEvent {
  std::uint64_t entries = 0;
  std::uint64_t value_bytes = 0;     // written to the value layer
  std::uint64_t metadata_bytes = 0;  // written to the metadata layer
  std::int64_t elapsed_ns = 0;
};

// What the engine reports instead of logging. Called on the thread where something happened, never
// under a lock.
class EventListener {
 public:
  virtual ~EventListener() = default;
  virtual void on_recovered(const RecoveryEvent&) {}
  virtual void on_flushed(const FlushEvent&) {}
  // Background work or a write failed: the store is degraded until on_resumed().
  virtual void on_degraded(std::string_view /*layer*/, const Status&) {}
  virtual void on_resumed(std::string_view /*layer*/) {}
  virtual void on_corruption(const Status&) {}
};

inline constexpr std::uint32_t kKeySizeMaxBytes = 1024;
inline constexpr std::uint32_t kValueSizeMaxBytes = 16u << 20;
inline constexpr std::uint32_t kBatchSizeMaxBytes = 32u << 20;
inline constexpr std::uint32_t kRangeDeletesPerBatchMax = 256;
inline constexpr std::uint32_t kNamespaceNameMaxBytes = 128;
inline constexpr std::uint32_t kNamespaceCountMax = 1024;
// A store makes no more namespaces than this in its life: ids count up, those that were dropped
// too.
inline constexpr std::uint32_t kNamespaceIdMax = (1u << 24) - 1;
inline constexpr std::uint64_t kMemoryLimitMinBytes = 8u << 20;

// When the bytes of what has expired go; it is unreadable at once.
enum class ExpiryMode : unsigned char {
  // With their bucket, a sixteenth of the retention at most: whole files, nothing is rewritten.
  // Within kExpiryCheckNs of its end and the merge that runs.
  Bounded,
  // Within a second. Files are cut finer as their time comes near: everything is written some more
  // times.
  Exact,
};
inline constexpr std::int64_t kExpiryCheckNs = 10'000'000'000;
inline constexpr std::int64_t kExactExpiryCheckNs = 250'000'000;

// How files go that merges have replaced, or whose entries have expired or were dropped.
enum class Removal : unsigned char {
  // Overwritten while erased ranges are pending, else just unlinked: then blocks that were freed
  // earlier may still hold copies of what is erased later, until the drive uses or discards them.
  Unlink,
  // Always overwritten: every byte is written once more.
  Overwrite,
};

// Keys from outside: they open the key of the store, which opens all others.
struct MasterKeys {
  SecretKey current{};
  // The one before: a store that still knows that one is told the current one when it is opened,
  // and nothing of it is written anew.
  std::optional<SecretKey> previous = std::nullopt;
};

struct Options {
  std::string metadata_directory;  // onboard drive: keys, filters, WAL, manifest
  std::string values_directory;    // external drive: values, nothing else. Not the same directory,
                                   // not inside `wal`
  bool create_if_missing = true;
  // A store whose values directory is missing, empty or unreadable opens without it: degraded, as
  // after the drive was pulled, until it is there. False: it does not open (Unavailable).
  bool open_without_values = false;

  // All memory the engine takes for data: memtables, caches, buffers. At least
  // kMemoryLimitMinBytes.
  std::uint64_t memory_limit_bytes = 64u << 20;
  // Tables are mapped into memory, and what a get reads of them is copied from there: half a
  // microsecond and more less than a call of the system takes. What was read counts as resident
  // memory of the process then, beside the limit, though it is the page cache's and goes when
  // somebody needs it.
  bool map_tables = false;
  // All WAL segments together. At the limit writers wait for a flush, and get Busy while flushes
  // fail. At least two segments. A batch larger than a segment takes at most half of what is left
  // beside one.
  std::uint64_t wal_limit_bytes = 256u << 20;
  std::uint64_t wal_segment_bytes = 8u << 20;
  // A memtable is flushed at this size; 0 = an eighth of memory_limit_bytes;
  // at most two more wait to be written out, and beyond that writers wait.
  std::uint64_t memtable_bytes = 0;

  // Everything on both drives is encrypted (AES-256-GCM; engine/crypto/DESIGN.md). Decided
  // when the store is made: one that is not encrypted does not open with keys, nor one that is
  // without.
  std::optional<MasterKeys> encryption = std::nullopt;

  // Somebody may read by positions of commits: until Engine::set_feed_bounds() is called, entries
  // keep theirs.
  bool feeds = false;

  ExpiryMode expiry = ExpiryMode::Bounded;
  Removal removal = Removal::Unlink;
  // Kept free on each drive for what makes room when it is full: erasing, and shorter retention,
  // write again what lies beside that which goes, a file of 32 MiB at a time. 0: none.
  std::uint64_t erasure_reserve_bytes = 0;
  // Writes leave so much free on each drive, or a sixteenth of a smaller one, for others who live
  // there: below it they are refused with OutOfSpace, but for those that erase, and those to
  // namespaces of the metadata drive alone; what was taken is still written out. 0: nothing.
  std::uint64_t keep_free_bytes = 0;
  // In idle time each file is read again about once in so long and compared with its checksum
  // (Engine::damaged_files). 0: never.
  std::int64_t scrub_interval_ns = 0;
  // How long erase() waits for snapshots and iterators that hold what was erased.
  std::uint32_t erasure_wait_ms = 3000;

  // Values smaller than the threshold are gathered into groups; the others are items of their own.
  bool coalesce = true;
  std::uint32_t coalesce_threshold_bytes = 4096;
  // A group is closed at this many bytes of keys and values, before encoding.
  std::uint32_t group_bytes = 16384;
  // Groups of a series (GroupCodec::Series) that has 128 numbers and more in a span end where its
  // ordinal, a signed time with its sign turned round, comes to a multiple of the span: windows of
  // so long are answered by summaries (Iterator::take_summary()). 0: they end where they are full.
  std::int64_t group_span_ns = 0;
  // Text and the like in groups is compressed (LZ4) where that saves an eighth of it.
  bool compress = true;
};

// Everything the engine uses but does not own. All must outlive it.
struct Environment {
  FileSystem& file_system;
  Clock& clock;
  Random& random;
  Executor& executor;
  EventListener& listener;
};

// Ok or InvalidArgument naming the option.
Status validate_options(const Options& options);

// Rules of how long entries live. One holds for a scope: everything in a namespace whose key begins
// with a prefix; of rules around a key the longest prefix wins. Only namespaces with
// GroupCodec::Series expire: the last 8 bytes of a key, big-endian with the sign bit flipped, are
// its time in nanoseconds since 1970. An entry is gone once its time is more than the retention
// ago.
//
// What has once expired never comes back, whatever becomes of the rules or of the clock. While the
// clock is not trusted, and for an hour after it was set forward by more than an hour, no more
// expires than had before.

inline constexpr std::int64_t kRetentionForever = INT64_MAX;  // nanoseconds
// All namespaces together; scopes whose rule was cleared count as long as they hide something.
inline constexpr std::size_t kRetentionRulesMax = 1u << 16;

struct RetentionRule {
  NamespaceId namespace_id = 0;
  // Leading bytes of keys without their time; empty: the namespace.
  Bytes prefix;
  // Positive. None: as if there were no rule, the scope around it decides; outermost: forever.
  std::optional<std::int64_t> retention_ns;
  // Nothing was ever stored of the scope: the rule around it has let nothing of it expire. Means
  // nothing where the scope has, or had, a rule of its own.
  bool is_new = false;

  friend bool operator==(const RetentionRule&, const RetentionRule&) = default;
};

// What is to make room.
struct EvictionRequest {
  std::vector<NamespaceId> namespaces;  // with GroupCodec::Series
  std::uint64_t value_bytes = 0;        // about so much is to go of value files
  std::int64_t limit_ns = 0;            // nothing of that time and later goes
};

// What went, or would.
struct Eviction {
  std::int64_t before_ns = 0;     // everything of the namespaces before this time
  std::uint64_t value_bytes = 0;  // about; 0: nothing goes
};

}  // namespace edgecase
