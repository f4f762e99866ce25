// Makes metadata tables anew from value tables. What it writes is named by no manifest until the
// repair says so. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "check/findings.h"
#include "check/item_facts.h"
#include "check/store_files.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_writer.h"
#include "value/value_table_writer.h"

namespace edgecase::engine {

class TableRebuild {
 public:
  TableRebuild(FileSystem& file_system, const StoreFiles& files, Findings& findings,
               std::function<FileNumber()> allocate_file_number,
               std::function<std::vector<LostEntries>(const ValuePointer&)> entries_of)
      : file_system_(file_system),
        files_(files),
        findings_(findings),
        allocate_file_number_(std::move(allocate_file_number)),
        entries_of_(std::move(entries_of)) {}

  // Records for these items of a value table, which itself stays. An item that cannot be read is a
  // loss.
  Status add_items(const ValueTableReader& values, const std::vector<ValuePointer>& items);
  // The same for a table that is damaged: what can be read of it goes into a new one.
  Status copy_items(const ValueTableReader& values, const std::vector<ValuePointer>& items,
                    const Bytes& namespace_name, std::uint32_t scope_bytes);

  // Syncs everything.
  Status finish();
  const std::vector<TableMetadata>& tables() const { return tables_; }
  const std::vector<ValueFileMetadata>& value_files() const { return value_files_; }
  SequenceNumber sequence_max() const { return sequence_max_; }

 private:
  // One table being written for each kind; closed when an item does not lie behind the one before.
  struct Open {
    std::unique_ptr<UMetaWriter> table;
    Bytes last;
  };

  Status add_item(const ValueTableReader& values, const ValuePointer& pointer,
                  ValueTableWriter* copy);
  Status add_record(const ItemFacts& facts, const ValuePointer& pointer);
  Status close(TableKind kind);

  FileSystem& file_system_;
  const StoreFiles& files_;
  Findings& findings_;
  const std::function<FileNumber()> allocate_file_number_;
  const std::function<std::vector<LostEntries>(const ValuePointer&)> entries_of_;
  Open open_[2];
  std::vector<Bytes> keys_;  // of the item in hand
  std::vector<Bytes> item_values_;
  std::vector<EntryView> entries_;
  Bytes page_index_;
  NumberGathering numbers_;  // of the same
  std::vector<TableMetadata> tables_;
  std::vector<ValueFileMetadata> value_files_;
  SequenceNumber sequence_max_ = 0;
};

}  // namespace edgecase::engine
