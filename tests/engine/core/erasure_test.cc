// Erased ranges: what they hide, how long they are pending, where their bytes are.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/core/engine_fixture.h"
#include "engine/core/secrets.h"
#include "support/temp_directory.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::secret;

struct ErasingStore : test::EngineFixture {
  ErasingStore() {
    options.coalesce_threshold_bytes = 64;
    options.group_bytes = 256;
    REQUIRE(open().ok());
    id = make_namespace("plant");
    other = make_namespace("other");
  }
  Status erase_range(ByteView lower, ByteView upper) {
    WriteBatch batch;
    batch.erase_range(id, lower, upper);
    return engine->write(batch, Durability::Sync);
  }
  void fill(const std::string& value) {
    for (int i = 10; i < 100; ++i) {
      REQUIRE(put(id, "k" + std::to_string(i), value).ok());
      REQUIRE(put(other, "k" + std::to_string(i), value).ok());
    }
  }
  std::uint64_t count(NamespaceId of, const std::shared_ptr<const Snapshot>& snapshot = nullptr) {
    ReadOptions read;
    read.snapshot = snapshot;
    std::uint64_t scanned = 0;
    auto scan = engine->scan(of, {}, read);
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) ++scanned;
    CHECK(engine->range_stats(of, {}, read)->entries == scanned);
    return scanned;
  }

  NamespaceId id = 0;
  NamespaceId other = 0;
};

TEST_CASE("what is erased no snapshot shows, wherever it lies") {
  for (const int flushed : {0, 1, 2}) {
    CAPTURE(flushed);
    ErasingStore store;
    store.fill("1");
    if (flushed >= 1) REQUIRE(store.engine->flush().ok());
    const auto before = store.engine->snapshot();
    REQUIRE(store.erase_range("k20", "k90").ok());
    REQUIRE(store.put(store.id, "k50", "2").ok());
    if (flushed == 2) REQUIRE(store.engine->flush().ok());
    ReadOptions read;
    read.snapshot = before;
    CHECK(store.engine->get(store.id, "k50", read).status().code() == StatusCode::NotFound);
    CHECK(store.engine->get(store.id, "k19", read).ok());
    CHECK(store.get(store.id, "k50") == "2");
    CHECK(store.count(store.id, before) == 20);
    CHECK(store.count(store.other, before) == 90);
    CHECK(store.count(store.id) == 21);
    CHECK(store.engine->stats().erasure.pending_ranges == 1);
  }
}

TEST_CASE("an erased range is pending until erase() has removed it, after a restart, too") {
  ErasingStore store;
  store.fill("1");
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.erase_range("k20", "k90").ok());
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  REQUIRE(store.engine->flush().ok());
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(report->ranges == 1);
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  CHECK(store.engine->locate(store.id, {"k20", "k90"})->empty());
  CHECK_FALSE(store.engine->locate(store.id, {"k90", {}})->empty());
  CHECK(store.count(store.id) == 20);
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  CHECK(store.count(store.id) == 20);
}

TEST_CASE("a range is found in the log, then in tables of both layers") {
  ErasingStore store;
  store.fill(Bytes(100, 'v'));
  auto files = store.engine->locate(store.id, {"k20", "k30"});
  REQUIRE(files.ok());
  REQUIRE_FALSE(files->empty());
  for (const FileShare& file : *files) CHECK(file.layer == FileLayer::Log);
  REQUIRE(store.engine->flush().ok());
  files = store.engine->locate(store.id, {"k20", "k30"});
  REQUIRE(files.ok());
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].layer == FileLayer::Values);
  CHECK((*files)[0].bytes >= 1000);
  CHECK((*files)[0].bytes <= (*files)[0].file_bytes);
  CHECK((*files)[1].layer == FileLayer::Metadata);
  CHECK(store.disk.exists((*files)[0].path));
  CHECK(store.disk.exists((*files)[1].path));
  CHECK(store.engine->locate(store.id, {"x", {}})->empty());
}

std::string in_hex(ByteView bytes) {
  std::string hex;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

std::string in_base64(ByteView bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i + 3 <= bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
    const unsigned quantum = unsigned{byte(i)} << 16 | unsigned{byte(i + 1)} << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text.push_back(kDigits[quantum >> shift & 63]);
  }
  return text;
}

// Entries by number: the first half of the keys begins with "a", the second with "b".
struct SecretStore : test::EngineFixture {
  static constexpr int kEntries = 400;

  explicit SecretStore(Removal removal) {
    disk.keep_freed();
    options.removal = removal;
    options.erasure_wait_ms = 0;
    options.coalesce_threshold_bytes = 512;
    options.group_bytes = 1024;
    options.memtable_bytes = 16u << 10;
    options.wal_limit_bytes = 512u << 10;
    REQUIRE(open().ok());
    id = make_namespace("plant");
  }
  static std::string key_of(int i) {
    return (i % 2 == 0 ? "a" : "b") + std::to_string(1000 + i) + secret("k", i);
  }
  static std::string value_of(int i) {
    return secret("v", i) + std::string(i % 17 == 0 ? 600 : 20, 'x');
  }
  void fill(int turn) {
    for (int n = 0; n < kEntries; ++n) {
      const int i = n * 7 % kEntries;
      REQUIRE(put(id, key_of(i), value_of(i) + std::to_string(turn), Durability::Async).ok());
    }
  }
  Status erase_half() {
    WriteBatch batch;
    batch.erase_range(id, "a", "b");
    return engine->write(batch, Durability::Sync);
  }
  // Looks for what is left of the half that is erased; of the other half all must be there.
  std::string find_residue() {
    std::vector<Bytes> erased;
    for (int i = 0; i < kEntries; ++i) {
      if (i % 2 == 0) {
        erased.insert(erased.end(), {secret("k", i), secret("v", i)});
      } else if (get(id, key_of(i)).substr(0, 17) != secret("v", i)) {
        return "lost: " + key_of(i);
      }
    }
    return disk.find_bytes(erased);
  }

  NamespaceId id = 0;
};

TEST_CASE("after erase() no durable byte holds what was erased, freed files included") {
  SecretStore store(Removal::Overwrite);
  store.fill(1);
  store.fill(2);
  REQUIRE(store.engine->flush().ok());
  store.executor.run_all();
  store.fill(3);
  CHECK_FALSE(store.find_residue().empty());
  REQUIRE(store.erase_half().ok());
  REQUIRE(store.put(store.id, "c", "new", Durability::Sync).ok());
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(store.find_residue() == "");
  CHECK(report->ranges == 1);
  CHECK(report->removed_files > 0);
  CHECK(report->overwritten_bytes > 0);
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  store.reopen();
  CHECK(store.find_residue() == "");
  CHECK(store.get(store.id, "c") == "new");
}

TEST_CASE("after erase() no file that is named holds what was erased, without overwriting others") {
  SecretStore store(Removal::Unlink);
  store.fill(1);
  REQUIRE(store.erase_half().ok());
  REQUIRE(store.engine->erase().ok());
  CHECK(store.find_residue() == "");
  const std::uint64_t overwritten = store.engine->stats().erasure.overwritten_bytes;
  store.fill(2);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  CHECK(store.engine->stats().erasure.overwritten_bytes == overwritten);
}

TEST_CASE("a reader that holds what is erased makes erase() Busy, and it is done when it goes") {
  for (const bool in_memory : {false, true}) {
    CAPTURE(in_memory);
    SecretStore store(Removal::Overwrite);
    store.fill(1);
    if (!in_memory) REQUIRE(store.engine->flush().ok());
    auto snapshot = store.engine->snapshot();
    REQUIRE(store.erase_half().ok());
    const auto refused = store.engine->erase();
    CHECK(refused.status().code() == StatusCode::Busy);
    CHECK(store.engine->stats().erasure.pending_ranges == 1);
    ReadOptions read;
    read.snapshot = snapshot;
    CHECK(store.engine->get(store.id, SecretStore::key_of(0), read).status().code() ==
          StatusCode::NotFound);
    CHECK(store.engine->get(store.id, SecretStore::key_of(1), read).ok());
    read.snapshot.reset();
    snapshot.reset();
    for (int i = 0; i < 10; ++i) {
      store.clock.advance(1'000'000'000);
      store.executor.advance(1'000'000'000);
      store.executor.run_all();
    }
    CHECK(store.engine->stats().erasure.pending_ranges == 0);
    CHECK(store.find_residue() == "");
  }
}

TEST_CASE("an erasure waits for the values drive, and is done when that is back") {
  SecretStore store(Removal::Overwrite);
  store.fill(1);
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  REQUIRE(store.erase_half().ok());
  REQUIRE(store.engine->flush().ok());
  store.disk.set_gone("/v", true);
  const auto refused = store.engine->erase();
  CHECK((refused.status().code() == StatusCode::Unavailable ||
         refused.status().code() == StatusCode::IoError));
  CHECK(store.engine->stats().erasure.pending_ranges == 1);
  store.disk.set_gone("/v", false);
  for (int i = 0; i < 100; ++i) {
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
    store.executor.run_all();
  }
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  CHECK(store.find_residue() == "");
}

TEST_CASE("on full drives what is erased goes by the room that is kept for it") {
  for (const bool has_reserve : {true, false}) {
    CAPTURE(has_reserve);
    SecretStore store(Removal::Overwrite);
    store.options.erasure_reserve_bytes = has_reserve ? 4u << 20 : 0;
    store.reopen();
    store.executor.run_all();
    CHECK(store.disk.exists("/v/store/RESERVE") == has_reserve);
    store.fill(1);
    REQUIRE(store.engine->flush().ok());
    REQUIRE(store.engine->compact({store.id}, {}).ok());
    for (const char* root : {"/m", "/v"})
      store.disk.set_capacity(root, store.disk.used_bytes(root));
    REQUIRE(store.erase_half().ok());
    const auto report = store.engine->erase();
    INFO(report.status().to_string());
    if (!has_reserve) {
      CHECK(report.status().code() == StatusCode::OutOfSpace);
      CHECK(store.engine->stats().erasure.pending_ranges == 1);
      continue;
    }
    REQUIRE(report.ok());
    CHECK(store.find_residue() == "");
    CHECK_FALSE(store.disk.exists("/v/store/RESERVE"));
    for (const char* root : {"/m", "/v"}) store.disk.set_capacity(root, 0);
    store.reopen();
    store.executor.run_all();
    CHECK(store.disk.exists("/v/store/RESERVE"));
  }
}

// Puts until memory and log take no more.
Status fill_up(SecretStore& store, const char* full) {
  store.disk.set_capacity(full, store.disk.used_bytes(full));
  Status refused;
  for (int i = 0; i < 10'000 && refused.ok(); ++i) {
    refused = store.put(store.id, "c" + std::to_string(i), Bytes(1000, 'c'));
    store.executor.run_all();
  }
  return refused;
}

TEST_CASE("on a full drive something is erased though memory and log take no more") {
  for (const char* full : {"/m", "/v"}) {
    for (const bool has_reserve : {true, false}) {
      CAPTURE(full);
      CAPTURE(has_reserve);
      SecretStore store(Removal::Overwrite);
      store.options.erasure_reserve_bytes = has_reserve ? 4u << 20 : 0;
      store.reopen();
      store.executor.run_all();
      store.fill(1);
      REQUIRE(store.engine->flush().ok());
      CHECK(fill_up(store, full).code() == StatusCode::Busy);
      CHECK(store.engine->stats().refused.code() == StatusCode::Busy);
      const Status erased = store.erase_half();
      INFO(erased.to_string());
      CHECK(erased.ok() == has_reserve);
      if (!has_reserve) continue;
      CHECK(store.engine->stats().refused.ok());
      const auto report = store.engine->erase();
      INFO(report.status().to_string());
      REQUIRE(report.ok());
      CHECK(store.find_residue() == "");
      CHECK(store.get(store.id, "c0") == Bytes(1000, 'c'));
    }
  }
}

class Witness final : public CommitCompanion {
 public:
  explicit Witness(NamespaceId id) : id_(id) {}
  void add_to(WriteBatch& batch) override { batch.put(id_, "witness", "noted"); }
  void committed(const Status& status) override { last = status; }
  Status last;

 private:
  const NamespaceId id_;
};

TEST_CASE("on a full drive what is noted beside an erasure finds room as that does, alone none") {
  for (const char* full : {"/m", "/v"}) {
    CAPTURE(full);
    SecretStore store(Removal::Overwrite);
    store.options.erasure_reserve_bytes = 4u << 20;
    store.reopen();
    store.executor.run_all();
    store.fill(1);
    REQUIRE(store.engine->flush().ok());
    REQUIRE(fill_up(store, full).code() == StatusCode::Busy);
    Witness witness(store.id);
    store.engine->set_commit_companion(&witness);
    CHECK_FALSE(store.engine->write(WriteBatch(), Durability::Sync).ok());
    CHECK(witness.last.code() == StatusCode::Busy);
    CHECK(store.engine->get(store.id, "witness", {}).status().code() == StatusCode::NotFound);
    REQUIRE(store.erase_half().ok());
    CHECK(witness.last.ok());
    store.engine->set_commit_companion(nullptr);
    CHECK(store.get(store.id, "witness") == "noted");
    REQUIRE(store.engine->erase().ok());
    store.reopen();
    CHECK(store.get(store.id, "witness") == "noted");
  }
}

TEST_CASE("on a full drive what makes room finds some, and what was kept for it comes back") {
  for (const char* full : {"/m", "/v"}) {
    for (const bool makes_room : {true, false}) {
      CAPTURE(full);
      CAPTURE(makes_room);
      SecretStore store(Removal::Overwrite);
      store.options.erasure_reserve_bytes = 4u << 20;
      store.reopen();
      store.executor.run_all();
      store.fill(1);
      REQUIRE(store.engine->flush().ok());
      REQUIRE(fill_up(store, full).code() == StatusCode::Busy);
      WriteBatch batch;
      batch.put(store.id, "a rule", "keep less");
      if (makes_room) batch.set_makes_room();
      CHECK(store.engine->write(batch, Durability::Sync).ok() == makes_room);
      const std::string reserve = std::string(full) + "/store/RESERVE";
      CHECK(store.disk.exists(reserve) != makes_room);
      store.disk.set_capacity(full, 0);
      store.clock.advance(10'000'000'000);
      store.executor.advance(10'000'000'000);
      store.executor.run_all();
      CHECK(store.disk.exists(reserve));
      store.reopen();
      CHECK((store.get(store.id, "a rule") == "keep less") == makes_room);
    }
  }
}

TEST_CASE(
    "a crash at each operation of an erasure leaves it done or pending, and it is done then") {
  SecretStore counted(Removal::Overwrite);
  counted.fill(1);
  REQUIRE(counted.erase_half().ok());
  const std::uint64_t before = counted.disk.operations();
  REQUIRE(counted.engine->erase().ok());
  const std::uint64_t operations = counted.disk.operations() - before;
  REQUIRE(operations > 50);
  const std::uint64_t step = std::max<std::uint64_t>(1, operations / test::share_of(40));
  for (std::uint64_t at = 1; at <= operations; at += step) {
    CAPTURE(at);
    SecretStore store(Removal::Overwrite);
    store.fill(1);
    REQUIRE(store.erase_half().ok());
    store.disk.stop_at(at);
    const bool done = store.engine->erase().ok();
    store.close();
    store.disk.power_cut(at, test::CutPolicy::Any);
    REQUIRE(store.open().ok());
    CHECK(store.engine->get(store.id, SecretStore::key_of(0), {}).status().code() ==
          StatusCode::NotFound);
    if (done) CHECK(store.find_residue() == "");
    const auto again = store.engine->erase();
    INFO(again.status().to_string());
    REQUIRE(again.ok());
    REQUIRE(store.find_residue() == "");
  }
}

class SilentListener final : public EventListener {};

// Files below the directory that hold one of the forms of `needle`.
std::string find_in_files(const std::string& directory, const std::string& needle) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    for (const std::string& form : {needle, in_hex(needle), in_base64(needle)}) {
      if (bytes.view().find(form) != std::string_view::npos) return entry.path();
    }
  }
  return "";
}

TEST_CASE("on the machine's file system no file holds what was erased") {
  test::TempDirectory directory;
  const auto executor = make_thread_executor();
  SilentListener listener;
  Options options;
  options.metadata_directory = directory.path() + "/m";
  options.values_directory = directory.path() + "/v";
  options.memory_limit_bytes = 8u << 20;
  options.memtable_bytes = 64u << 10;
  options.wal_segment_bytes = 64u << 10;
  options.wal_limit_bytes = 1u << 20;
  auto opened = Engine::open(
      options, {posix_file_system(), system_clock(), system_random(), *executor, listener});
  INFO(opened.status().to_string());
  REQUIRE(opened.ok());
  Engine& engine = **opened;
  const NamespaceId id = *engine.create_namespace("plant", {});
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 3000; ++i) {
      WriteBatch batch;
      const std::string text = SecretStore::value_of(i);
      const std::string form = i % 3 == 0 ? text : i % 3 == 1 ? in_hex(text) : in_base64(text);
      batch.put(id, SecretStore::key_of(i), form);
      REQUIRE(engine.write(batch, Durability::Async).ok());
    }
  }
  CHECK_FALSE(find_in_files(directory.path(), secret("k", 2)).empty());
  WriteBatch batch;
  batch.erase_range(id, "a", "b");
  REQUIRE(engine.write(batch, Durability::Sync).ok());
  const auto report = engine.erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  for (int i = 0; i < 3000; i += 98) {
    CHECK(find_in_files(directory.path(), secret("k", i)) == "");
    CHECK(find_in_files(directory.path(), SecretStore::value_of(i).substr(0, 15)) == "");
    CHECK(engine.get(id, SecretStore::key_of(i + 1), {}).ok());
  }
}

}  // namespace
}  // namespace edgecase::engine
