#include "base/hash.h"

#include "base/coding.h"

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

}  // namespace edgecase::engine
