#include "plot/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include "output.h"

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

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
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

class SvgPicture final : public Picture {
 public:
  explicit SvgPicture(std::string& out) : out_(out) {}

  void title(double x, double y, std::string_view text) override {
    add_text("class=\"title\"", x, y, text);
  }
  void label(double x, double y, TextPlace place, std::string_view text) override {
    add_text(place == TextPlace::LeftOf ? "text-anchor=\"end\"" : "text-anchor=\"start\"", x, y,
             text);
  }
  void grid(const PictureLine& line) override {
    out_ += "<line x1=\"" + number(line.x0) + "\" y1=\"" + number(line.y0) + "\" x2=\"" +
            number(line.x1) + "\" y2=\"" + number(line.y1) + "\"/>\n";
  }
  void curve(const std::vector<PictureLine>& lines) override {
    out_ += "<path d=\"";
    for (const PictureLine& line : lines)
      out_ += "M" + number(line.x0) + " " + number(line.y0) + "L" + number(line.x1) + " " +
              number(line.y1);
    out_ += "\"/>\n";
  }

 private:
  void add_text(std::string_view how, double x, double y, std::string_view text) {
    out_.append("<text ").append(how);
    out_ += " x=\"" + number(x) + "\" y=\"" + number(y) + "\">" + xml_escaped(text) + "</text>\n";
  }

  std::string& out_;
};

}  // namespace

std::string charts_svg(const std::vector<Chart>& charts) {
  const std::string width = number(picture_width());
  const std::string height = number(picture_height(charts.size()));
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                    height + "\" viewBox=\"0 0 " + width + " " + height +
                    "\">\n"
                    "<style>\n"
                    "svg{background:#fff}\n"
                    "text{font:12px sans-serif;fill:#444}\n"
                    ".title{font-weight:bold;fill:#111}\n"
                    "line{stroke:#ddd}\n"
                    "path{fill:none;stroke:#1668a8;stroke-width:1.4;stroke-linecap:round}\n"
                    "</style>\n";
  SvgPicture picture(out);
  draw_charts(charts, picture);
  return out + "</svg>\n";
}

namespace {

constexpr std::size_t kLabelColumnsMax = 14;

struct Glyphs {
  std::size_t dots_across;  // of a character
  std::size_t dots_up;
  const char* axis;
  const char* corner;
  const char* floor;
};
constexpr Glyphs kBraille = {2, 4, "┤", "└", "─"};
constexpr Glyphs kAscii = {1, 1, "|", "+", "-"};

const Glyphs& glyphs_of(ChartGlyphs glyphs) {
  return glyphs == ChartGlyphs::Braille ? kBraille : kAscii;
}

// Dots in characters, the first row at the top.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, ChartGlyphs glyphs)
      : glyphs_(glyphs),
        columns_(columns),
        width_(columns * glyphs_of(glyphs).dots_across),
        height_(rows * glyphs_of(glyphs).dots_up),
        dots_(width_ * height_) {}

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }

  // Dots count from the bottom left.
  void column(std::size_t x, std::size_t from, std::size_t to) {
    for (std::size_t y = std::min(from, to); y <= std::max(from, to); ++y) {
      dots_[(height_ - 1 - y) * width_ + x] = true;
    }
  }
  void line(std::size_t x0, std::size_t y0, std::size_t x1, std::size_t y1) {
    std::size_t before = y0;
    for (std::size_t x = x0; x <= x1; ++x) {
      const double part = x1 == x0 ? 1 : static_cast<double>(x - x0) / static_cast<double>(x1 - x0);
      const double y =
          static_cast<double>(y0) + (static_cast<double>(y1) - static_cast<double>(y0)) * part;
      const auto now = static_cast<std::size_t>(std::lround(y));
      column(x, before, now);
      before = now;
    }
  }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column) text += character(column, row);
    return text;
  }

 private:
  bool dot(std::size_t x, std::size_t y) const { return dots_[y * width_ + x]; }

  std::string character(std::size_t column, std::size_t row) const {
    if (glyphs_ == ChartGlyphs::Ascii) return dot(column, row) ? "*" : " ";
    // The dots of Unicode's braille patterns, U+2800 on.
    constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned bits = 0;
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 2; ++x) {
        if (dot(column * 2 + x, row * 4 + y)) bits |= kBits[y][x];
      }
    }
    if (bits == 0) return " ";
    std::string utf8 = "\xE2";
    utf8 += static_cast<char>(0xA0 | bits >> 6);
    utf8 += static_cast<char>(0x80 | (bits & 0x3F));
    return utf8;
  }

  ChartGlyphs glyphs_;
  std::size_t columns_;
  std::size_t width_;
  std::size_t height_;
  std::vector<bool> dots_;
};

std::size_t place(double part, std::size_t dots) {
  return static_cast<std::size_t>(std::lround(part * static_cast<double>(dots - 1)));
}

void draw(const Chart& chart, const ChartScale& scale, Canvas& canvas) {
  const ChartPoint* before = nullptr;
  for (const ChartPoint& point : chart.points) {
    const std::size_t x = place(scale.across(point.time_ns), canvas.width());
    canvas.column(x, place(scale.up(point.low), canvas.height()),
                  place(scale.up(point.high), canvas.height()));
    if (before != nullptr && scale.joined(*before, point)) {
      const ChartJoint joint = scale.joint(*before, point);
      canvas.line(place(scale.across(before->time_ns), canvas.width()),
                  place(scale.up(joint.left), canvas.height()), x,
                  place(scale.up(joint.right), canvas.height()));
    }
    before = &point;
  }
}

std::string right_aligned(const std::string& text, std::size_t columns) {
  return std::string(columns - std::min(columns, text.size()), ' ') + text;
}

}  // namespace

std::size_t chart_dots(const ChartSize& size, ChartGlyphs glyphs) {
  return (size.columns - kLabelColumnsMax - 2) * glyphs_of(glyphs).dots_across;
}

std::string chart_text(const Chart& chart, const ChartSize& size, ChartGlyphs glyphs) {
  const ChartScale scale(chart);
  const Glyphs& marks = glyphs_of(glyphs);
  const std::string top = scale.label(scale.high());
  const std::string middle = scale.label(scale.middle());
  const std::string bottom = scale.label(scale.low());
  const std::size_t label_columns = std::max({top.size(), middle.size(), bottom.size()});
  const std::size_t columns = size.columns - label_columns - 2;
  Canvas canvas(columns, size.rows, glyphs);
  draw(chart, scale, canvas);

  std::string out = printable(chart.title) + "\n";
  for (std::size_t row = 0; row < size.rows; ++row) {
    std::string label;
    if (row == 0) label = top;
    if (row == (size.rows - 1) / 2 && size.rows % 2 == 1) label = middle;
    if (row == size.rows - 1) label = bottom;
    std::string line = right_aligned(label, label_columns) + " " + marks.axis + canvas.row(row);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  out += std::string(label_columns + 1, ' ') + marks.corner;
  for (std::size_t i = 0; i < columns; ++i) out += marks.floor;
  const std::string from = short_time(chart.from_ns, chart.zone.get());
  const std::string to = short_time(chart.to_ns, chart.zone.get());
  out += "\n" + std::string(label_columns + 2, ' ') + from;
  if (from.size() + 2 + to.size() <= columns) {
    out += std::string(columns - from.size() - to.size(), ' ') + to + "\n";
  } else {
    out += "\n" + right_aligned(to, size.columns) + "\n";
  }
  return out;
}

}  // namespace edgecase::cli
