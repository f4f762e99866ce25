// Summaries of numbers: what a metadata record knows of those in its series group, so that
// questions for their count, bounds, sum and ends need no value. Written by flushes, merges and
// repairs; read by TableCursor and by `check`. Stateless but for NumberGathering, which one thread
// owns.
//
// There is one only where every entry is a number of one series, all are doubles or all are
// integers, and none is deleted. Groups of fewer than kSummaryEntriesMin have none: it would take
// more than it saves. Nor has one whose sum does not fit, that holds what is not finite, or that
// holds zeros of both signs, which are equal: who reads values in another order would meet another
// one first.
//
//   1 byte: form: 0 integers; 1 doubles; 2 + k: doubles that are m / 10^k, k at most 15
//                 + 64 when the sum has a low part
//   min, max, first and last:
//     integers and m   zigzag varint: min; varints: max, first and last less min
//     doubles          8 bytes each
//   sum:
//     integers         zigzag varint, exact
//     doubles          8 bytes: high part; with + 64 8 bytes: low part
//
// The count is the record's, the ordinals of first and last are those of its keys. m / 10^k is
// rounded once, as in a doubles block (value/value_format.h).
//
// The sum of n doubles is high + low, unrounded. It is at most (n * 2^-52)^2 * S off the exact one,
// S being the sum of their magnitudes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/entry.h"
#include "edgecase/iterator.h"

namespace edgecase::engine {

inline constexpr std::size_t kSummaryEntriesMin = 16;
inline constexpr std::size_t kNumberSummaryMaxBytes = 64;

// Appends the summary of numbers as they lie in values behind their tag; nothing where there is
// none.
void append_number_summary(Bytes& out, NumberType type, std::span<const std::uint64_t> numbers);
// All but count and ordinals. False when it is malformed.
[[nodiscard]] bool parse_number_summary(ByteView bytes, NumberSummary& summary);
// Whether two summaries of one group tell the same, the sum within its bound.
bool is_same_summary(const NumberSummary& a, const NumberSummary& b);

// Gathers the entries of one group, in their order.
class NumberGathering {
 public:
  void clear();
  void add(const EntryView& entry);
  // Appends the summary; nothing where there is none.
  void append_to(Bytes& out) const;

 private:
  bool fits_ = true;
  char tag_ = 0;
  Bytes prefix_;  // of the full keys
  std::vector<std::uint64_t> numbers_;
};

}  // namespace edgecase::engine
