// A series as a picture: lines of characters for a terminal, SVG, or PNG.
//
// Each point is a span of time in which values lay between two bounds, so that no spike is lost
// when there are more readings than dots. Points that follow each other closely are joined; a gap
// stays a gap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "edgecase/status.h"
#include "time_arguments.h"

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

}  // namespace edgecase::cli
