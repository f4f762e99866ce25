// Walks the items of one run, in key order, by their metadata records alone; opens an item only
// when asked to. What merges are made of. Forward only; nothing it reads is left in the cache.
//
// It stands on a record, or, once open_item() was called, on an entry of it. Owned by one thread;
// holds one block of records and at most one item.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "table/table_files.h"

namespace edgecase::engine {

class RecordCursor {
 public:
  // `tables` are of one run, in key order.
  RecordCursor(std::shared_ptr<TableFiles> files,
               std::vector<std::shared_ptr<const TableMetadata>> tables);
  RecordCursor(RecordCursor&&) = default;

  // False at the end, and after an error: look at status().
  bool valid() const { return valid_; }
  const Status& status() const { return status_; }

  // Where it stands: the key of the entry, or the first key of the record.
  ByteView key() const { return is_open() ? item_.entry().full_key : record_.first; }
  // Views hold until next_record(), or next_entry() behind the last entry.
  const UMetaRecord& record() const { return record_; }
  void next_record();
  // Forward only: to the first record whose last key is at or after `full_key`. Reads one block at
  // most.
  void seek_record(ByteView full_key);

  bool is_open() const { return item_.is_open(); }
  // Reads the item and stands on its first entry. On an error valid() becomes false.
  Status open_item();
  // Only when open. The view holds until the next call of anything that moves.
  const EntryView& entry() const { return item_.entry(); }
  // Back to the record, or to the first entry.
  void close_item() { item_.close(); }
  Status rewind_item();
  // To the next entry; behind the last one to the next record, not opened.
  void next_entry();
  // The sequence of the entry of `full_key` in this item, which the filter may rule out unread.
  Result<std::optional<SequenceNumber>> find_entry(ByteView full_key);
  // Seeks, and answers whether an entry of `full_key` is newer than `sequence`.
  Result<bool> supersedes(ByteView full_key, SequenceNumber sequence);
  // To some record of the first table, whichever `random` says.
  void select_any(std::uint64_t random);
  // The bytes of the item as it lies, checked.
  Result<std::shared_ptr<const Item>> read_item();

 private:
  bool fail(Status status);
  bool open_table(std::size_t index);
  void select(std::size_t record_index);
  bool load_block(std::size_t index);
  bool move_to(std::size_t index);

  const std::shared_ptr<TableFiles> files_;
  const std::vector<std::shared_ptr<const TableMetadata>> tables_;
  Status status_;
  bool valid_ = false;
  std::size_t table_index_ = 0;
  std::shared_ptr<const UMetaReader> table_;
  std::shared_ptr<const UMetaBlock> block_;
  std::size_t block_index_ = 0;
  std::size_t record_index_ = 0;
  UMetaRecord record_;  // views block_
  ItemReader item_;
  std::size_t entry_index_ = 0;
};

}  // namespace edgecase::engine
