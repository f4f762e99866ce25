// Walks the items of one run, in key order, by their metadata records alone; opens an item only
// when asked to. What merges are made of. Forward only; nothing it reads is left in the cache.
//
// It stands on a record, or, once open_item() was called, on an entry of it. Owned by one thread;
// holds one block of records, at most two items, and kReadAheadMaxBytes where items follow each
// other.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/entry.h"
#include "metadata/umeta_table.h"
#include "table/table_files.h"
#include "table/table_metadata.h"
#include "value/group.h"
#include "value/value_table.h"

namespace edgecase::engine {

// Reads the entries of an item, whichever type it is.

// Opens the item of a record, or a page of it, for reading entries from it, whichever type it is.
class ItemReader {
 public:
  // False when the item is malformed or is not what the record says.
  [[nodiscard]] bool open(const UMetaRecord& record, std::shared_ptr<const Item> item);
  // The same of a page, which stays where it is: its entries alone are there then.
  [[nodiscard]] bool open_page(const UMetaRecord& record, ByteView page);
  // Opens only some entries of a page, from the first at or after `full_key` on. There may be none.
  [[nodiscard]] bool open_page_from(const UMetaRecord& record, ByteView page, ByteView full_key);
  // Whether the page has others behind those, and: these in their place.
  bool has_more() const { return form_ == Form::Page && page_.has_more(); }
  [[nodiscard]] bool decode_more() { return page_.decode_more(); }
  // In place of the item of a single, whose entry is there already: it stays where it is.
  void open_entry(const UMetaRecord& record, const FoundEntry& entry);
  // In place of the item of a single, which is not read: its value is empty. The key is the
  // record's.
  void open_unread(const UMetaRecord& record);
  bool is_unread() const { return is_open_ && form_ == Form::Unread; }
  // In place of an item whose key was destroyed, since all of it was erased: its first and its last
  // key, deleted. They view the record.
  void open_destroyed(const UMetaRecord& record);
  void close() {
    item_.reset();
    is_open_ = false;
  }
  // As close(). Keeps memory for other pages, if that is no more.
  void close_for_reuse(std::size_t kept_bytes_max);
  bool is_open() const { return is_open_; }
  // What is open is open_destroyed().
  bool is_destroyed() const { return is_open_ && form_ == Form::Destroyed; }

  std::size_t entry_count() const;
  // As those of GroupReader.
  [[nodiscard]] bool lower_bound(ByteView full_key, std::size_t& index);
  [[nodiscard]] bool move_to(std::size_t index);
  const EntryView& entry() const { return entry_; }
  std::span<const EntryView> decoded_from(std::size_t index) const;
  std::size_t add_numbers(std::size_t index, Direction direction, ByteView lower, ByteView upper,
                          NumberRun& run) const {
    return form_ == Form::Group ? group_.add_numbers(index, direction, lower, upper, run) : 0;
  }

 private:
  enum class Form : unsigned char { Single, Unread, Group, Page, Destroyed };

  std::shared_ptr<const Item> item_;
  bool is_open_ = false;
  bool had_group_ = false;
  std::array<EntryView, 2> destroyed_;
  std::size_t destroyed_count_ = 0;
  Form form_ = Form::Single;
  Bytes unpacked_;  // the value of a packed single
  GroupReader group_;
  PlainPageReader page_;
  EntryView entry_;
};

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

// One key in one table: what a get does there.

// Whether the table has an entry of `full_key`, delete or put, which lies within its bounds; fills
// in `entry` if so. Reads at most one block of metadata and one item, or one page of it.
Result<bool> find_in_table(TableFiles& files, const TableMetadata& table, ByteView full_key,
                           bool fill_cache, FoundEntry& entry);

}  // namespace edgecase::engine
