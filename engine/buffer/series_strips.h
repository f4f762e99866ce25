// A memtable's memory: the arena that entries lie in, and strips, which hold a series' entries
// without its key (series_strips.cc), and cursors over them (strip_cursor.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/entry.h"
#include "edgecase/iterator.h"
#include "edgecase/mutex.h"

namespace edgecase::engine {

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
