// What lies on the drives is read again in idle time: bytes that rot are told of, with the keys
// that went with them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/core/engine_fixture.h"
#include "engine/core/secrets.h"

namespace edgecase::engine {
namespace {

using test::secret;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kIntervalNs = 600 * kSecondNs;

struct ScrubbedStore : test::EngineFixture {
  static constexpr int kEntries = 3000;

  ScrubbedStore() {
    options.scrub_interval_ns = kIntervalNs;
    options.erasure_wait_ms = 0;
    options.group_bytes = 2048;
  }
  void make() {
    REQUIRE(open().ok());
    id = make_namespace("plant");
    for (int i = 0; i < kEntries; ++i)
      REQUIRE(put(id, key_of(i), value_of(i), Durability::Async).ok());
    REQUIRE(engine->flush().ok());
    REQUIRE(engine->compact({id}, {}).ok());
  }
  static std::string key_of(int i) { return "k" + std::to_string(10'000 + i); }
  static std::string value_of(int i) { return secret("v", i) + std::string(200, 'x'); }
  void pass_time(std::int64_t ns) {
    for (; ns > 0; ns -= kSecondNs / 2) {
      clock.advance(kSecondNs / 2);
      executor.advance(kSecondNs / 2);
      executor.run_all();
    }
  }
  // All files have had their turn, whichever was the first.
  void scrub() { pass_time(3 * kIntervalNs); }
  std::string path_of(FileLayer layer) {
    const auto files = engine->locate(id, {});
    REQUIRE(files.ok());
    for (const FileShare& file : *files)
      if (file.layer == layer) return file.path;
    FAIL("no such file");
    return "";
  }
  struct Place {
    std::string path;
    std::size_t at = 0;
  };
  Place place_of_value(int i) {
    const auto files = engine->locate(id, {});
    REQUIRE(files.ok());
    for (const FileShare& file : *files) {
      const std::size_t at = disk.contents(file.path).find(secret("v", i));
      if (file.layer == FileLayer::Values && at != Bytes::npos) return {file.path, at};
    }
    FAIL("it is nowhere");
    return {};
  }
  void flip(const Place& place) { disk.flip_bit(place.path, place.at, 3); }

  NamespaceId id = 0;
};

TEST_CASE("scrubbing reads all files, again and again, and finds nothing where nothing is wrong") {
  ScrubbedStore store;
  store.make();
  store.scrub();
  const Stats stats = store.engine->stats();
  CHECK(stats.scrub.passes >= 2);
  CHECK(stats.scrub.passes <= 4);
  CHECK(stats.scrub.bytes >= 2 * (stats.metadata.live_bytes + stats.values.live_bytes));
  CHECK(stats.scrub.damaged_files == 0);
  CHECK(store.engine->damaged_files().empty());
  CHECK(store.listener.corruptions.empty());
}

TEST_CASE("scrubbing is off where no interval is set") {
  ScrubbedStore store;
  store.options.scrub_interval_ns = 0;
  store.make();
  store.flip(store.place_of_value(1234));
  store.scrub();
  CHECK(store.engine->stats().scrub.files == 0);
  CHECK(store.engine->damaged_files().empty());
}

TEST_CASE("of a damaged value file scrubbing names the keys that are lost, and no others") {
  ScrubbedStore store;
  store.make();
  constexpr int kLost = 1234;
  store.flip(store.place_of_value(kLost));
  store.scrub();
  const auto found = store.engine->damaged_files();
  REQUIRE(found.size() == 1);
  CHECK(found[0].layer == FileLayer::Values);
  CHECK(found[0].path == store.path_of(FileLayer::Values));
  REQUIRE(found[0].lost.size() == 1);
  const LostRange& lost = found[0].lost[0];
  CHECK(lost.namespace_id == store.id);
  REQUIRE(lost.last);
  CHECK(lost.first <= ScrubbedStore::key_of(kLost));
  CHECK(*lost.last >= ScrubbedStore::key_of(kLost));
  std::uint64_t unreadable = 0;
  for (int i = 0; i < ScrubbedStore::kEntries; ++i) {
    const std::string key = ScrubbedStore::key_of(i);
    const bool inside = lost.first <= key && key <= *lost.last;
    CHECK((store.get(store.id, key) == ScrubbedStore::value_of(i)) == !inside);
    unreadable += inside ? 1 : 0;
  }
  CHECK(found[0].lost_entries == unreadable);
  CHECK(unreadable < 20);
  // Told once, however often it is found; the reads above told of themselves.
  REQUIRE_FALSE(store.listener.corruptions.empty());
  CHECK(store.listener.corruptions[0].message().find(
            std::to_string(unreadable) + " entries cannot be read") != std::string::npos);
  const std::size_t told = store.listener.corruptions.size();
  store.scrub();
  CHECK(store.listener.corruptions.size() == told);
  CHECK(store.engine->stats().scrub.damaged_files == 1);
}

TEST_CASE("what reads well again, or is gone, is no longer called damaged") {
  ScrubbedStore store;
  store.make();
  const auto place = store.place_of_value(7);
  store.flip(place);
  store.scrub();
  REQUIRE(store.engine->damaged_files().size() == 1);
  SUBCASE("a cable that was loose") {
    store.flip(place);
    store.scrub();
  }
  SUBCASE("a namespace that is dropped") {
    REQUIRE(store.engine->drop_namespace(store.id).ok());
  }
  CHECK(store.engine->damaged_files().empty());
  CHECK(store.engine->stats().scrub.damaged_files == 0);
}

TEST_CASE("of a damaged metadata table scrubbing names what it led to") {
  ScrubbedStore store;
  store.make();
  const std::string path = store.path_of(FileLayer::Metadata);
  store.disk.flip_bit(path, store.disk.contents(path).size() / 3, 1);
  store.reopen();  // nothing is cached
  store.scrub();
  const auto found = store.engine->damaged_files();
  REQUIRE(found.size() == 1);
  CHECK(found[0].layer == FileLayer::Metadata);
  REQUIRE_FALSE(found[0].lost.empty());
  for (int i = 0; i < ScrubbedStore::kEntries; ++i) {
    const std::string key = ScrubbedStore::key_of(i);
    bool inside = false;
    for (const LostRange& lost : found[0].lost)
      inside = inside || (lost.first <= key && (!lost.last || key <= *lost.last));
    if (!inside) CHECK(store.get(store.id, key) == ScrubbedStore::value_of(i));
  }
}

TEST_CASE("scrubbing knows what was erased where it lay from what has rotted") {
  ScrubbedStore store;
  store.make();
  WriteBatch batch;
  batch.erase_range(store.id, ScrubbedStore::key_of(100), ScrubbedStore::key_of(110));
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  REQUIRE(store.engine->erase().ok());
  store.scrub();
  CHECK(store.engine->damaged_files().empty());
  store.flip(store.place_of_value(2000));
  store.scrub();
  const auto found = store.engine->damaged_files();
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].lost.size() == 1);
  CHECK(found[0].lost[0].first <= ScrubbedStore::key_of(2000));
  CHECK(*found[0].lost[0].last >= ScrubbedStore::key_of(2000));
}

TEST_CASE("a values drive that is away is not called damaged") {
  ScrubbedStore store;
  store.make();
  store.disk.set_gone("/v", true);
  store.scrub();
  CHECK(store.engine->damaged_files().empty());
  store.disk.set_gone("/v", false);
  store.scrub();
  CHECK(store.engine->damaged_files().empty());
}

TEST_CASE("a metadata drive that answers nothing is not called damaged") {
  ScrubbedStore store;
  store.make();
  for (const auto operation : {test::Operation::Read, test::Operation::OpenFile}) {
    store.disk.fail_nth(operation, 1, EIO, test::FaultMode::Sticky, "/m");
    store.scrub();
    CHECK(store.engine->damaged_files().empty());
    store.disk.clear_faults();
    store.scrub();
    CHECK(store.engine->damaged_files().empty());
  }
}

TEST_CASE("a read that fails is told of until it succeeds") {
  ScrubbedStore store;
  store.make();
  store.disk.fail_nth(test::Operation::Read, 1, EIO, test::FaultMode::Once, "/v");
  store.pass_time(kIntervalNs);
  const auto found = store.engine->damaged_files();
  REQUIRE(found.size() == 1);
  CHECK(found[0].path.starts_with("/v/"));
  CHECK(found[0].lost_entries == 0);
  store.scrub();
  CHECK(store.engine->damaged_files().empty());
  CHECK(store.listener.corruptions.size() == 1);
}

TEST_CASE("scrubbing waits while much is written") {
  ScrubbedStore store;
  store.options.scrub_interval_ns = kIntervalNs / 10;
  store.make();
  const std::uint64_t before = store.engine->stats().scrub.files;
  for (int second = 0; second < 100; ++second) {
    for (int i = 0; i < 8; ++i) REQUIRE(store.put(store.id, "big", Bytes(200'000, 'b')).ok());
    store.pass_time(kSecondNs);
  }
  CHECK(store.engine->stats().scrub.files == before);
}

TEST_CASE("scrubbing and merges that replace files do not disturb each other") {
  ScrubbedStore store;
  store.make();
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 50; ++i)
      REQUIRE(
          store.put(store.id, ScrubbedStore::key_of(i * 7), ScrubbedStore::value_of(i * 7)).ok());
    REQUIRE(store.engine->flush().ok());
    store.pass_time(kIntervalNs / 8);
  }
  CHECK(store.engine->stats().scrub.passes >= 3);
  CHECK(store.engine->damaged_files().empty());
  CHECK(store.listener.corruptions.empty());
}

TEST_CASE("an encrypted store is scrubbed as any other") {
  ScrubbedStore store;
  store.options.encryption = MasterKeys{};
  store.make();
  store.scrub();
  CHECK(store.engine->damaged_files().empty());
  const std::string path = store.path_of(FileLayer::Values);
  store.disk.flip_bit(path, store.disk.contents(path).size() / 2, 0);
  store.scrub();
  const auto found = store.engine->damaged_files();
  REQUIRE(found.size() == 1);
  CHECK(found[0].lost_entries > 0);
  CHECK(found[0].lost_entries < ScrubbedStore::kEntries / 10);
}

}  // namespace
}  // namespace edgecase::engine

namespace edgecase::engine {
namespace {

// Files that are missing or cut when a store opens.
struct DamagedStore : ScrubbedStore {
  DamagedStore() { options.scrub_interval_ns = 0; }
  struct Scanned {
    std::map<std::string, std::string> entries;
    std::vector<DamagedKeys> damage;
    Status status;
  };
  Scanned scan(Direction direction, const KeyRange& range = {}) {
    Scanned scanned;
    ReadOptions read;
    read.direction = direction;
    read.on_damage = [&](const DamagedKeys& damage) { scanned.damage.push_back(damage); };
    const auto iterator = engine->scan(id, range, read);
    REQUIRE(iterator.ok());
    std::string before;
    for (; (*iterator)->valid(); (*iterator)->next()) {
      const std::string key((*iterator)->key());
      if (!before.empty()) CHECK((direction == Direction::Forward) == (before < key));
      before = key;
      scanned.entries[key] = Bytes((*iterator)->value());
    }
    scanned.status = (*iterator)->status();
    return scanned;
  }
  static bool holds(const std::vector<DamagedKeys>& damage, const std::string& key) {
    return std::any_of(damage.begin(), damage.end(), [&](const DamagedKeys& each) {
      return each.first <= key && (!each.last || key <= *each.last);
    });
  }
  bool is_named_lost(const std::string& key) {
    for (const DamagedFile& file : engine->damaged_files())
      for (const LostRange& lost : file.lost)
        if (lost.namespace_id == id && lost.first <= key && (!lost.last || key <= *lost.last))
          return true;
    return false;
  }
  // Each key is what was written, or is named as lost and says so.
  std::size_t check_all(const std::map<std::string, std::string>& model) {
    std::size_t lost = 0;
    for (const auto& [key, value] : model) {
      const auto got = engine->get(id, key, {});
      const std::string captured = key;
      CAPTURE(captured);
      if (got.ok()) {
        CHECK(*got == value);
        continue;
      }
      ++lost;
      CHECK(got.status().code() == StatusCode::Corruption);
      CHECK(is_named_lost(key));
    }
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      const Scanned scanned = scan(direction);
      CHECK(scanned.status.ok());
      for (const auto& [key, value] : model) {
        const auto found = scanned.entries.find(key);
        const std::string captured = key;
        CAPTURE(captured);
        if (found != scanned.entries.end()) {
          CHECK(found->second == value);
        } else {
          CHECK(holds(scanned.damage, key));
        }
      }
      for (const auto& [key, value] : scanned.entries) CHECK(model.contains(key));
    }
    return lost;
  }
};

TEST_CASE("a store opens with a file missing or cut, names what is lost, and goes on") {
  DamagedStore store;
  REQUIRE(store.open().ok());
  store.id = store.make_namespace("plant");
  std::map<std::string, std::string> model;
  const auto write = [&](int i, const std::string& value) {
    const std::string key = DamagedStore::key_of(i);
    REQUIRE(store.put(store.id, key, value, Durability::Async).ok());
    model[key] = value;
  };
  // A run that all others overlap, and three tables of level 0.
  for (int i = 0; i < 1000; ++i) write(i, DamagedStore::value_of(i));
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  for (int part = 0; part < 3; ++part) {
    for (int i = part; i < 900; i += 7) write(i, "newer " + std::to_string(part) + Bytes(150, 'n'));
    REQUIRE(store.engine->flush().ok());
  }
  REQUIRE(store.put(store.id, "logged", "l").ok());
  model["logged"] = "l";
  const auto files = store.engine->locate(store.id, {});
  REQUIRE(files.ok());
  std::vector<std::string> paths;
  for (const FileShare& file : *files)
    if (file.layer != FileLayer::Log) paths.push_back(file.path);
  REQUIRE(paths.size() >= 8);
  enum class Kind { Missing, Empty, Half, Tail };
  for (const Kind kind : {Kind::Missing, Kind::Empty, Kind::Half, Kind::Tail}) {
    for (const std::string& path : paths) {
      CAPTURE(path);
      CAPTURE(static_cast<int>(kind));
      store.close();
      const auto all = store.disk.durable_contents();
      const Bytes contents = store.disk.contents(path);
      if (kind == Kind::Missing) {
        REQUIRE(store.disk.remove_file(path).ok());
      } else {
        const std::size_t size = kind == Kind::Empty  ? 0
                                 : kind == Kind::Half ? contents.size() / 2
                                                      : contents.size() - 3;
        store.disk.set_contents(path, contents.substr(0, size));
      }
      REQUIRE(store.open().ok());
      const auto damaged = store.engine->damaged_files();
      REQUIRE(damaged.size() == 1);
      CHECK(damaged[0].path == path);
      CHECK_FALSE(store.listener.corruptions.empty());
      const std::size_t lost = store.check_all(model);
      if (kind != Kind::Tail) CHECK(lost > 0);
      // What is lost may be written again; merges that cannot read it go on with the rest.
      auto after = model;
      for (int i = 0; i < 1000; i += 10) {
        const std::string key = DamagedStore::key_of(i);
        REQUIRE(store.put(store.id, key, "again", Durability::Async).ok());
        after[key] = "again";
      }
      REQUIRE(store.engine->flush().ok());
      static_cast<void>(store.engine->compact({store.id}, {}).ok());
      store.pass_time(100 * kSecondNs);
      CHECK(store.engine->stats().values.degraded.ok());
      CHECK(store.engine->stats().metadata.degraded.ok());
      CHECK(store.get(store.id, DamagedStore::key_of(10)) == "again");
      static_cast<void>(store.check_all(after));
      CHECK(store.engine->compact({store.id}, {}).ok());
      static_cast<void>(store.check_all(after));
      store.close();
      for (const auto& [name, now] : store.disk.durable_contents())
        if (!all.contains(name)) static_cast<void>(store.disk.remove_file(name).ok());
      for (const auto& [name, was] : all) store.disk.set_contents(name, was);
      store.listener.corruptions.clear();
    }
  }
  REQUIRE(store.open().ok());
  CHECK(store.check_all(model) == 0);
}

TEST_CASE("a merge that comes to damage nobody knew of sets it apart, and others go on") {
  DamagedStore store;
  store.make();
  store.flip(store.place_of_value(1234));
  REQUIRE(store.engine->damaged_files().empty());
  std::map<std::string, std::string> model;
  for (int i = 0; i < DamagedStore::kEntries; ++i)
    model[DamagedStore::key_of(i)] = DamagedStore::value_of(i);
  for (int i = 0; i < DamagedStore::kEntries; i += 2) {
    model[DamagedStore::key_of(i)] = "newer";
    REQUIRE(store.put(store.id, DamagedStore::key_of(i), "newer", Durability::Async).ok());
  }
  REQUIRE(store.engine->flush().ok());
  const Status merged = store.engine->compact({store.id}, {});
  CHECK((merged.ok() || merged.code() == StatusCode::Corruption));
  REQUIRE(store.engine->damaged_files().size() == 1);
  CHECK(store.engine->compact({store.id}, {}).ok());
  store.pass_time(100 * kSecondNs);
  CHECK(store.engine->stats().values.degraded.ok());
  CHECK(store.check_all(model) > 0);
}

}  // namespace
}  // namespace edgecase::engine
