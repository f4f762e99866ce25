#include "core/named_files.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "file/file_names.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {
namespace {

// The namespace that a value file is of, as its head says.
NamespaceId owner_of(FileSystem& file_system, const std::string& path, KeyRing* keys) {
  auto file = file_system.open_file(path);
  if (!file.ok()) return FileRemover::kAnyNamespace;
  const auto values = ValueTableReader::open_any(std::move(file).value(), keys);
  return values.ok() ? (*values)->head().namespace_id : FileRemover::kAnyNamespace;
}

}  // namespace

Result<std::vector<LostFile>> find_lost_files(FileSystem& file_system, const Options& options,
                                              const Version& version, Placement placement) {
  std::vector<LostFile> lost;
  const auto check = [&](FileLayer layer, FileNumber number, const std::string& path,
                         std::uint64_t size_bytes) -> Status {
    const auto found = file_system.file_size(path);
    if (found.status().code() == StatusCode::NotFound) {
      lost.push_back({layer, number, "missing, but the manifest names it"});
    } else if (!found.ok()) {
      return found.status();
    } else if (*found != size_bytes) {
      lost.push_back({layer, number,
                      "has " + std::to_string(*found) + " bytes, the manifest says " +
                          std::to_string(size_bytes)});
    }
    return ok();
  };
  for (const auto& table : version.tables) {
    if (placement != Placement::Metadata) break;
    EC_TRY(check(FileLayer::Metadata, table->number,
                 metadata_table_path(options.metadata_directory, table->number),
                 table->size_bytes));
  }
  for (const auto& [number, file] : version.value_files) {
    if (file.placement != placement) continue;
    EC_TRY(check(FileLayer::Values, number,
                 value_table_path(options.metadata_directory, options.values_directory,
                                  file.placement, number),
                 file.size_bytes));
  }
  return lost;
}

void remove_orphans(FileSystem& file_system, const std::string& directory,
                    const VersionSet& versions, KeyRing* keys, FileRemover& remover) {
  const std::shared_ptr<const Version> version = versions.current();
  const auto entries = file_system.list_directory(directory);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const auto parsed = parse_file_name(entry.name);
    if (!parsed || entry.is_directory) continue;
    const std::string path = join_path(directory, entry.name);
    // What was erased may be in it, and the process that knew of it is gone.
    const auto remove_later = [&](NamespaceId of) {
      remover.remove_overwritten(path, of, FileRemover::Urgency::Whenever);
    };
    switch (parsed->type) {
      case FileType::IdentityNew:
      case FileType::CurrentNew: static_cast<void>(remover.remove_now(path).ok()); break;
      case FileType::Manifest:
        // Its name may be needed again. CURRENT may name a newer one, whose start failed at its
        // last step; the next start takes that along.
        if (parsed->number < versions.manifest_number())
          static_cast<void>(remover.remove_now(path).ok());
        break;
      case FileType::MetadataTable:
        if (std::none_of(version->tables.begin(), version->tables.end(),
                         [&](const auto& table) { return table->number == parsed->number; }))
          remove_later(FileRemover::kAnyNamespace);
        break;
      case FileType::ValueTable:
        if (!version->value_files.contains(parsed->number))
          remove_later(owner_of(file_system, path, keys));
        break;
      default: break;
    }
  }
}

}  // namespace edgecase::engine
