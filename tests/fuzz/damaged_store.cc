#include "fuzz/damaged_store.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "edgecase/engine.h"
#include "edgecase/store_check.h"
#include "fuzz/fuzz_targets.h"
#include "support/manual_clock.h"
#include "support/manual_executor.h"
#include "support/memory_file_system.h"

namespace edgecase::test {
namespace {

constexpr const char* kMetadata = "/m/store";
constexpr const char* kValues = "/v/store";
constexpr std::size_t kTasksMax = 2'000;
constexpr unsigned kEntriesPerPart = 24;
constexpr unsigned kSinglePuts = 9;
constexpr std::size_t kEntriesMax = 100'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;

Options store_options() {
  Options options;
  options.metadata_directory = kMetadata;
  options.values_directory = kValues;
  options.memory_limit_bytes = 8u << 20;
  options.memtable_bytes = 64u << 10;
  options.wal_segment_bytes = 64u << 10;
  options.wal_limit_bytes = 8 * options.wal_segment_bytes;
  options.coalesce_threshold_bytes = 256;
  options.group_bytes = 1024;
  options.erasure_wait_ms = 0;
  return options;
}

class DeafListener final : public EventListener {};

class DeafObserver final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& finding) override { demand(!finding.message.empty()); }
  void on_progress(std::uint64_t /*done_bytes*/, std::uint64_t /*total_bytes*/) override {}
  bool stop() override { return false; }
};

// What an engine is given, on drives that are there already.
struct Machine {
  MemoryFileSystem disk{{"/m", "/v"}};
  ManualClock clock;
  SeededRandom random{1};
  ManualExecutor executor;
  DeafListener listener;

  Result<std::unique_ptr<Engine>> open() {
    return Engine::open(store_options(), {disk, clock, random, executor, listener});
  }
  void work() {
    for (std::size_t tasks = 0; tasks < kTasksMax && executor.run_one();) ++tasks;
  }
};

std::string series_key_of(unsigned series, std::int64_t time_ns) {
  std::string key = {'s', static_cast<char>('a' + series)};
  for (int shift = 56; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(static_cast<std::uint64_t>(time_ns) >> shift));
  }
  return key;
}

void write_part(Engine& engine, NamespaceId plain, NamespaceId series, unsigned part) {
  WriteBatch batch;
  for (unsigned i = 0; i < kEntriesPerPart; ++i) {
    const std::string key = "key" + std::to_string(i * (part + 3) % 90);
    const std::size_t size = i % 9 == 0 ? 700 : 5 + i % 40;
    batch.put(plain, key, std::string(size, static_cast<char>('a' + i % 26)));
    // A tag and the bits of a number, as readings are.
    std::string number = {static_cast<char>(1 + i % 2), 0, 0, 0, 0, 0, 0, static_cast<char>(i), 64};
    const unsigned second = part * kEntriesPerPart + i;
    // And text, which is packed.
    if (i % 3 == 2) number = "pump " + std::to_string(i * i) + ": pressure below its limit";
    batch.put(series, series_key_of(i % 3, ManualClock::kStartWallNs + second * kSecondNs), number);
  }
  batch.remove(plain, "key7");
  batch.remove_range(plain, "key4", "key41");
  demand(engine.write(batch, Durability::Sync).ok());
}

void read_all(Engine& engine) {
  for (const NamespaceInfo& place : engine.namespaces()) {
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      ReadOptions options;
      options.direction = direction;
      auto iterator = engine.scan(place.id, {}, options);
      if (!iterator.ok()) continue;
      std::size_t entries = 0;
      for (; (*iterator)->valid(); (*iterator)->next()) demand(++entries <= kEntriesMax);
    }
    for (const char* key : {"key0", "key1", "key50", "key7"}) {
      static_cast<void>(engine.get(place.id, key, {}));
    }
    static_cast<void>(engine.range_stats(place.id, {}, {}));
    static_cast<void>(engine.locate(place.id, {}));
  }
}

void use(Machine& machine) {
  auto opened = machine.open();
  if (!opened.ok()) {
    demand(!opened.status().message().empty());
    return;
  }
  Engine& engine = **opened;
  machine.work();
  read_all(engine);
  std::vector<NamespaceId> ids;
  for (const NamespaceInfo& place : engine.namespaces()) ids.push_back(place.id);
  WriteBatch batch;
  if (!ids.empty()) {
    batch.put(ids.front(), "new", "value");
    batch.erase_range(ids.front(), "key2", "key3");
  }
  static_cast<void>(engine.write(batch, Durability::Sync));
  static_cast<void>(engine.flush());
  static_cast<void>(engine.compact(ids, {}));
  static_cast<void>(engine.erase());
  machine.work();
  read_all(engine);
}

using StoreFiles = std::map<std::string, SparseBytes>;

StoreFiles sparse_store_files() {
  StoreFiles files;
  for (const auto& [path, contents] : store_files()) files.emplace(path, SparseBytes(contents));
  return files;
}

// `bytes` in the place of what `files` has at `damaged`.
void fill(Machine& machine, const StoreFiles& files, const std::string& damaged,
          SparseBytes bytes) {
  for (const char* directory : {"/m/store", "/m/store/wal", "/m/store/tables", "/v/store"}) {
    demand(machine.disk.create_directory(directory).ok());
  }
  for (const auto& [path, contents] : files) {
    if (path != damaged) machine.disk.set_contents(path, contents);
  }
  machine.disk.set_contents(damaged, std::move(bytes));
}

std::vector<std::string> paths_of(const StoreFiles& files, engine::FileType type) {
  std::vector<std::string> paths;
  for (const auto& [path, contents] : files) {
    const auto name = engine::parse_file_name(path.substr(path.rfind('/') + 1));
    if (name && name->type == type) paths.push_back(path);
  }
  return paths;
}

}  // namespace

std::map<std::string, Bytes> store_files() {
  Machine machine;
  auto opened = machine.open();
  demand(opened.ok());
  Engine& engine = **opened;
  const auto plain = engine.create_namespace("plain", {});
  const auto series = engine.create_namespace("series", {.codec = GroupCodec::Series});
  demand(plain.ok() && series.ok());
  const RetentionRule rule{*series, "sb", 3'600 * kSecondNs};
  demand(engine.set_retention({rule}).ok());
  for (unsigned part = 0; part < 3; ++part) {
    write_part(engine, *plain, *series, part);
    demand(engine.flush().ok());
  }
  demand(engine.compact({*plain}, {"key0", "key3"}).ok());
  machine.work();
  write_part(engine, *plain, *series, 3);
  for (unsigned i = 0; i < kSinglePuts; ++i) {
    WriteBatch one;
    one.put(*plain, "one" + std::to_string(i), std::string(i * 25, 'o'));
    demand(engine.write(one, i % 3 == 2 ? Durability::Sync : Durability::Async).ok());
  }
  return machine.disk.durable_contents();
}

void take_store_file(engine::FileType type, std::string_view bytes) {
  static const StoreFiles whole = sparse_store_files();
  if (bytes.size() < 2) return;
  const std::vector<std::string> paths = paths_of(whole, type);
  const std::string& path = paths[static_cast<unsigned char>(bytes[1]) % paths.size()];
  SparseBytes file(bytes.substr(2));
  const bool has_fixed_size =
      type == engine::FileType::WalSlot || type == engine::FileType::Manifest;
  if (has_fixed_size) file.resize(std::max(file.size(), whole.at(path).size()));

  Machine machine;
  fill(machine, whole, path, std::move(file));
  DeafObserver observer;
  switch (static_cast<unsigned char>(bytes[0]) % 4) {
    case 0: static_cast<void>(inspect_file(machine.disk, path)); break;
    case 1: use(machine); break;
    case 2: static_cast<void>(check_store(machine.disk, store_options(), observer)); break;
    default:
      static_cast<void>(inspect_store(machine.disk, store_options()));
      static_cast<void>(repair_store(machine.disk, store_options(), observer));
      use(machine);
  }
}

}  // namespace edgecase::test
