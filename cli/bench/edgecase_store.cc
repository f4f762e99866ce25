// EdgeCase's own engine as a BenchStore, with its default options.
#include "bench/bench_store.h"
#include "edgecase/engine.h"

namespace edgecase::cli::bench {
namespace {

class EdgecaseBatch final : public BenchBatch {
 public:
  explicit EdgecaseBatch(const std::vector<NamespaceId>& ids) : ids_(ids) {}
  void put(std::uint32_t space, ByteView key, ByteView value) override {
    batch_.put(ids_[space], key, value);
  }
  void remove(std::uint32_t space, ByteView key) override { batch_.remove(ids_[space], key); }
  void clear() override { batch_.clear(); }
  const WriteBatch& inner() const { return batch_; }

 private:
  const std::vector<NamespaceId>& ids_;
  WriteBatch batch_;
};

class EdgecaseStore final : public BenchStore {
 public:
  Status open(const StoreSettings& settings) {
    Options options;
    options.metadata_directory = settings.metadata_directory;
    options.values_directory = settings.values_directory;
    options.memory_limit_bytes = settings.memory_bytes;
    options.coalesce = settings.coalesce;
    options.map_tables = true;  // as peers do
    FileSystem& files = settings.file_system ? *settings.file_system : posix_file_system();
    const Environment environment{files, system_clock(), system_random(), *executor_, listener_};
    EC_ASSIGN_OR_RETURN(engine_, Engine::open(options, environment));
    for (std::uint32_t space = 0; space < settings.spaces; ++space) {
      const std::string name = "bench-" + std::to_string(space);
      auto id = engine_->create_namespace(name, NamespaceOptions{});
      if (id.status().code() == StatusCode::AlreadyExists) {
        EC_ASSIGN_OR_RETURN(const NamespaceInfo info, engine_->find_namespace(name));
        ids_.push_back(info.id);
        continue;
      }
      if (!id.ok()) return id.status();
      ids_.push_back(*id);
    }
    return ok();
  }

  std::unique_ptr<BenchBatch> make_batch() override {
    return std::make_unique<EdgecaseBatch>(ids_);
  }
  Status write(BenchBatch& batch, bool sync) override {
    return engine_->write(static_cast<EdgecaseBatch&>(batch).inner(),
                          sync ? Durability::Sync : Durability::Async);
  }
  Result<Bytes> get(std::uint32_t space, ByteView key) override {
    return engine_->get(ids_[space], key, {});
  }

  Status scan(ByteView lower, const Visit& visit) override {
    ReadOptions options;
    options.fill_cache = !lower.empty();
    EC_ASSIGN_OR_RETURN(const auto cursor,
                        engine_->scan(ids_.front(), {Bytes(lower), {}}, options));
    for (; cursor->valid(); cursor->next()) {
      const ByteView value = cursor->value();
      if (!cursor->valid() || !visit(cursor->key(), value)) break;
    }
    return cursor->status();
  }

  Status flush() override { return engine_->flush(); }

  std::uint64_t device_bytes_written() const override {
    const Stats stats = engine_->stats();
    return stats.metadata.bytes_written + stats.values.bytes_written;
  }

  Figures figures() const override {
    const Stats stats = engine_->stats();
    const auto gets = static_cast<double>(stats.reads.gets);
    const auto ratio = [](std::uint64_t of, double to) {
      return to > 0 ? static_cast<double>(of) / to : 0;
    };
    Figures figures = {
        {"metadata_bytes_written", static_cast<double>(stats.metadata.bytes_written)},
        {"values_bytes_written", static_cast<double>(stats.values.bytes_written)},
        {"metadata_share",
         ratio(stats.metadata.live_bytes, static_cast<double>(stats.values.live_bytes))},
        {"flushes", static_cast<double>(stats.flushes)},
        {"stall_ms", static_cast<double>(stats.stall_ns) / 1e6},
        {"merges", static_cast<double>(stats.compaction.merges)},
        {"relocations", static_cast<double>(stats.compaction.relocations)},
        {"carried_items", static_cast<double>(stats.compaction.carried_items)},
        {"level0_tables", static_cast<double>(stats.compaction.level0_tables)},
        {"runs", static_cast<double>(stats.compaction.runs)},
        {"garbage_share",
         ratio(stats.compaction.garbage_bytes, static_cast<double>(stats.values.live_bytes))},
        {"value_reads", static_cast<double>(stats.reads.value_reads)}};
    if (stats.reads.gets == 0) return figures;
    figures.emplace_back("value_reads_per_get", ratio(stats.reads.value_reads, gets));
    figures.emplace_back("filter_probes_per_get", ratio(stats.reads.filter_probes, gets));
    figures.emplace_back("cache_misses_per_get", ratio(stats.reads.cache_misses, gets));
    figures.emplace_back("metadata_block_loads_per_get",
                         ratio(stats.reads.metadata_block_loads, gets));
    figures.emplace_back("level0_skips_per_get", ratio(stats.reads.level0_skips, gets));
    figures.emplace_back("memtable_hit_share", ratio(stats.reads.memtable_hits, gets));
    for (std::size_t level = 0; level < stats.reads.level_hits.size(); ++level) {
      const std::uint64_t hits = stats.reads.level_hits[level];
      if (hits == 0) continue;
      figures.emplace_back("level" + std::to_string(level) + "_hit_share", ratio(hits, gets));
    }
    return figures;
  }

 private:
  EventListener listener_;
  std::unique_ptr<Executor> executor_ = make_thread_executor();
  std::unique_ptr<Engine> engine_;  // after what it uses
  std::vector<NamespaceId> ids_;
};

}  // namespace

Result<std::unique_ptr<BenchStore>> make_own_store(const StoreSettings& settings) {
  auto store = std::make_unique<EdgecaseStore>();
  EC_TRY(store->open(settings));
  return std::unique_ptr<BenchStore>(std::move(store));
}

}  // namespace edgecase::cli::bench
