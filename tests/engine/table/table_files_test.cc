// Value files as tables name them: there, missing, another store's, another file's.
#include <doctest/doctest.h>

#include <vector>

#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

std::vector<OwnedEntry> six_entries() {
  std::vector<OwnedEntry> entries;
  for (char i = 0; i < 6; ++i)
    entries.push_back({make_full_key(1, Bytes("key ") + static_cast<char>('a' + i)),
                       static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       Bytes(60, static_cast<char>('A' + i))});
  return entries;
}

void fill_six(TableTestStore& store) {
  store.options.group_bytes = 80;
  REQUIRE(store.write(six_entries()).ok());
}

TEST_CASE("a missing value file is a missing drive, another store's is told apart") {
  TableTestStore store;
  fill_six(store);
  const Bytes key = six_entries()[0].full_key;
  const std::string path = store.path_of(store.output.value_files[0]);
  const Bytes original = store.disk.contents(path);
  REQUIRE(store.disk.remove_file(path).ok());
  CHECK(store.cache->get(store.tables[0], key, true).status().code() == StatusCode::Unavailable);
  store.disk.set_contents(path, original);
  CHECK(store.cache->get(store.tables[0], key, true).ok());

  store.store_id[0] ^= 1;
  store.open_cache({});
  const Status other = store.cache->get(store.tables[0], key, true).status();
  CHECK(other.code() == StatusCode::Unavailable);
}

TEST_CASE("items of another file in a value file's place are found out") {
  TableTestStore store;
  fill_six(store);
  const Bytes first = store.disk.contents(store.path_of(store.output.value_files[0]));
  const auto old_tables = store.tables;
  const auto old_file = store.output.value_files[0];
  REQUIRE(store.write(six_entries()).ok());
  const Bytes second = store.disk.contents(store.path_of(store.output.value_files[0]));
  REQUIRE(first.size() == second.size());
  // The right head, then what belongs into the other file.
  store.disk.set_contents(store.path_of(old_file), first.substr(0, 96) + second.substr(96));
  store.open_cache({});
  store.cache->add_value_file(old_file);
  CHECK(store.cache->get(old_tables[0], six_entries()[0].full_key, true).status().code() ==
        StatusCode::Corruption);
}

// Opens a cursor at every tenth key.
void look_at_all(TableTestStore& store, const std::vector<Bytes>& keys, bool fill_cache) {
  for (std::size_t i = 0; i < keys.size(); i += 10) {
    const auto cursor =
        store.cache->cursor(store.tables[0], keys[i], "", Direction::Forward, fill_cache);
    REQUIRE(cursor->valid());
  }
}

TEST_CASE("blocks of records that scans keep beside the cache are part of its bytes") {
  TableTestStore store;
  store.options.group_bytes = 80;
  std::vector<OwnedEntry> entries;
  std::vector<Bytes> keys;
  for (int i = 0; i < 30'000; ++i) {
    keys.push_back(make_full_key(1, "key " + std::to_string(100'000 + i)));
    entries.push_back(
        {keys.back(), static_cast<SequenceNumber>(i + 1), EntryKind::Put, Bytes(60, 'v')});
  }
  REQUIRE(store.write(std::move(entries)).ok());
  REQUIRE(store.tables.size() == 1);
  TableCache::Limits limits;
  limits.cache_bytes = 1u << 20;
  store.open_cache(limits);
  look_at_all(store, {keys[0]}, true);
  const std::uint64_t one = store.cache->used_bytes();
  look_at_all(store, keys, false);
  CHECK(store.cache->used_bytes() > one + 8 * 4000);
  store.cache->forget_items(store.tables[0]->number);
  CHECK(store.cache->used_bytes() < one);
  // A cache that is full makes room.
  look_at_all(store, keys, true);
  look_at_all(store, keys, false);
  CHECK(store.cache->used_bytes() <= limits.cache_bytes);
}

// A reading of each of so many series, in series groups.
std::vector<Bytes> fill_series(TableTestStore& store, int count) {
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 0};
  std::vector<OwnedEntry> entries;
  std::vector<Bytes> keys;
  for (int i = 0; i < count; ++i) {
    keys.push_back(make_full_key(1, "series " + std::to_string(100'000 + i) + Bytes(8, '\1')));
    entries.push_back({keys.back(), static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       Bytes("\1") + Bytes(8, static_cast<char>(i % 100))});
  }
  REQUIRE(store.write(std::move(entries)).ok());
  return keys;
}

TEST_CASE("scans of a series each read a group that they share once") {
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    TableTestStore store;
    const std::vector<Bytes> keys = fill_series(store, 5'000);
    REQUIRE(store.tables.size() == 1);
    store.open_cache({});
    for (const Bytes& key : keys) {
      const auto cursor =
          store.cache->cursor(store.tables[0], key, key + Bytes(1, '\0'), direction, false);
      REQUIRE(cursor->valid());
      REQUIRE(cursor->load().ok());
      REQUIRE(cursor->full_key() == key);
    }
    CHECK(store.cache->counters().value_reads <= store.tables[0]->item_count + 1);
    const std::uint64_t used = store.cache->used_bytes();
    store.cache->forget_items(store.output.value_files[0].number);
    CHECK(store.cache->used_bytes() < used);
  }
}

TEST_CASE("groups that scans keep beside the cache are part of its bytes") {
  TableTestStore store;
  const std::vector<Bytes> keys = fill_series(store, 100'000);
  REQUIRE(store.tables.size() == 1);
  TableCache::Limits limits;
  limits.cache_bytes = 1u << 20;
  store.open_cache(limits);
  look_at_all(store, keys, true);
  for (int round = 0; round < 2; ++round) look_at_all(store, keys, false);
  CHECK(store.cache->used_bytes() <= limits.cache_bytes);
  // A smaller limit holds for what is there and for what comes: the index of the table stays.
  const std::uint64_t before = store.cache->used_bytes();
  store.cache->resize(0);
  const std::uint64_t index = store.cache->used_bytes();
  CHECK(index < before);
  look_at_all(store, keys, false);
  CHECK(store.cache->used_bytes() == index);
  look_at_all(store, keys, true);
  CHECK(store.cache->used_bytes() == index);
}

}  // namespace
}  // namespace edgecase::engine
