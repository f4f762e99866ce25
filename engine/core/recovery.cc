// From what is on the drives to a running store. Everything is read and checked first; only then is
// anything changed: a store that does not open is left as it was.
#include <algorithm>
#include <utility>

#include "base/write_batch_reader.h"
#include "core/compaction_door.h"
#include "core/engine_impl.h"
#include "file/file_names.h"
#include "value/value_table_reader.h"

namespace edgecase::engine {

Status EngineImpl::open() {
  EC_TRY(check_directories_differ());
  const std::string repair = repair_marker_path(options_.metadata_directory);
  if (file_system_.file_size(repair).ok())
    return corruption(repair + ": a repair was begun and not finished; run it again");
  EC_ASSIGN_OR_RETURN(const bool exists, store_exists());
  if (!exists) EC_TRY(create_store());
  return recover_store();
}

Status EngineImpl::recover_store() {
  RecoveryEvent event;
  const std::int64_t begin_ns = environment_.clock.boot_ns();
  // The identities first: a lock must not be left on a drive that is not ours.
  EC_TRY(check_identities());
  if (metadata_lock_ == nullptr)
    EC_TRY(lock_directory(options_.metadata_directory, metadata_lock_));
  if (values_lock_ == nullptr && values_away_.ok()) {
    const Status taken = lock_directory(options_.values_directory, values_lock_);
    // A drive that cannot be written to can be read all the same.
    if (!taken.ok() && (taken.code() == StatusCode::Locked || !options_.open_without_values))
      return taken;
    values_away_ = taken;
  }
  if (versions_ == nullptr) {
    EC_ASSIGN_OR_RETURN(
        keys_, KeyRing::open_if_encrypted(file_system_, options_, store_id_, environment_.random));
    EC_ASSIGN_OR_RETURN(versions_, VersionSet::recover(file_system_, options_.metadata_directory,
                                                       store_id_, keys_.get()));
  }
  const VersionState state = versions_->state();
  if (keys_ != nullptr) {
    sealer_.emplace(*keys_);
    for (const RangeDelete& each : state.erasures)
      keys_->retire(each.lower, each.upper, each.sequence);
  }
  EC_ASSIGN_OR_RETURN(std::vector<LostFile> lost,
                      find_lost_files(*state.version, Placement::Metadata).on(Drive::Metadata));
  if (values_away_.ok()) {
    EC_ASSIGN_OR_RETURN(const auto of_values,
                        find_lost_files(*state.version, Placement::Values).on(Drive::Values));
    lost.insert(lost.end(), of_values.begin(), of_values.end());
  }
  make_owners(state);
  for (const LostFile& each : lost) scrubber_->note(each.layer, each.number, each.problem);
  EC_TRY(recover_wal(event));
  leader_->prepare_slot();
  if (values_away_.ok()) {
    room_->fill_reserve();
    room_->look();
  } else {
    flushes_->await_values(values_away_);
  }
  compactor_->wake();
  scrubber_->start();
  event.tables = state.version->tables.size();
  event.elapsed_ns = environment_.clock.boot_ns() - begin_ns;
  environment_.listener.on_recovered(event);
  return ok();
}

void EngineImpl::make_owners(const VersionState& state) {
  budget_.emplace(options_, *versions_);
  TableCache::Limits limits;
  limits.cache_bytes = budget_->cache_bytes();
  limits.open_files = file_system_.open_files_max();
  limits.map_files = options_.map_tables;
  tables_ = std::make_unique<TableCache>(file_system_, options_.metadata_directory,
                                         options_.values_directory, store_id_, limits, keys_.get());
  if (keys_ != nullptr) tables_->set_aside(keys_->memory_bytes());
  for (const auto& [number, file] : state.version->value_files) tables_->add_value_file(file);
  wal_ = std::make_unique<Wal>(
      file_system_, environment_.random,
      Wal::Settings{options_.metadata_directory, store_id_, options_.wal_segment_bytes,
                    options_.wal_limit_bytes, keys_.get()});
  expiry_clock_ = std::make_unique<ExpiryClock>(environment_.clock, state.expiry_mark_ns);
  auto active = std::make_shared<Memtable>(budget_->memtable_bytes());
  views_ = std::make_unique<Views>(*versions_, active);
  store_.emplace(Store{options_, environment_, store_id_, tasks_, health_, *budget_, keys_.get(),
                       *versions_, *wal_, *tables_, remover_, *expiry_clock_, *views_,
                       revocations_});
  values_ = std::make_unique<ValuesDrive>(file_system_, options_.values_directory, store_id_,
                                          values_away_.ok(), [this] { return admit_values(); });
  room_ = std::make_unique<DriveRoom>(*store_, [this] { return values_->check(); });
  make_scrubber();
  make_compactor();
  pacer_ = std::make_unique<Pacer>(*store_, *compactor_);
  flushes_ = std::make_unique<FlushLane>(*store_, *values_, *room_, *compactor_, *pacer_);
  leader_ = std::make_unique<CommitLeader>(*store_, *room_, *compactor_, *pacer_, *flushes_,
                                           std::move(active));
  retention_ =
      std::make_unique<Retention>(*store_, *flushes_, *leader_, *compactor_, state.held_ns);
  erasure_ = std::make_unique<ErasureRound>(*store_, *room_, *compactor_, *flushes_, *leader_);
  reads_ = std::make_unique<ReadPath>(*store_, *compactor_);
}

void EngineImpl::make_scrubber() {
  scrubber_ = std::make_unique<Scrubber>(
      ScrubberContext{options_, environment_, store_id_, *versions_, *tables_, keys_.get(),
                      [this](std::int64_t delay_ns, std::function<void()> task) {
                        tasks_.schedule_after(Lane::Compaction, delay_ns, std::move(task));
                      },
                      [this] { return values_->check(); }, [this] { return versions_->scrub(); },
                      [this] { return leader_->user_bytes(); }});
}

void EngineImpl::make_compactor() {
  drop_rule_ = std::make_unique<EngineDropRule>(*versions_, *expiry_clock_, options_.expiry);
  compaction_door_ = std::make_unique<CompactionDoor>(*this);
  compactor_ = std::make_unique<Compactor>(
      CompactorContext{options_, environment_, store_id_, *versions_, *tables_, *compaction_door_,
                       remover_, drop_rule_.get(), keys_.get()});
}

// As the manifest: what was read may be in the page cache only. On a full drive what is there has
// to do, but not for a new master key: the old one would be thrown away.
Status EngineImpl::renew_keys() {
  if (keys_ == nullptr) return ok();
  const Status renewed =
      keys_->write_again([this](NamespaceId id) { return versions_->has_namespace(id); });
  if (renewed.code() != StatusCode::OutOfSpace) return renewed;
  if (!keys_->is_outdated()) return ok();
  return renewed.with_context(
      "", ": no room to change the master key; keep the one before until there is");
}

// Of files on one of the drives, where metadata tables lie on that of the metadata: those that are
// not there, or not whole. Nothing but their keys is lost; reads of these say so.
auto EngineImpl::find_lost_files(const Version& version, Placement placement) const
    -> Result<std::vector<LostFile>> {
  std::vector<LostFile> lost;
  const auto check = [&](FileLayer layer, FileNumber number, const std::string& path,
                         std::uint64_t size_bytes) -> Status {
    const auto found = file_system_.file_size(path);
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
                 metadata_table_path(options_.metadata_directory, table->number),
                 table->size_bytes));
  }
  for (const auto& [number, file] : version.value_files) {
    if (file.placement != placement) continue;
    EC_TRY(check(FileLayer::Values, number,
                 value_table_path(options_.metadata_directory, options_.values_directory,
                                  file.placement, number),
                 file.size_bytes));
  }
  return lost;
}

Status EngineImpl::recover_wal(RecoveryEvent& event) {
  const VersionState state = versions_->state();
  const std::string& directory = options_.metadata_directory;
  EC_ASSIGN_OR_RETURN(WalContents contents, find_wal(file_system_, directory, store_id_,
                                                     state.oldest_wal_segment, keys_.get()));
  // First all of it is checked: applying may flush, and so change the store.
  EC_TRY(read_wal(
      file_system_, directory, state.flushed_sequence, contents,
      [this](SequenceNumber, ByteView payload) { return check_entries(payload); }, keys_.get()));
  event.wal_segments = contents.chain.size();
  event.wal_bytes = contents.bytes;
  event.torn_tail = contents.torn_tail;
  event.dropped_segments = contents.dropped.size();

  EC_TRY(renew_keys());
  EC_TRY(versions_->make_durable());
  event.manifest_copies_differed = versions_->copies_differed();
  if (const Status damage = versions_->damage(); !damage.ok())
    environment_.listener.on_corruption(
        damage.as(StatusCode::Corruption)
            .with_context("", "; nothing is lost, both are written anew"));
  heal_identities();
  // All is clean. Before anything is replayed: a flush makes files that are not named yet.
  remove_orphans();
  EC_TRY(forget_dropped(file_system_, directory, store_id_, contents));
  EC_TRY(wal_->adopt(contents.chain, contents.free, contents.highest_number));
  EC_TRY(read_wal(
      file_system_, directory, state.flushed_sequence, contents,
      [&](SequenceNumber first, ByteView payload) -> Result<std::uint64_t> {
        // A batch is flushed whole or not at all: memtables change between batches.
        if (first <= state.flushed_sequence) return check_entries(payload);
        ++event.wal_records;
        return leader_->replay(first, payload, values_away_.ok());
      },
      keys_.get()));
  leader_->end_replay();
  for (const WalDamage& damage : contents.damage) note_log_damage(damage);
  return ok();
}

void EngineImpl::heal_identities() {
  const auto heal = [&](const std::string& directory, DirectoryRole role) {
    const Status damage = heal_identity(file_system_, directory, {store_id_, role});
    if (!damage.ok())
      environment_.listener.on_corruption(
          corruption(damage.message() + "; nothing is lost, it is written anew"));
  };
  heal(options_.metadata_directory, DirectoryRole::Metadata);
  if (values_away_.ok()) heal(options_.values_directory, DirectoryRole::Values);
}

// What was in it nobody can tell; the flush that takes the rest of the log takes it from the drive.
void EngineImpl::note_log_damage(const WalDamage& damage) {
  DamagedFile found;
  found.path = damage.path;
  found.layer = FileLayer::Log;
  found.problem = "at byte " + std::to_string(damage.offset) + ": " + damage.problem;
  found.found_ns = environment_.clock.wall_ns();
  found.lost_entries = 1;
  environment_.listener.on_corruption(
      corruption(found.path + " " + found.problem + "; batches that were acknowledged are lost"));
  log_damage_.push_back(std::move(found));
}

Result<std::uint64_t> EngineImpl::check_entries(ByteView payload) const {
  WriteBatchReader entries(payload);
  std::optional<NamespaceId> known;
  std::uint64_t count = 0;
  while (const auto entry = entries.next()) {
    ++count;
    if (entry->namespace_id == known) continue;
    // What was written to a namespace before it was dropped is no damage.
    if (!versions_->was_given_out(entry->namespace_id))
      return corruption("there is no namespace " + std::to_string(entry->namespace_id));
    known = entry->namespace_id;
  }
  EC_TRY(entries.status());
  return count;
}

void EngineImpl::remove_orphans() {
  const std::shared_ptr<const Version> version = versions_->current();
  if (values_away_.ok()) remove_orphans_in(options_.values_directory, *version);
  remove_orphans_in(tables_directory(options_.metadata_directory), *version);
  remove_orphans_in(options_.metadata_directory, *version);
}

// What resists stays: it does no harm, and the next open tries again.
void EngineImpl::remove_orphans_in(const std::string& directory, const Version& version) {
  const auto entries = file_system_.list_directory(directory);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const auto parsed = parse_file_name(entry.name);
    if (!parsed || entry.is_directory) continue;
    const std::string path = join_path(directory, entry.name);
    // What was erased may be in it, and the process that knew of it is gone.
    const auto remove_later = [&](NamespaceId of) {
      remover_.remove_overwritten(path, of, FileRemover::Urgency::Whenever);
    };
    switch (parsed->type) {
      case FileType::IdentityNew:
      case FileType::CurrentNew: static_cast<void>(remover_.remove_now(path).ok()); break;
      case FileType::Manifest:
        // Its name may be needed again. CURRENT may name a newer one, whose start failed at its
        // last step; the next start takes that along.
        if (parsed->number < versions_->manifest_number())
          static_cast<void>(remover_.remove_now(path).ok());
        break;
      case FileType::MetadataTable:
        if (std::none_of(version.tables.begin(), version.tables.end(),
                         [&](const auto& table) { return table->number == parsed->number; }))
          remove_later(FileRemover::kAnyNamespace);
        break;
      case FileType::ValueTable:
        if (!version.value_files.contains(parsed->number)) remove_later(owner_of(path));
        break;
      default: break;
    }
  }
}

// The namespace that a value file is of, as its head says.
NamespaceId EngineImpl::owner_of(const std::string& path) const {
  auto file = file_system_.open_file(path);
  if (!file.ok()) return FileRemover::kAnyNamespace;
  const auto values = ValueTableReader::open_any(std::move(file).value(), keys_.get());
  return values.ok() ? (*values)->head().namespace_id : FileRemover::kAnyNamespace;
}

}  // namespace edgecase::engine
