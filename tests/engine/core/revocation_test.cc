// Whoever reads while something is erased, comes under a shorter rule, is evicted or dropped is not
// shown it from that instant on: iterators and large values that are open, wherever it lies.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/read_view.h"
#include "engine/core/expiring_store.h"

namespace edgecase::engine {
namespace {

using test::ExpiringStore;
using test::key_at;
using test::kHour;
using test::kSecond;
using test::kStartNs;

// Where what is read lies.
enum class Place { Memtable, Level0, Merged };

struct Way {
  Place place = Place::Memtable;
  bool maps = false;
  bool is_sealed = false;
  Direction direction = Direction::Forward;
  bool through_snapshot = false;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const Place place : {Place::Memtable, Place::Level0, Place::Merged})
    for (int bits = 0; bits < 16; ++bits)
      ways.push_back({place, (bits & 1) != 0, (bits & 2) != 0,
                      (bits & 4) != 0 ? Direction::Reverse : Direction::Forward, (bits & 8) != 0});
  return ways;
}

struct ReadStore : test::EngineFixture {
  explicit ReadStore(const Way& way, bool has_large = false) {
    options.map_tables = way.maps;
    options.group_bytes = 512;
    options.erasure_wait_ms = 0;
    if (has_large) options.wal_segment_bytes = 1u << 20;
    if (has_large) options.wal_limit_bytes = 16u << 20;
    if (way.is_sealed) options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(open().ok());
    id = make_namespace("plant", {Placement::Values, GroupCodec::Series, 1});
  }
  void settle(Place place) {
    if (place != Place::Memtable) REQUIRE(engine->flush().ok());
    if (place == Place::Merged) REQUIRE(engine->compact({id}, {}).ok());
  }
  void erase_range(ByteView lower, ByteView upper) {
    WriteBatch batch;
    batch.erase_range(id, lower, upper);
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  NamespaceId id = 0;
};

TEST_CASE("an open iterator does not show what is erased meanwhile, wherever it lies") {
  for (const Way& way : all_ways()) {
    CAPTURE(static_cast<int>(way.place));
    CAPTURE(way.maps);
    CAPTURE(way.is_sealed);
    CAPTURE(way.through_snapshot);
    const bool forward = way.direction == Direction::Forward;
    CAPTURE(forward);
    ReadStore store(way);
    for (int i = 0; i < 300; ++i)
      REQUIRE(store.put(store.id, key_at("a", kStartNs + i), "value" + std::to_string(i)).ok());
    store.settle(way.place);
    ReadOptions read;
    read.direction = way.direction;
    if (way.through_snapshot) read.snapshot = store.engine->snapshot();
    auto scan = store.engine->scan(store.id, {}, read);
    REQUIRE(scan.ok());
    for (int i = 0; i < 10; ++i) (*scan)->next();
    const std::uint64_t before = store.engine->revocations();
    store.erase_range(key_at("a", kStartNs + 5), key_at("a", kStartNs + 295));
    CHECK(store.engine->revocations() == before + 1);
    // As a reader holds it, it is invisible, and pending.
    CHECK(store.engine->erase().status().code() == StatusCode::Busy);
    // Written anew it is something else, and later than what the iterator shows.
    REQUIRE(store.put(store.id, key_at("a", kStartNs + 100), "again").ok());
    std::vector<Bytes> seen;
    for ((*scan)->next(); (*scan)->valid(); (*scan)->next())
      seen.emplace_back(Bytes((*scan)->key()) + Bytes((*scan)->value()));
    CHECK((*scan)->status().ok());
    REQUIRE(seen.size() == 5);
    for (int i = 0; i < 5; ++i) {
      const int number = forward ? 295 + i : 4 - i;
      CHECK(seen[static_cast<std::size_t>(i)] ==
            key_at("a", kStartNs + number) + "value" + std::to_string(number));
    }
    (*scan)->seek(key_at("a", kStartNs + 50));
    CHECK((*scan)->valid());
    CHECK((*scan)->key() == ByteView(key_at("a", kStartNs + (forward ? 295 : 4))));
    scan->reset();
    read.snapshot.reset();
    CHECK(store.engine->erase().ok());
  }
}

TEST_CASE("a large value that is read in pieces ends where it is erased") {
  for (const Way& way : all_ways()) {
    if (way.direction == Direction::Reverse) continue;
    CAPTURE(static_cast<int>(way.place));
    CAPTURE(way.maps);
    CAPTURE(way.is_sealed);
    ReadStore store(way, true);
    for (int i = 0; i < 2; ++i)
      REQUIRE(store.put(store.id, key_at("a", kStartNs + i), Bytes(300u << 10, 'x')).ok());
    store.settle(way.place);
    ReadOptions read;
    read.large_value_bytes = 64u << 10;
    auto scan = store.engine->scan(store.id, {}, read);
    REQUIRE(scan.ok());
    auto erased = (*scan)->large_value();
    REQUIRE(erased.ok());
    REQUIRE(*erased != nullptr);
    (*scan)->next();
    auto kept = (*scan)->large_value();
    REQUIRE(kept.ok());
    REQUIRE(*kept != nullptr);
    CHECK((*erased)->next_piece().ok());
    store.erase_range(key_at("a", kStartNs), key_at("a", kStartNs + 1));
    CHECK((*erased)->next_piece().status().code() == StatusCode::NotFound);
    CHECK((*erased)->next_piece().status().code() == StatusCode::NotFound);
    std::size_t bytes = 0;
    for (;;) {
      const auto piece = (*kept)->next_piece();
      REQUIRE(piece.ok());
      if (piece->empty()) break;
      bytes += piece->size();
    }
    CHECK(bytes == 300u << 10);
    CHECK(store.engine->erase().status().code() == StatusCode::Busy);
    scan->reset();
    erased->reset();
    kept->reset();
    CHECK(store.engine->erase().ok());
  }
}

TEST_CASE("an open iterator obeys a rule that is made shorter, and an eviction") {
  for (const bool evicts : {false, true}) {
    CAPTURE(evicts);
    ExpiringStore store;
    store.fill("a1", kStartNs, 100);
    store.fill("a2", kStartNs, 100);
    store.clock.advance(kHour);
    auto scan = store.engine->scan(store.id, {}, {});
    REQUIRE(scan.ok());
    const auto snapshot = store.engine->snapshot();
    for (int i = 0; i < 10; ++i) (*scan)->next();
    if (evicts) {
      const std::vector<NamespaceId> ids = {store.id};
      REQUIRE(store.engine->evict(ids, kStartNs + 60 * kSecond).ok());
    } else {
      store.set("a", kHour - 60 * kSecond);
    }
    CHECK(store.engine->revocations() > snapshot->revocations());
    std::size_t seen = 0;
    for ((*scan)->next(); (*scan)->valid(); (*scan)->next()) {
      ++seen;
      CHECK((*scan)->key() >= ByteView(key_at((*scan)->key().substr(0, 2) == "a1" ? "a1" : "a2",
                                              kStartNs + 60 * kSecond)));
    }
    CHECK((*scan)->status().ok());
    CHECK(seen == 2 * 40);
    CHECK(store.engine->is_revoked(store.id, key_at("a1", kStartNs), key_at("a1", kStartNs),
                                   snapshot->revocations()));
    CHECK_FALSE(store.engine->is_revoked(store.id, key_at("a1", kStartNs + 60 * kSecond),
                                         key_at("a1", kStartNs + 70 * kSecond),
                                         snapshot->revocations()));
  }
}

TEST_CASE("an open iterator and a large value end with the namespace that is dropped") {
  ReadStore store({}, true);
  for (int i = 0; i < 10; ++i)
    REQUIRE(store.put(store.id, key_at("a", kStartNs + i), Bytes(300u << 10, 'x')).ok());
  ReadOptions read;
  read.large_value_bytes = 64u << 10;
  auto scan = store.engine->scan(store.id, {}, read);
  REQUIRE(scan.ok());
  auto large = (*scan)->large_value();
  REQUIRE(large.ok());
  CHECK((*large)->next_piece().ok());
  REQUIRE(store.engine->drop_namespace(store.id).ok());
  CHECK((*large)->next_piece().status().code() == StatusCode::NotFound);
  (*scan)->next();
  CHECK_FALSE((*scan)->valid());
  CHECK((*scan)->status().code() == StatusCode::NotFound);
  CHECK(store.engine->is_revoked(store.id, "a", "b", 0));
}

TEST_CASE("what was revoked is told by key and by time, and guessed where it is too long ago") {
  Revocations revocations;
  CHECK(revocations.count() == 0);
  revocations.note_erased("b", "d");
  revocations.note();
  struct Case {
    const char *first, *last;
    std::uint64_t since;
    bool want;
  };
  for (const Case& c : {Case{"a", "a", 0, false}, Case{"a", "b", 0, true}, Case{"c", "c", 0, true},
                        Case{"c", "z", 0, true}, Case{"d", "z", 0, false}, Case{"c", "c", 1, false},
                        Case{"c", "c", 2, false}}) {
    CAPTURE(c.first);
    CAPTURE(c.last);
    CAPTURE(c.since);
    CHECK(revocations.has_erased(c.first, c.last, c.since) == c.want);
  }
  for (std::size_t i = 0; i < Revocations::kRangesMax; ++i) revocations.note_erased("x", "y");
  CHECK(revocations.has_erased("a", "a", 0));
  CHECK_FALSE(revocations.has_erased("a", "a", 2));
}

}  // namespace
}  // namespace edgecase::engine
