// The middle of some measurements; of an even number the lower of the two.
#pragma once

#include <algorithm>
#include <vector>

namespace edgecase::cli::bench {

// 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

}  // namespace edgecase::cli::bench
