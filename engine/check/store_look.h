// One whole look at a store: what check_store() reports and repair_store() builds on. Used by one
// thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/store_files.h"
#include "metadata/umeta_table.h"

namespace edgecase::engine {

struct StoreLook {
  StoreFiles files;
  ManifestLook manifest;  // of the one that CURRENT names, when it can be found
  std::uint64_t manifest_number = 0;
  bool manifest_is_whole = false;  // if not, only the namespaces of `manifest` mean anything
  bool wal_is_whole = false;
  std::set<FileNumber> damaged_values;
  std::set<FileNumber> damaged_tables;
};

// Errors: as check_store().
Result<StoreLook> look_at_store(FileSystem& file_system, const Options& options,
                                Findings& findings);

// ItemHints gathers what metadata tables, whole or damaged, still tell of the items of a value
// table. It only reads, and passes over what cannot be read. Used by one thread.
class ItemHints {
 public:
  ItemHints(FileSystem& file_system, const StoreLook& look)
      : file_system_(file_system), look_(look) {}

  // Every item of the file that some table tells of, by offset.
  std::vector<ValuePointer> items_of(FileNumber number) const;
  // Takes out what these tables point to.
  void leave_out(const std::vector<TablePointer>& tables, FileNumber number,
                 std::vector<ValuePointer>& items) const;
  // What tables tell of the items of the file, or of one of them.
  std::vector<LostEntries> entries_of(FileNumber number) const;
  std::vector<LostEntries> entries_of(const ValuePointer& item) const;
  // "; it was of namespace 3, 12 items with 340 entries", as far as is known.
  std::string words_for(FileNumber number) const;

 private:
  void ask(FileNumber number) const;

  using LookAtRecord = std::function<void(const UMetaRecord&)>;

  void for_records_of(FileNumber number, FileNumber table, const LookAtRecord& look) const;
  std::vector<FileNumber> tables_that_tell_of(FileNumber number) const;

  FileSystem& file_system_;
  const StoreLook& look_;
  // What is told of the file that was asked for last, by offset: many of its items may be lost.
  mutable FileNumber asked_ = 0;
  mutable std::multimap<std::uint64_t, LostEntries> told_;
};

}  // namespace edgecase::engine
