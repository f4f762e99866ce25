// A store whose log was damaged while nobody had it open. Tables that are lost are in
// scrub/scrubber_test.cc, CURRENT and IDENTITY in store_opening_test.cc.
#include <algorithm>
#include <string>
#include <vector>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "log/log_format.h"

namespace edgecase::test {
namespace {

using namespace edgecase::engine;

// The slot of the log that holds most, and where its last byte lies that is not zero.
struct LogEnd {
  std::string path;
  std::size_t end = 0;
};
LogEnd find_log_end(const EngineFixture& store) {
  LogEnd found;
  for (const auto& [path, contents] : store.disk.durable_contents()) {
    if (path.find("/wal/") == std::string::npos) continue;
    const std::size_t last = contents.find_last_not_of('\0');
    if (last != Bytes::npos && last > found.end) found = {path, last};
  }
  REQUIRE(found.end > kLogHeadBytes);
  return found;
}

// As a kill leaves it.
void kill(EngineFixture& store) {
  const auto files = store.disk.durable_contents();
  store.close();
  for (const auto& [path, contents] : files) store.disk.set_contents(path, contents);
}

SecretKey secret_key() {
  SecretKey key;
  key.fill(7);
  return key;
}

}  // namespace

TEST_CASE("a damaged sector inside the log costs what lies in it, and is named") {
  for (const bool encrypted : {false, true}) {
    for (const bool flushed : {false, true}) {
      CAPTURE(encrypted);
      CAPTURE(flushed);
      EngineFixture store;
      if (encrypted) store.options.encryption = MasterKeys{secret_key()};
      REQUIRE(store.open().ok());
      const NamespaceId id = store.make_namespace("default");
      constexpr int kLoggedBatches = 120;
      for (int i = 0; i < kLoggedBatches; ++i) {
        REQUIRE(
            store.put(id, "key " + std::to_string(i), Bytes(90, static_cast<char>('a' + i % 26)))
                .ok());
        REQUIRE(store.put(id, "newest", std::to_string(i)).ok());
        if (flushed && i == 30) REQUIRE(store.engine->flush().ok());
      }
      store.close();
      const LogEnd log = find_log_end(store);
      Bytes contents = store.disk.contents(log.path);
      const std::size_t sector = (kLogHeadBytes + log.end) / 2 / 512 * 512;
      contents.replace(sector, 512, Bytes(512, '\x5a'));
      store.disk.set_contents(log.path, contents);
      for (int start = 0; start < 2; ++start) {
        store.listener.corruptions.clear();
        const Status opened = store.open();
        INFO(opened.to_string());
        REQUIRE(opened.ok());
        if (start == 0) {
          CHECK(store.listener.corruptions.size() == 1);
          const auto damaged = store.engine->damaged_files();
          REQUIRE(damaged.size() == 1);
          CHECK(damaged[0].layer == FileLayer::Log);
          CHECK(damaged[0].path == log.path);
        }
        int there = 0;
        for (int i = 0; i < kLoggedBatches; ++i) {
          const auto got = store.engine->get(id, "key " + std::to_string(i), {});
          if (!got.ok()) continue;
          ++there;
          CHECK(*got == Bytes(90, static_cast<char>('a' + i % 26)));
        }
        CHECK(there < kLoggedBatches);
        CHECK(there > kLoggedBatches - 12);
        CHECK(store.get(id, "key 0") == Bytes(90, 'a'));
        CHECK(store.get(id, "newest") == std::to_string(kLoggedBatches - 1));
        CHECK(store.put(id, "after", std::to_string(start)).ok());
        CHECK(store.get(id, "after") == std::to_string(start));
        CHECK(store.engine->flush().ok());
        CHECK(store.get(id, "newest") == std::to_string(kLoggedBatches - 1));
        store.close();
      }
    }
  }
}

TEST_CASE("a log that came to rest says how far it goes, so that a lost end is told") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 20; ++i)
    REQUIRE(store.put(id, "key " + std::to_string(i), Bytes(100, 'v')).ok());
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  store.clock.advance(2 * kSecondNs);
  store.executor.advance(2 * kSecondNs);
  store.executor.run_all();
  kill(store);
  const LogEnd log = find_log_end(store);
  Bytes contents = store.disk.contents(log.path);
  const std::size_t sector = log.end / 512 * 512;
  contents.replace(sector, 512, Bytes(512, '\0'));
  store.disk.set_contents(log.path, contents);
  REQUIRE(store.open().ok());
  REQUIRE(store.listener.corruptions.size() == 1);
  CHECK(store.engine->damaged_files().size() == 1);
  CHECK(store.get(id, "key 0") == Bytes(100, 'v'));
  CHECK_FALSE(store.engine->get(id, "key 19", {}).ok());
  // What is written then lies behind what is lost.
  REQUIRE(store.put(id, "key 19", "again").ok());
  store.reopen();
  CHECK(store.get(id, "key 19") == "again");
  CHECK(store.get(id, "key 0") == Bytes(100, 'v'));
}

enum class SegmentHit { Missing, HeadZeroed, HeadUnreadable };

constexpr int kSegmentKeys = 300;

// Keys in a log of several segments, none in tables.
void fill_segments(EngineFixture& store) {
  store.options.wal_segment_bytes = 16u << 10;
  store.options.wal_limit_bytes = 64 * store.options.wal_segment_bytes;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < kSegmentKeys; ++i)
    REQUIRE(store.put(id, "key " + std::to_string(i), Bytes(500, 'v')).ok());
  store.close();
}

// Which of the keys are there, each as it was written.
std::vector<int> keys_of(EngineFixture& store) {
  const NamespaceId id = store.engine->find_namespace("default")->id;
  std::vector<int> there;
  for (int i = 0; i < kSegmentKeys; ++i) {
    const auto got = store.engine->get(id, "key " + std::to_string(i), {});
    if (!got.ok()) continue;
    CHECK(*got == Bytes(500, 'v'));
    there.push_back(i);
  }
  return there;
}

std::vector<std::string> used_slots(const EngineFixture& store) {
  std::vector<std::string> used;
  for (const auto& [path, contents] : store.disk.durable_contents())
    if (path.find("/wal/") != std::string::npos && store.disk.exists(path) &&
        contents.find_first_not_of('\0') != Bytes::npos)
      used.push_back(path);
  return used;
}

void hit_segment(EngineFixture& store, const std::string& path, SegmentHit hit) {
  if (hit == SegmentHit::Missing) REQUIRE(store.disk.remove_file(path).ok());
  if (hit == SegmentHit::HeadUnreadable) store.disk.break_page(path, 0);
  if (hit == SegmentHit::HeadZeroed) {
    Bytes contents = store.disk.contents(path);
    contents.replace(0, 1024, Bytes(1024, '\0'));
    store.disk.set_contents(path, contents);
  }
}

TEST_CASE("a segment of the log that is missing costs what lay in it, and is named") {
  std::size_t slots = 0;
  {
    EngineFixture store;
    fill_segments(store);
    slots = used_slots(store).size();
  }
  REQUIRE(slots >= 5);
  for (const SegmentHit hit :
       {SegmentHit::Missing, SegmentHit::HeadZeroed, SegmentHit::HeadUnreadable}) {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      CAPTURE(slot);
      CAPTURE(static_cast<int>(hit));
      EngineFixture store, repaired;
      for (EngineFixture* const each : {&store, &repaired}) {
        fill_segments(*each);
        hit_segment(*each, used_slots(*each)[slot], hit);
      }
      RecordingObserver observer;
      REQUIRE(check_store(store.disk, store.options, observer).ok());
      CHECK(observer.all().find("is missing") != std::string::npos);
      const Status opened = store.open();
      INFO(opened.to_string());
      REQUIRE(opened.ok());
      const auto damaged = store.engine->damaged_files();
      REQUIRE(damaged.size() == 1);
      CHECK(damaged[0].layer == FileLayer::Log);
      CHECK(damaged[0].problem.find("WAL segment") != std::string::npos);
      CHECK(damaged[0].problem.find("the writes from ") != std::string::npos);
      const std::vector<int> there = keys_of(store);
      CHECK(there.size() < kSegmentKeys);
      CHECK(there.size() >= kSegmentKeys - 2 * kSegmentKeys / slots);
      // A repair keeps as much as a start.
      RecordingObserver told;
      const auto report = repair_store(repaired.disk, repaired.options, told);
      INFO(told.all());
      REQUIRE(report.ok());
      REQUIRE(repaired.open().ok());
      CHECK((keys_of(repaired) == there));
      CHECK(repaired.engine->damaged_files().empty());
      // Writes go on; what was lost is told until it is flushed.
      const NamespaceId id = store.engine->find_namespace("default")->id;
      REQUIRE(store.put(id, "after", "1").ok());
      kill(store);
      REQUIRE(store.open().ok());
      CHECK((keys_of(store) == there));
      CHECK(store.get(id, "after") == "1");
      REQUIRE(store.engine->flush().ok());
      store.reopen();
      CHECK(store.engine->damaged_files().empty());
      CHECK((keys_of(store) == there));
    }
  }
}

TEST_CASE("what was erased stays erased, though the log that told of it is lost") {
  for (const bool flushed : {false, true}) {
    CAPTURE(flushed);
    EngineFixture store;
    fill_segments(store);
    REQUIRE(store.open().ok());
    const NamespaceId id = store.engine->find_namespace("default")->id;
    if (flushed) REQUIRE(store.engine->flush().ok());
    const std::vector<std::string> before = used_slots(store);
    WriteBatch batch;
    batch.erase_range(id, "key 1", "key 2");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    kill(store);
    for (const std::string& path : used_slots(store))
      if (std::find(before.begin(), before.end(), path) == before.end())
        REQUIRE(store.disk.remove_file(path).ok());
    const Status opened = store.open();
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    CHECK(store.get(id, "key 2") == Bytes(500, 'v'));
    CHECK_FALSE(store.engine->get(id, "key 1", {}).ok());
    CHECK_FALSE(store.engine->get(id, "key 17", {}).ok());
    // What is written there afterwards is newer.
    REQUIRE(store.put(id, "key 1", "again").ok());
    REQUIRE(store.engine->erase().ok());
    CHECK(store.engine->stats().erasure.pending_ranges == 0);
    store.reopen();
    CHECK(store.get(id, "key 1") == "again");
    CHECK_FALSE(store.engine->get(id, "key 17", {}).ok());
  }
}

TEST_CASE("a log in which pages cannot be read opens, and says which writes are lost") {
  EngineFixture store;
  fill_segments(store);
  const std::string path = used_slots(store)[1];
  store.disk.break_page(path, 9'000);
  REQUIRE(store.open().ok());
  const auto damaged = store.engine->damaged_files();
  REQUIRE(damaged.size() == 1);
  CHECK(damaged[0].path == path);
  CHECK(damaged[0].problem.find("cannot be read") != std::string::npos);
  CHECK(damaged[0].problem.find("the writes from ") != std::string::npos);
  const std::size_t there = keys_of(store).size();
  CHECK(there < kSegmentKeys);
  CHECK(there > kSegmentKeys - 20);
}

}  // namespace edgecase::test
