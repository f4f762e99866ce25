// Erased ranges in files that hold much else: overwritten where they lie; and what an erasure does
// not wait for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "engine/core/secrets.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::secret;

// Keys of 50 devices in files that each hold something of every device.
struct DeviceStore : test::EngineFixture {
  static constexpr int kDevices = 50;
  static constexpr int kEntries = 4000;

  DeviceStore() {
    disk.keep_freed();
    options.removal = Removal::Overwrite;
    options.erasure_wait_ms = 0;
    options.coalesce_threshold_bytes = 512;
    options.group_bytes = 512;
    REQUIRE(open().ok());
    id = make_namespace("plant");
    other = make_namespace("other");
  }
  static std::string key_of(int i) {
    return "d" + std::to_string(100 + i % kDevices) + secret("k", i);
  }
  static std::string value_of(int i) {
    return secret("v", i) + std::string(i % 97 == 0 ? 600 : 60, 'x');
  }
  void fill() {
    for (int i = 0; i < kEntries; ++i) {
      REQUIRE(put(id, key_of(i), value_of(i), Durability::Async).ok());
      if (i % (kEntries / 4) == kEntries / 4 - 1) REQUIRE(engine->flush().ok());
    }
  }
  Status hide(int device) {
    WriteBatch batch;
    batch.erase_range(id, "d" + std::to_string(100 + device),
                      "d" + std::to_string(100 + device + 1));
    return engine->write(batch, Durability::Sync);
  }
  // Looks for what is left of some devices; of the others all must be there.
  std::string find_residue(const std::set<int>& devices) {
    std::vector<Bytes> erased;
    for (int i = 0; i < kEntries; ++i) {
      if (devices.contains(i % kDevices)) {
        erased.insert(erased.end(), {secret("k", i), secret("v", i)});
      } else if (get(id, key_of(i)) != value_of(i)) {
        return "lost: " + key_of(i);
      }
    }
    return disk.find_bytes(erased);
  }
  std::string check() {
    close();
    test::RecordingObserver observer;
    const auto report = check_store(disk, options, observer);
    REQUIRE(report.ok());
    REQUIRE(open().ok());
    return report->problems == 0 ? "" : observer.all();
  }

  NamespaceId id = 0;
  NamespaceId other = 0;
};

TEST_CASE("what is erased of files that hold much else is overwritten where it lies") {
  DeviceStore store;
  store.fill();
  REQUIRE(store.hide(7).ok());
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(store.find_residue({7}) == "");
  const std::uint64_t all_bytes = std::uint64_t{DeviceStore::kEntries} * 100;
  CHECK(report->rewritten_bytes < all_bytes / 10);
  CHECK(store.check() == "");
  // Merges and another erasure come by.
  REQUIRE(store.hide(8).ok());
  REQUIRE(store.engine->erase().ok());
  CHECK(store.find_residue({7, 8}) == "");
  CHECK(store.check() == "");
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  CHECK(store.find_residue({7, 8}) == "");
  CHECK(store.check() == "");
}

TEST_CASE("the device that files begin or end with is overwritten where it lies, too") {
  constexpr int kLast = DeviceStore::kDevices - 1;
  DeviceStore store;
  store.fill();
  REQUIRE(store.hide(0).ok());
  REQUIRE(store.hide(kLast).ok());
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(store.find_residue({0, kLast}) == "");
  const std::uint64_t all_bytes = std::uint64_t{DeviceStore::kEntries} * 100;
  CHECK(report->rewritten_bytes < all_bytes / 10);
  CHECK(store.check() == "");
  // Bounds that name no key lead to what is erased later.
  REQUIRE(store.hide(1).ok());
  REQUIRE(store.hide(20).ok());
  REQUIRE(store.engine->erase().ok());
  CHECK(store.find_residue({0, 1, 20, kLast}) == "");
  CHECK(store.check() == "");
}

TEST_CASE(
    "a crash while the device that files begin with is erased leaves nothing of it, no damage") {
  const std::uint64_t cuts = std::max<std::uint64_t>(test::share_of(40), 5);
  const auto life = [](std::uint64_t cut_at) {
    DeviceStore store;
    store.fill();
    REQUIRE(store.hide(0).ok());
    const std::uint64_t before = store.disk.operations();
    if (cut_at != 0) store.disk.stop_at(cut_at);
    const bool erased = store.engine->erase().ok();
    const std::uint64_t operations = store.disk.operations() - before;
    if (cut_at == 0) return operations;
    CAPTURE(cut_at);
    store.close();
    store.disk.power_cut(cut_at, test::CutPolicy::Any);
    CHECK_FALSE(erased);
    test::RecordingObserver observer;
    const auto report = check_store(store.disk, store.options, observer);
    REQUIRE(report.ok());
    INFO(observer.all());
    CHECK(report->problems == 0);
    REQUIRE(store.open().ok());
    REQUIRE(store.engine->erase().ok());
    CHECK(store.find_residue({0}) == "");
    CHECK(store.check() == "");
    return operations;
  };
  const std::uint64_t operations = life(0);
  REQUIRE(operations > cuts);
  for (std::uint64_t i = 1; i <= cuts; ++i) life(i * operations / (cuts + 1));
}

// After a sync that failed they are read, and nothing writes them any more.
TEST_CASE("zeros that could not be synced are written again, by the next process, too") {
  const auto life = [](std::uint64_t nth_sync, bool restarts) {
    DeviceStore store;
    store.fill();
    REQUIRE(store.hide(0).ok());
    store.disk.fail_nth(test::Operation::LogSync, nth_sync, EIO, test::FaultMode::Once, "/v");
    const bool erased = store.engine->erase().ok();
    const bool failed = store.disk.faults() > 0;
    store.disk.clear_faults();
    CAPTURE(nth_sync);
    CAPTURE(restarts);
    CHECK(erased == !failed);
    if (restarts) {
      store.disk.kill_process(nth_sync);
      store.close();
      REQUIRE(store.open().ok());
    }
    const auto report = store.engine->erase();
    INFO(report.status().to_string());
    REQUIRE(report.ok());
    CHECK(store.find_residue({0}) == "");
    CHECK(store.check() == "");
    return failed;
  };
  for (const bool restarts : {false, true}) {
    std::uint64_t syncs = 0;
    while (life(syncs + 1, restarts)) ++syncs;
    CHECK(syncs > 2);
  }
}

TEST_CASE("a file with overwritten items can be looked into, and repaired without its manifest") {
  DeviceStore store;
  store.fill();
  REQUIRE(store.hide(7).ok());
  REQUIRE(store.engine->erase().ok());
  const auto files = store.engine->locate(store.id, {});
  REQUIRE(files.ok());
  std::string shown;
  for (const FileShare& file : *files) {
    if (file.layer != FileLayer::Values) continue;
    const auto text = inspect_file(store.disk, file.path);
    INFO(text.status().to_string());
    REQUIRE(text.ok());
    shown += *text;
  }
  CHECK(shown.find("erased items") != std::string::npos);
  store.close();
  const auto entries = store.disk.list_directory("/m/store");
  REQUIRE(entries.ok());
  for (const auto& entry : *entries)
    if (entry.name.starts_with("MANIFEST-"))
      REQUIRE(store.disk.remove_file("/m/store/" + entry.name).ok());
  test::RecordingObserver observer;
  const auto repaired = repair_store(store.disk, store.options, observer);
  INFO(repaired.status().to_string());
  REQUIRE(repaired.ok());
  CHECK(repaired->losses == 1);  // the manifest
  REQUIRE(store.open().ok());
  CHECK(store.find_residue({}).starts_with("lost: d107"));
  CHECK(store.find_residue({7}) == "");
}

TEST_CASE("an erasure does not wait for a merge that runs, and that is done afterwards") {
  test::EngineFixture store;
  store.options.compress = false;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("plant");
  constexpr int kCount = 8000;
  const auto key = [](int i) { return std::to_string(100 + i % 50) + std::to_string(10000 + i); };
  for (int n = 0; n < kCount; ++n) {
    const int i = n * 7919 % kCount;
    REQUIRE(store.put(id, key(i), secret("v", i) + Bytes(1000, 'x'), Durability::Async).ok());
    if (n % 1000 == 999) REQUIRE(store.engine->flush().ok());
  }
  const auto written = [&] { return store.engine->stats().values.bytes_written; };
  const auto relocations = [&] { return store.engine->stats().compaction.relocations; };
  store.executor.run_all();
  REQUIRE(relocations() == 0);
  const std::uint64_t flushed = store.disk.used_bytes("/v");
  // Once nobody writes, all of it is put into one order.
  const auto in_its_middle = [&] { return store.disk.used_bytes("/v") >= flushed + (3u << 20); };
  for (int turn = 0; turn < 100'000 && !in_its_middle(); ++turn) {
    if (store.executor.run_one()) continue;
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
  }
  REQUIRE(in_its_middle());
  REQUIRE(relocations() == 0);
  const std::uint64_t before = written();
  WriteBatch batch;
  batch.erase_range(id, "107", "108");
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  CHECK(written() - before < 4u << 20);  // the whole is twice as much
  for (int turn = 0; turn < 20; ++turn) {
    store.executor.run_all();
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
  }
  CHECK(written() - before > 7u << 20);
  for (int i = 0; i < kCount; ++i) {
    const bool gone = i % 50 == 7;
    REQUIRE(store.engine->get(id, key(i), {}).ok() == !gone);
  }
  store.reopen();
  CHECK(store.get(id, key(8)).substr(0, 17) == secret("v", 8));
}

TEST_CASE("who reads what lies beside the erased does not hold it up") {
  DeviceStore store;
  store.fill();
  for (int i = 0; i < 400; ++i)
    REQUIRE(store.put(store.other, "k" + std::to_string(1000 + i % 100), Bytes(100, 'o')).ok());
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({store.id, store.other}, {}).ok());
  REQUIRE(store.put(store.other, "k1000", "in memory").ok());
  const auto snapshot = store.engine->snapshot();
  // Files and a memtable that only the snapshot reads from here on.
  for (int i = 0; i < 100; ++i)
    REQUIRE(store.put(store.other, "k" + std::to_string(1000 + i), "new").ok());
  REQUIRE(store.engine->compact({store.other}, {}).ok());
  const auto held = store.engine->scan(store.other, {}, {});
  REQUIRE(held.ok());
  // Nothing of device 60 was ever there.
  REQUIRE(store.hide(60).ok());
  const auto report = store.engine->erase();
  INFO(report.status().to_string());
  REQUIRE(report.ok());
  ReadOptions read;
  read.snapshot = snapshot;
  CHECK(store.engine->get(store.other, "k1000", read).value() == "in memory");
  // Files of device 7 are held.
  REQUIRE(store.hide(7).ok());
  CHECK(store.engine->erase().status().code() == StatusCode::Busy);
}

}  // namespace
}  // namespace edgecase::engine
