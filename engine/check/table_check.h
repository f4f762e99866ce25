// Checks single tables against what the manifest says of them, and items against the records that
// point to them. Findings name file and place. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/entry.h"
#include "check/store_files.h"
#include "metadata/umeta_table.h"
#include "table/table_files.h"
#include "value/value_table.h"
#include "version/version.h"

namespace edgecase::engine {

// ItemFacts: the content of an item of a value table, found by decoding all of it. Stateless.
struct ItemFacts {
  ItemType type = ItemType::Single;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;  // as the item tells it: a group knows its largest alone
  SequenceNumber sequence_max = 0;
  Bytes first;  // full keys, both included
  Bytes last;
};

using LookAtEntry = std::function<void(const EntryView&)>;

// Nothing when the item is malformed: undecodable, keys not ascending or of another namespace.
// `look`, which may be empty, gets each entry.
std::optional<ItemFacts> read_item(const Item& item, NamespaceId namespace_id,
                                   const LookAtEntry& look);

class TableCheck {
 public:
  TableCheck(FileSystem& file_system, const StoreFiles& files, const VersionState& state,
             Findings& findings);

  // Each answers Cancelled, or Ok whatever it found.
  Status check_value_table(const ValueFileMetadata& expected);
  Status check_metadata_table(const TableMetadata& expected);

  // Files with a problem of their own; a table whose items have one counts as damaged too.
  const std::set<FileNumber>& damaged_values() const { return damaged_values_; }
  const std::set<FileNumber>& damaged_tables() const { return damaged_tables_; }

 private:
  struct Sums;

  Status check_whole_file(const RandomAccessFile& file, std::uint64_t size_bytes,
                          std::uint32_t checksum, bool& is_whole);
  Status look_at_value_table(const ValueFileMetadata& expected, bool& is_whole);
  Status look_at_metadata_table(const TableMetadata& expected, bool& is_whole);
  Status check_records(const UMetaReader& table, const TableMetadata& expected, Sums& sums,
                       bool& is_whole);
  Status check_record(const UMetaRecord& record, const std::string& place);
  Status check_sums(const UMetaReader& table, const TableMetadata& expected, const Sums& sums);
  Result<std::shared_ptr<const ValueTableReader>> open_values(FileNumber number);
  bool knows_namespace(NamespaceId id) const;

  FileSystem& file_system_;
  const StoreFiles& files_;
  const VersionState& state_;
  Findings& findings_;
  OpenFiles<ValueTableReader> open_;
  std::set<FileNumber> damaged_values_;
  std::set<FileNumber> damaged_tables_;
};

// A whole file's crc32c, read in pieces; `read` is told of each.
Result<std::uint32_t> checksum_of(const RandomAccessFile& file,
                                  const std::function<Status(std::uint64_t bytes)>& read);

}  // namespace edgecase::engine
