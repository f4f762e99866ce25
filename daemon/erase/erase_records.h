// Keys of EraseService's records. Inside daemon/erase only.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

namespace edgecase::erase {

inline constexpr char kCertificateRecord = 'C';

// Big-endian, in so many bytes.
inline void append_number(std::uint64_t number, Bytes& out, int bytes = 8) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(number >> shift));
}

inline Bytes certificate_key(std::uint64_t number) {
  Bytes key(1, kCertificateRecord);
  append_number(number, key);
  return key;
}

}  // namespace edgecase::erase
