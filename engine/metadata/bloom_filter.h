// A filter of hashes: what was added is always found, what was not once in a hundred times or so,
// or in seven hundred where it is fine. All bits of a hash lie in one line of at most 64
// bytes, so that asking costs a cache miss or two. Lines are as long as the number of keys asks
// for: whole ones of 64 bytes would be a quarter empty in a filter of a hundred keys.
//
//   1 byte: probes; 0: everything may be in it. Then the bits: lines of equal size, as few as there
//   can be of at most 64 bytes (bytes that are left over are not used). low, high: halves of the
//   hash. Line: low * lines >> 32. Probe i looks at bit place * (bits of a line) >> 32 of it, bits
//   of a byte counted from the lowest, where place is high + i * step modulo 2^32 and step is (hash
//   >> 16) modulo 2^32, made odd.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "edgecase/bytes.h"

namespace edgecase::engine {

struct FilterShape {
  std::size_t bits_per_key;
  unsigned probes;
};
inline constexpr FilterShape kUsualFilter{10, 6};
inline constexpr FilterShape kFineFilter{16, 7};
inline constexpr unsigned kFilterProbesMax = 30;
inline constexpr std::size_t kFilterLineMaxBytes = 64;

namespace bloom_inside {

inline std::size_t line_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kFilterLineMaxBytes - 1) / kFilterLineMaxBytes);
}

// Calls `visit(bit)` for every probe until it answers false; whether all answered true. `bytes` is
// the size of the bits.
template <typename Visit>
bool for_each_probe(std::uint64_t hash, unsigned probes, std::size_t bytes, Visit visit) {
  const std::size_t lines = line_count(bytes);
  const std::size_t line_bytes = bytes / lines;
  const std::uint64_t start = (static_cast<std::uint32_t>(hash) * lines >> 32) * line_bytes;
  auto place = static_cast<std::uint32_t>(hash >> 32);
  const std::uint32_t step = static_cast<std::uint32_t>(hash >> 16) | 1;
  for (unsigned i = 0; i < probes; ++i, place += step)
    if (!visit(static_cast<std::size_t>(start * 8 + (place * (8 * line_bytes) >> 32))))
      return false;
  return true;
}

}  // namespace bloom_inside

// How many bytes append_filter() takes for `hashes` hashes.
inline std::size_t filter_bytes(std::size_t hashes, const FilterShape& shape) {
  if (hashes == 0) return 1;
  const std::size_t bytes = std::max<std::size_t>(8, (hashes * shape.bits_per_key + 7) / 8);
  const std::size_t lines = bloom_inside::line_count(bytes);
  return 1 + (bytes + lines - 1) / lines * lines;
}

inline void append_filter(Bytes& out, std::span<const std::uint64_t> hashes,
                          const FilterShape& shape) {
  if (hashes.empty()) {
    out.push_back(0);
    return;
  }
  out.push_back(static_cast<char>(shape.probes));
  const std::size_t start = out.size();
  const std::size_t bytes = filter_bytes(hashes.size(), shape) - 1;
  out.append(bytes, '\0');
  for (const std::uint64_t hash : hashes)
    bloom_inside::for_each_probe(hash, shape.probes, bytes, [&](std::size_t bit) {
      char& byte = out[start + bit / 8];
      byte = static_cast<char>(static_cast<unsigned char>(byte) | 1u << bit % 8);
      return true;
    });
}

// Whether `hash` may have been added. An empty or senseless filter says yes.
inline bool filter_may_contain(ByteView filter, std::uint64_t hash) {
  if (filter.size() < 2) return true;
  const unsigned probes = static_cast<unsigned char>(filter.front());
  if (probes == 0 || probes > kFilterProbesMax) return true;
  filter.remove_prefix(1);
  return bloom_inside::for_each_probe(hash, probes, filter.size(), [filter](std::size_t bit) {
    return (static_cast<unsigned char>(filter[bit / 8]) >> bit % 8 & 1) != 0;
  });
}

}  // namespace edgecase::engine
