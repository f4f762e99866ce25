// Extremes are the least and the greatest number of a window, with their times: of a line that is
// drawn through all readings they are what shows. WindowCursor keeps them. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "wire/reading.h"

namespace edgecase::query {

struct TimedValue {
  std::int64_t time_ns = 0;
  wire::Value value;  // no text, no bytes
};

// Numbers and bools, compared as min and max compare them; of equal ones the earlier one met
// counts.
class Extremes {
 public:
  void clear() { count_ = 0; }
  // Text and bytes are passed over.
  void add(std::int64_t time_ns, const wire::Value& value);
  void add(const wire::Numbers& numbers);
  // In the order in which they were met: none, one where all are equal, or two.
  std::span<const TimedValue> result();

 private:
  // Two of `count` values, and which of them they are.
  struct Met {
    TimedValue least, greatest;
    std::uint64_t least_at = 0, greatest_at = 0, count = 0;
  };
  void take(const Met& met);

  std::uint64_t count_ = 0;
  TimedValue least_, greatest_;
  std::uint64_t least_at_ = 0, greatest_at_ = 0;  // as which they were met
  TimedValue result_[2];
};

}  // namespace edgecase::query
