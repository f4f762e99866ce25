// An Engine in memory, for tests of what stands on one: a std::map a namespace, one mutex,
// snapshots by copy on write. Thread-safe. Snapshots and iterators must not outlive it.
//
//   ModelEngine engine;
//   engine.fail_next_write(out_of_space("drive is full"));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "edgecase/engine.h"

namespace edgecase::test {

class ModelEngine final : public Engine {
 public:
  struct Value {
    Bytes bytes;
    CommitPosition position = 0;
  };
  using Map = std::map<Bytes, Value, std::less<>>;
  // Namespace id to its contents. Contents are never changed while anyone else holds them.
  using Contents = std::map<NamespaceId, std::shared_ptr<Map>>;

  ModelEngine();
  ~ModelEngine() override;

  // The next write() changes nothing and returns `status`.
  void fail_next_write(Status status);
  // Every write does, until called with Ok.
  void fail_writes(Status status);
  // `count` writes succeed, and every one after them fails, until fail_writes(ok()).
  void fail_writes_after(std::uint64_t count, Status status);
  // Every write waits, as for a drive that hangs, until release_writes().
  void hold_writes();
  void release_writes();
  // Every erase() returns `status`, until called with Ok.
  void fail_erasures(Status status);
  // Within each erase(), as what it takes. Before other threads come.
  void set_erasing(std::function<void()> erasing) { erasing_ = std::move(erasing); }
  // What damaged_files() says. Before other threads come.
  void set_damaged(std::vector<DamagedFile> files) { damaged_ = std::move(files); }
  // The next get(), scan() or range_stats() returns `status`.
  void fail_next_read(Status status);

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
  // Bytes of live keys and values.
  Result<std::uint64_t> approximate_size(NamespaceId namespace_id, const KeyRange& range) override {
    EC_ASSIGN_OR_RETURN(const RangeStats stats, range_stats(namespace_id, range, {}));
    return stats.stored_bytes;
  }
  std::shared_ptr<const Snapshot> snapshot() override;
  CommitPosition committed() const override { return stats().last_sequence; }
  // Entries keep their positions here.
  Status set_feed_bounds(std::vector<CommitPosition> bounds) override {
    return bounds.size() > kFeedBoundsMax ? invalid_argument("too many feed bounds") : ok();
  }
  std::weak_ptr<const void> held_snapshots() override;
  std::uint64_t revocations() const override;
  bool is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                  std::uint64_t since) const override;
  std::vector<DamagedFile> damaged_files() const override { return damaged_; }
  Status flush() override { return ok(); }
  Status compact(const std::vector<NamespaceId>& /*ids*/, const KeyRange& /*range*/) override {
    return ok();
  }
  Result<ErasureReport> erase() override;
  Result<std::vector<FileShare>> locate(NamespaceId /*namespace_id*/,
                                        const KeyRange& /*range*/) override {
    return std::vector<FileShare>{};
  }
  Status set_retention(std::vector<RetentionRule> rules) override;
  std::vector<RetentionRule> retention_rules() const override;
  void each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                           const RetentionTaker& take) const override;
  std::int64_t expiry_now_ns() override;
  // By keys and values, exactly.
  Eviction plan_eviction(const EvictionRequest& request) const override;
  Status evict(std::span<const NamespaceId> ids, std::int64_t before_ns) override;
  std::int64_t evicted_before_ns(NamespaceId id) const override;
  // The time by which entries expire; 0 at first.
  void set_expiry_now_ns(std::int64_t now_ns);
  // What stats() says that files take.
  void set_live_bytes(std::uint64_t metadata_bytes, std::uint64_t value_bytes);
  // batches, entries_written, user_bytes_written, wal_syncs (one a Sync write), gets,
  // last_sequence.
  // True: and what snapshots there are keep some.
  void set_short_of_memory(bool is_short);
  bool is_short_of_memory() const override;
  void set_aside(std::uint64_t before, std::uint64_t now) override;
  // As of an encrypted store, though nothing here is; null: of one in clear.
  void set_sealer(Sealer* sealer) { sealer_ = sealer; }
  Sealer* sealer() override { return sealer_; }
  Stats stats() const override;

  // Snapshots and iterators alive.
  std::size_t open_views() const;

 private:
  struct State;
  Status next_failure();
  Status apply(const WriteBatch& batch);
  Result<std::shared_ptr<Map>> contents(NamespaceId namespace_id, const ReadOptions& options);
  std::shared_ptr<State> state_;  // views drop what they hold under its mutex
  std::vector<DamagedFile> damaged_;
  Sealer* sealer_ = nullptr;
  std::function<void()> erasing_;
};

}  // namespace edgecase::test
