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

// How many bytes append_filter() takes for `hashes` hashes.
std::size_t filter_bytes(std::size_t hashes, const FilterShape& shape);
void append_filter(Bytes& out, std::span<const std::uint64_t> hashes, const FilterShape& shape);

// Whether `hash` may have been added. An empty or senseless filter says yes.
bool filter_may_contain(ByteView filter, std::uint64_t hash);

}  // namespace edgecase::engine
