// Scans that take summaries of groups: they answer as by reading every value, whatever was
// overwritten, deleted, erased, has expired or is seen by an old snapshot.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/coding.h"
#include "engine/core/summed_store.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::as_double;
using test::key_at;
using test::Known;
using test::kSecond;
using test::kStartNs;
using test::value_of;
using Store = test::SummedStore;

TEST_CASE("summaries: whole groups answer unread, also without the values drive") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    Store store(encrypted);
    store.fill("a", 1000);
    CHECK(store.compare({}, {}) == 0);  // memory has values, no groups
    REQUIRE(store.engine->flush().ok());
    const std::uint64_t groups = store.compare({}, {});
    CHECK(groups >= 3);
    // What a bound cuts is read.
    CHECK(store.compare({key_at("a", kStartNs + kSecond), {}}, {}) == groups - 1);
    CHECK(store.compare({{}, key_at("a", kStartNs + 998 * kSecond)}, {}) == groups - 1);
    CHECK(store.compare({}, {}, key_at("a", kStartNs + 998 * kSecond)) == groups - 1);
    ReadOptions reverse;
    reverse.direction = Direction::Reverse;
    CHECK(store.compare({}, reverse) == groups);
    CHECK(store.compare({key_at("a", kStartNs + kSecond), {}}, reverse) == groups - 1);
    CHECK(store.compare({{}, key_at("a", kStartNs + 998 * kSecond)}, reverse) == groups - 1);
    CHECK(store.compare({}, reverse, key_at("a", kStartNs)) == groups - 1);

    store.reopen();
    const Known before = store.ask({}, {}, true);
    store.reopen();
    store.disk.set_gone("/v", true);
    const Known away = store.ask({}, {}, true);
    CHECK(away.entries == 1000);
    CHECK(away.taken == groups);
    CHECK(away.min == before.min);
    CHECK(away.high == before.high);
    const auto cut = store.engine->scan(store.id, {key_at("a", kStartNs + kSecond), {}}, {});
    CHECK_FALSE((cut.ok() ? (*cut)->status() : cut.status()).ok());
    store.disk.set_gone("/v", false);
  }
}

TEST_CASE("summaries: sums of windows are made once, and told of without the values drive") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    Store store(encrypted);
    store.fill("a", 1000);
    CHECK(store.compare_windows({}, {}) == 0);  // memory has values, no groups
    REQUIRE(store.engine->flush().ok());
    CHECK(store.compare_windows({}, {}) >= 4 * 3);
    Store::Windows before, away;
    const std::uint64_t groups = store.add_up({}, {}, 60 * kSecond, 0, true, before);
    store.disk.set_gone("/v", true);
    CHECK(store.add_up({}, {}, 60 * kSecond, 0, true, away) == groups);
    CHECK(away.size() == before.size());
    store.disk.set_gone("/v", false);
    // A group whose item was overwritten, or whose file is gone, is told of no more.
    WriteBatch batch;
    batch.erase_range(store.id, key_at("a", kStartNs), key_at("b", kStartNs));
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    REQUIRE(store.engine->erase().ok());
    CHECK(store.compare_windows({}, {}) == 0);
  }
}

// How many entries are not told of by summaries, where the hour's end is the end of each window.
std::uint64_t decoded_in_hours(Store& store, const std::string& part, int hours) {
  std::uint64_t decoded = 0;
  const std::int64_t first = kStartNs - kStartNs % test::kHour;
  for (int hour = 0; hour <= hours; ++hour) {
    const KeyRange range{key_at(part, first + hour * test::kHour),
                         key_at(part, first + (hour + 1) * test::kHour)};
    const auto iterator = store.scan(range, {}, true);
    NumberSummary numbers;
    while (iterator->valid()) {
      if (iterator->take_summary(range.upper, numbers)) continue;
      ++decoded;
      iterator->next();
    }
    REQUIRE(iterator->status().ok());
  }
  return decoded;
}

TEST_CASE("summaries: groups of dense series end with the hour, after merges too") {
  Store store;
  store.options.group_span_ns = test::kHour;
  store.reopen();
  store.fill("a", 8000);
  store.fill("b", 3000);
  WriteBatch slow;
  for (int i = 0; i < 300; ++i)
    slow.put(store.id, key_at("c", kStartNs + i * 60 * kSecond), value_of(std::int64_t{i}));
  REQUIRE(store.engine->write(slow, Durability::Sync).ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(decoded_in_hours(store, "a", 3) == 0);
  CHECK(decoded_in_hours(store, "b", 3) == 0);
  CHECK(decoded_in_hours(store, "c", 6) > 0);  // one a minute: too slow
  // Late ones across an hour: everything there is written anew.
  WriteBatch late;
  for (int i = 0; i < 8000; i += 2)
    late.put(store.id, key_at("a", kStartNs + i * kSecond), value_of(static_cast<double>(i)));
  REQUIRE(store.engine->write(late, Durability::Sync).ok());
  REQUIRE(store.engine->flush().ok());
  CHECK(decoded_in_hours(store, "a", 3) > 0);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  CHECK(decoded_in_hours(store, "a", 3) == 0);
  CHECK(store.compare({}, {}) > 0);
}

TEST_CASE("summaries: what lies across a group makes it be read") {
  const auto middle = key_at("a", kStartNs + 500 * kSecond);
  const auto behind = key_at("a", kStartNs + 501 * kSecond);
  using Change = void (*)(WriteBatch&, NamespaceId, const Bytes&, const Bytes&);
  const Change changes[] = {[](WriteBatch& batch, NamespaceId id, const Bytes& key, const Bytes&) {
                              batch.put(id, key, value_of(-99.5));
                            },
                            [](WriteBatch& batch, NamespaceId id, const Bytes& key, const Bytes&) {
                              batch.put(id, key, Bytes(5000, 'x'));  // an item of its own
                            },
                            [](WriteBatch& batch, NamespaceId id, const Bytes& key, const Bytes&) {
                              batch.remove(id, key);
                            },
                            [](WriteBatch& batch, NamespaceId id, const Bytes& key,
                               const Bytes& end) { batch.remove_range(id, key, end); },
                            [](WriteBatch& batch, NamespaceId id, const Bytes& key,
                               const Bytes& end) { batch.erase_range(id, key, end); }};
  for (const Change& change : changes) {
    CAPTURE(&change - changes);
    for (const bool flushed : {false, true}) {
      Store store;
      store.fill("a", 1000);
      REQUIRE(store.engine->flush().ok());
      const std::uint64_t groups = store.compare({}, {});
      const auto before = store.engine->snapshot();
      WriteBatch batch;
      change(batch, store.id, middle, behind);
      REQUIRE(store.engine->write(batch, Durability::Sync).ok());
      if (flushed) REQUIRE(store.engine->flush().ok());
      CHECK(store.compare({}, {}) == groups - 1);
      ReadOptions reverse;
      reverse.direction = Direction::Reverse;
      CHECK(store.compare({}, reverse) == groups - 1);
      ReadOptions old;
      old.snapshot = before;
      store.compare({}, old);
      // A merge writes the group anew, with a summary of what is left.
      REQUIRE(store.engine->compact({store.id}, {}).ok());
      store.compare({}, {});
    }
  }
}

TEST_CASE("summaries: what is erased while a scan stands before it is not told") {
  Store store;
  store.fill("a", 1000);
  REQUIRE(store.engine->flush().ok());
  const auto iterator = store.scan({}, {}, true);
  REQUIRE(iterator->valid());
  WriteBatch batch;
  batch.erase_range(store.id, key_at("a", kStartNs), key_at("a", kStartNs + 10 * kSecond));
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  NumberSummary numbers;
  REQUIRE_FALSE(iterator->take_summary({}, numbers));
  REQUIRE(iterator->valid());
  CHECK(iterator->key() == ByteView(key_at("a", kStartNs + 10 * kSecond)));
  CHECK(iterator->value() == ByteView(value_of(20.1)));
}

TEST_CASE(
    "summaries: kept sums of windows leave out what is erased while a scan stands before it") {
  Store store;
  store.fill("a", 1000);
  REQUIRE(store.engine->flush().ok());
  WindowSums sums;
  NumberColumns columns;
  const auto take = [&](Iterator& iterator) {
    return iterator.take_window_sums({}, 20 * kSecond, 0, sums, columns);
  };
  // The second time they are kept, the third time they are found.
  for (int round = 0; round < 3; ++round)
    REQUIRE(take(*store.scan({}, {}, true)) == TakenSums::Sums);
  const auto iterator = store.scan({}, {}, true);
  REQUIRE(iterator->valid());
  WriteBatch batch;
  batch.erase_range(store.id, key_at("a", kStartNs), key_at("a", kStartNs + 10 * kSecond));
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  REQUIRE(take(*iterator) == TakenSums::Nothing);
  NumberSummary numbers;
  REQUIRE_FALSE(iterator->take_summary({}, numbers));
  REQUIRE(iterator->valid());
  CHECK(iterator->key() == ByteView(key_at("a", kStartNs + 10 * kSecond)));
}

TEST_CASE("summaries: a group of which some has expired is read") {
  Store store;
  store.fill("a", 1000);
  REQUIRE(store.engine->flush().ok());
  const std::uint64_t groups = store.compare({}, {});
  REQUIRE(store.engine->set_retention({{store.id, "", 2000 * kSecond}}).ok());
  store.clock.advance(2100 * kSecond);
  CHECK(store.ask({}, {}, true).entries < 1000);
  CHECK(store.compare({}, {}) == groups - 1);
  ReadOptions reverse;
  reverse.direction = Direction::Reverse;
  CHECK(store.compare({}, reverse) == groups - 1);
}

TEST_CASE("summaries: a group whose summary is not wanted is read") {
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    Store store;
    store.fill("a", 1000);
    REQUIRE(store.engine->flush().ok());
    ReadOptions how;
    how.direction = direction;
    const ThreadReads before = thread_reads();
    const auto iterator = store.scan({}, how, true);
    std::uint64_t asked = 0, read = 0, taken = 0;
    while (iterator->valid()) {
      NumberSummary numbers;
      const auto every_other = [&](const NumberSummary& known) {
        CHECK(known.count > 0);
        return asked++ % 2 == 1;
      };
      if (iterator->take_summary({}, numbers, every_other)) {
        taken += numbers.count;
        continue;
      }
      NumberColumns columns;
      read += iterator->take_numbers({}, columns);
    }
    CHECK(taken > 0);
    CHECK(read > 0);
    CHECK(taken + read == 1000);
    const ThreadReads after = thread_reads();
    CHECK(after.groups - before.groups == (asked + 1) / 2);
    CHECK(after.values_bytes > before.values_bytes);
    CHECK(after.metadata_bytes > before.metadata_bytes);
  }
}

TEST_CASE("summaries: a smallest reading that was erased is found nowhere") {
  for (const Removal removal : {Removal::Overwrite, Removal::Unlink}) {
    Store store;
    store.options.removal = removal;
    store.reopen();
    store.disk.keep_freed();
    // No decimal of 15 places: the summary holds all bits of it, and behind them the largest.
    const double secret = -(0.1 + 0.2);
    Bytes needle;
    append_fixed64(needle, std::bit_cast<std::uint64_t>(secret));
    append_fixed64(needle, std::bit_cast<std::uint64_t>(20.8));
    store.fill("a", 300);
    REQUIRE(store.put(store.id, key_at("a", kStartNs + 100 * kSecond), value_of(secret)).ok());
    REQUIRE(store.engine->flush().ok());
    // In the metadata as well.
    bool is_summarized = false;
    for (const auto& [path, bytes] : store.disk.durable_contents())
      is_summarized |= path.ends_with(".meta") && bytes.find(needle) != Bytes::npos;
    CHECK(is_summarized);
    WriteBatch batch;
    batch.erase_range(store.id, key_at("a", kStartNs + 100 * kSecond),
                      key_at("a", kStartNs + 101 * kSecond));
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    REQUIRE(store.engine->erase().ok());
    if (removal == Removal::Overwrite) CHECK(store.disk.find_bytes({needle}) == "");
    for (const auto& file : store.disk.durable_contents())
      CHECK_MESSAGE(file.second.find(needle) == Bytes::npos, file.first);
    const Known left = store.ask({}, {}, true);
    CHECK(left.entries == 299);
    CHECK(as_double(*left.min) >= 20);
  }
}

// Random stores: each question both ways.
TEST_CASE("summaries answer as values do in random stores") {
  const std::uint64_t first = test::test_seed(20261129);
  for (std::uint64_t run = 0; run < test::seeds_of(16, 4); ++run) {
    const std::uint64_t seed = first + run;
    CAPTURE(seed);
    SeededRandom random(seed);
    Store store(random.below(2) == 0);
    if (random.below(2) == 0) {
      store.options.group_span_ns = 300 * kSecond;
      store.reopen();
    }
    std::uint64_t taken = 0;
    std::vector<std::shared_ptr<const Snapshot>> snapshots;
    const auto some_key = [&] {
      return key_at(Bytes(1, static_cast<char>('a' + random.below(3))),
                    kStartNs + static_cast<std::int64_t>(random.below(2000)) * kSecond);
    };
    const auto some_value = [&]() -> Bytes {
      switch (random.below(12)) {
        case 0: return Bytes("text");
        case 1: return value_of(static_cast<std::int64_t>(random.next()));
        case 2: return value_of(random.below(2) == 0 ? 0.0 : -0.0);
        case 3:
          return value_of(std::ldexp(1.0 + static_cast<double>(random.below(1000)),
                                     static_cast<int>(random.below(120)) - 60));
        default: return value_of(static_cast<double>(random.below(5000)) / 10 - 200);
      }
    };
    for (int step = 0; step < 60; ++step) {
      CAPTURE(step);
      WriteBatch batch;
      switch (random.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3: {  // a stretch, in order
          const Bytes part(1, static_cast<char>('a' + random.below(3)));
          const auto from = static_cast<std::int64_t>(random.below(1500));
          const bool is_odd = random.below(4) == 0;
          const std::int64_t whole = static_cast<std::int64_t>(random.next() >> 12);
          const bool is_integer = random.below(3) == 0;
          for (std::int64_t i = 0; i < 400; ++i)
            batch.put(store.id, key_at(part, kStartNs + (from + i) * kSecond),
                      is_odd && i % 50 == 0 ? some_value()
                      : is_integer          ? value_of(whole - i)
                                   : value_of(static_cast<double>(random.below(300)) / 10));
          break;
        }
        case 4:
          for (int i = 0; i < 5; ++i) batch.put(store.id, some_key(), some_value());
          break;
        case 5: batch.remove(store.id, some_key()); break;
        case 6: {
          Bytes lower = some_key();
          Bytes upper = some_key();
          if (upper < lower) std::swap(lower, upper);
          if (random.below(2) == 0) {
            batch.remove_range(store.id, lower, upper);
          } else {
            batch.erase_range(store.id, lower, upper);
          }
          break;
        }
        case 7: REQUIRE(store.engine->flush().ok()); break;
        case 8: REQUIRE(store.engine->compact({store.id}, {}).ok()); break;
        case 9:
          if (snapshots.size() > 2) snapshots.erase(snapshots.begin());
          snapshots.push_back(store.engine->snapshot());
          break;
        case 10:
          if (random.below(3) == 0) {
            snapshots.clear();
            store.executor.run_all();
            if (random.below(2) == 0) REQUIRE(store.engine->erase().ok());
            store.reopen();
          } else {
            store.executor.run_all();
          }
          break;
        default:
          if (random.below(4) == 0) {
            const auto life = static_cast<std::int64_t>(2000 + random.below(3000)) * kSecond;
            REQUIRE(store.engine->set_retention({{store.id, "", life}}).ok());
          } else {
            store.clock.advance(static_cast<std::int64_t>(random.below(60)) * kSecond);
          }
      }
      if (batch.count() > 0) REQUIRE(store.engine->write(batch, Durability::Sync).ok());
      ReadOptions how;
      if (random.below(3) == 0) how.direction = Direction::Reverse;
      if (!snapshots.empty() && random.below(3) == 0)
        how.snapshot = snapshots[random.below(snapshots.size())];
      KeyRange range;
      if (random.below(2) == 0) range.lower = some_key();
      if (random.below(2) == 0) range.upper = some_key();
      if (!range.upper.empty() && range.upper < range.lower) std::swap(range.lower, range.upper);
      taken += store.compare(range, how, random.below(2) == 0 ? ByteView() : ByteView(some_key()));
    }
    CHECK(taken > 0);
  }
}

}  // namespace
}  // namespace edgecase::engine
