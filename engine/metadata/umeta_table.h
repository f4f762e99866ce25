// A metadata table: UMetaWriter writes one, UMetaReader reads it, and ValueFileUses, which both
// keep, says how many bytes of each value file its items take. Layout: umeta_block.h.
//
// Writing: create(), add() every item in key order, finish() once. A table that was not finished is
// worthless: remove the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "metadata/umeta_block.h"

namespace edgecase::engine {

// How many bytes a table's items take of each value file they point into. In a store
// of terabytes a table points into tens of thousands of files, and the list of each table is kept.
// As differences they take two to six bytes a file.
//
//   For each: how far its number is from the one before (modulo 2^64), then its bytes, as varint64.
class ValueFileUses {
 public:
  class Iterator;

  ValueFileUses() = default;
  ValueFileUses(std::initializer_list<ValueFileUse> uses) {
    for (const ValueFileUse& use : uses) push_back(use);
  }

  // In ascending order of numbers they take least.
  void push_back(const ValueFileUse& use) {
    append_varint64(encoded_, use.file_number - last_number_);
    append_varint64(encoded_, use.bytes);
    last_number_ = use.file_number;
    total_bytes_ += use.bytes;
    ++size_;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::uint64_t total_bytes() const { return total_bytes_; }
  std::uint64_t memory_bytes() const { return encoded_.capacity(); }  // beside itself
  Iterator begin() const;
  Iterator end() const;

  // How many there were of those that `is_gone` says.
  template <typename Predicate>
  std::size_t erase_if(const Predicate& is_gone);

  friend bool operator==(const ValueFileUses& a, const ValueFileUses& b) {
    return a.encoded_ == b.encoded_;
  }

 private:
  Bytes encoded_;
  std::uint64_t last_number_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::size_t size_ = 0;
};

class ValueFileUses::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = ValueFileUse;
  using difference_type = std::ptrdiff_t;
  using pointer = const ValueFileUse*;
  using reference = const ValueFileUse&;

  // Views hold until it moves.
  reference operator*() const { return use_; }
  pointer operator->() const { return &use_; }
  Iterator& operator++() {
    take();
    return *this;
  }
  void operator++(int) { take(); }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

 private:
  friend class ValueFileUses;
  Iterator(ByteView encoded, std::size_t left) : rest_(encoded), left_(left) {
    if (left_ > 0) decode();
  }

  void take() {
    if (--left_ > 0) decode();
  }
  void decode() {
    std::uint64_t distance = 0;
    take_varint64(rest_, distance);
    take_varint64(rest_, use_.bytes);
    use_.file_number += distance;
  }

  ByteView rest_;
  std::size_t left_;  // with the one it stands on
  ValueFileUse use_;
};

inline ValueFileUses::Iterator ValueFileUses::begin() const {
  return {encoded_, size_};
}

inline ValueFileUses::Iterator ValueFileUses::end() const {
  return {{}, 0};
}

template <typename Predicate>
std::size_t ValueFileUses::erase_if(const Predicate& is_gone) {
  ValueFileUses kept;
  for (const ValueFileUse& use : *this)
    if (!is_gone(use)) kept.push_back(use);
  const std::size_t gone = size_ - kept.size_;
  *this = std::move(kept);
  return gone;
}

// Sums over the items of a table, or of one namespace in it.
struct UMetaTotals {
  std::uint64_t items = 0;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
};

// Not thread-safe; holds one open block.
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

struct UMetaProperties {
  UMetaTotals totals;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  ValueFileUses value_files;
};

// One line of the NSTable.
struct UMetaNamespace {
  NamespaceId id = 0;
  UMetaTotals totals;
  Bytes smallest;  // user keys, both included
  Bytes largest;
};

// Index, namespaces and properties are held in memory, blocks are read on demand. Immutable after
// open(); thread-safe.
class UMetaReader {
 public:
  struct BlockHandle {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
    Bytes last;  // full key
    UMetaTotals totals;
  };

  // Errors: Corruption, Unavailable (another store's file), Unsupported (newer format), NotAllowed
  // (encrypted, and no `keys`).
  static Result<std::unique_ptr<UMetaReader>> open(std::unique_ptr<RandomAccessFile> file,
                                                   const StoreId& store_id,
                                                   std::uint64_t file_number,
                                                   KeyRing* keys = nullptr);
  // For files of any store: takes identity from the head itself.
  static Result<std::unique_ptr<UMetaReader>> open_any(std::unique_ptr<RandomAccessFile> file,
                                                       KeyRing* keys = nullptr);

  const TableIdentity& identity() const { return identity_; }
  const std::vector<BlockHandle>& blocks() const { return blocks_; }
  const std::vector<UMetaNamespace>& namespaces() const { return namespaces_; }
  const UMetaProperties& properties() const { return properties_; }
  const RandomAccessFile& file() const { return *file_; }
  std::size_t memory_bytes() const { return memory_bytes_; }

  // By the NSTable: whether the key lies within what its namespace has here.
  bool may_hold(ByteView full_key) const;
  // The first block whose last key is at or after `full_key`; blocks().size() if there is none.
  std::size_t find_block(ByteView full_key) const;
  // One read. Corruption when it is damaged.
  Result<std::shared_ptr<const UMetaBlock>> read_block(std::size_t index) const;
  // Not parsed: for whoever walks along it once.
  Result<std::shared_ptr<const UMetaBlock>> read_walked_block(std::size_t index) const;

 private:
  UMetaReader(std::unique_ptr<RandomAccessFile> file, const TableIdentity& identity,
              std::unique_ptr<FileCipher> cipher)
      : file_(std::move(file)), identity_(identity), cipher_(std::move(cipher)) {}

  Status load();
  Result<Bytes> read_block_bytes(const BlockHandle& handle) const;
  Result<std::shared_ptr<const UMetaBlock>> well_formed(std::optional<UMetaBlock> block,
                                                        const BlockHandle& handle) const;
  [[nodiscard]] bool take_index(ByteView section, std::uint64_t index_offset);
  [[nodiscard]] bool take_namespaces(ByteView section);
  [[nodiscard]] bool take_properties(ByteView section);

  std::unique_ptr<RandomAccessFile> file_;
  TableIdentity identity_;
  std::unique_ptr<FileCipher> cipher_;  // null: not encrypted
  std::vector<BlockHandle> blocks_;
  KeyHeads last_keys_;  // of blocks_
  std::vector<UMetaNamespace> namespaces_;
  UMetaProperties properties_;
  std::size_t memory_bytes_ = 0;
};

}  // namespace edgecase::engine
