// A value table: items in key order, then index and summary. ValueTableWriter writes one,
// ValueTableReader reads its items. Layout: value_format.h.
//
// Writing: create(), append items, finish() once. A table that was not finished is worthless:
// remove the file. Nothing refers to it before the manifest names it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/entry.h"
#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "value/group.h"
#include "value/packing.h"
#include "value/series_columns.h"
#include "value/value_format.h"

namespace edgecase::engine {

struct ValueTableHead {
  TableIdentity identity;
  NamespaceId namespace_id = 0;
  Placement placement = Placement::Values;
  GroupCodec codec = GroupCodec::Plain;
  // Not in the head but in section 2; a reader finds them in the summary.
  Bytes namespace_name;  // empty: not told
  std::uint32_t scope_bytes = 0;
  // For writers alone: groups are packed where that pays.
  bool packs = false;
};

// Not thread-safe.
class ValueTableWriter {
 public:
  // With `keys` it is encrypted, each item under its scope's key: `head.scope_bytes` of its first
  // key. Errors: AlreadyExists, OutOfSpace, IoError.
  static Result<std::unique_ptr<ValueTableWriter>> create(FileSystem& file_system,
                                                          const std::string& path,
                                                          const ValueTableHead& head,
                                                          KeyRing* keys = nullptr);

  // `entries` as append_group() wants them, behind all entries before them.
  // Errors: OutOfSpace, IoError; after one only destruction is allowed.
  Result<ValuePointer> append_group(std::span<const EntryView> entries,
                                    SequenceColumn sequences = SequenceColumn::None);
  // The page index of the group that append_group() took last, for its metadata record; until the
  // next call. Empty: it is to be read whole.
  ByteView page_index() const { return page_index_; }
  // A series group, gathered.
  Result<ValuePointer> append_group(SeriesColumns& columns);
  Result<ValuePointer> append_single(const EntryView& entry);
  // An item of another table: all its bytes, as a reader gave them.
  Result<ValuePointer> append_copy(ByteView item, const ItemSummary& summary);

  // end(), then sync().
  Status finish();
  // Writes index, summary and tail. A caller that ends several files before the first of them is
  // synced waits once for what the drive does side by side.
  Status end();
  // Syncs a file that was ended; its directory is the caller's. Makes the keys of its items
  // durable. Reads the first item of an encrypted file back, to see that it opens.
  Status sync();

  const ValueTableHead& head() const { return head_; }
  // The size so far; after finish() that of the whole file.
  std::uint64_t size_bytes() const { return file_->size_bytes(); }
  std::uint64_t item_count() const { return item_sizes_.size(); }
  std::uint64_t item_bytes() const { return item_bytes_; }
  std::uint32_t checksum() const { return checksum_; }

 private:
  ValueTableWriter(FileSystem& file_system, std::string path, std::unique_ptr<WritableFile> file,
                   const ValueTableHead& head, std::unique_ptr<FileCipher> cipher);

  ByteView pack_single(ByteView value);
  Packer* packer() { return head_.packs ? &packer_ : nullptr; }
  Status append(ByteView bytes);
  Result<ValuePointer> append_item(const ItemSummary& summary, ByteView end = {});
  Result<std::size_t> write_item(const ItemSummary& summary, std::uint64_t offset, ByteView end);
  Status read_back() const;

  FileSystem& file_system_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  ValueTableHead head_;
  std::unique_ptr<FileCipher> cipher_;  // null: not encrypted
  std::uint32_t checksum_ = 0;
  Bytes item_;    // the one being built
  Bytes sealed_;  // and as it lies in the file, if that is encrypted
  Bytes page_index_;
  Packer packer_;         // of groups
  Packer single_packer_;  // the others may be of another sort
  std::vector<std::uint64_t> item_sizes_;
  std::uint64_t first_offset_ = 0;  // of the first item
  std::uint64_t item_bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t deletes_ = 0;
  SequenceNumber sequence_min_ = UINT64_MAX;
  SequenceNumber sequence_max_ = 0;
  Bytes smallest_;
  Bytes largest_;
  bool ascending_ = true;  // each item lies behind all before it
};

struct SealProblem;

// The bytes of one item, its checksums already right; or of one page of a plain group.
struct Item {
  Bytes bytes;
  std::shared_ptr<const SeriesMarks> marks = nullptr;  // of a series group, where they were made

  ItemType type() const { return static_cast<ItemType>(bytes[kItemChecksumBytes]); }
  ByteView contents() const { return ByteView(bytes).substr(kItemHeadBytes); }
  std::size_t memory_bytes() const {
    return bytes.capacity() + (marks == nullptr ? 0 : marks->memory_bytes());
  }
};

// Whether an item was overwritten, since what it held was erased: it has no byte but zeros.
bool is_blank(ByteView item);

// The one entry of a Single; nullopt when malformed. Views `contents`, and `room` where the value
// is packed.
std::optional<EntryView> parse_single(ByteView contents, Bytes& room);

struct ValueTableSummary {
  std::vector<ValuePointer> items;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  Bytes smallest;
  Bytes largest;
  bool ascending = false;  // all keys of each item lie behind those of the items before it
  Bytes namespace_name;    // empty: not told
  std::uint32_t scope_bytes = 0;
};

// Thread-safe; holds no more than the open file.
class ValueTableReader {
 public:
  // Checks the head against what is expected: Corruption, Unavailable (another store's file) or
  // Unsupported (newer format) when it is not so; NotAllowed when it is encrypted and there are no
  // `keys`.
  static Result<std::unique_ptr<ValueTableReader>> open(std::unique_ptr<RandomAccessFile> file,
                                                        const StoreId& store_id,
                                                        std::uint64_t file_number,
                                                        KeyRing* keys = nullptr);
  // For files of any store: takes identity from the head itself.
  static Result<std::unique_ptr<ValueTableReader>> open_any(std::unique_ptr<RandomAccessFile> file,
                                                            KeyRing* keys = nullptr);

  const ValueTableHead& head() const { return head_; }
  const RandomAccessFile& file() const { return *file_; }
  const FileCipher* cipher() const { return cipher_.get(); }  // null: not encrypted

  // Exactly one read of `pointer.size_bytes`. Corruption when the pointer leads astray or the
  // checksum is wrong; NotFound when the item was erased by destroying its key.
  Result<Item> read(const ValuePointer& pointer) const;
  // Reads the value of a Single that is a put into memory of its own, where the file is not
  // encrypted. False when the item is whole but not what it should be.
  Result<bool> read_put(const ValuePointer& pointer, SequenceNumber sequence, ByteView full_key,
                        Bytes& value) const;
  // The same of bytes that were read already, as they lie in the file.
  Result<Item> check(const ValuePointer& pointer, Bytes bytes) const;
  // As these, of one page of a plain group: `page` is where it lies.
  Result<Item> read_page(const ValuePointer& page) const;
  // Into `buffer`, of which it returns a view; it holds `page.size_bytes`.
  Result<ByteView> read_page(const ValuePointer& page, char* buffer) const;
  // Takes a page that was read already, as it lies in the file: a view of `bytes`, or of `opened`
  // where that is sealed.
  Result<ByteView> take_page(const ValuePointer& page, ByteView bytes, Bytes& opened) const;
  Status damaged(const ValuePointer& pointer, std::string_view what) const;
  // Ok when there is no problem.
  Status explain(const SealProblem& problem, const ValuePointer& pointer) const;
  // Whether an item cannot be read because it was overwritten.
  bool reads_blank(const ValuePointer& pointer) const;

  SealOverhead seal_overhead() const;
  // What the sections at its end say.
  Result<ValueTableSummary> summary() const;
  // The last bytes of the file as they would be if its summary named no key: it has bounds of the
  // same sizes between which all keys lie. Of files that are not sealed.
  Result<Bytes> end_without_keys() const;

 private:
  ValueTableReader(std::unique_ptr<RandomAccessFile> file, const ValueTableHead& head,
                   std::unique_ptr<FileCipher> cipher)
      : file_(std::move(file)), head_(head), cipher_(std::move(cipher)) {}

  std::uint64_t items_offset() const {
    return (cipher_ == nullptr ? kTableHeadBytes : kSealedTableHeadBytes) + kValueTableHeadBytes;
  }
  Status check_size(const ValuePointer& pointer) const;
  Result<ByteView> open_page(const ValuePointer& page, char* bytes) const;
  Status check_page(const ValuePointer& page, ByteView bytes) const;

  std::unique_ptr<RandomAccessFile> file_;
  ValueTableHead head_;
  std::unique_ptr<FileCipher> cipher_;  // null: not encrypted
};

}  // namespace edgecase::engine
