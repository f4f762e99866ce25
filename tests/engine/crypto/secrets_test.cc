#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "crypto/file_cipher.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kScannedMaxBytes = 256u << 20;  // of one mapping: larger ones are reserved
constexpr std::uint8_t kMask = 0x5a;

// A secret as a test may hold it: it is not the bytes that are looked for.
using Masked = std::array<std::uint8_t, kSecretKeyBytes>;

Masked masked(const SecretKey& key) {
  Masked bytes;
  std::transform(key.begin(), key.end(), bytes.begin(),
                 [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte ^ kMask); });
  return bytes;
}

// Not inlined: there the compiler may make the key in room of its own, which nobody wipes.
[[gnu::noinline]] SecretKey unmasked(const Masked& bytes) {
  SecretKey key;
  std::transform(bytes.begin(), bytes.end(), key.begin(),
                 [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte ^ kMask); });
  return key;
}

bool is_there(const char* at, const Masked& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if ((static_cast<std::uint8_t>(at[i]) ^ kMask) != wanted[i]) return false;
  return true;
}

// Copies of the secret in what this process can write to. The memory is read a piece at a time into
// one buffer, which is not looked into itself and is wiped.
std::size_t copies_in_memory(const Masked& wanted) {
  static std::array<char, 64u << 10> buffer;
  const auto first = static_cast<char>(wanted[0] ^ kMask);
  const auto own = reinterpret_cast<std::uintptr_t>(buffer.data());
  std::size_t copies = 0;
  std::ifstream maps("/proc/self/maps");
  std::ifstream memory("/proc/self/mem", std::ios::binary);
  memory.rdbuf()->pubsetbuf(nullptr, 0);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
    if (!rights.starts_with("rw") || end - begin > kScannedMaxBytes) continue;
    for (std::uintptr_t at = begin; at < end; at += buffer.size() - wanted.size()) {
      const auto size =
          static_cast<std::streamsize>(std::min<std::uintptr_t>(buffer.size(), end - at));
      memory.clear();
      memory.seekg(static_cast<std::streamoff>(at));
      memory.read(buffer.data(), size);
      const std::streamsize got = memory.gcount();
      const char* const last = buffer.data() + got - static_cast<std::ptrdiff_t>(wanted.size());
      for (const char* found = buffer.data(); found <= last; ++found) {
        found = static_cast<const char*>(
            std::memchr(found, first, static_cast<std::size_t>(last - found) + 1));
        if (found == nullptr) break;
        const std::uintptr_t where = at + static_cast<std::uintptr_t>(found - buffer.data());
        if (is_there(found, wanted) && (where < own || where >= own + buffer.size())) ++copies;
      }
      if (got < size) break;
    }
  }
  ::explicit_bzero(buffer.data(), buffer.size());
  return copies;
}

// What a destroyed object left. Volatile: the compiler takes such bytes for meaningless.
template <typename T, typename... Arguments>
std::size_t bytes_left_by(Arguments&&... arguments) {
  alignas(T) static unsigned char room[sizeof(T)];
  std::memset(room, 0, sizeof room);
  T* const object = new (room) T(std::forward<Arguments>(arguments)...);
  const volatile unsigned char* const seen = room;
  const auto count = [&] {
    std::size_t left = 0;
    for (std::size_t i = 0; i < sizeof room; ++i) left += seen[i] != 0;
    return left;
  };
  REQUIRE(count() > 16);  // it was there
  object->~T();
  return count();
}

}  // namespace

TEST_CASE("a key and what is made of it wipe their memory when they go") {
  SecretKey key;
  key.fill(0xa5);
  CHECK(bytes_left_by<SecretKey>(key) == 0);
  CHECK(bytes_left_by<AesGcm>(key) == 0);
  Bytes secrets(100, 's');
  { const WipeAtEnd wipe(secrets); }
  CHECK(secrets == Bytes(100, '\0'));
}

TEST_CASE("nothing of the keys stays in the memory of the process when the ring is closed") {
  const std::uint64_t seed = test::test_seed(31);
  CAPTURE(seed);
  SeededRandom random(seed);
  const Masked master = masked(SecretRandom(random).key());
  std::vector<Masked> scopes;
  Masked database{};
  test::MemoryFileSystem disk{{"/m"}};
  const auto use = [&](KeyRing& ring) {
    database = masked(ring.derive_from_database("salt", "purpose"));
    for (char scope = 'a'; scope < 'e'; ++scope) {
      const KeyId id = ring.key_for(make_full_key(1, Bytes(8, scope)), 8, 10);
      scopes.push_back(masked(*ring.find(id)));
      const FileCipher cipher(ring, ring.random().salt(), {"test", 1});
      Bytes bytes(100 + kSealBytes, 'x');
      cipher.seal(id, 0, ByteView(bytes).substr(0, 100), bytes.data());
      REQUIRE(cipher.open(id, 0, bytes, bytes.data()) == Opened::Yes);
    }
    REQUIRE(ring.persist().ok());
  };
  {
    auto ring = KeyRing::create(disk, "/m", {1}, {unmasked(master)}, random);
    REQUIRE(ring.ok());
    use(**ring);
    if (copies_in_memory(master) == 0) {
      MESSAGE("skipped: the memory of this process cannot be read");
      return;
    }
    CHECK(copies_in_memory(scopes[0]) > 0);
  }
  {
    auto ring = KeyRing::open(disk, "/m", {1}, {unmasked(master)}, random);
    REQUIRE(ring.ok());
    use(**ring);
    CHECK(copies_in_memory(scopes[0]) > 0);
  }
  CHECK(copies_in_memory(master) == 0);
  CHECK(copies_in_memory(database) == 0);
  for (const Masked& scope : scopes) CHECK(copies_in_memory(scope) == 0);
}

}  // namespace edgecase::engine
