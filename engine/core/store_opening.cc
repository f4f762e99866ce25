#include "core/store_opening.h"

#include <optional>
#include <utility>

#include "file/file_names.h"

namespace edgecase::engine {
namespace {

std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status create_durably(FileSystem& file_system, const std::string& directory) {
  EC_TRY(file_system.create_directory(directory));
  return file_system.sync_directory(parent_of(directory));
}

// nullopt when the directory is not there.
Result<std::optional<std::vector<DirectoryEntry>>> list_if_present(FileSystem& file_system,
                                                                   const std::string& directory) {
  auto entries = file_system.list_directory(directory);
  if (entries.status().code() == StatusCode::NotFound)
    return std::optional<std::vector<DirectoryEntry>>();
  if (!entries.ok()) return entries.status();
  return std::optional(std::move(entries).value());
}

bool holds(const std::vector<DirectoryEntry>& entries, FileType type) {
  for (const DirectoryEntry& entry : entries) {
    const auto parsed = parse_file_name(entry.name);
    if (parsed && parsed->type == type) return true;
  }
  return false;
}

Status wrong_role(const std::string& directory) {
  return unavailable(directory +
                     ": this is the values directory of a store, not its metadata directory; are "
                     "the two swapped?");
}

Status check_directories_differ(FileSystem& file_system, const Options& options) {
  const auto metadata = file_system.identity(options.metadata_directory);
  const auto values = file_system.identity(options.values_directory);
  if (!metadata.ok() || !values.ok() || !(*metadata == *values)) return ok();
  return invalid_argument(options.metadata_directory + " and " + options.values_directory +
                          " are the same directory: a store needs two");
}

Result<bool> store_exists(FileSystem& file_system, const Options& options) {
  EC_ASSIGN_OR_RETURN(const auto entries, list_if_present(file_system, options.metadata_directory));
  return entries && (holds(*entries, FileType::Current) || holds(*entries, FileType::CurrentCopy));
}

// Fills in the id that an unfinished creation chose, if there was one.
Status check_fit_for_creation(FileSystem& file_system, const Options& options,
                              std::optional<StoreId>& begun) {
  const std::string& metadata_directory = options.metadata_directory;
  const std::string& values_directory = options.values_directory;
  EC_ASSIGN_OR_RETURN(const auto metadata, read_identity(file_system, metadata_directory));
  EC_ASSIGN_OR_RETURN(const auto values,
                      read_identity(file_system, values_directory).on(Drive::Values));
  if (metadata && metadata->role != DirectoryRole::Metadata) return wrong_role(metadata_directory);
  for (const std::string& directory : {tables_directory(metadata_directory),
                                       wal_directory(metadata_directory), values_directory}) {
    EC_ASSIGN_OR_RETURN(const auto entries, list_if_present(file_system, directory));
    if (!entries) continue;
    for (const FileType type : {FileType::MetadataTable, FileType::ValueTable, FileType::WalSlot}) {
      if (!holds(*entries, type)) continue;
      if (directory == values_directory)
        return unavailable(values_directory +
                           ": holds the values of a store whose metadata is not in " +
                           metadata_directory);
      return corruption_in(current_path(metadata_directory),
                           ": missing, but there are files of a store in " + directory);
    }
  }
  if (values) {
    if (!metadata)
      return unavailable(values_directory + ": belongs to store " + to_text(values->store_id) +
                         ", whose metadata is not in " + metadata_directory);
    if (values->role != DirectoryRole::Values || values->store_id != metadata->store_id)
      return check_values_identity(file_system, values_directory, metadata->store_id);
  }
  if (metadata) begun = metadata->store_id;
  return ok();
}

Status lock_both(FileSystem& file_system, const Options& options, StoreParts& parts) {
  EC_ASSIGN_OR_RETURN(parts.metadata_lock, lock_directory(file_system, options.metadata_directory));
  EC_ASSIGN_OR_RETURN(parts.values_lock,
                      lock_directory(file_system, options.values_directory).on(Drive::Values));
  return ok();
}

Status create_store(const Options& options, const Environment& environment, StoreParts& parts) {
  FileSystem& file_system = environment.file_system;
  const std::string& metadata = options.metadata_directory;
  const std::string& values = options.values_directory;
  std::optional<StoreId> begun;
  EC_TRY(check_fit_for_creation(file_system, options, begun));
  if (!options.create_if_missing) return unavailable(metadata + ": there is no store");
  EC_TRY(create_durably(file_system, metadata));
  EC_TRY(create_durably(file_system, values).on(Drive::Values));
  EC_TRY(check_directories_differ(file_system, options));
  EC_TRY(lock_both(file_system, options, parts));
  // Another process may have made a store since the first look.
  EC_ASSIGN_OR_RETURN(const bool exists, store_exists(file_system, options));
  if (exists) return locked(metadata + ": another process makes a store here");
  parts.id = begun ? *begun : make_store_id(environment.random);
  EC_TRY(write_identity(file_system, metadata, {parts.id, DirectoryRole::Metadata}));
  EC_TRY(write_identity(file_system, values, {parts.id, DirectoryRole::Values}).on(Drive::Values));
  EC_TRY(file_system.create_directory(tables_directory(metadata)));
  EC_TRY(file_system.create_directory(wal_directory(metadata)));
  EC_TRY(file_system.sync_directory(metadata));
  // Keys before the manifest, which is the first that needs them.
  if (options.encryption) {
    EC_ASSIGN_OR_RETURN(parts.keys, KeyRing::create(file_system, metadata, parts.id,
                                                    *options.encryption, environment.random));
  }
  EC_ASSIGN_OR_RETURN(parts.versions,
                      VersionSet::create(file_system, metadata, parts.id, parts.keys.get()));
  return ok();
}

Status check_identities(FileSystem& file_system, const Options& options, StoreParts& parts) {
  EC_ASSIGN_OR_RETURN(const auto metadata, read_identity(file_system, options.metadata_directory));
  if (!metadata)
    return corruption_in(identity_path(options.metadata_directory),
                         ": missing, but the directory holds a store");
  if (metadata->role != DirectoryRole::Metadata) return wrong_role(options.metadata_directory);
  parts.id = metadata->store_id;
  const Status values = check_values_identity(file_system, options.values_directory, parts.id);
  // Another store's drive is a mistake to be told of; one that is not there may come yet.
  const auto found = read_identity(file_system, options.values_directory);
  const bool is_away = found.ok() ? !*found : found.status().code() == StatusCode::IoError;
  if (!options.open_without_values || !is_away) return values;
  parts.values_away = values;
  return ok();
}

// The identities first: a lock must not be left on a drive that is not ours.
Status identify_and_lock(FileSystem& file_system, const Options& options, StoreParts& parts) {
  EC_TRY(check_identities(file_system, options, parts));
  if (parts.metadata_lock == nullptr) {
    EC_ASSIGN_OR_RETURN(parts.metadata_lock,
                        lock_directory(file_system, options.metadata_directory));
  }
  if (parts.values_lock != nullptr || !parts.values_away.ok()) return ok();
  auto taken = lock_directory(file_system, options.values_directory);
  if (taken.ok()) {
    parts.values_lock = std::move(taken).value();
    return ok();
  }
  // A drive that cannot be written to can be read all the same.
  if (taken.status().code() == StatusCode::Locked || !options.open_without_values)
    return taken.status();
  parts.values_away = taken.status();
  return ok();
}

}  // namespace

Result<std::unique_ptr<FileLock>> lock_directory(FileSystem& file_system,
                                                 const std::string& directory) {
  auto taken = file_system.lock_file(lock_path(directory));
  if (taken.status().code() == StatusCode::Locked)
    return Status::of_file(StatusCode::Locked, "", directory,
                           ": another process has this store open");
  return taken;
}

Result<StoreParts> open_store(const Options& options, const Environment& environment) {
  FileSystem& file_system = environment.file_system;
  const std::string& metadata = options.metadata_directory;
  StoreParts parts;
  EC_TRY(check_directories_differ(file_system, options));
  const std::string repair = repair_marker_path(metadata);
  if (file_system.file_size(repair).ok())
    return corruption(repair + ": a repair was begun and not finished; run it again");
  EC_ASSIGN_OR_RETURN(const bool exists, store_exists(file_system, options));
  if (!exists) EC_TRY(create_store(options, environment, parts));
  EC_TRY(identify_and_lock(file_system, options, parts));
  if (exists) {
    EC_ASSIGN_OR_RETURN(
        parts.keys, KeyRing::open_if_encrypted(file_system, options, parts.id, environment.random));
    EC_ASSIGN_OR_RETURN(parts.versions,
                        VersionSet::recover(file_system, metadata, parts.id, parts.keys.get()));
  }
  const VersionState state = parts.versions->state();
  if (parts.keys != nullptr) {
    for (const RangeDelete& each : state.erasures)
      parts.keys->retire(each.lower, each.upper, each.sequence);
  }
  EC_ASSIGN_OR_RETURN(parts.lost,
                      find_lost_files(file_system, options, *state.version, Placement::Metadata)
                          .on(Drive::Metadata));
  if (parts.values_away.ok()) {
    EC_ASSIGN_OR_RETURN(
        const auto of_values,
        find_lost_files(file_system, options, *state.version, Placement::Values).on(Drive::Values));
    parts.lost.insert(parts.lost.end(), of_values.begin(), of_values.end());
  }
  return parts;
}

}  // namespace edgecase::engine
