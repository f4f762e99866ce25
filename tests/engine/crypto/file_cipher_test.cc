#include <doctest/doctest.h>

#include <set>

#include "crypto/key_ring.h"
#include "engine/core/engine_fixture.h"

namespace edgecase::engine {

// What a store seals for files that others keep beside it.

namespace {

constexpr std::string_view kKind = "notes";

MasterKeys master_of(std::uint8_t byte) {
  SecretKey key;
  key.fill(byte);
  return {key};
}

struct SealedStore : test::EngineFixture {
  explicit SealedStore(std::uint64_t seed = 1) {
    random = SeededRandom(seed);
    options.encryption = master_of('m');
    reopen();
  }
  Sealer& sealer() const { return *engine->sealer(); }
};

}  // namespace

TEST_CASE("a store in clear seals nothing") {
  test::EngineFixture store;
  store.reopen();
  CHECK(store.engine->sealer() == nullptr);
}

TEST_CASE("what a store seals opens in its kind of file and place, after a restart too") {
  SealedStore store;
  for (const std::size_t size : {0u, 1u, 16u, 100'000u}) {
    CAPTURE(size);
    const Bytes plain(size, 'n');
    const Bytes sealed = store.sealer().seal(kKind, 7, plain);
    CHECK(sealed.size() == size + Sealer::kOverheadBytes);
    CHECK(sealed.find("nnn") == Bytes::npos);
    store.reopen();
    CHECK(store.sealer().open(kKind, 7, sealed) == plain);
    CHECK_FALSE(store.sealer().open(kKind, 8, sealed));
    CHECK_FALSE(store.sealer().open("note", 7, sealed));
  }
}

TEST_CASE("what a store sealed opens when its master key has changed, and in no other store") {
  SealedStore store, other(2);
  const Bytes sealed = store.sealer().seal(kKind, 7, "plain");
  CHECK_FALSE(other.sealer().open(kKind, 7, sealed));
  MasterKeys keys = master_of('n');
  keys.previous = store.options.encryption->current;
  store.options.encryption = keys;
  store.reopen();
  CHECK(store.sealer().open(kKind, 7, sealed) == "plain");
  store.options.encryption = master_of('n');
  store.reopen();
  CHECK(store.sealer().open(kKind, 7, sealed) == "plain");
}

TEST_CASE("what a store sealed does not open once a bit of it is changed, or it is cut") {
  SealedStore store;
  const Bytes sealed = store.sealer().seal(kKind, 7, "plain");
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    CAPTURE(bit);
    Bytes changed = sealed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    CHECK_FALSE(store.sealer().open(kKind, 7, changed));
  }
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(store.sealer().open(kKind, 7, sealed.substr(0, size)));
  }
  CHECK_FALSE(store.sealer().open(kKind, 7, sealed + "x"));
}

TEST_CASE("no two pieces have one salt, whatever their place, also after restarts") {
  SealedStore store;
  std::set<Bytes> salts, bodies;
  constexpr std::size_t kTimes = 3, kPieces = 500;
  for (std::size_t time = 0; time < kTimes; ++time, store.reopen()) {
    for (std::size_t i = 0; i < kPieces; ++i) {
      const Bytes sealed = store.sealer().seal(kKind, 7, "a plain text of some length");
      salts.insert(sealed.substr(0, kSaltBytes));
      bodies.insert(sealed.substr(kSaltBytes));
    }
  }
  CHECK(salts.size() == kTimes * kPieces);
  CHECK(bodies.size() == kTimes * kPieces);
}

}  // namespace edgecase::engine
