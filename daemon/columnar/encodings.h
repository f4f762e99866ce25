// Numbers as Parquet packs them. Used by parquet.cc; no state, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace edgecase::columnar {

// Seven bits a byte, the lowest first; the highest bit tells that more follow.
void append_varint(std::uint64_t number, std::string& out);

// 0, -1, 1, -2 become 0, 1, 2, 3: what is near zero is short.
inline std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}

// The bits that `greatest` and all below it need.
unsigned width_of(std::uint64_t greatest);

// Numbers of so many bits each, one behind another, the lowest bit first.
class BitPacker {
 public:
  explicit BitPacker(std::string& out) : out_(out) {}
  void put(std::uint64_t number, unsigned width) {
    if (width == 0) return;
    bits_ |= number << used_;
    used_ += width;
    if (used_ < 64) return;
    flush(64);
    used_ -= 64;
    bits_ = used_ == 0 ? 0 : number >> (width - used_);
  }
  void finish() {
    flush(used_);
    used_ = 0;
    bits_ = 0;
  }

 private:
  void flush(unsigned bits) {
    for (unsigned i = 0; i < bits; i += 8) out_.push_back(static_cast<char>(bits_ >> i));
  }

  std::string& out_;
  std::uint64_t bits_ = 0;
  unsigned used_ = 0;
};

// RLE: runs of equal numbers, and between them groups of eight in packed bits.
void append_hybrid(const std::vector<std::uint32_t>& values, unsigned width, std::string& out);

// DELTA_BINARY_PACKED: differences, in blocks whose least is told once.
void append_delta(const std::vector<std::int64_t>& values, std::string& out);

}  // namespace edgecase::columnar
