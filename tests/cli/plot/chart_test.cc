#include "plot/chart.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "output.h"

namespace edgecase::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Chart chart_of(std::vector<double> values) {
  Chart chart;
  chart.title = "kitchen/temp";
  for (std::size_t i = 0; i < values.size(); ++i) {
    chart.points.push_back({static_cast<std::int64_t>(i) * kSecond, values[i], values[i]});
  }
  chart.to_ns = chart.points.back().time_ns;
  return chart;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  CHECK(lines.back().empty());
  lines.pop_back();
  return lines;
}

std::size_t stars(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '*'));
}

TEST_CASE("a chart shows the way of its values") {
  std::vector<double> rising;
  for (int i = 0; i < 5; ++i) rising.push_back(i);
  const auto lines = lines_of(chart_text(chart_of(rising), {30, 5}, ChartGlyphs::Ascii));
  REQUIRE(lines.size() == 9);  // the two times do not fit beside each other
  CHECK(lines[0] == "kitchen/temp");
  CHECK(lines[1].starts_with("4 |"));
  CHECK(lines[1].ends_with("*"));
  CHECK(lines[1].size() == 30);
  CHECK(lines[3].starts_with("2 |"));
  CHECK(lines[5].starts_with("0 |*"));
  CHECK(lines[6] == "  +---------------------------");
  CHECK(lines[7] == "   1970-01-01T00:00:00Z");
  CHECK(lines[8].ends_with("1970-01-01T00:00:04Z"));
}

TEST_CASE("a spike between many values stays visible, and a gap stays a gap") {
  Chart spike = chart_of(std::vector<double>(10, 1.0));
  spike.points[5].high = 9;
  const auto lines = lines_of(chart_text(spike, {60, 4}, ChartGlyphs::Ascii));
  for (std::size_t row = 1; row <= 3; ++row) CHECK(stars(lines[row]) == 1);
  CHECK(stars(lines[4]) > 40);

  Chart gap = chart_of(std::vector<double>(20, 1.0));
  gap.points.erase(gap.points.begin() + 5, gap.points.begin() + 15);
  const std::string whole =
      chart_text(chart_of(std::vector<double>(20, 1.0)), {60, 3}, ChartGlyphs::Ascii);
  const std::string broken = chart_text(gap, {60, 3}, ChartGlyphs::Ascii);
  CHECK(stars(whole) > stars(broken) + 20);
}

TEST_CASE("extreme values and constants are drawn inside the frame") {
  constexpr double kMax = std::numeric_limits<double>::max();
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  for (const std::vector<double>& values : {std::vector<double>{0},
                                            {21.5, 21.5},
                                            {-kMax, kMax},
                                            {kMax},
                                            {0, kTiny},
                                            {-3, -3},
                                            {1e9, 1e9 + 0.001},
                                            {1e-300, 2e-300}}) {
    for (const ChartGlyphs glyphs : {ChartGlyphs::Ascii, ChartGlyphs::Braille}) {
      const ChartSize size{kChartColumnsMin, kChartRowsMin};
      const auto lines = lines_of(chart_text(chart_of(values), size, glyphs));
      for (std::size_t row = 1; row <= size.rows + 1; ++row) {
        CHECK(display_width(lines[row]) <= size.columns);
      }
    }
    CHECK(charts_svg({chart_of(values)}).find("nan") == std::string::npos);
  }
}

TEST_CASE("one reading, and neighbours of today, are drawn where they belong") {
  constexpr std::int64_t kToday = 1'795'000'000'000'000'001;
  Chart one = chart_of({21.5});
  one.from_ns = one.to_ns = one.points[0].time_ns = kToday;
  const auto lines = lines_of(chart_text(one, {30, 3}, ChartGlyphs::Ascii));
  CHECK(lines[2].starts_with(" 21.5 |"));
  CHECK(stars(lines[2]) == 1);
  CHECK(lines[2].size() == 19);  // in the middle
  CHECK(charts_svg({one}).find("nan") == std::string::npos);

  Chart two = chart_of({1, 2});
  two.from_ns = two.points[0].time_ns = kToday;
  two.to_ns = two.points[1].time_ns = kToday + 1;
  const auto both = lines_of(chart_text(two, {30, 3}, ChartGlyphs::Ascii));
  CHECK(both[3].starts_with("  1 |*"));
  CHECK(both[1].ends_with("*"));
  CHECK(both[1].size() == 30);

  Chart all = chart_of({1, 2});
  all.from_ns = all.points[0].time_ns = std::numeric_limits<std::int64_t>::min();
  all.to_ns = all.points[1].time_ns = std::numeric_limits<std::int64_t>::max();
  CHECK(lines_of(chart_text(all, {30, 3}, ChartGlyphs::Ascii))[1].size() == 30);
}

TEST_CASE("braille is as wide as it says") {
  const ChartSize size{80, 6};
  std::vector<double> zigzag;
  for (int i = 0; i < 500; ++i) zigzag.push_back(i % 7);
  const auto lines = lines_of(chart_text(chart_of(zigzag), size, ChartGlyphs::Braille));
  REQUIRE(lines.size() == 9);
  for (std::size_t row = 1; row <= 7; ++row) CHECK(display_width(lines[row]) == 80);
  CHECK(chart_dots(size, ChartGlyphs::Braille) == 2 * chart_dots(size, ChartGlyphs::Ascii));
}

TEST_CASE("names cannot break out of the SVG") {
  Chart chart = chart_of({1, 2, 3});
  chart.title = "<script>\"&\x1b]0;";
  const std::string svg = charts_svg({chart, chart});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(svg.find("&lt;script&gt;&quot;&amp;") != std::string::npos);
}

// The dots of a PNG as charts_png() makes it: an index of its four colours each, by rows.
struct Dots {
  std::size_t width = 0, height = 0;
  std::vector<unsigned> colours;

  std::size_t count(unsigned colour) const {
    return static_cast<std::size_t>(std::count(colours.begin(), colours.end(), colour));
  }
};

std::size_t number_at(std::string_view bytes, std::size_t at) {
  std::size_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

Dots dots_of(const std::string& png) {
  Dots dots;
  REQUIRE(png.starts_with("\x89PNG\r\n\x1a\n"));
  std::string kinds, packed;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t size = number_at(png, at);
    const std::string kind = png.substr(at + 4, 4);
    const std::string bytes = png.substr(at + 8, size);
    const void* const summed = png.data() + at + 4;
    CHECK(crc32(0, static_cast<const Bytef*>(summed), static_cast<uInt>(size + 4)) ==
          number_at(png, at + 8 + size));
    kinds += kind + " ";
    if (kind == "IHDR") {
      dots.width = number_at(bytes, 0);
      dots.height = number_at(bytes, 4);
    }
    if (kind == "IDAT") packed += bytes;
    at += size + 12;
  }
  CHECK(kinds == "IHDR PLTE IDAT IEND ");
  const std::size_t row_bytes = 1 + (dots.width * 2 + 7) / 8;
  std::vector<unsigned char> rows(row_bytes * dots.height);
  uLongf size = rows.size();
  const void* const bytes = packed.data();
  REQUIRE(uncompress(rows.data(), &size, static_cast<const Bytef*>(bytes), packed.size()) == Z_OK);
  REQUIRE(size == rows.size());
  for (std::size_t y = 0; y < dots.height; ++y) {
    CHECK(rows[y * row_bytes] == 0);
    for (std::size_t x = 0; x < dots.width; ++x)
      dots.colours.push_back(rows[y * row_bytes + 1 + x / 4] >> (6 - x % 4 * 2) & 3u);
  }
  return dots;
}

TEST_CASE("a PNG shows grid, texts and the curve of each chart") {
  const auto one = charts_png({chart_of({1, 5, 2})});
  REQUIRE(one.ok());
  const Dots dots = dots_of(*one);
  CHECK(dots.width == 1'820);
  CHECK(dots.height == 508);
  for (const unsigned colour : {0u, 1u, 2u, 3u}) CHECK(dots.count(colour) > 500);
  const auto three = charts_png(std::vector<Chart>(3, chart_of({1, 5, 2})));
  REQUIRE(three.ok());
  CHECK(dots_of(*three).height == 3 * dots.height);
  CHECK(dots_of(*three).count(3) == 3 * dots.count(3));
}

TEST_CASE("a PNG takes any title and any value") {
  constexpr double kMax = std::numeric_limits<double>::max();
  for (const std::string& title :
       {std::string(), std::string(5'000, 'W'), std::string("K\xc3\xbc\x63he \xe6\xb8\xa9\x1b")}) {
    Chart chart = chart_of({-kMax, kMax, 0});
    chart.title = title;
    const auto png = charts_png({chart});
    REQUIRE(png.ok());
    CHECK(dots_of(*png).count(3) > 0);
  }
}

}  // namespace
}  // namespace edgecase::cli
