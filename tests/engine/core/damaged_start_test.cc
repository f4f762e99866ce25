// A store that was damaged while nobody had it open: its log, CURRENT, IDENTITY. Tables that are
// lost are in scrub/scrubber_test.cc.
#include <string>

#include "engine/core/engine_fixture.h"
#include "log/log_format.h"

namespace edgecase::test {
namespace {

using namespace edgecase::engine;

// The slot of the log that holds most, and where its last byte lies that is not zero.
struct LogEnd {
  std::string path;
  std::size_t end = 0;
};
LogEnd find_log_end(const EngineFixture& store) {
  LogEnd found;
  for (const auto& [path, contents] : store.disk.durable_contents()) {
    if (path.find("/wal/") == std::string::npos) continue;
    const std::size_t last = contents.find_last_not_of('\0');
    if (last != Bytes::npos && last > found.end) found = {path, last};
  }
  REQUIRE(found.end > kLogHeadBytes);
  return found;
}

SecretKey secret_key() {
  SecretKey key;
  key.fill(7);
  return key;
}

}  // namespace

TEST_CASE("a damaged sector inside the log costs what lies in it, and is named") {
  for (const bool encrypted : {false, true}) {
    for (const bool flushed : {false, true}) {
      CAPTURE(encrypted);
      CAPTURE(flushed);
      EngineFixture store;
      if (encrypted) store.options.encryption = MasterKeys{secret_key()};
      REQUIRE(store.open().ok());
      const NamespaceId id = store.make_namespace("default");
      constexpr int kLoggedBatches = 120;
      for (int i = 0; i < kLoggedBatches; ++i) {
        REQUIRE(
            store.put(id, "key " + std::to_string(i), Bytes(90, static_cast<char>('a' + i % 26)))
                .ok());
        REQUIRE(store.put(id, "newest", std::to_string(i)).ok());
        if (flushed && i == 30) REQUIRE(store.engine->flush().ok());
      }
      store.close();
      const LogEnd log = find_log_end(store);
      Bytes contents = store.disk.contents(log.path);
      const std::size_t sector = (kLogHeadBytes + log.end) / 2 / 512 * 512;
      contents.replace(sector, 512, Bytes(512, '\x5a'));
      store.disk.set_contents(log.path, contents);
      for (int start = 0; start < 2; ++start) {
        store.listener.corruptions.clear();
        const Status opened = store.open();
        INFO(opened.to_string());
        REQUIRE(opened.ok());
        if (start == 0) {
          CHECK(store.listener.corruptions.size() == 1);
          const auto damaged = store.engine->damaged_files();
          REQUIRE(damaged.size() == 1);
          CHECK(damaged[0].layer == FileLayer::Log);
          CHECK(damaged[0].path == log.path);
        }
        int there = 0;
        for (int i = 0; i < kLoggedBatches; ++i) {
          const auto got = store.engine->get(id, "key " + std::to_string(i), {});
          if (!got.ok()) continue;
          ++there;
          CHECK(*got == Bytes(90, static_cast<char>('a' + i % 26)));
        }
        CHECK(there < kLoggedBatches);
        CHECK(there > kLoggedBatches - 12);
        CHECK(store.get(id, "key 0") == Bytes(90, 'a'));
        CHECK(store.get(id, "newest") == std::to_string(kLoggedBatches - 1));
        CHECK(store.put(id, "after", std::to_string(start)).ok());
        CHECK(store.get(id, "after") == std::to_string(start));
        CHECK(store.engine->flush().ok());
        CHECK(store.get(id, "newest") == std::to_string(kLoggedBatches - 1));
        store.close();
      }
    }
  }
}

TEST_CASE("a log that came to rest says how far it goes, so that a lost end is told") {
  EngineFixture store;
  REQUIRE(store.open().ok());
  const NamespaceId id = store.make_namespace("default");
  for (int i = 0; i < 20; ++i)
    REQUIRE(store.put(id, "key " + std::to_string(i), Bytes(100, 'v')).ok());
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  store.clock.advance(2 * kSecondNs);
  store.executor.advance(2 * kSecondNs);
  store.executor.run_all();
  // As a kill leaves it.
  const auto files = store.disk.durable_contents();
  store.close();
  for (const auto& [path, contents] : files) store.disk.set_contents(path, contents);
  const LogEnd log = find_log_end(store);
  Bytes contents = store.disk.contents(log.path);
  const std::size_t sector = log.end / 512 * 512;
  contents.replace(sector, 512, Bytes(512, '\0'));
  store.disk.set_contents(log.path, contents);
  REQUIRE(store.open().ok());
  REQUIRE(store.listener.corruptions.size() == 1);
  CHECK(store.engine->damaged_files().size() == 1);
  CHECK(store.get(id, "key 0") == Bytes(100, 'v'));
  CHECK_FALSE(store.engine->get(id, "key 19", {}).ok());
  // What is written then lies behind what is lost.
  REQUIRE(store.put(id, "key 19", "again").ok());
  store.reopen();
  CHECK(store.get(id, "key 19") == "again");
  CHECK(store.get(id, "key 0") == Bytes(100, 'v'));
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

}  // namespace edgecase::test
