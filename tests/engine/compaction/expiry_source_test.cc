// When the bytes of what has expired go, and that nothing else does.
#include "compaction/due_sources.h"

#include <cerrno>
#include <functional>

#include "base/coding.h"
#include "engine/core/expiring_store.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

struct PurgingStore : ExpiringStore {
  // Time passes, and background work is done.
  void pass(std::int64_t ns) {
    clock.advance(ns);
    executor.run_all();
    executor.advance(ns);
    executor.run_all();
  }
  std::vector<std::string> value_files() {
    std::vector<std::string> names;
    const auto entries = disk.list_directory(options.values_directory);
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries)
      if (entry.name.ends_with(".val")) names.push_back(entry.name);
    return names;
  }
  void settle() {
    REQUIRE(engine->flush().ok());
    executor.run_all();
  }
};

}  // namespace

TEST_CASE("value files are cut by bucket, and go whole when it has ended: no value is read") {
  PurgingStore store;
  store.set("", 16 * kHour);
  // 16 hours of a reading a minute, of three series.
  for (const char* part : {"a1", "a2", "b1"}) {
    WriteBatch batch;
    for (int i = 0; i < 16 * 60; ++i)
      batch.put(store.id, key_at(part, kStartNs + i * 60 * kSecond), "v");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  }
  store.clock.advance(16 * kHour);
  store.settle();
  const std::size_t files = store.value_files().size();
  CHECK(files >= 16);
  CHECK(files <= kOpenBucketsMax);
  CHECK(store.count() == 3 * 16 * 60);
  store.expect_sound();

  for (int hour = 1; hour <= 18; ++hour) {
    CAPTURE(hour);
    const std::uint64_t read_before = store.engine->stats().values.bytes_read;
    const std::uint64_t written_before = store.engine->stats().values.bytes_written;
    store.pass(kHour);
    CHECK(store.engine->stats().values.bytes_read == read_before);
    CHECK(store.engine->stats().values.bytes_written == written_before);
    CHECK(store.engine->stats().expiry.waiting_bytes == 0);
    const auto live = static_cast<std::size_t>(3 * std::max(0, (16 - hour) * 60));
    CHECK(store.count() == live);
    // A bucket is at most a sixteenth of the retention; no more than that is there still.
    CHECK(store.value_files().size() <= static_cast<std::size_t>(std::max(0, 2 * (18 - hour))));
    if (hour % 6 == 0) store.expect_sound();
  }
  CHECK(store.value_files().empty());
  CHECK(store.engine->stats().metadata.files == 0);
  store.expect_sound();
}

TEST_CASE("in exact mode the bytes of a reading go when it expires, bucket or not") {
  PurgingStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.reopen();
  store.set("", 16 * kHour);
  store.fill("a1", kStartNs, 100);
  store.fill("a2", kStartNs, 50);
  store.fill("b1", kStartNs + 20 * kSecond, 100);
  store.settle();
  store.pass(16 * kHour);
  CHECK(store.count() == 250);
  const auto holds = [&](const std::string& needle) {
    for (const std::string& name : store.value_files()) {
      const auto file = store.disk.open_file("/v/store/" + name);
      REQUIRE(file.ok());
      Bytes bytes((*file)->size_bytes(), '\0');
      REQUIRE((*file)->read(0, bytes.size(), bytes.data()).ok());
      if (bytes.find(needle) != Bytes::npos) return true;
    }
    return false;
  };
  REQUIRE(store.put(store.id, key_at("a9", kStartNs + 30 * kSecond), "a canary").ok());
  REQUIRE(store.put(store.id, key_at("a9", kStartNs + 90 * kSecond), "it lives").ok());
  store.settle();
  CHECK(holds("a canary"));
  store.pass(30 * kSecond);
  CHECK(holds("a canary"));
  store.pass(kSecond / 2);  // both checks of half a second lie within
  CHECK_FALSE(holds("a canary"));
  CHECK(holds("it lives"));
  CHECK(store.engine->stats().expiry.waiting_bytes == 0);
  CHECK(store.count() == 69 + 19 + 89 + 1);
  store.expect_sound();
}

TEST_CASE("in exact mode what has expired as a whole goes unread, before its bucket ends") {
  PurgingStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.reopen();
  store.set("", 16 * kHour);  // buckets of half an hour and more
  // Groups of one series and groups of two.
  for (const char* part : {"a1", "b1", "b2"}) store.fill(part, kStartNs, part[0] == 'a' ? 500 : 3);
  store.settle();
  REQUIRE_FALSE(store.value_files().empty());
  SUBCASE("at once") {
    store.pass(16 * kHour + 500 * kSecond);
    CHECK(store.value_files().empty());
    const Stats stats = store.engine->stats();
    CHECK(stats.reads.value_reads == 0);
    CHECK(stats.expiry.purges == 0);
    CHECK(stats.expiry.dropped_files > 0);
  }
  SUBCASE("but for its last reading") {
    store.pass(16 * kHour + 499 * kSecond);
    // The series that lives on has the groups around its last reading read, of some twenty.
    CHECK(store.engine->stats().reads.value_reads <= 2);
    CHECK(store.count() == 1);
    CHECK(store.has("a1", kStartNs + 499 * kSecond));
    store.expect_sound();
    store.pass(2 * kSecond);
    CHECK(store.value_files().empty());
  }
}

TEST_CASE("compact() ends although something expires between any two slices") {
  PurgingStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.reopen();
  store.set("", 1000 * kSecond);
  store.fill("a1", kStartNs, 1000);
  store.settle();
  store.pass(999 * kSecond);
  constexpr int kTurnsMax = 300;
  int turns = 0;
  std::function<void()> tick = [&] {
    if (++turns >= kTurnsMax) return;  // or it would never fail
    store.clock.advance(2 * kSecond);
    store.executor.schedule(Lane::Compaction, tick);
  };
  store.executor.schedule(Lane::Compaction, tick);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  CHECK(turns < 60);
  turns = kTurnsMax;
  store.executor.run_all();
}

TEST_CASE("a rule holds for what is stored: shorter ones empty files, longer ones keep them") {
  PurgingStore store;
  store.fill("a1", kStartNs, 1000);
  store.fill("b1", kStartNs, 1000);
  store.settle();
  CHECK(store.value_files().size() == 1);
  SUBCASE("a first rule") {
    store.set("a", 100 * kSecond);
    store.pass(1000 * kSecond);
    CHECK(store.count() == 1100);
    store.pass(110 * kSecond);
    CHECK(store.count() == 1000);
    CHECK(store.engine->stats().expiry.waiting_bytes == 0);
    store.expect_sound();
    CHECK(store.count() == 1000);
  }
  SUBCASE("lengthened before its end") {
    store.set("", 1000 * kSecond);
    store.pass(500 * kSecond);
    store.set("a", 100 * kHour);
    store.pass(2000 * kSecond);
    CHECK(store.count() == 1000);
    store.expect_sound();
    store.pass(98 * kHour);
    CHECK(store.count() == 1000);
    store.pass(2 * kHour);
    CHECK(store.count() == 0);
    store.pass(9 * kHour);
    CHECK(store.value_files().empty());
  }
  SUBCASE("lengthened after some of it has expired") {
    store.set("", 1000 * kSecond);
    store.pass(1500 * kSecond);
    CHECK(store.count() == 1000);
    store.set("", kRetentionForever);
    store.pass(100 * kHour);
    CHECK(store.count() == 1000);
    store.expect_sound();
    CHECK(store.count() == 1000);
  }
  SUBCASE("shortened") {
    store.set("", 100 * kHour);
    store.settle();
    store.set("a", kSecond);
    store.pass(2000 * kSecond);
    CHECK(store.count() == 1000);
    for (const auto& name : store.value_files()) CAPTURE(name);
    const Stats stats = store.engine->stats();
    CHECK(stats.values.live_bytes < 8'000);
    CHECK(stats.compaction.garbage_bytes < 1'000);
    store.expect_sound();
  }
}

TEST_CASE("what comes to rest with rules stays at rest") {
  PurgingStore store;
  store.set("a", 1000 * kHour);
  store.fill("a1", kStartNs, 500);
  store.fill("b1", kStartNs, 500);
  store.settle();
  store.pass(kHour);
  const Stats before = store.engine->stats();
  for (int i = 0; i < 20; ++i) store.pass(10 * kSecond);
  const Stats after = store.engine->stats();
  CHECK(after.values.bytes_written == before.values.bytes_written);
  CHECK(after.compaction.metadata_bytes == before.compaction.metadata_bytes);
  CHECK(after.expiry.purges == before.expiry.purges);
}

TEST_CASE("no file is dropped while the clock is not trusted") {
  PurgingStore store;
  store.set("", kHour);
  store.fill("a1", kStartNs, 100);
  store.settle();
  store.clock.set_trust(ClockTrust::Untrusted);
  store.pass(100 * kHour);
  CHECK(store.value_files().size() >= 1);
  CHECK(store.count() == 100);
  store.clock.set_trust(ClockTrust::Trusted);
  store.pass(10 * kSecond);
  CHECK(store.value_files().empty());
}

TEST_CASE("what has expired before it is flushed never reaches a table") {
  PurgingStore store;
  store.set("", kHour);
  store.fill("a1", kStartNs, 100);
  store.fill("b1", kStartNs, 100);
  store.clock.advance(kHour + 50 * kSecond + 1);
  store.settle();
  CHECK(store.count() == 2 * 49);
  std::uint64_t entries = 0;
  for (const auto& event : store.listener.flushes) entries += event.entries;
  CHECK(entries == 200);
  store.clock.set_trust(ClockTrust::Untrusted);
  CHECK(store.engine->stats().expiry.oldest_ns == kStartNs + 51 * kSecond);
}

TEST_CASE("random rules, evictions, flushes, merges and reopenings agree with a list of readings") {
  const std::uint64_t seed = test::test_seed(7);
  CAPTURE(seed);
  SeededRandom random(seed);
  PurgingStore store;
  if (random.below(2) == 0) {
    store.options.expiry = ExpiryMode::Exact;
    store.reopen();
  }
  const std::vector<std::string> parts = {"a1", "a2", "b1", "b2", "c1"};
  const std::vector<std::string> scopes = {"", "a", "a1", "b", "b2", "c1"};
  std::map<std::string, std::int64_t> rules;
  std::map<std::string, std::int64_t> gone_before;  // by part: what has expired once
  std::map<Bytes, Bytes> all;
  const auto retention_of = [&](const std::string& part) {
    for (std::size_t size = part.size() + 1; size-- > 0;) {
      const auto found = rules.find(part.substr(0, size));
      if (found != rules.end()) return found->second;
    }
    return kRetentionForever;
  };
  const auto expire = [&] {
    for (const std::string& part : parts) {
      const std::int64_t retention_ns = retention_of(part);
      if (retention_ns == kRetentionForever) continue;
      const auto [at, first] = gone_before.try_emplace(part, INT64_MIN);
      at->second = std::max(at->second, store.clock.wall_ns() - retention_ns);
    }
  };
  const auto live = [&] {
    std::map<Bytes, Bytes> left;
    for (const auto& [key, value] : all) {
      const auto gone = gone_before.find(key.substr(0, 2));
      const std::int64_t time_ns = time_of_ordinal(load_ordinal(key.data() + 2));
      if (gone == gone_before.end() || time_ns >= gone->second) left[key] = value;
    }
    return left;
  };
  const auto steps = static_cast<int>(test::share_of(400));
  for (int step = 0; step < steps; ++step) {
    CAPTURE(step);
    switch (random.below(10)) {
      case 0: {
        const std::string& scope = scopes[random.below(scopes.size())];
        const auto seconds = static_cast<std::int64_t>(1 + random.below(20'000));
        expire();
        if (random.below(3) == 0) {
          store.set(scope, std::nullopt);
          rules.erase(scope);
        } else {
          rules[scope] = random.below(4) == 0 ? kRetentionForever : seconds * kSecond;
          store.set(scope, rules[scope]);
        }
        break;
      }
      case 1: store.pass(static_cast<std::int64_t>(random.below(3'000)) * kSecond + 1); break;
      case 2: REQUIRE(store.engine->flush().ok()); break;
      case 3: store.executor.run_all(); break;
      case 4:
        if (random.below(4) == 0) REQUIRE(store.engine->compact({store.id}, {}).ok());
        break;
      case 5:
        if (random.below(4) == 0) store.reopen();
        break;
      case 6: {
        if (random.below(4) != 0) break;
        const EvictionRequest request{{store.id}, 1 + random.below(20'000), store.clock.wall_ns()};
        const edgecase::Eviction plan = store.engine->plan_eviction(request);
        if (plan.value_bytes == 0) break;
        expire();
        const NamespaceId ids[] = {store.id};
        REQUIRE(store.engine->evict(ids, plan.before_ns).ok());
        for (const std::string& part : parts) {
          const auto [at, first] = gone_before.try_emplace(part, INT64_MIN);
          at->second = std::max(at->second, plan.before_ns);
        }
        break;
      }
      default: {
        WriteBatch batch;
        const std::string& part = parts[random.below(parts.size())];
        const auto age = static_cast<std::int64_t>(random.below(10'000)) * kSecond;
        for (std::uint64_t i = random.below(30); i > 0; --i) {
          const Bytes key =
              key_at(part, store.clock.wall_ns() - age + static_cast<int>(i) * kSecond);
          if (random.below(10) == 0) {
            batch.remove(store.id, key);
            all.erase(key);
          } else {
            const Bytes value(1 + random.below(200), static_cast<char>('a' + random.below(26)));
            batch.put(store.id, key, value);
            all[key] = value;
          }
        }
        REQUIRE(store.engine->write(batch, Durability::Sync).ok());
      }
    }
    expire();
    const std::map<Bytes, Bytes> found = store.scan();
    const std::map<Bytes, Bytes> wanted = live();
    std::string difference;
    for (const auto& [key, value] : found)
      if (!wanted.contains(key) || wanted.at(key) != value)
        difference +=
            "unwanted " + key.substr(0, 2) + " " +
            std::to_string((store.clock.wall_ns() - time_of_ordinal(load_ordinal(key.data() + 2))) /
                           kSecond) +
            " s old\n";
    for (const auto& [key, value] : wanted)
      if (!found.contains(key))
        difference +=
            "missing " + key.substr(0, 2) + " " +
            std::to_string((store.clock.wall_ns() - time_of_ordinal(load_ordinal(key.data() + 2))) /
                           kSecond) +
            " s old\n";
    CAPTURE(difference);
    REQUIRE(found == wanted);
    if (step % 100 == 99) store.expect_sound();
  }
  ReadOptions reverse;
  reverse.direction = Direction::Reverse;
  CHECK(store.scan(reverse) == live());
  const auto counted = store.engine->range_stats(store.id, {}, {});
  REQUIRE(counted.ok());
  CHECK(counted->entries == live().size());
}

TEST_CASE("a power cut at any moment of a drop, a purge or a rule's change brings nothing back") {
  // Each round stops the drives one operation later, until all of it fits before the stop.
  bool done = false;
  for (std::uint64_t stop = 1; !done; stop += test::share_step()) {
    CAPTURE(stop);
    PurgingStore store;
    store.set("b", 1000 * kSecond);
    store.fill("a1", kStartNs, 50);
    store.fill("b1", kStartNs, 50);
    store.fill("b2", kStartNs + 600 * kSecond, 50);
    store.settle();
    store.clock.advance(1200 * kSecond);
    REQUIRE(store.count() == 100);
    store.disk.stop_at(stop);
    const RetentionRule shorter{store.id, "b2", kSecond};
    const bool acknowledged = store.engine->set_retention({shorter}).ok();
    store.executor.run_all();
    store.executor.advance(30 * kSecond);
    store.executor.run_all();
    done = !store.disk.stopped();
    if (!store.disk.stopped()) store.disk.stop_at(1);
    store.close();
    store.disk.power_cut(stop, test::CutPolicy::Any);
    store.disk.clear_faults();
    const Status opened = store.open();
    CAPTURE(opened.to_string());
    REQUIRE(opened.ok());
    const std::size_t found = store.count();
    // The rule may have reached the drive without an answer, never the reverse.
    CHECK((found == 50 || (!acknowledged && found == 100)));
    if (found == 100) store.set("b2", kSecond);
    store.pass(60 * kSecond);
    CHECK(store.count() == 50);
    CHECK(store.engine->stats().expiry.waiting_bytes == 0);
    store.expect_sound();
  }
}

TEST_CASE("a power cut at any moment of an eviction brings nothing back") {
  bool done = false;
  for (std::uint64_t stop = 1; !done; stop += test::share_step()) {
    CAPTURE(stop);
    PurgingStore store;
    // A file that goes whole, one that is emptied, one that stays.
    for (int file = 0; file < 3; ++file) {
      store.fill("a1", kStartNs + file * 50 * kSecond, 50);
      store.fill("b1", kStartNs + file * 50 * kSecond, 50);
      store.settle();
    }
    const std::int64_t before_ns = kStartNs + 75 * kSecond;
    store.disk.stop_at(stop);
    const NamespaceId ids[] = {store.id};
    const bool acknowledged = store.engine->evict(ids, before_ns).ok();
    store.executor.run_all();
    store.executor.advance(30 * kSecond);
    store.executor.run_all();
    done = !store.disk.stopped();
    if (!store.disk.stopped()) store.disk.stop_at(1);
    store.close();
    store.disk.power_cut(stop, test::CutPolicy::Any);
    store.disk.clear_faults();
    const Status opened = store.open();
    CAPTURE(opened.to_string());
    REQUIRE(opened.ok());
    const std::size_t found = store.count();
    // It may have reached the drive without an answer, never the reverse.
    CHECK((found == 150 || (!acknowledged && found == 300)));
    REQUIRE(store.engine->evict(ids, before_ns).ok());
    store.pass(60 * kSecond);
    CHECK(store.count() == 150);
    CHECK(store.engine->stats().expiry.evicted_waiting_bytes == 0);
    store.expect_sound();
  }
}

TEST_CASE("a drop waits for a values drive that is away") {
  PurgingStore store;
  store.set("", kHour);
  store.fill("a1", kStartNs, 100);
  store.settle();
  store.clock.advance(10 * kHour);
  store.disk.fail_nth(test::Operation::Any, 1, EIO, test::FaultMode::Sticky, "/v");
  store.executor.advance(20 * kSecond);
  store.executor.run_all();
  CHECK(store.count() == 0);  // invisible all the same
  store.disk.clear_faults();
  CHECK_FALSE(store.value_files().empty());
  for (int i = 0; i < 10; ++i) store.pass(10 * kSecond);
  CHECK(store.value_files().empty());
}

}  // namespace edgecase::engine
