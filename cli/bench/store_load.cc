#include "bench/store_load.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace edgecase::cli::bench {
namespace {

// What YCSB scrambles over, and the sum for so many items, which takes a minute to add up.
constexpr std::uint64_t kScrambledItems = 10'000'000'000;
constexpr double kScrambledZeta = 26.46902820178302;

double zeta_part(std::uint64_t from, std::uint64_t to) {
  double sum = 0;
  for (std::uint64_t i = from; i < to; ++i) {
    sum += 1 / std::pow(static_cast<double>(i + 1), Zipfian::kConstant);
  }
  return sum;
}

// In [0, 1).
double uniform(Random& random) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}

}  // namespace

std::uint64_t ycsb_hash(std::uint64_t number) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (int i = 0; i < 8; ++i) {
    hash ^= number & 0xFF;
    hash *= 0x100000001B3;
    number >>= 8;
  }
  // YCSB's numbers are signed, and it takes the absolute value.
  return hash >> 63 == 0 ? hash : ~hash + 1;
}

Zipfian::Zipfian(std::uint64_t items) : Zipfian(items, zeta_part(0, items)) {}

Zipfian::Zipfian(std::uint64_t items, double zeta) : items_(items), zeta_(zeta) {
  prepare();
}

void Zipfian::prepare() {
  const double two = zeta_part(0, 2);
  eta_ = (1 - std::pow(2.0 / static_cast<double>(items_), 1 - kConstant)) / (1 - two / zeta_);
}

void Zipfian::grow(std::uint64_t items) {
  if (items <= items_) return;
  zeta_ += zeta_part(items_, items);
  items_ = items;
  prepare();
}

std::uint64_t Zipfian::next(Random& random) {
  const double u = uniform(random);
  const double part = u * zeta_;
  if (part < 1) return 0;
  if (part < 1 + std::pow(0.5, kConstant)) return std::min<std::uint64_t>(1, items_ - 1);
  const double rank =
      static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kConstant));
  return std::min(static_cast<std::uint64_t>(rank), items_ - 1);
}

ScrambledZipfian::ScrambledZipfian(std::uint64_t items)
    : items_(items), ranks_(kScrambledItems, kScrambledZeta) {}

std::uint64_t ScrambledZipfian::next(Random& random) {
  return ycsb_hash(ranks_.next(random)) % items_;
}

std::uint64_t InsertSequence::take() {
  const MutexLock lock(mutex_);
  return next_++;
}

void InsertSequence::written(std::uint64_t number) {
  const MutexLock lock(mutex_);
  ahead_.insert(number);
  while (!ahead_.empty() && *ahead_.begin() == limit_) {
    ahead_.erase(ahead_.begin());
    ++limit_;
  }
}

std::uint64_t InsertSequence::limit() const {
  const MutexLock lock(mutex_);
  return limit_;
}

std::uint64_t Latest::next(Random& random, std::uint64_t limit) {
  if (limit > items_) {
    ages_.grow(limit);
    items_ = limit;
  }
  return limit - 1 - std::min(ages_.next(random), limit - 1);
}

}  // namespace edgecase::cli::bench
