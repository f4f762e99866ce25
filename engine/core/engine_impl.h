// The engine behind its face: puts the owners of an open store together and passes each call on to
// the one it is for. Which they are, what flows between them and which locks they hold:
// core/DESIGN.md.
//
// Threads: any, as edgecase/engine.h says; the owners have locks of their own. The destructor lets
// no background task begin any more. One method for each of the face is more than a class of the
// house has, and one member for each owner.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compaction/compactor.h"
#include "core/commit_leader.h"
#include "core/compaction_door.h"
#include "core/drives.h"
#include "core/flush_lane.h"
#include "core/pacer.h"
#include "core/reader.h"
#include "core/retention.h"
#include "core/store.h"
#include "core/store_opening.h"
#include "crypto/file_cipher.h"
#include "edgecase/engine.h"
#include "scrub/scrubber.h"

namespace edgecase::engine {

class EngineImpl final : public Engine {
 public:
  // `parts` are what open_store() found. Does no I/O.
  EngineImpl(const Options& options, const Environment& environment, StoreParts parts);
  ~EngineImpl() override;

  // Reads the log, and starts the lanes; before any other call. `begin_ns`: when opening began, by
  // the boot clock. Errors: as Engine::open(); then only destruction is allowed.
  Status start(std::int64_t begin_ns);

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
  CommitPosition committed() const override { return views_.visible(); }
  Status set_feed_bounds(std::vector<CommitPosition> bounds) override;
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
  Status admit_values();

  const Options options_;
  const Environment environment_;
  StoreParts parts_;
  std::vector<DamagedFile> log_damage_;  // found by recovery

  // What the owners share (store.h).
  BackgroundTasks tasks_;
  Health health_;
  MemoryBudget budget_;
  Revocations revocations_;
  FeedBounds feed_bounds_;
  Wal wal_;
  TableCache tables_;
  ExpiryClock expiry_clock_;
  Views views_;
  FileRemover remover_;
  const Store store_;
  std::optional<KeyRingSealer> sealer_;  // none: not encrypted

  // The owners. Some know others that come later, and call them once all are there.
  ValuesDrive values_;
  DriveRoom room_;
  Scrubber scrubber_;
  EngineDropRule drop_rule_;
  CompactionDoor compaction_door_;
  Compactor compactor_;
  Pacer pacer_;
  FlushLane flushes_;
  CommitLeader leader_;
  Retention retention_;
  ErasureRound erasure_;
  ReadPath reads_;
};

}  // namespace edgecase::engine
