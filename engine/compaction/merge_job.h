// One merge of runs into others: MergeJob goes in steps, the lane it runs on is free for other work
// in between; MergeOutput takes what it writes. What lies before and behind a part of the key
// space: merge_output.cc.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "buffer/cbuffer.h"
#include "compaction/merge_plan.h"
#include "metadata/umeta_table.h"
#include "table/bucket_files.h"
#include "table/table_cache.h"
#include "table/table_writer.h"
#include "value/series_columns.h"
#include "value/value_table.h"

namespace edgecase::engine {

// The output of a merge: metadata tables of one or more runs, and value tables for what is
// rewritten. Cuts both at a bounded size, so that later merges are partial and files die whole.
//
// Use: begin() a namespace and kind, add items in key order, end(); finish() once, or discard().
// After an error only discard() is allowed. Nothing refers to the files before the manifest does.
// Owned by one thread; holds one open group, one open value table a bucket and an open block a run.
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

// Use: step() until it answers true; then the output is complete and synced, and nothing refers to
// it yet. After an error, or to give up: discard(). The inputs are never touched. First single
// values are merged, by their records alone; then groups.
//
// Memory: a block of records and at most one item an input, one open group of output; an open table
// a run of output.
class MergeJob {
 public:
  // `rule` may be null. The cache and what the context refers to outlive the job.
  MergeJob(TableCache& tables, TableWriterContext context, MergePlan plan, DropRule* rule);

  // Goes on until about `written_bytes` were written or `turns` records and entries were looked at.
  // The rule is asked of what held when the step began.
  Result<bool> step(std::uint64_t written_bytes, std::uint64_t turns);

  const MergePlan& plan() const { return plan_; }
  const MergeCounters& counters() const { return counters_; }
  // Tables that the output stands for: all that went in, or, of a slice, those it came to. Once
  // done.
  const std::vector<FileNumber>& replaced_tables() const { return replaced_tables_; }
  // Whether a slice ended before its inputs did.
  bool leaves_rest() const { return leaves_rest_; }
  // The tables that came out of what was merged, not of what stays in its run. Once done.
  std::span<const TableMetadata> merged(const TableOutput& output) const {
    return std::span(output.tables).subspan(merged_begin_, merged_end_ - merged_begin_);
  }
  std::uint64_t bytes_written() const { return output_.bytes_written(); }
  TableOutput take_output() { return output_.take_output(); }
  void discard() { output_.discard(); }

 private:
  enum class Phase : unsigned char { Singles, Heads, Groups, Rests, Done };

  Status turn(std::uint64_t& turns);
  Status enter(ByteView key, TableKind kind);
  Status next_phase();

  // Slices and ranges: merge_output.cc.
  bool is_behind_range(ByteView key) const;
  bool slice_is_done() const;
  Status write_head();
  Status write_head_of(const MergeInput& tables);
  Status end_slice();
  Status write_rest();
  Status write_rest_of(std::size_t input);
  void begin_rest(const TableMetadata& table);
  Status add_rest(const EntryView& entry);

  // Single values.
  Status merge_single();
  Result<bool> is_dead_single(const UMetaRecord& record);

  // Groups.
  Status sink_group();
  std::size_t choose_slot(const UMetaRecord& record);
  Status merge_group();
  Status clean_group();
  Result<std::uint64_t> find_dead(RecordCursor& cursor);
  Status carry(const UMetaRecord& record);
  Status copy(RecordCursor& cursor, bool misplaced);
  ItemExpiry expiry_of_copy(const UMetaRecord& record, bool misplaced) const;
  bool has_deletes_to_drop(const UMetaRecord& record) const;
  Status merge_entries(std::uint64_t& turns);
  Status merge_entry();
  Status emit(const EntryView& entry);
  Status emit_undropped(const EntryView& entry);
  bool is_superseded_by_single(const EntryView& entry);

  bool may_hold_older(ByteView full_key, SequenceNumber sequence) const;

  TableCache& tables_;
  const MergePlan plan_;
  DropRule* const rule_;
  const std::size_t threshold_bytes_;
  const ExpiryView expiry_;
  MergeOutput output_;
  MergeCounters counters_;
  Phase phase_ = Phase::Singles;
  std::unique_ptr<RecordMerge> singles_;   // null outside its phase
  std::optional<NewerRuns> newer_groups_;  // than singles_; to Clean, than groups_
  std::vector<bool> dead_;                 // of an item's entries
  std::unique_ptr<RecordMerge> groups_;
  std::unique_ptr<RecordMerge> newer_singles_;  // walks along with groups_
  std::size_t open_items_ = 0;
  bool entered_ = false;
  NamespaceId namespace_id_ = 0;
  MergeOutput::Place place_;
  std::vector<std::size_t> slot_of_input_;  // where its last record went
  std::size_t rest_input_ = 0;              // the next of which head or rest is written
  std::size_t merged_begin_ = 0;            // among the tables that come out
  std::size_t merged_end_ = 0;
  std::uint64_t slice_end_bytes_ = 0;  // of bytes_written()
  std::vector<FileNumber> replaced_tables_;
  bool leaves_rest_ = false;
};

}  // namespace edgecase::engine
