// Values of megabytes: read as they were written, by whichever way they go, and few of them in
// memory at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "edgecase/options.h"
#include "engine/core/engine_fixture.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr std::uint64_t kMebibyte = 1u << 20;

// Keys as those of readings: strips take them where they come in order (buffer/memtable.h).
Bytes large_key(std::uint64_t number) {
  Bytes key = "dev-sens";
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
  return key;
}

void make_memtables_small(EngineFixture& store) {
  store.options.memtable_bytes = kMebibyte;
  store.options.wal_segment_bytes = 16 * kMebibyte;
  store.options.wal_limit_bytes = 64 * kMebibyte;
}

// Puts a batch of its own before each that is committed, and looks at memory when both are in it.
class SmallCompanion final : public CommitCompanion {
 public:
  SmallCompanion(Engine& engine, NamespaceId id) : engine_(engine), id_(id) {}
  void add_to(WriteBatch& batch) override { batch.put(id_, "companion", "x"); }
  void committed(const Status& status) override {
    CHECK(status.ok());
    CHECK(engine_.stats().memtable_bytes < 4 * kMebibyte);
    ++commits;
  }

  int commits = 0;

 private:
  Engine& engine_;
  const NamespaceId id_;
};

}  // namespace

TEST_CASE("engine keeps values that a batch borrows as those that it copies") {
  const std::uint64_t seed = test_seed(7);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int way = 0; way < 8; ++way) {
    CAPTURE(way);
    EngineFixture store;
    make_memtables_small(store);
    if ((way & 1) != 0) store.options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(store.open().ok());
    NamespaceOptions options;
    if ((way & 2) != 0) options.codec = GroupCodec::Series;
    const NamespaceId id = store.make_namespace("data", options);
    std::map<Bytes, Bytes> wanted;
    for (std::uint64_t batches = 0; batches < 12; ++batches) {
      WriteBatch batch;
      std::vector<Bytes> ends;  // live as long as the batch
      ends.reserve(4);
      for (std::uint64_t i = 0; i < 4; ++i) {
        const Bytes key = large_key((way & 4) != 0 ? random.below(1000) : batches * 4 + i);
        const Bytes begin(random.below(20), static_cast<char>('a' + i));
        Bytes& end = ends.emplace_back();
        end.resize(i % 2 == 0 ? random.below(50) : (50u << 10) + random.below(200u << 10));
        for (char& each : end) each = static_cast<char>(random.next());
        batch.put(id, key, begin, end);
        wanted[key] = begin + end;
      }
      REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    }
    const auto compare = [&] {
      for (const auto& [key, value] : wanted) REQUIRE(store.get(id, key) == value);
    };
    compare();
    store.reopen();  // from the log
    compare();
    REQUIRE(store.engine->flush().ok());
    compare();
    REQUIRE(store.engine->compact({id}, {}).ok());
    store.reopen();
    compare();
    CHECK(store.listener.corruptions.empty());
  }
}

TEST_CASE("engine holds one large value in memory at a time") {
  EngineFixture store;
  SUBCASE("in clear") {}
  SUBCASE("encrypted") {
    store.options.encryption = MasterKeys{SecretKey{3}};
  }
  make_memtables_small(store);
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("data");
  SmallCompanion companion(*store.engine, id);
  const Bytes large(3 * kMebibyte, 'v');
  for (std::uint64_t i = 0; i < 5; ++i) {
    if (i == 2) store.engine->set_commit_companion(&companion);
    REQUIRE(store.put(id, large_key(i), large).ok());
    CHECK(store.engine->stats().memtable_bytes < 4 * kMebibyte);
  }
  store.engine->set_commit_companion(nullptr);
  CHECK(companion.commits == 3);
  // The log holds them all again; so does its replay.
  store.close();
  REQUIRE(store.open().ok());
  CHECK(store.engine->stats().memtable_bytes < 4 * kMebibyte);
  REQUIRE(store.engine->flush().ok());
  store.reopen();
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(store.get(id, large_key(i)) == large);
}

TEST_CASE("engine refuses large values that memory has no room for, and takes others") {
  EngineFixture store;
  make_memtables_small(store);
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("data");
  store.disk.set_gone("/v", true);
  const Bytes large(3 * kMebibyte, 'v');
  Status refused;
  for (std::uint64_t i = 0; i < 5 && refused.ok(); ++i)
    refused = store.put(id, large_key(i), large);
  CHECK(refused.code() == StatusCode::Busy);
  CHECK(store.engine->stats().memtable_bytes < 4 * kMebibyte);
  CHECK(store.put(id, "small", "taken").ok());
  CHECK(store.engine->stats().refused.ok());

  store.disk.set_gone("/v", false);
  store.executor.advance(20'000'000'000);
  store.executor.run_all();
  CHECK(store.put(id, large_key(9), large).ok());
  store.reopen();
  CHECK(store.get(id, "small") == "taken");
  CHECK(store.get(id, large_key(0)) == large);
  CHECK(store.get(id, large_key(9)) == large);
}

TEST_CASE("engine tells what memtables snapshots keep that are in tables") {
  EngineFixture store;
  make_memtables_small(store);
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("data");
  const Bytes large(kMebibyte / 2, 'v');
  REQUIRE(store.put(id, "a", large).ok());
  auto snapshot = store.engine->snapshot();
  CHECK(!snapshot->keeps_memory());
  REQUIRE(store.engine->flush().ok());
  CHECK(snapshot->keeps_memory());
  CHECK(!store.engine->snapshot()->keeps_memory());
  CHECK(store.engine->stats().kept_memtable_bytes >= large.size());
  CHECK(!store.engine->is_short_of_memory());
  REQUIRE(store.put(id, "b", large).ok());
  const auto second = store.engine->snapshot();
  const auto iterator = store.engine->scan(id, {}, {});
  REQUIRE(store.engine->flush().ok());
  CHECK(store.engine->is_short_of_memory());
  snapshot.reset();
  CHECK(!store.engine->is_short_of_memory());
  CHECK(store.engine->stats().kept_memtable_bytes >= large.size());
}

TEST_CASE("engine makes do with less where memory is set aside" * doctest::test_suite("bulk")) {
  EngineFixture store;
  store.options.memory_limit_bytes = 24 * kMebibyte;
  store.options.wal_segment_bytes = 4 * kMebibyte;
  store.options.wal_limit_bytes = 64 * kMebibyte;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("data");
  const auto most = [&](std::uint64_t first) {
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < 5'000; ++i) {
      const Bytes key = large_key(first * 10'000 + i);
      REQUIRE(store.put(id, key, Bytes(1'000, 'v'), Durability::Async).ok());
      bytes = std::max(bytes, store.engine->stats().memtable_bytes);
      store.executor.run_all();
    }
    return bytes;
  };
  const std::uint64_t whole = most(0);
  CHECK(whole > 5 * kMebibyte / 2);
  store.engine->set_aside(0, 16 * kMebibyte);
  REQUIRE(store.engine->flush().ok());
  const std::uint64_t rest = most(1);
  CHECK(rest < whole / 2);
  store.engine->set_aside(16 * kMebibyte, 1u << 30);  // 8 MiB are left in any case
  REQUIRE(store.engine->flush().ok());
  CHECK(most(2) + kMebibyte / 4 > rest);
  store.engine->set_aside(1u << 30, 0);
  REQUIRE(store.engine->flush().ok());
  CHECK(most(3) > 2 * rest);
  // Retention rules take some of it as well.
  const NamespaceId timed = store.make_namespace("timed", {.codec = GroupCodec::Series});
  std::vector<RetentionRule> rules;
  for (std::uint64_t i = 0; i < 65'000; ++i) rules.push_back({timed, large_key(i), 5});
  REQUIRE(store.engine->set_retention(rules).ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(most(4) < whole - whole / 10);
  CHECK(store.get(id, large_key(1)) == Bytes(1'000, 'v'));
}
