// Keys of EraseService's records. Inside daemon/erase only.
#pragma once

#include <cstdint>

#include "edgecase/bytes.h"

#include "wire/big_endian.h"

namespace edgecase::erase {

inline constexpr char kCertificateRecord = 'C';

inline Bytes certificate_key(std::uint64_t number) {
  Bytes key(1, kCertificateRecord);
  wire::append_big_endian(number, key);
  return key;
}

}  // namespace edgecase::erase
