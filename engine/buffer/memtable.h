// Recent writes in memory, backed by the WAL. One writer at a time (the commit leader); any number
// of readers beside it. Entries become visible to a reader whose `visible` sequence covers them.
//
// Its parts: the index by key (memtable_index.cc), the arena and the strips in which entries of a
// series lie (series_strips.cc), and cursors over them (strip_cursor.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/entry.h"
#include "base/range_deletes.h"
#include "edgecase/engine.h"
#include "edgecase/iterator.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

struct MemtableNode;

class Memtable {
 public:
  // Sized for `expected_bytes` in all; grows beyond when it must.
  explicit Memtable(std::uint64_t expected_bytes = 0);
  ~Memtable();
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // `sequence` is greater than that of every entry before it. Entries of namespaces with
  // GroupCodec::Series that come in order are kept as strips (SeriesStrips). It is no
  // range.
  void add(const BatchEntry& entry, SequenceNumber sequence, GroupCodec codec);
  void add(NamespaceId namespace_id, ByteView key, SequenceNumber sequence, EntryKind kind,
           ByteView value, GroupCodec codec = GroupCodec::Plain, ByteView end = {}) {
    add({kind, namespace_id, key, value, end}, sequence, codec);
  }

  // An entry that is in memory whole and that nobody finds yet: its place is fetched from memory
  // meanwhile. Of a namespace with GroupCodec::Plain, `is_small()`; drafts are added in the order
  // they were made in, before anything else is; or, of one alone, discarded.
  struct Draft {
    MemtableNode* node = nullptr;
    std::uint64_t hash = 0;
    std::uint32_t user_bytes = 0;  // key and value
  };
  static bool is_small(ByteView key, ByteView value);
  Draft draft(NamespaceId namespace_id, ByteView key, EntryKind kind, ByteView value);
  void add(const Draft& draft, SequenceNumber sequence);
  void discard(const Draft& draft);

  // As add(), for what hides older entries. get() and cursors do not look at it.
  void add_range_delete(RangeDelete range_delete);
  // Null when there are none: then this costs one load.
  std::shared_ptr<const RangeDeleteLayers> range_deletes() const;
  // In the order of their sequences.
  std::vector<RangeDelete> range_delete_list() const;
  std::uint32_t range_delete_count() const;

  // The newest entry of the key with sequence <= visible.
  std::optional<FoundEntry> get(ByteView full_key, SequenceNumber visible) const;

  // Over [lower, upper) (empty upper: unbounded), the newest visible version of each key only. The
  // cursor keeps the memtable alive and does not see what is added after its creation. What is not
  // newer than `newer_than` is passed over.
  static std::unique_ptr<EntryCursor> cursor(std::shared_ptr<const Memtable> memtable,
                                             ByteView lower, ByteView upper, Direction direction,
                                             SequenceNumber visible, SequenceNumber newer_than = 0);

  // Said when its entries are in tables that new views show.
  void set_written_out() { is_written_out_.store(true, std::memory_order_relaxed); }
  bool is_written_out() const { return is_written_out_.load(std::memory_order_relaxed); }

  std::uint64_t memory_bytes() const;  // what it occupies: entries, index, order
  std::uint64_t entry_count() const;
  SequenceNumber first_sequence() const;  // 0 when it is empty
  SequenceNumber last_sequence() const;

 private:
  void count_entry(SequenceNumber sequence);
  Draft make_node(NamespaceId namespace_id, ByteView key, EntryKind kind, ByteView value,
                  ByteView end);
  void place_node(const Draft& draft, SequenceNumber sequence);

  class Inside;
  std::unique_ptr<Inside> inside_;
  std::atomic<bool> is_written_out_{false};
};

// The orders in which a memtable's entries are found: an index by key, and runs that a flush sorts.

// One entry of a memtable as it lies in the arena: this head, then the full key, then the value.
// Everything but `next` is written before the node is published and never after.
struct MemtableNode {
  const MemtableNode* older = nullptr;             // the entry of this key before this one
  std::atomic<const MemtableNode*> next{nullptr};  // in the order of writing
  std::uint64_t sequence_and_kind = 0;             // sequence * 4 + kind
  std::uint32_t value_bytes = 0;
  std::uint16_t key_bytes = 0;

  SequenceNumber sequence() const { return sequence_and_kind >> 2; }
  EntryKind kind() const { return static_cast<EntryKind>(sequence_and_kind & 3); }
  ByteView full_key() const { return {data(), key_bytes}; }
  ByteView value() const { return {data() + key_bytes, value_bytes}; }

  const char* data() const { return reinterpret_cast<const char*>(this) + sizeof(MemtableNode); }
  char* data() { return reinterpret_cast<char*>(this) + sizeof(MemtableNode); }
};
static_assert(sizeof(MemtableNode) == 32);

// MemtableIndex leads from a full key to its newest entry: an open-addressing hash table beside the
// arena.
//
// One writer; any number of readers beside it without a lock. Invariants: a slot goes from empty to
// a node, then only to newer nodes of the same key; a table that has become too small is kept until
// the index goes, because a reader may still be in it; whoever learned of a sequence number through
// an acquire finds every node up to it.
class MemtableIndex {
 public:
  // Room for `expected_entries` before it has to grow.
  explicit MemtableIndex(std::size_t expected_entries);

  // The newest node of `full_key`, or null.
  const MemtableNode* find(ByteView full_key) const;

  // Another one in each process: keys hold times that strangers choose.
  static std::uint64_t hash_of(ByteView full_key);
  // Where a key of this hash lies is in the cache when it is asked for, some time later.
  void fetch(std::uint64_t hash) const;
  // Makes `node`, of this hash, the newest of its key and links it to the one before. `oldest` is
  // the first node ever written, from which all but `node` are reached through `next`.
  void insert(MemtableNode* node, std::uint64_t hash, const MemtableNode* oldest);

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // A slot holds a pointer in its lower 48 bits and 16 bits of the key's hash above them, so that
  // most nodes of other keys are passed without being read. 0 is empty.
  using Slot = std::atomic<std::uint64_t>;
  struct Table {
    explicit Table(std::size_t size) : capacity(size), slots(new Slot[size]()) {}
    std::size_t capacity;
    std::unique_ptr<Slot[]> slots;
  };

  Table* add_table(std::size_t capacity);
  void grow(const MemtableNode* oldest);
  // Links and stores; answers whether the key is new to the table.
  static bool place(Table& table, const MemtableNode* node, std::uint64_t hash, MemtableNode* link);
  // The slot of the key, or the empty one where it would go.
  static std::size_t first_place(const Table& table, std::uint64_t hash) {
    // The upper half of the hash chooses the place, the lowest 16 bits are the tag.
    return static_cast<std::size_t>(((hash >> 32) * table.capacity) >> 32);
  }
  static Slot& locate(const Table& table, ByteView full_key, std::uint64_t hash);

  std::vector<std::unique_ptr<Table>> tables_;  // the last is current
  std::atomic<Table*> current_{nullptr};
  std::size_t keys_ = 0;
  std::atomic<std::uint64_t> used_{0};
};

// By full key; among equal keys the newest first.
using SortedRun = std::vector<const MemtableNode*>;

// The order of a memtable, made when somebody asks for it: entries written since the last time are
// sorted into a run, and runs of similar size are merged, so that there are few and an entry is
// moved only a logarithmic number of times. Writers pay nothing. Thread-safe.
class SortedRuns {
 public:
  // Runs that together hold every node reached from `oldest` whose sequence is at most `visible`
  // (and maybe newer ones), and that is newer than `newer_than` (and maybe others). `oldest` is the
  // same at every call; the first makes room for `expected` nodes.
  std::vector<std::shared_ptr<const SortedRun>> through(const MemtableNode* oldest,
                                                        SequenceNumber visible,
                                                        std::uint64_t expected,
                                                        SequenceNumber newer_than = 0);

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  void add_run(SortedRun run) EC_REQUIRES(mutex_);
  std::vector<std::shared_ptr<const SortedRun>> newer_runs(SequenceNumber newer_than) const
      EC_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<std::shared_ptr<const SortedRun>> runs_ EC_GUARDED_BY(mutex_);  // old to new
  std::vector<SequenceNumber> newest_ EC_GUARDED_BY(mutex_);                  // of runs_
  const MemtableNode* covered_ EC_GUARDED_BY(mutex_) = nullptr;  // the newest node in a run
  std::atomic<std::uint64_t> used_{0};
};

// Memory that is taken piece by piece and given back all at once, with its owner.
// Written by one thread; used_bytes() by any.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `size` bytes, aligned for a 64-bit number, not initialised; valid as long as the arena.
  char* allocate(std::size_t size);
  // Takes back the last allocate(), of kSmallMaxBytes at most, which nobody uses.
  void take_back(std::size_t size);
  static constexpr std::size_t kSmallMaxBytes = 2048;

  // Everything taken from the system, unused ends of blocks included.
  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  static std::size_t rounded(std::size_t size) {
    constexpr std::size_t kAlignment = alignof(std::uint64_t);
    return (size + kAlignment - 1) & ~(kAlignment - 1);
  }
  char* new_block(std::size_t size);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t next_block_bytes_ = kBlockMinBytes;
  std::atomic<std::uint64_t> used_{0};

  // Blocks grow from small, so that an idle store stays small, to a size whose unused end does not
  // matter.
  static constexpr std::size_t kBlockMinBytes = 16u << 10;
  static constexpr std::size_t kBlockMaxBytes = 256u << 10;
  // What is larger than this part of a block gets a block of its own.
  static constexpr std::size_t kLargeFraction = 8;
  static_assert(kSmallMaxBytes <= kBlockMinBytes / kLargeFraction);
};

inline constexpr std::size_t kStripLanes = 4;

// Entries in order; chunks of a lane grow from few to many.
struct StripChunk {
  std::atomic<std::uint32_t> size{0};
  std::uint32_t capacity = 0;
  StripChunk* previous = nullptr;
  std::atomic<StripChunk*> next{nullptr};

  SeriesEntry* entries() { return reinterpret_cast<SeriesEntry*>(this + 1); }
  const SeriesEntry* entries() const { return reinterpret_cast<const SeriesEntry*>(this + 1); }
};

struct StripLane {
  std::atomic<StripChunk*> last{nullptr};  // null: nothing was ever added, nor to later lanes
  StripChunk* first = nullptr;             // to be read after `last`
  // The writer's: the greatest ordinal, where the next entry goes in the last chunk, its end.
  std::uint64_t ordinal_max = 0;
  SeriesEntry* place = nullptr;
  SeriesEntry* end = nullptr;
};

// Most prefixes are 12 bytes: their first and last eight say all.
struct StripPrefix {
  std::uint64_t first_word = 0;
  std::uint64_t last_word = 0;
  std::size_t size = 0;

  friend bool operator==(const StripPrefix&, const StripPrefix&) = default;
};

struct Strip {
  StripPrefix words;
  Strip* successor = nullptr;  // the writer's: which strip got the entry after this one's last
  std::uint64_t hash = 0;
  std::array<StripLane, kStripLanes> lanes;
  ByteView prefix;  // of the full key, in the arena
};

// The part of a memtable for time series: entries whose full keys are alike but for their last 8
// bytes, a big-endian ordinal, and that come in ascending order. One *strip* holds those of one
// prefix, already sorted: 24 bytes an entry, no hash slot, nothing to sort at the flush.
//
// A strip has lanes, each in ascending order: what comes too late for one goes to the next, so that
// writers of one series may take turns. What is late for the last lane is refused and belongs into
// the memtable's general part. A key never returns to an earlier lane: of a key that stands in two
// lanes the later has the newer entry, and of one that stands in both parts the general one has.
// All keys of one SeriesStrips are of one length: the strips' key ranges do not overlap.
//
// One writer; readers beside it see the entries whose sequence they learned of through an acquire.
class SeriesStrips {
 public:
  // `arena` is the memtable's; it outlives this.
  explicit SeriesStrips(Arena& arena) : arena_(arena) {}

  // False: the entry is not for a strip, nothing was changed.
  bool add(const BatchEntry& entry, SequenceNumber sequence);

  std::optional<FoundEntry> get(ByteView full_key, SequenceNumber visible) const;

  // Over [lower, upper), the entries with newer_than < sequence <= visible; null if no strip lies
  // there. It keeps `owner`, whose arena this is, alive.
  std::unique_ptr<EntryCursor> cursor(std::shared_ptr<const void> owner, ByteView lower,
                                      ByteView upper, Direction direction, SequenceNumber visible,
                                      SequenceNumber newer_than) const;

  std::uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  using Strips = std::vector<const Strip*>;

  Strip& strip_of(const StripPrefix& words, NamespaceId namespace_id, ByteView key_prefix);
  Strip* find(const StripPrefix& words, std::uint64_t hash) const;
  Strip* add_strip(const StripPrefix& words, std::uint64_t hash, NamespaceId namespace_id,
                   ByteView key_prefix);
  void put_in_table(Strip* strip);
  StripChunk* add_chunk(StripLane& lane);
  void add_to(StripLane& lane, std::uint64_t ordinal, SequenceNumber sequence,
              const BatchEntry& added);
  // In the order of their prefixes.
  std::shared_ptr<const Strips> sorted() const EC_EXCLUDES(mutex_);

  Arena& arena_;
  Strip* used_last_ = nullptr;  // the writer's
  // The table is the writer's to change, under the mutex, and to read without; readers take the
  // mutex.
  mutable Mutex mutex_;
  std::vector<Strip*> table_;  // open addressing; empty or at most half full
  std::vector<Strip*> strips_;
  std::size_t prefix_bytes_ = 0;  // of every strip here; 0: none yet
  mutable std::shared_ptr<const Strips> sorted_ EC_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> used_{0};
};

// Reading.

inline constexpr std::size_t kOrdinalKeyBytes = 8;
inline constexpr std::size_t kTaggedBytes = 9;

EntryKind strip_kind(const SeriesEntry& entry);
// A number's bytes are put together in `number`.
ByteView strip_value(const SeriesEntry& entry, char (&number)[kTaggedBytes]);

// A place in a lane; no entry means past either end.
struct StripPosition {
  const StripChunk* chunk = nullptr;
  std::uint32_t index = 0;

  const SeriesEntry* entry() const { return chunk == nullptr ? nullptr : chunk->entries() + index; }
  void next();
  void previous();
  // Ahead, within this chunk and one behind it.
  void advance(std::uint32_t count);
  // Entries from here to the end of the chunk.
  std::uint32_t left_in_chunk() const;
};

StripPosition first_of(const StripLane& lane);
StripPosition last_of(const StripLane& lane);
// Entries that are added meanwhile may be found or not.
StripPosition first_at_or_after(const StripLane& lane, std::uint64_t ordinal);
// A lane's sequences ascend as its ordinals do.
StripPosition first_newer(const StripLane& lane, SequenceNumber than);

// Over strips[from, from + count), which are in order, within [lower, upper), the entries with
// newer_than < sequence <= visible. Keeps `owner`.
std::unique_ptr<EntryCursor> make_strip_cursor(
    std::shared_ptr<const void> owner, std::shared_ptr<const std::vector<const Strip*>> strips,
    std::size_t from, std::size_t count, ByteView lower, ByteView upper, Direction direction,
    SequenceNumber visible, SequenceNumber newer_than);

}  // namespace edgecase::engine
