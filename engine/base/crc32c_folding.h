// CRC-32C of longer pieces by carry-less multiplication, 256 bytes at a time, where the processor
// multiplies four pairs at once (x86-64 with AVX-512 and VPCLMULQDQ): 1.5 times as fast as the CRC
// instruction at 256 bytes, 2.3 times at 1.5 KiB, 2.5 times from 4 KiB on (a Zen 5 core). Two pairs
// at once gain too little.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// Below, the instruction is as fast.
inline constexpr std::size_t kCrcFoldingMinBytes = 256;

bool crc32c_has_folding();
// Only where it is there, and of kCrcFoldingMinBytes or more. As crc32c_extend().
std::uint32_t crc32c_extend_folding(std::uint32_t crc, ByteView bytes);

}  // namespace edgecase::engine
