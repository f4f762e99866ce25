// Scans of a store whose tables are mapped: single values are read to where the cursor wants them.
#include <algorithm>
#include <map>
#include <string>

#include "engine/core/engine_fixture.h"

namespace edgecase::test {
namespace {

// Values of all sizes, two versions of some, deletes, in two runs and level 0.
struct MappedStore : EngineFixture {
  MappedStore() {
    options.map_tables = true;
    REQUIRE(open().ok());
    id = make_namespace("default");
    for (int round = 0; round < 3; ++round) {
      for (int i = round; i < 60; i += round + 1) {
        const Bytes key = "key" + std::to_string(100 + i);
        const auto size = static_cast<std::size_t>((i * 7 + round) % 5) * 4'000 + 10;
        const Bytes value(size, static_cast<char>('a' + (i + round) % 26));
        WriteBatch batch;
        if (i % 9 == round) {
          batch.remove(id, key);
          model.erase(key);
        } else {
          batch.put(id, key, value);
          model.insert_or_assign(key, value);
        }
        REQUIRE(engine->write(batch, Durability::Async).ok());
      }
      REQUIRE(engine->flush().ok());
      if (round == 0) REQUIRE(engine->compact({id}, {}).ok());
    }
  }

  Status scan(Direction direction, std::map<Bytes, Bytes>& rows) {
    ReadOptions read;
    read.direction = direction;
    auto iterator = engine->scan(id, {}, read);
    if (!iterator.ok()) return iterator.status();
    for (auto& at = **iterator; at.valid(); at.next()) {
      const Bytes value(at.value());
      if (at.valid()) rows.emplace(at.key(), value);
    }
    return (*iterator)->status();
  }

  NamespaceId id = 0;
  std::map<Bytes, Bytes> model;
};

}  // namespace

TEST_CASE("mapped tables: scans in both directions show every value, whatever its size") {
  MappedStore store;
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    std::map<Bytes, Bytes> rows;
    REQUIRE(store.scan(direction, rows).ok());
    CHECK(rows == store.model);
  }
}

TEST_CASE("mapped tables: a scan never shows a value that is damaged") {
  MappedStore store;
  const auto files = store.disk.list_directory("/v/store");
  REQUIRE(files.ok());
  for (const DirectoryEntry& file : *files) {
    if (!file.name.ends_with(".val")) continue;
    const std::string path = "/v/store/" + file.name;
    const auto size = store.disk.file_size(path);
    REQUIRE(size.ok());
    store.disk.flip_bit(path, *size / 2, 3);
  }
  store.reopen();
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    std::map<Bytes, Bytes> rows;
    CHECK(store.scan(direction, rows).code() == StatusCode::Corruption);
    CHECK(std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      const auto known = store.model.find(row.first);
      return known != store.model.end() && known->second == row.second;
    }));
  }
}

TEST_CASE("mapped tables: values are read where they lie, and leave the cache to metadata") {
  struct Case {
    bool mapped = false;
    bool encrypted = false;
    bool keeps = false;
  };
  for (const Case& each :
       {Case{true, false, false}, Case{true, true, true}, Case{false, false, true}}) {
    CAPTURE(each.mapped);
    CAPTURE(each.encrypted);
    EngineFixture store;
    store.options.map_tables = each.mapped;
    store.options.compress = false;
    if (each.encrypted) store.options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(store.open().ok());
    const NamespaceId id = store.make_namespace("default");
    // One single value, and a group of a few pages.
    REQUIRE(store.put(id, "large", Bytes(5'000, 'x')).ok());
    for (int i = 100; i < 130; ++i) REQUIRE(store.put(id, std::to_string(i), Bytes(200, 'x')).ok());
    REQUIRE(store.engine->flush().ok());
    for (const char* key : {"large", "115"}) {
      CAPTURE(key);
      const std::uint64_t before = store.engine->stats().reads.value_reads;
      for (int i = 0; i < 10; ++i) CHECK_FALSE(store.get(id, key).empty());
      const std::uint64_t reads = store.engine->stats().reads.value_reads - before;
      CHECK(reads == (each.keeps ? 1 : 10));
    }
  }
}

TEST_CASE("mapped tables: each file is opened with the bytes of all values") {
  MappedStore store;
  const auto said_when_read = [&] {
    store.reopen();
    std::map<Bytes, Bytes> rows;
    REQUIRE(store.scan(Direction::Forward, rows).ok());
    return store.disk.mapped_store_bytes();
  };
  const std::uint64_t before = said_when_read();
  CHECK(before == store.engine->stats().values.live_bytes);
  CHECK(before > 5'000);
  // Files come, and go again.
  WriteBatch batch;
  batch.put(store.id, "key200", Bytes(200'000, 'z'));
  REQUIRE(store.engine->write(batch, Durability::Async).ok());
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->get(store.id, "key200", {}).ok());
  CHECK(store.disk.mapped_store_bytes() == store.engine->stats().values.live_bytes);
  CHECK(store.disk.mapped_store_bytes() > before + 200'000);
  REQUIRE(store.engine->compact({store.id}, {}).ok());
  std::map<Bytes, Bytes> rows;
  REQUIRE(store.scan(Direction::Forward, rows).ok());
  CHECK(store.disk.mapped_store_bytes() == store.engine->stats().values.live_bytes);
}

}  // namespace edgecase::test
