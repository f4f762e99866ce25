// What merges write: tables of a bounded size, runs with barriers, nothing where they are given up.
#include <doctest/doctest.h>

#include <vector>

#include "compaction/merge_job.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::TableTestStore;

Bytes output_key(int i) {
  return make_full_key(1, "key " + std::to_string(1'000 + i));
}

// Entries of 200 bytes, four or five a group, in order; the last group is closed.
void add_entries(MergeOutput& output, int count) {
  for (int i = 0; i < count; ++i) {
    const Bytes key = output_key(i);
    const Bytes value(200, static_cast<char>('a' + i % 26));
    REQUIRE(output.add({key, static_cast<SequenceNumber>(i + 1), EntryKind::Put, value}).ok());
  }
  REQUIRE(output.cut().ok());
}

}  // namespace

TEST_CASE("merge output: a run's tables end at their size and before a barrier") {
  TableTestStore store;
  store.options.group_bytes = 1024;
  store.options.compress = false;
  MergeOutput output(store.context());
  MergeOutput::Place place;
  place.run = 77;
  place.level = 2;
  // Between two keys: what lies there stays where it is.
  place.barriers = {output_key(29) + "+", output_key(32) + "+"};
  place.table_item_bytes = 4'000;
  output.begin(1, TableKind::Groups, place);
  add_entries(output, 100);
  REQUIRE(output.end().ok());
  REQUIRE(output.finish().ok());
  CHECK(output.bytes_written() > 20'000);
  store.output = output.take_output();
  store.open_cache({});
  CHECK(store.output.tables.size() >= 5);
  std::uint64_t entries = 0;
  for (const TableMetadata& table : store.output.tables) {
    CAPTURE(table.smallest);
    CHECK(table.run == 77);
    CHECK(table.level == 2);
    CHECK(table.entry_count <= 30);
    for (const Bytes& barrier : place.barriers)
      CHECK_FALSE((table.smallest < barrier && table.largest >= barrier));
    entries += table.entry_count;
    store.tables.push_back(std::make_shared<const TableMetadata>(table));
  }
  CHECK(entries == 100);
  const auto rows = store.newest_puts(store.tables);
  CHECK(rows.size() == 100);
  CHECK(rows.at(output_key(27)) == Bytes(200, 'b'));
}

TEST_CASE("merge output: what is given up leaves no file") {
  TableTestStore store;
  store.options.group_bytes = 1024;
  MergeOutput output(store.context());
  output.begin(1, TableKind::Groups, {});
  add_entries(output, 100);
  REQUIRE(output.end().ok());
  const auto files = [&] {
    return store.disk.list_directory("/v")->size() + store.disk.list_directory("/m/tables")->size();
  };
  CHECK(files() >= 2);
  output.discard();
  CHECK(files() == 0);
}

}  // namespace edgecase::engine
