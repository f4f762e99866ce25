#include "check/store_files.h"

#include <algorithm>
#include <optional>

#include "core/identity.h"
#include "file/file_names.h"
#include "log/log_reader.h"
#include "metadata/umeta_format.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// Empty when the directory is not there.
Result<std::vector<DirectoryEntry>> list(FileSystem& file_system, const std::string& directory) {
  auto entries = file_system.list_directory(directory);
  if (entries.status().code() == StatusCode::NotFound) return std::vector<DirectoryEntry>();
  return entries;
}

class Finder {
 public:
  Finder(FileSystem& file_system, const Options& options, Findings& findings)
      : file_system_(file_system), options_(options), findings_(findings) {
    files_.metadata_directory = options.metadata_directory;
    files_.values_directory = options.values_directory;
  }

  Result<StoreFiles> find() {
    EC_TRY(list_files());
    EC_TRY(read_identities());
    EC_TRY(lock());
    EC_ASSIGN_OR_RETURN(
        files_.key_ring,
        KeyRing::open_if_encrypted(file_system_, options_, files_.store_id, system_random()));
    note_key_ring();
    std::sort(files_.manifests.begin(), files_.manifests.end());
    files_.repair_begun =
        file_system_.file_size(repair_marker_path(files_.metadata_directory)).ok();
    return std::move(files_);
  }

 private:
  Status list_files() {
    const std::string& metadata = files_.metadata_directory;
    const std::string tables = tables_directory(metadata);
    for (const std::string& directory :
         {metadata, tables, wal_directory(metadata), files_.values_directory}) {
      EC_ASSIGN_OR_RETURN(const auto entries, list(file_system_, directory));
      for (const DirectoryEntry& entry : entries) {
        const auto parsed = parse_file_name(entry.name);
        if (!parsed || entry.is_directory) continue;
        if (directory == files_.values_directory) {
          values_in_use_ = true;
          if (parsed->type == FileType::ValueTable)
            files_.values.emplace(parsed->number, Placement::Values);
          continue;
        }
        metadata_in_use_ = true;
        note_metadata_file(*parsed);
      }
    }
    return ok();
  }

  void note_metadata_file(const ParsedFileName& file) {
    switch (file.type) {
      case FileType::Current: files_.has_current = true; break;
      case FileType::Manifest: files_.manifests.push_back(file.number); break;
      case FileType::MetadataTable: files_.tables.insert(file.number); break;
      case FileType::ValueTable: files_.values[file.number] = Placement::Metadata; break;
      case FileType::WalSlot: files_.wal_slots.insert(file.number); break;
      default: break;
    }
  }

  bool has_values_on_their_drive() const {
    return std::any_of(files_.values.begin(), files_.values.end(),
                       [](const auto& each) { return each.second == Placement::Values; });
  }

  // A damaged identity is a finding and counts as missing.
  Result<std::optional<Identity>> identity_of(const std::string& directory, bool in_use) {
    auto identity = read_identity(file_system_, directory);
    if (identity.status().code() == StatusCode::Corruption) {
      findings_.problem(identity.status().message());
      return std::optional<Identity>();
    }
    if (identity.ok() && *identity) {
      const Status damage = identity_damage(file_system_, directory, **identity);
      if (!damage.ok()) findings_.problem(damage.message() + "; its other copy is whole");
    }
    if (identity.ok() && !*identity && in_use)
      findings_.problem(identity_path(directory) + ": missing, but the directory holds a store");
    return identity;
  }

  Status read_identities() {
    const std::string& metadata_directory = files_.metadata_directory;
    const std::string& values_directory = files_.values_directory;
    EC_ASSIGN_OR_RETURN(const auto metadata, identity_of(metadata_directory, metadata_in_use_));
    EC_ASSIGN_OR_RETURN(const auto values, identity_of(values_directory, values_in_use_));
    files_.has_metadata_identity = metadata.has_value();
    files_.has_values_identity = values.has_value();
    if (!metadata_in_use_ && !values_in_use_)
      return not_found(metadata_directory + ": there is no store");
    if (metadata && metadata->role != DirectoryRole::Metadata)
      return unavailable(metadata_directory +
                         ": this is the values directory of a store, not its metadata directory; "
                         "are the two swapped?");
    // An empty mount point is no damage.
    if (metadata && !values && !has_values_on_their_drive())
      return check_values_identity(file_system_, values_directory, metadata->store_id);
    if (metadata && values)
      EC_TRY(check_values_identity(file_system_, values_directory, metadata->store_id));
    if (values && values->role != DirectoryRole::Values)
      return unavailable(values_directory +
                         ": this is the metadata directory of a store, not its values directory");
    if (!metadata_in_use_)
      findings_.problem(metadata_directory + ": holds no store; the values in " + values_directory +
                        " belong to one");
    if (metadata || values) {
      files_.store_id = metadata ? metadata->store_id : values->store_id;
      return ok();
    }
    return guess_store_id();
  }

  // Both identities are gone: what a table says of itself.
  Status guess_store_id() {
    for (const auto& [number, placement] : files_.values) {
      const auto file = file_system_.open_file(files_.value_path(number, placement));
      if (!file.ok()) continue;
      const auto head = read_table_head(**file, kValueTableFormat);
      if (!head.ok()) continue;
      files_.store_id = head->identity.store_id;
      return ok();
    }
    for (const FileNumber number : files_.tables) {
      const auto file = file_system_.open_file(files_.table_path(number));
      if (!file.ok()) continue;
      const auto head = read_table_head(**file, kUMetaFormat);
      if (!head.ok()) continue;
      files_.store_id = head->identity.store_id;
      return ok();
    }
    for (const std::uint64_t number : files_.manifests) {
      auto file = file_system_.open_file(manifest_path(files_.metadata_directory, number));
      if (!file.ok()) continue;
      const auto log = LogReader::open(std::move(file).value());
      if (!log.ok()) continue;
      files_.store_id = (*log)->identity().store_id;
      return ok();
    }
    return unavailable(files_.metadata_directory + " and " + files_.values_directory +
                       ": no file says which store it belongs to");
  }

  void note_key_ring() {
    if (files_.key_ring == nullptr) return;
    const std::string path = files_.key_ring->path();
    const auto look = look_at_key_ring(file_system_, path);
    if (look.ok() && look->whole_copies < 2)
      findings_.note(path + ": one of its two copies is damaged; the next start writes it anew");
  }

  Status lock() {
    for (const auto& [directory, in_use] : {std::pair(&files_.metadata_directory, metadata_in_use_),
                                            std::pair(&files_.values_directory, values_in_use_)}) {
      if (!in_use) continue;
      auto taken = file_system_.lock_file(lock_path(*directory));
      if (taken.status().code() == StatusCode::Locked)
        return locked(*directory + ": another process has this store open; stop the daemon first");
      if (!taken.ok()) return taken.status();
      files_.locks.push_back(std::move(taken).value());
    }
    return ok();
  }

  FileSystem& file_system_;
  const Options& options_;
  Findings& findings_;
  StoreFiles files_;
  bool metadata_in_use_ = false;
  bool values_in_use_ = false;
};

}  // namespace

std::string StoreFiles::table_path(FileNumber number) const {
  return metadata_table_path(metadata_directory, number);
}

std::string StoreFiles::value_path(FileNumber number, Placement placement) const {
  return value_table_path(metadata_directory, values_directory, placement, number);
}

Result<StoreFiles> find_store_files(FileSystem& file_system, const Options& options,
                                    Findings& findings) {
  return Finder(file_system, options, findings).find();
}

}  // namespace edgecase::engine
