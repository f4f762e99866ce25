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

}  // namespace
}  // namespace edgecase::engine
