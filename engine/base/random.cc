#include "edgecase/random.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>

#include "base/check.h"

namespace edgecase {
namespace {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    for (;;) {
      // Up to 256 bytes come whole once the pool is ready; before that the call waits.
      const ssize_t got = getrandom(&value, sizeof value, 0);
      if (got == static_cast<ssize_t>(sizeof value)) return value;
      EC_CHECK(got < 0 && errno == EINTR);
    }
  }
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

// The four words come from a counter through a mixer, so that neighbouring seeds share nothing and
// no seed gives the one bad state, all zero.
SeededRandom::SeededRandom(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    word = mixed ^ (mixed >> 31);
  }
}

std::uint64_t SeededRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t SeededRandom::below(std::uint64_t bound) {
  EC_CHECK(bound > 0);
  // The lowest 2^64 mod bound numbers are thrown again; without them every result is as likely.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next();
    if (value >= threshold) return value % bound;
  }
}

}  // namespace edgecase
