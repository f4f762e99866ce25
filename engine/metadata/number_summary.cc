#include "metadata/number_summary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "base/coding.h"
#include "edgecase/engine.h"

namespace edgecase::engine {
namespace {

constexpr unsigned char kFormIntegers = 0;
constexpr unsigned char kFormDoubles = 1;
constexpr unsigned char kFormDecimal = 2;  // + decimal places
constexpr unsigned char kFormMask = 63;
constexpr unsigned char kLowPart = 64;
constexpr std::array<double, 16> kPowersOfTen = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr double kExactIntegerMax = 9007199254740992.0;  // 2^53
// One sum after another would wait for each addition; these do not.
constexpr std::size_t kSums = 4;

// min, max, first, last: as they are written.
using FourNumbers = std::array<std::uint64_t, 4>;

double as_double(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}
std::int64_t as_int64(std::uint64_t bits) {
  return static_cast<std::int64_t>(bits);
}

struct DoubleSum {
  double high = 0;
  double low = 0;

  // What rounding loses is kept beside it (Knuth's TwoSum: no branch, any order of size).
  void add(double number) {
    const double next = high + number;
    const double of_number = next - high;
    low += (high - (next - of_number)) + (number - of_number);
    high = next;
  }
  void add(const DoubleSum& other) {
    add(other.high);
    low += other.low;
  }
  void normalize() {
    const double rest = low;
    low = 0;
    add(rest);
  }
};

struct DoubleFacts {
  double min = 0;
  double max = 0;
  DoubleSum sum;
};

std::optional<DoubleFacts> facts_of_doubles(std::span<const std::uint64_t> numbers) {
  std::array<DoubleSum, kSums> sums;
  double min = as_double(numbers.front());
  double max = min;
  bool has_zero = false;
  bool has_negative_zero = false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double number = as_double(numbers[i]);
    min = number < min ? number : min;
    max = number > max ? number : max;
    has_zero |= numbers[i] == 0;
    has_negative_zero |= numbers[i] == std::uint64_t{1} << 63;
    sums[i % kSums].add(number);
  }
  DoubleSum sum = sums[0];
  for (std::size_t i = 1; i < kSums; ++i) sum.add(sums[i]);
  sum.normalize();
  // What is not finite makes the low part none.
  if (!std::isfinite(sum.high) || !std::isfinite(sum.low) || (has_zero && has_negative_zero))
    return std::nullopt;
  return DoubleFacts{min, max, sum};
}

// The m with m / 10^places == the double, bit for bit, for all of them.
bool take_decimals(const FourNumbers& doubles, std::size_t places, FourNumbers& decimals) {
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    const double scaled = as_double(doubles[i]) * kPowersOfTen[places];
    if (!(std::fabs(scaled) <= kExactIntegerMax)) return false;
    const auto m = static_cast<std::int64_t>(std::llrint(scaled));
    const double back = static_cast<double>(m) / kPowersOfTen[places];
    if (std::bit_cast<std::uint64_t>(back) != doubles[i]) return false;
    decimals[i] = static_cast<std::uint64_t>(m);
  }
  return true;
}

void append_integers(Bytes& out, const FourNumbers& four) {
  append_varint64(out, zigzag(as_int64(four[0])));
  for (std::size_t i = 1; i < four.size(); ++i) append_varint64(out, four[i] - four[0]);
}

bool take_integers(ByteView& input, FourNumbers& four) {
  std::uint64_t min = 0;
  if (!take_varint64(input, min)) return false;
  four[0] = static_cast<std::uint64_t>(unzigzag(min));
  for (std::size_t i = 1; i < four.size(); ++i) {
    if (!take_varint64(input, four[i])) return false;
    four[i] += four[0];
  }
  return true;
}

void append_of_integers(Bytes& out, std::span<const std::uint64_t> numbers) {
  std::int64_t min = as_int64(numbers.front());
  std::int64_t max = min;
  std::int64_t sum = 0;
  for (const std::uint64_t bits : numbers) {
    const std::int64_t number = as_int64(bits);
    min = std::min(min, number);
    max = std::max(max, number);
    if (__builtin_add_overflow(sum, number, &sum)) return;
  }
  out.push_back(static_cast<char>(kFormIntegers));
  append_integers(out, {static_cast<std::uint64_t>(min), static_cast<std::uint64_t>(max),
                        numbers.front(), numbers.back()});
  append_varint64(out, zigzag(sum));
}

void append_of_doubles(Bytes& out, std::span<const std::uint64_t> numbers) {
  const auto facts = facts_of_doubles(numbers);
  if (!facts) return;
  const FourNumbers four = {std::bit_cast<std::uint64_t>(facts->min),
                            std::bit_cast<std::uint64_t>(facts->max), numbers.front(),
                            numbers.back()};
  FourNumbers decimals{};
  std::size_t places = 0;
  while (places < kPowersOfTen.size() && !take_decimals(four, places, decimals)) ++places;
  const bool is_decimal = places < kPowersOfTen.size();
  const bool has_low = facts->sum.low != 0;
  out.push_back(static_cast<char>((is_decimal ? kFormDecimal + places : kFormDoubles) |
                                  (has_low ? kLowPart : 0)));
  if (is_decimal) {
    append_integers(out, decimals);
  } else {
    for (const std::uint64_t bits : four) append_fixed64(out, bits);
  }
  append_fixed64(out, std::bit_cast<std::uint64_t>(facts->sum.high));
  if (has_low) append_fixed64(out, std::bit_cast<std::uint64_t>(facts->sum.low));
}

bool take_doubles(ByteView& input, unsigned form, FourNumbers& four) {
  if (form == kFormDoubles) {
    return std::all_of(four.begin(), four.end(),
                       [&](std::uint64_t& bits) { return take_fixed64(input, bits); });
  }
  const std::size_t places = form - kFormDecimal;
  if (places >= kPowersOfTen.size() || !take_integers(input, four)) return false;
  for (std::uint64_t& bits : four)
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(as_int64(bits)) / kPowersOfTen[places]);
  return true;
}

template <typename Number>
bool is_in_order(const FourNumbers& four, const Number& number) {
  return number(four[0]) <= number(four[1]) &&
         std::all_of(four.begin() + 2, four.end(), [&](std::uint64_t bits) {
           return number(four[0]) <= number(bits) && number(bits) <= number(four[1]);
         });
}

}  // namespace

void append_number_summary(Bytes& out, NumberType type, std::span<const std::uint64_t> numbers) {
  if (numbers.size() < kSummaryEntriesMin) return;
  if (type == NumberType::Integer) {
    append_of_integers(out, numbers);
  } else {
    append_of_doubles(out, numbers);
  }
}

bool parse_number_summary(ByteView bytes, NumberSummary& summary) {
  if (bytes.empty() || bytes.size() > kNumberSummaryMaxBytes) return false;
  const auto flags = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  const unsigned form = flags & kFormMask;
  const bool has_low = (flags & kLowPart) != 0;
  if ((flags & ~(kFormMask | kLowPart)) != 0) return false;
  FourNumbers four{};
  summary.sum_low = 0;
  if (form == kFormIntegers) {
    std::uint64_t sum = 0;
    if (has_low || !take_integers(bytes, four) || !is_in_order(four, as_int64) ||
        !take_varint64(bytes, sum))
      return false;
    summary.type = NumberType::Integer;
    summary.sum = static_cast<std::uint64_t>(unzigzag(sum));
  } else {
    std::uint64_t low = 0;
    if (!take_doubles(bytes, form, four) || !is_in_order(four, as_double) ||
        !take_fixed64(bytes, summary.sum) || (has_low && !take_fixed64(bytes, low)) ||
        !std::isfinite(as_double(summary.sum)) || !std::isfinite(as_double(low)))
      return false;
    summary.type = NumberType::Float;
    summary.sum_low = as_double(low);
  }
  summary.min = four[0];
  summary.max = four[1];
  summary.first = four[2];
  summary.last = four[3];
  return bytes.empty();
}

bool is_same_summary(const NumberSummary& a, const NumberSummary& b) {
  if (a.type != b.type || a.min != b.min || a.max != b.max || a.first != b.first ||
      a.last != b.last)
    return false;
  if (a.type == NumberType::Integer) return a.sum == b.sum;
  // Both may be off by the bound, which is taken from the largest magnitude there is.
  const double n = static_cast<double>(std::max(a.count, b.count));
  const double largest = std::max(std::fabs(as_double(a.min)), std::fabs(as_double(a.max)));
  const double off = (as_double(a.sum) - as_double(b.sum)) + (a.sum_low - b.sum_low);
  const double per_number = n * 0x1p-52;
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  return std::fabs(off) <= 2 * per_number * per_number * (n * largest) + kSmallest;
}

void NumberGathering::clear() {
  fits_ = true;
  tag_ = 0;
  prefix_.clear();
  numbers_.clear();
}

void NumberGathering::add(const EntryView& entry) {
  constexpr std::size_t kOrdinalBytes = sizeof(std::uint64_t);
  constexpr std::size_t kNumberBytes = 1 + sizeof(std::uint64_t);
  if (!fits_) return;
  fits_ = entry.kind == EntryKind::Put && entry.value.size() == kNumberBytes &&
          entry.full_key.size() >= kNamespacePrefixBytes + kOrdinalBytes &&
          (entry.value.front() == kFloatTag || entry.value.front() == kIntegerTag);
  if (!fits_) return;
  const ByteView prefix = entry.full_key.substr(0, entry.full_key.size() - kOrdinalBytes);
  if (numbers_.empty()) {
    tag_ = entry.value.front();
    prefix_.assign(prefix);
  }
  fits_ = tag_ == entry.value.front() && prefix == ByteView(prefix_);
  numbers_.push_back(decode_fixed64(entry.value.data() + 1));
}

void NumberGathering::append_to(Bytes& out) const {
  if (!fits_ || numbers_.empty()) return;
  append_number_summary(out, tag_ == kIntegerTag ? NumberType::Integer : NumberType::Float,
                        numbers_);
}

}  // namespace edgecase::engine
