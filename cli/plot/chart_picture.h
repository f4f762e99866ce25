// Charts of all kinds share this: scales and their ticks, and a picture's lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plot/chart.h"

namespace edgecase::cli {

// The ends of the line from one point to the next: where their spans are nearest.
struct ChartJoint {
  double left = 0;
  double right = 0;
};

// The scale that the terminal chart and the SVG share: where a value lies, which points are joined,
// how a number is labelled.
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

// Charts as pictures, below each other: what SVG and PNG have in common, which is where everything
// stands. Units are points of a screen on which the picture is shown at its own size.
enum class TextPlace : unsigned char { RightOf, LeftOf };  // the point that is given

struct PictureLine {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

// One kind of picture. Texts are printable, their y is that of the line they stand on.
class Picture {
 public:
  virtual ~Picture() = default;
  virtual void title(double x, double y, std::string_view text) = 0;
  virtual void label(double x, double y, TextPlace place, std::string_view text) = 0;
  virtual void grid(const PictureLine& line) = 0;
  virtual void curve(const std::vector<PictureLine>& lines) = 0;
};

double picture_width();
double picture_height(std::size_t charts);
void draw_charts(const std::vector<Chart>& charts, Picture& picture);

}  // namespace edgecase::cli
