#include "core/log_recovery.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/write_batch_reader.h"
#include "core/wal_recovery.h"
#include "file/file_names.h"

namespace edgecase::engine {
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
