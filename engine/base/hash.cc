#include "base/hash.h"

#include <array>
#include <cstring>

#include "base/coding.h"
#include "edgecase/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgecase::engine {
namespace {

// Odd numbers with half their bits set, no pattern.
constexpr std::uint64_t kFirst = 0x9e6c63d0876a9a47;
constexpr std::uint64_t kSecond = 0xc3a5c85c97cb3127;
constexpr std::uint64_t kThird = 0xb492b66fbe98f273;

// The 128-bit product, folded: every bit of either factor reaches every bit of the result.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// 0 to 7 bytes as a number.
std::uint64_t tail_of(const char* data, std::size_t size) {
  std::uint64_t word = 0;
  std::size_t i = 0;
  if (size >= 4) {
    word = decode_fixed32(data);
    i = 4;
  }
  for (; i < size; ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  }
  return word;
}

}  // namespace

std::uint64_t hash64(ByteView bytes, std::uint64_t seed) {
  const char* data = bytes.data();
  std::size_t size = bytes.size();
  std::uint64_t state = seed ^ kFirst;
  for (; size >= 16; size -= 16, data += 16) {
    state = fold(decode_fixed64(data) ^ kSecond, decode_fixed64(data + 8) ^ state) + kThird;
  }
  std::uint64_t first = 0;
  if (size >= 8) {
    first = decode_fixed64(data);
    data += 8;
    size -= 8;
  }
  // The length keeps apart what differs only in trailing zero bytes.
  state = fold(first ^ kSecond ^ bytes.size(), tail_of(data, size) ^ state);
  return mix64(state ^ kThird);
}

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

#if defined(__x86_64__)

namespace {

// Everything is reflected: the lowest bit of a number is its highest power of x.
constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78;

// x to the power of `exponent`, modulo the polynomial.
constexpr std::uint32_t power_of_x(unsigned exponent) {
  std::uint32_t power = 0x80000000;
  for (; exponent > 0; --exponent)
    power = (power >> 1) ^ ((power & 1) != 0 ? kReflectedPolynomial : 0);
  return power;
}

// What 16 bytes are multiplied with, eight and eight, to have the same remainder `bits` further on.
// The product of two reflected numbers is short of one power, a factor in the low half of its eight
// bytes stands for 32 more.
struct Factors {
  std::int64_t first;
  std::int64_t second;
};
constexpr Factors factors_over(unsigned bits) {
  return {power_of_x(bits + 64 - 32 - 1), power_of_x(bits - 32 - 1)};
}

constexpr Factors kOver128 = factors_over(128);
constexpr Factors kOver512 = factors_over(512);
constexpr Factors kOver2048 = factors_over(2048);

#define EC_TARGET_FOLDING __attribute__((target("avx512f,pclmul,vpclmulqdq,sse4.2,crc32")))

EC_TARGET_FOLDING inline __m512i four_times(const Factors& over) {
  return _mm512_set_epi64(over.second, over.first, over.second, over.first, over.second, over.first,
                          over.second, over.first);
}

EC_TARGET_FOLDING inline __m512i load(const char* bytes) {
  return _mm512_loadu_si512(bytes);
}

EC_TARGET_FOLDING inline __m512i fold(__m512i state, __m512i by, __m512i next) {
  const __m512i product = _mm512_xor_si512(_mm512_clmulepi64_epi128(state, by, 0x00),
                                           _mm512_clmulepi64_epi128(state, by, 0x11));
  return _mm512_xor_si512(product, next);
}

EC_TARGET_FOLDING inline __m128i fold(__m128i state, __m128i by, __m128i next) {
  const __m128i product =
      _mm_xor_si128(_mm_clmulepi64_si128(state, by, 0x00), _mm_clmulepi64_si128(state, by, 0x11));
  return _mm_xor_si128(product, next);
}

// Whether the kernel keeps the registers of AVX-512 when it runs another process (XCR0). Asked for
// by hand, as all of this: what compilers have for it, not every one's library has.
bool keeps_wide_registers() {
  constexpr unsigned kStates = 0xe6;
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kStates) == kStates;
}

}  // namespace

bool crc32c_has_folding() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kWanted = bit_PCLMUL | bit_SSE4_2 | bit_OSXSAVE;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kWanted) != kWanted) return false;
  if (!keeps_wide_registers()) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (b & bit_AVX512F) != 0 && (c & bit_VPCLMULQDQ) != 0;
}

EC_TARGET_FOLDING std::uint32_t crc32c_extend_folding(std::uint32_t crc, ByteView bytes) {
  const char* data = bytes.data();
  std::size_t size = bytes.size();
  EC_CHECK(size >= kCrcFoldingMinBytes);

  // The state goes into what it stands before.
  __m512i a = _mm512_xor_si512(load(data),
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  __m512i b = load(data + 64);
  __m512i c = load(data + 128);
  __m512i d = load(data + 192);
  data += 256;
  size -= 256;
  for (const __m512i by = four_times(kOver2048); size >= 256; size -= 256, data += 256) {
    a = fold(a, by, load(data));
    b = fold(b, by, load(data + 64));
    c = fold(c, by, load(data + 128));
    d = fold(d, by, load(data + 192));
  }
  const __m512i by = four_times(kOver512);
  d = fold(fold(fold(a, by, b), by, c), by, d);
  for (; size >= 64; size -= 64, data += 64) d = fold(d, by, load(data));

  __m128i parts[4];
  _mm512_storeu_si512(parts, d);
  const __m128i over = _mm_set_epi64x(kOver128.second, kOver128.first);
  const __m128i rest = fold(fold(fold(parts[0], over, parts[1]), over, parts[2]), over, parts[3]);
  // These 16 bytes have the remainder of all before.
  std::uint64_t state = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(rest)));
  state = _mm_crc32_u64(state, static_cast<std::uint64_t>(_mm_extract_epi64(rest, 1)));
  for (; size >= 8; size -= 8, data += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, data, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  auto last = static_cast<std::uint32_t>(state);
  for (; size > 0; --size, ++data) last = _mm_crc32_u8(last, static_cast<unsigned char>(*data));
  return ~last;
}

#else

bool crc32c_has_folding() {
  return false;
}

std::uint32_t crc32c_extend_folding(std::uint32_t, ByteView) {
  EC_CHECK(false);
}

#endif

}  // namespace edgecase::engine
