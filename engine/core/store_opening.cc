#include "core/store_opening.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/entry.h"
#include "core/wal.h"
#include "edgecase/options.h"
#include "file/file_names.h"
#include "value/value_table.h"

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

namespace {

// Answers how many there are. Corruption says where in the batch.
Result<std::uint64_t> check_entries(const VersionSet& versions, ByteView payload) {
  WriteBatchReader entries(payload);
  std::optional<NamespaceId> known;
  std::uint64_t count = 0;
  while (const auto entry = entries.next()) {
    ++count;
    if (entry->namespace_id == known) continue;
    // What was written to a namespace before it was dropped is no damage.
    if (!versions.was_given_out(entry->namespace_id))
      return corruption("there is no namespace " + std::to_string(entry->namespace_id));
    known = entry->namespace_id;
  }
  EC_TRY(entries.status());
  return count;
}

// As the manifest: what was read may be in the page cache only. On a full drive what is there has
// to do, but not for a new master key: the old one would be thrown away.
Status renew_keys(const Store& store) {
  if (store.keys == nullptr) return ok();
  const Status renewed =
      store.keys->write_again([&](NamespaceId id) { return store.versions.has_namespace(id); });
  if (renewed.code() != StatusCode::OutOfSpace) return renewed;
  if (!store.keys->is_outdated()) return ok();
  return renewed.with_context(
      "", ": no room to change the master key; keep the one before until there is");
}

void heal_identities(const Store& store, bool has_values) {
  const auto heal = [&](const std::string& directory, DirectoryRole role) {
    const Status damage = heal_identity(store.environment.file_system, directory, {store.id, role});
    if (!damage.ok())
      store.environment.listener.on_corruption(
          corruption(damage.message() + "; nothing is lost, it is written anew"));
  };
  heal(store.options.metadata_directory, DirectoryRole::Metadata);
  if (has_values) heal(store.options.values_directory, DirectoryRole::Values);
}

// What was in it nobody can tell; the flush that takes the rest of the log takes it from the drive.
DamagedFile told(const Environment& environment, const WalDamage& damage) {
  DamagedFile found;
  found.path = damage.path;
  found.layer = FileLayer::Log;
  found.problem = damage.words();
  found.found_ns = environment.clock.wall_ns();
  found.lost_entries = damage.last > damage.first ? damage.last - damage.first + 1 : 1;
  environment.listener.on_corruption(
      corruption(found.path + " " + found.problem + "; batches that were acknowledged are lost"));
  return found;
}

// The first changes to the drives: all that was read is whole.
Status make_clean(const Store& store, bool has_values, RecoveryEvent& event) {
  EC_TRY(renew_keys(store));
  EC_TRY(store.versions.make_durable());
  event.manifest_copies_differed = store.versions.copies_differed();
  if (const Status damage = store.versions.damage(); !damage.ok())
    store.environment.listener.on_corruption(
        damage.as(StatusCode::Corruption)
            .with_context("", "; nothing is lost, both are written anew"));
  heal_identities(store, has_values);
  // Before anything is replayed: a flush makes files that are not named yet.
  const Options& options = store.options;
  const auto clean = [&](const std::string& directory) {
    remove_orphans(store.environment.file_system, directory, store.versions, store.keys,
                   store.remover);
  };
  if (has_values) clean(options.values_directory);
  clean(tables_directory(options.metadata_directory));
  clean(options.metadata_directory);
  return ok();
}

}  // namespace

Status recover_log(const Store& store, const StoreParts& parts, CommitLeader& leader,
                   RecoveryEvent& event, std::vector<DamagedFile>& damage) {
  const VersionState state = store.versions.state();
  const bool has_values = parts.values_away.ok();
  FileSystem& file_system = store.environment.file_system;
  const std::string& directory = store.options.metadata_directory;
  EC_ASSIGN_OR_RETURN(WalContents contents, find_wal(file_system, directory, store.id,
                                                     state.oldest_wal_segment, store.keys));
  // First all of it is checked: applying may flush, and so change the store.
  const auto read = [&](const ApplyBatch& apply) {
    return read_wal(file_system, directory, state.flushed_sequence, contents, apply, store.keys);
  };
  EC_TRY(read(
      [&](SequenceNumber, ByteView payload) { return check_entries(store.versions, payload); }));
  note_known(directory, state.flushed_sequence, state.erasures, contents);
  event.wal_segments = contents.chain.size();
  event.wal_bytes = contents.bytes;
  event.torn_tail = contents.torn_tail;
  event.dropped_segments = contents.dropped.size();

  EC_TRY(make_clean(store, has_values, event));
  EC_TRY(forget_dropped(file_system, directory, store.id, contents));
  EC_TRY(store.wal.adopt(contents.chain, contents.free, contents.highest_number));
  // What the log has lost of erasures the manifest knows, each at its place.
  std::vector<RangeDelete> erasures = state.erasures;
  std::sort(erasures.begin(), erasures.end(),
            [](const RangeDelete& a, const RangeDelete& b) { return a.sequence < b.sequence; });
  auto erased = erasures.cbegin();
  const auto erase_before = [&](SequenceNumber first) {
    for (; erased != erasures.cend() && erased->sequence < first; ++erased)
      leader.replay_erasure(*erased);
  };
  EC_TRY(read([&](SequenceNumber first, ByteView payload) -> Result<std::uint64_t> {
    // A batch is flushed whole or not at all: memtables change between batches.
    if (first <= state.flushed_sequence) return check_entries(store.versions, payload);
    erase_before(first);
    ++event.wal_records;
    return leader.replay(first, payload, has_values);
  }));
  erase_before(UINT64_MAX);
  leader.end_replay();
  for (const WalDamage& each : contents.damage) damage.push_back(told(store.environment, each));
  return ok();
}

}  // namespace edgecase::engine

namespace edgecase {

Status validate_options(const Options& options) {
  if (options.metadata_directory.empty()) return invalid_argument("metadata_directory is empty");
  if (options.values_directory.empty()) return invalid_argument("values_directory is empty");
  if (options.metadata_directory == options.values_directory)
    return invalid_argument("metadata_directory and values_directory are the same");
  if (options.memory_limit_bytes < kMemoryLimitMinBytes)
    return invalid_argument("memory_limit_bytes is below 8 MiB");
  if (options.wal_segment_bytes < (8u << 10))
    return invalid_argument("wal_segment_bytes is below 8 KiB");
  if (options.wal_limit_bytes < 2 * options.wal_segment_bytes)
    return invalid_argument("wal_limit_bytes is below two segments");
  return ok();
}

}  // namespace edgecase
