// A series as a picture: lines of characters for a terminal, SVG (chart.cc), or PNG (chart_png.cc).
//
// Each point is a span of time in which values lay between two bounds, so that no spike is lost
// when there are more readings than dots. Points that follow each other closely are joined; a gap
// stays a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "command_options.h"
#include "edgecase/status.h"

namespace edgecase::cli {

struct ChartPoint {
  std::int64_t time_ns = 0;
  double low = 0;
  double high = 0;
};

struct Chart {
  std::string title;
  std::int64_t from_ns = 0;        // the left edge
  std::int64_t to_ns = 0;          // the right edge; as the left one where there is but one time
  Zone zone;                       // of the times below it
  std::vector<ChartPoint> points;  // in order of time, within the edges; at least one
};

struct ChartSize {
  std::size_t columns = 80;  // kChartColumnsMin at least
  std::size_t rows = 12;     // of the drawing; title and times take two more
};
inline constexpr std::size_t kChartColumnsMin = 30;
inline constexpr std::size_t kChartRowsMin = 3;

// Braille has eight dots a character; ASCII is for terminals without UTF-8.
enum class ChartGlyphs : unsigned char { Braille, Ascii };

// How many points side by side a terminal chart of that width can show.
std::size_t chart_dots(const ChartSize& size, ChartGlyphs glyphs);
// Lines, each with its line feed.
std::string chart_text(const Chart& chart, const ChartSize& size, ChartGlyphs glyphs);

// How many points side by side a picture shows.
inline constexpr std::size_t kPictureDots = 800;
// One SVG document with the charts below each other; it needs nothing beside itself.
std::string charts_svg(const std::vector<Chart>& charts);
// The same as PNG, of twice as many dots each way, as screens have them. Busy: no memory for it.
Result<std::string> charts_png(const std::vector<Chart>& charts);

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
