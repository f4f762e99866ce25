#include "value/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/coding.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

// Exact as doubles. A decimal written with at most 15 digits reads as the double nearest to it, and
// so does m / 10^k, a division of two exact numbers, rounded once.
constexpr double kPowersOfTen[kDecimalPlacesMax + 1] = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr double kExactIntegerMax = 9007199254740992.0;  // 2^53
// Columns with more exceptions than one in this many are not decimal.
constexpr std::size_t kExceptionShare = 8;
constexpr std::size_t kDictionaryMax = 256;
constexpr std::size_t kSamples = 8;

}  // namespace

std::optional<std::int64_t> as_decimal(std::uint64_t bits, unsigned places) {
  const double value = std::bit_cast<double>(bits);
  const double scaled = value * kPowersOfTen[places];
  if (!(std::fabs(scaled) <= kExactIntegerMax)) return std::nullopt;  // NaN and infinities too
  const auto m = static_cast<std::int64_t>(std::llrint(scaled));
  const double back = static_cast<double>(m) / kPowersOfTen[places];
  if (std::bit_cast<std::uint64_t>(back) != bits) return std::nullopt;
  return m;
}

std::uint64_t bits_of_decimal(std::int64_t m, unsigned places) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(m) / kPowersOfTen[places]);
}

namespace {

// The fewest decimal places that leave at most 1 in 16 an exception, or nothing.
std::optional<unsigned> choose_places(std::span<const std::uint64_t> bits) {
  std::array<std::size_t, kDecimalPlacesMax + 1> needing{};
  std::size_t exceptions = 0;
  unsigned likely = 0;  // neighbours mostly need the same
  for (const std::uint64_t b : bits) {
    unsigned places = likely;
    if (as_decimal(b, places)) {
      while (places > 0 && as_decimal(b, places - 1)) --places;
    } else {
      while (places <= kDecimalPlacesMax && !as_decimal(b, places)) ++places;
    }
    if (places > kDecimalPlacesMax) {
      if (++exceptions > bits.size() / kExceptionShare) return std::nullopt;
      continue;
    }
    ++needing[places];
    likely = std::max(likely, places);
  }
  // Walk down from the most: drop the rare ones that need more places than all others.
  std::size_t dropped = 0;
  unsigned places = kDecimalPlacesMax;
  while (places > 0 && dropped + needing[places] <= bits.size() / (2 * kExceptionShare))
    dropped += needing[places--];
  return places;
}

struct DecimalColumn {
  unsigned places = 0;
  std::vector<std::uint64_t> scaled;
  std::vector<std::size_t> exceptions;
};

// What as_decimals() answers, for columns without exceptions that are known by a few of their
// values: each is divided once, not three times. Empty if it is not such a column.
std::optional<DecimalColumn> as_plain_decimals(std::span<const std::uint64_t> bits) {
  DecimalColumn column;
  for (std::size_t i = 0; i < bits.size(); i += bits.size() / kSamples + 1) {
    while (column.places <= kDecimalPlacesMax && !as_decimal(bits[i], column.places)) {
      ++column.places;
    }
    if (column.places > kDecimalPlacesMax) return std::nullopt;
  }
  column.scaled.resize(bits.size());
  // Counts doubles that need the last place: if they are few, fewer places are better.
  const std::size_t needing_min = bits.size() / (2 * kExceptionShare) + 1;
  std::size_t needing = column.places == 0 ? needing_min : 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto m = as_decimal(bits[i], column.places);
    if (!m) return std::nullopt;
    column.scaled[i] = static_cast<std::uint64_t>(*m);
    if (needing < needing_min && *m % 10 != 0) ++needing;
  }
  if (needing < needing_min) return std::nullopt;
  return column;
}

std::optional<DecimalColumn> as_decimals(std::span<const std::uint64_t> bits) {
  if (auto plain = as_plain_decimals(bits)) return plain;
  const auto places = choose_places(bits);
  if (!places) return std::nullopt;
  DecimalColumn column;
  column.places = *places;
  column.scaled.reserve(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (const auto m = as_decimal(bits[i], *places)) {
      column.scaled.push_back(static_cast<std::uint64_t>(*m));
      continue;
    }
    column.exceptions.push_back(i);
    column.scaled.push_back(column.scaled.empty() ? 0 : column.scaled.back());
    if (column.exceptions.size() > bits.size() / kExceptionShare) return std::nullopt;
  }
  return column;
}

void append_decimals(Bytes& out, std::span<const std::uint64_t> bits, const DecimalColumn& column) {
  out.push_back(static_cast<char>(kDoublesDecimal));
  out.push_back(static_cast<char>(column.places));
  append_varint64(out, column.exceptions.size());
  std::size_t previous = 0;
  for (const std::size_t index : column.exceptions) {
    append_varint64(out, index - previous);
    append_fixed64(out, bits[index]);
    previous = index;
  }
  append_integers(out, column.scaled);
}

void append_planes(Bytes& out, std::span<const std::uint64_t> bits) {
  out.push_back(static_cast<char>(kDoublesPlanes));
  std::vector<std::uint64_t> plane(bits.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    std::uint64_t previous = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      plane[i] = ((bits[i] ^ previous) >> shift) & 0xff;
      previous = bits[i];
    }
    append_integers(out, plane);
  }
}

// False, and nothing appended, when there are too many distinct values for it to pay.
bool append_dictionary(Bytes& out, std::span<const std::uint64_t> bits) {
  const std::size_t distinct_max = std::min(kDictionaryMax, bits.size() / 2);
  // On the stack: most columns are short, and memory that is given back is wiped.
  std::array<std::uint64_t, kDictionaryMax> distinct{};
  std::size_t count = 0;
  // Where a double is found: its number among them, from 1, in the first free place from that of
  // its hash on. Whoever sends doubles whose hashes meet costs kDictionaryMax steps for each.
  constexpr unsigned kPlaceBits = 10;
  static_assert(2 * kDictionaryMax <= std::size_t{1} << kPlaceBits);
  std::array<std::uint16_t, std::size_t{1} << kPlaceBits> places{};
  std::vector<std::uint64_t> indexes;
  indexes.reserve(bits.size());
  for (const std::uint64_t b : bits) {
    std::size_t at = b * 0x9e3779b97f4a7c15 >> (64 - kPlaceBits);
    while (places[at] != 0 && distinct[places[at] - 1u] != b) at = (at + 1) % places.size();
    if (places[at] == 0) {
      if (count == distinct_max) return false;
      distinct[count++] = b;
      places[at] = static_cast<std::uint16_t>(count);
    }
    indexes.push_back(places[at] - 1u);
  }
  out.push_back(static_cast<char>(kDoublesDictionary));
  append_varint64(out, count);
  for (std::size_t i = 0; i < count; ++i) append_fixed64(out, distinct[i]);
  append_integers(out, indexes);
  return true;
}

void append_raw(Bytes& out, std::span<const std::uint64_t> bits) {
  out.push_back(static_cast<char>(kDoublesRaw));
  for (const std::uint64_t b : bits) append_fixed64(out, b);
}

bool take_raw(ByteView& input, std::span<std::uint64_t> bits) {
  ByteView bytes;
  if (!take_bytes(input, 8 * bits.size(), bytes)) return false;
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = decode_fixed64(bytes.data() + 8 * i);
  return true;
}

bool take_decimals(ByteView& input, std::span<std::uint64_t> bits) {
  if (input.empty()) return false;
  const unsigned places = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  if (places > kDecimalPlacesMax) return false;
  std::uint64_t exceptions = 0;
  if (!take_varint64(input, exceptions) || exceptions > bits.size()) return false;
  struct Exception {
    std::size_t index;
    std::uint64_t bits;
  };
  std::vector<Exception> found(exceptions);
  std::uint64_t index = 0;
  for (Exception& e : found) {
    std::uint64_t step = 0;
    if (!take_varint64(input, step) || step >= bits.size() - index) return false;
    index += step;
    e.index = index;
    if (!take_fixed64(input, e.bits)) return false;
  }
  if (!take_integers(input, bits)) return false;
  const double divisor = kPowersOfTen[places];
  for (std::uint64_t& b : bits)
    b = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(b)) / divisor);
  for (const Exception& e : found) bits[e.index] = e.bits;
  return true;
}

bool take_planes(ByteView& input, std::span<std::uint64_t> bits) {
  std::vector<std::uint64_t> plane(bits.size());
  std::fill(bits.begin(), bits.end(), 0);
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (!take_integers(input, plane)) return false;
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= (plane[i] & 0xff) << shift;
  }
  for (std::size_t i = 1; i < bits.size(); ++i) bits[i] ^= bits[i - 1];
  return true;
}

bool take_dictionary(ByteView& input, std::span<std::uint64_t> bits) {
  std::uint64_t distinct = 0;
  ByteView table;
  if (!take_varint64(input, distinct) || distinct > bits.size()) return false;
  if (!take_bytes(input, 8 * distinct, table)) return false;
  if (!take_integers(input, bits)) return false;
  for (std::uint64_t& b : bits) {
    if (b >= distinct) return false;
    b = decode_fixed64(table.data() + 8 * b);
  }
  return true;
}

}  // namespace

void append_doubles(Bytes& out, std::span<const std::uint64_t> bits) {
  if (bits.empty()) return;
  const std::size_t raw_bytes = 1 + 8 * bits.size();
  const std::size_t begin = out.size();
  Bytes best;
  if (const auto decimals = as_decimals(bits)) {
    append_decimals(out, bits, *decimals);
    const std::size_t size = out.size() - begin;
    // A decimal column of a byte or so a value is not worth more search.
    if (std::min(size, raw_bytes) <= 2 * bits.size() + 16) {
      if (size < raw_bytes) return;
      out.resize(begin);
      append_raw(out, bits);
      return;
    }
    best.assign(out, begin, size);
    out.resize(begin);
  }
  if (best.empty() || best.size() >= raw_bytes) {
    best.clear();
    append_raw(best, bits);
  }
  const auto consider = [&best](Bytes candidate) {
    if (candidate.size() < best.size()) best = std::move(candidate);
  };
  Bytes planes;
  append_planes(planes, bits);
  consider(std::move(planes));
  Bytes dictionary;
  if (append_dictionary(dictionary, bits)) consider(std::move(dictionary));
  out.append(best);
}

bool take_doubles(ByteView& input, std::span<std::uint64_t> bits) {
  if (bits.empty()) return true;
  if (input.empty()) return false;
  const auto encoding = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  switch (encoding) {
    case kDoublesRaw: return take_raw(input, bits);
    case kDoublesDecimal: return take_decimals(input, bits);
    case kDoublesPlanes: return take_planes(input, bits);
    case kDoublesDictionary: return take_dictionary(input, bits);
    default: return false;
  }
}

}  // namespace edgecase::engine
