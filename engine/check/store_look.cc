#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/entry.h"
#include "check/store_files.h"
#include "core/wal.h"
#include "edgecase/store_check.h"
#include "file/file_names.h"
#include "metadata/umeta_table.h"

namespace edgecase::engine {
namespace {

class Looker {
 public:
  Looker(FileSystem& file_system, Findings& findings, StoreFiles files)
      : file_system_(file_system), findings_(findings) {
    look_.files = std::move(files);
  }

  Result<StoreLook> run() {
    if (look_.files.repair_begun)
      findings_.problem(repair_marker_path(directory()) +
                        ": a repair was begun and not finished; run it again");
    EC_TRY(look_at_the_manifest());
    if (look_.manifest_is_whole) {
      EC_TRY(check_tables());
      note_orphans();
      EC_TRY(check_wal());
    }
    return std::move(look_);
  }

 private:
  const std::string& directory() const { return look_.files.metadata_directory; }
  const VersionState& state() const { return look_.manifest.state; }

  // Finds the manifest; a newer format ends the work.
  Status look_at_the_manifest() {
    const auto number = read_current(file_system_, current_path(directory()));
    const auto copy = read_current(file_system_, current_copy_path(directory()));
    if (copy.status().code() == StatusCode::Corruption) findings_.problem(copy.status().message());
    // One that is newer was written just before a power cut; one that is older could not be written
    // when CURRENT was, and the next start writes it anew.
    if (copy.ok() && number.ok() && *copy != *number &&
        !file_system_.file_size(manifest_path(directory(), *copy)).ok())
      findings_.note(current_copy_path(directory()) + ": names a manifest that is not there");
    if (number.ok()) return look_at_manifest_number(*number);
    tell_of_current(number.status());
    if (copy.ok()) return look_at_manifest_number(*copy);
    // A manifest that stands alone is the one that it named.
    return look_.files.manifests.size() == 1
               ? look_at_manifest_number(look_.files.manifests.front())
               : ok();
  }

  void tell_of_current(const Status& status) {
    const bool missing = status.code() == StatusCode::NotFound;
    const bool is_store = !look_.files.manifests.empty() || look_.files.has_metadata_identity ||
                          !look_.files.tables.empty();
    if (!missing) {
      findings_.problem(status.message());
    } else if (is_store) {
      findings_.problem(current_path(directory()) + ": missing");
    }
  }

  Status look_at_manifest_number(std::uint64_t number) {
    const std::string path = manifest_path(directory(), number);
    look_.manifest_number = number;
    look_.manifest = engine::look_at_manifest(file_system_, path, look_.files.keys());
    const LogLook& log = look_.manifest.log;
    findings_.report().bytes += log.file_bytes;
    for (const std::string& note : log.notes) findings_.note(note);
    if (log.status.code() == StatusCode::Unsupported) return log.status;
    if (log.status.ok() && log.identity.store_id != look_.files.store_id)
      return unavailable(path + ": belongs to another store");
    if (log.status.ok() && log.identity.number != number)
      look_.manifest.log.status = corruption_in(path, ": the head is not that of this manifest");
    if (log.status.code() == StatusCode::NotFound) {
      const bool there = file_system_.file_size(path).ok();
      look_.manifest.log.status = corruption(
          path + (there ? " at byte 0: the head is damaged" : ": missing, but CURRENT names it"));
    }
    look_.manifest_is_whole = findings_.accept(look_.manifest.log.status);
    return ok();
  }

  Status check_tables() {
    const Version& version = *state().version;
    for (const auto& [number, file] : version.value_files) findings_.expect_bytes(file.size_bytes);
    for (const TablePointer& table : version.tables)
      findings_.expect_bytes(table->size_bytes + table->item_bytes());
    check_numbers(version);
    TableCheck check(file_system_, look_.files, state(), findings_);
    for (const auto& [number, file] : version.value_files) EC_TRY(check.check_value_table(file));
    for (const TablePointer& table : version.tables) EC_TRY(check.check_metadata_table(*table));
    look_.damaged_values = check.damaged_values();
    look_.damaged_tables = check.damaged_tables();
    return ok();
  }

  void check_numbers(const Version& version) {
    const std::string path = manifest_path(directory(), look_.manifest_number);
    const auto check = [&](FileNumber number) {
      if (number >= state().file_number_limit)
        findings_.problem(path + ": names file " + std::to_string(number) +
                          ", a number that was never given out");
    };
    for (const auto& [number, file] : version.value_files) {
      check(number);
      const NamespaceId id = file.namespace_id;
      if (std::none_of(state().namespaces.begin(), state().namespaces.end(),
                       [id](const NamespaceInfo& info) { return info.id == id; }))
        findings_.problem(path + ": value file " + std::to_string(number) + " is of namespace " +
                          std::to_string(id) + ", which is not there");
    }
    for (const TablePointer& table : version.tables) check(table->number);
  }

  void note_orphans() {
    const Version& version = *state().version;
    for (const auto& [number, placement] : look_.files.values) {
      const auto named = version.value_files.find(number);
      if (named == version.value_files.end() || named->second.placement != placement)
        findings_.note(look_.files.value_path(number, placement) +
                       ": no manifest names it; the next start removes it");
    }
    for (const FileNumber number : look_.files.tables) {
      if (std::none_of(version.tables.begin(), version.tables.end(),
                       [&](const TablePointer& table) { return table->number == number; }))
        findings_.note(look_.files.table_path(number) +
                       ": no manifest names it; the next start removes it");
    }
    for (const std::uint64_t number : look_.files.manifests) {
      if (number != look_.manifest_number)
        findings_.note(manifest_path(directory(), number) + ": not the one that CURRENT names");
    }
  }

  Status check_wal() {
    auto found = find_wal(file_system_, directory(), look_.files.store_id,
                          state().oldest_wal_segment, look_.files.keys());
    if (found.status().code() == StatusCode::Unsupported) return found.status();
    if (!findings_.accept(found.status())) return ok();
    WalContents contents = std::move(found).value();
    Status stopped;
    const auto check = [&](SequenceNumber, ByteView payload) -> Result<std::uint64_t> {
      stopped = findings_.read_bytes(payload.size());
      EC_TRY(stopped);
      return check_batch(payload);
    };
    const Status read = read_wal(file_system_, directory(), state().flushed_sequence, contents,
                                 check, look_.files.keys());
    EC_TRY(stopped);
    look_.wal_is_whole = findings_.accept(read);
    if (read.ok()) note_known(directory(), state().flushed_sequence, state().erasures, contents);
    // A start steps over these, and keeps whole batches on both sides.
    for (const WalDamage& damage : contents.damage)
      findings_.problem(damage.path + " " + damage.words());
    look_.wal_is_whole = look_.wal_is_whole && contents.damage.empty();
    findings_.report().wal_segments = contents.chain.size();
    findings_.report().wal_records = contents.records;
    if (!look_.wal_is_whole) return ok();
    if (!contents.dropped.empty())
      findings_.note(directory() + ": WAL segment " + std::to_string(contents.chain.back().number) +
                     " lacks its end, which nobody had synced; what the " +
                     std::to_string(contents.dropped.size()) + " behind it hold is dropped");
    for (const WalSegment& segment : contents.chain) {
      const LogLook log =
          look_at_log(file_system_, wal_slot_path(directory(), segment.slot.index),
                      look_.files.keys(), [](const LogRecord&, std::uint64_t) { return ok(); });
      for (const std::string& note : log.notes) findings_.note(note);
    }
    return ok();
  }

  Result<std::uint64_t> check_batch(ByteView payload) const {
    WriteBatchReader batch(payload);
    std::uint64_t entries = 0;
    while (const auto entry = batch.next()) {
      ++entries;
      if (entry->namespace_id == 0 || entry->namespace_id >= state().namespace_id_limit)
        return corruption("there is no namespace " + std::to_string(entry->namespace_id));
    }
    EC_TRY(batch.status());
    return entries;
  }

  FileSystem& file_system_;
  Findings& findings_;
  StoreLook look_;
};

}  // namespace

Result<StoreLook> look_at_store(FileSystem& file_system, const Options& options,
                                Findings& findings) {
  EC_ASSIGN_OR_RETURN(StoreFiles files, find_store_files(file_system, options, findings));
  return Looker(file_system, findings, std::move(files)).run();
}

}  // namespace edgecase::engine

namespace edgecase {

Result<CheckReport> check_store(FileSystem& file_system, const Options& options,
                                CheckObserver& observer) {
  engine::Findings findings(observer);
  const auto look = engine::look_at_store(file_system, options, findings);
  if (!look.ok()) return look.status();
  return findings.report();
}

}  // namespace edgecase

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

// A namespace of a store that nobody has open, read as it lies on the drives.

namespace {

class NobodyListens final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& /*finding*/) override {}
  void on_progress(std::uint64_t /*done_bytes*/, std::uint64_t /*total_bytes*/) override {}
  bool stop() override { return false; }
};

class OfflineNamespace {
 public:
  OfflineNamespace(FileSystem& file_system, StoreFiles files)
      : file_system_(file_system), files_(std::move(files)) {}

  Result<OfflineContents> read(std::string_view name) {
    EC_ASSIGN_OR_RETURN(const std::uint64_t number,
                        read_current(file_system_, current_path(files_.metadata_directory)));
    const ManifestLook manifest = look_at_manifest(
        file_system_, manifest_path(files_.metadata_directory, number), files_.keys());
    EC_TRY(manifest.log.status);
    for (const NamespaceInfo& info : manifest.state.namespaces) {
      if (info.name == name) id_ = info.id;
    }
    if (id_ == 0) return not_found("no namespace " + std::string(name));
    deletes_ = manifest.state.version->range_delete_list;
    for (const TablePointer& table : manifest.state.version->tables)
      read_table(*table, *manifest.state.version);
    EC_TRY(read_log(manifest.state));
    return contents();
  }

 private:
  struct Newest {
    SequenceNumber sequence = 0;
    bool is_put = false;
    Bytes value;
  };

  void take(const EntryView& entry) {
    Newest& newest = newest_[Bytes(entry.full_key)];
    if (entry.sequence < newest.sequence) return;
    newest = {entry.sequence, entry.kind == EntryKind::Put, Bytes(entry.value)};
  }

  // What cannot be read is passed over.
  void read_table(const TableMetadata& table, const Version& version) {
    bool is_used = false;
    for (const ValueFileUse& use : table.value_files) {
      const auto file = version.value_files.find(use.file_number);
      is_used |= file != version.value_files.end() && file->second.namespace_id == id_;
    }
    if (!is_used) return;
    auto file = file_system_.open_file(files_.table_path(table.number));
    if (!file.ok()) return;
    const auto reader =
        UMetaReader::open(std::move(file).value(), files_.store_id, table.number, files_.keys());
    if (!reader.ok()) return;
    for (std::size_t b = 0; b < (*reader)->blocks().size(); ++b) {
      auto block = (*reader)->read_block(b);
      if (!block.ok()) continue;
      UMetaCursor records;
      records.open(*std::move(block));
      while (records.next())
        if (namespace_of(records.record().first) == id_)
          read_record(records.record().pointer, version);
    }
  }

  void read_record(const ValuePointer& pointer, const Version& version) {
    const auto named = version.value_files.find(pointer.file_number);
    if (named == version.value_files.end()) return;
    std::unique_ptr<ValueTableReader>& values = values_[pointer.file_number];
    if (values == nullptr) {
      auto file =
          file_system_.open_file(files_.value_path(pointer.file_number, named->second.placement));
      if (!file.ok()) return;
      auto opened = ValueTableReader::open(std::move(file).value(), files_.store_id,
                                           pointer.file_number, files_.keys());
      if (!opened.ok()) return;
      values = std::move(opened).value();
    }
    const auto item = values->read(pointer);
    if (item.ok()) read_item(*item, id_, [this](const EntryView& entry) { take(entry); });
  }

  Status read_log(const VersionState& state) {
    EC_ASSIGN_OR_RETURN(WalContents log,
                        find_wal(file_system_, files_.metadata_directory, files_.store_id,
                                 state.oldest_wal_segment, files_.keys()));
    const auto apply = [&](SequenceNumber first, ByteView payload) -> Result<std::uint64_t> {
      WriteBatchReader batch(payload);
      SequenceNumber sequence = first;
      while (const auto entry = batch.next()) {
        const SequenceNumber own = sequence++;
        if (entry->namespace_id != id_) continue;
        if (entry->is_range()) {
          deletes_.push_back(make_range_delete(id_, entry->key, entry->value, own));
        } else {
          const Bytes key = make_full_key(id_, entry->key);
          take({key, own, entry->kind, entry->value});
        }
      }
      EC_TRY(batch.status());
      return sequence - first;
    };
    return read_wal(file_system_, files_.metadata_directory, state.flushed_sequence, log, apply,
                    files_.keys());
  }

  OfflineContents contents() const {
    const RangeDeletes deletes(deletes_);
    OfflineContents contents;
    for (const auto& [key, newest] : newest_) {
      if (!newest.is_put || deletes.covering(key, UINT64_MAX >> 2) > newest.sequence) continue;
      contents.emplace(Bytes(ByteView(key).substr(kNamespacePrefixBytes)), newest.value);
    }
    return contents;
  }

  FileSystem& file_system_;
  const StoreFiles files_;
  NamespaceId id_ = 0;
  std::map<Bytes, Newest> newest_;  // by full key
  std::vector<RangeDelete> deletes_;
  std::map<FileNumber, std::unique_ptr<ValueTableReader>> values_;
};

}  // namespace
}  // namespace edgecase::engine

namespace edgecase {

Result<OfflineContents> read_offline(FileSystem& file_system, const Options& options,
                                     std::string_view namespace_name) {
  engine::NobodyListens nobody;
  engine::Findings findings(nobody);
  EC_ASSIGN_OR_RETURN(engine::StoreFiles files,
                      engine::find_store_files(file_system, options, findings));
  return engine::OfflineNamespace(file_system, std::move(files)).read(namespace_name);
}

}  // namespace edgecase
