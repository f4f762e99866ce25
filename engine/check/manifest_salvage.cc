#include "check/manifest_salvage.h"

#include <algorithm>

#include "check/manifest_look.h"
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

}  // namespace edgecase::engine
