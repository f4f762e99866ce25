#include "check/log_salvage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/write_batch_reader.h"
#include "check/manifest_look.h"
#include "core/wal_recovery.h"
#include "edgecase/options.h"
#include "file/file_names.h"

namespace edgecase::engine {
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
