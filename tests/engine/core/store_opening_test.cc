// Opening: what a store refuses to open with, and says of it; what it heals and removes; and starts
// without the values drive.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/coding.h"
#include "base/hash.h"
#include "core/drives.h"
#include "engine/core/engine_fixture.h"
#include "file/file_names.h"
#include "log/log.h"
#include "support/temp_directory.h"

namespace edgecase::test {
namespace {

using namespace edgecase::engine;

}  // namespace

TEST_CASE("engine opens one store once") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  auto again = Engine::open(
      store.options, {store.disk, store.clock, store.random, store.executor, store.listener});
  CHECK(again.status().code() == StatusCode::Locked);
}

TEST_CASE("engine tells wrong directories apart") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  store.make_namespace("default");
  REQUIRE(store.put(1, "a", "1").ok());
  store.close();
  const Options own = store.options;
  const auto open_with = [&](const std::string& metadata, const std::string& values) {
    store.options.metadata_directory = metadata;
    store.options.values_directory = values;
    const Status opened = store.open();
    store.close();
    MESSAGE(opened.to_string());
    return opened.code();
  };
  CHECK(open_with("/m/store", "/v/empty") == StatusCode::Unavailable);
  CHECK_FALSE(store.disk.exists("/v/empty"));
  CHECK(open_with("/v/store", "/m/store") == StatusCode::Unavailable);  // swapped
  CHECK(open_with("/m/other", "/v/store") == StatusCode::Unavailable);  // values of another
  CHECK(open_with("/m/store", "/m/store") == StatusCode::InvalidArgument);
  CHECK(open_with("/m/second", "/v/second") == StatusCode::Ok);
  CHECK(open_with("/m/store", "/v/second") == StatusCode::Unavailable);
  store.options.create_if_missing = false;
  CHECK(open_with("/m/third", "/v/third") == StatusCode::Unavailable);
  CHECK_FALSE(store.disk.exists("/m/third"));
  store.options = own;
  store.reopen();
  CHECK(store.get(1, "a") == "1");
}

TEST_CASE("engine reports a missing or damaged manifest and changes nothing") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 200; ++i) {
    REQUIRE(store.put(id, std::to_string(i), Bytes(500, 'v')).ok());
    if (i == 100) REQUIRE(store.engine->flush().ok());
  }
  store.close();
  std::map<std::string, Bytes> before;
  for (const auto& [path, bytes] : store.disk.durable_contents()) before[path] = bytes;
  // The log's last segment; a flip in the middle of what was acknowledged.
  std::size_t tried = 0;
  for (const auto& file : before) {
    const std::string& path = file.first;
    const Bytes& bytes = file.second;
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto parsed = parse_file_name(name);
    if (!parsed || parsed->type != FileType::Manifest) continue;
    CAPTURE(path);
    REQUIRE(store.disk.remove_file(path).ok());
    const Status opened = store.open();
    CHECK_FALSE(opened.ok());
    CHECK((opened.code() == StatusCode::Corruption || opened.code() == StatusCode::Unavailable));
    store.close();
    store.disk.set_contents(path, bytes);
    store.disk.flip_bit(path, 4096 + 40, 2);
    store.disk.flip_bit(path, begin_of_second_copy(bytes.size()) + 4096 + 40, 2);
    CHECK(store.open().code() == StatusCode::Corruption);
    store.close();
    store.disk.set_contents(path, bytes);
    ++tried;
  }
  CHECK(tried >= 1);
  store.reopen();
  CHECK(store.engine->range_stats(id, {}, {})->entries == 200);
}

TEST_CASE("engine refuses a table that needs a feature it does not have, and says so") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", Bytes(500, 'v')).ok());
  REQUIRE(store.engine->flush().ok());
  store.close();
  std::size_t tried = 0;
  for (const auto& file : store.disk.durable_contents()) {
    const std::string& path = file.first;
    const Bytes& bytes = file.second;
    const auto parsed = parse_file_name(path.substr(path.rfind('/') + 1));
    if (!parsed ||
        (parsed->type != FileType::MetadataTable && parsed->type != FileType::ValueTable))
      continue;
    // Bit 1 is known of value tables alone.
    const bool is_value_table = parsed->type == FileType::ValueTable;
    for (const unsigned bit : {is_value_table ? 2u : 1u, 7u, 31u}) {
      CAPTURE(path);
      CAPTURE(bit);
      Bytes newer = bytes;
      newer[12 + bit / 8] =
          static_cast<char>(static_cast<unsigned char>(newer[12 + bit / 8]) | 1u << bit % 8);
      std::string checksum;
      append_fixed32(checksum, crc32c(ByteView(newer).substr(0, 44)));
      newer.replace(44, 4, checksum);
      store.disk.set_contents(path, newer);
      Status refused = store.open();
      if (refused.ok()) refused = store.engine->get(id, "a", {}).status();
      CHECK(refused.code() == StatusCode::Unsupported);
      CHECK(refused.message().find(path) != std::string_view::npos);
      CHECK(refused.message().find("needs features this program does not have") !=
            std::string_view::npos);
      store.close();
      store.disk.set_contents(path, bytes);
      ++tried;
    }
  }
  CHECK(tried == 6);
  store.reopen();
  CHECK(store.get(id, "a") == Bytes(500, 'v'));
}

// Starts without the values drive: degraded, nothing lost, and healed when it comes.

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

TEST_CASE("engine removes what no manifest names, and only that") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "a", "1").ok());
  REQUIRE(store.engine->flush().ok());
  store.close();
  store.disk.set_contents("/v/store/000000099999.val", "orphan");
  store.disk.set_contents("/m/store/tables/000000099998.meta", "orphan");
  store.disk.set_contents("/m/store/MANIFEST-000000000099", "orphan");
  store.disk.set_contents("/v/store/holiday.jpg", "not ours");
  store.reopen();
  // A store that was large does not wait for what is left to be overwritten.
  CHECK(store.disk.exists("/v/store/000000099999.val"));
  store.executor.run_all();
  CHECK_FALSE(store.disk.exists("/v/store/000000099999.val"));
  CHECK_FALSE(store.disk.exists("/m/store/tables/000000099998.meta"));
  CHECK_FALSE(store.disk.exists("/m/store/MANIFEST-000000000099"));
  CHECK(store.disk.exists("/v/store/holiday.jpg"));
  CHECK(store.get(id, "a") == "1");
}

TEST_CASE("CURRENT and IDENTITY have a copy that stands in, and are healed") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  REQUIRE(store.put(id, "key", Bytes(300, 'v')).ok());
  REQUIRE(store.engine->flush().ok());
  store.close();
  for (const std::string path :
       {"/m/store/CURRENT", "/m/store/CURRENT.copy", "/m/store/IDENTITY", "/m/store/IDENTITY.copy",
        "/v/store/IDENTITY", "/v/store/IDENTITY.copy"}) {
    for (const bool missing : {false, true}) {
      CAPTURE(path);
      CAPTURE(missing);
      const Bytes was = store.disk.contents(path);
      REQUIRE(!was.empty());
      if (missing) {
        REQUIRE(store.disk.remove_file(path).ok());
      } else {
        store.disk.set_contents(path, Bytes(was.size(), '\0'));
      }
      store.listener.corruptions.clear();
      const Status opened = store.open();
      INFO(opened.to_string());
      REQUIRE(opened.ok());
      const bool is_copy = path.ends_with(".copy");
      if (!is_copy) CHECK(store.listener.corruptions.size() == 1);
      CHECK(store.get(id, "key") == Bytes(300, 'v'));
      REQUIRE(store.put(id, "other", "o").ok());
      store.close();
      const Bytes now = store.disk.contents(path);
      if (path.find("IDENTITY") != std::string::npos) CHECK(now == was);
      CHECK(now == store.disk.contents(is_copy ? path.substr(0, path.size() - 5) : path + ".copy"));
    }
  }
}

TEST_CASE("engine recognises one directory under two names") {
  TempDirectory directory;
  const auto executor = make_thread_executor();
  EventListener listener;
  const Environment environment{posix_file_system(), system_clock(), system_random(), *executor,
                                listener};
  Options options;
  options.metadata_directory = directory / "store";
  options.values_directory = directory / "store/../store";
  CHECK(Engine::open(options, environment).status().code() == StatusCode::InvalidArgument);
  options.values_directory = directory / "store/values";  // inside is allowed
  CHECK(Engine::open(options, environment).ok());
}

}  // namespace edgecase::test
