// The storage engine: ordered byte keys to byte values, in namespaces, on two drives.
//
// Use: open(), create namespaces, write() batches, get() and scan(). Thread-safe. Destroying it
// closes the store; nothing acknowledged depends on that. Iterators must be gone before. Mechanisms
// and files: engine/README.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/iterator.h"
#include "edgecase/options.h"
#include "edgecase/stats.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase {

// When write() returns Ok, the batch survives:
enum class Durability : unsigned char {
  Async,  // kill -9 of this process; a power cut once something later synced, or in tables
  Sync,   // a power cut; one fsync serves every writer that waits
};

// Where a namespace's values lie.
enum class Placement : unsigned char { Values = 0, Metadata = 1 };

// How a namespace's groups are encoded. Either codec keeps any key and value exactly.
enum class GroupCodec : unsigned char {
  Plain = 0,
  // Tuned for keys that end in a big-endian 64-bit ordinal, and for values of 9 bytes that begin
  // with kFloatTag (then a little-endian IEEE 754 double) or kIntegerTag (then a little-endian
  // signed integer).
  Series = 1,
};
inline constexpr char kFloatTag = 1;
inline constexpr char kIntegerTag = 2;

struct NamespaceOptions {
  Placement placement = Placement::Values;
  GroupCodec codec = GroupCodec::Plain;
  // This many leading bytes of a key are its scope; a group holds one scope. 0: the namespace is
  // one scope.
  std::uint32_t scope_bytes = 0;
};

struct NamespaceInfo {
  NamespaceId id = 0;
  std::string name;
  NamespaceOptions options;
};

// A place in the order of commits: an entry's sequence. Later entries have larger ones; 0 lies
// before all. Whoever reads what was committed after a position has a change feed:
// engine/feed/DESIGN.md.
using CommitPosition = std::uint64_t;
inline constexpr std::size_t kFeedBoundsMax = 256;

// A frozen view of the store, but for what is revoked. Keeps memory and files alive, and with them
// the bytes of what was revoked since: release it soon, and at once when Engine::revocations() has
// changed since it was taken.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  // Engine::revocations() when it was taken.
  virtual std::uint64_t revocations() const = 0;
  // Whether it keeps memtables in memory that nobody else would need: they are written out by now.
  virtual bool keeps_memory() const = 0;
  // The position of the newest entry in it.
  virtual CommitPosition committed() const = 0;
};

// Asked now and then by what takes long, on its thread: it may wait there, for others to have their
// turn. An error, as that nobody wants the result any more, ends the call with that error.
class Patience {
 public:
  virtual ~Patience() = default;
  virtual Status go_on() = 0;
  // Around waiting for somebody else's work.
  virtual void rest() {}
  virtual void resume() {}
};

// Keys of a scan that cannot be read any more, both included: a file is damaged. What they were,
// and whether all of them were there, is not known.
struct DamagedKeys {
  Bytes first;
  std::optional<Bytes> last;  // none: to the end of the scan's range
  Status why;
};

struct ReadOptions {
  std::shared_ptr<const Snapshot> snapshot;  // null: now
  Direction direction = Direction::Forward;  // scan() only
  bool fill_cache = true;                    // off for scans of everything
  // scan() only: values of so many bytes and more are read in pieces, by Iterator::large_value().
  std::uint64_t large_value_bytes = kNoLargeValues;
  // scan(), range_stats() and summarize(): only entries that were committed after it, as far as
  // they are current: what a newer one, a delete or a rule hides stays hidden.
  CommitPosition newer_than = 0;
  // scan() only, without newer_than: Iterator::take_summary() answers where it can.
  bool summaries = false;
  Patience* patience = nullptr;  // of range_stats() and summarize(); null: nobody is asked
  // scan() only: is told of damage that the scan comes to, which then goes on behind it. An older
  // version of what is lost is never shown in its place. Null: the scan ends there, with
  // Corruption.
  std::function<void(const DamagedKeys&)> on_damage = {};
  // The same of what lies on a drive that is away: `why` is Unavailable then. Without on_damage it
  // means nothing.
  bool passes_drive_away = false;
};

// What the calling thread has read so far, of all engines: who tells what an answer was made of
// takes the difference of two.
struct ThreadReads {
  std::uint64_t groups = 0;          // that were decoded; of large ones their pages
  std::uint64_t metadata_bytes = 0;  // from the drives
  std::uint64_t values_bytes = 0;
};
ThreadReads thread_reads();

// For scans of which what is damaged may be missing: the listener is told of it.
inline ReadOptions without_damaged(ReadOptions options = {}) {
  options.on_damage = [](const DamagedKeys&) {};
  return options;
}

struct RangeStats {
  std::uint64_t entries = 0;  // exact: live keys, each once
  std::uint64_t stored_bytes =
      0;  // share of the value layer, from group sizes; what memory holds counts raw
};

// What lies under one prefix of keys.
struct PrefixStats {
  ByteView first, last;            // keys; they hold during the call that is given them
  std::uint64_t entries = 0;       // as in RangeStats
  std::uint64_t stored_bytes = 0;  // the same
};
using PrefixTaker = std::function<Status(const PrefixStats& stats)>;

// What one call of erase() did.
struct ErasureReport {
  std::uint64_t ranges = 0;             // that were pending, disjoint
  std::uint64_t rewritten_bytes = 0;    // of what lies beside them in the same files
  std::uint64_t removed_files = 0;      // of either layer, overwritten first
  std::uint64_t overwritten_bytes = 0;  // of removed files, log and manifests
  std::uint64_t destroyed_keys = 0;     // of scopes that were erased as a whole
};

enum class FileLayer : unsigned char { Metadata, Values, Log };

// How much of a file belongs to a range of keys.
struct FileShare {
  std::string path;
  FileLayer layer = FileLayer::Metadata;
  std::uint64_t bytes = 0;       // about; what cannot be read counts half
  std::uint64_t file_bytes = 0;  // the whole file
};

// Keys whose values cannot be had any more, both included. None: to the end of the namespace.
struct LostRange {
  NamespaceId namespace_id = 0;
  Bytes first;
  std::optional<Bytes> last;
};

// A file that is not what it was when it was written.
struct DamagedFile {
  std::string path;
  FileLayer layer = FileLayer::Metadata;
  std::string problem;
  std::int64_t found_ns = 0;  // wall time
  std::vector<LostRange> lost;
  std::uint64_t more_lost_ranges = 0;  // that are not in `lost`
  std::uint64_t lost_entries = 0;      // deletes and replaced ones too
};

class Engine {
 public:
  // Errors: InvalidArgument (options), Locked, Corruption, Unsupported (newer format), Unavailable
  // (wrong, empty or missing drive), IoError, OutOfSpace. Fails whole: nothing is changed on a
  // store that does not open.
  static Result<std::unique_ptr<Engine>> open(const Options& options,
                                              const Environment& environment);

  virtual ~Engine() = default;

  // Durable on return. Errors: AlreadyExists, LimitReached (kNamespaceCountMax, kNamespaceIdMax),
  // InvalidArgument.
  virtual Result<NamespaceId> create_namespace(std::string_view name,
                                               const NamespaceOptions& options) = 0;
  // Nobody can read it from the moment of return, through no snapshot either; an iterator that is
  // open ends with NotFound. Its files are unlinked when the last of those and of the snapshots has
  // gone; one edit of the manifest, however much it holds. Its id is never given out again: a
  // namespace that is made later under the same name is another one. Durable on return. Errors:
  // NotFound, IoError, OutOfSpace; after these two it may turn out dropped at the next open.
  virtual Status drop_namespace(NamespaceId id) = 0;
  virtual Result<NamespaceInfo> find_namespace(std::string_view name) const = 0;
  virtual std::vector<NamespaceInfo> namespaces() const = 0;

  // Applies the whole batch or nothing. Errors: InvalidArgument (a limit, an unknown namespace),
  // Busy (WAL limit reached), IoError / OutOfSpace (metadata drive; then nothing later is accepted
  // until the store has healed). An empty batch has the companion write what it has, if there is
  // one.
  virtual Status write(const WriteBatch& batch, Durability durability) = 0;

  // From return on it is asked at each group commit; null: nobody. It must outlive that.
  virtual void set_commit_companion(CommitCompanion* companion) = 0;

  // NotFound when there is no such key; Corruption or Unavailable when its bytes cannot be had.
  virtual Result<Bytes> get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) = 0;
  virtual Result<std::unique_ptr<Iterator>> scan(NamespaceId namespace_id, const KeyRange& range,
                                                 const ReadOptions& options) = 0;
  // Counts without reading values where groups do not overlap.
  virtual Result<RangeStats> range_stats(NamespaceId namespace_id, const KeyRange& range,
                                         const ReadOptions& options) = 0;
  // The same of each prefix of `prefix_bytes` under which there is a live key, in order, in one
  // pass over the range. An error of `take` ends it. Unsupported: ask for each by itself.
  virtual Status summarize(NamespaceId namespace_id, const KeyRange& range,
                           std::size_t prefix_bytes, const ReadOptions& options,
                           const PrefixTaker& take);
  // Bytes that the range takes in the value layer, replaced and deleted entries included, from
  // metadata alone: items that a bound cuts count half, what is in memory not at all.
  virtual Result<std::uint64_t> approximate_size(NamespaceId namespace_id,
                                                 const KeyRange& range) = 0;
  virtual std::shared_ptr<const Snapshot> snapshot() = 0;
  // The position of the newest entry that readers see.
  virtual CommitPosition committed() const = 0;
  // Tells where those stand who read by positions: kFeedBoundsMax at most. Flushes and merges may
  // give an entry a later position when they write it again. From here on they move none from at or
  // before a bound to behind it, and none that lies behind the newest bound. No bounds: nobody
  // reads by positions. Not durable: with Options::feeds nothing moves between open() and the first
  // call. A new bound is kept from the first moment if it is a committed() that was asked for after
  // the call before. InvalidArgument: too many.
  virtual Status set_feed_bounds(std::vector<CommitPosition> bounds) = 0;
  // Expires once nobody holds a snapshot any more that was taken before the call.
  virtual std::weak_ptr<const void> held_snapshots() = 0;

  // How often something became unreadable for good: a range was erased, a rule of retention was
  // set, something was evicted, a namespace dropped, or files went since all in them had expired.
  // From that moment on nobody reads it, through iterators and large values that are open neither;
  // a view that was handed out before may show it still. Whoever keeps a snapshot or an iterator,
  // or copies of what they gave, compares it, which costs a load, and lets go of them when it has
  // changed.
  virtual std::uint64_t revocations() const = 0;
  // Whether something of the keys from `first` to `last`, both included, may have become unreadable
  // since revocations() was `since`; true as well where that is not known any more.
  virtual bool is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                          std::uint64_t since) const = 0;

  // Writes every memtable out and returns when the tables are durable.
  virtual Status flush() = 0;

  // Writes memtables out, then merges everything of these namespaces within `range` (user keys)
  // until no two tables overlap and nothing superseded, deleted or expired is left. Returns when
  // that is durable; takes as long as reading and writing what overlaps does. Errors leave the
  // store as it was.
  virtual Status compact(const std::vector<NamespaceId>& ids, const KeyRange& range) = 0;

  // Removes the bytes of all that erase_range() hid before the call, and of what a crash or a
  // failure left pending of earlier ones: from memtables, caches, tables, value files, log and
  // manifests. Returns when nothing of it is on either drive. Errors leave it hidden and pending;
  // it is tried again by itself, and by the next call: Unavailable (the values drive is away), Busy
  // (a snapshot or an iterator held on to it for erasure_wait_ms), IoError, OutOfSpace.
  virtual Result<ErasureReport> erase() = 0;
  // Which files hold entries of the range, hidden ones included, those with the most bytes first.
  virtual Result<std::vector<FileShare>> locate(NamespaceId namespace_id,
                                                const KeyRange& range) = 0;

  // Sets and clears rules, all or none; they hold from return on, for what is stored already too
  // (edgecase/options.h). Durable on return. Errors: InvalidArgument (a retention below 1 ns, a
  // namespace of another codec, a prefix over kKeySizeMaxBytes), NotFound (the namespace),
  // LimitReached (kRetentionRulesMax), IoError, OutOfSpace.
  virtual Status set_retention(std::vector<RetentionRule> rules) = 0;
  // The rules that are set, by namespace and prefix.
  virtual std::vector<RetentionRule> retention_rules() const = 0;
  // The same of one namespace and of prefixes in a range, one after another.
  using RetentionTaker = std::function<void(ByteView prefix, std::int64_t retention_ns)>;
  virtual void each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                                   const RetentionTaker& take) const = 0;
  // What the oldest entries are, over all namespaces alike, that take about that much. A time is
  // found from what value files say of themselves, without reading any.
  virtual Eviction plan_eviction(const EvictionRequest& request) const = 0;
  // Gives up everything of these namespaces before that time. It is unreadable on return, through
  // snapshots too, and never comes back: what is written there later is not there either. Durable
  // on return. Files that hold nothing else go at once, those of which a third goes after what
  // lives in them has been moved. Errors: NotFound (a namespace), IoError, OutOfSpace.
  virtual Status evict(std::span<const NamespaceId> ids, std::int64_t before_ns) = 0;
  // Everything of the namespace before that was evicted; INT64_MIN: nothing was.
  virtual std::int64_t evicted_before_ns(NamespaceId id) const = 0;
  // The time by which entries expire: the wall's where it is to be trusted.
  virtual std::int64_t expiry_now_ns() = 0;

  // What scrubbing has found and is there still, by file (Options::scrub_interval_ns). What is lost
  // of a metadata table a repair brings back (edgecase/store_check.h).
  virtual std::vector<DamagedFile> damaged_files() const = 0;

  // Whether snapshots and iterators together keep more than an eighth of memory_limit_bytes so: who
  // has one that does, and can go on with a newer one, should.
  virtual bool is_short_of_memory() const = 0;
  // Takes `now` bytes of memory_limit_bytes for somebody who took `before` the last time (0:
  // never). Memtables and the cache shrink by what all take, as if the limit were what is left, but
  // 8 MiB at least.
  virtual void set_aside(std::uint64_t before, std::uint64_t now) = 0;

  // For files that somebody keeps beside this store; lives as long. Null: it is not encrypted.
  virtual Sealer* sealer() = 0;

  virtual Stats stats() const = 0;
};

}  // namespace edgecase
