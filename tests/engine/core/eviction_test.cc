// What gives way when a drive is full: the oldest goes, whatever series it is of, and stays away.
#include "compaction/purge.h"
#include "engine/core/expiring_store.h"

namespace edgecase::engine {
namespace {

using test::ExpiringStore;
using test::kHour;
using test::kSecond;
using test::kStartNs;

constexpr std::int64_t kForeverNs = INT64_MAX;

struct EvictingStore : ExpiringStore {
  // An hour each of two series a time, a table each.
  void fill_hours(int first, int count) {
    for (int hour = first; hour < first + count; ++hour) {
      fill("a1", kStartNs + hour * kHour, 600);
      fill("b1", kStartNs + hour * kHour, 600);
      REQUIRE(engine->flush().ok());
      executor.run_all();
    }
  }
  Eviction plan(std::uint64_t bytes, std::int64_t limit_ns = kForeverNs) const {
    return engine->plan_eviction({{id}, bytes, limit_ns});
  }
  void evict(std::int64_t before_ns) {
    const NamespaceId ids[] = {id};
    const Status done = engine->evict(ids, before_ns);
    CAPTURE(done.to_string());
    REQUIRE(done.ok());
  }
  std::uint64_t value_bytes() const { return engine->stats().values.live_bytes; }
};

}  // namespace

TEST_CASE("eviction takes the oldest of all series: files go whole, no value is read") {
  EvictingStore store;
  store.fill_hours(0, 8);
  const std::uint64_t bytes = store.value_bytes();
  const std::size_t all = store.count();
  const Eviction plan = store.plan(bytes / 4);
  CHECK(plan.before_ns > kStartNs + kHour);
  CHECK(plan.before_ns <= kStartNs + 2 * kHour);
  CHECK(plan.value_bytes >= bytes / 5);

  const std::uint64_t read_before = store.engine->stats().values.bytes_read;
  store.evict(plan.before_ns);
  CHECK(store.count() == all * 6 / 8);  // at once
  const std::uint64_t read_by_count = store.engine->stats().values.bytes_read;
  store.executor.run_all();
  CHECK(store.engine->stats().values.bytes_read == read_by_count);
  CHECK(store.engine->stats().values.bytes_written > 0);
  CHECK(read_by_count >= read_before);
  CHECK(store.engine->stats().expiry.evicted_waiting_bytes == 0);
  CHECK(store.value_bytes() <= bytes * 6 / 8 + bytes / 50);
  CHECK_FALSE(store.has("a1", kStartNs));
  CHECK(store.has("a1", kStartNs + 2 * kHour));
  CHECK(store.has("b1", kStartNs + 7 * kHour));
  store.expect_sound();
}

TEST_CASE("what was evicted stays away: after a reopening, and when it is written again") {
  EvictingStore store;
  store.set("b", 1000 * kHour);  // its own rule keeps nothing
  store.fill_hours(0, 4);
  auto snapshot = store.engine->snapshot();
  store.evict(kStartNs + 2 * kHour);
  ReadOptions then;
  then.snapshot = snapshot;
  CHECK(store.scan(then).size() == 2 * 2 * 600);
  snapshot.reset();
  then.snapshot.reset();
  CHECK(store.engine->evicted_before_ns(store.id) == kStartNs + 2 * kHour);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    store.fill("a1", kStartNs, 10);
    store.fill("b1", kStartNs + 2 * kHour - kSecond, 1);
    CHECK(store.count() == 2 * 2 * 600);
    if (round == 1) REQUIRE(store.engine->flush().ok());
    store.executor.run_all();
    store.expect_sound();
  }
  CHECK(store.engine->evicted_before_ns(store.id) == kStartNs + 2 * kHour);
  store.evict(kStartNs + kHour);  // less than before: nothing changes
  CHECK(store.count() == 2 * 2 * 600);
  // Nor does a rule, set and cleared.
  store.set("a", 5000 * kHour);
  store.set("a", std::nullopt);
  CHECK_FALSE(store.has("a1", kStartNs));
  CHECK(store.has("a1", kStartNs + 2 * kHour));
}

TEST_CASE("a file that holds new and old is emptied once a third of it was evicted, and once") {
  EvictingStore store;
  // One file over all the time, as merges make them.
  store.fill("a1", kStartNs, 3000);
  store.fill("b1", kStartNs, 3000);
  REQUIRE(store.engine->flush().ok());
  store.executor.run_all();
  const std::uint64_t bytes = store.value_bytes();
  store.evict(kStartNs + 300 * kSecond);
  store.executor.run_all();
  CHECK(store.count() == 2 * 2700);
  CHECK(store.value_bytes() == bytes);  // too little for writing the rest again
  CHECK(store.engine->stats().expiry.evicted_waiting_bytes == 0);
  store.evict(kStartNs + 1500 * kSecond);
  CHECK(store.engine->stats().expiry.evicted_waiting_bytes > 0);
  store.executor.run_all();
  CHECK(store.count() == 2 * 1500);
  CHECK(store.value_bytes() < bytes * 6 / 10);
  CHECK(store.engine->stats().expiry.evicted_waiting_bytes == 0);
  const std::uint64_t written = store.engine->stats().values.bytes_written;
  store.executor.advance(kHour);
  store.executor.run_all();
  CHECK(store.engine->stats().values.bytes_written == written);  // at rest
  store.expect_sound();
}

TEST_CASE("a repair, which reads value files, brings back nothing that was evicted") {
  EvictingStore store;
  store.fill_hours(0, 3);
  const std::int64_t before_ns = kStartNs + kHour + 100 * kSecond;  // within the second file
  store.evict(before_ns);
  store.executor.run_all();
  CHECK(store.count() == 2 * 1100);
  CHECK(store.engine->stats().expiry.oldest_ns == before_ns);
  store.close();
  const std::string tables = store.options.metadata_directory + "/tables";
  const auto entries = store.disk.list_directory(tables);
  REQUIRE(entries.ok());
  for (const DirectoryEntry& entry : *entries)
    if (entry.name.ends_with(".meta"))
      REQUIRE(store.disk.remove_file(tables + "/" + entry.name).ok());
  test::RecordingObserver observer;
  const auto repaired = repair_store(store.disk, store.options, observer);
  CAPTURE(repaired.status().to_string());
  REQUIRE(repaired.ok());
  CHECK(repaired->repairs > 0);
  REQUIRE(store.open().ok());
  CHECK(store.count() == 2 * 1100);
  CHECK(store.engine->evicted_before_ns(store.id) == before_ns);
}

TEST_CASE("a plan leaves alone other namespaces, what lies behind its limit, and what went") {
  EvictingStore store;
  store.fill_hours(0, 4);
  const NamespaceId other =
      store.make_namespace("other", {Placement::Values, GroupCodec::Series, 1});
  WriteBatch batch;
  for (int i = 0; i < 1000; ++i) batch.put(other, test::key_at("a1", i), "v");
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  REQUIRE(store.engine->flush().ok());
  const std::uint64_t bytes = store.value_bytes();

  CHECK(store.plan(bytes, kStartNs + kHour).before_ns == kStartNs + kHour);
  CHECK(store.plan(bytes, kStartNs).value_bytes == 0);
  CHECK(store.plan(0).value_bytes == 0);
  CHECK(store.plan(1).before_ns > kStartNs);
  CHECK(store.engine->plan_eviction({{}, bytes, kForeverNs}).value_bytes == 0);
  CHECK(store.engine->plan_eviction({{other}, 1, kForeverNs}).before_ns <= 1000);
  store.evict(kStartNs + 2 * kHour);
  CHECK(store.plan(1).before_ns > kStartNs + 2 * kHour);
  CHECK(store.engine->evicted_before_ns(other) == INT64_MIN);
  REQUIRE(store.engine->drop_namespace(store.id).ok());
  const NamespaceId ids[] = {store.id};
  CHECK(store.engine->evict(ids, kStartNs).code() == StatusCode::NotFound);
}

}  // namespace edgecase::engine
