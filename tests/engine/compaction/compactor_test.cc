// Compaction through the engine's face: what is written again, what is not, and when it ends.
#include <cerrno>
#include <functional>
#include <map>
#include <string>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

constexpr std::int64_t kSecondNs = 1'100'000'000;

Bytes ordinal_key(std::uint64_t n) {
  Bytes key = "series--";
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(n >> shift));
  return key;
}

struct CompactionFixture : EngineFixture {
  CompactionFixture() {
    options.group_bytes = 2048;
    options.compress = false;
    REQUIRE(open().ok());
    make_namespace("default");
  }

  CompactionStats compaction() const { return engine->stats().compaction; }
  void flush() { REQUIRE(engine->flush().ok()); }
  void compact() {
    const Status compacted = engine->compact({1}, {});
    INFO(compacted.to_string());
    REQUIRE(compacted.ok());
  }
  void rest(int seconds = 3) {
    for (int i = 0; i < seconds; ++i) {
      clock.advance(kSecondNs);
      executor.advance(kSecondNs);
      executor.run_all();
    }
  }
  std::size_t files_in(const std::string& directory) {
    const auto entries = disk.list_directory(directory);
    REQUIRE(entries.ok());
    std::size_t count = 0;
    for (const DirectoryEntry& entry : *entries)
      if (entry.name.ends_with(".val") || entry.name.ends_with(".meta")) ++count;
    return count;
  }
  std::map<Bytes, Bytes> contents(std::shared_ptr<const Snapshot> snapshot = nullptr) {
    ReadOptions read;
    read.snapshot = std::move(snapshot);
    auto iterator = engine->scan(1, {}, read);
    REQUIRE(iterator.ok());
    std::map<Bytes, Bytes> rows;
    for (auto& at = **iterator; at.valid(); at.next()) rows.emplace(at.key(), at.value());
    REQUIRE((*iterator)->status().ok());
    return rows;
  }
};

}  // namespace

TEST_CASE("compaction never rewrites data that comes in order") {
  CompactionFixture store;
  std::uint64_t n = 0;
  std::uint64_t flushed_bytes = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 200; ++i)
      REQUIRE(store.put(1, ordinal_key(n++), Bytes(50, 'v'), Durability::Async).ok());
    store.flush();
    flushed_bytes += store.listener.flushes.back().value_bytes;
    store.rest(1);
  }
  store.compact();
  const Stats stats = store.engine->stats();
  CHECK(stats.values.bytes_written == flushed_bytes);
  CHECK(stats.values.live_bytes == flushed_bytes);
  CHECK(stats.compaction.rewritten_items == 0);
  CHECK(stats.compaction.merges > 5);
  CHECK(stats.compaction.runs == 1);
  CHECK(store.contents().size() == n);
}

TEST_CASE("compaction drops large values that were superseded or deleted, by their records alone") {
  CompactionFixture store;
  std::uint64_t flushed_bytes = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 10; ++i)
      REQUIRE(store
                  .put(1, ordinal_key(static_cast<std::uint64_t>(i)),
                       Bytes(5000, static_cast<char>('a' + round)), Durability::Async)
                  .ok());
    store.flush();
    flushed_bytes += store.listener.flushes.back().value_bytes;
  }
  WriteBatch batch;  // deletes lie in groups
  batch.remove(1, ordinal_key(3));
  batch.put(1, ordinal_key(4), "small now");
  REQUIRE(store.engine->write(batch, Durability::Async).ok());
  store.compact();
  CHECK(store.compaction().copied_items == 8);  // out of the one file that is not wholly dead
  CHECK(store.get(1, ordinal_key(4)) == "small now");
  CHECK(store.engine->get(1, ordinal_key(3), {}).status().code() == StatusCode::NotFound);
  CHECK(store.get(1, ordinal_key(5)) == Bytes(5000, 'f'));
  CHECK(store.contents().size() == 9);
  store.executor.run_all();
  CHECK(store.files_in("/v/store") <= 2);
  CHECK(store.engine->stats().values.live_bytes < flushed_bytes / 4);
}

TEST_CASE("runs that many scans had to open are merged without waiting for quiet") {
  for (const int scans : {0, 2, 300}) {
    CAPTURE(scans);
    CompactionFixture store;
    SeededRandom random(3);
    for (int round = 0; round < 12; ++round) {
      for (int i = 0; i < 1000; ++i) {
        REQUIRE(store
                    .put(1, ordinal_key(random.below(1'000'000)),
                         Bytes(50, static_cast<char>('a' + round)), Durability::Async)
                    .ok());
      }
      store.flush();
      store.executor.run_all();
    }
    const std::map<Bytes, Bytes> before = store.contents();
    const CompactionStats loaded = store.compaction();
    REQUIRE(loaded.runs >= 12);
    REQUIRE(loaded.relocations == 0);
    for (int i = 0; i < scans; ++i) {
      const Bytes lower = ordinal_key(random.below(1'000'000));
      const auto iterator = store.engine->scan(1, {lower, {}}, {});
      REQUIRE(iterator.ok());
      const auto want = before.lower_bound(lower);
      REQUIRE((*iterator)->valid() == (want != before.end()));
      if (want != before.end()) CHECK((*iterator)->key() == want->first);
    }
    store.executor.run_all();
    CHECK((store.compaction().relocations > 0) == (scans == 300));
    CHECK((store.compaction().runs < 4) == (scans == 300));
    CHECK(store.contents() == before);
  }
}

TEST_CASE("compaction leaves one run, without superseded entries and without deletes") {
  CompactionFixture store;
  std::map<Bytes, Bytes> model;
  SeededRandom random(7);
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 300; ++i) {
      const Bytes key = ordinal_key(random.below(500));
      if (random.below(4) == 0) {
        WriteBatch batch;
        batch.remove(1, key);
        REQUIRE(store.engine->write(batch, Durability::Async).ok());
        model.erase(key);
      } else {
        const Bytes value = std::to_string(round) + Bytes(random.below(60), 'v');
        REQUIRE(store.put(1, key, value, Durability::Async).ok());
        model[key] = value;
      }
    }
    store.flush();
  }
  store.compact();
  CHECK(store.contents() == model);
  const Stats stats = store.engine->stats();
  CHECK(stats.compaction.runs == 1);
  CHECK(stats.compaction.level0_tables == 0);
  CHECK(stats.compaction.superseded_entries > 1000);
  CHECK(stats.compaction.dropped_deletes > 50);
  const auto counted = store.engine->range_stats(1, {}, {});
  REQUIRE(counted.ok());
  CHECK(counted->entries == model.size());
  store.executor.run_all();
  CHECK(store.files_in("/v/store") == stats.values.files);
  CHECK(store.files_in("/m/store/tables") == stats.metadata.files);

  // Nothing is left to do: once more writes nothing.
  const std::uint64_t written = stats.values.bytes_written;
  store.compact();
  CHECK(store.engine->stats().values.bytes_written == written);
  for (const auto& [key, value] : model) {
    WriteBatch batch;
    batch.remove(1, key);
    REQUIRE(store.engine->write(batch, Durability::Async).ok());
  }
  store.compact();
  store.executor.run_all();
  CHECK(store.contents().empty());
  CHECK(store.files_in("/v/store") == 0);
  CHECK(store.files_in("/m/store/tables") == 0);
}

TEST_CASE("compaction comes to rest when nobody writes, and then writes nothing") {
  CompactionFixture store;
  SeededRandom random(8);
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 100; ++i)
      REQUIRE(store
                  .put(1, ordinal_key(random.below(100'000)), Bytes(random.below(80), 'v'),
                       Durability::Async)
                  .ok());
    store.flush();
  }
  store.rest(20);
  const Stats before = store.engine->stats();
  CHECK(before.compaction.relocations > 0);
  CHECK(before.compaction.runs_max <= 4);
  CHECK(store.executor.delayed() == 0);
  CHECK(store.executor.queued() == 0);
  store.rest(20);
  const Stats after = store.engine->stats();
  CHECK(after.values.bytes_written == before.values.bytes_written);
  CHECK(after.metadata.bytes_written == before.metadata.bytes_written);
  CHECK(after.compaction.merges == before.compaction.merges);
}

TEST_CASE("random updates of small values leave little garbage, at a bounded cost" *
          doctest::test_suite("bulk")) {
  CompactionFixture store;
  SeededRandom random(9);
  constexpr std::uint64_t kKeys = 2000;
  const auto value = [&] { return Bytes(100 + random.below(100), 'v'); };
  for (std::uint64_t i = 0; i < kKeys; ++i)
    REQUIRE(store.put(1, ordinal_key(i), value(), Durability::Async).ok());
  store.flush();
  store.compact();
  const std::uint64_t live_bytes = store.engine->stats().values.live_bytes;
  const Stats before = store.engine->stats();
  for (int round = 0; round < 80; ++round) {
    for (int i = 0; i < 200; ++i)
      REQUIRE(store.put(1, ordinal_key(random.below(kKeys)), value(), Durability::Async).ok());
    store.flush();
    store.executor.run_all();
    CAPTURE(round);
    CHECK(store.engine->stats().values.live_bytes < live_bytes * 8 / 5);
  }
  const Stats after = store.engine->stats();
  const std::uint64_t user_bytes = after.user_bytes_written - before.user_bytes_written;
  CHECK(after.values.bytes_written - before.values.bytes_written < 4 * user_bytes);
  store.rest(20);
  CHECK(store.engine->stats().values.live_bytes < live_bytes * 5 / 4);
  CHECK(store.contents().size() == kKeys);
}

TEST_CASE("a store that grows keeps for a while what died, if the drive has room" *
          doctest::test_suite("bulk")) {
  // Relocations by `rounds` of writes, of which every `growing`th is of a new key; others use so
  // much of 16 MiB.
  const auto relocations = [](std::uint64_t growing, std::uint64_t used_mib, int rounds) {
    CompactionFixture store;
    store.disk.set_capacity("/v", 16u << 20);
    store.disk.set_contents("/v/others", Bytes(used_mib << 20, 'o'));
    SeededRandom random(9);
    std::uint64_t keys = 2000;
    const auto put = [&](std::uint64_t key) {
      const Bytes value(100 + random.below(100), 'v');
      REQUIRE(store.put(1, ordinal_key(key), value, Durability::Async).ok());
    };
    for (std::uint64_t i = 0; i < keys; ++i) put(i);
    store.flush();
    store.compact();
    const std::uint64_t before = store.compaction().relocations;
    for (int round = 0; round < rounds; ++round) {
      for (std::uint64_t i = 0; i < 200; ++i)
        put(growing > 0 && i % growing == 0 ? keys++ : random.below(keys));
      store.flush();
      store.executor.run_all();
    }
    return store.compaction().relocations - before;
  };
  CHECK(relocations(2, 0, 18) == 0);
  CHECK(relocations(2, 0, 60) > 0);
  CHECK(relocations(2, 13, 18) > 0);
  CHECK(relocations(0, 0, 12) > 0);
}

TEST_CASE(
    "records of single values of a store that grows are merged a few times, not with each flush") {
  CompactionFixture store;
  store.disk.set_capacity("/v", 64u << 20);
  constexpr std::uint64_t kFlushes = 128;
  constexpr std::uint64_t kEach = 10;
  for (std::uint64_t i = 0; i < kFlushes; ++i) {
    for (std::uint64_t key = 0; key < kEach; ++key)
      REQUIRE(store.put(1, ordinal_key(1000 * key + i), Bytes(5000, 'v'), Durability::Async).ok());
    store.flush();
    store.executor.run_all();
  }
  CAPTURE(store.compaction().carried_items);
  // Once from level 0, then as often as four become one.
  CHECK(store.compaction().carried_items <= kFlushes * kEach * 5);
  CHECK(store.contents().size() == kFlushes * kEach);
}

TEST_CASE("compact() ends while others write, and has merged what was there when it was called") {
  // What is written between any two slices of the compaction lane.
  struct Case {
    const char* name;
    std::function<void(WriteBatch&, std::uint64_t)> write;
  };
  const Bytes large(5000, 'l');
  for (const Case& writes : {
           Case{"small values over large ones",
                [](WriteBatch&batch, std::uint64_t turn) {
                  batch.put(1, ordinal_key(10 + turn % 90), "small");
                }},
           Case{"large values over large ones",
                [&](WriteBatch&batch, std::uint64_t turn) {
                  batch.put(1, ordinal_key(10 + turn % 90), large);
                }},
           Case{"range deletes",
                [](WriteBatch&batch, std::uint64_t turn) {
                  batch.remove_range(1, ordinal_key(10 + turn % 90), ordinal_key(11 + turn % 90));
                  batch.put(1, ordinal_key(10 + turn % 90), "new");
                }},
       }) {
    CAPTURE(writes.name);
    CompactionFixture store;
    for (std::uint64_t i = 0; i < 100; ++i)
      REQUIRE(store.put(1, ordinal_key(i), large, Durability::Async).ok());
    store.flush();
    WriteBatch deletes;
    for (std::uint64_t i = 0; i < 10; ++i) deletes.remove(1, ordinal_key(i));
    REQUIRE(store.engine->write(deletes, Durability::Async).ok());
    store.flush();
    constexpr std::uint64_t kTurnsMax = 300;
    std::uint64_t turns = 0;
    std::function<void()> write = [&] {
      if (++turns >= kTurnsMax) return;  // or it would never fail
      WriteBatch batch;
      writes.write(batch, turns);
      REQUIRE(store.engine->write(batch, Durability::Async).ok());
      store.flush();
      store.executor.schedule(Lane::Compaction, write);
    };
    store.executor.schedule(Lane::Compaction, write);
    store.compact();
    CHECK(turns > 2);
    CHECK(turns < 60);
    CHECK(store.compaction().dropped_items >= 10);
    turns = kTurnsMax;
    store.executor.run_all();
  }
}

TEST_CASE("writers that outrun merges are held back until merges follow" *
          doctest::test_suite("bulk")) {
  CompactionFixture store;
  store.options.memtable_bytes = 64u << 10;
  store.reopen();
  SeededRandom random(10);
  std::size_t level0_max = 0;
  // Nobody else runs what merges: the flush lane goes first, and a write runs no more than it must.
  for (int i = 0; i < 45'000; ++i) {
    const Bytes key = ordinal_key(random.below(1u << 30));
    REQUIRE(store.put(1, key, Bytes(500, 'v'), Durability::Async).ok());
    if (i % 100 == 0)
      level0_max = std::max<std::size_t>(level0_max, store.compaction().level0_tables);
  }
  CHECK(level0_max > 64);
  CHECK(level0_max < 256);
  CHECK(store.engine->stats().stall_ns > 0);
}

TEST_CASE("a snapshot and an iterator keep what they see over compactions") {
  CompactionFixture store;
  for (std::uint64_t i = 0; i < 500; ++i) REQUIRE(store.put(1, ordinal_key(i), "old").ok());
  store.flush();
  auto snapshot = store.engine->snapshot();
  const auto seen = store.contents();
  auto iterator = store.engine->scan(1, {}, {});
  REQUIRE(iterator.ok());
  for (std::uint64_t i = 0; i < 500; ++i) REQUIRE(store.put(1, ordinal_key(i), "new").ok());
  store.compact();
  store.rest();
  CHECK(store.contents(snapshot) == seen);
  std::size_t rows = 0;
  for (auto& at = **iterator; at.valid(); at.next(), ++rows) REQUIRE(at.value() == "old");
  CHECK(rows == 500);
  CHECK(store.files_in("/v/store") == 2);
  snapshot.reset();
  (*iterator).reset();
  store.rest();
  CHECK(store.files_in("/v/store") == 1);
  CHECK(store.get(1, ordinal_key(7)) == "new");
}

TEST_CASE("level 0 is shared, below it each namespace has its own tree") {
  CompactionFixture store;
  store.make_namespace("second", {Placement::Metadata, GroupCodec::Plain, 0});
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Bytes value = "1:" + std::to_string(round);
      const Bytes key = ordinal_key(4 * i + static_cast<std::uint64_t>(round));
      REQUIRE(store.put(1, key, value).ok());
      REQUIRE(store.put(2, key, "2" + value).ok());
    }
    store.flush();
  }
  store.executor.run_all();
  // Small pieces wait for more of them; who asks for a merge does not.
  CHECK(store.compaction().level0_tables == 4);
  CHECK(store.compaction().runs == 0);
  REQUIRE(store.engine->compact({2}, {}).ok());
  CHECK(store.compaction().level0_tables == 0);
  CHECK(store.compaction().runs == 5);
  for (std::uint64_t i = 0; i < 200; ++i) {
    CHECK(store.get(1, ordinal_key(i)) == "1:" + std::to_string(i % 4));
    CHECK(store.get(2, ordinal_key(i)) == "21:" + std::to_string(i % 4));
  }
}

TEST_CASE("small pieces of several namespaces leave level 0 merged, not each for itself") {
  CompactionFixture store;
  store.make_namespace("second", {Placement::Values, GroupCodec::Plain, 0});
  for (std::uint64_t round = 0; round < 16; ++round) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Bytes key = ordinal_key((16 * i + 7 * round) % 800);
      REQUIRE(store.put(1, key, "1:" + std::to_string(round), Durability::Async).ok());
      REQUIRE(store.put(2, key, "2:" + std::to_string(round), Durability::Async).ok());
    }
    store.flush();
    while (store.executor.run_one()) {
    }
    CHECK(store.compaction().level0_tables == (round + 1) % 16);
  }
  CHECK(store.compaction().runs == 2);
  CHECK(store.compaction().relocations == 1);
  CHECK(store.files_in("/m/store/tables") == 2);
  for (std::uint64_t round = 0; round < 16; ++round)
    CHECK(store.get(2, ordinal_key(7 * round % 800)) == "2:" + std::to_string(round));
}

TEST_CASE("compaction that fails at any operation leaves the store as it was, and is tried again") {
  for (const int error : {EIO, ENOSPC}) {
    bool reached = true;
    for (std::uint64_t nth = 1; reached; ++nth) {
      CAPTURE(error);
      CAPTURE(nth);
      CompactionFixture store;
      for (int round = 0; round < 3; ++round) {
        for (std::uint64_t i = 0; i < 100; ++i)
          REQUIRE(
              store.put(1, ordinal_key(7 * i % 50), std::to_string(round), Durability::Async).ok());
        REQUIRE(store.put(1, "large", Bytes(5000, static_cast<char>('0' + round))).ok());
        store.flush();
      }
      store.executor.run_all();
      const auto before = store.contents();
      const std::uint64_t faults = store.disk.faults();
      store.disk.fail_nth(Operation::Any, nth, error, FaultMode::Once);
      const Status compacted = store.engine->compact({1}, {});
      reached = store.disk.faults() > faults;
      store.disk.clear_faults();
      CHECK(store.contents() == before);
      if (!compacted.ok()) {
        CHECK(store.compaction().failures > 0);
        CHECK(store.put(1, "another", "written").ok());
      }
      store.rest(4);
      store.compact();
      store.rest(1);
      auto expected = before;
      if (!compacted.ok()) expected["another"] = "written";
      CHECK(store.contents() == expected);
      CHECK(store.engine->stats().values.degraded.ok());
      CHECK(store.compaction().runs <= 2);
      store.reopen();
      CHECK(store.contents() == expected);
      store.executor.run_all();
      CHECK(store.files_in("/v/store") == store.engine->stats().values.files);
    }
  }
}

}  // namespace edgecase::test
