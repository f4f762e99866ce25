// The scale that the terminal chart and the SVG share: where a value lies, which points are joined,
// how a number is labelled.
#pragma once

#include <string>

#include "plot/chart.h"

namespace edgecase::cli {

// The ends of the line from one point to the next: where their spans are nearest.
struct ChartJoint {
  double left = 0;
  double right = 0;
};

class ChartScale {
 public:
  explicit ChartScale(const Chart& chart);

  double low() const { return low_; }
  double high() const { return high_; }
  double middle() const { return low_ / 2 + high_ / 2; }
  // 0 at the left edge or the bottom, 1 at the right edge or the top; one time is in the middle.
  double across(std::int64_t time_ns) const;
  double up(double value) const;
  // Whether the line goes on from one point to the next.
  bool joined(const ChartPoint& left, const ChartPoint& right) const;
  ChartJoint joint(const ChartPoint& left, const ChartPoint& right) const;
  // As many digits as tell the three labels apart.
  std::string label(double value) const;

 private:
  const Chart& chart_;
  double low_ = 0;
  double high_ = 0;
  double join_ns_ = 0;
};

}  // namespace edgecase::cli
