#include "check/table_rebuild.h"

#include <algorithm>

#include "file/file_names.h"
#include "table/table_writer.h"
#include "value/page_index.h"

namespace edgecase::engine {

Status TableRebuild::add_items(const ValueTableReader& values,
                               const std::vector<ValuePointer>& items) {
  for (const ValuePointer& pointer : items) EC_TRY(add_item(values, pointer, nullptr));
  EC_TRY(close(TableKind::Groups));
  return close(TableKind::Singles);
}

Status TableRebuild::copy_items(const ValueTableReader& values,
                                const std::vector<ValuePointer>& items, const Bytes& namespace_name,
                                std::uint32_t scope_bytes) {
  ValueTableHead head = values.head();
  head.namespace_name = namespace_name;
  head.scope_bytes = scope_bytes;
  head.packs = true;
  head.identity = {files_.store_id, allocate_file_number_()};
  const std::string path = files_.value_path(head.identity.file_number, head.placement);
  EC_ASSIGN_OR_RETURN(const auto copy,
                      ValueTableWriter::create(file_system_, path, head, files_.keys()));
  for (const ValuePointer& pointer : items) EC_TRY(add_item(values, pointer, copy.get()));
  if (copy->item_count() == 0) {
    // Nothing of it could be read. The empty file is named by nobody.
    return file_system_.remove_file(path);
  }
  EC_TRY(copy->finish());
  ValueFileMetadata file;
  file.number = head.identity.file_number;
  file.namespace_id = head.namespace_id;
  file.placement = head.placement;
  file.size_bytes = copy->size_bytes();
  file.item_count = copy->item_count();
  file.checksum = copy->checksum();
  file.item_bytes = copy->item_bytes();
  value_files_.push_back(file);
  EC_TRY(close(TableKind::Groups));
  return close(TableKind::Singles);
}

Status TableRebuild::add_item(const ValueTableReader& values, const ValuePointer& pointer,
                              ValueTableWriter* copy) {
  EC_TRY(findings_.read_bytes(pointer.size_bytes));
  const auto item = values.read(pointer);
  if (item.status().code() == StatusCode::NotFound) {
    findings_.note(item.status().message());
    return ok();
  }
  if (!item.ok() && values.reads_blank(pointer)) return ok();
  keys_.clear();
  item_values_.clear();
  entries_.clear();
  numbers_.clear();
  std::optional<ItemFacts> facts;
  if (item.ok()) {
    // The reader's views hold for one entry.
    facts = read_item(*item, values.head().namespace_id, [&](const EntryView& entry) {
      keys_.emplace_back(entry.full_key);
      item_values_.emplace_back(copy != nullptr ? entry.value : ByteView());
      entries_.push_back(entry);
      numbers_.add(entry);
    });
  }
  if (!facts) {
    findings_.loss(
        (item.ok() ? values.damaged(pointer, "item is malformed") : item.status()).message() +
            ": " + std::to_string(pointer.size_bytes) + " bytes of namespace " +
            std::to_string(values.head().namespace_id) + " are lost",
        entries_of_(pointer));
    return ok();
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].full_key = keys_[i];
    entries_[i].value = item_values_[i];
  }
  page_index_.clear();
  if (copy == nullptr) {
    if (facts->type == ItemType::PlainGroup)
      append_page_index(page_index_, item->bytes, entries_, values.seal_overhead());
    return add_record(*facts, pointer);
  }
  // Entries of other tables may come between.
  const SequenceColumn column =
      facts->sequence_min == facts->sequence_max ? SequenceColumn::None : SequenceColumn::Written;
  EC_ASSIGN_OR_RETURN(const ValuePointer copied, facts->type == ItemType::Single
                                                     ? copy->append_single(entries_.front())
                                                     : copy->append_group(entries_, column));
  if (facts->type == ItemType::PlainGroup) page_index_ = copy->page_index();
  return add_record(*facts, copied);
}

Status TableRebuild::add_record(const ItemFacts& facts, const ValuePointer& pointer) {
  const TableKind kind = facts.type == ItemType::Single ? TableKind::Singles : TableKind::Groups;
  Open& open = open_[static_cast<std::size_t>(kind)];
  if (open.table != nullptr && facts.first <= open.last) EC_TRY(close(kind));
  if (open.table == nullptr) {
    const TableIdentity identity{files_.store_id, allocate_file_number_()};
    EC_ASSIGN_OR_RETURN(open.table,
                        UMetaWriter::create(file_system_, files_.table_path(identity.file_number),
                                            identity, files_.keys()));
  }
  Bytes filter;
  append_item_filter(filter, facts.type, pointer.size_bytes, entries_);
  UMetaRecord record;
  record.type = facts.type;
  record.first = facts.first;
  record.last = facts.last;
  record.entries = facts.entries;
  record.deletes = facts.deletes;
  record.sequence_min = facts.sequence_min;
  record.sequence_max = facts.sequence_max;
  record.pointer = pointer;
  record.filter = filter;
  record.pages = page_index_;
  Bytes numbers;
  if (facts.type == ItemType::SeriesGroup) numbers_.append_to(numbers);
  record.numbers = numbers;
  open.last = facts.last;
  sequence_max_ = std::max(sequence_max_, facts.sequence_max);
  return open.table->add(record);
}

Status TableRebuild::close(TableKind kind) {
  Open& open = open_[static_cast<std::size_t>(kind)];
  if (open.table == nullptr) return ok();
  EC_TRY(open.table->finish());
  tables_.push_back(describe_table(*open.table, kind));
  open.table.reset();
  return ok();
}

Status TableRebuild::finish() {
  EC_TRY(close(TableKind::Groups));
  EC_TRY(close(TableKind::Singles));
  if (!value_files_.empty()) {
    for (const Placement placement : {Placement::Values, Placement::Metadata})
      EC_TRY(file_system_.sync_directory(
          value_tables_directory(files_.metadata_directory, files_.values_directory, placement)));
  }
  return file_system_.sync_directory(tables_directory(files_.metadata_directory));
}

}  // namespace edgecase::engine
