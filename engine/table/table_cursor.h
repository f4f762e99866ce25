// A cursor over the entries of one table; what TableCache::cursor() makes.
#pragma once

#include <memory>

#include "table/table_files.h"

namespace edgecase::engine {

struct TableCursorOptions {
  Bytes lower;
  Bytes upper;  // empty: unbounded
  Direction direction = Direction::Forward;
  bool fill_cache = true;
  std::uint64_t large_value_bytes = kNoLargeValues;  // EntryCursor::large_value()
};

// Invariant while valid(): record() is the record that holds the current entry. The entry is either
// the record's first (reverse: last), whose key the record tells, and then item_ may be closed; or
// it is entry `index_` of item_, and then at_entry_ is set. item_ holds page `page_` of pages_, or
// the whole item where pages_ is empty.
class TableCursor final : public EntryCursor {
 public:
  TableCursor(std::shared_ptr<TableFiles> files, std::shared_ptr<const TableMetadata> table,
              TableCursorOptions options);

  bool valid() const override { return valid_; }
  const Status& status() const override { return status_; }
  ByteView full_key() const override;
  Status load() override;
  SequenceNumber sequence() const override { return item_.entry().sequence; }
  EntryKind kind() const override { return item_.entry().kind; }
  ByteView value() const override { return item_.entry().value; }
  Result<std::unique_ptr<LargeValue>> large_value() override;
  void next() override;
  std::span<const EntryView> loaded_run(ByteView until) override;
  void skip(std::size_t count) override;
  void seek(ByteView full_key) override;

 private:
  const UMetaRecord& record() const { return records_.record(); }
  bool forward() const { return options_.direction == Direction::Forward; }
  bool open_table();
  // Each answers false after it has ended the cursor, with an error or without.
  bool load_block(std::size_t block_index);
  bool select(std::size_t block_index, std::size_t record_index);
  bool find_record(std::size_t block_index, ByteView full_key);
  void enter_record();
  bool list_pages_of_record();
  bool open_part(std::size_t page);
  bool is_large() const;
  bool open_large();
  bool move_to(std::size_t index);
  bool move_to_first();  // of the item, and last
  bool move_to_last();
  bool move_to_next(std::size_t index);
  bool move_to_before(std::size_t index);
  bool search(ByteView full_key, std::size_t& index);
  bool end();
  bool fail(Status status);

  void start();
  void settle_forward(ByteView target);
  void settle_reverse(ByteView bound, bool bound_included);
  void settle_last();
  void next_record();
  void next_in_item();
  // Makes the cursor valid if the current entry is within the bounds.
  void accept();

  const std::shared_ptr<TableFiles> files_;
  const std::shared_ptr<const TableMetadata> metadata_;
  const TableCursorOptions options_;
  Status status_;
  bool valid_ = false;

  std::shared_ptr<const UMetaReader> table_;
  std::size_t block_index_ = 0;
  UMetaCursor records_;           // of that block
  bool check_bound_ = false;      // the far bound lies within the record's keys
  std::vector<PagePlace> pages_;  // of the record, when pages_known_
  bool pages_known_ = false;
  ItemReader item_;
  std::size_t page_ = 0;
  ReadAhead ahead_;
  bool at_entry_ = false;
  std::size_t index_ = 0;
};

}  // namespace edgecase::engine
