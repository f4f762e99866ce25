#include "check/rebuild.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/entry.h"
#include "check/store_files.h"
#include "core/wal.h"
#include "edgecase/options.h"
#include "file/file_names.h"
#include "table/table_writer.h"
#include "value/group.h"

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

namespace {

bool is_before(const NamespaceInfo& info, NamespaceId id) {
  return info.id < id;
}

}  // namespace

const NamespaceInfo* NamespaceRebuild::find(NamespaceId id) const {
  const auto place = std::lower_bound(known_.begin(), known_.end(), id, is_before);
  return place == known_.end() || place->id != id ? nullptr : &*place;
}

const NamespaceInfo* NamespaceRebuild::find_name(std::string_view name) const {
  const auto place = std::find_if(known_.begin(), known_.end(),
                                  [name](const NamespaceInfo& info) { return info.name == name; });
  return place == known_.end() ? nullptr : &*place;
}

void NamespaceRebuild::insert(const NamespaceInfo& info) {
  id_limit_ = std::max(id_limit_, info.id + 1);
  known_.insert(std::lower_bound(known_.begin(), known_.end(), info.id, is_before), info);
}

void NamespaceRebuild::take(const std::vector<NamespaceInfo>& known, NamespaceId id_limit) {
  known_ = known;
  id_limit_ = std::max(id_limit_, id_limit);
  known_below_ = id_limit;
}

bool NamespaceRebuild::is_dropped(NamespaceId id) const {
  if (id >= 1 && id < known_below_ && find(id) == nullptr) return true;
  return dropped_.contains(id);
}

void NamespaceRebuild::add(NamespaceId id, std::string_view name, const NamespaceOptions& options) {
  if (is_dropped(id) || find(id) != nullptr) return;
  id_limit_ = std::max(id_limit_, id + 1);
  const NamespaceInfo* const other = find_name(name);
  if (other != nullptr && other->id > id) {
    dropped_.insert(id);
    return;
  }
  if (other != nullptr) {
    const NamespaceId older = other->id;
    dropped_.insert(older);
    std::erase_if(known_, [older](const NamespaceInfo& info) { return info.id == older; });
  }
  insert({id, std::string(name), options});
}

void NamespaceRebuild::ensure(NamespaceId id, const NamespaceOptions& options) {
  if (is_dropped(id) || find(id) != nullptr) return;
  const std::string placeholder = "recovered-" + std::to_string(id);
  std::string name = placeholder;
  for (int i = 2; find_name(name) != nullptr; ++i) name = placeholder + "-" + std::to_string(i);
  findings_.loss("namespace " + std::to_string(id) + ": its name is lost; it is called " + name);
  insert({id, name, options});
}

void NamespaceRebuild::mark_repaired() {
  if (find_name(kRepairedNamespace) != nullptr) return;
  NamespaceOptions options;
  options.placement = Placement::Metadata;
  // Where a file has the last number there is room before it.
  NamespaceId id = std::min(id_limit_, kNamespaceIdMax);
  while (id > 1 && (find(id) != nullptr || is_dropped(id))) --id;
  insert({id, std::string(kRepairedNamespace), options});
}

NamespaceOptions NamespaceRebuild::options_of(NamespaceId id) const {
  const NamespaceInfo* const info = find(id);
  return info == nullptr ? NamespaceOptions{} : info->options;
}

Bytes NamespaceRebuild::name_of(NamespaceId id) const {
  const NamespaceInfo* const info = find(id);
  return info == nullptr ? Bytes() : info->name;
}

namespace {

// As if all rules had been cleared when expiry had come that far.
RetentionRules without_rules(const RetentionRules& rules, std::int64_t mark_ns) {
  std::vector<RetentionRule> cleared;
  for (const ScopeState& scope : rules.scopes()) {
    if (scope.retention_ns)
      cleared.push_back(
          {namespace_of(scope.prefix), Bytes(user_key_of(scope.prefix)), std::nullopt});
  }
  RetentionRules floors = rules;
  // No scope is added, so that there are not too many.
  static_cast<void>(floors.change(cleared, mark_ns));
  return floors;
}

}  // namespace

ManifestSalvage salvage_manifests(FileSystem& file_system, const StoreFiles& files) {
  ManifestSalvage salvage;
  for (auto number = files.manifests.rbegin(); number != files.manifests.rend(); ++number) {
    const std::string path = manifest_path(files.metadata_directory, *number);
    const ManifestLook look = look_at_manifest(file_system, path, files.keys());
    const VersionState& state = look.state;
    salvage.file_number_limit = std::max(salvage.file_number_limit, state.file_number_limit);
    // Each begins with the whole state: older ones tell nothing that this one does not.
    if (!salvage.path.empty() || look.edits == 0 || look.log.identity.store_id != files.store_id)
      continue;
    salvage.path = path;
    salvage.namespaces = state.namespaces;
    salvage.namespace_id_limit = state.namespace_id_limit;
    salvage.flushed_sequence = state.flushed_sequence;
    salvage.range_deletes = state.version->range_delete_list;
    salvage.erasures = state.erasures;
    if (state.retention == nullptr) continue;
    salvage.retention = without_rules(*state.retention, state.expiry_mark_ns);
    salvage.expiry_mark_ns = state.expiry_mark_ns;
  }
  return salvage;
}

namespace {

// Finds the log. Nobody knows where it begins where no manifest is whole: that something older is
// gone says nothing then.
Result<WalContents> find_log(FileSystem& file_system, const StoreFiles& files,
                             std::uint64_t oldest_needed) {
  EC_ASSIGN_OR_RETURN(WalContents contents, find_wal(file_system, files.metadata_directory,
                                                     files.store_id, oldest_needed, files.keys()));
  if (oldest_needed == 0) contents.missing.erase(0);
  return contents;
}

Result<std::uint64_t> count_entries(ByteView batch) {
  WriteBatchReader reader(batch);
  std::uint64_t entries = 0;
  while (const auto* const entry = reader.next()) {
    if (entry->namespace_id == 0 || entry->namespace_id > kNamespaceIdMax)
      return corruption("batch: a namespace that cannot be");
    ++entries;
  }
  EC_TRY(reader.status());
  return entries;
}

}  // namespace

Result<SequenceNumber> find_wal_begin(FileSystem& file_system, const StoreFiles& files,
                                      SequenceNumber in_tables) {
  std::optional<SequenceNumber> begin;
  SequenceNumber last = 0;
  const auto look = [&](SequenceNumber first, ByteView batch) -> Result<std::uint64_t> {
    EC_ASSIGN_OR_RETURN(const std::uint64_t entries, count_entries(batch));
    if (!begin || (first != last + 1 && first <= in_tables + 1)) begin = first - 1;
    last = first + entries - 1;
    return entries;
  };
  auto contents = find_log(file_system, files, 0);
  if (contents.status().code() == StatusCode::Corruption) return in_tables;
  EC_TRY(contents.status());
  const Status read =
      read_wal(file_system, files.metadata_directory, in_tables, *contents, look, files.keys());
  if (!read.ok() && read.code() != StatusCode::Corruption) return read;
  return begin.value_or(in_tables);
}

Result<SequenceNumber> salvage_wal(FileSystem& file_system, const StoreFiles& files,
                                   std::uint64_t oldest_needed, SequenceNumber flushed,
                                   Findings& findings, const SalvagedBatch& apply) {
  SequenceNumber last = flushed;
  const auto replay = [&](SequenceNumber first, ByteView batch) -> Result<std::uint64_t> {
    EC_ASSIGN_OR_RETURN(const std::uint64_t entries, count_entries(batch));
    if (first <= last) return entries;
    EC_TRY(apply(first, batch));
    last = first + entries - 1;
    return entries;
  };
  auto contents = find_log(file_system, files, oldest_needed);
  Status read = contents.status();
  if (read.ok())
    read =
        read_wal(file_system, files.metadata_directory, flushed, *contents, replay, files.keys());
  if (contents.ok())
    for (const WalDamage& damage : contents->damage)
      findings.loss(damage.path + " " + damage.words());
  if (read.ok()) return last;
  if (read.code() != StatusCode::Corruption) return read;
  findings.loss(read.message() + ": the writes after " + std::to_string(last) + " are lost");
  return last;
}

}  // namespace edgecase::engine
