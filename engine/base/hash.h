// Hashes that are part of formats, the same on every machine, for ever: CRC-32C, the checksum of
// every format, and hash64 for filters and hash indexes (tests/engine/base/hash_test.cc holds some
// numbers). Not for secrets.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// A 64-bit hash.
std::uint64_t hash64(ByteView bytes, std::uint64_t seed = 0);

// Spreads a number over all 64 bits; a bijection.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  return value ^ (value >> 32);
}

// CRC-32C (Castagnoli). Uses the processor's instructions where they are found at run time
// (PCLMULQDQ, SSE4.2, ARMv8 CRC), else tables.

// The checksum of what `crc` was computed over, followed by `bytes`. Start with 0.
std::uint32_t crc32c_extend(std::uint32_t crc, ByteView bytes);

inline std::uint32_t crc32c(ByteView bytes) {
  return crc32c_extend(0, bytes);
}

// The two ways, for the tests that compare them.
bool crc32c_has_hardware();
std::uint32_t crc32c_extend_hardware(std::uint32_t crc, ByteView bytes);  // only where it is there
std::uint32_t crc32c_extend_software(std::uint32_t crc, ByteView bytes);

// CRC-32C of longer pieces by carry-less multiplication, 256 bytes at a time, where the processor
// multiplies four pairs at once (x86-64 with AVX-512 and VPCLMULQDQ): 1.5 times as fast as the CRC
// instruction at 256 bytes, 2.3 times at 1.5 KiB, 2.5 times from 4 KiB on (a Zen 5 core). Two pairs
// at once gain too little.

// Below, the instruction is as fast.
inline constexpr std::size_t kCrcFoldingMinBytes = 256;

bool crc32c_has_folding();
// Only where it is there, and of kCrcFoldingMinBytes or more. As crc32c_extend().
std::uint32_t crc32c_extend_folding(std::uint32_t crc, ByteView bytes);

}  // namespace edgecase::engine
