// Charts as pictures, below each other: what SVG and PNG have in common, which is where everything
// stands. Units are points of a screen on which the picture is shown at its own size.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "plot/chart.h"

namespace edgecase::cli {

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
