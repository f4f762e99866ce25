#include "plot/chart_picture.h"

#include <string>

#include "output.h"
#include "plot/chart_scale.h"

namespace edgecase::cli {
namespace {

constexpr double kLeft = 90;
constexpr double kTop = 34;
constexpr double kWidth = kPictureDots;
constexpr double kHeight = 180;
constexpr double kChartHeight = kTop + kHeight + 40;
constexpr double kRight = 20;

void draw_chart(const Chart& chart, double top, Picture& picture) {
  const ChartScale scale(chart);
  const double floor = top + kTop + kHeight;
  const auto x_of = [&](const ChartPoint& point) {
    return kLeft + scale.across(point.time_ns) * kWidth;
  };
  const auto y_of = [&](double value) { return floor - scale.up(value) * kHeight; };

  picture.title(kLeft, top + kTop - 14, printable(chart.title));
  for (const double value : {scale.low(), scale.middle(), scale.high()}) {
    picture.grid({kLeft, y_of(value), kLeft + kWidth, y_of(value)});
    picture.label(kLeft - 8, y_of(value) + 4, TextPlace::LeftOf, scale.label(value));
  }
  picture.label(kLeft, floor + 18, TextPlace::RightOf, short_time(chart.from_ns, chart.zone.get()));
  picture.label(kLeft + kWidth, floor + 18, TextPlace::LeftOf,
                short_time(chart.to_ns, chart.zone.get()));

  // Each point is a stroke from low to high.
  std::vector<PictureLine> lines;
  const ChartPoint* before = nullptr;
  for (const ChartPoint& point : chart.points) {
    if (before != nullptr && scale.joined(*before, point)) {
      const ChartJoint joint = scale.joint(*before, point);
      lines.push_back({x_of(*before), y_of(joint.left), x_of(point), y_of(joint.right)});
    }
    lines.push_back({x_of(point), y_of(point.low), x_of(point), y_of(point.high)});
    before = &point;
  }
  picture.curve(lines);
}

}  // namespace

double picture_width() {
  return kLeft + kWidth + kRight;
}

double picture_height(std::size_t charts) {
  return kChartHeight * static_cast<double>(charts);
}

void draw_charts(const std::vector<Chart>& charts, Picture& picture) {
  for (std::size_t i = 0; i < charts.size(); ++i) draw_chart(charts[i], picture_height(i), picture);
}

}  // namespace edgecase::cli
