// Starts without the values drive: degraded, nothing lost, and healed when it comes.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/drives.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

constexpr std::int64_t kLongNs = 20'000'000'000;

struct AwayStore : EngineFixture {
  AwayStore() {
    options.open_without_values = true;
    options.erasure_reserve_bytes = 64u << 10;
    REQUIRE(open().ok());
    id = make_namespace("default");
    REQUIRE(put(id, "old", Bytes(300, 'o')).ok());
    REQUIRE(engine->flush().ok());
    executor.run_all();
    REQUIRE(put(id, "logged", "l").ok());
    close();
  }

  std::map<std::string, Bytes> on_values() const {
    std::map<std::string, Bytes> files;
    for (auto& [path, contents] : disk.durable_contents()) {
      if (path.starts_with("/v/")) files[path] = contents;
    }
    return files;
  }
  void pass_time() {
    executor.advance(kLongNs);
    clock.advance(kLongNs);
    executor.run_all();
  }
  StatusCode code_of(ByteView key) { return engine->get(id, key, {}).status().code(); }
  void check_healed() {
    pass_time();
    CHECK(engine->stats().values.degraded.ok());
    CHECK(!listener.resumed.empty());
    CHECK(engine->flush().ok());
    CHECK(get(id, "old") == Bytes(300, 'o'));
    CHECK(get(id, "logged") == "l");
    CHECK(get(id, "new") == "n");
    options.open_without_values = false;
    reopen();
    CHECK(get(id, "new") == "n");
  }

  NamespaceId id = 0;
};

}  // namespace

TEST_CASE("a store opens without its values drive, takes writes, and heals when it comes") {
  AwayStore store;
  bool is_mounted_empty = false;
  SUBCASE("the drive does not answer") {
    store.disk.set_gone("/v", true);
  }
  SUBCASE("nothing is mounted") {
    is_mounted_empty = true;
  }
  const auto before = store.on_values();
  if (is_mounted_empty) {
    const auto entries = store.disk.list_directory("/v/store");
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries)
      REQUIRE(store.disk.remove_file("/v/store/" + entry.name).ok());
    REQUIRE(store.disk.sync_directory("/v/store").ok());
  }
  store.reopen();
  CHECK(store.engine->stats().values.degraded.code() ==
        (is_mounted_empty ? StatusCode::Unavailable : StatusCode::IoError));
  CHECK(store.engine->stats().metadata.degraded.ok());
  CHECK(store.listener.degraded.size() == 1);
  CHECK(store.put(store.id, "new", "n").ok());
  CHECK(store.get(store.id, "logged") == "l");
  CHECK(store.code_of("old") != StatusCode::NotFound);
  CHECK(store.code_of("none") == StatusCode::NotFound);
  CHECK_FALSE(store.engine->flush().ok());
  store.pass_time();
  // Again, with what was written meanwhile in the log alone.
  store.reopen();
  CHECK(store.get(store.id, "new") == "n");
  store.pass_time();
  if (is_mounted_empty) {
    CHECK(store.on_values().empty());  // not even a reserve
    for (const auto& [path, contents] : before) store.disk.set_contents(path, contents);
  }
  store.disk.set_gone("/v", false);
  store.check_healed();
}

TEST_CASE("what was taken without the values drive is there after a start without it") {
  AwayStore store;
  store.disk.set_gone("/v", true);
  store.reopen();
  int taken = 0;
  for (; taken < 10'000; ++taken) {
    const Durability durability = taken % 3 == 0 ? Durability::Sync : Durability::Async;
    if (!store.put(store.id, "k" + std::to_string(taken), Bytes(1000, 'v'), durability).ok()) break;
    store.executor.run_all();
  }
  CHECK(taken > 500);
  CHECK(taken < 10'000);
  store.reopen();
  for (const int key : {0, taken / 2, taken - 1})
    CHECK(store.get(store.id, "k" + std::to_string(key)) == Bytes(1000, 'v'));
  CHECK(store.put(store.id, "new", "n").code() == StatusCode::Busy);
  store.disk.set_gone("/v", false);
  store.pass_time();
  CHECK(store.put(store.id, "new", "n").ok());
  store.check_healed();
}

TEST_CASE("a store opens on a values drive that cannot be written to, and reads it") {
  AwayStore store;
  store.disk.set_read_only("/v", true);
  store.reopen();
  CHECK(store.get(store.id, "old") == Bytes(300, 'o'));
  CHECK(store.put(store.id, "new", "n").ok());
  CHECK_FALSE(store.engine->flush().ok());
  CHECK_FALSE(store.engine->stats().values.degraded.ok());
  store.pass_time();
  store.disk.set_read_only("/v", false);
  store.check_healed();
}

TEST_CASE("a values drive of another store is refused at the start, and when it comes later") {
  AwayStore store;
  const Bytes identity = store.disk.contents("/v/store/IDENTITY");
  auto named = engine::decode_identity(identity, "IDENTITY");
  REQUIRE(named.ok());
  named->store_id[0] ^= 1;
  const Bytes foreign = engine::encode_identity(*named);
  store.disk.set_gone("/v", true);
  store.reopen();
  store.disk.set_gone("/v", false);
  store.disk.set_contents("/v/store/IDENTITY", foreign);
  const auto before = store.on_values();
  store.pass_time();
  CHECK_FALSE(store.engine->stats().values.degraded.ok());
  CHECK(store.put(store.id, "new", "n").ok());
  CHECK(store.on_values() == before);
  store.close();
  CHECK_FALSE(store.open().ok());
  store.disk.set_contents("/v/store/IDENTITY", identity);
  REQUIRE(store.open().ok());
  CHECK(store.get(store.id, "new") == "n");
}

TEST_CASE("a values drive that comes back without a file is used, and what is lost is named") {
  AwayStore store;
  store.disk.set_gone("/v", true);
  store.reopen();
  store.disk.set_gone("/v", false);
  std::string lost;
  for (const auto& [path, contents] : store.on_values()) {
    if (path.ends_with(".val")) lost = path;
  }
  REQUIRE(!lost.empty());
  const Bytes contents = store.disk.contents(lost);
  REQUIRE(store.disk.remove_file(lost).ok());
  store.pass_time();
  CHECK(store.engine->stats().values.degraded.ok());
  CHECK(store.put(store.id, "new", "n").ok());
  CHECK(store.engine->flush().ok());
  CHECK(store.code_of("old") == StatusCode::Corruption);
  const auto damaged = store.engine->damaged_files();
  REQUIRE(damaged.size() == 1);
  CHECK(damaged[0].path == lost);
  CHECK(damaged[0].lost_entries == 1);
  store.disk.set_contents(lost, contents);
  store.check_healed();
}

}  // namespace edgecase::test
