// Numbers in the keys and values of records: big-endian, so that byte order is their order.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::wire {

// The lowest `bytes` bytes of it.
inline void append_big_endian(std::uint64_t number, Bytes& out, int bytes = 8) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(number >> shift));
}

// The number in the first 8 bytes, or in as many as there are.
inline std::uint64_t read_big_endian(ByteView bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(0, 8))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace edgecase::wire
