#include <doctest/doctest.h>

#include <functional>
#include <map>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log.h"
#include "support/test_share.h"

namespace edgecase::engine {
namespace {

using test::RecordingObserver;

using Model = std::map<Bytes, Bytes>;

// Several flushes over two namespaces that overwrite and delete, so that age decides; on the values
// drive alone when `names_too` is false.
struct RepairedStore : test::EngineFixture {
  explicit RepairedStore(bool names_too = true, bool feeds = false) {
    options.feeds = feeds;
    options.coalesce_threshold_bytes = 64;
    options.group_bytes = 128;
    REQUIRE(open().ok());
    plant = make_namespace("plant", {Placement::Values, GroupCodec::Series, 4});
    if (names_too) names = make_namespace("names", {Placement::Metadata, GroupCodec::Plain, 0});
    SeededRandom choices(7);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 60; ++i) {
        const std::uint64_t k = choices.next() % 80;
        write_one(plant, "key" + std::to_string(k), choices.next() % 5);
        if (names_too && i % 4 == 0) write_one(names, "n" + std::to_string(k), 1);
      }
      REQUIRE(engine->flush().ok());
    }
    flushed = {{plant, models[plant]}, {names, models[names]}};
    for (int i = 0; i < 10; ++i) write_one(plant, "late" + std::to_string(i), 1);
    close();
  }

  void write_one(NamespaceId id, const Bytes& key, std::uint64_t choice) {
    WriteBatch batch;
    Bytes value = key + "-" + std::to_string(++written);
    if (choice == 0) {
      batch.remove(id, key);
      models[id].erase(key);
    } else {
      if (choice == 4) value.resize(200, 'x');
      batch.put(id, key, value);
      models[id][key] = value;
    }
    REQUIRE(engine->write(batch, Durability::Sync).ok());
  }

  Model contents(NamespaceId id) {
    Model found;
    auto scan = engine->scan(id, {}, {});
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) found.emplace((*scan)->key(), (*scan)->value());
    CHECK((*scan)->status().ok());
    return found;
  }
  std::vector<std::string> files(const std::string& prefix, const std::string& suffix = "") {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : disk.durable_contents()) {
      if (path.starts_with(prefix) && path.ends_with(suffix)) paths.push_back(path);
    }
    return paths;
  }
  // In both copies.
  void damage_manifest(std::uint64_t at) {
    const std::string path = files("/m/store/MANIFEST").front();
    disk.flip_bit(path, at, 1);
    disk.flip_bit(path, begin_of_second_copy(disk.contents(path).size()) + at, 1);
  }
  void remove_all(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      REQUIRE(disk.remove_file(path).ok());
      REQUIRE(disk.sync_directory(path.substr(0, path.rfind('/'))).ok());
    }
  }

  // Repairs, then demands that nothing is wrong any more.
  void repair(RecordingObserver& observer) {
    const auto repaired = repair_store(disk, options, observer);
    INFO(repaired.status().to_string());
    REQUIRE(repaired.ok());
    RecordingObserver after;
    const auto report = check_store(disk, options, after);
    REQUIRE(report.ok());
    INFO(after.all());
    CHECK(report->problems == 0);
    CHECK_FALSE(disk.exists("/m/store/REPAIR"));
  }
  void expect(NamespaceId id, const Model& wanted) { CHECK((contents(id) == wanted)); }
  void expect_everything() {
    reopen();
    expect(plant, models[plant]);
    expect(names, models[names]);
    CHECK(engine->find_namespace("plant").ok());
    CHECK(put(plant, "after", "1").ok());
    CHECK(engine->flush().ok());
    CHECK(get(plant, "after") == "1");
    WriteBatch batch;
    batch.remove(plant, "after");
    CHECK(engine->write(batch, Durability::Sync).ok());
  }

  NamespaceId plant = 0;
  NamespaceId names = 0;
  std::map<NamespaceId, Model> models;
  std::map<NamespaceId, Model> flushed;
  int written = 0;
};

TEST_CASE("repair_store leaves a whole store alone") {
  RepairedStore store;
  const auto before = store.disk.durable_contents();
  RecordingObserver observer;
  const auto report = repair_store(store.disk, store.options, observer);
  REQUIRE(report.ok());
  CHECK(report->repairs == 0);
  CHECK((store.disk.durable_contents() == before));
}

void expect_page_indexes_made_anew(bool compress) {
  RepairedStore store;
  store.options.group_bytes = 16 << 10;
  store.options.compress = compress;
  store.reopen();
  const NamespaceId pages =
      store.make_namespace("pages", {Placement::Values, GroupCodec::Plain, 0});
  for (int i = 0; i < 1200; ++i) store.write_one(pages, "key" + std::to_string(1000 + i), 1);
  for (int i = 0; i < 1200; i += 3) store.write_one(pages, "key" + std::to_string(1000 + i), 0);
  REQUIRE(store.engine->flush().ok());
  store.close();
  store.remove_all(store.files("/m/store/tables/", ".meta"));
  RecordingObserver observer;
  store.repair(observer);
  store.expect_everything();
  store.expect(pages, store.models[pages]);
  store.reopen();
  REQUIRE(store.get(pages, "key1001") == store.models[pages]["key1001"]);
  const Stats before = store.engine->stats();
  REQUIRE(store.get(pages, "key1398") == store.models[pages]["key1398"]);
  const Stats after = store.engine->stats();
  CHECK(after.reads.value_reads - before.reads.value_reads == 1);
  CHECK(after.values.bytes_read - before.values.bytes_read < 3000);
}

TEST_CASE("repair_store makes page indexes anew") {
  for (const bool compress : {false, true}) {
    CAPTURE(compress);
    expect_page_indexes_made_anew(compress);
  }
}

TEST_CASE("repair_store makes metadata anew and loses no value") {
  struct Case {
    const char* what;
    std::function<void(RepairedStore&)> damage;
    bool lost_manifest = false;  // a loss of its own, though here nothing was gone
  };
  const Case cases[] = {
      {"one metadata table is gone",
       [](RepairedStore& s) { s.remove_all({s.files("/m/store/tables/", ".meta").front()}); }},
      {"all metadata tables are gone",
       [](RepairedStore& s) { s.remove_all(s.files("/m/store/tables/", ".meta")); }},
      {"a metadata table is damaged in a block",
       [](RepairedStore& s) {
         s.disk.flip_bit(s.files("/m/store/tables/", ".meta").front(), 60, 1);
       }},
      {"a metadata table is cut",
       [](RepairedStore& s) { s.disk.truncate(s.files("/m/store/tables/", ".meta").back(), 70); }},
      {"CURRENT is gone", [](RepairedStore& s) { s.remove_all({"/m/store/CURRENT"}); }},
      {"CURRENT is damaged", [](RepairedStore& s) { s.disk.flip_bit("/m/store/CURRENT", 0, 1); }},
      {"the manifest is gone", [](RepairedStore& s) { s.remove_all(s.files("/m/store/MANIFEST")); },
       true},
      {"both copies of the manifest are damaged at their begin",
       [](RepairedStore& s) { s.damage_manifest(4100); }, true},
      {"both copies of the manifest are damaged in the middle",
       [](RepairedStore& s) { s.damage_manifest(4700); }, true},
      {"the identity of the metadata directory is gone",
       [](RepairedStore& s) { s.remove_all({"/m/store/IDENTITY"}); }},
      {"the identity of the values directory is damaged",
       [](RepairedStore& s) { s.disk.flip_bit("/v/store/IDENTITY", 20, 1); }},
      {"manifest and metadata tables are gone",
       [](RepairedStore& s) {
         s.remove_all(s.files("/m/store/MANIFEST"));
         s.remove_all(s.files("/m/store/tables/", ".meta"));
       },
       true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    RepairedStore store;
    c.damage(store);
    RecordingObserver observer;
    store.repair(observer);
    CAPTURE(observer.all());
    CHECK(!observer.problems.empty());
    CHECK(!observer.repairs.empty());
    CHECK(observer.losses.size() == (c.lost_manifest ? 1 : 0));
    store.expect_everything();
    CHECK(store.engine->find_namespace(kRepairedNamespace).ok());
  }
}

TEST_CASE("repair_store brings back all flushed values after the loss of the metadata drive") {
  RepairedStore store(false);
  store.remove_all(store.files("/m/store/"));
  CHECK_FALSE(store.open().ok());
  RecordingObserver observer;
  store.repair(observer);
  store.reopen();
  store.expect(store.plant, store.flushed[store.plant]);
  const auto info = store.engine->find_namespace("plant");
  REQUIRE(info.ok());
  CHECK(info->id == store.plant);
  CHECK(info->options.codec == GroupCodec::Series);
  CHECK(info->options.scope_bytes == 4);
}

TEST_CASE("repair_store says what a damaged value table lost and keeps the rest") {
  RepairedStore store;
  const std::string path = store.files("/v/store/", ".val").front();
  store.disk.flip_bit(path, 110, 2);  // in its first item
  RecordingObserver observer;
  store.repair(observer);
  CAPTURE(observer.all());
  CHECK(observer.losses.size() == 1);
  CHECK(observer.losses.front().find(path + " at byte 96") != std::string::npos);
  CHECK(store.disk.exists("/v/store/damaged/" + path.substr(path.rfind('/') + 1)));
  store.reopen();
  // Nothing but what was ever written, and most of it.
  const Model found = store.contents(store.plant);
  CHECK(found.size() + 20 > store.models[store.plant].size());
  store.expect(store.names, store.models[store.names]);
}

TEST_CASE("repair_store leaves what it copies at its place in the order of commits") {
  RepairedStore store(true, true);
  const auto positions = [&] {
    std::map<Bytes, CommitPosition> found;
    store.reopen();
    auto scan = store.engine->scan(store.plant, {}, {});
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) found.emplace((*scan)->key(), (*scan)->position());
    store.close();
    return found;
  };
  const auto before = positions();
  for (const std::string& path : store.files("/v/store/", ".val"))
    store.disk.flip_bit(path, 110, 2);  // in its first item
  RecordingObserver observer;
  store.repair(observer);
  CHECK(observer.losses.size() == store.files("/v/store/damaged/").size());
  const auto after = positions();
  std::size_t kept = 0;
  for (const auto& [key, position] : after) {
    const auto found = before.find(key);  // a delete may have been lost
    if (found == before.end()) continue;
    CHECK(position <= found->second);  // an older one may have come up for one that was lost
    kept += position == found->second ? 1u : 0u;
  }
  CHECK(kept > 20);
}

TEST_CASE("repair_store says that a value table is gone") {
  RepairedStore store;
  const std::string path = store.files("/v/store/", ".val").back();
  store.remove_all({path});
  RecordingObserver observer;
  store.repair(observer);
  CAPTURE(observer.all());
  REQUIRE(observer.losses.size() == 1);
  CHECK(observer.losses.front().find(path) != std::string::npos);
  CHECK(observer.losses.front().find("entries") != std::string::npos);
  store.reopen();
  store.expect(store.names, store.models[store.names]);
}

TEST_CASE("repair_store keeps a damaged log and what came before and behind the damage") {
  RepairedStore store;
  std::string damaged;
  for (const std::string& path : store.files("/m/store/wal/")) {
    const Bytes bytes = store.disk.contents(path);
    const std::size_t at = bytes.find("late5-");
    if (at == Bytes::npos) continue;
    store.disk.flip_bit(path, at, 0);
    damaged = path;
  }
  REQUIRE(!damaged.empty());
  RecordingObserver observer;
  store.repair(observer);
  CAPTURE(observer.all());
  CHECK(observer.losses.size() == 1);
  store.reopen();
  Model wanted = store.flushed[store.plant];
  for (int i = 0; i < 10; ++i) {
    const Bytes key = "late" + std::to_string(i);
    if (i != 5) wanted[key] = store.models[store.plant][key];
  }
  store.expect(store.plant, wanted);
  CHECK(store.disk.exists("/m/store/damaged/" + damaged.substr(damaged.rfind('/') + 1)));
}

TEST_CASE("repair_store cut short anywhere is finished by a second run") {
  const auto damage = [](RepairedStore& store) {
    store.remove_all(store.files("/m/store/MANIFEST"));
    store.remove_all(store.files("/m/store/tables/", ".meta"));
  };
  for (std::uint64_t operation = 1;; operation += test::share_step()) {
    CAPTURE(operation);
    RepairedStore store;
    damage(store);
    store.disk.stop_at(operation);
    RecordingObserver first;
    const bool finished = repair_store(store.disk, store.options, first).ok();
    store.disk.power_cut(operation, test::CutPolicy::Any);
    if (finished) break;
    // Between the two runs the store does not open, or it opens whole.
    if (store.open().ok()) {
      store.expect_everything();
      store.close();
    }
    RecordingObserver second;
    store.repair(second);
    CAPTURE(second.all());
    store.expect_everything();
  }
}

TEST_CASE("an engine does not open a store whose repair is not finished") {
  RepairedStore store;
  store.disk.set_contents("/m/store/REPAIR", "x");
  const Status opened = store.open();
  CHECK(opened.code() == StatusCode::Corruption);
  RecordingObserver observer;
  store.repair(observer);
  store.expect_everything();
}

}  // namespace
}  // namespace edgecase::engine
