// Segments of the log that are full before anyone asks for a sync: when they reach the drive, and
// what a power cut leaves of them.
#include <cerrno>
#include <string>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "log/log_format.h"

namespace edgecase::test {
namespace {

constexpr int kPuts = 400;  // of 4 KiB of records a segment: thirteen

struct UnsyncedStore : EngineFixture {
  explicit UnsyncedStore(std::uint64_t limit_bytes = 40 * (8u << 10)) {
    options.wal_segment_bytes = 8u << 10;
    options.wal_limit_bytes = limit_bytes;
    options.memtable_bytes = 1u << 20;
    REQUIRE(open().ok());
    id = make_namespace("default");
  }

  static Bytes key(int i) { return std::to_string(1'000'000 + i); }
  void put_unsynced(int from, int count) {
    for (int i = from; i < from + count; ++i)
      REQUIRE(put(id, key(i), Bytes(100, static_cast<char>('a' + i % 26)), Durability::Async).ok());
  }
  void put_synced(int i) { REQUIRE(put(id, key(i), "synced").ok()); }
  // Keys 0 to n - 1 are there and no others; answers n.
  int present() {
    int count = 0;
    while (count <= 2 * kPuts && engine->get(id, key(count), {}).ok()) ++count;
    CHECK(engine->range_stats(id, {}, {})->entries == static_cast<std::uint64_t>(count));
    return count;
  }
  void cut(std::uint64_t seed, CutPolicy policy) {
    disk.stop_at(1);  // closing is not to sync
    close();
    disk.power_cut(seed, policy);
  }

  NamespaceId id = 0;
};

}  // namespace

TEST_CASE("engine syncs no segment of the log that nobody asked for, and then all of them") {
  UnsyncedStore store;
  const std::uint64_t syncs = store.engine->stats().wal_syncs;
  store.put_unsynced(0, kPuts);
  CHECK(store.engine->stats().wal_syncs == syncs);
  store.put_synced(kPuts);
  CHECK(store.engine->stats().wal_syncs == syncs + 1);
  store.put_unsynced(kPuts + 1, kPuts);
  store.cut(1, CutPolicy::None);
  REQUIRE(store.open().ok());
  CHECK(store.present() > kPuts);
  CHECK(store.present() < 2 * kPuts);
  CHECK(store.listener.recoveries.back().dropped_segments > 0);
}

TEST_CASE("engine keeps a prefix of what nobody synced, whatever a power cut takes") {
  std::uint64_t dropped = 0;
  for (const CutPolicy policy : {CutPolicy::None, CutPolicy::Prefix, CutPolicy::All,
                                 CutPolicy::Sectors, CutPolicy::Torn, CutPolicy::Any}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(static_cast<int>(policy));
      CAPTURE(seed);
      UnsyncedStore store;
      store.put_unsynced(0, kPuts);
      store.cut(seed, policy);
      RecordingObserver observer;
      const auto report = check_store(store.disk, store.options, observer);
      REQUIRE(report.ok());
      INFO(observer.all());
      CHECK(report->problems == 0);
      REQUIRE(store.open().ok());
      const int first = store.present();
      if (policy == CutPolicy::All) CHECK(first == kPuts);
      const std::uint64_t dropped_now = store.listener.recoveries.back().dropped_segments;
      CHECK((observer.all().find("behind it hold is dropped") != std::string::npos) ==
            (dropped_now > 0));
      dropped += dropped_now;
      // What was dropped does not come back, and what is written instead stays.
      store.put_unsynced(first, 100);
      store.put_synced(first + 100);
      store.cut(seed, CutPolicy::None);
      REQUIRE(store.open().ok());
      CHECK(store.present() == first + 101);
      CHECK(store.listener.recoveries.back().dropped_segments == 0);
    }
  }
  CHECK(dropped > 0);
}

TEST_CASE("engine finds damage to a segment that was synced after it was full") {
  UnsyncedStore store;
  store.put_unsynced(0, kPuts);
  store.close();  // which syncs all
  store.disk.flip_bit("/m/store/wal/slot-00.log", 5000, 3);
  const auto sound = store.disk.durable_contents();
  REQUIRE(store.open().ok());
  CHECK(store.listener.corruptions.size() == 1);
  CHECK(store.engine->damaged_files().size() == 1);
  const auto left = store.engine->range_stats(store.id, {}, {});
  REQUIRE(left.ok());
  CHECK(left->entries > 0);
  CHECK(left->entries < kPuts);
  store.close();
  for (const auto& [path, contents] : sound) store.disk.set_contents(path, contents);
  store.disk.flip_bit("/m/store/wal/slot-00.log", 5000, 3);
  REQUIRE(store.open().ok());
  CHECK(store.engine->damaged_files().empty());
  CHECK(store.present() == kPuts);
}

TEST_CASE("engine copies all that is not durable when the sync of any segment fails") {
  for (std::uint64_t nth = 1; nth <= 14; ++nth) {
    CAPTURE(nth);
    UnsyncedStore store;
    store.put_unsynced(0, kPuts);
    store.disk.fail_nth(Operation::LogSync, nth, EIO, FaultMode::Once, "/m");
    store.put_synced(kPuts);
    store.put_unsynced(kPuts + 1, 10);
    store.put_synced(kPuts + 11);
    CHECK(store.disk.faults() == 1);
    store.disk.clear_faults();
    store.cut(nth, CutPolicy::None);
    REQUIRE(store.open().ok());
    CHECK(store.present() == kPuts + 12);
  }
}

TEST_CASE("engine has its log whole again after a kill while it copies") {
  for (std::uint64_t nth = 1; nth <= 40; ++nth) {
    CAPTURE(nth);
    UnsyncedStore store;
    store.put_unsynced(0, kPuts);
    store.disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Once, "/m");
    store.disk.stop_at(nth);
    static_cast<void>(store.put(store.id, UnsyncedStore::key(kPuts), "x").ok());
    store.close();
    store.disk.kill_process(nth);
    store.disk.clear_faults();
    REQUIRE(store.open().ok());
    CHECK(store.present() >= kPuts);
  }
}

TEST_CASE("engine leaves no more unsynced than it could copy into one segment") {
  UnsyncedStore store(8 * (8u << 10));
  const std::uint64_t syncs = store.engine->stats().wal_syncs;
  for (int i = 0; i < kPuts; ++i) {
    REQUIRE(store.put(store.id, UnsyncedStore::key(i), Bytes(100, 'v'), Durability::Async).ok());
    store.executor.run_all();
  }
  CHECK(store.engine->stats().wal_syncs > syncs);
  CHECK(store.disk.used_bytes("/m/store/wal") <= store.options.wal_limit_bytes);
}

TEST_CASE("engine flushes what it cannot copy when a log of two segments fails") {
  UnsyncedStore store(2 * (8u << 10));
  // As full as it gets: room is counted as of records whose header is 23 bytes longer.
  constexpr std::uint64_t kRoom = (8u << 10) - engine::kLogHeadBytes;
  int count = 0;
  const auto left = [&] { return kRoom - store.engine->stats().wal_bytes; };
  for (; left() > 400; ++count) store.put_unsynced(count, 1);
  for (; left() >= 32; ++count) {
    const Bytes value(left() > 120 ? left() - 120 : 1, 'v');
    const std::uint64_t before = left();
    REQUIRE(store.put(store.id, UnsyncedStore::key(count), value, Durability::Async).ok());
    REQUIRE(left() < before);
  }
  store.disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Once, "/m");
  static_cast<void>(store.put(store.id, UnsyncedStore::key(count), "synced").ok());
  for (int second = 0; second < 30; ++second) {
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
    store.executor.run_all();
  }
  store.put_synced(count);
  store.cut(1, CutPolicy::None);
  REQUIRE(store.open().ok());
  CHECK(store.present() == count + 1);
}

TEST_CASE("engine's repair leaves out what a segment that was given up held behind its end") {
  UnsyncedStore store;
  REQUIRE(store.put(store.id, "a", "1").ok());
  store.disk.fail_nth(Operation::LogSync, 1, EIO, FaultMode::Sticky, "/m");
  CHECK(store.put(store.id, "refused", "2").code() == StatusCode::IoError);
  store.disk.clear_faults();
  store.clock.advance(20'000'000'000);
  store.executor.advance(20'000'000'000);
  REQUIRE(store.put(store.id, "later", "3").ok());  // with the sequence of what was refused
  store.close();
  REQUIRE(store.disk.remove_file("/m/store/CURRENT").ok());
  REQUIRE(store.disk.sync_directory("/m/store").ok());
  RecordingObserver observer;
  const auto repaired = repair_store(store.disk, store.options, observer);
  INFO(repaired.status().to_string());
  REQUIRE(repaired.ok());
  REQUIRE(store.open().ok());
  CHECK(store.get(store.id, "a") == "1");
  CHECK(store.get(store.id, "later") == "3");
  CHECK(store.engine->get(store.id, "refused", {}).status().code() == StatusCode::NotFound);
}

}  // namespace edgecase::test
