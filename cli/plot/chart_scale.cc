#include "plot/chart_scale.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace edgecase::cli {
namespace {

// Neighbours further apart than this many usual distances are not joined.
constexpr double kGapDistances = 3;
constexpr double kTiny = 1e-290;

// Not of doubles: today's nanoseconds are too large for these to tell neighbours apart.
double distance_ns(std::int64_t from_ns, std::int64_t to_ns) {
  if (to_ns < from_ns) return -distance_ns(to_ns, from_ns);
  return static_cast<double>(static_cast<std::uint64_t>(to_ns) -
                             static_cast<std::uint64_t>(from_ns));
}

}  // namespace

ChartScale::ChartScale(const Chart& chart) : chart_(chart) {
  low_ = chart.points.front().low;
  high_ = chart.points.front().high;
  std::vector<double> distances;
  for (std::size_t i = 0; i < chart.points.size(); ++i) {
    low_ = std::min(low_, chart.points[i].low);
    high_ = std::max(high_, chart.points[i].high);
    if (i > 0) {
      distances.push_back(distance_ns(chart.points[i - 1].time_ns, chart.points[i].time_ns));
    }
  }
  // A constant lies in the middle; so does what differs by less than can be divided.
  if (!(high_ / 2 - low_ / 2 > 0)) {
    const double largest = std::max(std::fabs(low_), std::fabs(high_));
    const double room = largest < kTiny ? 1 : largest / 10;
    low_ = std::max(low_ - room, std::numeric_limits<double>::lowest());
    high_ = std::min(high_ + room, std::numeric_limits<double>::max());
  }
  if (distances.empty()) return;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  join_ns_ = *middle * kGapDistances;
}

double ChartScale::across(std::int64_t time_ns) const {
  const double width = distance_ns(chart_.from_ns, chart_.to_ns);
  if (!(width > 0)) return 0.5;
  return std::clamp(distance_ns(chart_.from_ns, time_ns) / width, 0.0, 1.0);
}

double ChartScale::up(double value) const {
  // Halves, because the difference of two doubles may be none.
  return std::clamp((value / 2 - low_ / 2) / (high_ / 2 - low_ / 2), 0.0, 1.0);
}

bool ChartScale::joined(const ChartPoint& left, const ChartPoint& right) const {
  return distance_ns(left.time_ns, right.time_ns) <= join_ns_;
}

ChartJoint ChartScale::joint(const ChartPoint& left, const ChartPoint& right) const {
  const double from = std::clamp(right.low / 2 + right.high / 2, left.low, left.high);
  return {from, std::clamp(from, right.low, right.high)};
}

std::string ChartScale::label(double value) const {
  char text[32];
  int digits = 4;
  const double span = high_ / 2 - low_ / 2;
  const double largest = std::max(std::fabs(low_), std::fabs(high_)) / 2;
  if (span > 0 && largest > span) {
    digits += static_cast<int>(std::ceil(std::log10(largest / span)));
  }
  std::snprintf(text, sizeof text, "%.*g", std::min(digits, 17), value);
  return text;
}

}  // namespace edgecase::cli
