// Before recovery: are these the two directories of one store, or two that may become one?
//
// A store exists once CURRENT does, the last thing that creation writes. Before that, a creation
// that was cut short is taken up again, if all that it left is there and nothing else.
#include "core/engine_impl.h"
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

}  // namespace

Status EngineImpl::check_directories_differ() const {
  const auto metadata = file_system_.identity(options_.metadata_directory);
  const auto values = file_system_.identity(options_.values_directory);
  if (!metadata.ok() || !values.ok() || !(*metadata == *values)) return ok();
  return invalid_argument(options_.metadata_directory + " and " + options_.values_directory +
                          " are the same directory: a store needs two");
}

Result<bool> EngineImpl::store_exists() {
  EC_ASSIGN_OR_RETURN(const auto entries,
                      list_if_present(file_system_, options_.metadata_directory));
  return entries && (holds(*entries, FileType::Current) || holds(*entries, FileType::CurrentCopy));
}

Status EngineImpl::lock_directory(const std::string& directory, std::unique_ptr<FileLock>& lock) {
  auto taken = file_system_.lock_file(lock_path(directory));
  if (taken.status().code() == StatusCode::Locked)
    return Status::of_file(StatusCode::Locked, "", directory,
                           ": another process has this store open");
  if (!taken.ok()) return taken.status();
  lock = std::move(taken).value();
  return ok();
}

Status EngineImpl::check_identities() {
  EC_ASSIGN_OR_RETURN(const auto metadata,
                      read_identity(file_system_, options_.metadata_directory));
  if (!metadata)
    return corruption_in(identity_path(options_.metadata_directory),
                         ": missing, but the directory holds a store");
  if (metadata->role != DirectoryRole::Metadata) return wrong_role(options_.metadata_directory);
  store_id_ = metadata->store_id;
  const Status values = check_values_identity(file_system_, options_.values_directory, store_id_);
  // Another store's drive is a mistake to be told of; one that is not there may come yet.
  const auto found = read_identity(file_system_, options_.values_directory);
  const bool is_away = found.ok() ? !*found : found.status().code() == StatusCode::IoError;
  if (!options_.open_without_values || !is_away) return values;
  values_away_ = values;
  return ok();
}

// What ValuesDrive does once.
Status EngineImpl::admit_values() {
  if (values_lock_ == nullptr)
    EC_TRY(lock_directory(options_.values_directory, values_lock_).on(Drive::Values));
  const std::shared_ptr<const Version> version = versions_->current();
  EC_ASSIGN_OR_RETURN(const auto lost,
                      find_lost_files(*version, Placement::Values).on(Drive::Values));
  for (const LostFile& each : lost) scrubber_->note(each.layer, each.number, each.problem);
  remove_orphans_in(options_.values_directory, *version);
  room_->fill_reserve();
  return ok();
}

// Answers the id that an unfinished creation chose, if there was one.
Status EngineImpl::check_fit_for_creation(std::optional<StoreId>& begun) {
  const std::string& metadata_directory = options_.metadata_directory;
  const std::string& values_directory = options_.values_directory;
  EC_ASSIGN_OR_RETURN(const auto metadata, read_identity(file_system_, metadata_directory));
  EC_ASSIGN_OR_RETURN(const auto values,
                      read_identity(file_system_, values_directory).on(Drive::Values));
  if (metadata && metadata->role != DirectoryRole::Metadata) return wrong_role(metadata_directory);
  for (const std::string& directory : {tables_directory(metadata_directory),
                                       wal_directory(metadata_directory), values_directory}) {
    EC_ASSIGN_OR_RETURN(const auto entries, list_if_present(file_system_, directory));
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
      return check_values_identity(file_system_, values_directory, metadata->store_id);
  }
  if (metadata) begun = metadata->store_id;
  return ok();
}

Status EngineImpl::create_store() {
  std::optional<StoreId> begun;
  EC_TRY(check_fit_for_creation(begun));
  if (!options_.create_if_missing)
    return unavailable(options_.metadata_directory + ": there is no store");
  EC_TRY(create_durably(file_system_, options_.metadata_directory));
  EC_TRY(create_durably(file_system_, options_.values_directory).on(Drive::Values));
  EC_TRY(check_directories_differ());
  EC_TRY(lock_directory(options_.metadata_directory, metadata_lock_));
  EC_TRY(lock_directory(options_.values_directory, values_lock_).on(Drive::Values));
  // Another process may have made a store since the first look.
  EC_ASSIGN_OR_RETURN(const bool exists, store_exists());
  if (exists) return locked(options_.metadata_directory + ": another process makes a store here");
  store_id_ = begun ? *begun : make_store_id(environment_.random);
  EC_TRY(write_identity(file_system_, options_.metadata_directory,
                        {store_id_, DirectoryRole::Metadata}));
  EC_TRY(write_identity(file_system_, options_.values_directory, {store_id_, DirectoryRole::Values})
             .on(Drive::Values));
  EC_TRY(file_system_.create_directory(tables_directory(options_.metadata_directory)));
  EC_TRY(file_system_.create_directory(wal_directory(options_.metadata_directory)));
  EC_TRY(file_system_.sync_directory(options_.metadata_directory));
  EC_TRY(create_keys());
  EC_ASSIGN_OR_RETURN(versions_, VersionSet::create(file_system_, options_.metadata_directory,
                                                    store_id_, keys_.get()));
  return ok();
}

// Before the manifest, which is the first that needs them.
Status EngineImpl::create_keys() {
  if (!options_.encryption) return ok();
  EC_ASSIGN_OR_RETURN(keys_, KeyRing::create(file_system_, options_.metadata_directory, store_id_,
                                             *options_.encryption, environment_.random));
  return ok();
}

}  // namespace edgecase::engine
