// Numbers are readings of one series side by side: times and values of one type, float64 or int64,
// as a scan has them at hand. Borrowed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/reading.h"

namespace edgecase::wire {

struct Numbers {
  std::span<const std::int64_t> times_ns;  // in the order of the scan
  std::span<const std::uint64_t> bits;     // of the values; as many
  bool is_float = true;

  std::size_t size() const { return times_ns.size(); }
  bool empty() const { return times_ns.empty(); }
  Numbers first(std::size_t count) const {
    return {times_ns.first(count), bits.first(count), is_float};
  }
  Numbers from(std::size_t begin) const {
    return {times_ns.subspan(begin), bits.subspan(begin), is_float};
  }
  double float64(std::size_t i) const { return std::bit_cast<double>(bits[i]); }
  std::int64_t int64(std::size_t i) const { return static_cast<std::int64_t>(bits[i]); }
  Value value(std::size_t i) const {
    return is_float ? Value::of_float64(float64(i)) : Value::of_int64(int64(i));
  }

  // How many from the first on lie within [first_ns, last_ns]; the first one does. Takes few steps
  // where they are few.
  std::size_t count_within(std::int64_t first_ns, std::int64_t last_ns) const {
    const auto is_within = [=](std::int64_t time_ns) {
      return time_ns >= first_ns && time_ns <= last_ns;
    };
    std::size_t known = 1, step = 4;
    while (known + step <= size() && is_within(times_ns[known + step - 1])) {
      known += step;
      step *= 2;
    }
    const auto rest = times_ns.subspan(known, std::min(step, size() - known));
    return known + static_cast<std::size_t>(
                       std::partition_point(rest.begin(), rest.end(), is_within) - rest.begin());
  }
};

}  // namespace edgecase::wire
