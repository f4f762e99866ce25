// Walks the items of one run, in key order, by their metadata records alone; opens an item only
// when asked to. What merges are made of. Forward only; nothing it reads is left in the cache.
//
// It stands on a record, or, once open_item() was called, on an entry of it. Owned by one thread;
// holds one block of records, at most two items, and kReadAheadMaxBytes where items follow each
// other.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "table/item_reader.h"
#include "table/table_files.h"

namespace edgecase::engine {

// A key that is looked for in many runs: what filters are asked with is computed once.
class SoughtKey {
 public:
  // The key is borrowed.
  explicit SoughtKey(ByteView full_key) : full_key_(full_key) {}

  ByteView full_key() const { return full_key_; }
  std::uint64_t hash_for(ItemType type) const;

 private:
  ByteView full_key_;
  mutable std::optional<std::uint64_t> hashes_[2];  // of plain groups, of series groups
};

class RecordCursor {
 public:
  // `tables` are of one run, in key order. It begins with the first record whose last key is at or
  // after `from`.
  RecordCursor(std::shared_ptr<TableFiles> files,
               std::vector<std::shared_ptr<const TableMetadata>> tables, ByteView from = {});
  RecordCursor(RecordCursor&&) = default;

  // False at the end, and after an error: look at status().
  bool valid() const { return valid_; }
  const Status& status() const { return status_; }
  // Which table the record stands in, and whether nothing of that table has been passed.
  std::size_t table_index() const { return table_index_; }
  bool at_table_begin() const { return !is_open() && block_index_ == 0 && records_.index() == 0; }

  // Where it stands: the key of the entry, or the first key of the record.
  ByteView key() const { return is_open() ? item_.entry().full_key : record().first; }
  // Views hold until next_record(), or next_entry() behind the last entry.
  const UMetaRecord& record() const { return records_.record(); }
  void next_record();
  // Forward only: to the first record whose last key is at or after `full_key`. Reads one block at
  // most.
  void seek_record(ByteView full_key);

  // About as many entries as there are from its block on to `full_key`, as the indexes tell.
  std::uint64_t entries_up_to(ByteView full_key) const;

  bool is_open() const { return item_.is_open(); }
  // Reads the item and stands on its first entry. On an error valid() becomes false.
  Status open_item();
  // The key of the item that is open was destroyed, since all of it was erased: it has no more
  // entries than a first and a last one, deleted, whatever its record says.
  bool is_destroyed() const { return item_.is_destroyed(); }
  // Only when open. The view holds until the next call of anything that moves.
  const EntryView& entry() const { return item_.entry(); }
  // Back to the record, or to the first entry.
  void close_item() { item_.close(); }
  Status rewind_item();
  // Only when open: to the next entry; behind the last one to the next record, not opened.
  void next_entry();
  // The sequence of the entry of `key` in this item, which the filter may rule out unread. Reads
  // the item, or one page of it, which stays open for the next key.
  Result<std::optional<SequenceNumber>> find_entry(const SoughtKey& key);
  // Seeks, and answers whether an entry of `key` is newer than `sequence`.
  Result<bool> supersedes(const SoughtKey& key, SequenceNumber sequence);
  // To some record of the first table, whichever `random` says.
  void select_any(std::uint64_t random);
  // The bytes of the item as it lies, checked; null: its key was destroyed.
  Result<std::shared_ptr<const Item>> read_item();

 private:
  // Where find_entry() looked last.
  struct SearchedPage {
    std::optional<std::size_t> number;  // nothing: it is none of this item
    ByteView bytes;
    PageBuffer buffer;
  };

  bool fail(Status status);
  void close_searched();
  Result<std::optional<SequenceNumber>> find_in_pages(const SoughtKey& key);
  bool open_table(std::size_t index);
  void select(std::size_t record_index);
  bool fail_block();
  bool load_block(std::size_t index);
  void seek_table(std::size_t table, ByteView full_key);
  bool move_to(std::size_t index);

  const std::shared_ptr<TableFiles> files_;
  const std::vector<std::shared_ptr<const TableMetadata>> tables_;
  Status status_;
  bool valid_ = false;
  std::size_t table_index_ = 0;
  std::shared_ptr<const UMetaReader> table_;
  std::size_t block_index_ = 0;
  UMetaCursor records_;  // of that block
  ReadAhead ahead_;
  ItemReader item_;
  ItemReader searched_;  // the same item, where find_entry() has opened it
  std::unique_ptr<SearchedPage> searched_page_;
  std::size_t entry_index_ = 0;
};

}  // namespace edgecase::engine
