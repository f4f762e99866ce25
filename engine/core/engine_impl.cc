#include "core/engine_impl.h"

#include <algorithm>
#include <utility>

#include "compaction/purge.h"
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
      remover_(environment.file_system,
               [this] {
                 return options_.removal == Removal::Overwrite ||
                        has_erased_.load(std::memory_order_acquire) ||
                        (versions_ != nullptr && versions_->has_erasures());
               }),
      reserve_(environment.file_system,
               {reserve_path(options.metadata_directory), reserve_path(options.values_directory)},
               options.erasure_reserve_bytes),
      free_space_(environment.file_system, environment.clock, options.metadata_directory,
                  options.values_directory, options.keep_free_bytes) {
  if (options_.encryption) static_cast<void>(lock_in_memory(&options_, sizeof options_));
}

EngineImpl::~EngineImpl() {
  gate_->close();
  // Nothing acknowledged depends on it, but what was written without Sync outlives a power cut too.
  if (wal_ != nullptr && wal_->sync().ok()) wal_->rest();
  if (expiry_clock_ != nullptr) static_cast<void>(note_expiry_mark(0).ok());
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

std::uint64_t EngineImpl::memory_bytes() const {
  const std::uint64_t limit = options_.memory_limit_bytes;
  const std::uint64_t others =
      set_aside_.load(std::memory_order_relaxed) + versions_->memory_bytes();
  return std::max(limit - std::min(limit, others), kMemoryLimitMinBytes);
}

std::uint64_t EngineImpl::memtable_bytes() const {
  return options_.memtable_bytes != 0 ? options_.memtable_bytes : memory_bytes() / kMemtableShare;
}

void EngineImpl::set_aside(std::uint64_t before, std::uint64_t now) {
  set_aside_.fetch_add(now - before, std::memory_order_relaxed);
  tables_->resize(memory_bytes() / kCacheShare);
}

std::uint64_t EngineImpl::kept_memtable_bytes() const {
  // Whoever lets go of one last frees it: not under the lock.
  std::vector<std::shared_ptr<const Memtable>> kept;
  {
    MutexLock lock(mutex_);
    for (const auto& retired : retired_memtables_) kept.push_back(retired.lock());
  }
  std::uint64_t bytes = 0;
  for (const auto& memtable : kept) bytes += memtable == nullptr ? 0 : memtable->memory_bytes();
  return bytes;
}

bool EngineImpl::is_short_of_memory() const {
  return kept_memtable_bytes() > options_.memory_limit_bytes / kKeptShare;
}

Stats EngineImpl::stats() const {
  Stats stats;
  stats.compaction = compactor_->stats();
  stats.expiry = compactor_->expiry_stats();
  stats.scrub = scrubber_->stats();
  const ReadCounters& read = tables_->counters();
  {
    MutexLock lock(mutex_);
    stats.last_sequence = visible_.load();
    stats.flushes = flushes_;
    stats.refused = refused_;
    stats.immutable_memtables = view_->immutables.size();
    stats.memtable_bytes = view_->active->memory_bytes();
    for (const auto& memtable : view_->immutables) stats.memtable_bytes += memtable->memory_bytes();
    LayerStats& failing = flush_failure_layer_ == Layer::Values ? stats.values : stats.metadata;
    if (!flush_failure_.ok()) {
      failing.degraded = flush_failure_;
      failing.degraded_since_ns = flush_failed_since_ns_;
    }
    if (!wal_failure_.ok()) {
      stats.metadata.degraded = wal_failure_;
      stats.metadata.degraded_since_ns = wal_failed_since_ns_;
    }
  }
  if (free_space_.is_short()) {
    const FreeSpace::Shortage shortage = free_space_.shortage();
    LayerStats& layer = shortage.is_of_values ? stats.values : stats.metadata;
    if (layer.degraded.ok()) {
      layer.degraded = shortage.status;
      layer.degraded_since_ns = shortage.since_ns;
    }
  }
  if (const Status failure = compactor_->failure(); !failure.ok()) {
    LayerStats& failing =
        compaction_failure_layer_ == Layer::Values ? stats.values : stats.metadata;
    if (failing.degraded.ok()) failing.degraded = failure;
  }
  const std::shared_ptr<const Version> version = versions_->current();
  for (const auto& table : version->tables) {
    ++stats.metadata.files;
    stats.metadata.live_bytes += table->size_bytes;
  }
  stats.compaction.level0_tables = version->level0.size();
  stats.compaction.range_deletes = version->range_delete_list.size();
  for (const auto& [id, tree] : version->trees) {
    stats.compaction.runs += tree.size();
    stats.compaction.runs_max = std::max<std::uint64_t>(stats.compaction.runs_max, tree.size());
  }
  stats.erasure = compactor_->erasure_stats();
  stats.erasure.pending_ranges = pending_erasures();
  stats.erasure.overwritten_bytes = overwritten_bytes();
  if (keys_ != nullptr)
    stats.encryption = {true, keys_->size(), destroyed_keys_.load(), keys_->shares_keys()};
  const bool exact = options_.expiry == ExpiryMode::Exact;
  stats.expiry.next_ns = next_expiry_ns(*version, exact);
  const ExpiryClock::Reading at = expiry_clock_->read();
  const std::int64_t now_ns = at.now_ns;
  stats.expiry.now_ns = now_ns;
  stats.expiry.wait = at.wait;
  stats.expiry.waits = at.wait == ExpiryWait::None ? 0 : 1;
  stats.expiry.wait_since_boot_ns = at.wait_since_boot_ns;
  stats.expiry.held_bytes = leaps_.held_bytes();
  stats.expiry.held_since_boot_ns = leaps_.held_since_boot_ns();
  stats.expiry.evicted_waiting_bytes = evicted_waiting_bytes(*version);
  stats.expiry.removals_wait = remover_.has_waiting(FileRemover::Urgency::Whenever);
  stats.expiry.bytes_wait =
      versions_->has_obsolete_files() || remover_.has_bytes(FileRemover::Urgency::Whenever);
  const auto rules = versions_->retention();
  stats.expiry.rules = rules == nullptr ? 0 : rules->rule_count();
  for (const auto& [number, file] : version->value_files) {
    const std::int64_t evicted_before_ns =
        rules == nullptr ? kEverNs : time_of_ordinal(rules->given_up_below(file.namespace_id));
    stats.expiry.oldest_ns =
        std::min(stats.expiry.oldest_ns, std::max(file.time_min_ns, evicted_before_ns));
    if (due_ns(file, exact) < now_ns) stats.expiry.waiting_bytes += file.size_bytes;
    const auto live = version->live_bytes.find(number);
    if (live != version->live_bytes.end())
      stats.compaction.garbage_bytes += file.size_bytes - std::min(file.size_bytes, live->second);
    LayerStats& layer = file.placement == Placement::Values ? stats.values : stats.metadata;
    ++layer.files;
    layer.live_bytes += file.size_bytes;
  }
  stats.metadata.bytes_written = wal_->bytes_written() + versions_->manifest_bytes_written() +
                                 table_metadata_bytes_.load() + stats.compaction.metadata_bytes;
  stats.metadata.bytes_read = read.metadata_bytes_read.load();
  stats.values.bytes_written = table_value_bytes_.load() + stats.compaction.value_bytes;
  stats.values.bytes_read = read.value_bytes_read.load();

  stats.user_bytes_written = user_bytes_written_.load();
  stats.batches = batches_.load();
  stats.entries_written = entries_written_.load();
  stats.wal_bytes = wal_->record_bytes();
  stats.wal_syncs = wal_->syncs();
  stats.commit_groups = commit_groups_.load();
  stats.reads.gets = gets_.load();
  static_assert(ReadStats::kLevels == kLevelMax + 1);
  stats.reads.memtable_hits = hits_.memtables.load();
  std::ranges::transform(hits_.levels, stats.reads.level_hits.begin(),
                         [](const std::atomic<std::uint64_t>& hits) { return hits.load(); });
  stats.reads.level0_skips = read.level0_skips.load();
  stats.reads.filter_probes = read.filter_probes.load();
  stats.reads.filter_negatives = read.filter_negatives.load();
  stats.reads.metadata_block_loads = read.metadata_block_loads.load();
  stats.reads.value_reads = read.value_reads.load();
  stats.reads.cache_hits = read.cache_hits.load();
  stats.reads.cache_misses = read.cache_misses.load();
  stats.cache_bytes = tables_->used_bytes();
  stats.kept_memtable_bytes = kept_memtable_bytes();
  stats.set_aside_bytes = set_aside_.load(std::memory_order_relaxed);
  stats.stall_ns = stall_ns_.load();
  return stats;
}

}  // namespace edgecase::engine
