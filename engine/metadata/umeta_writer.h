// Writes one metadata table. Layout: umeta_format.h. Use: create(), add() every item in key order,
// finish() once. Not thread-safe; holds one open block. A table that was not finished is worthless:
// remove the file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/value_file_uses.h"
#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "metadata/umeta_block.h"

namespace edgecase::engine {

// Sums over the items of a table, or of one namespace in it.
struct UMetaTotals {
  std::uint64_t items = 0;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
};

class UMetaWriter {
 public:
  // With `keys` it is encrypted. Errors: AlreadyExists, OutOfSpace, IoError.
  static Result<std::unique_ptr<UMetaWriter>> create(FileSystem& file_system,
                                                     const std::string& path,
                                                     const TableIdentity& identity,
                                                     KeyRing* keys = nullptr);

  // `record` lies behind all before it. Errors: OutOfSpace, IoError; after one only destruction is
  // allowed.
  Status add(const UMetaRecord& record);

  // end(), then sync().
  Status finish();
  // Writes the last block, index, namespaces, properties, tail. At least one item was added. The
  // drive begins with it; several may be ended before the first is synced.
  Status end();
  // Syncs a file that was ended; its directory is the caller's. Reads index and first block of an
  // encrypted file back, to see that they open.
  Status sync();

  const TableIdentity& identity() const { return identity_; }
  const UMetaTotals& totals() const { return totals_; }
  SequenceNumber sequence_min() const { return sequence_min_; }
  SequenceNumber sequence_max() const { return sequence_max_; }
  const Bytes& smallest() const { return smallest_; }
  const Bytes& largest() const { return largest_; }
  ValueFileUses value_files() const;  // ascending
  // After end().
  std::uint64_t size_bytes() const { return file_->size_bytes(); }
  std::uint32_t checksum() const { return checksum_; }

 private:
  UMetaWriter(FileSystem& file_system, std::string path, std::unique_ptr<WritableFile> file,
              const TableIdentity& identity, std::unique_ptr<FileCipher> cipher);

  Status append(ByteView bytes);
  Status close_block();
  void close_namespace();
  Status read_back() const;

  FileSystem& file_system_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  TableIdentity identity_;
  std::unique_ptr<FileCipher> cipher_;  // null: not encrypted
  std::uint32_t checksum_ = 0;
  UMetaBlockBuilder block_;
  UMetaTotals block_totals_;
  Bytes index_;
  std::uint64_t block_count_ = 0;
  Bytes previous_block_last_;
  Bytes namespaces_;
  std::uint64_t namespace_count_ = 0;
  UMetaTotals namespace_totals_;
  Bytes namespace_smallest_;  // full key
  UMetaTotals totals_;
  SequenceNumber sequence_min_ = UINT64_MAX;
  SequenceNumber sequence_max_ = 0;
  Bytes smallest_;
  Bytes largest_;
  std::map<std::uint64_t, std::uint64_t> value_files_;  // number to bytes of items
};

}  // namespace edgecase::engine
