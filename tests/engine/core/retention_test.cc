#include <algorithm>
#include <cerrno>
#include <vector>

#include "compaction/due_sources.h"
#include "engine/core/expiring_store.h"
#include "engine/core/secrets.h"

namespace edgecase::engine {

// Retention rules through a whole engine: what reads see, and what survives.

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

TEST_CASE("what is older than its rule allows is unreadable to the nanosecond, on every way") {
  for (const int place : {0, 1, 2}) {
    CAPTURE(place);
    ExpiringStore store;
    store.fill("a1", kStartNs, 100);
    store.fill("b1", kStartNs, 100);
    store.fill("b2", kStartNs, 100);
    if (place >= 1) REQUIRE(store.engine->flush().ok());
    if (place == 2) REQUIRE(store.engine->compact({store.id}, {}).ok());
    const auto snapshot = store.engine->snapshot();
    store.set("b", kHour);
    store.set("b2", kRetentionForever);
    store.clock.advance(kHour + 50 * kSecond);  // now the reading of second 50 is an hour old
    CHECK(store.count() == 250);
    CHECK_FALSE(store.has("b1", kStartNs + 49 * kSecond));
    CHECK(store.has("b1", kStartNs + 50 * kSecond));
    CHECK(store.has("b2", kStartNs));
    CHECK(store.has("a1", kStartNs));
    store.clock.advance(1);
    CHECK_FALSE(store.has("b1", kStartNs + 50 * kSecond));
    CHECK(store.count() == 249);
    // Through a snapshot that is older than the rule, too.
    ReadOptions old;
    old.snapshot = snapshot;
    CHECK_FALSE(store.engine->get(store.id, key_at("b1", kStartNs), old).ok());
    CHECK(store.scan(old).size() == 249);
    // In ranges that begin or end within what has expired.
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      ReadOptions how;
      how.direction = direction;
      const auto between = [&](int first, int last) {
        return store
            .scan(how, {key_at("b1", kStartNs + first * kSecond),
                        key_at("b1", kStartNs + last * kSecond)})
            .size();
      };
      CHECK(between(10, 40) == 0);
      CHECK(between(10, 60) == 9);
      CHECK(between(60, 70) == 10);
    }
    // What is written too late is not there.
    REQUIRE(store.put(store.id, key_at("b1", kStartNs), "late").ok());
    CHECK_FALSE(store.has("b1", kStartNs));
    store.expect_sound();
    CHECK(store.count() == 249);
  }
}

TEST_CASE("what expired never returns: not by a rule, a reopening, or a clock that is set back") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 100);
  store.set("", kHour);
  store.clock.advance(kHour + 50 * kSecond);
  REQUIRE(store.count() == 50);
  SUBCASE("lengthened") {
    store.set("", 9 * kHour);
  }
  SUBCASE("cleared") {
    store.set("", std::nullopt);
  }
  SUBCASE("an inner rule that is longer") {
    store.set("a1", 9 * kHour);
  }
  SUBCASE("lengthened, then reopened") {
    store.set("", 9 * kHour);
    store.reopen();
  }
  SUBCASE("reopened after the clock went on, then lengthened") {
    store.close();
    store.clock.set_wall_ns(store.clock.wall_ns() + 10 * kSecond);
    REQUIRE(store.open().ok());
    CHECK(store.count() == 40);
    store.set("", 9 * kHour);
    store.fill("a1", kStartNs, 60);
    CHECK(store.count() == 40);
    store.fill("a1", kStartNs + 60 * kSecond, 50);  // ten that had not been there
  }
  SUBCASE("reopened with the clock set back") {
    store.close();
    store.clock.set_wall_ns(kStartNs);
    REQUIRE(store.open().ok());
  }
  SUBCASE("the clock is set back") {
    store.clock.set_wall_ns(kStartNs);
  }
  SUBCASE("the clock is no longer trusted") {
    store.clock.set_trust(ClockTrust::Untrusted);
  }
  CHECK(store.count() == 50);
  store.fill("a1", kStartNs, 10);
  CHECK(store.count() == 50);
}

TEST_CASE("after a start nothing expires by a clock that is far ahead, until it is confirmed") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 100);
  store.set("", kHour / 2);
  store.clock.advance(kSecond);
  store.close();
  store.clock.set_wall_ns(kStartNs + 640'000 * kHour);
  REQUIRE(store.open().ok());
  REQUIRE(store.engine->flush().ok());
  store.executor.run_all();
  CHECK(store.count() == 100);
  // Nor is what a dead clock said the mark of the next start.
  store.reopen();
  CHECK(store.count() == 100);
  SUBCASE("set right") {
    store.clock.set_wall_ns(kStartNs + kHour / 2 + 50 * kSecond);
    CHECK(store.count() == 50);
  }
  SUBCASE("confirmed") {
    store.clock.set_synchronised(true);
    CHECK(store.count() == 0);
  }
  SUBCASE("not confirmed for as long as a jump is waited for: by the time that passes") {
    store.clock.advance(kHour / 2 + 49 * kSecond);
    CHECK(store.count() == 50);
    store.clock.advance(kHour / 2);
    CHECK(store.count() == 0);
  }
}

TEST_CASE("nothing expires while the clock is not trusted") {
  ExpiringStore store;
  store.clock.set_trust(ClockTrust::Untrusted);
  store.reopen();
  store.fill("a1", kStartNs, 100);
  store.set("", kSecond);
  store.clock.advance(1000 * kHour);
  CHECK(store.count() == 100);
  store.reopen();
  CHECK(store.count() == 100);
  store.clock.set_trust(ClockTrust::Trusted);
  CHECK(store.count() == 0);
}

TEST_CASE("rules are refused that mean nothing, and change nothing then") {
  ExpiringStore store;
  const NamespaceId plain = store.make_namespace("plain");
  const auto code = [&](const std::vector<RetentionRule>& rules) {
    return store.engine->set_retention(rules).code();
  };
  CHECK(code({{store.id, "", kHour}, {plain, "", kHour}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, "", kHour}, {99, "", kHour}}) == StatusCode::NotFound);
  CHECK(code({{store.id, "", 0}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, "", -5}}) == StatusCode::InvalidArgument);
  CHECK(code({{store.id, Bytes(kKeySizeMaxBytes + 1, 'x'), kHour}}) == StatusCode::InvalidArgument);
  CHECK(store.engine->retention_rules().empty());
  CHECK(code({}) == StatusCode::Ok);
}

TEST_CASE("a store without rules knows by its flushes what time it is at least") {
  ExpiringStore store;
  store.fill("a1", kStartNs, 10);
  REQUIRE(store.engine->flush().ok());
  store.close();
  store.clock.set_wall_ns(kStartNs - 72 * kHour);
  REQUIRE(store.open().ok());
  CHECK(store.engine->expiry_now_ns() == kStartNs);
  store.expect_sound();
  // Over a manifest that was written anew, too.
  store.reopen();
  CHECK(store.engine->expiry_now_ns() == kStartNs);
}

TEST_CASE(
    "what is stored of a scope that is new is there again after a start, as its rule keeps it") {
  ExpiringStore store;
  store.set("", kHour);
  REQUIRE(store.engine->set_retention({{store.id, "a1", 9 * kHour, true}}).ok());
  store.fill("a1", kStartNs - 8 * kHour, 10);
  store.fill("b1", kStartNs - 8 * kHour, 10);
  const auto check = [&] {
    CHECK(store.scan().size() == 10);
    CHECK(store.has("a1", kStartNs - 8 * kHour));
  };
  check();
  store.reopen();
  check();
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  store.expect_sound();
  check();
}

TEST_CASE("rules outlive the process and go with their namespace") {
  ExpiringStore store;
  store.set("b", 7);
  store.set("", kHour);
  store.set("c", 9);
  store.set("c", std::nullopt);
  store.reopen();
  const std::vector<RetentionRule> rules = store.engine->retention_rules();
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].prefix.empty());
  CHECK(rules[0].retention_ns == kHour);
  CHECK(rules[1].prefix == "b");
  CHECK(rules[1].retention_ns == 7);
  CHECK(rules[1].namespace_id == store.id);
  REQUIRE(store.engine->drop_namespace(store.id).ok());
  CHECK(store.engine->retention_rules().empty());
  store.reopen();
  CHECK(store.engine->retention_rules().empty());
}

TEST_CASE("exact expiry leaves no byte on either drive, in no file and in no log") {
  for (const bool flushed : {true, false}) {
    CAPTURE(flushed);
    ExpiringStore store;
    store.disk.keep_freed();
    store.options.expiry = ExpiryMode::Exact;
    store.options.removal = Removal::Overwrite;
    store.reopen();
    store.set("", kHour);
    store.set("t", 10 * kHour);
    std::vector<Bytes> needles;
    for (int i = 0; i < 300; ++i) {
      const std::string part = "s" + test::secret("k", i);
      needles.push_back(test::secret("k", i));
      needles.push_back(test::secret("v", i));
      REQUIRE(store.put(store.id, key_at(part, kStartNs + i % 3), test::secret("v", i)).ok());
      REQUIRE(store.put(store.id, key_at("t" + std::to_string(i), kStartNs), "stays").ok());
      if (flushed && i % 100 == 50) REQUIRE(store.engine->flush().ok());
    }
    store.executor.run_all();
    store.reopen();
    CHECK_FALSE(store.disk.find_bytes(needles).empty());
    store.clock.advance(kHour + 3);
    CHECK(store.count() == 300);
    // Within the second.
    for (int i = 0; i < 4; ++i) {
      store.executor.advance(kExactExpiryCheckNs);
      store.clock.advance(kExactExpiryCheckNs);
      store.executor.run_all();
    }
    CHECK(store.disk.find_bytes(needles) == "");
    CHECK(store.count() == 300);
    store.expect_sound();
    CHECK(store.disk.find_bytes(needles) == "");
  }
}

TEST_CASE("retention: a store that does not open notes no time") {
  ExpiringStore store;
  store.set("", kHour);
  store.fill("a", kStartNs, 10);
  store.close();
  const auto names = [&] {
    const auto entries = store.disk.list_directory("/m/store");
    REQUIRE(entries.ok());
    std::vector<std::string> all;
    for (const DirectoryEntry& entry : *entries) all.push_back(entry.name);
    std::ranges::sort(all);
    return all;
  };
  const std::vector<std::string> before = names();
  store.clock.advance(kHour / 2);
  // After the directory of the store: that of its log.
  store.disk.fail_nth(test::Operation::ListDirectory, 2, EIO, test::FaultMode::Once, "/m");
  CHECK(store.open().code() == StatusCode::IoError);
  CHECK(store.disk.faults() == 1);
  store.disk.clear_faults();
  CHECK(names() == before);  // an edit would have begun another manifest
  REQUIRE(store.open().ok());
  CHECK(store.count() == 10);
}

// What gives way when a drive is full: the oldest goes, whatever series it is of, and stays away.

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
