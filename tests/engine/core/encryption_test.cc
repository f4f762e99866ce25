// A store with a key: nothing readable on either drive, nothing readable without it, and what was
// erased readable by nobody.
#include <doctest/doctest.h>

#include <map>

#include "edgecase/store_check.h"
#include "engine/check/recording_observer.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {
namespace {

using test::RecordingObserver;

constexpr std::uint32_t kDeviceBytes = 8;

SecretKey key_of(char byte) {
  SecretKey key;
  key.fill(static_cast<std::uint8_t>(byte));
  return key;
}

// As one of the daemon: a device is the leading bytes of a key.
struct EncryptedStore : test::EngineFixture {
  EncryptedStore() {
    options.coalesce_threshold_bytes = 400;
    options.group_bytes = 16384;
    options.encryption = MasterKeys{key_of('m')};
    REQUIRE(open().ok());
    series = make_namespace("needle-series", {Placement::Values, GroupCodec::Series, kDeviceBytes});
    plain = make_namespace("needle-plain", {Placement::Values, GroupCodec::Plain, kDeviceBytes});
    names = make_namespace("needle-names", {Placement::Metadata, GroupCodec::Plain, 0});
  }

  static Bytes key(int device, int i) {
    Bytes text = "needle" + std::to_string(10 + device);  // kDeviceBytes
    for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(i >> shift % 32));
    return text;
  }

  // Small values, large ones, deletes; groups of one page and of many.
  void fill(int round) {
    for (const NamespaceId id : {series, plain, names}) {
      WriteBatch batch;
      for (int device = 0; device < 4; ++device) {
        for (int i = 0; i < 60; ++i) {
          const Bytes name = key(device, i);
          Bytes value = "needle-value-" + std::to_string(round * 1000 + i);
          if (i % 7 == 3) value.resize(150, 'v');
          if (i % 20 == 5) value.resize(500, 'L');
          if (i % 11 == 10) {
            batch.remove(id, name);
            model[id].erase(name);
          } else {
            batch.put(id, name, value);
            model[id][name] = value;
          }
        }
      }
      REQUIRE(engine->write(batch, Durability::Sync).ok());
    }
  }

  void check_contents() {
    for (const auto& each : model) {
      const NamespaceId id = each.first;
      const std::map<Bytes, Bytes>& expected = each.second;
      CAPTURE(id);
      std::map<Bytes, Bytes> found;
      auto scan = engine->scan(id, {}, {});
      REQUIRE(scan.ok());
      for (; (*scan)->valid(); (*scan)->next()) found.emplace((*scan)->key(), (*scan)->value());
      INFO((*scan)->status().to_string());
      REQUIRE((*scan)->status().ok());
      CHECK(found == expected);
      for (const auto& [name, value] : expected) CHECK(get(id, name) == value);
    }
  }

  void check_no_needles() {
    for (const auto& file : disk.durable_contents()) {
      CAPTURE(file.first);
      CHECK(file.second.find("needle") == Bytes::npos);
    }
    const auto entries = disk.list_directory("/v/store");
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries) {
      CAPTURE(entry.name);
      CHECK(disk.contents("/v/store/" + entry.name).find("needle") == Bytes::npos);
    }
  }

  Status erase_devices(int first, int end) {
    WriteBatch batch;
    for (const NamespaceId id : {series, plain}) {
      batch.erase_range(id, "needle" + std::to_string(10 + first),
                        "needle" + std::to_string(10 + end));
      std::erase_if(model[id], [&](const auto& each) {
        return each.first >= "needle" + std::to_string(10 + first) &&
               each.first < "needle" + std::to_string(10 + end);
      });
    }
    return engine->write(batch, Durability::Async);
  }

  CheckReport check() {
    RecordingObserver observer;
    const auto report = check_store(disk, options, observer);
    INFO(report.status().to_string());
    INFO(observer.all());
    CHECK(observer.problems.empty());
    REQUIRE(report.ok());
    return *report;
  }

  NamespaceId series = 0;
  NamespaceId plain = 0;
  NamespaceId names = 0;
  std::map<NamespaceId, std::map<Bytes, Bytes>> model;
};

}  // namespace

TEST_CASE("an encrypted store reads as any other, and its drives show nothing") {
  EncryptedStore store;
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    store.fill(round);
    store.check_contents();
    store.check_no_needles();
    if (round % 2 == 0) REQUIRE(store.engine->flush().ok());
    if (round == 3) REQUIRE(store.engine->compact({}, {}).ok());
    store.check_contents();
    store.check_no_needles();
    if (round % 3 == 1) store.reopen();
  }
  store.check_contents();
  REQUIRE(store.engine->flush().ok());
  REQUIRE(store.engine->compact({}, {}).ok());
  store.reopen();
  store.check_contents();
  store.check_no_needles();
  store.close();
  const CheckReport report = store.check();
  CHECK(report.problems == 0);
  CHECK(report.entries > 400);
}

TEST_CASE("records of the log larger than a piece survive encrypted") {
  EncryptedStore store;
  for (const std::size_t size : {65'000u, 65'536u, 131'040u, 131'072u, 200'001u}) {
    CAPTURE(size);
    Bytes value(size, 'x');
    value[size / 2] = 'y';
    REQUIRE(store.put(store.plain, "large" + std::to_string(size), value).ok());
    store.reopen();
    CHECK(store.get(store.plain, "large" + std::to_string(size)) == value);
  }
}

TEST_CASE("a store opens with its key alone") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  store.close();
  const auto refused = [&](const std::optional<MasterKeys>& keys) {
    store.options.encryption = keys;
    const Status opened = store.open();
    RecordingObserver observer;
    CHECK(check_store(store.disk, store.options, observer).status().code() == opened.code());
    return opened;
  };
  CHECK(refused(std::nullopt).code() == StatusCode::NotAllowed);
  CHECK(refused(MasterKeys{key_of('n')}).code() == StatusCode::NotAllowed);
  CHECK(refused(MasterKeys{key_of('n'), key_of('o')}).code() == StatusCode::NotAllowed);
  store.options.encryption = MasterKeys{key_of('n'), key_of('m')};
  store.reopen();
  store.check_contents();
  store.close();
  CHECK(refused(MasterKeys{key_of('m')}).code() == StatusCode::NotAllowed);
  store.options.encryption = MasterKeys{key_of('n')};
  store.reopen();
  store.check_contents();
}

TEST_CASE("on a full drive a store opens with its key, but does not change it") {
  EncryptedStore store;
  store.fill(0);
  store.close();
  // The ring is the first file that an open writes.
  const auto open_without_room = [&](const MasterKeys& keys) {
    store.disk.fail_nth(test::Operation::CreateFile, 1, ENOSPC, test::FaultMode::Once);
    store.options.encryption = keys;
    const Status opened = store.open();
    store.disk.clear_faults();
    store.close();
    return opened;
  };
  CHECK(open_without_room({key_of('n'), key_of('m')}).code() == StatusCode::OutOfSpace);
  CHECK(open_without_room({key_of('m')}).ok());
  store.options.encryption = MasterKeys{key_of('n'), key_of('m')};
  store.reopen();
  store.check_contents();
}

TEST_CASE("a store that was made without a key takes none later, and its files are not taken in") {
  test::EngineFixture clear;
  REQUIRE(clear.open().ok());
  const NamespaceId id = clear.make_namespace("plant");
  REQUIRE(clear.put(id, "a", "1").ok());
  REQUIRE(clear.engine->flush().ok());
  clear.close();
  clear.options.encryption = MasterKeys{key_of('m')};
  CHECK(clear.open().code() == StatusCode::NotAllowed);
  clear.options.encryption.reset();
  clear.reopen();
  CHECK(clear.get(id, "a") == "1");
}

TEST_CASE("every byte of an encrypted table counts, and tables cannot be exchanged") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  store.close();
  std::vector<std::string> tables;
  for (const auto& [path, bytes] : store.disk.durable_contents())
    if (path.ends_with(".val") || path.ends_with(".meta")) tables.push_back(path);
  REQUIRE(tables.size() >= 4);
  for (const std::string& path : tables) {
    CAPTURE(path);
    const Bytes whole = store.disk.contents(path);
    CHECK(inspect_file(store.disk, path, store.options).ok());
    CHECK(inspect_file(store.disk, path).status().code() == StatusCode::NotAllowed);
    for (std::size_t byte = 0; byte < whole.size(); byte += 1 + whole.size() / 300) {
      CAPTURE(byte);
      Bytes flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 2);
      store.disk.set_contents(path, flipped);
      CHECK_FALSE(inspect_file(store.disk, path, store.options).ok());
    }
    store.disk.set_contents(path, whole);
  }
}

TEST_CASE("the key of what was erased is destroyed, what comes after it has another") {
  for (const bool flushed : {false, true}) {
    CAPTURE(flushed);
    EncryptedStore store;
    store.fill(0);
    REQUIRE(store.engine->flush().ok());
    const auto old_files = store.disk.durable_contents();
    store.fill(1);
    REQUIRE(store.erase_devices(1, 3).ok());
    if (flushed) REQUIRE(store.engine->flush().ok());
    WriteBatch batch;
    batch.put(store.plain, EncryptedStore::key(1, 3), "again");
    store.model[store.plain][EncryptedStore::key(1, 3)] = "again";
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    const auto report = store.engine->erase();
    INFO(report.status().to_string());
    REQUIRE(report.ok());
    CHECK(report->destroyed_keys == 4);
    store.check_contents();
    store.check_no_needles();
    store.reopen();
    store.check_contents();
    REQUIRE(store.engine->compact({}, {}).ok());
    store.reopen();
    store.check_contents();
    store.close();
    CHECK(store.check().problems == 0);

    // Copies of the value files from before, put back where they were, hold two devices that open
    // and two that nobody opens.
    for (const auto& [path, bytes] : old_files) {
      if (!path.starts_with("/v/") || !path.ends_with(".val")) continue;
      store.disk.set_contents(path, bytes);
      const auto looked = inspect_file(store.disk, path, store.options);
      CHECK(looked.status().code() == StatusCode::NotFound);
      CHECK(looked.status().message().find("destroyed") != std::string::npos);
    }
  }
}

TEST_CASE("while the values drive is away an erasure destroys the key at once") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  store.fill(1);
  store.disk.set_gone("/v", true);
  REQUIRE(store.erase_devices(1, 2).ok());
  const auto erased = store.engine->erase();
  CHECK_FALSE(erased.ok());
  CHECK(store.engine->stats().erasure.pending_ranges == 2);
  // A power cut now must bring back neither the key nor what was erased: the batch was synced.
  store.disk.power_cut(3, test::CutPolicy::None);
  store.close();
  store.disk.set_gone("/v", false);
  bool destroyed = false;
  for (const auto& [path, bytes] : store.disk.durable_contents()) {
    if (!path.starts_with("/v/") || !path.ends_with(".val")) continue;
    const auto looked = inspect_file(store.disk, path, store.options);
    destroyed = destroyed || looked.status().message().find("destroyed") != std::string::npos;
  }
  CHECK(destroyed);
  store.reopen();
  CHECK(store.engine->stats().erasure.pending_ranges == 2);
  store.check_contents();
  REQUIRE(store.engine->erase().ok());
  CHECK(store.engine->stats().erasure.pending_ranges == 0);
  store.check_contents();
  store.reopen();
  store.check_contents();
  store.close();
  CHECK(store.check().problems == 0);
}

TEST_CASE("a part of a scope is erased from the drives, its key stays") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  WriteBatch batch;
  batch.erase_range(store.plain, EncryptedStore::key(1, 0), EncryptedStore::key(1, 30));
  std::erase_if(store.model[store.plain], [](const auto& each) {
    return each.first >= EncryptedStore::key(1, 0) && each.first < EncryptedStore::key(1, 30);
  });
  REQUIRE(store.engine->write(batch, Durability::Sync).ok());
  const auto report = store.engine->erase();
  REQUIRE(report.ok());
  CHECK(report->destroyed_keys == 0);
  store.check_contents();
  store.reopen();
  store.check_contents();
}

TEST_CASE("a dropped namespace takes its keys along") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  const auto before = inspect_store(store.disk, store.options);
  REQUIRE(before.ok());
  CHECK(before->find("keys of scopes: 9\n") != std::string::npos);
  {
    // A reader still holds its files, and is shown nothing more; nobody holds them afterwards.
    const auto scan = store.engine->scan(store.plain, {}, {});
    REQUIRE(scan.ok());
    REQUIRE(store.engine->drop_namespace(store.plain).ok());
    REQUIRE(store.engine->compact({}, {}).ok());
    std::size_t read = 0;
    for (; (*scan)->valid(); (*scan)->next()) ++read;
    CHECK((*scan)->status().code() == StatusCode::NotFound);
    CHECK(read == 1);  // where it stood
  }
  store.model.erase(store.plain);
  REQUIRE(store.engine->compact({}, {}).ok());
  const auto after = inspect_store(store.disk, store.options);
  REQUIRE(after.ok());
  CHECK(after->find("keys of scopes: 5\n") != std::string::npos);
  store.check_contents();
  store.reopen();
  store.check_contents();
}

TEST_CASE("a damaged encrypted store is repaired with its key") {
  EncryptedStore store;
  store.fill(0);
  REQUIRE(store.engine->flush().ok());
  store.fill(1);
  REQUIRE(store.engine->flush().ok());
  store.close();
  for (const auto& [path, bytes] : store.disk.durable_contents()) {
    if (path.find("MANIFEST-") != std::string::npos || path.ends_with(".meta"))
      store.disk.set_contents(path, Bytes(bytes.size(), 'x'));
  }
  CHECK_FALSE(store.open().ok());
  RecordingObserver observer;
  const auto repaired = repair_store(store.disk, store.options, observer);
  INFO(repaired.status().to_string());
  REQUIRE(repaired.ok());
  CHECK(repaired->losses == 1);  // what the manifest alone knew
  store.reopen();
  // Deletes whose markers a flush had written stay; nothing that was replaced returns.
  store.check_contents();
  store.check_no_needles();
  store.close();
  CHECK(store.check().problems == 0);
}

}  // namespace edgecase::engine
