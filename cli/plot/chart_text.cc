#include <algorithm>
#include <cmath>

#include "output.h"
#include "plot/chart.h"
#include "plot/chart_picture.h"

namespace edgecase::cli {
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
