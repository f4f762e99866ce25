#include "bench/store_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "bench/processes.h"
#include "bench/workloads.h"
#include "edgecase/engine.h"
#include "edgecase/options.h"

namespace edgecase::cli::bench {
namespace {

// Nothing written for so long: compactions are over. Longer than an engine takes to see that it is
// quiet.
constexpr int kQuietMs = 3'500;
constexpr int kQuietSmokeMs = 5;
constexpr int kWatchMs = 100;

template <typename VisitFile>
void for_each_file(const std::string& path, const VisitFile& visit) {
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(path, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    visit(at->path());
  }
}

std::uint64_t table_bytes_in(const std::string& path) {
  std::uint64_t bytes = 0;
  for_each_file(path, [&](const std::filesystem::path& file) {
    struct stat state {};
    if (file.extension() != ".log" && ::lstat(file.c_str(), &state) == 0 && S_ISREG(state.st_mode))
      bytes += static_cast<std::uint64_t>(state.st_size);
  });
  return bytes;
}

void drop_page_cache(const std::string& path) {
  for_each_file(path, [](const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) return;
    ::fdatasync(descriptor);  // only clean pages can be dropped
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  });
}

}  // namespace

Status check_store_sizes(const BenchOptions& options, std::uint32_t key_size_min_bytes) {
  if (options.key_size < key_size_min_bytes || options.key_size > kKeySizeMaxBytes) {
    return invalid_argument("--key-size is " + std::to_string(key_size_min_bytes) + " to " +
                            std::to_string(kKeySizeMaxBytes));
  }
  if (options.value_size > kValueSizeMaxBytes) {
    return invalid_argument("--value-size is at most " + std::to_string(kValueSizeMaxBytes));
  }
  return ok();
}

Result<std::unique_ptr<BenchStore>> open_store(const BenchOptions& options, const std::string& name,
                                               const StoreSettings& settings) {
  if (name == kOwnStore) return make_own_store(settings);
  if (options.make_peer == nullptr) return unsupported(name + " is not built in");
  return options.make_peer(name, settings);
}

Result<std::unique_ptr<StoreSession>> StoreSession::create(const BenchOptions& options,
                                                           std::uint32_t spaces,
                                                           std::uint64_t memory_bytes) {
  EC_ASSIGN_OR_RETURN(StoreDirectories directories,
                      create_store_directories(options.metadata, options.values));
  StoreSettings settings;
  settings.metadata_directory = directories.metadata;
  settings.values_directory = directories.values;
  settings.memory_bytes = options.memory_bytes != 0 ? options.memory_bytes : memory_bytes;
  settings.compression = options.compression;
  settings.coalesce = options.coalesce;
  settings.spaces = spaces;
  settings.file_system = options.file_system;
  std::unique_ptr<StoreSession> session(
      new StoreSession(options, std::move(directories), std::move(settings)));
  EC_TRY(session->open());
  return session;
}

StoreSession::StoreSession(const BenchOptions& options, StoreDirectories directories,
                           StoreSettings settings)
    : options_(options),
      quiet_ms_(options.smoke ? kQuietSmokeMs : kQuietMs),
      directories_(std::move(directories)),
      settings_(std::move(settings)) {}

StoreSession::~StoreSession() {
  stop_watching();
}

Status StoreSession::open() {
  EC_ASSIGN_OR_RETURN(store_, open_store(options_, options_.engine, settings_));
  return ok();
}

Status StoreSession::settle() {
  EC_TRY(store_->flush());
  std::uint64_t before = device_bytes_written();
  for (int quiet_ms = 0; quiet_ms < quiet_ms_ && !interrupted();) {
    sleep_ms(kQuietSmokeMs);
    const std::uint64_t now = device_bytes_written();
    quiet_ms = now == before ? quiet_ms + kQuietSmokeMs : 0;
    before = now;
  }
  return ok();
}

Status StoreSession::reopen_cold() {
  written_before_ = device_bytes_written();
  store_.reset();
  drop_page_cache(settings_.metadata_directory);
  drop_page_cache(settings_.values_directory);
  return open();
}

std::uint64_t StoreSession::table_bytes() const {
  return table_bytes_in(settings_.metadata_directory) + table_bytes_in(settings_.values_directory);
}

std::uint64_t StoreSession::device_bytes_written() const {
  return written_before_ + store_->device_bytes_written();
}

void StoreSession::watch_space() {
  watching_ = true;
  watch_ = std::thread([this] {
    while (watching_) {
      peak_ = std::max(peak_.load(), table_bytes());
      for (int slept = 0; slept < kWatchMs && watching_; slept += kQuietSmokeMs) {
        sleep_ms(kQuietSmokeMs);
      }
    }
  });
}

std::uint64_t StoreSession::stop_watching() {
  watching_ = false;
  if (watch_.joinable()) watch_.join();
  return std::max(peak_.load(), table_bytes());
}

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

// EdgeCase's own engine as a BenchStore, with its default options.
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

namespace {

constexpr std::uint64_t kMiB = 1u << 20;

std::string named(const std::string& directory) {
  return directory.empty() ? "." : directory;
}

}  // namespace

Result<std::unique_ptr<PrivateDirectory>> PrivateDirectory::create(const std::string& parent) {
  EC_TRY(check_no_store(parent));
  std::error_code error;
  const auto base = std::filesystem::absolute(parent.empty() ? "." : parent, error);
  std::string path = (base / "edgecase-bench-XXXXXX").lexically_normal().string();
  if (error || mkdtemp(path.data()) == nullptr) {
    if (!error) error = std::error_code(errno, std::generic_category());
    return io_error("cannot create a directory in " + base.string() + ": " + error.message());
  }
  return std::unique_ptr<PrivateDirectory>(new PrivateDirectory(std::move(path)));
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<StoreDirectories> create_store_directories(const std::string& metadata,
                                                  const std::string& values) {
  StoreDirectories directories;
  EC_ASSIGN_OR_RETURN(directories.metadata_parent, PrivateDirectory::create(metadata));
  directories.metadata = directories.metadata_parent->path() + "/metadata";
  directories.values = directories.metadata_parent->path() + "/values";
  if (!values.empty()) {
    EC_ASSIGN_OR_RETURN(directories.values_parent, PrivateDirectory::create(values));
    directories.values = directories.values_parent->path() + "/values";
  }
  std::error_code error;
  std::filesystem::create_directory(directories.metadata, error);
  if (!error) std::filesystem::create_directory(directories.values, error);
  if (error) return io_error("cannot create " + directories.metadata + ": " + error.message());
  return directories;
}

Status check_no_store(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::exists(named(directory) + "/IDENTITY", error)) {
    return invalid_argument(named(directory) + " holds a store: name a directory beside it");
  }
  if (error) return io_error(named(directory) + ": " + error.message());
  return ok();
}

Status check_apart(const std::string& one, const std::string& other) {
  std::error_code error;
  for (const std::string& each : {named(one), named(other)}) {
    if (!std::filesystem::is_directory(each, error)) return io_error(each + " is no directory");
  }
  const bool same = std::filesystem::equivalent(named(one), named(other), error);
  if (error) return io_error(named(one) + ", " + named(other) + ": " + error.message());
  if (same) return invalid_argument(named(one) + " and " + named(other) + " are one directory");
  return ok();
}

Status check_room(const std::string& directory, std::uint64_t bytes) {
  std::error_code error;
  const auto space = std::filesystem::space(named(directory), error);
  if (error) return io_error(named(directory) + ": " + error.message());
  if (space.available >= bytes) return ok();
  return out_of_space(named(directory) + " has " + std::to_string(space.available / kMiB) +
                      " MiB free, and this takes up to " + std::to_string(bytes / kMiB) +
                      " MiB: another directory, or fewer (--num)");
}

Result<std::uint64_t> table_bytes(const StoreDirectories& directories) {
  Options options;
  options.metadata_directory = directories.metadata;
  options.values_directory = directories.values;
  options.create_if_missing = false;
  EventListener listener;
  const auto executor = make_thread_executor();
  const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                listener};
  EC_ASSIGN_OR_RETURN(const auto engine, Engine::open(options, environment));
  EC_TRY(engine->flush());
  const Stats stats = engine->stats();
  return stats.metadata.live_bytes + stats.values.live_bytes;
}

}  // namespace edgecase::cli::bench
