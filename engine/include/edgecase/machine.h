// The machine, as the engine and the daemon are given it: time (Clock), random numbers (Random, and
// KeyedHash, whose key is one), the limits of this process, and what its processor can. Tests hand
// in clocks and numbers of their own. Thread-safe where nothing else is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace edgecase {

// Limits of this process, in words: its own (setrlimit, `ulimit`) and those of its control group.
// An error that one of them caused names it, so that whoever reads it knows what to raise.

// " (the limit RLIMIT_FSIZE, ulimit -f, is 1024 bytes)" for an errno that one causes (EFBIG,
// EMFILE), where it is set; else empty.
std::string limit_of_error(int error);
// Why no thread could be started: "the limit RLIMIT_NPROC (ulimit -u) is 12".
std::string limit_of_threads();
// The same of memory. Takes none; answers how many bytes of `text` it wrote.
std::size_t limit_of_memory(char* text, std::size_t size);

// Whether the processor has instructions for AES: without them sealing and opening is done in
// software, several times slower.
bool has_aes_instructions();

// Time, and the time of the build, which is past whatever a clock says.

enum class ClockTrust : unsigned char { Trusted, Untrusted };

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since 1970-01-01 UTC. May jump either way.
  virtual std::int64_t wall_ns() const = 0;
  // Nanoseconds since boot, suspended time included. Never goes back.
  virtual std::int64_t boot_ns() const = 0;
  // Whether wall_ns() may decide that data is old.
  virtual ClockTrust trust() const = 0;
  // Whether a time server confirms wall_ns(): not what somebody has set since, nor what a machine
  // starts with. False where nobody can tell.
  virtual bool synchronised() const { return false; }
};

// The machine's clocks. Lives for the length of the process.
Clock& system_clock();

// When this program was built, in nanoseconds since 1970-01-01 UTC; SOURCE_DATE_EPOCH where the
// build was given one.
std::int64_t build_time_ns();

// Random numbers.

class Random {
 public:
  virtual ~Random() = default;
  // 64 uniformly distributed bits. Thread-safe in system_random() only.
  virtual std::uint64_t next() = 0;
};

// The kernel's generator. Lives for the length of the process.
Random& system_random();

// xoshiro256**, for tests and workloads: the same seed gives the same numbers. Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;
  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_[4];
};

// Hashes what strangers choose (names, times), for tables in memory. The key is drawn once in each
// process, so that nobody outside can choose many things that fall on one place. Its numbers are
// never stored. Default-made ones of a process are alike; copies may be used by any thread.
class KeyedHash {
 public:
  KeyedHash() : KeyedHash(of_process()) {}
  explicit KeyedHash(Random& random) : first_(random.next()), second_(random.next()) {}

  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return fold(a ^ first_, b ^ second_);
  }

  std::uint64_t operator()(std::string_view text) const {
    const char* at = text.data();
    std::size_t left = text.size();
    std::uint64_t state = second_;
    for (; left > kPairBytes; left -= kPairBytes, at += kPairBytes) {
      state = fold(word(at) ^ first_, word(at + kWordBytes) ^ state);
    }
    if (text.size() >= kPairBytes) {  // the last ones, though some were in the pair before
      at -= kPairBytes - left;
      left = kPairBytes;
    }
    char rest[kPairBytes] = {};
    if (left > 0) std::memcpy(rest, at, left);
    state = fold(word(rest) ^ first_, word(rest + kWordBytes) ^ state);
    return fold(state ^ second_, first_ ^ text.size());
  }

 private:
  static constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  static constexpr std::size_t kPairBytes = 2 * kWordBytes;

  static const KeyedHash& of_process() {
    static const KeyedHash hash(system_random());
    return hash;
  }
  static std::uint64_t word(const char* at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
  }
  // Folds the product of 128 bits: every bit of either factor reaches many of the result.
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace edgecase
