// A cursor over the entries of one run: of tables in key order that do not overlap.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>
#include "edgecase/mutex.h"

#include "table/record_cursor.h"
#include "table/table_files.h"

namespace edgecase::engine {

// Full keys, borrowed.
struct TableCursorOptions {
  ByteView lower;
  ByteView upper;  // empty: unbounded
  Direction direction = Direction::Forward;
  bool fill_cache = true;
  std::uint64_t large_value_bytes = kNoLargeValues;  // EntryCursor::large_value()
  SequenceNumber newer_than = 0;                     // items without anything newer are passed over
};

// Invariant while valid(): record() is the record that holds the current entry. The entry is either
// the record's first (reverse: last), whose key the record tells, and then item_ may be closed; or
// it is entry `index_` of item_, and then at_entry_ is set. item_ holds the whole item where pages_
// is empty, else what is decoded of page `page_`: all of it or, forward, a stretch.
class TableCursor final : public EntryCursor {
 public:
  using Table = std::shared_ptr<const TableMetadata>;

  // Positions it on its first entry. What it is given, bounds and all, is borrowed until close() or
  // the next open(). There is at least one table.
  void open(TableFiles& files, std::span<const Table> tables, const TableCursorOptions& options);
  // Lets go of all but memory for the next open().
  void close();

  bool valid() const override { return valid_; }
  const Status& status() const override { return status_; }
  ByteView full_key() const override;
  Status load() override;
  SequenceNumber sequence() const override { return item_.entry().sequence; }
  EntryKind kind() const override { return item_.entry().kind; }
  ByteView value() const override { return item_.entry().value; }
  Result<std::unique_ptr<LargeValue>> large_value() override;
  void next() override;
  std::span<const EntryView> loaded_run() override;
  std::size_t take_numbers(ByteView until, NumberRun& run) override;
  void skip(std::size_t count) override;
  bool whole_group(WholeGroup& group) override;
  void skip_group() override { next_record(); }
  void seek(ByteView full_key) override;
  bool damaged_keys(Bytes& first, Bytes& last) const override;

 private:
  static constexpr std::size_t kNoPage = SIZE_MAX;

  const UMetaRecord& record() const { return records_.record(); }
  bool forward() const { return options_.direction == Direction::Forward; }
  std::size_t find_table(ByteView full_key) const;
  // Each answers false after it has ended the cursor, with an error or without.
  bool open_table(std::size_t table_index);
  bool load_block(std::size_t block_index);
  bool select(std::size_t block_index, std::size_t record_index);
  bool select_last(std::size_t block_index);
  bool find_record(ByteView full_key);
  void enter_record();
  bool list_pages_of_record();
  Result<ByteView> read_page(std::size_t page);
  bool open_destroyed();
  bool open_part(std::size_t page);
  bool open_page_from(std::size_t page, ByteView full_key);
  bool is_large() const;
  bool open_large();
  bool open_single();
  bool move_to(std::size_t index);
  bool move_to_first();  // of the item, and last
  bool move_to_last();
  bool move_to_next(std::size_t index);
  bool move_to_before(std::size_t index);
  bool search(ByteView full_key, std::size_t& index);
  bool end();
  bool is_old() const { return record().sequence_max <= options_.newer_than; }
  // What was being read when it failed, which says which keys cannot be told of.
  enum class Reading : unsigned char { Table, Block, Item };
  bool fail(Status status, Reading reading = Reading::Item, std::size_t index = 0);

  void start();
  void settle_forward(ByteView target);
  void settle_reverse(ByteView bound, bool bound_included);
  void settle_last();
  void next_record();
  bool step_record();
  void next_in_item();
  // Makes the cursor valid if the current entry is within the bounds. Moves on from what is old.
  void accept();

  // More memory than this is not kept for the next open().
  static constexpr std::size_t kKeptBytes = 16u << 10;

  TableFiles* files_ = nullptr;
  std::span<const Table> tables_;
  TableCursorOptions options_;
  Status status_;
  Bytes damaged_first_;  // after an error
  Bytes damaged_last_;
  bool valid_ = false;

  std::size_t table_index_ = 0;
  std::shared_ptr<const UMetaReader> table_;  // null: none is open
  std::size_t block_index_ = 0;
  UMetaCursor records_;           // of that block
  bool check_bound_ = false;      // the far bound lies within the record's keys
  std::vector<PagePlace> pages_;  // of the record, when pages_known_
  bool pages_known_ = false;
  ItemReader item_;
  std::size_t page_ = 0;
  bool is_whole_ = false;  // what is open, from its first entry to its last
  CursorPage read_;
  FoundEntry single_;  // of the record, where item_ is open_entry()
  ReadAhead ahead_;
  std::size_t read_page_ = kNoPage;  // of the record, whose bytes are these
  ByteView read_bytes_;
  bool at_entry_ = false;
  std::size_t index_ = 0;
};

// Cursors for one scan after another: what a short scan reads takes less time than getting memory
// for a cursor over each run. Keeps those that nobody uses. Thread-safe.
class CursorPool {
 public:
  using Cursors = std::vector<std::unique_ptr<TableCursor>>;

  // The cursors of an earlier scan, closed; or none.
  Cursors take() EC_EXCLUDES(mutex_);
  void give_back(Cursors cursors) EC_EXCLUDES(mutex_);

 private:
  // How many scans at once find cursors, and how many each. A cursor takes kKeptBytes at most
  // (TableCursor), and what it is itself.
  static constexpr std::size_t kScansMax = 2;
  static constexpr std::size_t kCursorsMax = 64;

  Mutex mutex_;
  std::vector<Cursors> free_ EC_GUARDED_BY(mutex_);
};

// The cursors of one scan. Owned by one thread.
class LentCursors {
 public:
  LentCursors(std::shared_ptr<TableFiles> files, std::shared_ptr<CursorPool> pool);
  LentCursors(const LentCursors&) = delete;
  LentCursors& operator=(const LentCursors&) = delete;
  ~LentCursors();

  // A cursor that lives as long as this; what TableCursor::open() wants does, too.
  TableCursor& open(std::span<const std::shared_ptr<const TableMetadata>> tables,
                    const TableCursorOptions& options);

 private:
  const std::shared_ptr<TableFiles> files_;
  const std::shared_ptr<CursorPool> pool_;
  CursorPool::Cursors cursors_;
  std::size_t used_ = 0;
};

inline CursorPool::Cursors CursorPool::take() {
  MutexLock lock(mutex_);
  if (free_.empty()) return {};
  Cursors cursors = std::move(free_.back());
  free_.pop_back();
  return cursors;
}

inline void CursorPool::give_back(Cursors cursors) {
  if (cursors.size() > kCursorsMax) cursors.resize(kCursorsMax);
  MutexLock lock(mutex_);
  // Cursors that are not kept are destroyed after the lock is gone.
  if (free_.size() < kScansMax) free_.push_back(std::move(cursors));
  lock.unlock();
}

inline LentCursors::LentCursors(std::shared_ptr<TableFiles> files, std::shared_ptr<CursorPool> pool)
    : files_(std::move(files)), pool_(std::move(pool)), cursors_(pool_->take()) {}

inline LentCursors::~LentCursors() {
  if (used_ > 1) files_->counters().more_runs.fetch_add(used_ - 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < used_; ++i) cursors_[i]->close();
  pool_->give_back(std::move(cursors_));
}

inline TableCursor& LentCursors::open(std::span<const std::shared_ptr<const TableMetadata>> tables,
                                      const TableCursorOptions& options) {
  if (used_ == cursors_.size()) cursors_.push_back(std::make_unique<TableCursor>());
  TableCursor& cursor = *cursors_[used_++];
  cursor.open(*files_, tables, options);
  return cursor;
}

}  // namespace edgecase::engine
