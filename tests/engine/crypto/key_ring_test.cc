#include "crypto/key_ring.h"

#include <doctest/doctest.h>

#include "crypto/file_cipher.h"
#include "file/file_names.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kScopeBytes = 2;
const std::string kDirectory = "/m/store";

SecretKey key_full_of(char byte) {
  SecretKey key;
  key.fill(static_cast<std::uint8_t>(byte));
  return key;
}

Bytes key_in(NamespaceId id, ByteView user_key) {
  return make_full_key(id, user_key);
}

struct Rings {
  Rings() { REQUIRE(disk.create_directory(kDirectory).ok()); }

  std::unique_ptr<KeyRing> create(char master = 'm') {
    auto ring = KeyRing::create(disk, kDirectory, store_id, {key_full_of(master)}, random);
    REQUIRE(ring.ok());
    return *std::move(ring);
  }
  Result<std::unique_ptr<KeyRing>> open(const MasterKeys& master) {
    return KeyRing::open(disk, kDirectory, store_id, master, random);
  }
  std::unique_ptr<KeyRing> opened(const MasterKeys& master) {
    auto ring = open(master);
    INFO(ring.status().to_string());
    REQUIRE(ring.ok());
    return *std::move(ring);
  }
  // The only one there is.
  std::string path() {
    std::string found;
    const auto entries = disk.list_directory(kDirectory);
    REQUIRE(entries.ok());
    for (const DirectoryEntry& entry : *entries) {
      if (!entry.name.starts_with("KEYS-")) continue;
      CHECK(found.empty());
      found = kDirectory + "/" + entry.name;
    }
    REQUIRE_FALSE(found.empty());
    return found;
  }

  test::MemoryFileSystem disk{{"/m"}};
  SeededRandom random{3};
  StoreId store_id{1, 2, 3};
};

bool everything(NamespaceId) {
  return true;
}

}  // namespace

TEST_CASE("a key ring opens with its master key and gives the same keys") {
  Rings rings;
  auto ring = rings.create();
  const KeyId id = ring->key_for(key_in(1, "d1sensor"), kScopeBytes, 10);
  CHECK(ring->key_for(key_in(1, "d1other"), kScopeBytes, 5) == id);
  const KeyId other = ring->key_for(key_in(1, "d2sensor"), kScopeBytes, 11);
  CHECK(other != id);
  CHECK(ring->key_for(key_in(2, "d1sensor"), kScopeBytes, 12) != id);
  REQUIRE(ring->persist().ok());
  const auto key = ring->find(id);
  REQUIRE(key.has_value());
  const SecretKey derived = ring->derive_from_database("salt", "purpose");

  const auto again = rings.opened({key_full_of('m')});
  CHECK(again->size() == 3);
  CHECK(again->find(id) == key);
  CHECK(again->derive_from_database("salt", "purpose") == derived);
  CHECK(again->key_for(key_in(1, "d1sensor"), kScopeBytes, 99) == id);
  CHECK_FALSE(again->find(id + 1).has_value());
}

TEST_CASE("another master key, another store and no ring are told apart") {
  Rings rings;
  CHECK(rings.open({key_full_of('m')}).status().code() == StatusCode::Corruption);
  rings.create();
  CHECK(rings.open({key_full_of('n')}).status().code() == StatusCode::NotAllowed);
  CHECK(rings.open({key_full_of('n'), key_full_of('o')}).status().code() == StatusCode::NotAllowed);
  rings.store_id[0] = 9;
  CHECK(rings.open({key_full_of('m')}).status().code() == StatusCode::Unavailable);
}

TEST_CASE("a new master key takes the place of the one before") {
  Rings rings;
  auto ring = rings.create('a');
  const KeyId id = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  REQUIRE(ring->persist().ok());
  const auto key = ring->find(id);
  ring = rings.opened({key_full_of('b'), key_full_of('a')});
  CHECK(ring->find(id) == key);
  // Opening alone changes nothing.
  CHECK(rings.open({key_full_of('a')}).ok());
  REQUIRE(ring->write_again(everything).ok());
  CHECK(rings.open({key_full_of('a')}).status().code() == StatusCode::NotAllowed);
  CHECK(rings.opened({key_full_of('b')})->find(id) == key);
  CHECK(rings.opened({key_full_of('b'), key_full_of('a')})->find(id) == key);
}

TEST_CASE("any one byte of the ring's file may be lost") {
  Rings rings;
  auto ring = rings.create();
  const KeyId id = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  REQUIRE(ring->persist().ok());
  const std::string path = rings.path();
  const Bytes whole = rings.disk.contents(path);
  const std::size_t half = whole.size() / 2;
  const auto entries_end = whole.find_last_not_of('\0') + 1;
  for (std::size_t byte = 0; byte < entries_end; ++byte) {
    if (byte >= entries_end - half && byte < half) continue;  // zeros
    CAPTURE(byte);
    Bytes damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 16);
    rings.disk.set_contents(path, damaged);
    const auto again = rings.open({key_full_of('m')});
    REQUIRE(again.ok());
    CHECK((*again)->find(id) == ring->find(id));
    // Both of them.
    const std::size_t twin = byte < half ? byte + half : byte - half;
    damaged[twin] = static_cast<char>(damaged[twin] ^ 16);
    rings.disk.set_contents(path, damaged);
    CHECK_FALSE(rings.open({key_full_of('m')}).ok());
  }
  for (const std::size_t size : {0u, 50u, 200u}) {
    CAPTURE(size);
    rings.disk.set_contents(path, whole.substr(0, size));
    CHECK(rings.open({key_full_of('m')}).status().code() == StatusCode::Corruption);
  }
}

TEST_CASE("a change that was not finished leaves the ring before it, one that was takes it away") {
  Rings rings;
  auto ring = rings.create();
  const KeyId id = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  REQUIRE(ring->persist().ok());
  const std::string path = rings.path();
  const Bytes before = rings.disk.contents(path);
  REQUIRE(ring->write_again(everything).ok());
  CHECK(rings.path() != path);
  const std::string next = rings.path();
  const Bytes after = rings.disk.contents(next);
  rings.disk.set_contents(path, before);
  rings.disk.set_contents(next, after.substr(0, 100));
  ring = rings.opened({key_full_of('m')});
  CHECK(ring->find(id).has_value());
  REQUIRE(ring->write_again(everything).ok());
  CHECK(rings.opened({key_full_of('m')})->find(id).has_value());
  CHECK(rings.path() > next);
}

TEST_CASE("keys of erased scopes go, from the drive too, and newer items get others") {
  Rings rings;
  auto ring = rings.create();
  const KeyId erased = ring->key_for(key_in(1, "d1x"), kScopeBytes, 10);
  const KeyId kept = ring->key_for(key_in(1, "d2x"), kScopeBytes, 10);
  REQUIRE(ring->persist().ok());
  // All of d1, and a part of d2.
  ring->retire(key_in(1, "d1"), key_in(1, "d2c"), 20);
  CHECK(ring->key_for(key_in(1, "d1x"), kScopeBytes, 20) == erased);
  const KeyId newer = ring->key_for(key_in(1, "d1x"), kScopeBytes, 21);
  CHECK(newer != erased);
  CHECK(ring->key_for(key_in(1, "d1x"), kScopeBytes, 30) == newer);
  CHECK(ring->key_for(key_in(1, "d2x"), kScopeBytes, 21) == kept);

  const auto none = ring->destroy_retired(19);
  CHECK((none.ok() && *none == 0));
  const auto destroyed = ring->destroy_retired(20);
  CHECK((destroyed.ok() && *destroyed == 1));
  CHECK_FALSE(ring->find(erased).has_value());
  CHECK(ring->find(newer).has_value());
  CHECK(ring->find(kept).has_value());
  // What a merge writes that began before is for nobody.
  const KeyId late = ring->key_for(key_in(1, "d1x"), kScopeBytes, 15);
  CHECK_FALSE(ring->find(late).has_value());
  const FileCipher cipher(*ring, {}, {"test", 1});
  Bytes bytes(5 + kSealBytes, '\0');
  cipher.seal(late, 0, "never", bytes.data());
  CHECK(cipher.open(late, 0, bytes, bytes.data()) == Opened::Destroyed);

  const auto again = rings.opened({key_full_of('m')});
  CHECK_FALSE(again->find(erased).has_value());
  CHECK(again->find(newer).has_value());
  // The erasure is pending when the store is opened again: it does not reach what came after it.
  again->retire(key_in(1, "d1"), key_in(1, "d2c"), 20);
  const auto twice = again->destroy_retired(20);
  CHECK((twice.ok() && *twice == 0));
  CHECK(again->key_for(key_in(1, "d1x"), kScopeBytes, 40) == newer);
  again->forget(20);
  CHECK(again->key_for(key_in(1, "d1x"), kScopeBytes, 40) == newer);
  rings.path();  // no other file is left
}

TEST_CASE("a scope that had no key when it was erased gets one that the erasure does not reach") {
  Rings rings;
  auto ring = rings.create();
  ring->retire(key_in(1, "d1"), key_in(1, "d2"), 20);
  const KeyId newer = ring->key_for(key_in(1, "d1"), kScopeBytes, 25);
  REQUIRE(ring->persist().ok());
  const auto again = rings.opened({key_full_of('m')});
  again->retire(key_in(1, "d1"), key_in(1, "d2"), 20);
  CHECK(*again->destroy_retired(20) == 0);
  CHECK(again->find(newer).has_value());
}

TEST_CASE("the keys of a dropped namespace go") {
  Rings rings;
  auto ring = rings.create();
  const KeyId dropped = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  const KeyId kept = ring->key_for(key_in(2, "d1"), kScopeBytes, 2);
  ring->drop_namespace(1);
  CHECK(ring->find(dropped).has_value());
  REQUIRE(ring->destroy_dropped().ok());
  CHECK_FALSE(ring->find(dropped).has_value());
  CHECK(ring->find(kept).has_value());
  CHECK_FALSE(rings.opened({key_full_of('m')})->find(dropped).has_value());
  // A flush that ran may have asked once more.
  ring->key_for(key_in(1, "d1"), kScopeBytes, 3);
  REQUIRE(ring->write_again([](NamespaceId id) { return id == 2; }).ok());
  CHECK(ring->size() == 1);
}

TEST_CASE("scopes beyond the limit share the key of their namespace") {
  Rings rings;
  auto ring = rings.create();
  for (std::size_t i = 0; i < kScopeKeysMax; ++i) {
    const char scope[2] = {static_cast<char>(i >> 8), static_cast<char>(i)};
    ring->key_for(key_in(1, ByteView(scope, 2)), kScopeBytes, i + 1);
  }
  CHECK(ring->size() == kScopeKeysMax);
  const KeyId first = ring->key_for(key_in(2, "d1"), kScopeBytes, kScopeKeysMax + 1);
  CHECK(ring->key_for(key_in(2, "d2"), kScopeBytes, kScopeKeysMax + 2) == first);
  CHECK(ring->size() == kScopeKeysMax + 1);
  REQUIRE(ring->persist().ok());
  CHECK(rings.opened({key_full_of('m')})->size() == kScopeKeysMax + 1);
}

TEST_CASE("a ring that the drive refuses is written by the next change") {
  Rings rings;
  auto ring = rings.create();
  const KeyId id = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  rings.disk.set_capacity("/m", 1);
  CHECK(ring->persist().code() == StatusCode::OutOfSpace);
  rings.disk.set_capacity("/m", UINT64_MAX);
  REQUIRE(ring->persist().ok());
  CHECK(rings.opened({key_full_of('m')})->find(id).has_value());
}

TEST_CASE("what a file's cipher seals opens in its place in its file alone") {
  Rings rings;
  auto ring = rings.create();
  const KeyId id = ring->key_for(key_in(1, "d1"), kScopeBytes, 1);
  const FileCipher cipher(*ring, {1}, {"table", 5});
  Bytes sealed(6 + kSealBytes, '\0');
  cipher.seal(id, 77, "secret", sealed.data());
  const auto opens = [&](const FileCipher& with, KeyId key, std::uint64_t place) {
    Bytes out(sealed.size(), '\0');
    return with.open(key, place, sealed, out.data()) == Opened::Yes && out.starts_with("secret");
  };
  CHECK(opens(cipher, id, 77));
  CHECK_FALSE(opens(cipher, id, 78));
  CHECK_FALSE(opens(cipher, kDatabaseKey, 77));
  CHECK_FALSE(opens(FileCipher(*ring, {2}, {"table", 5}), id, 77));
  CHECK_FALSE(opens(FileCipher(*ring, {1}, {"table", 6}), id, 77));
  CHECK_FALSE(opens(FileCipher(*ring, {1}, {"log", 5}), id, 77));
  CHECK(opens(FileCipher(*ring, {1}, {"table", 5}), id, 77));
}

}  // namespace edgecase::engine
