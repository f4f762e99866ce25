#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/coding.h"
#include "crypto/key_ring.h"
#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

SecretKey filled_key(char byte) {
  SecretKey key;
  key.fill(static_cast<std::uint8_t>(byte));
  return key;
}

constexpr KeyRingHead kHead{{1, 2, 3}, 42};

Bytes some_entries() {
  const Bytes key(kSecretKeyBytes, 'k');
  Bytes entries;
  append_varint64(entries, 2);
  append_key_entry(entries, {ByteView("\0\0\0\1device-a", 12), 7, 11, key});
  append_key_entry(entries, {ByteView("\0\0\0\1device-b", 12), 8, 12, key});
  return entries;
}

Bytes file_of(ByteView entries) {
  SeededRandom seed(5);
  SecretRandom random(seed);
  return encode_key_ring_file(kHead, filled_key('m'), filled_key('d'), entries, random);
}

bool is_taken(ByteView entries) {
  return take_key_entries(entries, [](const KeyEntry&) { return true; });
}

}  // namespace

TEST_CASE("key ring file: entries come back as they were, and one that is refused ends it") {
  const Bytes key(kSecretKeyBytes, 'k');
  const ByteView scope("\0\0\0\1device", 10);
  Bytes entries;
  append_varint64(entries, 2);
  append_key_entry(entries, {scope, 7, 11, key});
  append_key_entry(entries, {scope, 8, 12, key});
  std::vector<KeyId> ids;
  CHECK(take_key_entries(entries, [&](const KeyEntry& entry) {
    CHECK(entry.scope == scope);
    CHECK(entry.sequence == entry.id - 4);
    CHECK(entry.key == key);
    ids.push_back(entry.id);
    return true;
  }));
  CHECK(ids == std::vector<KeyId>{11, 12});
  CHECK_FALSE(take_key_entries(entries, [](const KeyEntry& entry) { return entry.id != 12; }));
}

TEST_CASE("key ring file: entries that are cut, too many or senseless are refused") {
  const Bytes key(kSecretKeyBytes, 'k');
  Bytes one;
  append_key_entry(one, {ByteView("\0\0\0\1", 4), 1, 2, key});
  const Bytes whole = "\1" + one;
  REQUIRE(is_taken(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(is_taken(ByteView(whole).substr(0, size)));
  }
  CHECK_FALSE(is_taken(whole + "more"));
  CHECK_FALSE(is_taken("\2" + one));
  Bytes database = "\1", no_namespace = "\1";
  append_key_entry(database, {ByteView("\0\0\0\1", 4), 1, kDatabaseKey, key});
  CHECK_FALSE(is_taken(database));  // an id that no scope has
  append_key_entry(no_namespace, {"abc", 1, 2, key});
  CHECK_FALSE(is_taken(no_namespace));
}

TEST_CASE("key ring file: either half opens with the master key, and says without it whose it is") {
  const Bytes entries = some_entries();
  const Bytes file = file_of(entries);
  CHECK(file.size() % 8'192 == 0);
  for (const ByteView half : key_ring_halves(file)) {
    const auto copy = KeyRingCopy::find(half);
    REQUIRE(copy.has_value());
    CHECK(copy->version() == kKeyRingVersion);
    CHECK(copy->store_id() == kHead.store_id);
    CHECK(copy->generation() == kHead.generation);
    CHECK(copy->master_fingerprint() == fingerprint_of(filled_key('m')));
    CHECK(copy->master_fingerprint() != fingerprint_of(filled_key('n')));
    SecretKey database{};
    CHECK_FALSE(copy->unwrap(filled_key('n'), database));
    REQUIRE(copy->unwrap(filled_key('m'), database));
    CHECK(bytes_of(database) == bytes_of(filled_key('d')));
    CHECK(copy->open_entries(database) == entries);
    CHECK_FALSE(copy->open_entries(filled_key('e')).has_value());
  }
}

TEST_CASE("key ring file: nothing of entries and keys is to be read in it") {
  const Bytes file = file_of(some_entries());
  CHECK(file.find("device") == Bytes::npos);
  CHECK(file.find(Bytes(8, 'k')) == Bytes::npos);
  CHECK(file.find(Bytes(8, 'd')) == Bytes::npos);
  CHECK(file.find(Bytes(8, 'm')) == Bytes::npos);
}

TEST_CASE("key ring file: a copy with a flipped bit is none, nor is one that is cut") {
  const Bytes file = file_of(some_entries());
  const ByteView half = key_ring_halves(file)[0];
  const std::size_t size = decode_fixed32(half.data() + 12);
  for (std::size_t bit = 0; bit < 8 * size; ++bit) {
    CAPTURE(bit);
    Bytes damaged(half);
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(KeyRingCopy::find(damaged).has_value());
  }
  for (std::size_t length = 0; length < size; ++length)
    CHECK_FALSE(KeyRingCopy::find(half.substr(0, length)).has_value());
  CHECK_FALSE(KeyRingCopy::find({}).has_value());
}

}  // namespace edgecase::engine
