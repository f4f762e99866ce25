#include <doctest/doctest.h>

#include "edgecase/store_check.h"
#include "engine/check/inspected_text.h"
#include "engine/core/engine_fixture.h"
#include "engine/table/table_test_store.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "support/test_share.h"

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

using test::has_line;

Options directories(const std::string& metadata, const std::string& values) {
  Options options;
  options.metadata_directory = metadata;
  options.values_directory = values;
  return options;
}

// A store with one namespace, one flush and something in the log; closed.
struct ClosedStore : test::EngineFixture {
  ClosedStore() {
    REQUIRE(open().ok());
    const NamespaceId id = make_namespace("plant");
    REQUIRE(put(id, "a", "1").ok());
    REQUIRE(engine->flush().ok());
    WriteBatch batch;
    batch.put(id, "b", "2");
    batch.remove(id, "a");
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    close();
  }

  std::string manifest() const {
    Bytes name = disk.contents("/m/store/CURRENT");
    name.pop_back();
    return "/m/store/" + name;
  }
  // The slot that holds what was written last.
  std::string wal_slot() {
    const auto entries = disk.list_directory("/m/store/wal");
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries) {
      const std::string path = "/m/store/wal/" + entry.name;
      const auto facts = inspect_file(disk, path);
      if (facts.ok() && has_line(*facts, "largest sequence: 3")) return path;
    }
    FAIL("no slot holds the last write");
    return {};
  }
};

TEST_CASE("inspect_file tells what the files that are no tables hold") {
  ClosedStore store;
  for (const std::string directory : {"/m/store", "/v/store"}) {
    const auto identity = inspect_file(store.disk, directory + "/IDENTITY");
    REQUIRE(identity.ok());
    CHECK(has_line(*identity, "kind: identity, version 1"));
    CHECK(
        has_line(*identity, directory == "/m/store" ? "directory: metadata" : "directory: values"));
  }
  CHECK(inspect_file(store.disk, "/m/store/LOCK").ok());
  const auto current = inspect_file(store.disk, "/m/store/CURRENT");
  REQUIRE(current.ok());
  CHECK(current->find("manifest: MANIFEST-") != std::string::npos);

  const auto manifest = inspect_file(store.disk, store.manifest());
  REQUIRE(manifest.ok());
  CHECK(has_line(*manifest, "kind: manifest, version 1"));
  CHECK(has_line(*manifest, "metadata tables: 1"));
  CHECK(has_line(*manifest, "value tables: 1"));
  CHECK(manifest->find("namespace 1: \"plant\"") != std::string::npos);

  const auto wal = inspect_file(store.disk, store.wal_slot());
  REQUIRE(wal.ok());
  CHECK(has_line(*wal, "kind: write-ahead log segment, version 3"));
  CHECK(has_line(*wal, "entries: 3"));
  CHECK(has_line(*wal, "deletes: 1"));
}

TEST_CASE("inspect_file knows a file by its content when its name says nothing") {
  ClosedStore store;
  const std::pair<std::string, std::string> copies[] = {
      {"/m/store/IDENTITY", "kind: identity, version 1"},
      {store.manifest(), "kind: manifest, version 1"},
      {store.wal_slot(), "kind: write-ahead log segment, version 3"},
      {metadata_table_path("/m/store", 2), "kind: metadata table, version 1"}};
  for (const auto& copy : copies) {
    CAPTURE(copy.first);
    REQUIRE(store.disk.exists(copy.first));
    store.disk.set_contents("/m/copy", store.disk.contents(copy.first));
    const auto facts = inspect_file(store.disk, "/m/copy");
    REQUIRE(facts.ok());
    CHECK(has_line(*facts, copy.second));
  }
}

TEST_CASE("inspect_file finds every flipped byte of IDENTITY and CURRENT") {
  ClosedStore store;
  for (const std::string path : {"/m/store/IDENTITY", "/m/store/CURRENT"}) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    for (std::size_t byte = 0; byte < original.size(); ++byte) {
      CAPTURE(byte);
      store.disk.set_contents(path, original.substr(0, byte));
      CHECK_FALSE(inspect_file(store.disk, path).ok());
      store.disk.set_contents(path, original);
      // One digit of CURRENT for another names another manifest: only the whole store tells.
      if (path.ends_with("CURRENT") && byte >= 9 && byte + 1 < original.size()) continue;
      store.disk.flip_bit(path, byte, 3);
      CHECK_FALSE(inspect_file(store.disk, path).ok());
      store.disk.set_contents(path, original);
    }
  }
}

TEST_CASE("inspect_file sees every flipped byte of a log, as damage or in a note") {
  ClosedStore store;
  for (const std::string& path : {store.manifest(), store.wal_slot()}) {
    CAPTURE(path);
    const bool is_wal = path.find("/wal/") != std::string::npos;
    const Bytes original = store.disk.contents(path);
    const auto whole = inspect_file(store.disk, path);
    REQUIRE(whole.ok());
    REQUIRE(whole->find("note: ") == std::string::npos);
    const std::size_t at = whole->find("bytes of records: ") + 18;
    const std::size_t end = kLogHeadBytes + std::stoull(whole->substr(at));
    for (std::size_t byte = 0; byte < end; byte += test::share_step()) {
      CAPTURE(byte);
      store.disk.flip_bit(path, byte, 5);
      const auto facts = inspect_file(store.disk, path);
      store.disk.flip_bit(path, byte, 5);
      if (!facts.ok() || facts->find("note: ") != std::string::npos) continue;
      // A slot is used again and again: what its last record's header was nobody can tell.
      CHECK(is_wal);
      CHECK(*facts != *whole);
    }
    CHECK(inspect_file(store.disk, path).ok());
  }
}

TEST_CASE("inspect_store tells the whole at a glance and refuses what is no store") {
  ClosedStore store;
  const auto facts = inspect_store(store.disk, directories("/m/store", "/v/store"));
  REQUIRE(facts.ok());
  CHECK(facts->find("metadata tables: 1 files") != std::string::npos);
  CHECK(facts->find("namespace 1: \"plant\", 1 files") != std::string::npos);
  CHECK(inspect_store(store.disk, directories("/m/none", "/v/store")).status().code() ==
        StatusCode::NotFound);
  CHECK(inspect_store(store.disk, directories("/m/store", "/v/none")).status().code() ==
        StatusCode::Unavailable);
}

TEST_CASE("a manifest and a whole store tell which erased ranges are pending") {
  test::EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("plant");
  REQUIRE(store.put(id, "k2", "v").ok());
  WriteBatch batch;
  batch.erase_range(id, "k1", "k3");
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  store.executor.drop_all();
  const auto words = [&] {
    store.close();
    const auto facts = inspect_store(store.disk, directories("/m/store", "/v/store"));
    REQUIRE(facts.ok());
    REQUIRE(store.open().ok());
    return *facts;
  };
  // The manifest knows of it as soon as the log does.
  CHECK(has_line(words(), "erased ranges that are pending: 1"));
  REQUIRE(store.engine->flush().ok());
  const std::string pending = words();
  CHECK(has_line(pending, "erased ranges that are pending: 1"));
  CHECK(pending.find("6b31 to before ") != std::string::npos);
  REQUIRE(store.engine->erase().ok());
  CHECK(has_line(words(), "erased ranges that are pending: 0"));
}

}  // namespace
}  // namespace edgecase::engine
