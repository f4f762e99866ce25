#include <algorithm>
#include <utility>

#include "compaction/merge_job.h"
#include "file/file_names.h"
#include "metadata/number_summary.h"
#include "value/group.h"
#include "value/value_format.h"

namespace edgecase::engine {

MergeOutput::MergeOutput(TableWriterContext context)
    : context_(std::move(context)),
      value_file_bytes_(std::min(context_.value_file_bytes, kMergedValueFileBytesMax)),
      group_(group_bytes_of(context_.options), kGroupEntriesMax),
      cuts_(context_.options.group_span_ns),
      values_(context_) {}

MergeOutput::~MergeOutput() = default;

void MergeOutput::begin(NamespaceId id, TableKind kind, const Place& place) {
  namespace_id_ = id;
  place_ = place;
  if (kind == TableKind::Singles) place_.life = 0;
  next_barrier_ = 0;
  kind_ = kind;
  levels_.clear();
  if (place_.one_sequence) levels_ = context_.raise_limits.levels_up_to(*place_.one_sequence);
  namespace_options_ = context_.namespace_options(id);
  expiry_ = context_.expiry.of_namespace(id);
  group_.set_scope_bytes(namespace_options_.scope_bytes);
}

Status MergeOutput::end() {
  EC_TRY(cut());
  for (Slot& slot : slots_) EC_TRY(close_table(slot));
  slots_.clear();
  return ok();
}

bool MergeOutput::fits(std::size_t slot, ByteView first) const {
  return ByteView(slots_[slot].largest) < first;
}

std::size_t MergeOutput::begin_slot(LifeClass life) {
  slots_.emplace_back().life = life;
  return slots_.size() - 1;
}

Status MergeOutput::carry(std::size_t slot, const UMetaRecord& record) {
  if (slot == 0) EC_TRY(pass_barriers(record.first));
  return write_record(slot, record);
}

Status MergeOutput::copy(const UMetaRecord& record, const Item& item, const ItemExpiry& expiry) {
  EC_TRY(cut());
  EC_TRY(pass_barriers(record.first));
  EC_ASSIGN_OR_RETURN(ValueTableWriter* const values, open_values(expiry));
  UMetaRecord moved = record;
  const ItemSummary summary{record.first,   record.last,         record.entries,
                            record.deletes, record.sequence_min, record.sequence_max};
  EC_ASSIGN_OR_RETURN(moved.pointer, values->append_copy(item.bytes, summary));
  bytes_written_ += item.bytes.size();
  EC_TRY(write_record(0, moved));
  return values_.close_full(value_file_bytes_, output_);
}

Status MergeOutput::add(const EntryView& entry) {
  EC_TRY(pass_barriers(entry.full_key));
  const ItemExpiry expiry = expiry_of_entry(expiry_, namespace_options_.codec, entry.full_key);
  const bool other_bucket = !group_.empty() && !(expiry.bucket == group_expiry_.bucket);
  const bool has_ordinal =
      namespace_options_.codec == GroupCodec::Series && !is_short_key(user_key_of(entry.full_key));
  ByteView prefix;
  std::uint64_t ordinal = 0;
  if (has_ordinal) {
    prefix = entry.full_key.substr(0, entry.full_key.size() - kOrdinalBytes);
    ordinal = load_ordinal(entry.full_key.data() + prefix.size());
  }
  const bool ends = has_ordinal && cuts_.ends_before(prefix, ordinal, in_series_);
  if (other_bucket || ends || !group_.takes(entry)) EC_TRY(cut());
  if (!has_ordinal || !cuts_.continues(prefix)) in_series_ = 0;
  if (has_ordinal) {
    ++in_series_;
    cuts_.add(prefix, ordinal);
  }
  if (group_.empty()) group_expiry_ = expiry;
  group_expiry_.add(expiry);
  EntryView added = entry;
  added.sequence = raised(levels_, entry.sequence);
  group_.add(added);
  gathered_bytes_ += entry.full_key.size() + entry.value.size();
  return ok();
}

Status MergeOutput::cut() {
  if (group_.empty()) return ok();
  EC_ASSIGN_OR_RETURN(ValueTableWriter* const values, open_values(group_expiry_));
  const std::span<const EntryView> entries = group_.entries();
  const bool one = std::all_of(entries.begin(), entries.end(), [&](const EntryView& entry) {
    return entry.sequence == entries.front().sequence;
  });
  EC_ASSIGN_OR_RETURN(
      const ValuePointer pointer,
      values->append_group(entries, one ? SequenceColumn::None : SequenceColumn::Written));
  bytes_written_ += pointer.size_bytes;
  filter_.clear();
  UMetaRecord record =
      describe_item(item_type_of(namespace_options_.codec), pointer, summary_of(entries));
  append_item_filter(filter_, record.type, pointer.size_bytes, entries);
  record.filter = filter_;
  record.pages = values->page_index();
  numbers_.clear();
  if (record.type == ItemType::SeriesGroup) {
    NumberGathering gathering;
    for (const EntryView& entry : entries) gathering.add(entry);
    gathering.append_to(numbers_);
  }
  record.numbers = numbers_;
  EC_TRY(write_record(0, record));
  group_.clear();
  gathered_bytes_ = 0;
  in_series_ = 0;
  return values_.close_full(value_file_bytes_, output_);
}

// `first` is what comes next.
Status MergeOutput::pass_barriers(ByteView first) {
  const std::size_t before = next_barrier_;
  while (next_barrier_ < place_.barriers.size() && place_.barriers[next_barrier_] < first)
    ++next_barrier_;
  if (next_barrier_ == before) return ok();
  EC_TRY(cut());
  return slots_.empty() ? ok() : close_table(slots_.front());
}

Status MergeOutput::write_record(std::size_t slot_index, const UMetaRecord& record) {
  if (slot_index >= slots_.size()) begin_slot(place_.life);
  Slot& slot = slots_[slot_index];
  if (slot_index == 0) slot.run = slot.run != 0 ? slot.run : place_.run;
  if (slot.table == nullptr) {
    const TableIdentity identity{context_.store_id, context_.allocate_file_number()};
    const std::string path =
        metadata_table_path(context_.options.metadata_directory, identity.file_number);
    created_.push_back(path);
    EC_ASSIGN_OR_RETURN(slot.table,
                        UMetaWriter::create(context_.file_system, path, identity, context_.keys));
    EC_TRY(name_durably(context_, path));
    slot.item_bytes = 0;
    if (slot.run == 0) slot.run = identity.file_number;
  }
  EC_TRY(slot.table->add(record));
  slot.largest = record.last;
  slot.item_bytes += record.pointer.size_bytes;
  const bool full =
      slot.item_bytes >= place_.table_item_bytes || slot.table->totals().items >= kTableItemsMax;
  return full ? close_table(slot) : ok();
}

Status MergeOutput::close_table(Slot& slot) {
  if (slot.table == nullptr) return ok();
  EC_TRY(slot.table->end());
  TableMetadata table = describe_table(*slot.table, kind_);
  table.level = place_.level;
  table.run = slot.run;
  table.life = slot.life;
  table.namespace_id = namespace_id_;
  table.purged_sequence = place_.purged_sequence;
  table.rule_epoch = place_.rule_epoch;
  output_.metadata_bytes += table.size_bytes;
  bytes_written_ += table.size_bytes;
  output_.tables.push_back(std::move(table));
  unsynced_.push_back(std::move(slot.table));
  if (unsynced_.size() > kUnsyncedFilesMax) EC_TRY(sync_oldest_table());
  // What lies in one table is to lie in files of its own, so that they come free together.
  return values_.close_full(value_file_bytes_ / 2, output_);
}

Status MergeOutput::sync_oldest_table() {
  EC_TRY(unsynced_.front()->sync());
  unsynced_.pop_front();
  return ok();
}

Result<ValueTableWriter*> MergeOutput::open_values(const ItemExpiry& expiry) {
  if (values_.namespace_id() != namespace_id_) {
    EC_TRY(values_.close_all(output_));
    values_.begin(namespace_id_, namespace_options_);
  }
  return values_.open(expiry);
}

Status MergeOutput::sync_directories() {
  const std::string& metadata = context_.options.metadata_directory;
  for (const Placement placement : {Placement::Values, Placement::Metadata}) {
    const bool any =
        std::any_of(output_.value_files.begin(), output_.value_files.end(),
                    [&](const ValueFileMetadata& file) { return file.placement == placement; });
    if (!any) continue;
    const std::string directory =
        value_tables_directory(metadata, context_.options.values_directory, placement);
    EC_TRY(context_.file_system.sync_directory(directory).on(drive_of(placement)));
  }
  if (output_.tables.empty()) return ok();
  return context_.file_system.sync_directory(tables_directory(metadata));
}

Status MergeOutput::finish() {
  EC_TRY(end());
  EC_TRY(values_.close_all(output_));
  EC_TRY(values_.sync());
  while (!unsynced_.empty()) EC_TRY(sync_oldest_table());
  return sync_directories();
}

void MergeOutput::discard() {
  values_.discard();
  slots_.clear();
  unsynced_.clear();
  remove_created(context_, created_);
  remove_created(context_, values_.created());
}

// Merges of a part of the key space: what lies before it and behind it stays in its runs, in tables
// that are cut where the part begins and ends. engine/compaction/DESIGN.md.

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
