#include "metadata/umeta_block.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "edgecase/machine.h"

namespace edgecase::engine {
namespace {

std::size_t linear(const std::vector<Bytes>& keys, ByteView wanted) {
  std::size_t at = 0;
  while (at < keys.size() && keys[at] < wanted) ++at;
  return at;
}

void check_all(const std::vector<Bytes>& keys, const std::vector<Bytes>& wanted) {
  KeyHeads heads;
  const auto key_at = [&](std::size_t i) { return ByteView(keys[i]); };
  heads.build(keys.size(), key_at);
  for (const Bytes& key : wanted) {
    CAPTURE(key);
    REQUIRE(heads.lower_bound(key, key_at) == linear(keys, key));
  }
}

TEST_CASE("key heads find a place as a walk does") {
  constexpr std::uint64_t kSeed = 5;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  for (int round = 0; round < 200; ++round) {
    // Few letters, with both ends of the range of bytes among them, and lengths about the eight
    // bytes of a head: many keys share one, and some are the beginning of others.
    const auto letters = ByteView("\0a\xff", 3);
    const Bytes prefix(random.below(12), 'p');
    const auto any_key = [&](const Bytes& start) {
      Bytes key = start;
      for (std::uint64_t n = random.below(12); n > 0; --n) key += letters[random.below(3)];
      return key;
    };
    std::set<Bytes> some;
    for (std::uint64_t n = random.below(60); n > 0; --n) some.insert(any_key(prefix));
    std::vector<Bytes> wanted(some.begin(), some.end());
    for (int i = 0; i < 50; ++i) wanted.push_back(any_key(i % 2 == 0 ? prefix : Bytes()));
    check_all({some.begin(), some.end()}, wanted);
  }
}

TEST_CASE("key heads of no keys and of one") {
  check_all({}, {"", "a"});
  check_all({"key"}, {"", "a", "ke", "key", "key\0", "kez", "z"});
}

}  // namespace
}  // namespace edgecase::engine
