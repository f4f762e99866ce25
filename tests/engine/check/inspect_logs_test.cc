#include <doctest/doctest.h>

#include "edgecase/inspect.h"
#include "engine/check/inspected_text.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log_format.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

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
