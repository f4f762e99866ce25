// The engine behind its face: owns everything, opens and closes. Its work lies by subject in
// write_path.cc, flush.cc, read_path.cc, recovery.cc and creation.cc.
//
// Threads. Callers commit in their own thread, one *leader* at a time (commit_queue.h). "Leader's"
// members are touched by it alone, without a lock; the queue hands them over.
// The flush lane writes memtables out; the compaction lane makes WAL slots ready. mutex_ guards the
// rest and is never held across I/O, a callback or a call of the executor. Order of locks:
// VersionSet's and Wal's own come after it and are never held when it is taken.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/write_batch_reader.h"
#include "compaction/compactor.h"
#include "core/background_gate.h"
#include "core/commit_queue.h"
#include "core/drop.h"
#include "core/fair_pace.h"
#include "core/free_space.h"
#include "core/garbage_limit.h"
#include "core/identity.h"
#include "core/read_view.h"
#include "core/reader.h"
#include "core/revocations.h"
#include "core/snapshot_generations.h"
#include "core/wal.h"
#include "core/wal_recovery.h"
#include "crypto/key_ring.h"
#include "crypto/key_ring_sealer.h"
#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "expiry/expiry_clock.h"
#include "expiry/expiry_view.h"
#include "expiry/leap_guard.h"
#include "file/file_remover.h"
#include "file/space_reserve.h"
#include "scrub/scrubber.h"
#include "table/table_cache.h"
#include "table/table_writer.h"
#include "version/file_number_block.h"
#include "version/version_set.h"

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
  Result<Bytes> get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) override;
  Result<std::unique_ptr<Iterator>> scan(NamespaceId namespace_id, const KeyRange& range,
                                         const ReadOptions& options) override;
  Result<RangeStats> range_stats(NamespaceId namespace_id, const KeyRange& range,
                                 const ReadOptions& options) override;
  Status summarize(NamespaceId namespace_id, const KeyRange& range, std::size_t prefix_bytes,
                   const ReadOptions& options, const PrefixTaker& take) override;
  Result<std::uint64_t> approximate_size(NamespaceId namespace_id, const KeyRange& range) override;
  std::shared_ptr<const Snapshot> snapshot() override;
  std::weak_ptr<const void> held_snapshots() override;
  std::uint64_t revocations() const override { return revocations_.count(); }
  bool is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                  std::uint64_t since) const override;
  Status flush() override;
  Status compact(const std::vector<NamespaceId>& ids, const KeyRange& range) override;
  void set_commit_companion(CommitCompanion* companion) override;
  Result<ErasureReport> erase() override;
  Result<std::vector<FileShare>> locate(NamespaceId namespace_id, const KeyRange& range) override;
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
  enum class Layer : unsigned char { Metadata, Values };
  class CompactionDoor;

  // Of memory_limit_bytes: three memtables at most, the cache; the rest is for the WAL's window and
  // what a flush sorts and gathers.
  static constexpr std::uint64_t kMemtableShare = 8;
  static constexpr std::uint64_t kCacheShare = 5;
  // Of it snapshots and iterators may keep memtables before is_short_of_memory().
  static constexpr std::uint64_t kKeptShare = 8;
  // So many ranges that are hidden for good are not made disjoint before somebody asks.
  static constexpr std::size_t kErasedLogMin = 512;
  // How far the durable mark of expiry time may lie behind.
  static constexpr std::int64_t kExpiryMarkNs = 60'000'000'000;

  // Of memory_limit_bytes, what is not set aside.
  std::uint64_t memory_bytes() const;
  std::uint64_t memtable_bytes() const;
  std::uint64_t kept_memtable_bytes() const EC_EXCLUDES(mutex_);

  // creation.cc: from directories to a store that may be opened.
  Status check_directories_differ() const;
  Result<bool> store_exists();
  Status lock_directory(const std::string& directory, std::unique_ptr<FileLock>& lock);
  Status check_identities();
  Status check_values();
  Status admit_values();
  void await_values();
  Status create_store();
  Status check_fit_for_creation(std::optional<StoreId>& begun);
  Status create_keys();

  // recovery.cc
  Status recover_store();
  void schedule_on_compaction(std::int64_t delay_ns, std::function<void()> task);
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
  Result<std::uint64_t> replay_batch(SequenceNumber first, ByteView payload);
  Status check_namespace(NamespaceId id) const;
  // Answers how many there are. Corruption says where in the batch.
  Result<std::uint64_t> check_entries(ByteView payload) const;
  void remove_orphans();
  void remove_orphans_in(const std::string& directory, const Version& version);
  NamespaceId owner_of(const std::string& path) const;

  // write_path.cc
  Status check_batch(const WriteBatch& batch) const;
  Status check_range_deletes(const WriteBatch& batch) const;
  // Waits for its turn to lead, and does `work` then.
  template <typename Work>
  void lead(Work work) EC_EXCLUDES(mutex_) {
    CommitQueue::Writer writer;
    const bool leads = commits_.wait_for_turn(writer, group_);
    EC_CHECK(leads);  // nobody does for it what it wants
    work();
    commits_.finish(group_, 0);
  }
  void commit_group();
  bool ask_companion();
  std::size_t commit_run(std::size_t begin);
  Status append_run(std::size_t begin, std::size_t end, bool wants_sync);
  Status log_run(std::size_t begin, std::size_t end, bool wants_sync);
  void schedule_rest(std::int64_t delay_ns);
  Status sync_log();
  std::optional<Memtable::Draft> draft_of(const WriteBatch& batch);
  void apply_draft(const Memtable::Draft& draft);
  void apply_batch(SequenceNumber first, WriteBatchReader& entries);
  void apply_range(const BatchEntry& entry, SequenceNumber sequence);
  GroupCodec codec_of(NamespaceId id);
  Status prepare_for(const WriteBatch& batch, bool may_use_reserve);
  Status make_room_for(const WriteBatch& batch);
  void note_prepared(const Status& prepared);
  Status make_memtable_room();
  bool is_large(std::size_t batch_bytes) const;
  Status empty_memtables();
  Status make_wal_room(std::uint64_t payload_bytes);
  Result<bool> release_flushed_wal();
  Status start_segment(std::uint64_t payload_bytes);
  Status heal_wal(std::uint64_t payload_bytes);
  Status make_slot_free();
  void note_wal_failure(const Status& cause);
  void schedule_slot();
  void schedule_heal(std::int64_t delay_ns);
  void try_heal();

  // flush.cc
  Status rotate_memtable();
  bool try_flush_again() EC_REQUIRES(mutex_);
  Status wait_for_flush(std::uint64_t flushes_before) EC_REQUIRES(mutex_);
  void schedule_flush();
  void run_flush();
  Status write_memtable(const std::shared_ptr<Memtable>& memtable);
  void cut_values(TableWriterContext& context);
  Status commit_tables(const TableOutput& output, const Memtable& memtable);
  void note_flush_failure(const Status& cause);
  void note_flush_success();
  void remove_tables(const TableOutput& output);
  static Layer layer_of(const Status& failure) {
    return failure.drive() == Drive::Values ? Layer::Values : Layer::Metadata;
  }
  static std::string_view name_of(Layer layer) {
    return layer == Layer::Values ? "values" : "metadata";
  }
  bool values_layer_is_used() const;
  void look_for_space();
  Status check_free_space(const WriteBatch& batch) const;
  bool is_of_metadata_alone(const WriteBatch& batch) const;
  void publish_version();
  double compaction_debt();
  void set_pace();
  void price_group();
  void keep_pace(std::int64_t not_before_ns);
  double pause_for_memory() const;
  void count_waiting() EC_REQUIRES(mutex_);

  // retention.cc
  ExpiryView expiry_view(NamespaceId id) const;
  // By the time by which bytes go.
  ExpiryView expiry_of_bytes() const;
  // The leader's: by what rules the log's records expire; when one of a Series namespace does.
  const ExpiryView& log_expiry();
  std::int64_t log_expiry_of(NamespaceId id, ByteView key);
  // The compaction lane's. What has expired leaves the log: memtables are flushed, slots that are
  // free overwritten. False: it is to be asked again.
  Result<bool> clear_expired_log();
  std::uint64_t evicted_waiting_bytes(const Version& version) const;
  // False: to be asked again, what was there when the clock leapt is on its way into value files.
  bool is_leap_in_files(std::int64_t lag_ns);
  // Whether what a leap of the clock has let expire may go.
  void judge_leap();
  // Makes durable what time expiry has reached, unless that is known to within `slack_ns`.
  Status note_expiry_mark(std::int64_t slack_ns);

  // erasure.cc
  void hide_for_good(const RangeDelete& erased);
  std::shared_ptr<const RangeDeleteLayers> erased() const EC_REQUIRES(mutex_) {
    return erased_log_.layers();
  }
  void forget_erased(SequenceNumber through);
  std::uint64_t pending_erasures() const;
  std::uint64_t overwritten_bytes() const;
  Status turn_log(SequenceNumber through);
  void fill_reserve();
  void fill_reserve_later();
  bool release_reserve();
  bool lacks_space(const Status& failure) const;
  Status use_reserve(Status failure, const std::function<Status()>& attempt);
  Status overwrite_free_log(SequenceNumber through);
  Status destroy_keys(SequenceNumber through);
  Status leave_pending(const Status& failure, SequenceNumber through);
  Status flush_log(SequenceNumber through);
  Status try_turn_log(SequenceNumber through);
  bool memtables_hold_erased(SequenceNumber through) const;
  Result<bool> finish_erasure(SequenceNumber through);
  Status wait_for_erasure(SequenceNumber through, std::uint64_t failures_before);

  // read_path.cc
  Status check_readable(NamespaceId id) const;
  VisibleView visible_view() const;
  VisibleView view_for(const ReadOptions& options) const;
  Status renew_hidden(NamespaceId id, VisibleView& at, ExpiryView& expiry) const;
  Status explain_read_failure(Status failure) const;

  const Options options_;
  const Environment environment_;
  FileSystem& file_system_;
  std::atomic<std::uint64_t> set_aside_{0};
  FileRemover remover_;
  SpaceReserve reserve_;
  std::atomic<bool> reserve_fill_scheduled_{false};
  FreeSpace free_space_;
  std::atomic<bool> space_look_scheduled_{false};
  StoreId store_id_{};
  std::unique_ptr<FileLock> metadata_lock_;
  std::unique_ptr<FileLock> values_lock_;
  // Whether the values drive is known to be ours and whole: at the start, or when it comes later.
  std::atomic<std::int64_t> last_sync_ns_{0};  // of the log
  std::atomic<bool> rest_is_scheduled_{false};
  std::vector<DamagedFile> log_damage_;  // found by recovery, not changed afterwards
  std::atomic<bool> values_admitted_{false};
  Mutex admission_;                // held while it is looked through
  Status values_away_;             // why the store was opened without it
  std::unique_ptr<KeyRing> keys_;  // null: not encrypted
  std::optional<KeyRingSealer> sealer_;
  std::unique_ptr<VersionSet> versions_;
  std::unique_ptr<Wal> wal_;
  std::unique_ptr<TableCache> tables_;
  std::unique_ptr<ExpiryClock> expiry_clock_;
  LeapGuard leaps_;
  // Of the leap that was looked at last: by how much, and what had been written by then.
  std::int64_t seen_lag_ns_ EC_GUARDED_BY(mutex_) = 0;
  SequenceNumber leap_sequence_ EC_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<EngineDropRule> drop_rule_;
  std::unique_ptr<CompactionHost> compaction_door_;
  std::unique_ptr<Compactor> compactor_;
  std::unique_ptr<Scrubber> scrubber_;
  std::shared_ptr<BackgroundGate> gate_ = std::make_shared<BackgroundGate>();

  // The leader's.
  std::vector<CommitQueue::Writer*> group_;
  WriteBatch companion_batch_;
  CommitQueue::Writer companion_writer_;
  std::vector<std::optional<GroupCodec>> codecs_;  // by namespace, as far as asked for
  std::shared_ptr<Memtable> active_;               // the one in view_
  ExpiryView log_expiry_;
  NamespaceId last_logged_id_ = 0;
  Bytes last_logged_part_;  // of a key without its time
  std::int64_t last_logged_retention_ns_ = kRetentionForever;
  std::uint64_t last_logged_floor_ = 0;  // what lies below has expired
  SequenceNumber last_sequence_ = 0;
  std::int64_t heal_not_before_ns_ = 0;  // boot time
  std::int64_t heal_delay_ns_ = 0;
  std::int64_t synced_ns_ = 0;  // for so long the log was synced for the group
  FairPace pace_;

  std::atomic<CommitCompanion*> companion_{nullptr};  // changed by who leads

  std::atomic<SequenceNumber> visible_{0};  // the leader's to change

  CommitQueue commits_;
  SnapshotGenerations generations_;
  Revocations revocations_;

  mutable Mutex mutex_;
  std::shared_ptr<const ReadView> view_ EC_GUARDED_BY(mutex_);
  GarbageLimit garbage_limit_ EC_GUARDED_BY(mutex_);
  CondVar pause_;          // nobody notifies it
  CondVar flush_changed_;  // a flush ended, well or not, or a merge
  // Snapshots that are held do not know of these.
  mutable RangeDeleteLog erased_log_ EC_GUARDED_BY(mutex_);
  std::size_t erased_log_min_ EC_GUARDED_BY(mutex_) = kErasedLogMin;
  std::atomic<bool> has_erased_{false};  // stored under mutex_
  // That were flushed; while a snapshot or an iterator holds one, what it shows is not gone.
  std::vector<std::weak_ptr<const Memtable>> retired_memtables_ EC_GUARDED_BY(mutex_);
  bool flush_scheduled_ EC_GUARDED_BY(mutex_) = false;
  bool retry_scheduled_ EC_GUARDED_BY(mutex_) = false;
  bool slot_scheduled_ EC_GUARDED_BY(mutex_) = false;
  std::uint64_t flushes_ EC_GUARDED_BY(mutex_) = 0;
  std::uint64_t failed_flushes_ EC_GUARDED_BY(mutex_) = 0;
  SequenceNumber flushed_sequence_ EC_GUARDED_BY(mutex_) = 0;
  std::int64_t flush_delay_ns_ EC_GUARDED_BY(mutex_) = 0;
  // While flushes fail: whether a writer has had one tried, and from when on one may.
  bool flush_asked_ EC_GUARDED_BY(mutex_) = false;
  std::int64_t flush_again_not_before_ns_ EC_GUARDED_BY(mutex_) = 0;
  Status flush_failure_ EC_GUARDED_BY(mutex_);
  Layer flush_failure_layer_ EC_GUARDED_BY(mutex_) = Layer::Values;
  std::int64_t flush_failed_since_ns_ EC_GUARDED_BY(mutex_) = 0;
  Status wal_failure_ EC_GUARDED_BY(mutex_);
  Status refused_ EC_GUARDED_BY(mutex_);
  std::atomic<bool> refuses_{false};  // whether that is an error; stored under mutex_
  // Until then the log is read and nobody turns or overwrites it.
  std::atomic<bool> recovered_{false};
  std::atomic<bool> wal_failing_{false};  // whether that is an error; stored under mutex_
  std::int64_t wal_failed_since_ns_ EC_GUARDED_BY(mutex_) = 0;

  // The flush lane's: files that an edit named which did not succeed for certain.
  std::vector<TableOutput> given_up_;
  FileNumberBlock file_numbers_;
  std::uint64_t flush_cuts_ = 0;  // the flush lane's
  std::atomic<double> pause_ns_per_byte_{0};
  std::atomic<std::size_t> waiting_memtables_{0};  // for a flush that is not failing
  std::atomic<Layer> compaction_failure_layer_{Layer::Values};

  // Added to by the leader alone.
  std::atomic<std::uint64_t> user_bytes_written_{0};
  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> entries_written_{0};
  std::atomic<std::uint64_t> commit_groups_{0};
  mutable std::atomic<std::uint64_t> gets_{0};
  HitCounters hits_;
  std::atomic<std::uint64_t> stall_ns_{0};
  std::atomic<std::uint64_t> log_overwritten_bytes_{0};
  std::atomic<std::uint64_t> destroyed_keys_{0};
  std::atomic<std::uint64_t> table_metadata_bytes_{0};
  std::atomic<std::uint64_t> table_value_bytes_{0};
};

}  // namespace edgecase::engine
