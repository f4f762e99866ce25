// Reads tables: open files, metadata blocks and decoded groups, within a fixed number of bytes and
// descriptors. Thread-safe. The caller keeps every TableMetadata it passes named by a live version
// for the length of the call or of the cursor; files are opened on first use and may be unlinked
// while open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/entry.h"
#include "edgecase/engine.h"
#include "edgecase/file_system.h"
#include "edgecase/iterator.h"
#include "table/table_metadata.h"

namespace edgecase::engine {

class CursorPool;
class KeyRing;
class LentCursors;
class RecordCursor;
class TableFiles;
struct SumsAdmission;

// What thread_reads() answers, of the calling thread.
ThreadReads& counted_thread_reads();

struct ReadCounters {
  std::atomic<std::uint64_t> value_reads{0};
  std::atomic<std::uint64_t> value_bytes_read{0};     // from the values directory
  std::atomic<std::uint64_t> metadata_bytes_read{0};  // from the metadata directory
  std::atomic<std::uint64_t> metadata_block_loads{0};
  std::atomic<std::uint64_t> level0_skips{0};  // by the NSTable
  std::atomic<std::uint64_t> filter_probes{0};
  std::atomic<std::uint64_t> filter_negatives{0};
  std::atomic<std::uint64_t> cache_hits{0};
  std::atomic<std::uint64_t> cache_misses{0};
  std::atomic<std::uint64_t> more_runs{0};  // that scans opened, beyond the first of each

  void count_metadata(std::uint64_t bytes) {
    metadata_bytes_read.fetch_add(bytes, std::memory_order_relaxed);
    counted_thread_reads().metadata_bytes += bytes;
  }
  void count_values(std::uint64_t bytes) {
    value_bytes_read.fetch_add(bytes, std::memory_order_relaxed);
    counted_thread_reads().values_bytes += bytes;
  }
};

class TableCache {
 public:
  struct Limits {
    std::uint64_t cache_bytes = 24u << 20;  // metadata blocks and decoded groups together
    std::size_t open_files = 512;
    bool map_files = false;
  };

  TableCache(FileSystem& file_system, std::string metadata_directory, std::string values_directory,
             const StoreId& store_id, Limits limits, KeyRing* keys = nullptr);
  ~TableCache();

  // Whether this table has an entry of `full_key`, delete or put; fills in `entry` if so. Reads at
  // most one item.
  Result<bool> find(const TableMetadata& table, ByteView full_key, bool fill_cache,
                    FoundEntry& entry);
  // The same; nullopt if there is none.
  Result<std::optional<FoundEntry>> get(const std::shared_ptr<const TableMetadata>& table,
                                        ByteView full_key, bool fill_cache);

  // A cursor over [lower, upper) (empty upper: unbounded; full keys), positioned on its first entry
  // in `direction`. It reads an item when load() or a seek into it asks for it, and of values of
  // `large_value_bytes` and more nothing but in pieces.
  std::unique_ptr<EntryCursor> cursor(std::shared_ptr<const TableMetadata> table, ByteView lower,
                                      ByteView upper, Direction direction, bool fill_cache,
                                      std::uint64_t large_value_bytes = kNoLargeValues);
  // Lends cursors over runs, for one scan.
  LentCursors lend_cursors();

  // The items of a run, for merges, from the first that reaches to `from` on. `tables` are in key
  // order.
  RecordCursor records(std::vector<std::shared_ptr<const TableMetadata>> tables,
                       ByteView from = {});

  // As KeptSums.
  bool find_sums(const WholeGroup& group, std::uint64_t every, std::uint64_t phase,
                 WindowSums& sums, SumsAdmission& admission);
  void keep_sums(const WholeGroup& group, const WindowSums& sums);

  // Registers where the value files of a version lie; without it a file number cannot be resolved.
  // Idempotent.
  void add_value_file(const ValueFileMetadata& file);
  // Drops everything held of a deleted file (either kind).
  void forget(FileNumber number);
  // Drops what is cached of a file that stays.
  void forget_items(FileNumber number);

  const ReadCounters& counters() const;
  std::uint64_t used_bytes() const;
  // Memory that others took of what the cache was given; half of it stays the cache's.
  void set_aside(std::uint64_t bytes);
  // Another Limits::cache_bytes.
  void resize(std::uint64_t cache_bytes);

 private:
  std::shared_ptr<TableFiles> files_;  // shared with the cursors
  std::shared_ptr<CursorPool> pool_;
};

}  // namespace edgecase::engine
