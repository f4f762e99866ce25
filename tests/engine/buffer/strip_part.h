// Strips of series with the memory that they lie in.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "buffer/memtable.h"

namespace edgecase::engine {

// A key of a series: what it begins with, then the ordinal, big-endian.
inline Bytes strip_key(ByteView series, std::uint64_t ordinal) {
  Bytes key(series);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
  return key;
}

inline Bytes tagged_number(std::int64_t value) {
  Bytes bytes(1, kIntegerTag);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// Strips with the memory that they lie in.
struct StripPart {
  Arena arena;
  SeriesStrips strips{arena};

  bool put(ByteView series, std::uint64_t ordinal, SequenceNumber sequence, ByteView value) {
    return strips.add({EntryKind::Put, 1, strip_key(series, ordinal), value, {}}, sequence);
  }
  bool put(ByteView series, std::uint64_t ordinal, SequenceNumber sequence) {
    return put(series, ordinal, sequence, tagged_number(static_cast<std::int64_t>(sequence)));
  }
  std::optional<FoundEntry> get(ByteView series, std::uint64_t ordinal,
                                SequenceNumber visible) const {
    return strips.get(make_full_key(1, strip_key(series, ordinal)), visible);
  }
};

inline constexpr ByteView kOneSeries = "series-a";
inline constexpr ByteView kOtherSeries = "series-b";
inline constexpr SequenceNumber kAllVisible = 1'000'000;

}  // namespace edgecase::engine
