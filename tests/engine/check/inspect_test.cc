#include "edgecase/inspect.h"

#include <doctest/doctest.h>

#include "engine/check/inspected_text.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::has_line;

using test::OwnedEntry;
using test::TableTestStore;

void fill(TableTestStore& store) {
  store.options.coalesce_threshold_bytes = 64;
  REQUIRE(store
              .write({{make_full_key(5, "a"), 3, EntryKind::Put, "value"},
                      {make_full_key(5, "b"), 4, EntryKind::Delete, ""},
                      {make_full_key(5, "c"), 2, EntryKind::Put, Bytes(100, 'c')}})
              .ok());
}

TEST_CASE("inspect_file tells what tables hold") {
  TableTestStore store;
  fill(store);
  const auto values = inspect_file(store.disk, store.path_of(store.output.value_files[0]));
  REQUIRE(values.ok());
  CHECK(has_line(*values, "kind: value table, version 1"));
  CHECK(has_line(*values, "namespace: 5"));
  CHECK(has_line(*values, "groups: 1"));
  CHECK(has_line(*values, "single items: 1"));
  CHECK(has_line(*values, "entries: 3"));
  CHECK(has_line(*values, "key and value bytes: 108"));
  CHECK(has_line(*values, "deletes: 1"));
  CHECK(has_line(*values, "largest sequence: 4"));
  CHECK(has_line(*values, "smallest key: 0000000561"));
  CHECK(has_line(*values, "largest key: 0000000563"));

  const auto groups = inspect_file(store.disk, store.path_of(store.output.tables[0]));
  REQUIRE(groups.ok());
  CHECK(has_line(*groups, "kind: metadata table, version 1"));
  CHECK(has_line(*groups, "items: 1"));
  CHECK(has_line(*groups, "entries: 2"));
  CHECK(has_line(*groups, "value files: 1"));
  CHECK(has_line(*groups, "namespace 5: 2 entries in 1 items, keys 61 to 62"));
}

TEST_CASE("inspect_file finds every flipped bit") {
  TableTestStore store;
  fill(store);
  for (const std::string& path :
       {store.path_of(store.output.value_files[0]), store.path_of(store.output.tables[0])}) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    for (std::size_t byte = 0; byte < original.size(); ++byte) {
      CAPTURE(byte);
      for (int bit = 0; bit < 8; ++bit) {
        store.disk.flip_bit(path, byte, bit);
        CHECK_FALSE(inspect_file(store.disk, path).ok());
        store.disk.flip_bit(path, byte, bit);
      }
      store.disk.set_contents(path, original.substr(0, byte));
      CHECK_FALSE(inspect_file(store.disk, path).ok());
      store.disk.set_contents(path, original);
    }
    CHECK(inspect_file(store.disk, path).ok());
  }
}

TEST_CASE("inspect_file refuses what is no table") {
  TableTestStore store;
  store.disk.set_contents("/m/notes", "text");
  CHECK(inspect_file(store.disk, "/m/notes").status().code() == StatusCode::InvalidArgument);
  CHECK(inspect_file(store.disk, "/m/none.val").status().code() == StatusCode::NotFound);
  store.disk.set_contents("/m/text.meta", Bytes(1000, 't'));
  CHECK(inspect_file(store.disk, "/m/text.meta").status().code() == StatusCode::Corruption);
}

}  // namespace
}  // namespace edgecase::engine
