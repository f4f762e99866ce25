// Parts of a repair (store_repair.cc): tables and namespaces made anew from value files, and what
// can be had of a damaged log.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check/store_files.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"
#include "value/value_table.h"
#include "version/version.h"

namespace edgecase::engine {

// Makes metadata tables anew from value tables. What it writes is named by no manifest until the
// repair says so. Used by one thread.
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

// The namespaces of a store that is made anew: those a manifest tells of, and those that data is
// of. Used by one thread.
class NamespaceRebuild {
 public:
  explicit NamespaceRebuild(Findings& findings) : findings_(findings) {}

  // What a manifest says; ids below `id_limit` that it does not know were dropped, and stay so.
  void take(const std::vector<NamespaceInfo>& known, NamespaceId id_limit);
  // One that a value table says it is of. The older of two with one name was dropped.
  void add(NamespaceId id, std::string_view name, const NamespaceOptions& options);
  // One that data is of: where its name is lost it gets another one, and that is a loss.
  void ensure(NamespaceId id, const NamespaceOptions& options);
  // The mark of a repaired store (edgecase/store_check.h).
  void mark_repaired();

  bool is_dropped(NamespaceId id) const;
  NamespaceOptions options_of(NamespaceId id) const;
  Bytes name_of(NamespaceId id) const;
  NamespaceId id_limit() const { return id_limit_; }
  const std::vector<NamespaceInfo>& known() const { return known_; }  // by id

 private:
  const NamespaceInfo* find(NamespaceId id) const;
  const NamespaceInfo* find_name(std::string_view name) const;
  void insert(const NamespaceInfo& info);

  Findings& findings_;
  std::vector<NamespaceInfo> known_;
  NamespaceId known_below_ = 0;    // of these `known_` has all that were not dropped
  std::set<NamespaceId> dropped_;  // beside those
  NamespaceId id_limit_ = 1;
};

// Reads what can still be read of damaged logs, for a repair: of manifests, where no whole one is
// left, and of the write-ahead log, as a start would. Used by one thread.

// What manifests still tell of a store without a whole one: its namespaces, and what is gone for
// good. No list of files is taken from them: files that are there tell of themselves.
struct ManifestSalvage {
  std::string path;  // of the newest one of which a state could be read; empty: there is none
  std::vector<NamespaceInfo> namespaces;  // by id
  NamespaceId namespace_id_limit = 1;     // those below that are not among them were dropped
  FileNumber file_number_limit = 1;
  SequenceNumber flushed_sequence = 0;  // at least that was
  std::vector<RangeDelete> range_deletes, erasures;
  // Without rules: which of them still hold cannot be told, and what one had let expire by
  // `expiry_mark_ns` is gone whatever became of it.
  RetentionRules retention;
  std::int64_t expiry_mark_ns = 0;
};

// Every field is at most what held last: of what was changed after the damage nothing is known.
ManifestSalvage salvage_manifests(FileSystem& file_system, const StoreFiles& files);

// The sequence of a batch's first entry, and its bytes, which are a batch.
using SalvagedBatch = std::function<Status(SequenceNumber first, ByteView batch)>;

// Calls `apply` with every batch newer than `flushed`, in order, as a start would. Gaps, damage and
// segments that are missing from `oldest_needed` on (0: not known) are losses. Answers the last
// sequence that was read.
Result<SequenceNumber> salvage_wal(FileSystem& file_system, const StoreFiles& files,
                                   std::uint64_t oldest_needed, SequenceNumber flushed,
                                   Findings& findings, const SalvagedBatch& apply);

// The sequence before the log's last records without a gap, for a store of which nobody knows what
// is in tables. Tables that hold something of a sequence need not hold all before it: a flush that
// was cut short leaves files of one namespace alone. A gap above `in_tables`, the newest that is in
// one, counts as none: it is a loss.
Result<SequenceNumber> find_wal_begin(FileSystem& file_system, const StoreFiles& files,
                                      SequenceNumber in_tables);

}  // namespace edgecase::engine
