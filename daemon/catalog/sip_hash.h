// SipHash-2-4 with 128 bits: of names that others choose, and that must not be taken for each other
// by their hashes alone. Without the key nobody can make two with the same one. Pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace edgecase::catalog {

using SipKey = std::array<std::uint64_t, 2>;

class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      word_ |= std::uint64_t{static_cast<unsigned char>(byte)} << 8 * (size_ % 8);
      if (++size_ % 8 == 0) take_word();
    }
  }
  std::array<std::uint64_t, 2> finish() {
    word_ |= size_ << 56;
    take_word();
    v2_ ^= 0xee;
    rounds(4);
    const std::uint64_t first = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    return {first, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void take_word() {
    v3_ ^= word_;
    rounds(2);
    v0_ ^= word_;
    word_ = 0;
  }
  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t word_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace edgecase::catalog
