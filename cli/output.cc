#include "output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr std::string_view kGap = "  ";

struct Decoded {
  char32_t character = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// The character at the front of `text`, which is not empty.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xc2 && first < 0xe0 ? 2
                                                            : 1;
  if (bytes == 1 || text.size() < bytes) return {};
  char32_t character = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    character = character << 6 | (byte(i) & 0x3fu);
  }
  return {character, bytes, true};
}

bool is_combining(char32_t c) {
  return (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x20d0 && c <= 0x20ff) ||
         (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xfe20 && c <= 0xfe2f);
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0x303e) ||
         (c >= 0x3041 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) ||
         (c >= 0xff00 && c <= 0xff60) || (c >= 0xffe0 && c <= 0xffe6) ||
         (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

// Characters that would move the cursor or change what is read (C0, C1, bidirectional controls).
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

void append_escaped_bytes(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    char text[16];
    std::snprintf(text, sizeof text, "\\x%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += text;
  }
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    if (!is_combining(decoded.character)) width += is_wide(decoded.character) ? 2u : 1u;
    text.remove_prefix(decoded.bytes);
  }
  return width;
}

namespace {

enum class Lines : unsigned char { Escaped, Kept };

std::string made_printable(std::string_view text, Lines lines) {
  std::string out;
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    const std::string_view bytes = text.substr(0, decoded.bytes);
    const bool is_layout =
        decoded.valid && (decoded.character == '\n' || decoded.character == '\t');
    if (is_layout && lines == Lines::Escaped) {
      out += decoded.character == '\n' ? "\\n" : "\\t";
    } else if (is_layout) {
      out += bytes;
    } else if (!decoded.valid || is_control(decoded.character)) {
      append_escaped_bytes(bytes, out);
    } else {
      out += bytes;
    }
    text.remove_prefix(decoded.bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return made_printable(text, Lines::Escaped);
}

std::string printable_lines(std::string_view text) {
  return made_printable(text, Lines::Kept);
}

std::string short_time(std::int64_t time_ns, const wire::TimeZone* zone) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t offset = zone == nullptr ? 0 : zone->offset_at(time_ns / kSecond);
  std::int64_t shown_ns = 0;
  // At either end of time a clock elsewhere shows what 64 bits do not hold: UTC then.
  const bool is_local =
      zone != nullptr && !__builtin_add_overflow(time_ns, offset * kSecond, &shown_ns);
  std::string text;
  wire::append_time(is_local ? shown_ns : time_ns, text);  // ends in ".000000000Z"
  const std::size_t point = text.rfind('.');
  if (point == std::string::npos) return text;
  std::string decimals = text.substr(point + 1, 9);
  while (decimals.size() >= 3 && decimals.ends_with("000")) decimals.resize(decimals.size() - 3);
  text.resize(point);
  if (!decimals.empty()) text += "." + decimals;
  if (!is_local) return text + "Z";
  // Whole minutes are all that RFC 3339 can say; offsets with seconds ended in 1972.
  char end[] = "+00:00";
  const std::int64_t minutes = std::abs(offset) / 60;
  std::snprintf(end, sizeof end, "%c%02d:%02d", offset < 0 ? '-' : '+',
                static_cast<int>(minutes / 60 % 100), static_cast<int>(minutes % 60));
  return text + end;
}

std::string age_text(std::int64_t age_ns) {
  struct Unit {
    std::int64_t ns;
    const char* name;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr Unit kUnits[] = {
      {86'400 * kSecond, "d"}, {3'600 * kSecond, "h"}, {60 * kSecond, "m"}, {kSecond, "s"}};
  if (age_ns < 0) return "in the future";
  for (const Unit& unit : kUnits) {
    if (age_ns >= unit.ns) return std::to_string(age_ns / unit.ns) + unit.name;
  }
  return std::to_string(age_ns / 1'000'000) + "ms";
}

std::string rate_text(double per_second) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, "/s"}, {60, "/m"}, {3'600, "/h"}, {86'400, "/d"}};
  if (!(per_second > 0) || !std::isfinite(per_second)) return "-";
  for (const Unit& unit : kUnits) {
    const double rate = per_second * unit.seconds;
    if (rate < 1 && unit.seconds < 86'400) continue;
    char text[64];
    std::snprintf(text, sizeof text, rate < 100 ? "%.3g%s" : "%.0f%s", rate, unit.name);
    return text;
  }
  return "-";
}

std::string count_text(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string count_of(std::uint64_t many, std::string_view one, std::string_view more) {
  std::string text = count_text(many) + " ";
  if (many == 1 || more.empty()) return text.append(one).append(many == 1 ? "" : "s");
  return text.append(more);
}

namespace {

// A column that is cut is no narrower: names of a device's sensors shall differ in what is left.
constexpr std::size_t kCutWidthMin = 16;

// A number with its unit, or a time: what is cut of it would be missed.
bool is_kept_whole(std::string_view cell) {
  constexpr std::size_t kLongest = 40;
  return !cell.empty() && cell.size() <= kLongest &&
         ((cell.front() >= '0' && cell.front() <= '9') || cell.front() == '-');
}

std::string cut_to(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  std::string cut;
  std::size_t used = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view character = rest.substr(0, decode(rest).bytes);
    used += display_width(character);
    if (used >= width) break;
    cut += character;
    rest.remove_prefix(character.size());
  }
  return cut + "~";
}

}  // namespace

Table::Table(std::vector<Column> columns, std::FILE* out, std::size_t columns_max)
    : columns_(std::move(columns)), columns_max_(columns_max), out_(out) {
  for (const Column& column : columns_) widths_.push_back(display_width(column.title));
  kept_widths_ = widths_;
}

Table::Table(std::vector<Column> columns, std::FILE* out)
    : Table(std::move(columns), out, is_terminal(out) ? terminal_columns() : 0) {}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = printable(cells[i]);
    const std::size_t width = display_width(cells[i]);
    widths_[i] = std::max(widths_[i], width);
    kept_widths_[i] =
        std::max(kept_widths_[i], is_kept_whole(cells[i]) ? width : std::min(width, kCutWidthMin));
  }
  waiting_.push_back(std::move(cells));
  ++rows_;
  if (waiting_.size() >= kRowsPerPart) flush();
}

// The widest column that may be cut gives first, down to the next one.
void Table::fit() {
  if (columns_max_ == 0) return;
  std::size_t total = kGap.size() * (widths_.size() - 1);
  for (const std::size_t width : widths_) total += width;
  while (total > columns_max_) {
    std::size_t widest = widths_.size(), next = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (widths_[i] <= kept_widths_[i]) continue;
      if (widest == widths_.size() || widths_[i] > widths_[widest]) {
        if (widest != widths_.size()) next = std::max(next, widths_[widest]);
        widest = i;
      } else {
        next = std::max(next, widths_[i]);
      }
    }
    if (widest == widths_.size()) return;
    std::size_t& width = widths_[widest];
    const std::size_t floor = std::max(kept_widths_[widest], next < width ? next : width - 1);
    const std::size_t given = std::min(total - columns_max_, width - floor);
    width -= given;
    total -= given;
  }
}

void Table::flush() {
  fit();
  if (!header_printed_ && rows_ > 0) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    print(titles);
    header_printed_ = true;
  }
  for (const std::vector<std::string>& cells : waiting_) print(cells);
  waiting_.clear();
}

void Table::print(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += kGap;
    const std::string cell = columns_max_ == 0 ? cells[i] : cut_to(cells[i], widths_[i]);
    const std::string fill(widths_[i] - std::min(widths_[i], display_width(cell)), ' ');
    line += columns_[i].align == Align::Right ? fill + cell : cell + fill;
  }
  line.resize(line.find_last_not_of(' ') + 1);
  line += '\n';
  write_out(out_, line);
}

namespace {

// The bytes at the end of `text` that begin a character and do not end it.
std::size_t cut_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t bytes = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return bytes > back ? back : 0;
  }
  return 0;
}

// What is remembered of stdout, the one stream that gets text in pieces.
struct Stdout {
  std::string cut;  // the begin of a character that the next call ends
  int error = 0;    // why writing failed first
};
Stdout& of_stdout() {
  static Stdout state;
  return state;
}

bool write_raw(std::FILE* out, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size()) return true;
  if (out == stdout && of_stdout().error == 0) of_stdout().error = errno;
  return false;
}

}  // namespace

bool is_text(std::string_view text) {
  for (int i = 0; i < 3 && !text.empty() && (static_cast<unsigned char>(text[0]) & 0xc0) == 0x80;
       ++i)
    text.remove_prefix(1);
  text.remove_suffix(cut_character(text));
  return printable_lines(text) == text;
}

bool write_out(std::FILE* out, std::string_view text) {
  if (!is_terminal(out)) return write_raw(out, text);
  if (out != stdout) return write_raw(out, printable_lines(text));
  std::string& cut = of_stdout().cut;
  std::string whole = std::exchange(cut, {}) + std::string(text);
  const std::size_t kept = cut_character(whole);
  cut = whole.substr(whole.size() - kept);
  whole.resize(whole.size() - kept);
  return write_raw(out, printable_lines(whole));
}

bool finish_out(std::FILE* out) {
  if (out == stdout) {
    const std::string cut = std::exchange(of_stdout().cut, {});
    if (!cut.empty()) static_cast<void>(write_raw(out, printable_lines(cut)));
  }
  if (std::fflush(out) == 0 && std::ferror(out) == 0) return true;
  if (out == stdout && of_stdout().error != 0) errno = of_stdout().error;
  return false;
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) != 0;
}

std::size_t terminal_columns() {
  constexpr long kColumnsMax = 1'000;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const long told = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
  return told > 0 ? static_cast<std::size_t>(std::min(told, kColumnsMax)) : 0;
}

std::size_t terminal_rows() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

void print_error(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(static_cast<std::size_t>(std::max(size, 0)) + 1, '\0');
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  text.pop_back();
  write_raw(stderr, printable_lines(text));
}

namespace {

constexpr std::chrono::milliseconds kDrawInterval{100};
constexpr std::size_t kBarWidth = 24;

}  // namespace

Progress::Progress(std::string what, std::uint64_t total, std::string unit)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      shown_(is_terminal(stderr)),
      started_(std::chrono::steady_clock::now()),
      last_drawn_(started_) {}

Progress::~Progress() {
  finish();
}

void Progress::add(std::uint64_t done, std::uint64_t bytes) {
  done_ += done;
  bytes_ += bytes;
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_drawn_ < kDrawInterval) return;
  last_drawn_ = now;
  draw();
}

void Progress::draw() {
  const std::chrono::duration<double> elapsed = last_drawn_ - started_;
  std::string line = what_ + " ";
  double share = share_;
  if (total_ > 0) share = static_cast<double>(done_) / static_cast<double>(total_);
  if (share >= 0) {
    share = std::min(share, 1.0);
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
    line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
            std::to_string(static_cast<int>(share * 100)) + "% ";
  }
  line += count_text(done_) + " " + unit_ + ", " + wire::format_size(bytes_) + ", " +
          rate_text(static_cast<double>(done_) / std::max(elapsed.count(), 1e-3));
  if (share >= 0) {
    const std::string left = time_left(share, elapsed.count());
    if (!left.empty()) line += ", " + left + " left";
  }
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  drawn_ = true;
}

std::string time_left(double share, double seconds_so_far) {
  constexpr double kFirstSeconds = 2, kShareMin = 0.005;
  constexpr double kLongest = 99 * 3600;
  if (seconds_so_far < kFirstSeconds || share < kShareMin) return "";
  const double left = std::min(seconds_so_far * (1 - share) / share, kLongest);
  const auto seconds = static_cast<int>(std::max(left, 0.0) + 0.5);
  char text[32];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%ds", seconds);
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%dm %02ds", seconds / 60, seconds % 60);
  } else {
    std::snprintf(text, sizeof text, "%dh %02dm", seconds / 3600, seconds / 60 % 60);
  }
  return text;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

bool confirmed(const std::string& what, bool yes, const std::string& word) {
  if (yes) return true;
  if (!is_terminal(stdin)) {
    print_error("edgecase: %s; nothing was done: --yes says that it is meant\n", what.c_str());
    return false;
  }
  print_error("%s. Type %s: ", printable(what).c_str(), printable(word).c_str());
  std::string typed;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    if (typed.size() <= word.size()) typed += static_cast<char>(c);
  }
  if (typed == word) return true;
  print_error("edgecase: nothing was done\n");
  return false;
}

}  // namespace edgecase::cli
