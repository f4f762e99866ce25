#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plot/chart.h"

namespace edgecase::cli {
namespace {

// Dots of a point: screens have two and more.
constexpr int kScale = 2;
// What a letter's dot is across, in dots of the picture.
constexpr int kLabelDot = 2;
constexpr int kTitleDot = 3;
constexpr int kCurveDots = 3;

enum Ink : unsigned char { kPaper, kGrid, kText, kCurve };
constexpr unsigned kBitsPerDot = 2;
constexpr std::array<std::array<unsigned char, 3>, 4> kColours = {
    {{0xff, 0xff, 0xff}, {0xdd, 0xdd, 0xdd}, {0x33, 0x33, 0x33}, {0x16, 0x68, 0xa8}}};

// The letters from U+0020 to U+007E, and a box for any other: twelve side by side.
constexpr std::size_t kLettersAcross = 12;
constexpr int kLetterColumns = 5;
constexpr int kLetterRows = 7;
constexpr std::string_view kFont[] = {
    //   ! " # $ % & ' ( ) * +
    "..... ..#.. .#.#. .#.#. ..#.. ##..# .##.. ..#.. ...#. .#... ..... .....",
    "..... ..#.. .#.#. .#.#. .#### ##..# #..#. ..#.. ..#.. ..#.. ..#.. ..#..",
    "..... ..#.. .#.#. ##### #.#.. ...#. #.#.. ..#.. .#... ...#. #.#.# ..#..",
    "..... ..#.. ..... .#.#. .###. ..#.. .#... ..... .#... ...#. .###. #####",
    "..... ..#.. ..... ##### ..#.# .#... #.#.# ..... .#... ...#. #.#.# ..#..",
    "..... ..... ..... .#.#. ####. #..## #..#. ..... ..#.. ..#.. ..#.. ..#..",
    "..... ..#.. ..... .#.#. ..#.. #..## .##.# ..... ...#. .#... ..... .....",
    // , - . / 0 1 2 3 4 5 6 7
    "..... ..... ..... ....# .###. ..#.. .###. ##### ...#. ##### ..##. #####",
    "..... ..... ..... ....# #...# .##.. #...# ...#. ..##. #.... .#... ....#",
    "..... ..... ..... ...#. #..## ..#.. ....# ..#.. .#.#. ####. #.... ...#.",
    "..... ##### ..... ..#.. #.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#..",
    "..##. ..... ..... .#... ##..# ..#.. ..#.. ....# ##### ....# #...# .#...",
    "..#.. ..... .##.. #.... #...# ..#.. .#... #...# ...#. #...# #...# .#...",
    ".#... ..... .##.. #.... .###. .###. ##### .###. ...#. .###. .###. .#...",
    // 8 9 : ; < = > ? @ A B C
    ".###. .###. ..... ..... ...#. ..... .#... .###. .###. .###. ####. .###.",
    "#...# #...# .##.. .##.. ..#.. ..... ..#.. #...# #...# #...# #...# #...#",
    "#...# #...# .##.. .##.. .#... ##### ...#. ....# ....# #...# #...# #....",
    ".###. .#### ..... ..... #.... ..... ....# ...#. .##.# ##### ####. #....",
    "#...# ....# .##.. .##.. .#... ##### ...#. ..#.. #.#.# #...# #...# #....",
    "#...# ...#. .##.. ..#.. ..#.. ..... ..#.. ..... #.#.# #...# #...# #...#",
    ".###. .##.. ..... .#... ...#. ..... .#... ..#.. .###. #...# ####. .###.",
    // D E F G H I J K L M N O
    "###.. ##### ##### .###. #...# .###. ..### #...# #.... #...# #...# .###.",
    "#..#. #.... #.... #...# #...# ..#.. ...#. #..#. #.... ##.## #...# #...#",
    "#...# #.... #.... #.... #...# ..#.. ...#. #.#.. #.... #.#.# ##..# #...#",
    "#...# ####. ####. #.### ##### ..#.. ...#. ##... #.... #.#.# #.#.# #...#",
    "#...# #.... #.... #...# #...# ..#.. ...#. #.#.. #.... #...# #..## #...#",
    "#..#. #.... #.... #...# #...# ..#.. #..#. #..#. #.... #...# #...# #...#",
    "###.. ##### #.... .#### #...# .###. .##.. #...# ##### #...# #...# .###.",
    // P Q R S T U V W X Y Z [
    "####. .###. ####. .#### ##### #...# #...# #...# #...# #...# ##### .###.",
    "#...# #...# #...# #.... ..#.. #...# #...# #...# #...# #...# ....# .#...",
    "#...# #...# #...# #.... ..#.. #...# #...# #...# .#.#. .#.#. ...#. .#...",
    "####. #...# ####. .###. ..#.. #...# #...# #.#.# ..#.. ..#.. ..#.. .#...",
    "#.... #.#.# #.#.. ....# ..#.. #...# #...# #.#.# .#.#. ..#.. .#... .#...",
    "#.... #..#. #..#. ....# ..#.. #...# .#.#. #.#.# #...# ..#.. #.... .#...",
    "#.... .##.# #...# ####. ..#.. .###. ..#.. .#.#. #...# ..#.. ##### .###.",
    // \ ] ^ _ ` a b c d e f g
    "#.... .###. ..#.. ..... .#... ..... #.... ..... ....# ..... ..##. .....",
    "#.... ...#. .#.#. ..... ..#.. ..... #.... ..... ....# ..... .#..# .####",
    ".#... ...#. #...# ..... ...#. .###. ####. .#### .#### .###. .#... #...#",
    "..#.. ...#. ..... ..... ..... ....# #...# #.... #...# #...# ###.. #...#",
    "...#. ...#. ..... ..... ..... .#### #...# #.... #...# ##### .#... .####",
    "....# ...#. ..... ..... ..... #...# #...# #.... #...# #.... .#... ....#",
    "....# .###. ..... ##### ..... .#### ####. .#### .#### .###. .#... .###.",
    // h i j k l m n o p q r s
    "#.... ..#.. ...#. #.... .##.. ..... ..... ..... ..... ..... ..... .....",
    "#.... ..... ..... #.... ..#.. ..... ..... ..... ..... ..... ..... .....",
    "####. .##.. ..##. #..#. ..#.. ##.#. ####. .###. ####. .#### #.##. .####",
    "#...# ..#.. ...#. #.#.. ..#.. #.#.# #...# #...# #...# #...# ##..# #....",
    "#...# ..#.. ...#. ##... ..#.. #.#.# #...# #...# ####. .#### #.... .###.",
    "#...# ..#.. #..#. #.#.. ..#.. #...# #...# #...# #.... ....# #.... ....#",
    "#...# .###. .##.. #..#. .###. #...# #...# .###. #.... ....# #.... ####.",
    // t u v w x y z { | } ~ any other
    ".#... ..... ..... ..... ..... ..... ..... ...#. ..#.. .#... ..... #####",
    ".#... ..... ..... ..... ..... ..... ..... ..#.. ..#.. ..#.. ..... #...#",
    "###.. #...# #...# #...# #...# #...# ##### ..#.. ..#.. ..#.. .#..# #...#",
    ".#... #...# #...# #...# .#.#. #...# ...#. .#... ..#.. ...#. #.#.# #...#",
    ".#... #...# #...# #.#.# ..#.. .#### ..#.. ..#.. ..#.. ..#.. #..#. #...#",
    ".#..# #..## .#.#. #.#.# .#.#. ....# .#... ..#.. ..#.. ..#.. ..... #...#",
    "..##. .##.# ..#.. .#.#. #...# .###. ##### ...#. ..#.. .#... ..... #####",
};

bool letter_has(std::size_t letter, int column, int row) {
  const std::size_t line = letter / kLettersAcross * kLetterRows + static_cast<std::size_t>(row);
  const std::size_t at =
      letter % kLettersAcross * (kLetterColumns + 1) + static_cast<std::size_t>(column);
  return kFont[line][at] == '#';
}

// Which letters stand for a text; characters of several bytes are one.
std::vector<std::size_t> letters_of(std::string_view text) {
  constexpr unsigned char kFirst = ' ';
  constexpr unsigned char kBox = 0x7f;
  std::vector<std::size_t> letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0u) == 0x80u) continue;
    letters.push_back(byte >= kFirst && byte < kBox ? byte - kFirst : kBox - kFirst);
  }
  return letters;
}

int dots(double points) {
  return static_cast<int>(std::lround(points * kScale));
}

class PngPicture final : public Picture {
 public:
  explicit PngPicture(std::size_t charts)
      : width_(dots(picture_width())),
        height_(dots(picture_height(charts))),
        row_bytes_((static_cast<std::size_t>(width_) * kBitsPerDot + 7) / 8 + 1),
        rows_(row_bytes_ * static_cast<std::size_t>(height_)) {}

  void title(double x, double y, std::string_view text) override {
    write(dots(x), dots(y), kTitleDot, letters_of(text));
  }
  void label(double x, double y, TextPlace place, std::string_view text) override {
    const std::vector<std::size_t> letters = letters_of(text);
    const int across = static_cast<int>(letters.size()) * (kLetterColumns + 1) * kLabelDot;
    write(dots(x) - (place == TextPlace::LeftOf ? across : 0), dots(y), kLabelDot, letters);
  }
  void grid(const PictureLine& line) override { draw(line, kScale, kGrid); }
  void curve(const std::vector<PictureLine>& lines) override {
    for (const PictureLine& line : lines) draw(line, kCurveDots, kCurve);
  }

  Result<std::string> encode() const {
    std::string out = "\x89PNG\r\n\x1a\n";
    std::string head;
    append_number(static_cast<std::uint32_t>(width_), head);
    append_number(static_cast<std::uint32_t>(height_), head);
    constexpr char kPalette = 3;
    head += {static_cast<char>(kBitsPerDot), kPalette, 0, 0, 0};
    append_chunk("IHDR", head, out);
    std::string colours;
    for (const auto& colour : kColours)
      for (const unsigned char part : colour) colours += static_cast<char>(part);
    append_chunk("PLTE", colours, out);
    EC_ASSIGN_OR_RETURN(const std::string packed, pack());
    append_chunk("IDAT", packed, out);
    append_chunk("IEND", "", out);
    return out;
  }

 private:
  // What lies outside is cut off.
  void set(int x, int y, Ink ink) {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
    // A row begins with the number of its filter: none.
    const std::size_t bit = static_cast<std::size_t>(x) * kBitsPerDot;
    unsigned char& byte = rows_[static_cast<std::size_t>(y) * row_bytes_ + 1 + bit / 8];
    const auto shift = static_cast<unsigned>(8 - kBitsPerDot - bit % 8);
    byte =
        static_cast<unsigned char>((byte & ~(3u << shift)) | static_cast<unsigned>(ink) << shift);
  }
  void fill(int left, int top, int size, Ink ink) {
    for (int y = top; y < top + size; ++y)
      for (int x = left; x < left + size; ++x) set(x, y, ink);
  }
  void draw(const PictureLine& line, int thick, Ink ink) {
    const int x0 = dots(line.x0), y0 = dots(line.y0);
    const int across = dots(line.x1) - x0, down = dots(line.y1) - y0;
    const int steps = std::max({std::abs(across), std::abs(down), 1});
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      const int x = x0 + static_cast<int>(std::lround(part * across));
      const int y = y0 + static_cast<int>(std::lround(part * down));
      fill(x - thick / 2, y - thick / 2, thick, ink);
    }
  }
  void write(int x, int y, int dot, const std::vector<std::size_t>& letters) {
    const int top = y - kLetterRows * dot;
    for (std::size_t i = 0; i < letters.size() && x < width_; ++i) {
      for (int row = 0; row < kLetterRows; ++row)
        for (int column = 0; column < kLetterColumns; ++column)
          if (letter_has(letters[i], column, row))
            fill(x + column * dot, top + row * dot, dot, kText);
      x += (kLetterColumns + 1) * dot;
    }
  }

  static void append_number(std::uint32_t number, std::string& out) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
  }
  static void append_chunk(std::string_view kind, std::string_view bytes, std::string& out) {
    append_number(static_cast<std::uint32_t>(bytes.size()), out);
    const std::size_t begin = out.size();
    out.append(kind).append(bytes);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(out.data() + begin),
                           static_cast<uInt>(out.size() - begin));
    append_number(static_cast<std::uint32_t>(sum), out);
  }
  Result<std::string> pack() const {
    uLongf size = compressBound(static_cast<uLong>(rows_.size()));
    std::string packed(size, '\0');
    if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, rows_.data(),
                 static_cast<uLong>(rows_.size())) != Z_OK)
      return busy("no memory for the picture");
    packed.resize(size);
    return packed;
  }

  const int width_, height_;
  const std::size_t row_bytes_;
  std::vector<unsigned char> rows_;  // as PNG has them before they are packed
};

}  // namespace

Result<std::string> charts_png(const std::vector<Chart>& charts) {
  PngPicture picture(charts.size());
  draw_charts(charts, picture);
  return picture.encode();
}

}  // namespace edgecase::cli
