#include "buffer/memtable.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

// Key → every version, newest last.
struct Written {
  SequenceNumber sequence;
  EntryKind kind;
  Bytes value;
};
using Model = std::map<Bytes, std::vector<Written>>;

const Written* newest_visible(const std::vector<Written>& versions, SequenceNumber visible) {
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->sequence <= visible) return &*it;
  }
  return nullptr;
}

std::vector<std::pair<Bytes, Bytes>> expected(const Model& model, ByteView lower, ByteView upper,
                                              Direction direction, SequenceNumber visible,
                                              SequenceNumber newer_than = 0) {
  std::vector<std::pair<Bytes, Bytes>> rows;
  for (const auto& [key, versions] : model) {
    if (key < lower || (!upper.empty() && key >= upper)) continue;
    const Written* const entry = newest_visible(versions, visible);
    if (entry != nullptr && entry->sequence > newer_than)
      rows.emplace_back(key, entry->kind == EntryKind::Put ? entry->value : "deleted");
  }
  if (direction == Direction::Reverse) std::reverse(rows.begin(), rows.end());
  return rows;
}

std::vector<std::pair<Bytes, Bytes>> rest_of(EntryCursor& cursor) {
  std::vector<std::pair<Bytes, Bytes>> rows;
  for (; cursor.valid(); cursor.next()) {
    REQUIRE(cursor.load().ok());
    rows.emplace_back(cursor.full_key(),
                      cursor.kind() == EntryKind::Put ? Bytes(cursor.value()) : "deleted");
  }
  CHECK(cursor.status().ok());
  return rows;
}

// `all` is what a cursor of this direction goes over.
void check_seek(EntryCursor& cursor, const Bytes& target, Direction direction,
                std::vector<std::pair<Bytes, Bytes>> all) {
  std::erase_if(all, [&](const auto& row) {
    return direction == Direction::Forward ? row.first < target : row.first > target;
  });
  cursor.seek(target);
  REQUIRE(rest_of(cursor) == all);
}

// Every key, each as of some sequence.
void check_gets(const Memtable& memtable, const Model& model, SequenceNumber sequence,
                SeededRandom& random) {
  for (const auto& [key, versions] : model) {
    const SequenceNumber visible = random.below(sequence + 1);
    const Written* want = newest_visible(versions, visible);
    const auto got = memtable.get(key, visible);
    REQUIRE(got.has_value() == (want != nullptr));
    if (got) CHECK(got->value == want->value);
  }
}

}  // namespace

TEST_CASE(
    "memtable: a draft is not there before it is added, and one that is discarded never was") {
  Memtable memtable;
  const auto found = [&](ByteView key) {
    return memtable.get(make_full_key(1, key), UINT64_MAX >> 2);
  };
  memtable.add(1, "a", 1, EntryKind::Put, "old");
  const std::uint64_t before = memtable.memory_bytes();
  for (int i = 0; i < 100'000; ++i)
    memtable.discard(memtable.draft(1, "a", EntryKind::Put, Bytes(500, 'x')));
  CHECK(memtable.memory_bytes() - before <= 64u << 10);
  CHECK(found("a")->value == "old");
  const Memtable::Draft put = memtable.draft(1, "b", EntryKind::Put, "new");
  CHECK_FALSE(found("b").has_value());
  CHECK(put.user_bytes == 4);
  memtable.add(put, 2);
  CHECK(found("b")->value == "new");
  CHECK(found("b")->sequence == 2);
  memtable.add(memtable.draft(1, "a", EntryKind::Delete, {}), 3);
  CHECK(found("a")->kind == EntryKind::Delete);
  CHECK(memtable.get(make_full_key(1, "a"), 2)->value == "old");
  CHECK(memtable.entry_count() == 3);
  CHECK(memtable.last_sequence() == 3);
  CHECK(Memtable::is_small("key", Bytes(1024, 'x')));
  CHECK_FALSE(Memtable::is_small("key", Bytes(2048, 'x')));
}

TEST_CASE("memtable finds the newest entry that is visible") {
  Memtable memtable;
  CHECK(memtable.first_sequence() == 0);
  memtable.add(7, "a", 1, EntryKind::Put, "one");
  memtable.add(7, "a", 2, EntryKind::Put, "two");
  memtable.add(7, "a", 3, EntryKind::Delete, "");
  memtable.add(8, "a", 4, EntryKind::Put, "other");
  memtable.add(7, "", 5, EntryKind::Put, "");

  const Bytes key = make_full_key(7, "a");
  CHECK_FALSE(memtable.get(key, 0));
  CHECK(memtable.get(key, 1)->value == "one");
  CHECK(memtable.get(key, 2)->value == "two");
  CHECK(memtable.get(key, 9)->kind == EntryKind::Delete);
  CHECK(memtable.get(key, 9)->sequence == 3);
  CHECK(memtable.get(make_full_key(8, "a"), 9)->value == "other");
  CHECK(memtable.get(make_full_key(7, ""), 9)->value.empty());
  CHECK_FALSE(memtable.get(make_full_key(7, "b"), 9));
  CHECK(memtable.entry_count() == 5);
  CHECK(memtable.first_sequence() == 1);
  CHECK(memtable.last_sequence() == 5);
}

TEST_CASE("memtable answers like a sorted map, in both directions, at every sequence") {
  const char* given = std::getenv("EDGECASE_TEST_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20261120;
  MESSAGE("seed " << seed);
  SeededRandom random(seed);
  auto memtable = std::make_shared<Memtable>();
  Model model;
  SequenceNumber sequence = 0;

  for (int round = 0; round < 60; ++round) {
    for (std::uint64_t n = random.below(200); n > 0; --n) {
      const auto id = static_cast<NamespaceId>(1 + random.below(3));
      // Few keys, many of them prefixes of others, with bytes of either sign.
      Bytes key;
      for (std::uint64_t i = random.below(5); i > 0; --i)
        key.push_back("\x00\x01\x7f\x80\xff"[random.below(5)]);
      const EntryKind kind = random.below(5) == 0 ? EntryKind::Delete : EntryKind::Put;
      Bytes value;
      if (kind == EntryKind::Put) value.assign(random.below(100), static_cast<char>(n));
      memtable->add(id, key, ++sequence, kind, value);
      model[make_full_key(id, key)].push_back({sequence, kind, value});
    }
    const SequenceNumber visible = random.below(3) == 0 ? random.below(sequence + 1) : sequence;
    const Direction direction = random.below(2) == 0 ? Direction::Forward : Direction::Reverse;
    Bytes lower = make_full_key(static_cast<NamespaceId>(random.below(4)), "");
    Bytes upper = make_full_key(static_cast<NamespaceId>(2 + random.below(4)), "\x7f");
    if (random.below(4) == 0) upper.clear();
    const SequenceNumber newer_than = random.below(2) == 0 ? random.below(sequence + 1) : 0;
    CAPTURE(round);
    auto cursor = Memtable::cursor(memtable, lower, upper, direction, visible, newer_than);
    const auto all = expected(model, lower, upper, direction, visible, newer_than);
    REQUIRE(rest_of(*cursor) == all);

    const Bytes target = make_full_key(2, Bytes(random.below(3), '\x7f'));
    check_seek(*cursor, target, direction, all);
  }
  check_gets(*memtable, model, sequence, random);
}

TEST_CASE("memtable is in order, however late it shows what its keys begin with") {
  const std::uint64_t seed = test::test_seed(12);
  CAPTURE(seed);
  SeededRandom random(seed);
  auto memtable = std::make_shared<Memtable>();
  Model model;
  SequenceNumber sequence = 0;
  // Each thousand begins with fewer bytes that all before have.
  const Bytes common = "/a/path/that/many/have";
  for (std::size_t kept = common.size() + 1; kept-- > 0; kept -= std::min<std::size_t>(kept, 3)) {
    for (int i = 0; i < 1000; ++i) {
      const Bytes key = common.substr(0, kept) + std::to_string(random.below(100'000)) +
                        Bytes(random.below(3), '\0');
      memtable->add(1, key, ++sequence, EntryKind::Put, std::to_string(i));
      model[make_full_key(1, key)].push_back({sequence, EntryKind::Put, std::to_string(i)});
    }
    // Half of the time all of it is put in order at once.
    if (random.below(2) == 0) continue;
    auto cursor = Memtable::cursor(memtable, {}, {}, Direction::Forward, sequence);
    REQUIRE(rest_of(*cursor) == expected(model, {}, {}, Direction::Forward, sequence));
  }
  auto cursor = Memtable::cursor(memtable, {}, {}, Direction::Forward, sequence);
  REQUIRE(rest_of(*cursor) == expected(model, {}, {}, Direction::Forward, sequence));
}

TEST_CASE("memtable keeps large values beside small ones") {
  auto memtable = std::make_shared<Memtable>();
  const Bytes large(1 << 20, 'x');
  for (SequenceNumber i = 1; i <= 40; ++i)
    memtable->add(1, std::to_string(i), i, EntryKind::Put, i % 10 == 0 ? large : Bytes("small"));
  CHECK(memtable->memory_bytes() > 4 * large.size());
  CHECK(memtable->memory_bytes() < 5 * large.size());
  CHECK(memtable->get(make_full_key(1, "30"), 40)->value == large);
  CHECK(memtable->get(make_full_key(1, "31"), 40)->value == "small");
}

namespace {

// Keys of a time series: a prefix of three bytes, an ordinal of eight.
Bytes series_key(std::uint64_t prefix, std::uint64_t ordinal) {
  Bytes key{"\x00\x01\x80\xff"[prefix % 4], "\x7f\x80"[prefix / 4 % 2], 'p'};
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
  return key;
}

// Mostly the next ordinal of its series, now and then a late one, one again, or another length.
Bytes next_series_key(SeededRandom& random, std::vector<std::uint64_t>& next_ordinals) {
  const std::uint64_t prefix = random.below(next_ordinals.size());
  const std::uint64_t chance = random.below(20);
  std::uint64_t& next = next_ordinals[prefix];
  if (chance == 0) return series_key(prefix, random.below(next + 2));
  if (chance == 1) return series_key(prefix, random.below(next + 2)) + "x";
  if (chance == 2) return series_key(prefix, next).substr(0, 3 + random.below(8));
  next += 1 + random.below(3);
  return series_key(prefix, next - 1);
}

Bytes next_series_value(SeededRandom& random) {
  Bytes value(1, static_cast<char>(1 + random.below(3)));
  value.append(random.below(4) == 0 ? random.below(30) : 8, static_cast<char>(random.next()));
  return value;
}

// Takes what it can as runs.
std::vector<std::pair<Bytes, Bytes>> rest_in_runs(EntryCursor& cursor) {
  std::vector<std::pair<Bytes, Bytes>> rows;
  while (cursor.valid()) {
    const SeriesRun run = cursor.take_run();
    for (const SeriesEntry& entry : run.entries) {
      Bytes key(run.prefix);
      for (int shift = 56; shift >= 0; shift -= 8) {
        key.push_back(static_cast<char>(entry.ordinal >> shift));
      }
      Bytes value(1, static_cast<char>(entry.value_class()));
      append_fixed64(value, entry.payload);
      rows.emplace_back(key, entry.value_class() == SeriesClass::Delete ? "deleted" : value);
    }
    if (!run.entries.empty()) continue;
    rows.emplace_back(cursor.full_key(), cursor.kind() == EntryKind::Delete
                                             ? Bytes("deleted")
                                             : Bytes(cursor.value()));
    cursor.next();
  }
  return rows;
}

Bytes random_bound(SeededRandom& random) {
  const Bytes key = series_key(random.below(9), random.below(900));
  return make_full_key(static_cast<NamespaceId>(1 + random.below(3)),
                       random.below(3) == 0 ? key.substr(0, random.below(12)) : key);
}

}  // namespace

TEST_CASE("memtable keeps series that come in order, late or again like a sorted map") {
  const std::uint64_t rounds = 20 + test::share_of(180);
  const char* given = std::getenv("EDGECASE_TEST_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20261121;
  MESSAGE("seed " << seed);
  SeededRandom random(seed);
  auto memtable = std::make_shared<Memtable>();
  Model model;
  SequenceNumber sequence = 0;
  std::vector<std::uint64_t> next_ordinals[2] = {std::vector<std::uint64_t>(8),
                                                 std::vector<std::uint64_t>(8)};

  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint64_t n = random.below(100); n > 0; --n) {
      const std::uint64_t which = random.below(2);
      const auto id = static_cast<NamespaceId>(1 + which);
      const Bytes key = next_series_key(random, next_ordinals[which]);
      const EntryKind kind = random.below(9) == 0 ? EntryKind::Delete : EntryKind::Put;
      const Bytes value = kind == EntryKind::Put ? next_series_value(random) : Bytes();
      memtable->add(id, key, ++sequence, kind, value, GroupCodec::Series);
      model[make_full_key(id, key)].push_back({sequence, kind, value});
    }
    const SequenceNumber visible = random.below(3) == 0 ? random.below(sequence + 1) : sequence;
    const Direction direction = random.below(2) == 0 ? Direction::Forward : Direction::Reverse;
    Bytes lower = random_bound(random);
    Bytes upper = random_bound(random);
    if (upper < lower) std::swap(lower, upper);
    if (random.below(4) == 0) lower.clear();
    if (random.below(4) == 0) upper.clear();
    const SequenceNumber newer_than = random.below(2) == 0 ? random.below(sequence + 1) : 0;
    CAPTURE(round);
    auto cursor = Memtable::cursor(memtable, lower, upper, direction, visible, newer_than);
    const auto all = expected(model, lower, upper, direction, visible, newer_than);
    REQUIRE(rest_of(*cursor) == all);
    if (direction == Direction::Forward && newer_than == 0) {
      cursor = Memtable::cursor(memtable, lower, upper, direction, visible);
      REQUIRE(rest_in_runs(*cursor) == all);
    }
    for (int i = 0; i < 3; ++i) check_seek(*cursor, random_bound(random), direction, all);
  }
  check_gets(*memtable, model, sequence, random);
  CHECK(memtable->entry_count() == sequence);
}

TEST_CASE("memtable keeps a reading of a regular series in about 24 bytes") {
  Memtable memtable;
  SequenceNumber sequence = 0;
  for (std::uint64_t at = 0; at < 2000; ++at) {
    for (std::uint64_t prefix = 0; prefix < 8; ++prefix) {
      const Bytes value = Bytes(1, kFloatTag) + Bytes(8, 'v');
      memtable.add(1, series_key(prefix, at), ++sequence, EntryKind::Put, value,
                   GroupCodec::Series);
    }
  }
  CHECK(memtable.memory_bytes() < sequence * 34);
}

namespace {

constexpr SequenceNumber kBesideEntries = 30'000;

// One writer, two readers; answers how often a reader saw something else than what was written.
int read_beside_writer(Bytes (*key_of)(SequenceNumber), GroupCodec codec,
                       SequenceNumber distinct_keys_min(SequenceNumber written)) {
  auto memtable = std::make_shared<Memtable>();
  std::atomic<SequenceNumber> visible{0};
  std::thread writer([&] {
    for (SequenceNumber i = 1; i <= kBesideEntries; ++i) {
      memtable->add(1, key_of(i), i, EntryKind::Put, std::to_string(i), codec);
      visible.store(i, std::memory_order_release);
    }
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    readers.emplace_back([&, direction] {
      SequenceNumber seen = 0;
      while (seen < kBesideEntries) {
        seen = visible.load(std::memory_order_acquire);
        if (seen == 0) continue;
        const auto got = memtable->get(make_full_key(1, key_of(seen)), seen);
        if (!got || got->sequence != seen || got->value != std::to_string(seen)) ++wrong;
        auto cursor = Memtable::cursor(memtable, make_full_key(1, ""), {}, direction, seen);
        SequenceNumber newest = 0;
        SequenceNumber count = 0;
        for (; cursor->valid(); cursor->next()) {
          ++count;
          newest = std::max(newest, cursor->sequence());
          if (cursor->value() != std::to_string(cursor->sequence())) ++wrong;
        }
        if (newest != seen || count < distinct_keys_min(seen)) ++wrong;
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
  return wrong;
}

}  // namespace

TEST_CASE("memtable readers run beside the writer and see whole entries") {
  const auto key_of = [](SequenceNumber n) { return std::to_string(n * 7919 % 5000); };
  const auto distinct = [](SequenceNumber written) {
    return std::min<SequenceNumber>(written, 5000);
  };
  CHECK(read_beside_writer(key_of, GroupCodec::Plain, distinct) == 0);
}

TEST_CASE("memtable readers run beside the writer and see whole series") {
  // Seven series in order, but for every fiftieth entry, which writes the one seven before again.
  const auto key_of = [](SequenceNumber n) {
    const SequenceNumber at = n % 50 == 0 ? n - 7 : n;
    return series_key(at % 7, at);
  };
  const auto distinct = [](SequenceNumber written) { return written - written / 50; };
  CHECK(read_beside_writer(key_of, GroupCodec::Series, distinct) == 0);
}

}  // namespace edgecase::engine
