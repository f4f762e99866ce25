// write_tables() and TableCache against a std::map, with random contents.
#include <doctest/doctest.h>

#include <bit>
#include <map>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "engine/table/table_test_store.h"
#include "support/test_share.h"
#include "table/record_cursor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

using Model = std::map<Bytes, OwnedEntry>;  // by full key

Bytes random_key(SeededRandom& random) {
  Bytes key;
  switch (random.below(3)) {
    case 0:
      for (std::uint64_t n = random.below(6); n > 0; --n)
        key.push_back(static_cast<char>('a' + random.below(3)));
      return key;
    case 1:
      key = "device" + std::to_string(random.below(3));
      for (int i = 0; i < 8; ++i)
        key.push_back(i < 6 ? '\0' : static_cast<char>(random.below(i == 6 ? 4 : 256)));
      return key;
    default:
      for (int i = 0; i < 8; ++i) key.push_back(static_cast<char>(random.next()));
      return key;
  }
}

Bytes random_value(SeededRandom& random, std::uint64_t threshold) {
  switch (random.below(5)) {
    case 0: return Bytes(random.below(40), static_cast<char>(random.next()));
    case 1: return Bytes(threshold - 1 + random.below(3), 'L');
    case 2: return "text of about the same words, number " + std::to_string(random.below(100));
    default: {
      Bytes value(1, kFloatTag);
      append_fixed64(value,
                     std::bit_cast<std::uint64_t>(static_cast<double>(random.below(900)) / 10));
      return value;
    }
  }
}

// Entries as a flush sees them: newest first among equal keys. The model keeps the newest.
std::vector<OwnedEntry> random_entries(SeededRandom& random, std::uint64_t threshold,
                                       std::size_t count, Model& model) {
  std::vector<OwnedEntry> entries;
  for (SequenceNumber sequence = 1; sequence <= count; ++sequence) {
    const auto id = static_cast<NamespaceId>(1 + random.below(4) * 1000);
    OwnedEntry entry{make_full_key(id, random_key(random)), sequence, EntryKind::Put, {}};
    if (random.below(8) == 0) {
      entry.kind = EntryKind::Delete;
    } else {
      entry.value = random_value(random, threshold);
    }
    model.insert_or_assign(entry.full_key, entry);
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.full_key != b.full_key ? a.full_key < b.full_key : a.sequence > b.sequence;
  });
  return entries;
}

void check_loaded(EntryCursor& cursor, const OwnedEntry& want) {
  REQUIRE(cursor.full_key() == want.full_key);
  REQUIRE(cursor.load().ok());
  REQUIRE(cursor.valid());
  REQUIRE(cursor.full_key() == want.full_key);
  REQUIRE(cursor.kind() == want.kind);
  REQUIRE(cursor.value() == want.value);
  REQUIRE(cursor.sequence() >= want.sequence);
}

// The part of the model that lies in one table.
struct TableModel {
  std::shared_ptr<const TableMetadata> table;
  Model entries;
};

std::vector<TableModel> split(const TableTestStore& store, const Model& model) {
  std::vector<TableModel> models;
  for (const auto& table : store.tables) models.push_back({table, {}});
  for (const auto& [key, entry] : model)
    for (TableModel& part : models) {
      const auto found = store.cache->get(part.table, key, true);
      REQUIRE(found.ok());
      if (!found->has_value()) continue;
      REQUIRE((*found)->kind == entry.kind);
      REQUIRE((*found)->value == entry.value);
      REQUIRE((*found)->sequence >= entry.sequence);
      part.entries.emplace(key, entry);
    }
  return models;
}

Bytes random_bound(SeededRandom& random, const Model& model) {
  switch (random.below(4)) {
    case 0: return {};
    case 1: return make_full_key(static_cast<NamespaceId>(random.below(5) * 1000), "");
    case 2:
      return make_full_key(static_cast<NamespaceId>(1 + random.below(4) * 1000),
                           random_key(random));
    default: {
      auto place = model.begin();
      std::advance(place, random.below(model.size()));
      return place->first;
    }
  }
}

// The entries of [lower, upper) in the direction's order.
std::vector<const OwnedEntry*> expected_range(const Model& model, const Bytes& lower,
                                              const Bytes& upper, Direction direction) {
  std::vector<const OwnedEntry*> range;
  for (const auto& [key, entry] : model)
    if (key >= lower && (upper.empty() || key < upper)) range.push_back(&entry);
  if (direction == Direction::Reverse) std::reverse(range.begin(), range.end());
  return range;
}

void check_cursor(TableTestStore& store, const TableModel& part, SeededRandom& random) {
  const Bytes lower = random_bound(random, part.entries);
  const Bytes upper = random_bound(random, part.entries);
  const auto direction = random.below(2) == 0 ? Direction::Forward : Direction::Reverse;
  const bool forward = direction == Direction::Forward;
  const auto range = expected_range(part.entries, lower, upper, direction);
  const auto cursor =
      store.cache->cursor(part.table, lower, upper, direction, random.below(2) == 0);
  std::size_t at = 0;
  for (int step = 0; step < 60; ++step) {
    REQUIRE(cursor->status().ok());
    REQUIRE(cursor->valid() == (at < range.size()));
    if (cursor->valid()) {
      REQUIRE(cursor->full_key() == range[at]->full_key);
      if (random.below(2) == 0) check_loaded(*cursor, *range[at]);
    }
    if (random.below(6) == 0 || !cursor->valid()) {
      const Bytes target = random_bound(random, part.entries);
      cursor->seek(target);
      const auto found = std::find_if(range.begin(), range.end(), [&](const OwnedEntry* entry) {
        return forward ? entry->full_key >= target : entry->full_key <= target;
      });
      at = static_cast<std::size_t>(found - range.begin());
    } else {
      cursor->next();
      ++at;
    }
  }
}

void check_items(TableTestStore& store, const TableModel& part, SeededRandom& random) {
  const Bytes lower = random_bound(random, part.entries);
  const Bytes upper = random_bound(random, part.entries);
  RecordCursor at = store.cache->records({part.table}, lower);
  std::size_t covered = 0;
  for (; at.valid(); at.next_record()) {
    const UMetaRecord& span = at.record();
    if (!upper.empty() && span.first >= upper) break;
    std::uint64_t entries = 0;
    std::uint64_t deletes = 0;
    for (const auto& [key, entry] : part.entries) {
      if (key < span.first || key > span.last) continue;
      ++entries;
      if (entry.kind == EntryKind::Delete) ++deletes;
      if (key >= lower && (upper.empty() || key < upper)) ++covered;
    }
    CHECK(span.entries == entries);
    CHECK(span.deletes == deletes);
    CHECK(part.entries.contains(Bytes(span.first)));
    CHECK(part.entries.contains(Bytes(span.last)));
  }
  REQUIRE(at.status().ok());
  CHECK(covered == expected_range(part.entries, lower, upper, Direction::Forward).size());
}

void run(std::uint64_t seed, bool coalesce) {
  CAPTURE(seed);
  CAPTURE(coalesce);
  SeededRandom random(seed);
  TableTestStore store;
  store.options.coalesce = coalesce;
  store.options.coalesce_threshold_bytes = 64;
  store.options.group_bytes = static_cast<std::uint32_t>(1 + random.below(8000));
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 3};
  store.namespaces[1001] = {Placement::Values, GroupCodec::Plain, 0};
  store.namespaces[2001] = {Placement::Metadata, GroupCodec::Plain, 1};
  store.namespaces[3001] = {Placement::Values, GroupCodec::Series, 0};
  store.open_cache({16u << 10, 2});

  Model model;
  REQUIRE(store.write(random_entries(random, 64, 50 + random.below(3000), model)).ok());
  std::uint64_t entries = 0;
  for (const auto& table : store.tables) entries += table->entry_count;
  REQUIRE(entries == model.size());

  auto parts = split(store, model);
  std::size_t found = 0;
  for (const TableModel& part : parts) found += part.entries.size();
  REQUIRE(found == model.size());
  for (const TableModel& part : parts) {
    CHECK(part.table->smallest == part.entries.begin()->first);
    CHECK(part.table->largest == part.entries.rbegin()->first);
    for (int i = 0; i < 40; ++i) check_cursor(store, part, random);
    for (int i = 0; i < 10; ++i) check_items(store, part, random);
    for (int i = 0; i < 200; ++i) {
      const Bytes key =
          make_full_key(static_cast<NamespaceId>(1 + random.below(5) * 1000), random_key(random));
      const auto got = store.cache->get(part.table, key, random.below(2) == 0);
      REQUIRE(got.ok());
      REQUIRE(got->has_value() == part.entries.contains(key));
    }
  }
  CHECK(store.cache->used_bytes() <= (16u << 10) * 2);
}

TEST_CASE("tables answer as a map does") {
  for (std::uint64_t seed = 1; seed <= test::share_of(12); ++seed) run(seed, true);
}

TEST_CASE("tables of single items answer as a map does") {
  for (std::uint64_t seed = 101; seed <= 100 + test::share_of(4); ++seed) run(seed, false);
}

}  // namespace
}  // namespace edgecase::engine
