// The distributions of YCSB (Cooper et al., SoCC 2010) by its own arithmetic, so that a hot key
// here is as hot as there. tests/cli/bench/ycsb_numbers_test.cc holds them against what its program
// draws.
#pragma once

#include <cstdint>
#include <set>

#include "edgecase/mutex.h"
#include "edgecase/random.h"

namespace edgecase::cli::bench {

// YCSB's hash of a number: FNV-1a of the eight bytes, the sign bit dropped.
std::uint64_t ycsb_hash(std::uint64_t number);

// 0 is drawn most often, then 1, …: probability of rank r as 1 / (r + 1)^0.99, by the method of
// Gray et al. (SIGMOD 1994). Not thread-safe.
class Zipfian {
 public:
  static constexpr double kConstant = 0.99;

  explicit Zipfian(std::uint64_t items);
  // The sum of 1 / i^0.99 over all items is known already.
  Zipfian(std::uint64_t items, double zeta);

  std::uint64_t next(Random& random);
  // More items from now on: only the new ones are added up.
  void grow(std::uint64_t items);

 private:
  void prepare();

  std::uint64_t items_;
  double zeta_;
  double eta_ = 0;
};

// The hot items lie anywhere: a zipfian rank among 10^10, hashed, so flatter than Zipfian over the
// items themselves.
class ScrambledZipfian {
 public:
  explicit ScrambledZipfian(std::uint64_t items);
  std::uint64_t next(Random& random);

 private:
  const std::uint64_t items_;
  Zipfian ranks_;
};

// Which records there are while several threads insert: those below limit() are all written.
// Thread-safe.
class InsertSequence {
 public:
  explicit InsertSequence(std::uint64_t first) : next_(first), limit_(first) {}
  std::uint64_t take();
  void written(std::uint64_t number);
  std::uint64_t limit() const;

 private:
  mutable Mutex mutex_;
  std::uint64_t next_ EC_GUARDED_BY(mutex_);
  std::uint64_t limit_ EC_GUARDED_BY(mutex_);
  std::set<std::uint64_t> ahead_ EC_GUARDED_BY(mutex_);  // written, but not all before them
};

// The newest is drawn most often.
class Latest {
 public:
  explicit Latest(std::uint64_t items) : ages_(items), items_(items) {}
  // Draws from the numbers below `limit`, which never gets less.
  std::uint64_t next(Random& random, std::uint64_t limit);

 private:
  Zipfian ages_;
  std::uint64_t items_;
};

}  // namespace edgecase::cli::bench
