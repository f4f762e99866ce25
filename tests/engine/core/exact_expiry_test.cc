// Exact expiry: what is done first, and while merges run.
#include "base/coding.h"
#include "engine/core/expiring_store.h"

namespace edgecase::engine {
namespace {

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

TEST_CASE("what has expired does not wait for a merge that runs, and that is done afterwards") {
  ExpiringStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.options.removal = Removal::Overwrite;
  store.options.group_bytes = 1u << 14;
  store.options.compress = false;
  store.reopen();
  store.set("", 10 * kHour);
  // Each key a series of its own, in any order; every fourth expires in five hours: that is no
  // other life class, so that groups of both lie in one table.
  constexpr int kCount = 8'000;
  const auto key = [](int i) {
    const bool early = i % 4 == 0;
    return key_at("p" + std::to_string(10'000 + i), kStartNs - (early ? 5 : 0) * kHour);
  };
  for (int n = 0; n < kCount; ++n) {
    const int i = n * 7919 % kCount;
    REQUIRE(store.put(store.id, key(i), Bytes(1000, 'v'), Durability::Async).ok());
    if (n % 1000 == 999) REQUIRE(store.engine->flush().ok());
  }
  const auto relocations = [&] { return store.engine->stats().compaction.relocations; };
  const auto waiting = [&] { return store.engine->stats().expiry.waiting_bytes; };
  store.executor.run_all();
  REQUIRE(relocations() == 0);
  const std::uint64_t flushed = store.disk.used_bytes("/v");
  const auto in_its_middle = [&] { return store.disk.used_bytes("/v") >= flushed + (1u << 20); };
  for (int turn = 0; turn < 100'000 && !in_its_middle(); ++turn) {
    if (store.executor.run_one()) continue;
    store.clock.advance(kSecond);
    store.executor.advance(kSecond);
  }
  REQUIRE(in_its_middle());
  store.clock.advance(5 * kHour);
  store.executor.advance(5 * kHour);
  REQUIRE(waiting() > 1u << 20);
  const std::uint64_t before = store.engine->stats().values.bytes_written;
  while (waiting() > 0) REQUIRE(store.executor.run_one());
  // The merge that made way was of everything.
  CHECK(store.engine->stats().values.bytes_written - before < 3u << 20);
  for (int turn = 0; turn < 60; ++turn) {
    store.executor.run_all();
    store.clock.advance(kSecond);
    store.executor.advance(kSecond);
  }
  CHECK(store.engine->stats().compaction.runs_max <= 4);
  for (int i = 0; i < kCount; ++i)
    REQUIRE(store.engine->get(store.id, key(i), {}).ok() == (i % 4 != 0));
}

TEST_CASE("what expires much sooner goes without a record of others being written again") {
  ExpiringStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.options.removal = Removal::Overwrite;
  store.options.group_bytes = 4096;
  store.reopen();
  store.set("", 240 * kHour);
  // Each key a series of its own, in any order; every fourth expires in an hour.
  constexpr int kCount = 8'000;
  const auto is_early = [](int i) { return i % 4 == 1; };
  const auto key = [&](int i) {
    return key_at("p" + std::to_string(10'000 + i), kStartNs - (is_early(i) ? 239 : 0) * kHour);
  };
  for (int n = 0; n < kCount; ++n) {
    const int i = n * 7919 % kCount;
    REQUIRE(store.put(store.id, key(i), Bytes(40, 'v'), Durability::Async).ok());
    if (n % 1000 == 999) REQUIRE(store.engine->flush().ok());
  }
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  store.reopen();
  REQUIRE(store.count() == kCount);
  // Two runs, of groups that are full: each would hold three entries or one.
  CHECK(store.engine->stats().compaction.runs_max == 2);
  CHECK(store.engine->stats().metadata.live_bytes < kCount * 8);
  const CompactionStats before = store.engine->stats().compaction;
  for (int turn = 0; turn < 20; ++turn) {
    store.clock.advance(kHour / 4);
    store.executor.advance(kHour / 4);
    store.executor.run_all();
  }
  const Stats after = store.engine->stats();
  CHECK(after.expiry.waiting_bytes == 0);
  CHECK(after.expiry.dropped_files > 0);
  CHECK(after.expiry.purges == 0);
  CHECK(after.compaction.carried_items == before.carried_items);
  CHECK(after.compaction.rewritten_items == before.rewritten_items);
  CHECK(after.compaction.runs_max == 1);
  for (int i = 0; i < kCount; ++i)
    REQUIRE(store.engine->get(store.id, key(i), {}).ok() == !is_early(i));
  CHECK(store.count() == kCount - kCount / 4);
  store.expect_sound();
}

TEST_CASE("bytes of all that has expired go first, then keys in the manifest, then names") {
  ExpiringStore store;
  store.options.expiry = ExpiryMode::Exact;
  store.options.removal = Removal::Overwrite;
  store.reopen();
  store.set("", 10 * kHour);
  // A file for each half hour, and for each flush: more than one slice overwrites.
  for (int flush = 0; flush < 8; ++flush) {
    for (int i = 0; i < 18; ++i) store.fill("p", kStartNs - i * kHour / 2, 1);
    REQUIRE(store.engine->flush().ok());
  }
  std::vector<std::string> paths;
  for (const auto& [path, content] : store.disk.durable_contents())
    if (path.starts_with("/v/") && path.ends_with(".val")) paths.push_back(path);
  REQUIRE(paths.size() > 100);
  const std::string current = store.options.metadata_directory + "/CURRENT";
  const Bytes manifest = store.disk.contents(current);
  store.clock.advance(12 * kHour);
  store.executor.advance(12 * kHour);
  std::size_t there = paths.size(), full = paths.size();
  bool were_all_blank = false;
  while (there > 0) {
    REQUIRE(store.executor.run_one());
    there = full = 0;
    for (const std::string& path : paths) {
      there += store.disk.exists(path);
      full += !all_zero(store.disk.contents(path));
    }
    if (full > 0) {
      REQUIRE(there == paths.size());
      continue;
    }
    were_all_blank = were_all_blank || there == paths.size();
    CHECK_FALSE(store.engine->stats().expiry.bytes_wait);
    if (there < paths.size()) REQUIRE(store.disk.contents(current) != manifest);
  }
  CHECK(were_all_blank);
  store.expect_sound();
}

}  // namespace
}  // namespace edgecase::engine
