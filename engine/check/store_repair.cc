// A store that opens, from what can be read of one that does not.
//
// What is new is written under numbers that no manifest names. Then the marker REPAIR, then the new
// manifest and CURRENT: from there on the new state holds. What it does not name goes into the
// directories `damaged`, and last the marker goes. A run that was cut short before CURRENT changed
// begins again from the same files; one that was cut short after it finds a whole store with a
// marker, and puts the rest aside.
#include <algorithm>
#include <set>
#include <utility>

#include "base/entry.h"
#include "buffer/memtable.h"
#include "check/rebuild.h"
#include "check/store_files.h"
#include "core/drives.h"
#include "core/merge_cursor.h"
#include "core/wal.h"
#include "edgecase/store_check.h"
#include "file/file_names.h"
#include "log/log.h"
#include "table/table_writer.h"
#include "version/version.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kMemtableBytes = 16u << 20;
constexpr std::uint64_t kManifestBytes = 1u << 20;
constexpr SequenceNumber kEverySequence = UINT64_MAX >> 2;

class StoreRepair {
 public:
  StoreRepair(FileSystem& file_system, const Options& options, Findings& findings, StoreLook look)
      : file_system_(file_system),
        options_(options),
        findings_(findings),
        look_(std::move(look)),
        hints_(file_system, look_),
        rebuild_(
            file_system, look_.files, findings, [this] { return next_number_++; },
            [this](const ValuePointer& item) { return named(hints_.entries_of(item)); }),
        namespaces_(findings) {}

  Status run() {
    if (finished_but_for_cleaning()) return clean_up();
    EC_TRY(prepare_directories());
    choose_numbers();
    choose_namespaces();
    if (look_.manifest_is_whole) {
      EC_TRY(keep_tables());
    } else {
      EC_TRY(rebuild_everything());
    }
    if (!look_.manifest_is_whole || !look_.wal_is_whole) EC_TRY(empty_wal());
    EC_TRY(rebuild_.finish());
    take_output(rebuild_.tables(), rebuild_.value_files());
    EC_TRY(switch_over());
    return clean_up();
  }

 private:
  const std::string& metadata_directory() const { return look_.files.metadata_directory; }
  const std::string& values_directory() const { return look_.files.values_directory; }

  // The marker alone is what is wrong.
  bool finished_but_for_cleaning() {
    if (!look_.files.repair_begun || findings_.report().problems != 1) return false;
    next_ = look_.manifest.state.snapshot();
    manifest_number_ = look_.manifest_number;
    wal_is_empty_ = look_.manifest.state.oldest_wal_segment == 0;
    return look_.manifest_is_whole && look_.wal_is_whole;
  }

  Status create_durably(const std::string& directory) {
    EC_TRY(file_system_.create_directory(directory));
    const std::size_t slash = directory.rfind('/');
    const std::string parent = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : directory.substr(0, slash);
    return file_system_.sync_directory(parent);
  }

  Status prepare_directories() {
    for (const std::string& directory :
         {metadata_directory(), tables_directory(metadata_directory()),
          wal_directory(metadata_directory())})
      EC_TRY(create_durably(directory));
    EC_TRY(heal(metadata_directory(), DirectoryRole::Metadata));
    return heal(values_directory(), DirectoryRole::Values);
  }

  // One that is whole is not written again, but for its copy.
  Status heal(const std::string& directory, DirectoryRole role) {
    const Status damage = heal_identity(file_system_, directory, {look_.files.store_id, role});
    if (damage.ok()) return ok();
    findings_.repair(identity_path(directory) + ": written anew");
    return identity_damage(file_system_, directory, {look_.files.store_id, role});
  }

  // Above everything that ever had a number, as far as can be seen.
  void choose_numbers() {
    next_number_ = look_.manifest.state.file_number_limit;
    for (const FileNumber number : look_.files.tables)
      next_number_ = std::max(next_number_, number + 1);
    for (const auto& [number, placement] : look_.files.values)
      next_number_ = std::max(next_number_, number + 1);
    manifest_number_ = look_.manifest_number + 1;
    for (const std::uint64_t number : look_.files.manifests)
      manifest_number_ = std::max(manifest_number_, number + 1);
  }

  // From the manifest; when it is damaged, from what can be read of one.
  void choose_namespaces() {
    next_.format_version = kManifestFormatVersion;
    next_.flushed_sequence = 0;
    const VersionState& state = look_.manifest.state;
    if (look_.manifest_is_whole)
      return namespaces_.take(state.namespaces, state.namespace_id_limit);
    salvage_ = salvage_manifests(file_system_, look_.files);
    next_number_ = std::max(next_number_, salvage_.file_number_limit);
    namespaces_.take(salvage_.namespaces, salvage_.namespace_id_limit);
  }

  // --- the manifest is whole ---

  Status keep_tables() {
    const Version& version = *look_.manifest.state.version;
    next_.flushed_sequence = look_.manifest.state.flushed_sequence;
    next_.range_deletes = version.range_delete_list;
    next_.erasures = look_.manifest.state.erasures;
    if (look_.manifest.state.expiry_mark_ns != kNoMarkNs)
      next_.expiry_mark_ns = look_.manifest.state.expiry_mark_ns;
    if (look_.manifest.state.retention != nullptr) {
      next_.scopes = look_.manifest.state.retention->scopes();
      next_.given_up = look_.manifest.state.retention->given_up();
    }
    std::vector<TablePointer> kept;
    std::set<FileNumber> to_rebuild;
    for (const TablePointer& table : version.tables) {
      bool whole = !look_.damaged_tables.contains(table->number);
      for (const ValueFileUse& use : table->value_files)
        whole = whole && !look_.damaged_values.contains(use.file_number);
      if (whole) {
        kept.push_back(table);
        next_.added_tables.push_back(*table);
        continue;
      }
      for (const ValueFileUse& use : table->value_files) to_rebuild.insert(use.file_number);
      findings_.repair(look_.files.table_path(table->number) + ": made anew");
    }
    for (const FileNumber number : look_.damaged_values) to_rebuild.insert(number);
    for (const auto& [number, file] : version.value_files) {
      const bool kept_as_it_is = !look_.damaged_values.contains(number);
      if (kept_as_it_is) next_.added_value_files.push_back(file);
      if (kept_as_it_is && file.has_blanks) next_.blanked_value_files.push_back(number);
      if (!to_rebuild.contains(number)) continue;
      EC_TRY(rebuild_value_file(number, file.placement, kept));
    }
    return ok();
  }

  // --- the manifest is lost ---

  Status rebuild_everything() {
    tell_what_is_lost();
    // Names first: a table that tells no name must not hide what another tells.
    for (const auto& [number, placement] : look_.files.values) take_name_from(number, placement);
    for (const auto& [number, placement] : look_.files.values)
      EC_TRY(rebuild_value_file(number, placement, {}));
    next_.flushed_sequence = rebuild_.sequence_max();
    keep_what_is_gone();
    findings_.repair(metadata_directory() + ": the manifest is made anew from " +
                     std::to_string(look_.files.values.size()) + " value tables");
    return ok();
  }

  // What no value table tells of: a repair that says nothing of it would seem to have lost nothing.
  void tell_what_is_lost() {
    const std::string come_back =
        "what was deleted, erased or dropped, had expired or was evicted, and whose bytes were "
        "still there, may have come back; retention rules are to be set again (a daemon does, "
        "where it has its records of them)";
    if (salvage_.path.empty()) {
      findings_.loss(metadata_directory() +
                     ": no manifest is left to tell what is gone for good: " + come_back);
    } else {
      findings_.loss(salvage_.path + ": what it said last cannot be read: " + come_back +
                     ", unless the part that can be read tells of it");
    }
    const bool has_own_values =
        std::any_of(look_.files.values.begin(), look_.files.values.end(),
                    [](const auto& each) { return each.second == Placement::Metadata; });
    const bool had_own_values =
        salvage_.path.empty() ? look_.files.tables.empty()  // all of the drive is lost
                              : std::any_of(salvage_.namespaces.begin(), salvage_.namespaces.end(),
                                            [](const NamespaceInfo& info) {
                                              return info.options.placement == Placement::Metadata;
                                            });
    if (!has_own_values && had_own_values)
      findings_.loss(metadata_directory() +
                     ": no value table is left in it: namespaces whose values it held are lost, "
                     "but for what the log tells (a daemon's: the names of devices and sensors, "
                     "what was said of devices, tokens, retention rules, records of erasures and "
                     "what keeps erased readings from coming back, the audit log)");
  }

  // What the readable part of a manifest says is gone stays gone, for ever.
  void keep_what_is_gone() {
    next_.range_deletes = salvage_.range_deletes;
    next_.erasures = salvage_.erasures;
    if (salvage_.retention.empty()) return;
    RetentionRules kept = salvage_.retention;
    std::set<NamespaceId> with_rules;
    for (const ScopeState& each : kept.scopes()) with_rules.insert(namespace_of(each.prefix));
    for (const GivenUp& each : kept.given_up()) with_rules.insert(each.namespace_id);
    for (const NamespaceId id : with_rules)
      if (namespaces_.is_dropped(id)) kept.forget_namespace(id);
    next_.expiry_mark_ns = salvage_.expiry_mark_ns;
    next_.scopes = kept.scopes();
    next_.given_up = kept.given_up();
  }

  std::vector<LostEntries> named(std::vector<LostEntries> lost) const {
    for (LostEntries& each : lost) each.namespace_name = namespaces_.name_of(each.namespace_id);
    return lost;
  }

  void take_name_from(FileNumber number, Placement placement) {
    auto file = file_system_.open_file(look_.files.value_path(number, placement));
    if (!file.ok()) return;
    const auto values = ValueTableReader::open(std::move(file).value(), look_.files.store_id,
                                               number, look_.files.keys());
    if (!values.ok()) return;
    const auto summary = (*values)->summary();
    if (!summary.ok() || summary->namespace_name.empty()) return;
    const ValueTableHead& head = (*values)->head();
    namespaces_.add(head.namespace_id, summary->namespace_name,
                    {placement, head.codec, summary->scope_bytes});
  }

  Status lose_file(const std::string& path, FileNumber number, const Status& status) {
    findings_.loss(path + ": all of it is lost: " + status.message() + hints_.words_for(number),
                   named(hints_.entries_of(number)));
    return ok();
  }

  // Makes records for every item that no kept table points to.
  Status rebuild_value_file(FileNumber number, Placement placement,
                            const std::vector<TablePointer>& kept) {
    const std::string path = look_.files.value_path(number, placement);
    auto file = file_system_.open_file(path);
    if (!file.ok()) return lose_file(path, number, file.status());
    const std::uint64_t size_bytes = (*file)->size_bytes();
    auto values = ValueTableReader::open(std::move(file).value(), look_.files.store_id, number,
                                         look_.files.keys());
    if (values.status().code() == StatusCode::Unsupported) return values.status();
    if (!values.ok()) return lose_file(path, number, values.status());
    const ValueTableReader& table = **values;
    if (namespaces_.is_dropped(table.head().namespace_id)) {
      findings_.note(path + ": of a namespace that was dropped");
      return ok();
    }
    const auto summary = table.summary();
    const bool damaged = look_.damaged_values.contains(number) || !summary.ok();
    std::vector<ValuePointer> items;
    if (summary.ok()) {
      items = summary->items;
    } else {
      items = hints_.items_of(number);
      findings_.loss(summary.status().message() + ": items of which no metadata tells are lost");
    }
    namespaces_.ensure(table.head().namespace_id, {placement, table.head().codec, 0});
    if (damaged) {
      findings_.repair(path + ": what can be read of it is written anew");
      return rebuild_.copy_items(table, items, namespaces_.name_of(table.head().namespace_id),
                                 namespaces_.options_of(table.head().namespace_id).scope_bytes);
    }
    hints_.leave_out(kept, number, items);
    if (!look_.manifest_is_whole) {
      // When what it holds expires, the engine finds out.
      ValueFileMetadata metadata;
      metadata.number = number;
      metadata.namespace_id = table.head().namespace_id;
      metadata.placement = placement;
      metadata.size_bytes = size_bytes;
      metadata.item_count = summary->items.size();
      for (const ValuePointer& item : summary->items) metadata.item_bytes += item.size_bytes;
      EC_ASSIGN_OR_RETURN(metadata.checksum, checksum_of(table.file(), [this](std::uint64_t bytes) {
                            return findings_.read_bytes(bytes);
                          }));
      next_.added_value_files.push_back(metadata);
    }
    return rebuild_.add_items(table, items);
  }

  // --- the log ---

  // Everything readable goes into tables; the log begins anew.
  Status empty_wal() {
    wal_is_empty_ = true;
    if (look_.files.wal_slots.empty())
      findings_.loss(wal_directory(metadata_directory()) +
                     ": the log is lost, and with it what was written last");
    memtable_ = std::make_shared<Memtable>(kMemtableBytes);
    const SequenceNumber in_tables = *next_.flushed_sequence;
    SequenceNumber from = in_tables;
    const auto oldest = look_.manifest_is_whole ? look_.manifest.state.oldest_wal_segment : 0;
    if (!look_.manifest_is_whole) {
      // What is in tables already is written once more.
      EC_ASSIGN_OR_RETURN(from, find_wal_begin(file_system_, look_.files, in_tables));
      from = std::max(from, salvage_.flushed_sequence);
    }
    EC_ASSIGN_OR_RETURN(
        const SequenceNumber last,
        salvage_wal(file_system_, look_.files, oldest, from, findings_,
                    [this](SequenceNumber first, ByteView batch) { return apply(first, batch); }));
    next_.flushed_sequence = std::max({in_tables, last, newest_of(next_.erasures)});
    for (const RangeDelete& each : next_.erasures) next_.range_deletes.push_back(each);
    return flush_memtable();
  }

  // Options of a namespace that the log alone tells of: readings of a device have keys of that
  // size.
  static NamespaceOptions options_for(const BatchEntry& entry) {
    constexpr std::size_t kReadingKeyBytes = 16;
    if (entry.key.size() != kReadingKeyBytes) return {};
    return {Placement::Values, GroupCodec::Series, 4};
  }

  Status apply(SequenceNumber sequence, ByteView payload) {
    EC_TRY(findings_.read_bytes(payload.size()));
    WriteBatchReader batch(payload);
    while (const auto entry = batch.next()) {
      // A namespace that was dropped before it was lost is no loss.
      if (namespaces_.is_dropped(entry->namespace_id)) {
        dropped_.insert(entry->namespace_id);
      } else {
        namespaces_.ensure(entry->namespace_id, options_for(*entry));
      }
      if (entry->is_range()) {
        RangeDelete made =
            make_range_delete(entry->namespace_id, entry->key, entry->value, sequence++);
        made.erases = entry->kind == EntryKind::EraseRange;
        memtable_->add_range_delete(std::move(made));
        continue;
      }
      memtable_->add(entry->namespace_id, entry->key, sequence++, entry->kind, entry->value,
                     namespaces_.options_of(entry->namespace_id).codec);
    }
    return memtable_->memory_bytes() >= kMemtableBytes ? flush_memtable() : ok();
  }

  Status flush_memtable() {
    if (memtable_->entry_count() == 0) return ok();
    TableWriterContext context{file_system_,
                               options_,
                               look_.files.store_id,
                               [this] { return next_number_++; },
                               [this](NamespaceId id) { return namespaces_.options_of(id); },
                               [this](NamespaceId id) { return namespaces_.name_of(id); },
                               {},
                               nullptr,
                               look_.files.keys()};
    context.raise_limits = RaiseLimits::none_rises();  // who knows where feeds stand
    LiveCursor input(Memtable::cursor(memtable_, {}, {}, Direction::Forward, kEverySequence),
                     dropped_, memtable_->range_deletes());
    EC_ASSIGN_OR_RETURN(const TableOutput output, write_tables(input, context));
    const std::vector<RangeDelete> deletes = memtable_->range_delete_list();
    next_.range_deletes.insert(next_.range_deletes.end(), deletes.begin(), deletes.end());
    const std::vector<RangeDelete> erasures = erasures_among(deletes);
    next_.erasures.insert(next_.erasures.end(), erasures.begin(), erasures.end());
    take_output(output.tables, output.value_files);
    findings_.repair(wal_directory(metadata_directory()) + ": " +
                     std::to_string(memtable_->entry_count()) + " entries written to tables");
    memtable_ = std::make_shared<Memtable>(kMemtableBytes);
    return ok();
  }

  void take_output(const std::vector<TableMetadata>& tables,
                   const std::vector<ValueFileMetadata>& value_files) {
    next_.added_tables.insert(next_.added_tables.end(), tables.begin(), tables.end());
    next_.added_value_files.insert(next_.added_value_files.end(), value_files.begin(),
                                   value_files.end());
  }

  Status switch_over() {
    namespaces_.mark_repaired();
    next_.namespaces = namespaces_.known();
    next_.file_number_limit = next_number_;
    next_.namespace_id_limit = namespaces_.id_limit();
    next_.oldest_wal_segment = wal_is_empty_ ? 0 : look_.manifest.state.oldest_wal_segment;
    VersionState state;
    EC_TRY(state.apply(next_));  // nothing is changed for a state that would not open
    EC_TRY(write_marker());
    const Bytes payload = state.snapshot().encode();
    EC_ASSIGN_OR_RETURN(
        auto file,
        file_system_.create_log_file(
            manifest_path(metadata_directory(), manifest_number_),
            std::max(kManifestBytes,
                     2 * doubled_log_bytes_for(payload.size(), look_.files.keys() != nullptr))));
    LogIdentity identity;
    identity.store_id = look_.files.store_id;
    identity.type = LogType::Manifest;
    identity.number = manifest_number_;
    EC_ASSIGN_OR_RETURN(const auto manifest,
                        DoubledLogWriter::create(std::move(file), identity, look_.files.keys()));
    const ByteView part = payload;
    EC_TRY(manifest->append(1, {&part, 1}));
    EC_TRY(manifest->sync());
    EC_TRY(file_system_.sync_directory(metadata_directory()));
    return write_current(file_system_, metadata_directory(), manifest_number_);
  }

  Status write_marker() {
    const std::string marker = repair_marker_path(metadata_directory());
    return replace_whole_file(file_system_, metadata_directory(), marker + ".new", marker,
                              "a repair is being made\n");
  }

  Status set_aside(const std::string& directory, const std::string& path) {
    const std::string target = damaged_directory(directory);
    EC_TRY(file_system_.create_directory(target));
    std::string to = join_path(target, path.substr(path.rfind('/') + 1));
    for (int i = 1; file_system_.file_size(to).ok(); ++i)
      to = join_path(target, path.substr(path.rfind('/') + 1) + "." + std::to_string(i));
    EC_TRY(file_system_.rename_file(path, to));
    findings_.repair(path + ": kept as " + to);
    return file_system_.sync_directory(target);
  }

  Status clean_up() {
    const std::string& metadata = metadata_directory();
    for (const std::uint64_t number : look_.files.manifests) {
      if (number != manifest_number_) EC_TRY(set_aside(metadata, manifest_path(metadata, number)));
    }
    for (const FileNumber number : look_.files.tables) {
      if (std::none_of(next_.added_tables.begin(), next_.added_tables.end(),
                       [&](const TableMetadata& table) { return table.number == number; }))
        EC_TRY(set_aside(metadata, look_.files.table_path(number)));
    }
    for (const auto& [number, placement] : look_.files.values) {
      const auto named = [n = number, p = placement](const ValueFileMetadata& file) {
        return file.number == n && file.placement == p;
      };
      if (std::none_of(next_.added_value_files.begin(), next_.added_value_files.end(), named))
        EC_TRY(set_aside(placement == Placement::Values ? values_directory() : metadata,
                         look_.files.value_path(number, placement)));
    }
    for (const std::uint64_t slot : look_.files.wal_slots) {
      if (!wal_is_empty_) break;
      EC_TRY(set_aside(metadata, wal_slot_path(metadata, slot)));
    }
    for (const std::string& directory :
         {metadata, tables_directory(metadata), wal_directory(metadata), values_directory()})
      EC_TRY(file_system_.sync_directory(directory));
    EC_TRY(file_system_.remove_file(repair_marker_path(metadata)));
    return file_system_.sync_directory(metadata);
  }

  FileSystem& file_system_;
  const Options& options_;
  Findings& findings_;
  const StoreLook look_;
  const ItemHints hints_;
  TableRebuild rebuild_;
  VersionEdit next_;         // the whole new state, from nothing
  ManifestSalvage salvage_;  // where there is no whole manifest
  NamespaceRebuild namespaces_;
  FileNumber next_number_ = 1;
  std::uint64_t manifest_number_ = 1;
  bool wal_is_empty_ = false;
  std::shared_ptr<Memtable> memtable_;
  DroppedIds dropped_;  // of which the log holds something
};

}  // namespace
}  // namespace edgecase::engine

namespace edgecase {

Result<CheckReport> repair_store(FileSystem& file_system, const Options& options,
                                 CheckObserver& observer) {
  engine::Findings findings(observer);
  EC_ASSIGN_OR_RETURN(engine::StoreLook look,
                      engine::look_at_store(file_system, options, findings));
  if (findings.report().problems == 0) return findings.report();
  EC_TRY(engine::StoreRepair(file_system, options, findings, std::move(look)).run());
  return findings.report();
}

}  // namespace edgecase
