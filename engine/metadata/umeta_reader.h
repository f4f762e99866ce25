// Reads one metadata table: index, namespaces and properties are held in memory, blocks are read on
// demand. Immutable after open(); thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "crypto/file_cipher.h"
#include "edgecase/file_system.h"
#include "metadata/umeta_block.h"
#include "metadata/umeta_writer.h"

namespace edgecase::engine {

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
