// One merge of runs into others, in steps: the lane it runs on is free for other work in between.
//
// Use: step() until it answers true; then the output is complete and synced, and nothing refers to
// it yet. After an error, or to give up: discard(). The inputs are never touched. First single
// values are merged, by their records alone; then groups.
//
// Memory: a block of records and at most one item an input, one open group of output; an open table
// a run of output.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compaction/merge_output.h"
#include "compaction/merge_plan.h"
#include "table/table_cache.h"

namespace edgecase::engine {

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

  // Slices and ranges: merge_job_rests.cc.
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
