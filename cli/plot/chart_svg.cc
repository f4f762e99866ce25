#include <cstdio>
#include <string_view>

#include "plot/chart.h"
#include "plot/chart_picture.h"

namespace edgecase::cli {
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

}  // namespace edgecase::cli
