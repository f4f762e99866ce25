// The output of a merge: metadata tables of one or more runs, and value tables for what is
// rewritten. Cuts both at a bounded size, so that later merges are partial and files die whole.
//
// Use: begin() a namespace and kind, add items in key order, end(); finish() once, or discard().
// After an error only discard() is allowed. Nothing refers to the files before the manifest does.
// Owned by one thread; holds one open group, one open value table a bucket and an open block a run.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "buffer/cbuffer.h"
#include "compaction/merge_plan.h"
#include "metadata/umeta_table.h"
#include "table/bucket_files.h"
#include "table/table_writer.h"
#include "value/series_columns.h"
#include "value/value_table.h"

namespace edgecase::engine {

class MergeOutput {
 public:
  struct Place {
    std::uint8_t level = 1;
    FileNumber run = 0;  // of slot 0; 0: a new one. Other slots are always new runs.
    // The sequence of all entries of rewritten groups, as far as the context lets them rise; none:
    // each keeps its own.
    std::optional<SequenceNumber> one_sequence;
    // Facts of every table (TableMetadata).
    SequenceNumber purged_sequence = 0;
    RuleEpoch rule_epoch = 0;
    LifeClass life = 0;  // of slot 0; of others, who begins them says
    // Slot 0's barriers, ascending: no table reaches over one, where others of the run lie.
    std::vector<Bytes> barriers;
    std::uint64_t table_item_bytes = kTableItemBytesMax;
  };

  explicit MergeOutput(TableWriterContext context);
  ~MergeOutput();
  MergeOutput(const MergeOutput&) = delete;
  MergeOutput& operator=(const MergeOutput&) = delete;

  void begin(NamespaceId id, TableKind kind, const Place& place);
  // Closes tables; begin() may follow. A value table goes on into the next run of its namespace.
  Status end();

  // Where the item at `record` goes, in run `slot`: behind all that the slot holds.
  bool fits(std::size_t slot, ByteView first) const;
  std::size_t slots() const { return slots_.size(); }
  LifeClass life_of(std::size_t slot) const { return slots_[slot].life; }
  // The same as `slots()` was, of that life class; it may stay empty.
  std::size_t begin_slot(LifeClass life);
  // By reference: only the record is written. Slot 0 is there without begin_slot().
  Status carry(std::size_t slot, const UMetaRecord& record);
  // The same item in a new place, byte for byte. Into slot 0.
  Status copy(const UMetaRecord& record, const Item& item, const ItemExpiry& expiry);
  // An entry for the group that is being gathered. Into slot 0.
  Status add(const EntryView& entry);
  // Closes the group that is being gathered.
  Status cut();
  std::uint64_t gathered_bytes() const { return gathered_bytes_; }
  // What is rewritten from here on lies in other value tables. Nothing may be gathered.
  Status close_values() { return values_.close_all(output_); }

  // Syncs what is not synced, directories included.
  Status finish();
  TableOutput take_output() { return std::move(output_); }
  // Tables that came out so far.
  std::size_t closed_tables() const { return output_.tables.size(); }
  // Bytes written so far, on both drives.
  std::uint64_t bytes_written() const { return bytes_written_; }
  // Removes every file that was begun.
  void discard();

 private:
  struct Slot {
    std::unique_ptr<UMetaWriter> table;
    FileNumber run = 0;  // 0: no table was begun yet
    LifeClass life = 0;
    std::uint64_t item_bytes = 0;
    Bytes largest;
  };

  Status pass_barriers(ByteView first);
  Status write_record(std::size_t slot, const UMetaRecord& record);
  Status close_table(Slot& slot);
  Status sync_oldest_table();
  Result<ValueTableWriter*> open_values(const ItemExpiry& expiry);
  Status sync_directories();

  const TableWriterContext context_;
  const std::uint64_t value_file_bytes_;
  Place place_;
  std::size_t next_barrier_ = 0;
  NamespaceId namespace_id_ = 0;
  TableKind kind_ = TableKind::Groups;
  NamespaceOptions namespace_options_;
  ExpiryView expiry_;  // of the namespace
  std::vector<Slot> slots_;
  std::deque<std::unique_ptr<UMetaWriter>> unsynced_;  // closed, old to new
  std::vector<SequenceNumber> levels_;                 // entries rise to them (feed/raise_limits.h)
  CBuffer group_;
  ItemExpiry group_expiry_;
  GroupCuts cuts_;
  std::uint64_t in_series_ = 0;  // entries of the group that are of the series of its last one
  std::uint64_t gathered_bytes_ = 0;
  BucketFiles values_;
  Bytes filter_;
  Bytes numbers_;  // its summary
  TableOutput output_;
  std::uint64_t bytes_written_ = 0;
  std::vector<std::string> created_;
};

}  // namespace edgecase::engine
