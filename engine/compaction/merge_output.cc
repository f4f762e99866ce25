#include "compaction/merge_output.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"
#include "value/group.h"

namespace edgecase::engine {

MergeOutput::MergeOutput(TableWriterContext context)
    : context_(std::move(context)),
      group_(group_bytes_of(context_.options, GroupCodec::Plain), kGroupEntriesMax) {}

MergeOutput::~MergeOutput() = default;

void MergeOutput::begin(NamespaceId id, TableKind kind, const Place& place) {
  namespace_id_ = id;
  place_ = place;
  kind_ = kind;
  namespace_options_ = context_.namespace_options(id);
  group_.set_group_bytes(group_bytes_of(context_.options, namespace_options_.codec));
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

Status MergeOutput::carry(std::size_t slot, const UMetaRecord& record) {
  return write_record(slot, record);
}

Status MergeOutput::copy(const UMetaRecord& record, const Item& item) {
  EC_TRY(cut());
  EC_TRY(open_values());
  UMetaRecord moved = record;
  const ItemSummary summary{record.first,   record.last,         record.entries,
                            record.deletes, record.sequence_min, record.sequence_max};
  EC_ASSIGN_OR_RETURN(moved.pointer, values_->append_copy(item.bytes, summary));
  bytes_written_ += item.bytes.size();
  EC_TRY(write_record(0, moved));
  return close_values_if_full();
}

Status MergeOutput::add(const EntryView& entry) {
  if (!group_.takes(entry)) EC_TRY(cut());
  EntryView added = entry;
  if (place_.one_sequence) added.sequence = *place_.one_sequence;
  group_.add(added);
  gathered_bytes_ += entry.full_key.size() + entry.value.size();
  return ok();
}

Status MergeOutput::cut() {
  if (group_.empty()) return ok();
  EC_TRY(open_values());
  const std::span<const EntryView> entries = group_.entries();
  const bool one = std::all_of(entries.begin(), entries.end(), [&](const EntryView& entry) {
    return entry.sequence == entries.front().sequence;
  });
  EC_ASSIGN_OR_RETURN(
      const ValuePointer pointer,
      values_->append_group(entries, one ? SequenceColumn::None : SequenceColumn::Written));
  bytes_written_ += pointer.size_bytes;
  filter_.clear();
  UMetaRecord record =
      describe_item(item_type_of(namespace_options_.codec), pointer, summary_of(entries));
  append_item_filter(filter_, record.type, entries);
  record.filter = filter_;
  EC_TRY(write_record(0, record));
  group_.clear();
  gathered_bytes_ = 0;
  return close_values_if_full();
}

Status MergeOutput::write_record(std::size_t slot_index, const UMetaRecord& record) {
  if (slot_index >= slots_.size()) slots_.resize(slot_index + 1);
  Slot& slot = slots_[slot_index];
  if (slot_index == 0) slot.run = slot.run != 0 ? slot.run : place_.run;
  if (slot.table == nullptr) {
    const TableIdentity identity{context_.store_id, context_.allocate_file_number()};
    const std::string path =
        metadata_table_path(context_.options.metadata_directory, identity.file_number);
    created_.push_back(path);
    EC_ASSIGN_OR_RETURN(slot.table, UMetaWriter::create(context_.file_system, path, identity));
    slot.item_bytes = 0;
    if (slot.run == 0) slot.run = identity.file_number;
  }
  EC_TRY(slot.table->add(record));
  slot.largest = record.last;
  slot.item_bytes += record.pointer.size_bytes;
  const bool full =
      slot.item_bytes >= kTableItemBytesMax || slot.table->totals().items >= kTableItemsMax;
  return full ? close_table(slot) : ok();
}

Status MergeOutput::close_table(Slot& slot) {
  if (slot.table == nullptr) return ok();
  EC_TRY(slot.table->finish());
  TableMetadata table = describe_table(*slot.table, kind_);
  table.level = place_.level;
  table.run = slot.run;
  table.namespace_id = namespace_id_;
  output_.metadata_bytes += table.size_bytes;
  bytes_written_ += table.size_bytes;
  output_.tables.push_back(std::move(table));
  slot.table.reset();
  return ok();
}

Status MergeOutput::open_values() {
  if (values_ != nullptr && values_->head().namespace_id == namespace_id_) return ok();
  EC_TRY(close_values());
  ValueTableHead head;
  head.identity = {context_.store_id, context_.allocate_file_number()};
  head.namespace_id = namespace_id_;
  head.placement = namespace_options_.placement;
  head.codec = namespace_options_.codec;
  head.scope_bytes = namespace_options_.scope_bytes;
  if (context_.namespace_name) head.namespace_name = context_.namespace_name(namespace_id_);
  const std::string path =
      value_table_path(context_.options.metadata_directory, context_.options.values_directory,
                       head.placement, head.identity.file_number);
  created_.push_back(path);
  EC_ASSIGN_OR_RETURN(values_, ValueTableWriter::create(context_.file_system, path, head));
  return ok();
}

Status MergeOutput::close_values_if_full() {
  return values_->size_bytes() >= kMergedValueFileBytesMax ? close_values() : ok();
}

Status MergeOutput::close_values() {
  if (values_ == nullptr) return ok();
  EC_TRY(values_->finish());
  const ValueFileMetadata file = describe_values(*values_);
  (file.placement == Placement::Values ? output_.value_bytes : output_.metadata_bytes) +=
      file.size_bytes;
  output_.value_files.push_back(file);
  values_.reset();
  return ok();
}

Status MergeOutput::sync_directories() {
  const std::string& metadata = context_.options.metadata_directory;
  for (const Placement placement : {Placement::Values, Placement::Metadata}) {
    const bool any =
        std::any_of(output_.value_files.begin(), output_.value_files.end(),
                    [&](const ValueFileMetadata& file) { return file.placement == placement; });
    if (!any) continue;
    EC_TRY(context_.file_system.sync_directory(
        value_tables_directory(metadata, context_.options.values_directory, placement)));
  }
  if (output_.tables.empty()) return ok();
  return context_.file_system.sync_directory(tables_directory(metadata));
}

Status MergeOutput::finish() {
  EC_TRY(end());
  EC_TRY(close_values());
  return sync_directories();
}

void MergeOutput::discard() {
  values_.reset();
  slots_.clear();
  // What cannot be removed now is removed by the next recovery: no manifest names it.
  for (const std::string& path : created_)
    static_cast<void>(context_.file_system.remove_file(path).ok());
}

}  // namespace edgecase::engine
