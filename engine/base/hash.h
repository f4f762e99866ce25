// A 64-bit hash for filters and hash indexes. Its numbers are part of the table format: the same on
// every machine, for ever (tests/engine/base/hash_test.cc holds some). Not for secrets.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

std::uint64_t hash64(ByteView bytes, std::uint64_t seed = 0);

// Spreads a number over all 64 bits; a bijection.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  return value ^ (value >> 32);
}

}  // namespace edgecase::engine
