// How much a range holds, by metadata wherever that tells.
#include <string>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {

TEST_CASE("range_stats counts each live key once, wherever it and what hides it lie") {
  EngineFixture store;
  store.options.group_bytes = 256;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("plant");
  const auto key = [](int i) { return "k" + std::to_string(100 + i); };
  const auto count = [&](const KeyRange& range) {
    const auto found = store.engine->range_stats(id, range, {});
    REQUIRE(found.ok());
    return found->entries;
  };
  for (int i = 0; i < 60; ++i) REQUIRE(store.put(id, key(i), Bytes(40, 'v')).ok());
  CHECK(count({}) == 60);
  REQUIRE(store.engine->flush().ok());
  CHECK(count({}) == 60);
  for (int i = 0; i < 10; ++i) REQUIRE(store.put(id, key(i), "again").ok());
  WriteBatch batch;
  for (int i = 20; i < 25; ++i) batch.remove(id, key(i));
  batch.remove_range(id, key(40), key(48));
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  for (const bool flushed : {false, true}) {
    CAPTURE(flushed);
    if (flushed) REQUIRE(store.engine->flush().ok());
    CHECK(count({}) == 60 - 5 - 8);
    CHECK(count({key(0), key(20)}) == 20);
    CHECK(count({key(22), key(42)}) == 15);
    CHECK(count({key(40), key(48)}) == 0);
    CHECK(count({key(48), {}}) == 12);
  }
}

TEST_CASE("approximate_size tells from metadata what a range takes") {
  EngineFixture store;
  store.options.coalesce = false;
  store.options.compress = false;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("plant");
  const NamespaceId other = store.make_namespace("other");
  for (int i = 0; i < 64; ++i)
    REQUIRE(store.put(id, "k" + std::to_string(100 + i), Bytes(1000, 'x')).ok());
  REQUIRE(store.put(other, "k100", Bytes(5000, 'x')).ok());
  const auto size = [&](const char* lower, const char* upper) {
    const auto found = store.engine->approximate_size(id, {lower, upper});
    REQUIRE(found.ok());
    return *found;
  };
  CHECK(size("", "") == 0);  // all of it is in memory
  REQUIRE(store.engine->flush().ok());
  const std::uint64_t value_reads = store.engine->stats().reads.value_reads;
  const std::uint64_t all = size("", "");
  CHECK(all > 64'000);
  CHECK(all < 70'000);
  CHECK(size("k100", "k132") > all / 2 - 2000);
  CHECK(size("k100", "k132") < all / 2 + 2000);
  CHECK(size("x", "") == 0);
  CHECK(size("k2", "k1") == 0);
  CHECK(store.engine->stats().reads.value_reads == value_reads);
  REQUIRE(store.engine->drop_namespace(other).ok());
  CHECK_FALSE(store.engine->approximate_size(other, {}).ok());
}

}  // namespace edgecase::test
