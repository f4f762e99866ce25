// CRC-32C (Castagnoli), the checksum of every format. Uses the processor's instructions where they
// are found at run time (crc32c_folding.h, SSE4.2, ARMv8 CRC), else tables.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::engine {

// The checksum of what `crc` was computed over, followed by `bytes`. Start with 0.
std::uint32_t crc32c_extend(std::uint32_t crc, ByteView bytes);

inline std::uint32_t crc32c(ByteView bytes) {
  return crc32c_extend(0, bytes);
}

// The two ways, for the tests that compare them.
bool crc32c_has_hardware();
std::uint32_t crc32c_extend_hardware(std::uint32_t crc, ByteView bytes);  // only where it is there
std::uint32_t crc32c_extend_software(std::uint32_t crc, ByteView bytes);

}  // namespace edgecase::engine
