#include "columnar/encodings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace edgecase::columnar {

void append_varint(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

unsigned width_of(std::uint64_t greatest) {
  return static_cast<unsigned>(std::bit_width(greatest));
}

void append_hybrid(const std::vector<std::uint32_t>& values, unsigned width, std::string& out) {
  const std::size_t count = values.size();
  const auto run_at = [&](std::size_t at, std::size_t most) {
    const std::size_t end = std::min(count, at + most);
    std::size_t next = at + 1;
    while (next < end && values[next] == values[at]) ++next;
    return next - at;
  };
  for (std::size_t at = 0; at < count;) {
    const std::size_t run = run_at(at, count);
    if (run >= 8) {
      append_varint(run << 1, out);
      for (unsigned bits = 0; bits < width; bits += 8)
        out.push_back(static_cast<char>(values[at] >> bits));
      at += run;
      continue;
    }
    // Groups of eight, up to where a run begins.
    const std::size_t begin = at;
    do at += 8;
    while (at < count && run_at(at, 8) < 8);
    append_varint(((at - begin) / 8) << 1 | 1, out);
    BitPacker packer(out);
    for (std::size_t i = begin; i < at; ++i) packer.put(i < count ? values[i] : 0, width);
    packer.finish();
  }
}

// Blocks of 128 differences; of each the least, which the others are told from, and the bits that
// each 32 of them need.
void append_delta(const std::vector<std::int64_t>& values, std::string& out) {
  constexpr std::size_t kBlock = 128, kMiniblocks = 4, kMiniblock = kBlock / kMiniblocks;
  append_varint(kBlock, out);
  append_varint(kMiniblocks, out);
  append_varint(values.size(), out);
  append_varint(zigzag(values.empty() ? 0 : values[0]), out);
  std::array<std::uint64_t, kBlock> steps{};
  for (std::size_t at = 1; at < values.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - at);
    auto least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < count; ++i) {
      // Wraps around where the difference is none of 64 bits; so does who adds it.
      steps[i] = static_cast<std::uint64_t>(values[at + i]) -
                 static_cast<std::uint64_t>(values[at + i - 1]);
      least = std::min(least, static_cast<std::int64_t>(steps[i]));
    }
    append_varint(zigzag(least), out);
    std::array<unsigned, kMiniblocks> widths{};
    for (std::size_t i = 0; i < kBlock; ++i) {
      steps[i] = i < count ? steps[i] - static_cast<std::uint64_t>(least) : 0;
      widths[i / kMiniblock] = std::max(widths[i / kMiniblock], width_of(steps[i]));
    }
    for (const unsigned width : widths) out.push_back(static_cast<char>(width));
    for (std::size_t i = 0; i < count; i += kMiniblock) {
      BitPacker packer(out);
      for (std::size_t k = 0; k < kMiniblock; ++k) packer.put(steps[i + k], widths[i / kMiniblock]);
      packer.finish();
    }
  }
}

}  // namespace edgecase::columnar
