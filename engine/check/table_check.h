// Checks single tables against what the manifest says of them, and items against the records that
// point to them. Findings name file and place. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "check/findings.h"
#include "check/store_files.h"
#include "metadata/umeta_reader.h"
#include "table/open_files.h"
#include "value/value_table_reader.h"
#include "version/version.h"

namespace edgecase::engine {

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
