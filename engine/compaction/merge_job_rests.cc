// Merges of a part of the key space: what lies before it and behind it stays in its runs, in tables
// that are cut where the part begins and ends. engine/compaction/DESIGN.md.
#include "compaction/merge_job.h"

namespace edgecase::engine {

bool MergeJob::is_behind_range(ByteView key) const {
  return !plan_.upper.empty() && key >= ByteView(plan_.upper);
}

bool MergeJob::slice_is_done() const {
  if (!groups_->valid()) return plan_.has_range();
  if (is_behind_range(groups_->top().key())) return true;
  return plan_.slice_bytes != 0 && entered_ && output_.bytes_written() >= slice_end_bytes_;
}

// What tables hold before the range.
Status MergeJob::write_head() {
  if (rest_input_ < plan_.groups.size()) return write_head_of(plan_.groups[rest_input_++]);
  rest_input_ = 0;
  groups_ = std::make_unique<RecordMerge>(tables_, plan_.groups, plan_.lower);
  open_items_ = groups_->open_items();
  counters_.rewritten_items += open_items_;
  merged_begin_ = output_.closed_tables();
  slice_end_bytes_ = output_.bytes_written() + plan_.slice_bytes;
  phase_ = Phase::Groups;
  return ok();
}

// Only the first table of a run may begin before the range.
Status MergeJob::write_head_of(const MergeInput& tables) {
  if (plan_.lower.empty() || ByteView(tables.front()->smallest) >= ByteView(plan_.lower))
    return ok();
  RecordCursor cursor = tables_.records({tables.front()});
  begin_rest(*tables.front());
  for (; cursor.valid() && cursor.record().last < plan_.lower; cursor.next_record())
    EC_TRY(output_.carry(0, cursor.record()));
  EC_TRY(cursor.status());
  if (cursor.valid() && cursor.record().first < plan_.lower) {
    EC_TRY(cursor.open_item());
    for (; cursor.is_open() && cursor.key() < plan_.lower; cursor.next_entry())
      EC_TRY(add_rest(cursor.entry()));
    EC_TRY(cursor.status());
  }
  return output_.end();
}

// Everything of the part is written.
Status MergeJob::end_slice() {
  counters_.runs += output_.slots();
  EC_TRY(output_.end());
  EC_TRY(output_.close_values());
  merged_end_ = output_.closed_tables();
  leaves_rest_ = true;
  phase_ = Phase::Rests;
  return ok();
}

Status MergeJob::write_rest() {
  if (rest_input_ == plan_.groups.size()) return next_phase();
  EC_TRY(write_rest_of(rest_input_));
  ++rest_input_;
  return ok();
}

// Tables that the merge has come to leave the run; what it has not come to of the last of them
// stays in it.
Status MergeJob::write_rest_of(std::size_t input) {
  RecordCursor& cursor = groups_->cursor(input);
  EC_TRY(cursor.status());
  const MergeInput& tables = plan_.groups[input];
  const std::size_t at = cursor.valid() ? cursor.table_index() : tables.size();
  for (std::size_t i = 0; i < at; ++i) replaced_tables_.push_back(tables[i]->number);
  if (!cursor.valid() || cursor.at_table_begin()) return ok();
  replaced_tables_.push_back(tables[at]->number);
  begin_rest(*tables[at]);
  while (cursor.is_open()) {
    EC_TRY(add_rest(cursor.entry()));
    cursor.next_entry();
    EC_TRY(cursor.status());
  }
  EC_TRY(output_.cut());
  for (; cursor.valid() && cursor.table_index() == at; cursor.next_record())
    EC_TRY(output_.carry(0, cursor.record()));
  EC_TRY(cursor.status());
  return output_.end();
}

void MergeJob::begin_rest(const TableMetadata& table) {
  MergeOutput::Place place;
  place.level = table.level;
  place.run = table.run;
  place.purged_sequence = table.purged_sequence;
  place.rule_epoch = table.rule_epoch;
  place.life = table.life;
  place.table_item_bytes = plan_.rest_table_bytes();
  output_.begin(table.namespace_id, TableKind::Groups, place);
}

// What a rule hides never comes into a new file.
Status MergeJob::add_rest(const EntryView& entry) {
  if (rule_ != nullptr && rule_->drops_entry(entry.full_key, entry.sequence)) return ok();
  return output_.add(entry);
}

}  // namespace edgecase::engine
