// The engine behind its face: puts the owners of an open store together and passes each call on to
// the one it is for. Which they are, what flows between them and which locks they hold:
// core/DESIGN.md.
//
// Threads: any, as edgecase/engine.h says. Members are made by open() and not changed afterwards;
// the owners have locks of their own. The destructor lets no background task begin any more.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compaction/compactor.h"
#include "core/commit_leader.h"
#include "core/drive_room.h"
#include "core/drop.h"
#include "core/erasure_round.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/read_path.h"
#include "core/retention.h"
#include "core/store.h"
#include "core/values_drive.h"
#include "core/wal_recovery.h"
#include "crypto/key_ring_sealer.h"
#include "edgecase/engine.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

class EngineImpl final : public Engine {
 public:
  EngineImpl(const Options& options, const Environment& environment);
  ~EngineImpl() override;

  Status open();

  Result<NamespaceId> create_namespace(std::string_view name,
                                       const NamespaceOptions& options) override;
  Status drop_namespace(NamespaceId id) override;
  Result<NamespaceInfo> find_namespace(std::string_view name) const override;
  std::vector<NamespaceInfo> namespaces() const override;
  Status write(const WriteBatch& batch, Durability durability) override;
  void set_commit_companion(CommitCompanion* companion) override;
  Result<Bytes> get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) override;
  Result<std::unique_ptr<Iterator>> scan(NamespaceId namespace_id, const KeyRange& range,
                                         const ReadOptions& options) override;
  Result<RangeStats> range_stats(NamespaceId namespace_id, const KeyRange& range,
                                 const ReadOptions& options) override;
  Status summarize(NamespaceId namespace_id, const KeyRange& range, std::size_t prefix_bytes,
                   const ReadOptions& options, const PrefixTaker& take) override;
  Result<std::uint64_t> approximate_size(NamespaceId namespace_id, const KeyRange& range) override;
  Result<std::vector<FileShare>> locate(NamespaceId namespace_id, const KeyRange& range) override;
  std::shared_ptr<const Snapshot> snapshot() override;
  std::weak_ptr<const void> held_snapshots() override;
  std::uint64_t revocations() const override { return revocations_.count(); }
  bool is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                  std::uint64_t since) const override;
  Status flush() override;
  Status compact(const std::vector<NamespaceId>& ids, const KeyRange& range) override;
  Result<ErasureReport> erase() override;
  Status set_retention(std::vector<RetentionRule> rules) override;
  std::vector<RetentionRule> retention_rules() const override;
  void each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                           const RetentionTaker& take) const override;
  std::int64_t expiry_now_ns() override;
  Eviction plan_eviction(const EvictionRequest& request) const override;
  Status evict(std::span<const NamespaceId> ids, std::int64_t before_ns) override;
  std::int64_t evicted_before_ns(NamespaceId id) const override;
  std::vector<DamagedFile> damaged_files() const override;
  bool is_short_of_memory() const override;
  void set_aside(std::uint64_t before, std::uint64_t now) override;
  Sealer* sealer() override { return sealer_ ? &*sealer_ : nullptr; }
  Stats stats() const override;

 private:
  class CompactionDoor;

  // creation.cc: from directories to a store that may be opened.
  Status check_directories_differ() const;
  Result<bool> store_exists();
  Status lock_directory(const std::string& directory, std::unique_ptr<FileLock>& lock);
  Status check_identities();
  Status admit_values();
  Status create_store();
  Status check_fit_for_creation(std::optional<StoreId>& begun);
  Status create_keys();

  // recovery.cc
  Status recover_store();
  void make_owners(const VersionState& state);
  void make_compactor();
  void make_scrubber();
  Status renew_keys();
  void note_log_damage(const WalDamage& damage);
  void heal_identities();
  struct LostFile {
    FileLayer layer = FileLayer::Values;
    FileNumber number = 0;
    std::string problem;
  };
  Result<std::vector<LostFile>> find_lost_files(const Version& version, Placement placement) const;
  Status recover_wal(RecoveryEvent& event);
  // Answers how many there are. Corruption says where in the batch.
  Result<std::uint64_t> check_entries(ByteView payload) const;
  void remove_orphans();
  void remove_orphans_in(const std::string& directory, const Version& version);
  NamespaceId owner_of(const std::string& path) const;

  const Options options_;
  const Environment environment_;
  FileSystem& file_system_;
  BackgroundTasks tasks_;
  Health health_;
  FileRemover remover_;
  Revocations revocations_;

  // What is open.
  StoreId store_id_{};
  std::unique_ptr<FileLock> metadata_lock_;
  std::unique_ptr<FileLock> values_lock_;
  std::vector<DamagedFile> log_damage_;  // found by recovery
  Status values_away_;                   // why the store was opened without its values drive
  std::unique_ptr<KeyRing> keys_;        // null: not encrypted
  std::optional<KeyRingSealer> sealer_;
  std::unique_ptr<VersionSet> versions_;
  std::unique_ptr<Wal> wal_;
  std::unique_ptr<TableCache> tables_;
  std::unique_ptr<ExpiryClock> expiry_clock_;
  std::optional<MemoryBudget> budget_;
  std::unique_ptr<Views> views_;
  std::optional<Store> store_;

  // Who works on it. Each knows those before it.
  std::unique_ptr<ValuesDrive> values_;
  std::unique_ptr<DriveRoom> room_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<EngineDropRule> drop_rule_;
  std::unique_ptr<CompactionHost> compaction_door_;
  std::unique_ptr<Compactor> compactor_;
  std::unique_ptr<Pacer> pacer_;
  std::unique_ptr<FlushLane> flushes_;
  std::unique_ptr<CommitLeader> leader_;
  std::unique_ptr<Retention> retention_;
  std::unique_ptr<ErasureRound> erasure_;
  std::unique_ptr<ReadPath> reads_;
};

}  // namespace edgecase::engine
