#include "core/engine_impl.h"

#include <algorithm>
#include <utility>

#include "core/store_opening.h"
#include "file/machine.h"

namespace edgecase {

Status Engine::summarize(NamespaceId, const KeyRange&, std::size_t, const ReadOptions&,
                         const PrefixTaker&) {
  return unsupported("this engine makes no summaries");
}

ThreadReads thread_reads() {
  return engine::counted_thread_reads();
}

Result<std::unique_ptr<Engine>> Engine::open(const Options& options,
                                             const Environment& environment) {
  EC_TRY(validate_options(options));
  const std::int64_t begin_ns = environment.clock.boot_ns();
  EC_ASSIGN_OR_RETURN(engine::StoreParts parts, engine::open_store(options, environment));
  auto opened = std::make_unique<engine::EngineImpl>(options, environment, std::move(parts));
  EC_TRY(opened->start(begin_ns));
  return std::unique_ptr<Engine>(std::move(opened));
}

}  // namespace edgecase

namespace edgecase::engine {

namespace {

TableCache::Limits table_limits(const MemoryBudget& budget, const Options& options,
                                FileSystem& file_system) {
  TableCache::Limits limits;
  limits.cache_bytes = budget.cache_bytes();
  limits.open_files = file_system.open_files_max();
  limits.map_files = options.map_tables;
  return limits;
}

}  // namespace

EngineImpl::EngineImpl(const Options& options, const Environment& environment, StoreParts parts)
    : options_(options),
      environment_(environment),
      parts_(std::move(parts)),
      tasks_(environment.executor),
      health_(environment.clock, environment.listener),
      budget_(options_, *parts_.versions),
      feed_bounds_(options_.feeds),
      wal_(environment.file_system, environment.random,
           {options_.metadata_directory, parts_.id, options_.wal_segment_bytes,
            options_.wal_limit_bytes, parts_.keys.get()}),
      tables_(environment.file_system, options_.metadata_directory, options_.values_directory,
              parts_.id, table_limits(budget_, options_, environment.file_system),
              parts_.keys.get()),
      expiry_clock_(environment.clock, parts_.versions->state().expiry_mark_ns),
      views_(*parts_.versions, std::make_shared<Memtable>(budget_.memtable_bytes())),
      remover_(environment.file_system,
               [this] {
                 return options_.removal == Removal::Overwrite || views_.has_erased() ||
                        parts_.versions->has_erasures();
               }),
      store_{options_, environment_,      parts_.id,        tasks_,       health_,
             budget_,  parts_.keys.get(), *parts_.versions, wal_,         tables_,
             remover_, expiry_clock_,     views_,           revocations_, feed_bounds_},
      values_(environment.file_system, options_.values_directory, parts_.id,
              parts_.values_away.ok(), [this] { return admit_values(); }),
      room_(store_, values_),
      scrubber_({options_, environment_, store_.id, store_.versions, tables_, store_.keys,
                 [this](std::int64_t delay_ns, std::function<void()> task) {
                   tasks_.schedule_after(Lane::Compaction, delay_ns, std::move(task));
                 },
                 [this](Placement placement) -> Status {
                   EC_TRY(check_metadata_identity(environment_.file_system,
                                                  options_.metadata_directory, store_.id));
                   if (placement == Placement::Metadata) return ok();
                   // Asked while the drive is admitted, too.
                   return check_values_identity(environment_.file_system, options_.values_directory,
                                                store_.id);
                 },
                 [this] { return store_.versions.scrub(); },
                 [this] { return leader_.user_bytes(); }}),
      drop_rule_(store_.versions, expiry_clock_, options_.expiry),
      compaction_door_(
          store_, {scrubber_, values_, room_, pacer_, flushes_, leader_, retention_, erasure_}),
      compactor_({options_, environment_, store_.id, store_.versions, tables_, compaction_door_,
                  remover_, &drop_rule_, store_.keys}),
      pacer_(store_, compactor_),
      flushes_(store_, values_, room_, compactor_, pacer_),
      leader_(store_, room_, compactor_, pacer_, flushes_, views_.now().view->active),
      retention_(store_, flushes_, leader_, compactor_, store_.versions.state().held_ns),
      erasure_(store_, room_, compactor_, flushes_, leader_),
      reads_(store_, compactor_, scrubber_) {
  if (options_.encryption) static_cast<void>(lock_in_memory(&options_, sizeof options_));
  if (store_.keys == nullptr) return;
  sealer_.emplace(*store_.keys);
  tables_.set_aside(store_.keys->memory_bytes());
}

EngineImpl::~EngineImpl() {
  tasks_.close();
  // A store that did not open is left as it was.
  if (!leader_.is_replayed()) return;
  // Nothing acknowledged depends on it, but what was written without Sync outlives a power cut too.
  const RoleScope leads(leading);  // nobody writes any more
  if (wal_.sync().ok()) wal_.rest();
  static_cast<void>(retention_.note_last_mark().ok());
}

Status EngineImpl::start(std::int64_t begin_ns) {
  const std::shared_ptr<const Version> version = store_.versions.current();
  for (const auto& [number, file] : version->value_files) tables_.add_value_file(file);
  for (const LostFile& each : parts_.lost) scrubber_.note(each.layer, each.number, each.problem);
  RecoveryEvent event;
  event.tables = version->tables.size();
  EC_TRY(recover_log(store_, parts_, leader_, event, log_damage_));
  leader_.prepare_slot();
  if (values_.is_admitted()) {
    room_.fill_reserve();
    room_.look();
  } else {
    flushes_.await_values(parts_.values_away);
  }
  compactor_.wake();
  scrubber_.start();
  event.elapsed_ns = environment_.clock.boot_ns() - begin_ns;
  environment_.listener.on_recovered(event);
  return ok();
}

// Admits a values drive that was away when the store was opened, before anything is written to it.
Status EngineImpl::admit_values() {
  const std::string& directory = options_.values_directory;
  FileSystem& file_system = environment_.file_system;
  if (parts_.values_lock == nullptr) {
    EC_ASSIGN_OR_RETURN(parts_.values_lock,
                        lock_directory(file_system, directory).on(Drive::Values));
  }
  EC_ASSIGN_OR_RETURN(
      const auto lost,
      find_lost_files(file_system, options_, *store_.versions.current(), Placement::Values)
          .on(Drive::Values));
  for (const LostFile& each : lost) scrubber_.note(each.layer, each.number, each.problem);
  remove_orphans(file_system, directory, store_.versions, store_.keys, remover_);
  room_.fill_reserve();
  return ok();
}

Result<NamespaceId> EngineImpl::create_namespace(std::string_view name,
                                                 const NamespaceOptions& options) {
  return store_.versions.create_namespace(name, options);
}

Status EngineImpl::drop_namespace(NamespaceId id) {
  // From here on reads refuse the id. Entries that wait in memtables, and those of batches that are
  // on their way, are left out when their memtable is flushed; records in tables of level 0 go with
  // the next merge.
  const auto attempt = [&] { return store_.versions.drop_namespace(id); };
  Status dropped = attempt();
  if (!dropped.ok()) dropped = flushes_.with_reserve(std::move(dropped), attempt);
  EC_TRY(dropped);
  if (store_.keys != nullptr) store_.keys->drop_namespace(id);
  pacer_.look(flushes_.written_bytes());
  views_.publish();
  revocations_.note();
  compactor_.retry_at_once();
  return ok();
}

Result<NamespaceInfo> EngineImpl::find_namespace(std::string_view name) const {
  return store_.versions.find_namespace(name);
}

std::vector<NamespaceInfo> EngineImpl::namespaces() const {
  return store_.versions.state().namespaces;
}

Status EngineImpl::write(const WriteBatch& batch, Durability durability) {
  return leader_.write(batch, durability);
}

void EngineImpl::set_commit_companion(CommitCompanion* companion) {
  leader_.set_companion(companion);
}

Result<Bytes> EngineImpl::get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) {
  return reads_.get(namespace_id, key, options);
}

Result<std::unique_ptr<Iterator>> EngineImpl::scan(NamespaceId namespace_id, const KeyRange& range,
                                                   const ReadOptions& options) {
  return reads_.scan(namespace_id, range, options);
}

Result<RangeStats> EngineImpl::range_stats(NamespaceId namespace_id, const KeyRange& range,
                                           const ReadOptions& options) {
  return reads_.range_stats(namespace_id, range, options);
}

Status EngineImpl::summarize(NamespaceId namespace_id, const KeyRange& range,
                             std::size_t prefix_bytes, const ReadOptions& options,
                             const PrefixTaker& take) {
  return reads_.summarize(namespace_id, range, prefix_bytes, options, take);
}

Result<std::uint64_t> EngineImpl::approximate_size(NamespaceId namespace_id,
                                                   const KeyRange& range) {
  return reads_.approximate_size(namespace_id, range);
}

Result<std::vector<FileShare>> EngineImpl::locate(NamespaceId namespace_id, const KeyRange& range) {
  return reads_.locate(namespace_id, range);
}

std::shared_ptr<const Snapshot> EngineImpl::snapshot() {
  return reads_.snapshot();
}

std::weak_ptr<const void> EngineImpl::held_snapshots() {
  return reads_.held_snapshots();
}

Status EngineImpl::set_feed_bounds(std::vector<CommitPosition> bounds) {
  if (bounds.size() > kFeedBoundsMax)
    return invalid_argument(std::to_string(bounds.size()) + " feed bounds, " +
                            std::to_string(kFeedBoundsMax) + " at most");
  feed_bounds_.set(std::move(bounds));
  return ok();
}

bool EngineImpl::is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                            std::uint64_t since) const {
  return reads_.is_revoked(namespace_id, first, last, since);
}

Status EngineImpl::flush() {
  return leader_.flush();
}

Status EngineImpl::compact(const std::vector<NamespaceId>& ids, const KeyRange& range) {
  const auto attempt = [&]() -> Status {
    EC_TRY(flush());
    return compactor_.compact(ids, range.lower, range.upper);
  };
  Status done = attempt();
  if (done.ok() || erasure_.pending_ranges() == 0) return done;
  return flushes_.with_reserve(std::move(done), attempt);
}

Result<ErasureReport> EngineImpl::erase() {
  return erasure_.erase();
}

Status EngineImpl::set_retention(std::vector<RetentionRule> rules) {
  return retention_.set(std::move(rules));
}

std::vector<RetentionRule> EngineImpl::retention_rules() const {
  return retention_.rules();
}

void EngineImpl::each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                                     const RetentionTaker& take) const {
  retention_.each(id, prefixes, take);
}

std::int64_t EngineImpl::expiry_now_ns() {
  return expiry_clock_.now_ns();
}

Eviction EngineImpl::plan_eviction(const EvictionRequest& request) const {
  return retention_.plan_eviction(request);
}

Status EngineImpl::evict(std::span<const NamespaceId> ids, std::int64_t before_ns) {
  return retention_.evict(ids, before_ns);
}

std::int64_t EngineImpl::evicted_before_ns(NamespaceId id) const {
  return retention_.evicted_before_ns(id);
}

std::vector<DamagedFile> EngineImpl::damaged_files() const {
  std::vector<DamagedFile> found = log_damage_;
  for (DamagedFile& each : scrubber_.damaged()) found.push_back(std::move(each));
  return found;
}

bool EngineImpl::is_short_of_memory() const {
  return views_.kept_memtable_bytes() > budget_.kept_bytes_max();
}

void EngineImpl::set_aside(std::uint64_t before, std::uint64_t now) {
  budget_.set_aside(before, now);
  tables_.resize(budget_.cache_bytes());
}

Stats EngineImpl::stats() const {
  Stats stats;
  stats.compaction = compactor_.stats();
  stats.expiry = compactor_.expiry().stats();
  stats.scrub = scrubber_.stats();
  health_.add_to(stats);
  leader_.add_to(stats);
  stats.flushes = flushes_.flushes();
  views_.add_to(stats);
  reads_.add_to(stats.reads);
  const std::shared_ptr<const Version> version = store_.versions.current();
  retention_.add_to(stats, *version);
  for (const auto& table : version->tables) {
    ++stats.metadata.files;
    stats.metadata.live_bytes += table->size_bytes;
  }
  for (const auto& [number, file] : version->value_files) {
    const auto live = version->live_bytes.find(number);
    if (live != version->live_bytes.end())
      stats.compaction.garbage_bytes += file.size_bytes - std::min(file.size_bytes, live->second);
    LayerStats& layer = file.placement == Placement::Values ? stats.values : stats.metadata;
    ++layer.files;
    layer.live_bytes += file.size_bytes;
  }
  stats.compaction.level0_tables = version->level0.size();
  stats.compaction.range_deletes = version->range_delete_list.size();
  for (const auto& [id, tree] : version->trees) {
    stats.compaction.runs += tree.size();
    stats.compaction.runs_max = std::max<std::uint64_t>(stats.compaction.runs_max, tree.size());
  }
  erasure_.add_to(stats);
  const ReadCounters& read = tables_.counters();
  stats.metadata.bytes_written = wal_.bytes_written() + store_.versions.manifest_bytes_written() +
                                 flushes_.metadata_bytes() + stats.compaction.metadata_bytes;
  stats.metadata.bytes_read = read.metadata_bytes_read.load();
  stats.values.bytes_written = flushes_.value_bytes() + stats.compaction.value_bytes;
  stats.values.bytes_read = read.value_bytes_read.load();
  stats.wal_bytes = wal_.record_bytes();
  stats.wal_syncs = wal_.syncs();
  stats.cache_bytes = tables_.used_bytes();
  stats.set_aside_bytes = budget_.set_aside_bytes();
  stats.stall_ns = pacer_.stall_ns();
  return stats;
}

}  // namespace edgecase::engine
