// Guesses what a CSV of others means by its first two lines, for the line that `import` offers
// after it was refused.
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "import/csv_decoder.h"
#include "import/importer.h"
#include "wire/decimal.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr std::size_t kHeadMaxBytes = 64u << 10;

// The beginning of a file; empty where it cannot be read, or only once.
std::string head_of(const std::string& path) {
  std::string head;
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return head;
  if (path.ends_with(".gz")) {
    const auto file = GzipReader::open(path);
    for (bool more = file.ok(); more && head.size() < kHeadMaxBytes;) {
      const Result<bool> read = (*file)->read(head);
      more = read.ok() && *read;
    }
    return head;
  }
  const File file(std::fopen(path.c_str(), "rbe"));
  if (!file) return head;
  head.resize(kHeadMaxBytes);
  head.resize(std::fread(head.data(), 1, head.size(), file.get()));
  return head;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// The fields of a line, without quotes around them.
std::vector<std::string> fields_of(std::string_view line, char delimiter) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == delimiter && !is_quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

// The column with the first of these names that there is, in whatever case.
std::optional<std::size_t> column_called(const std::vector<std::string>& columns,
                                         std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (lower_case(wire::trimmed_text(columns[i])) == name) return i;
  }
  return std::nullopt;
}

std::vector<std::size_t> time_columns_meant(const std::vector<std::string>& columns) {
  std::vector<std::size_t> parts;
  for (const std::string_view part : {"year", "month", "day", "hour", "minute", "second"}) {
    const auto found = column_called(columns, {part});
    if (!found) break;
    parts.push_back(*found);
  }
  if (parts.size() >= 3) return parts;
  const auto date = column_called(columns, {"date", "datum", "day"});
  const auto clock = column_called(columns, {"time", "zeit", "clock", "hour"});
  if (date && clock) return {*date, *clock};
  const auto named = column_called(
      columns, {"time", "timestamp", "datetime", "date_time", "date/time", "date time", "_time",
                "ts", "date", "utc", "created_at", "datum", "zeit"});
  if (named) return {*named};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string lower = lower_case(columns[i]);
    if (lower.find("time") != std::string::npos || lower.find("date") != std::string::npos)
      return {i};
  }
  return {};
}

// How `text` is written: the options that say so.
std::vector<std::string> time_options_meant(const std::string& text) {
  const auto utc = wire::TimeZone::find("UTC");
  std::int64_t unit = 0;
  if (!text.empty() && std::all_of(text.begin(), text.end(), wire::is_digit) &&
      std::from_chars(text.data(), text.data() + text.size(), unit).ec == std::errc()) {
    if (const std::string_view meant = wire::unit_meant(unit); !meant.empty())
      return {"--time-format", std::string(meant)};
  }
  if (wire::parse_absolute_time_ns(text).ok() || !utc.ok()) return {};
  if (wire::parse_absolute_time_ns(text, &*utc).ok()) return {"--local"};
  for (const char* date : {"%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y",
                           "%Y%m%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y %m %d"}) {
    for (const char* clock : {"%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p",
                              "%H%M%S", "%H %M %S", "%H %M", "%H", ""}) {
      const std::string pattern = std::string(date) + (*clock == '\0' ? "" : " ") + clock;
      const auto format = TimeFormat::parse(pattern);
      if (format.ok() && format->read(text, &*utc).ok())
        return {"--time-format", pattern, "--local"};
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> options_meant(const std::string& path) {
  const std::string head = head_of(path);
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string_view first = text.substr(0, text.find('\n'));
  const std::string_view rest = text.substr(std::min(first.size() + 1, text.size()));
  char delimiter = ',';
  for (const char each : {';', '\t', '|'})
    if (std::count(first.begin(), first.end(), each) >
        std::count(first.begin(), first.end(), delimiter))
      delimiter = each;
  const std::vector<std::string> columns = fields_of(first, delimiter);
  std::vector<std::string> cells = fields_of(rest.substr(0, rest.find('\n')), delimiter);
  // R writes the names of rows in a column that the first line does not name.
  if (cells.size() == columns.size() + 1) cells.erase(cells.begin());
  const std::vector<std::size_t> times = time_columns_meant(columns);
  const bool is_own = column_called(columns, {"device"}) && column_called(columns, {"sensor"});
  std::vector<std::string> options;
  const bool has_tabs = delimiter == '\t' || path.ends_with(".tsv") || path.ends_with(".tab");
  if (delimiter != ',' || has_tabs)
    options = {"--delimiter", has_tabs ? "tab" : std::string(1, delimiter)};
  if (times.empty() || is_own || cells.size() != columns.size()) return options;
  // "21,5" in a file whose columns are not separated by it.
  const auto has_comma = [](const std::string& cell) {
    const std::size_t comma = cell.find(',');
    return comma != std::string::npos && comma > 0 && comma + 1 < cell.size() &&
           cell.find_first_not_of("-0123456789,") == std::string::npos;
  };
  if (delimiter != ',' && std::any_of(cells.begin(), cells.end(), has_comma))
    options.insert(options.end(), {"--decimal", ","});
  std::string names, time;
  for (const std::size_t column : times) {
    names += (names.empty() ? "" : ",") + std::string(wire::trimmed_text(columns[column]));
    time += (time.empty() ? "" : " ") + std::string(wire::trimmed_text(cells[column]));
  }
  options.insert(options.end(), {"--time-column", names});
  const auto device = column_called(columns, {"device", "device_id", "deviceid", "host", "hostname",
                                              "station", "node", "machine", "location", "site"});
  const std::size_t slash = path.rfind('/');
  const std::string base = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (device) {
    options.insert(options.end(),
                   {"--device-column", std::string(wire::trimmed_text(columns[*device]))});
  } else {
    options.insert(options.end(), {"--device", base.substr(0, base.find('.'))});
  }
  const std::vector<std::string> written = time_options_meant(time);
  options.insert(options.end(), written.begin(), written.end());
  return options;
}

}  // namespace edgecase::cli
