#include "base/crc32c.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/coding.h"
#include "base/crc32c_folding.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgecase::engine {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

// table[0] steps one byte; table[k] steps one byte and k zero bytes after it, so that eight bytes
// go in one round of independent look-ups.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t before = tables[k - 1][i];
      tables[k][i] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

// What a lane of zero bytes makes of each byte of a state: states of neighbouring lanes are joined
// with it, because the checksum is linear.
constexpr std::size_t kLaneBytes = 256;
using LaneTables = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr LaneTables make_lane_tables() {
  LaneTables tables{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t state = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLaneBytes; ++i) state = (state >> 8) ^ kTables[0][state & 0xff];
    for (std::size_t value = 0; value < 256; ++value) {
      if ((value >> bit % 8 & 1) != 0) tables[bit / 8][value] ^= state;
    }
  }
  return tables;
}

constexpr LaneTables kLaneTables = make_lane_tables();

[[maybe_unused]] std::uint32_t over_a_lane(std::uint32_t state) {
  return kLaneTables[0][state & 0xff] ^ kLaneTables[1][state >> 8 & 0xff] ^
         kLaneTables[2][state >> 16 & 0xff] ^ kLaneTables[3][state >> 24];
}

const unsigned char* bytes_of(const char* data) {
  return reinterpret_cast<const unsigned char*>(data);
}

}  // namespace

std::uint32_t crc32c_extend_software(std::uint32_t crc, ByteView bytes) {
  crc = ~crc;
  const char* data = bytes.data();
  std::size_t size = bytes.size();
  for (; size >= 8; size -= 8, data += 8) {
    const std::uint64_t word = decode_fixed64(data) ^ crc;
    crc = kTables[7][word & 0xff] ^ kTables[6][(word >> 8) & 0xff] ^
          kTables[5][(word >> 16) & 0xff] ^ kTables[4][(word >> 24) & 0xff] ^
          kTables[3][(word >> 32) & 0xff] ^ kTables[2][(word >> 40) & 0xff] ^
          kTables[1][(word >> 48) & 0xff] ^ kTables[0][word >> 56];
  }
  for (; size > 0; --size, ++data) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes_of(data)) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

bool crc32c_has_hardware() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}

namespace {

__attribute__((target("sse4.2,crc32"))) inline std::uint32_t step8(std::uint32_t crc,
                                                                   std::uint64_t word) {
  return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
}
__attribute__((target("sse4.2,crc32"))) inline std::uint32_t step4(std::uint32_t crc,
                                                                   std::uint32_t word) {
  return _mm_crc32_u32(crc, word);
}
__attribute__((target("sse4.2,crc32"))) inline std::uint32_t step1(std::uint32_t crc,
                                                                   unsigned char byte) {
  return _mm_crc32_u8(crc, byte);
}

}  // namespace

#elif defined(__aarch64__)

bool crc32c_has_hardware() {
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;  // HWCAP_CRC32 of the kernel's aarch64 ABI
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}

namespace {

// By mnemonic: the intrinsics want the whole file compiled for ARMv8.1.
inline std::uint32_t step8(std::uint32_t crc, std::uint64_t word) {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  return crc;
}
inline std::uint32_t step4(std::uint32_t crc, std::uint32_t word) {
  asm(".arch_extension crc\n\tcrc32cw %w0, %w0, %w1" : "+r"(crc) : "r"(word));
  return crc;
}
inline std::uint32_t step1(std::uint32_t crc, unsigned char byte) {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1"
      : "+r"(crc)
      : "r"(static_cast<std::uint32_t>(byte)));
  return crc;
}

}  // namespace

#else

bool crc32c_has_hardware() {
  return false;
}

std::uint32_t crc32c_extend_hardware(std::uint32_t, ByteView) {
  EC_CHECK(false);
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32")))
#endif
std::uint32_t
crc32c_extend_hardware(std::uint32_t crc, ByteView bytes) {
  crc = ~crc;
  const char* data = bytes.data();
  std::size_t size = bytes.size();
  // The instruction answers after three cycles, but one can begin in each: three lanes at once.
  for (; size >= 3 * kLaneBytes; size -= 3 * kLaneBytes, data += 3 * kLaneBytes) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      crc = step8(crc, decode_fixed64(data + i));
      second = step8(second, decode_fixed64(data + kLaneBytes + i));
      third = step8(third, decode_fixed64(data + 2 * kLaneBytes + i));
    }
    crc = over_a_lane(over_a_lane(crc) ^ second) ^ third;
  }
  for (; size >= 8; size -= 8, data += 8) crc = step8(crc, decode_fixed64(data));
  if (size >= 4) {
    crc = step4(crc, decode_fixed32(data));
    size -= 4;
    data += 4;
  }
  for (; size > 0; --size, ++data) crc = step1(crc, *bytes_of(data));
  return ~crc;
}

#endif

std::uint32_t crc32c_extend(std::uint32_t crc, ByteView bytes) {
  static const bool hardware = crc32c_has_hardware();
  static const bool folding = crc32c_has_folding();
  if (folding && bytes.size() >= kCrcFoldingMinBytes) return crc32c_extend_folding(crc, bytes);
  return hardware ? crc32c_extend_hardware(crc, bytes) : crc32c_extend_software(crc, bytes);
}

}  // namespace edgecase::engine
