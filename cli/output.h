// Prints for people: tables, and numbers, sizes and times inside them; how far long work is; and
// the question before a command destroys.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace edgecase::wire {
class TimeZone;
}

namespace edgecase::cli {

// Columns that `text` takes on a terminal: wide characters count two, combining ones none.
std::size_t display_width(std::string_view text);
// Safe to show: control characters as \n, \t, \x1b; bytes that are no UTF-8 as \xff.
std::string printable(std::string_view text);
// The same of text that has lines: line ends stay, a tab too.
std::string printable_lines(std::string_view text);
// Whether that changes nothing of it. A character that is cut at either end is taken for whole.
bool is_text(std::string_view text);

// "2026-11-20T14:00:00Z": as many decimals (0, 3, 6, 9) as the time has. With a zone what its
// clocks show: "2026-11-20T15:00:00+01:00".
std::string short_time(std::int64_t time_ns, const wire::TimeZone* zone = nullptr);
// "3s", "5m", "2h", "4d": the largest unit alone.
std::string age_text(std::int64_t age_ns);
std::string rate_text(double per_second);     // "1.25/s", "3/h"
std::string count_text(std::uint64_t count);  // "1,234,567"
// "1 reading", "2 readings"; `more`: where another form than with an s is meant.
std::string count_of(std::uint64_t many, std::string_view one, std::string_view more = {});

enum class Align : unsigned char { Left, Right };

// Rows in aligned columns. Widths are found from the rows waiting, so long tables are printed in
// parts: flush() prints what waits, with the header before the first part; columns never get
// narrower from part to part. Rows have as many cells as there are columns. On a terminal a table
// is no wider than that: names and texts are cut and end in ~; numbers and times never are.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::Left;
  };
  static constexpr std::size_t kRowsPerPart = 1000;

  // `columns_max`: of the terminal; 0: as wide as it gets.
  Table(std::vector<Column> columns, std::FILE* out, std::size_t columns_max);
  Table(std::vector<Column> columns, std::FILE* out);
  // Cells are made printable. Flushes when kRowsPerPart rows wait.
  void row(std::vector<std::string> cells);
  void flush();
  std::uint64_t rows() const { return rows_; }

 private:
  void fit();
  void print(const std::vector<std::string>& cells);

  const std::vector<Column> columns_;
  const std::size_t columns_max_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> kept_widths_;  // below which numbers, times or the title would be cut
  std::vector<std::vector<std::string>> waiting_;
  std::FILE* out_;
  std::uint64_t rows_ = 0;
  bool header_printed_ = false;
};

inline std::string or_dash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

// Writes all of `text`, to a terminal printable_lines() of it: values, names and what a file says
// of itself may hold anything. False when nobody reads it any more (a closed pipe, a full drive).
bool write_out(std::FILE* out, std::string_view text);
// Writes what a call of write_out() left of a character that was cut; then flushes. False as above,
// with errno saying why.
bool finish_out(std::FILE* out);
bool is_terminal(std::FILE* stream);
// The terminal that stdout is, else what COLUMNS says; 0: nobody says it.
std::size_t terminal_columns();
std::size_t terminal_rows();  // 0: nobody says it
// One message on stderr, formatted as printf does, printable_lines() of it. Callers end the line.
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);

// One line on stderr that tells how far long work is. Silent unless stderr is a terminal.
class Progress {
 public:
  // `total` 0: unknown. `unit` as in "readings".
  Progress(std::string what, std::uint64_t total, std::string unit);
  ~Progress();  // as finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool shown() const { return shown_; }
  void add(std::uint64_t done, std::uint64_t bytes);
  // How much of all is done, 0 to 1, where that is known otherwise than by `total`.
  void set_share(double share) { share_ = share; }
  // Removes the line.
  void finish();

 private:
  void draw();

  const std::string what_;
  const std::uint64_t total_;
  const std::string unit_;
  const bool shown_;
  std::uint64_t done_ = 0;
  std::uint64_t bytes_ = 0;
  double share_ = -1;  // not known
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_drawn_;
};

// "2m 05s": how long the rest takes, if it goes on as it did. Empty: too early to say.
std::string time_left(double share, double seconds_so_far);

// The question before a command destroys: on a terminal in words, elsewhere it needs --yes.

// Whether to go on with `what` ("this erases 12 readings of 2 series for good"). `yes` is --yes.
// On a terminal the user types `word`. Everything else says on stderr what would have been done,
// and is answered false: the command then exits with kExitUsage.
bool confirmed(const std::string& what, bool yes, const std::string& word = "yes");

// Fields of the daemon's JSON answers, read without trust: a missing field or one of another kind
// is empty.

inline std::string text_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

inline std::optional<double> number_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// The texts of a list, with commas between them.
inline std::string words_field(const nlohmann::json& object, const char* name,
                               const char* between = ", ") {
  std::string words;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return words;
  for (const nlohmann::json& each : *found) {
    if (each.is_string()) words += (words.empty() ? "" : between) + each.get<std::string>();
  }
  return words;
}

// A token's scope: one selector is a text, several are a list.
inline std::string scope_field(const nlohmann::json& token, const char* name) {
  const std::string one = text_field(token, name);
  return one.empty() ? words_field(token, name, " ") : one;
}

inline std::uint64_t count_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return 0;
  return found->get<std::uint64_t>();
}

// What is to be said of an erasure, a preview or a certificate, that is not physical; else empty.
inline std::string erasure_level_note(const nlohmann::json& object) {
  const std::string level = text_field(object, "level");
  if (level.empty() || level == "physical") return {};
  return "level " + level + ": " + text_field(object, "level_why");
}

// What becomes of an erasure, by preview or certificate, where readings went to; empty: nowhere.
inline std::string forwarded_note(const nlohmann::json& object) {
  std::string text;
  const auto targets = object.find("targets");
  if (targets == object.end() || !targets->is_array()) return text;
  for (const nlohmann::json& each : *targets) {
    const std::string why = text_field(each, "why");
    text += (text.empty() ? "targets: " : "; ") + text_field(each, "name") + " " +
            text_field(each, "state") + (why.empty() ? "" : " (" + why + ")");
  }
  return text;
}

// Whether a target of that certificate is in such a state.
inline bool has_target_in(const nlohmann::json& certificate, std::string_view state) {
  const auto targets = certificate.find("targets");
  if (targets == certificate.end() || !targets->is_array()) return false;
  for (const nlohmann::json& each : *targets)
    if (text_field(each, "state") == state) return true;
  return false;
}

}  // namespace edgecase::cli
