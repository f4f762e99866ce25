#include "check/item_hints.h"

#include <algorithm>
#include <set>

namespace edgecase::engine {
namespace {

bool points_into(const TableMetadata& table, FileNumber number) {
  return std::any_of(table.value_files.begin(), table.value_files.end(),
                     [&](const ValueFileUse& use) { return use.file_number == number; });
}

}  // namespace

void ItemHints::for_records_of(FileNumber number, FileNumber table,
                               const LookAtRecord& look) const {
  auto file = file_system_.open_file(look_.files.table_path(table));
  if (!file.ok()) return;
  const auto reader =
      UMetaReader::open(std::move(file).value(), look_.files.store_id, table, look_.files.keys());
  if (!reader.ok()) return;
  for (std::size_t b = 0; b < (*reader)->blocks().size(); ++b) {
    auto block = (*reader)->read_block(b);
    if (!block.ok()) continue;
    UMetaCursor records;
    records.open(*std::move(block));
    while (records.next())
      if (records.record().pointer.file_number == number) look(records.record());
  }
}

std::vector<FileNumber> ItemHints::tables_that_tell_of(FileNumber number) const {
  if (!look_.manifest_is_whole) return {look_.files.tables.begin(), look_.files.tables.end()};
  std::vector<FileNumber> numbers;
  for (const TablePointer& table : look_.manifest.state.version->tables) {
    if (points_into(*table, number)) numbers.push_back(table->number);
  }
  return numbers;
}

std::vector<ValuePointer> ItemHints::items_of(FileNumber number) const {
  std::vector<ValuePointer> items;
  for (const FileNumber table : tables_that_tell_of(number)) {
    for_records_of(number, table,
                   [&](const UMetaRecord& record) { items.push_back(record.pointer); });
  }
  std::sort(items.begin(), items.end(), [](const ValuePointer& a, const ValuePointer& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

void ItemHints::leave_out(const std::vector<TablePointer>& tables, FileNumber number,
                          std::vector<ValuePointer>& items) const {
  std::set<std::uint64_t> pointed_to;
  for (const TablePointer& table : tables) {
    if (!points_into(*table, number)) continue;
    for_records_of(number, table->number, [&](const UMetaRecord& record) {
      pointed_to.insert(record.pointer.offset_bytes);
    });
  }
  std::erase_if(items,
                [&](const ValuePointer& item) { return pointed_to.contains(item.offset_bytes); });
}

void ItemHints::ask(FileNumber number) const {
  if (asked_ == number) return;
  asked_ = number;
  told_.clear();
  for (const FileNumber table : tables_that_tell_of(number)) {
    for_records_of(number, table, [this](const UMetaRecord& record) {
      LostEntries lost;
      lost.namespace_id = namespace_of(record.first);
      lost.first = record.first.substr(kNamespacePrefixBytes);
      lost.last = record.last.substr(kNamespacePrefixBytes);
      lost.entries = record.entries - record.deletes;
      told_.emplace(record.pointer.offset_bytes, std::move(lost));
    });
  }
}

std::vector<LostEntries> ItemHints::entries_of(FileNumber number) const {
  ask(number);
  std::vector<LostEntries> all;
  for (const auto& [offset, lost] : told_) all.push_back(lost);
  return all;
}

std::vector<LostEntries> ItemHints::entries_of(const ValuePointer& item) const {
  ask(item.file_number);
  const auto found = told_.find(item.offset_bytes);
  if (found == told_.end()) return {};
  return {found->second};  // tables that tell of one item tell the same
}

std::string ItemHints::words_for(FileNumber number) const {
  std::uint64_t items = 0;
  std::uint64_t entries = 0;
  for (const FileNumber table : tables_that_tell_of(number)) {
    for_records_of(number, table, [&](const UMetaRecord& record) {
      ++items;
      entries += record.entries;
    });
  }
  const auto known = look_.manifest.state.version->value_files.find(number);
  std::string text;
  if (known != look_.manifest.state.version->value_files.end())
    text = "; it was of namespace " + std::to_string(known->second.namespace_id);
  if (items == 0) return text + "; what it held is not known";
  return text + ", " + std::to_string(items) + " items with " + std::to_string(entries) +
         " entries";
}

}  // namespace edgecase::engine
