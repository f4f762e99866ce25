#include "value/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/coding.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

using Numbers = std::span<const std::uint64_t>;

std::size_t quick_varint_bytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

unsigned packed_width(std::uint64_t all_bits) {
  const auto width = static_cast<unsigned>(std::bit_width(all_bits));
  return width > kPackedWidthMax ? 64 : width;
}

std::size_t packed_bytes(std::size_t count, unsigned width) {
  return (count * width + 7) / 8;
}

struct Plan {
  unsigned char transform = kTransformDifferences;
  unsigned char layout = kLayoutVarints;
  std::uint64_t base = 0;
  std::size_t bytes = 0;  // of the whole block
};

std::size_t varints_bytes(Numbers numbers) {
  std::size_t bytes = 0;
  for (const std::uint64_t n : numbers) bytes += quick_varint_bytes(n);
  return bytes;
}

std::size_t runs_bytes(Numbers numbers) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    bytes += quick_varint_bytes(numbers[i]) + quick_varint_bytes(end - i);
    i = end;
  }
  return bytes;
}

// The cheapest layout of `numbers`, base and first byte not counted.
Plan plan_layout(Numbers numbers) {
  if (numbers.empty()) return {0, kLayoutConstant, 0, 0};
  std::size_t varints = 0;
  std::size_t packed = 0;
  std::size_t changes = 0;
  for (std::size_t start = 0; start < numbers.size(); start += kPackedBlock) {
    const Numbers block =
        numbers.subspan(start, std::min<std::size_t>(kPackedBlock, numbers.size() - start));
    std::uint64_t all_bits = 0;
    for (const std::uint64_t n : block) all_bits |= n;
    for (std::size_t i = 1; i < block.size(); ++i) changes += block[i] != block[i - 1] ? 1u : 0u;
    if (start > 0) changes += numbers[start] != numbers[start - 1] ? 1u : 0u;
    packed += 1 + packed_bytes(block.size(), packed_width(all_bits));
    varints += all_bits < 0x80 ? block.size() : varints_bytes(block);
  }
  if (changes == 0) return {0, kLayoutConstant, 0, quick_varint_bytes(numbers.front())};
  Plan plan;
  plan.layout = kLayoutPacked;
  plan.bytes = packed;
  // Where it is a draw, what decodes faster wins.
  if (varints < plan.bytes) plan = {0, kLayoutVarints, 0, varints};
  if (2 * (changes + 1) < plan.bytes) {
    const std::size_t runs = runs_bytes(numbers);
    if (runs < plan.bytes) plan = {0, kLayoutRuns, 0, runs};
  }
  return plan;
}

// Both transforms of a column; `best` picks one of the two lists.
struct Transformed {
  std::unique_ptr<std::uint64_t[]> memory;
  Numbers differences;  // one fewer than values
  Numbers offsets;
  Plan best;

  Numbers numbers() const {
    return best.transform == kTransformDifferences ? differences : offsets;
  }
};

Transformed transform(Numbers values) {
  Transformed result;
  result.memory = std::make_unique_for_overwrite<std::uint64_t[]>(2 * values.size());
  std::uint64_t* const differences = result.memory.get();
  std::uint64_t* const offsets = differences + values.size();
  std::int64_t smallest = static_cast<std::int64_t>(values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    differences[i - 1] = zigzag(static_cast<std::int64_t>(values[i] - values[i - 1]));
    smallest = std::min(smallest, static_cast<std::int64_t>(values[i]));
  }
  const auto base = static_cast<std::uint64_t>(smallest);
  for (std::size_t i = 0; i < values.size(); ++i) offsets[i] = values[i] - base;
  result.differences = Numbers(differences, values.size() - 1);
  result.offsets = Numbers(offsets, values.size());

  Plan by_differences = plan_layout(result.differences);
  by_differences.transform = kTransformDifferences;
  by_differences.base = values[0];
  Plan by_offsets = plan_layout(result.offsets);
  by_offsets.transform = kTransformOffsets;
  by_offsets.base = base;
  for (Plan* plan : {&by_differences, &by_offsets})
    plan->bytes += 1 + quick_varint_bytes(zigzag(static_cast<std::int64_t>(plan->base)));
  result.best = by_offsets.bytes < by_differences.bytes ? by_offsets : by_differences;
  return result;
}

void append_packed(Bytes& out, Numbers numbers) {
  for (std::size_t start = 0; start < numbers.size(); start += kPackedBlock) {
    const Numbers block =
        numbers.subspan(start, std::min<std::size_t>(kPackedBlock, numbers.size() - start));
    std::uint64_t all_bits = 0;
    for (const std::uint64_t n : block) all_bits |= n;
    const unsigned width = packed_width(all_bits);
    out.push_back(static_cast<char>(width));
    if (width == 64) {
      for (const std::uint64_t n : block) append_fixed64(out, n);
      continue;
    }
    // At most 7 bits wait in `held` before 56 more come.
    char bytes[kPackedBlock * sizeof(std::uint64_t)];
    char* end = bytes;
    std::uint64_t held = 0;
    unsigned held_bits = 0;
    for (const std::uint64_t n : block) {
      held |= n << held_bits;
      held_bits += width;
      for (; held_bits >= 8; held_bits -= 8, held >>= 8) *end++ = static_cast<char>(held);
    }
    if (held_bits > 0) *end++ = static_cast<char>(held);
    out.append(bytes, static_cast<std::size_t>(end - bytes));
  }
}

void append_layout(Bytes& out, unsigned char layout, Numbers numbers) {
  switch (layout) {
    case kLayoutConstant:
      if (!numbers.empty()) append_varint64(out, numbers.front());
      return;
    case kLayoutRuns:
      for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
        append_varint64(out, numbers[i]);
        append_varint64(out, end - i);
        i = end;
      }
      return;
    case kLayoutVarints:
      for (const std::uint64_t n : numbers) append_varint64(out, n);
      return;
    default: append_packed(out, numbers); return;
  }
}

void unpack(const char* from, unsigned width, std::span<std::uint64_t> block) {
  if (width == 64) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = decode_fixed64(from + 8 * i);
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  std::size_t bit = 0;
  for (std::uint64_t& n : block) {
    n = (decode_fixed64(from + bit / 8) >> (bit % 8)) & mask;
    bit += width;
  }
}

bool take_packed(ByteView& input, std::span<std::uint64_t> numbers) {
  for (std::size_t start = 0; start < numbers.size(); start += kPackedBlock) {
    const auto block =
        numbers.subspan(start, std::min<std::size_t>(kPackedBlock, numbers.size() - start));
    if (input.empty()) return false;
    const unsigned width = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    if (width > kPackedWidthMax && width != 64) return false;
    ByteView bytes;
    if (!take_bytes(input, packed_bytes(block.size(), width), bytes)) return false;
    if (input.size() >= 8) {
      unpack(bytes.data(), width, block);
    } else {
      // unpack() loads 8 bytes at a time, up to 7 behind the last one it needs.
      char padded[kPackedBlock * 8 + 8] = {};
      std::memcpy(padded, bytes.data(), bytes.size());
      unpack(padded, width, block);
    }
  }
  return true;
}

bool take_layout(ByteView& input, unsigned char layout, std::span<std::uint64_t> numbers) {
  std::uint64_t number = 0;
  switch (layout) {
    case kLayoutConstant:
      if (!numbers.empty() && !take_varint64(input, number)) return false;
      std::fill(numbers.begin(), numbers.end(), number);
      return true;
    case kLayoutRuns:
      for (std::size_t i = 0; i < numbers.size();) {
        std::uint64_t count = 0;
        if (!take_varint64(input, number) || !take_varint64(input, count)) return false;
        if (count == 0 || count > numbers.size() - i) return false;
        std::fill_n(numbers.begin() + static_cast<std::ptrdiff_t>(i), count, number);
        i += count;
      }
      return true;
    case kLayoutVarints:
      for (std::uint64_t& n : numbers)
        if (!take_varint64(input, n)) return false;
      return true;
    case kLayoutPacked: return take_packed(input, numbers);
    default: return false;
  }
}

}  // namespace

void append_integers(Bytes& out, std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  const Transformed column = transform(values);
  out.push_back(static_cast<char>(column.best.transform << 4 | column.best.layout));
  append_varint64(out, zigzag(static_cast<std::int64_t>(column.best.base)));
  append_layout(out, column.best.layout, column.numbers());
}

std::size_t integers_bytes(std::span<const std::uint64_t> values) {
  return values.empty() ? 0 : transform(values).best.bytes;
}

bool take_integers(ByteView& input, std::span<std::uint64_t> values) {
  if (values.empty()) return true;
  if (input.empty()) return false;
  const auto first_byte = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  std::uint64_t encoded_base = 0;
  if (!take_varint64(input, encoded_base)) return false;
  std::uint64_t base = static_cast<std::uint64_t>(unzigzag(encoded_base));
  const auto layout = static_cast<unsigned char>(first_byte & 15);
  switch (first_byte >> 4) {
    case kTransformDifferences: {
      const auto differences = values.subspan(1);
      if (!take_layout(input, layout, differences)) return false;
      values[0] = base;
      for (std::uint64_t& value : differences) {
        base += static_cast<std::uint64_t>(unzigzag(value));
        value = base;
      }
      return true;
    }
    case kTransformOffsets:
      if (!take_layout(input, layout, values)) return false;
      for (std::uint64_t& value : values) value += base;
      return true;
    default: return false;
  }
}

std::optional<std::uint64_t> take_one_integer(ByteView& input, std::size_t count) {
  ByteView rest = input;
  if (count < 2 || rest.empty()) return std::nullopt;
  const auto first_byte = static_cast<unsigned char>(rest.front());
  rest.remove_prefix(1);
  const auto transform = first_byte >> 4;
  std::uint64_t base = 0, number = 0;
  if ((first_byte & 15) != kLayoutConstant || transform > kTransformOffsets ||
      !take_varint64(rest, base) || !take_varint64(rest, number))
    return std::nullopt;
  if (transform == kTransformDifferences && number != 0) return std::nullopt;
  input = rest;
  return static_cast<std::uint64_t>(unzigzag(base)) + number;
}

}  // namespace edgecase::engine
