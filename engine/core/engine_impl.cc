#include "core/engine_impl.h"

#include <algorithm>
#include <utility>

#include "file/file_names.h"
#include "file/locked_memory.h"

namespace edgecase {

Status Engine::summarize(NamespaceId, const KeyRange&, std::size_t, const ReadOptions&,
                         const PrefixTaker&) {
  return unsupported("this engine makes no summaries");
}

Result<std::unique_ptr<Engine>> Engine::open(const Options& options,
                                             const Environment& environment) {
  EC_TRY(validate_options(options));
  auto opened = std::make_unique<engine::EngineImpl>(options, environment);
  EC_TRY(opened->open());
  return std::unique_ptr<Engine>(std::move(opened));
}

}  // namespace edgecase

namespace edgecase::engine {

EngineImpl::EngineImpl(const Options& options, const Environment& environment)
    : options_(options),
      environment_(environment),
      file_system_(environment.file_system),
      tasks_(environment.executor),
      health_(environment.clock, environment.listener),
      remover_(environment.file_system, [this] {
        return options_.removal == Removal::Overwrite ||
               (views_ != nullptr && views_->has_erased()) ||
               (versions_ != nullptr && versions_->has_erasures());
      }) {
  if (options_.encryption) static_cast<void>(lock_in_memory(&options_, sizeof options_));
}

EngineImpl::~EngineImpl() {
  tasks_.close();
  // A store that did not open is left as it was.
  if (leader_ == nullptr || !leader_->is_replayed()) return;
  // Nothing acknowledged depends on it, but what was written without Sync outlives a power cut too.
  const RoleScope leads(leading);  // nobody writes any more
  if (wal_->sync().ok()) wal_->rest();
  static_cast<void>(retention_->note_last_mark().ok());
}

Result<NamespaceId> EngineImpl::create_namespace(std::string_view name,
                                                 const NamespaceOptions& options) {
  return versions_->create_namespace(name, options);
}

Result<NamespaceInfo> EngineImpl::find_namespace(std::string_view name) const {
  return versions_->find_namespace(name);
}

std::vector<NamespaceInfo> EngineImpl::namespaces() const {
  return versions_->state().namespaces;
}

Status EngineImpl::write(const WriteBatch& batch, Durability durability) {
  return leader_->write(batch, durability);
}

void EngineImpl::set_commit_companion(CommitCompanion* companion) {
  leader_->set_companion(companion);
}

Result<Bytes> EngineImpl::get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) {
  return reads_->get(namespace_id, key, options);
}

Result<std::unique_ptr<Iterator>> EngineImpl::scan(NamespaceId namespace_id, const KeyRange& range,
                                                   const ReadOptions& options) {
  return reads_->scan(namespace_id, range, options);
}

Result<RangeStats> EngineImpl::range_stats(NamespaceId namespace_id, const KeyRange& range,
                                           const ReadOptions& options) {
  return reads_->range_stats(namespace_id, range, options);
}

Status EngineImpl::summarize(NamespaceId namespace_id, const KeyRange& range,
                             std::size_t prefix_bytes, const ReadOptions& options,
                             const PrefixTaker& take) {
  return reads_->summarize(namespace_id, range, prefix_bytes, options, take);
}

Result<std::uint64_t> EngineImpl::approximate_size(NamespaceId namespace_id,
                                                   const KeyRange& range) {
  return reads_->approximate_size(namespace_id, range);
}

Result<std::vector<FileShare>> EngineImpl::locate(NamespaceId namespace_id, const KeyRange& range) {
  return reads_->locate(namespace_id, range);
}

std::shared_ptr<const Snapshot> EngineImpl::snapshot() {
  return reads_->snapshot();
}

std::weak_ptr<const void> EngineImpl::held_snapshots() {
  return reads_->held_snapshots();
}

bool EngineImpl::is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                            std::uint64_t since) const {
  return reads_->is_revoked(namespace_id, first, last, since);
}

Status EngineImpl::flush() {
  return leader_->flush();
}

Status EngineImpl::compact(const std::vector<NamespaceId>& ids, const KeyRange& range) {
  const auto attempt = [&]() -> Status {
    EC_TRY(flush());
    return compactor_->compact(ids, range.lower, range.upper);
  };
  Status done = attempt();
  if (done.ok() || erasure_->pending_ranges() == 0) return done;
  return flushes_->with_reserve(std::move(done), attempt);
}

Result<ErasureReport> EngineImpl::erase() {
  return erasure_->erase();
}

Status EngineImpl::set_retention(std::vector<RetentionRule> rules) {
  return retention_->set(std::move(rules));
}

std::vector<RetentionRule> EngineImpl::retention_rules() const {
  return retention_->rules();
}

void EngineImpl::each_retention_rule(NamespaceId id, const KeyRange& prefixes,
                                     const RetentionTaker& take) const {
  retention_->each(id, prefixes, take);
}

std::int64_t EngineImpl::expiry_now_ns() {
  return expiry_clock_->now_ns();
}

Eviction EngineImpl::plan_eviction(const EvictionRequest& request) const {
  return retention_->plan_eviction(request);
}

Status EngineImpl::evict(std::span<const NamespaceId> ids, std::int64_t before_ns) {
  return retention_->evict(ids, before_ns);
}

std::int64_t EngineImpl::evicted_before_ns(NamespaceId id) const {
  return retention_->evicted_before_ns(id);
}

std::vector<DamagedFile> EngineImpl::damaged_files() const {
  std::vector<DamagedFile> found = log_damage_;
  for (DamagedFile& each : scrubber_->damaged()) found.push_back(std::move(each));
  return found;
}

bool EngineImpl::is_short_of_memory() const {
  return views_->kept_memtable_bytes() > budget_->kept_bytes_max();
}

void EngineImpl::set_aside(std::uint64_t before, std::uint64_t now) {
  budget_->set_aside(before, now);
  tables_->resize(budget_->cache_bytes());
}

Stats EngineImpl::stats() const {
  Stats stats;
  stats.compaction = compactor_->stats();
  stats.expiry = compactor_->expiry_stats();
  stats.scrub = scrubber_->stats();
  health_.add_to(stats);
  leader_->add_to(stats);
  stats.flushes = flushes_->flushes();
  views_->add_to(stats);
  reads_->add_to(stats.reads);
  const std::shared_ptr<const Version> version = versions_->current();
  retention_->add_to(stats, *version);
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
  erasure_->add_to(stats);
  const ReadCounters& read = tables_->counters();
  stats.metadata.bytes_written = wal_->bytes_written() + versions_->manifest_bytes_written() +
                                 flushes_->metadata_bytes() + stats.compaction.metadata_bytes;
  stats.metadata.bytes_read = read.metadata_bytes_read.load();
  stats.values.bytes_written = flushes_->value_bytes() + stats.compaction.value_bytes;
  stats.values.bytes_read = read.value_bytes_read.load();
  stats.wal_bytes = wal_->record_bytes();
  stats.wal_syncs = wal_->syncs();
  stats.cache_bytes = tables_->used_bytes();
  stats.set_aside_bytes = budget_->set_aside_bytes();
  stats.stall_ns = pacer_->stall_ns();
  return stats;
}

}  // namespace edgecase::engine
