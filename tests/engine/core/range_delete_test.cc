// Range deletes: what they cover, and the whole way of one through an engine.
#include "base/range_deletes.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "version/version.h"

namespace edgecase::engine {
namespace {

constexpr SequenceNumber kNow = UINT64_MAX;

RangeDelete range(const char* lower, const char* upper, SequenceNumber sequence) {
  return {lower, upper, sequence};
}

TEST_CASE("range deletes answer the newest visible sequence that covers a key") {
  const std::vector<RangeDelete> list = {range("b", "f", 10), range("d", "h", 20),
                                         range("x", "x", 30), range("c", "e", 5)};
  const RangeDeletes deletes(list);
  struct Case {
    const char* key;
    SequenceNumber visible, want;
  };
  for (const Case& c : {Case{"a", kNow, 0}, Case{"b", kNow, 10}, Case{"bz", kNow, 10},
                        Case{"c", 9, 5}, Case{"d", kNow, 20}, Case{"d", 19, 10}, Case{"d", 7, 5},
                        Case{"d", 4, 0}, Case{"f", kNow, 20}, Case{"f", 19, 0}, Case{"h", kNow, 0},
                        Case{"x", kNow, 0}, Case{"", kNow, 0}}) {
    CAPTURE(c.key);
    CAPTURE(c.visible);
    CHECK(deletes.covering(c.key, c.visible) == c.want);
  }
  CHECK(deletes.touches("a", "b", 9));
  CHECK_FALSE(deletes.touches("a", "b", 10));
  CHECK_FALSE(deletes.touches("h", "z", 0));
  CHECK(deletes.covers("b", "gz", 9));
  CHECK_FALSE(deletes.covers("b", "gz", 10));
  CHECK_FALSE(deletes.covers("b", "h", 1));
  CHECK_FALSE(deletes.covers("a", "c", 1));
  CHECK((deletes.newest() == std::vector<RangeDelete>{range("b", "d", 10), range("d", "h", 20)}));
  CHECK(RangeDeletes().covering("a", kNow) == 0);
}

TEST_CASE("range deletes answer like a list that is searched, over random ranges") {
  SeededRandom random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<RangeDelete> list;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      const Bytes lower(1, static_cast<char>('a' + random.below(20)));
      const Bytes upper(1, static_cast<char>('a' + random.below(20)));
      list.push_back({lower, upper, 1 + random.below(50)});
    }
    const RangeDeletes deletes(list);
    const RangeDeletes again(deletes.newest());
    std::size_t hint = 0;
    std::size_t jumping = random.below(20);
    for (char c = 'a'; c < 'z'; ++c) {
      const Bytes key(1, c);
      REQUIRE(deletes.covering(key, kNow, hint) == deletes.covering(key, kNow));
      const Bytes anywhere(1, static_cast<char>('a' + random.below(25)));
      REQUIRE(deletes.covering(anywhere, kNow, jumping) == deletes.covering(anywhere, kNow));
      for (const SequenceNumber visible : {SequenceNumber{25}, kNow}) {
        SequenceNumber want = 0;
        for (const RangeDelete& each : list) {
          if (each.lower <= key && key < each.upper && each.sequence <= visible)
            want = std::max(want, each.sequence);
        }
        REQUIRE(deletes.covering(key, visible) == want);
        if (visible == kNow) REQUIRE(again.covering(key, kNow) == want);
      }
    }
  }
}

TEST_CASE("ranges that come one after another answer like a list, and earlier answers stay") {
  SeededRandom random(20261127);
  for (int round = 0; round < 40; ++round) {
    RangeDeleteLog log;
    CHECK(log.layers() == nullptr);
    struct Moment {
      std::size_t ranges;
      std::shared_ptr<const RangeDeleteLayers> layers;
    };
    std::vector<RangeDelete> list;
    std::vector<Moment> moments;
    for (std::uint64_t n = 1 + random.below(300); n > 0; --n) {
      const Bytes lower(1, static_cast<char>('a' + random.below(20)));
      const Bytes upper(1, static_cast<char>('a' + random.below(20)));
      list.push_back({lower, upper, 1 + list.size()});
      log.add(list.back());
      if (random.below(4) == 0) moments.push_back({list.size(), log.layers()});
    }
    moments.push_back({list.size(), log.layers()});
    REQUIRE(log.list() == list);
    CHECK(log.layers() == moments.back().layers);
    for (const Moment& moment : moments) {
      const RangeDeletes want(std::span<const RangeDelete>(list).first(moment.ranges));
      for (char c = 'a'; c < 'z'; ++c) {
        const Bytes key(1, c);
        const Bytes last(1, static_cast<char>(c + static_cast<int>(random.below(3))));
        for (const SequenceNumber visible : {random.below(300), kNow}) {
          REQUIRE(moment.layers->covering(key, visible) == want.covering(key, visible));
          REQUIRE(moment.layers->touches(key, last, visible) == want.touches(key, last, visible));
        }
      }
    }
    log.set({range("b", "d", 7)});
    CHECK(log.layers()->covering("c", kNow) == 7);
    log.set({});
    CHECK(log.layers() == nullptr);
  }
}

TEST_CASE("a range delete ends with its namespace when it has no upper key") {
  const RangeDelete all = make_range_delete(7, "k", {}, 1);
  CHECK(all.lower == make_full_key(7, "k"));
  CHECK(all.upper == make_full_key(8, {}));
  const RangeDelete last = make_range_delete(UINT32_MAX, {}, {}, 1);
  CHECK(make_full_key(UINT32_MAX, Bytes(kKeySizeMaxBytes, '\xff')) < last.upper);
}

struct DeletingStore : test::EngineFixture {
  DeletingStore() {
    options.coalesce_threshold_bytes = 64;
    options.group_bytes = 256;
    REQUIRE(open().ok());
    id = make_namespace("plant");
    other = make_namespace("other");
  }
  Status remove_range(ByteView lower, ByteView upper) {
    WriteBatch batch;
    batch.remove_range(id, lower, upper);
    return engine->write(batch, Durability::Sync);
  }
  void fill(const std::string& value) {
    for (int i = 10; i < 100; ++i) {
      REQUIRE(put(id, "k" + std::to_string(i), value).ok());
      REQUIRE(put(other, "k" + std::to_string(i), value).ok());
    }
  }
  std::string keys(const ReadOptions& options_of_read = {}) {
    std::string all;
    auto scan = engine->scan(id, {}, options_of_read);
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) all += std::string((*scan)->key()) + " ";
    return all;
  }
  std::uint64_t count(NamespaceId of) { return engine->range_stats(of, {}, {})->entries; }
  void expect_sound() {
    close();
    test::RecordingObserver observer;
    const auto report = check_store(disk, options, observer);
    REQUIRE(report.ok());
    CAPTURE(observer.all());
    CHECK(report->problems == 0);
  }

  NamespaceId id = 0;
  NamespaceId other = 0;
};

TEST_CASE("a range delete hides what is older, on every way that reads take") {
  for (const int flushed : {0, 1, 2}) {
    CAPTURE(flushed);
    DeletingStore store;
    store.fill("1");
    if (flushed >= 1) REQUIRE(store.engine->flush().ok());
    const auto before = store.engine->snapshot();
    REQUIRE(store.remove_range("k20", "k90").ok());
    REQUIRE(store.put(store.id, "k50", "2").ok());
    if (flushed == 2) REQUIRE(store.engine->flush().ok());
    const auto check = [&] {
      CHECK(store.get(store.id, "k19") == "1");
      CHECK(store.engine->get(store.id, "k20", {}).status().code() == StatusCode::NotFound);
      CHECK(store.engine->get(store.id, "k89", {}).status().code() == StatusCode::NotFound);
      CHECK(store.get(store.id, "k90") == "1");
      CHECK(store.get(store.id, "k50") == "2");
      CHECK(store.count(store.id) == 21);
      CHECK(store.count(store.other) == 90);
      CHECK(store.keys().find("k19 k50 k90 ") != std::string::npos);
      ReadOptions reverse;
      reverse.direction = Direction::Reverse;
      CHECK(store.keys(reverse).find("k90 k50 k19 ") != std::string::npos);
    };
    check();
    ReadOptions old;
    old.snapshot = before;
    CHECK(store.engine->get(store.id, "k20", old).ok());
    CHECK(store.engine->range_stats(store.id, {}, old)->entries == 90);
    CHECK(store.keys(old).find("k19 k20 k21 ") != std::string::npos);
    store.reopen();
    check();
    REQUIRE(store.engine->flush().ok());
    check();
    REQUIRE(store.engine->compact({store.id, store.other}, {}).ok());
    check();
    store.expect_sound();
  }
}

TEST_CASE("a range delete works within its batch in the order of the batch") {
  DeletingStore store;
  WriteBatch batch;
  batch.put(store.id, "a", "1");
  batch.remove_range(store.id, "a", "c");
  batch.put(store.id, "b", "2");
  batch.remove_range(store.id, "x", "b");  // nothing
  CHECK(batch.count() == 3);
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  CHECK(store.keys() == "b ");
  store.disk.kill_process(1);
  store.reopen();
  CHECK(store.keys() == "b ");
}

TEST_CASE("merges drop what range deletes cover, and then the range deletes go") {
  DeletingStore store;
  store.fill("1");
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.remove_range({}, {}).ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(store.count(store.id) == 0);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  while (store.executor.run_one()) {
  }
  CHECK(store.count(store.id) == 0);
  CHECK(store.count(store.other) == 90);
  store.close();
  // No entry of the namespace is in any table.
  std::uint64_t entries = 0;
  test::RecordingObserver observer;
  const auto report = check_store(store.disk, store.options, observer);
  REQUIRE(report.ok());
  entries = report->entries;
  CHECK(entries == 90);
}

TEST_CASE("range deletes in their thousands stay within their limits") {
  CHECK(range_deletes_max(0) == 8'192);
  CHECK(range_deletes_max(64u << 20) == 8'192);
  CHECK(range_deletes_max(128u << 20) == 16'384);
  CHECK(range_deletes_max(1u << 30) == 32'768);
  DeletingStore store;
  store.fill("1");
  REQUIRE(store.engine->flush().ok());
  WriteBatch too_many;
  for (std::uint32_t i = 0; i <= kRangeDeletesPerBatchMax; ++i)
    too_many.remove_range(store.id, "k", "l");
  CHECK(store.engine->write(too_many, Durability::Sync).code() == StatusCode::InvalidArgument);
  // The same range again and again is one.
  for (int i = 0; i < 2000; ++i) REQUIRE(store.remove_range("k30", "k40").ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(store.count(store.id) == 80);
  // Different ones add up, until the store says so.
  Status status;
  int taken = 0;
  for (; status.ok() && taken < 20'000; ++taken) {
    const std::string at = "k50" + std::to_string(100'000 + taken);
    status = store.remove_range(at, at + "\x01");
    if (taken % 256 == 0) REQUIRE(store.engine->flush().ok());
  }
  CHECK(status.code() == StatusCode::Busy);
  CHECK(taken > 4000);
  CHECK(store.count(store.id) == 80);
  store.reopen();
  CHECK(store.count(store.id) == 80);
}

TEST_CASE("compact() applies range deletes where they touch, and the manifest forgets them") {
  DeletingStore store;
  store.fill(Bytes(40, 'v'));
  REQUIRE(store.engine->compact({store.id, store.other}, {}).ok());
  REQUIRE(store.remove_range("k20", "k30").ok());
  REQUIRE(store.remove_range("k50", "k55").ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(store.engine->stats().compaction.range_deletes == 2);
  const CompactionStats before = store.engine->stats().compaction;
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  const CompactionStats after = store.engine->stats().compaction;
  CHECK(after.range_deletes == 0);
  // Groups hold five or six entries of these: only those that a delete cuts are opened.
  CHECK(after.rewritten_items - before.rewritten_items <= 4);
  CHECK(store.count(store.id) == 90 - 15);
  CHECK(store.count(store.other) == 90);
  store.expect_sound();
}

TEST_CASE("range deletes of a store nobody writes to are applied, and it comes to rest") {
  DeletingStore store;
  store.fill("1");
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.remove_range("k20", "k30").ok());
  REQUIRE(store.engine->flush().ok());
  for (int second = 0; second < 10; ++second) {
    store.executor.run_all();
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
  }
  store.executor.run_all();
  CHECK(store.engine->stats().compaction.range_deletes == 0);
  const std::uint64_t written = store.engine->stats().metadata.bytes_written;
  for (int second = 0; second < 10; ++second) {
    store.clock.advance(1'000'000'000);
    store.executor.advance(1'000'000'000);
    store.executor.run_all();
  }
  CHECK(store.engine->stats().metadata.bytes_written == written);
  CHECK(store.count(store.id) == 80);
}

TEST_CASE("a large value that a small one or a delete superseded goes in quiet and by compact()") {
  for (const bool asked : {false, true}) {
    CAPTURE(asked);
    DeletingStore store;
    store.options.compress = false;
    store.reopen();
    const Bytes large(5000, 'x');
    for (int i = 10; i < 20; ++i) REQUIRE(store.put(store.id, "k" + std::to_string(i), large).ok());
    REQUIRE(store.engine->compact({store.id}, {}).ok());
    CHECK(store.engine->stats().values.live_bytes > 50'000);
    for (int i = 10; i < 19; ++i)
      REQUIRE(store.put(store.id, "k" + std::to_string(i), "small").ok());
    REQUIRE(store.engine->flush().ok());
    if (asked) REQUIRE(store.engine->compact({store.id}, {}).ok());
    for (int second = 0; second < 20 && !asked; ++second) {
      store.executor.run_all();
      store.clock.advance(1'000'000'000);
      store.executor.advance(1'000'000'000);
    }
    store.executor.run_all();
    CHECK(store.engine->stats().values.live_bytes < 12'000);
    CHECK(store.get(store.id, "k19") == large);
    CHECK(store.get(store.id, "k10") == "small");
  }
}

}  // namespace
}  // namespace edgecase::engine
