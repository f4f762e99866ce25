// Linked before the engine, in place of base/hash.cc: every checksum is the same, so that
// bytes get behind them. Not 0, or rooms of zeros would be records. Files that were written with it
// can be read with it alone.
#include "base/hash.h"

namespace edgecase::engine {
namespace {

constexpr std::uint32_t kAnyChecksum = 0x0ec0c0de;

}  // namespace

std::uint32_t crc32c_extend(std::uint32_t /*crc*/, ByteView /*bytes*/) {
  return kAnyChecksum;
}

bool crc32c_has_hardware() {
  return false;
}

std::uint32_t crc32c_extend_hardware(std::uint32_t /*crc*/, ByteView /*bytes*/) {
  return kAnyChecksum;
}

std::uint32_t crc32c_extend_software(std::uint32_t /*crc*/, ByteView /*bytes*/) {
  return kAnyChecksum;
}

}  // namespace edgecase::engine
