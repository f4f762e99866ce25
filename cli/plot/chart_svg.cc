#include <cstdio>
#include <string_view>

#include "output.h"
#include "plot/chart.h"
#include "plot/chart_scale.h"

namespace edgecase::cli {
namespace {

// In the units of the drawing: points of a screen when it is shown at its own size.
constexpr double kLeft = 90;
constexpr double kTop = 34;
constexpr double kWidth = kSvgDots;
constexpr double kHeight = 180;
constexpr double kChartHeight = kTop + kHeight + 40;
constexpr double kRight = 20;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + xml_escaped(text) + "</text>\n";
}

std::string line_at(double x0, double y0, double x1, double y1) {
  return "<line x1=\"" + number(x0) + "\" y1=\"" + number(y0) + "\" x2=\"" + number(x1) +
         "\" y2=\"" + number(y1) + "\"/>\n";
}

std::string chart_at(const Chart& chart, double top) {
  const ChartScale scale(chart);
  const double floor = top + kTop + kHeight;
  std::string out = "<g class=\"grid\">\n";
  std::string labels = "<text class=\"title\" x=\"" + number(kLeft) + "\" y=\"" +
                       number(top + kTop - 14) + "\">" + xml_escaped(chart.title) + "</text>\n";
  for (const double value : {scale.low(), scale.middle(), scale.high()}) {
    const double y = floor - scale.up(value) * kHeight;
    out += line_at(kLeft, y, kLeft + kWidth, y);
    labels += text_at(kLeft - 8, y + 4, "end", scale.label(value));
  }
  out += "</g>\n" + labels;
  out += text_at(kLeft, floor + 18, "start", short_time(chart.from_ns, chart.zone.get()));
  out += text_at(kLeft + kWidth, floor + 18, "end", short_time(chart.to_ns, chart.zone.get()));

  // Each point is a stroke from low to high.
  const auto at = [&](const ChartPoint& point, double value) {
    return number(kLeft + scale.across(point.time_ns) * kWidth) + " " +
           number(floor - scale.up(value) * kHeight);
  };
  std::string path;
  const ChartPoint* before = nullptr;
  for (const ChartPoint& point : chart.points) {
    if (before != nullptr && scale.joined(*before, point)) {
      const ChartJoint joint = scale.joint(*before, point);
      path += "M" + at(*before, joint.left) + "L" + at(point, joint.right);
    }
    path += "M" + at(point, point.low) + "L" + at(point, point.high);
    before = &point;
  }
  return out + "<path d=\"" + path + "\"/>\n";
}

}  // namespace

std::string charts_svg(const std::vector<Chart>& charts) {
  const std::string width = number(kLeft + kWidth + kRight);
  const std::string height = number(kChartHeight * static_cast<double>(charts.size()));
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                    height + "\" viewBox=\"0 0 " + width + " " + height +
                    "\">\n"
                    "<style>\n"
                    "svg{background:#fff}\n"
                    "text{font:12px sans-serif;fill:#444}\n"
                    ".title{font-weight:bold;fill:#111}\n"
                    ".grid line{stroke:#ddd}\n"
                    "path{fill:none;stroke:#1668a8;stroke-width:1.4;stroke-linecap:round}\n"
                    "</style>\n";
  double top = 0;
  for (const Chart& chart : charts) {
    out += chart_at(chart, top);
    top += kChartHeight;
  }
  return out + "</svg>\n";
}

}  // namespace edgecase::cli
