// Writes one value table: items in key order, then index and summary. Layout: value_format.h.
// Use: create(), append items, finish() once. Not thread-safe. A table that was not finished is
// worthless: remove the file. Nothing refers to it before the manifest names it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/entry.h"
#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "value/group.h"
#include "value/packing.h"
#include "value/plain_group.h"
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

}  // namespace edgecase::engine
