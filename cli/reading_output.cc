#include "reading_output.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "catch_up.h"
#include "edgecase/machine.h"
#include "output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/reading_format.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

// Looks whether an answer holds readings, as it passes.
class Emptiness {
 public:
  explicit Emptiness(std::string_view format) : head_lines_(format == "csv" ? 1 : 0) {}
  void see(std::string_view piece) {
    for (const char c : piece.substr(0, head_lines_ == 0 ? 1 : piece.size())) {
      has_readings_ = has_readings_ || lines_ >= head_lines_;
      if (c == '\n') ++lines_;
      if (has_readings_) return;
    }
  }
  bool has_readings() const { return has_readings_; }

 private:
  const std::size_t head_lines_;
  std::size_t lines_ = 0;
  bool has_readings_ = false;
};

// The newest reading of all that is asked for, whenever it was.
std::optional<std::int64_t> newest_of(DaemonClient& client, const Parameters& parameters) {
  Parameters asked;
  for (const auto& [name, value] : parameters) {
    constexpr std::array<std::string_view, 6> kOfSeries = {"ns",    "select", "measurement",
                                                           "field", "tag",    "purpose"};
    if (std::find(kOfSeries.begin(), kOfSeries.end(), name) != kOfSeries.end())
      asked.emplace_back(name, value);
  }
  asked.emplace_back("format", "ndjson");
  std::optional<std::int64_t> newest;
  ReadingLines lines([&newest](const wire::Reading& reading) {
    if (reading.time_ns && (!newest || *reading.time_ns > *newest)) newest = reading.time_ns;
    return true;
  });
  const Status status = client.get(path_with(wire::routes::kLast, asked),
                                   [&](std::string_view piece) { return lines.push(piece).ok(); });
  return status.ok() ? newest : std::nullopt;
}

// Messages that no rule took may be what is missed.
void tell_rejected(DaemonClient& client) {
  const Result<std::string> body = client.get_small(wire::routes::kStatus);
  if (!body.ok()) return;
  const nlohmann::json status = nlohmann::json::parse(*body, nullptr, false);
  std::uint64_t rejected = 0;
  for (const char* place : {"/mqtt/rejected", "/mqtt/listener/rejected"}) {
    const nlohmann::json::json_pointer at(place);
    if (status.is_object() && status.contains(at) && status[at].is_number_unsigned())
      rejected += status[at].get<std::uint64_t>();
  }
  if (rejected > 0) print_error("%s\n", rejected_text(rejected).c_str());
}

// Nothing is there: where what was asked for is, or what it may be called.
void tell_none(DaemonClient& client, std::string_view path, const Parameters& parameters,
               const ReadingOutput& output) {
  if (path == wire::routes::kQuery) {
    if (const auto newest = newest_of(client, parameters)) {
      print_error("No readings there; the newest is of %s, %s ago.\n",
                  short_time(*newest, output.zone.get()).c_str(),
                  age_text(system_clock().wall_ns() - *newest).c_str());
      return;
    }
  }
  print_error("No readings.\n");
  tell_rejected(client);
  look_for_names(client, parameters);
}

int print_table(DaemonClient& client, std::string_view path, Parameters parameters,
                const ReadingOutput& output) {
  const Parameters asked = parameters;
  parameters.emplace_back("format", "ndjson");
  std::optional<std::uint64_t> row_limit;
  if (!output.limit.has_value() && is_terminal(stdout)) {
    row_limit = kTerminalRowsMax;
    if (path == wire::routes::kQuery) {
      parameters.emplace_back("limit", std::to_string(kTerminalRowsMax + 1));
    }
  }
  std::optional<std::int64_t> now_ns;
  if (output.with_age) now_ns = system_clock().wall_ns();
  ReadingTable table(output.namespaces.all ? NamespaceColumn::Shown : NamespaceColumn::Hidden,
                     row_limit, now_ns, stdout, output.zone);

  Status status = client.get(path_with(path, parameters),
                             [&table](std::string_view piece) { return table.push(piece); });
  if (status.code() == StatusCode::Cancelled) status = ok();  // the table wanted no more
  const Status finished = table.finish();
  if (!status.ok()) return report_failure(client, asked, status);
  if (!finished.ok()) return report_failure(finished);
  if (table.limit_reached()) {
    print_error("Stopped at %s rows; --limit N or --format csv shows more.\n",
                count_text(kTerminalRowsMax).c_str());
  } else if (table.rows() == 0) {
    tell_none(client, path, asked, output);
  } else if (has_left_out()) {
    look_for_names(client, asked);
  }
  return finish_stdout();
}

}  // namespace

void add_format_option(CLI::App& command, std::string& format) {
  CLI::Option* option =
      command
          .add_option(
              "--format", format,
              "table, csv, ndjson, json, line, parquet or arrow; default: table on a terminal,\n"
              "csv into a pipe")
          ->check(CLI::IsMember({"table", "csv", "ndjson", "json", "line", "parquet", "arrow"}));
  command
      .add_flag_callback(
          "--json", [&format] { format = "json"; },
          "One JSON document, as --format json. Default: --format")
      ->excludes(option);
}

void add_tiers_option(CLI::App& command, bool& tiers) {
  command.add_flag("--tiers", tiers,
                   "Also the windows that tiers of retention keep of earlier readings, each with\n"
                   "count, min, max, sum, mean, first, last. Default: readings alone");
}

void add_layout_options(CLI::App& command, LayoutArguments& arguments) {
  command
      .add_option("--layout", arguments.layout,
                  "long: a reading a row; wide: a column for each series. Default: long")
      ->check(CLI::IsMember({"long", "wide"}));
  command.add_option(
      "--fill", arguments.fill,
      "With --layout wide, cells without a reading: none, null (windows without any have\n"
      "rows), previous, linear, or a number. Default: none");
}

Status check_layout(const LayoutArguments& arguments, std::string_view format) {
  if (!is_wide(arguments))
    return arguments.fill.empty() ? ok() : invalid_argument("--fill is of --layout wide");
  if (format.empty() || format == "csv" || format == "ndjson" || format == "json") return ok();
  return invalid_argument("--layout wide is of --format csv, ndjson and json");
}

void append_layout(const LayoutArguments& arguments, Parameters& parameters) {
  if (is_wide(arguments)) parameters.emplace_back("layout", arguments.layout);
  if (!arguments.fill.empty()) parameters.emplace_back("fill", arguments.fill);
}

bool is_columnar(std::string_view format) {
  return format == "parquet" || format == "arrow";
}

std::uint64_t lines_in(std::string_view piece) {
  return static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
}

Status check_destination(std::string_view format) {
  if (!is_columnar(format) || !is_terminal(stdout)) return ok();
  return invalid_argument(std::string(format) + " is a file of bytes, no text for a terminal: " +
                          "write it to one, with > FILE, or edgecase export -o FILE");
}

std::string effective_format(const std::string& format) {
  if (!format.empty()) return format;
  return is_terminal(stdout) ? "table" : "csv";
}

int print_readings(DaemonClient& client, std::string_view path, Parameters parameters,
                   const ReadingOutput& output) {
  parameters.emplace_back("ns", output.namespaces.parameter());
  if (!output.purpose.empty()) parameters.emplace_back("purpose", output.purpose);
  const std::string format = effective_format(output.format);
  if (format == "table") return print_table(client, path, std::move(parameters), output);
  if (const Status status = check_destination(format); !status.ok()) return report_failure(status);

  const Parameters asked = parameters;
  parameters.emplace_back("format", format);
  bool written = true;
  Emptiness emptiness(format);
  const Status status = client.get(path_with(path, parameters), [&](std::string_view piece) {
    emptiness.see(piece);
    written = write_out(stdout, piece);
    return written;
  });
  if (!written) return finish_stdout();
  const int flushed = finish_stdout();
  const bool has_lines = format == "csv" || format == "ndjson" || format == "line";
  if (status.ok() && has_lines && !emptiness.has_readings()) tell_none(client, path, asked, output);
  if (status.ok() && has_left_out()) look_for_names(client, asked);
  if (!status.ok()) return report_failure(client, asked, status);
  return flushed;
}

int finish_stdout() {
  if (finish_out(stdout)) return wire::kExitOk;
  static bool is_told = false;  // the last word of every command asks again
  if (errno != EPIPE && !std::exchange(is_told, true))
    print_error("edgecase: the output cannot be written: %s\n", error_words(errno).c_str());
  return wire::kExitFailed;
}

int print_document(std::string_view body) {
  write_out(stdout, body);
  if (!body.ends_with('\n')) write_out(stdout, "\n");
  return finish_stdout();
}

namespace {

std::vector<Table::Column> columns_of(bool with_namespace, bool with_age) {
  std::vector<Table::Column> columns;
  if (with_namespace) columns.push_back({"NAMESPACE", Align::Left});
  columns.push_back({"SERIES", Align::Left});
  columns.push_back({"TIME", Align::Left});
  columns.push_back({"VALUE", Align::Right});
  if (with_age) columns.push_back({"AGE", Align::Right});
  return columns;
}

// "mean 21.5 of 60 in 1m"; text is counted, no more.
std::string window_of(const nlohmann::json& reading, const std::string& length) {
  std::string text, count;
  for (const auto& [name, value] : reading.items()) {
    if (name.ends_with(wire::column_suffix(wire::WindowColumn::Count))) count = value.dump();
    if (!name.ends_with(wire::column_suffix(wire::WindowColumn::Mean)) || !value.is_number())
      continue;
    text = "mean ";
    wire::append_double(value.get<double>(), text);
    text += " of ";
  }
  return text + count + " in " + length;
}

std::string value_of(const nlohmann::json& reading) {
  if (const std::string window = text_field(reading, "window"); !window.empty())
    return window_of(reading, window);
  const auto value = reading.find("value");
  if (value == reading.end()) return "-";
  // A window that cannot be answered: "unavailable", "damaged".
  if (value->is_null()) return text_field(reading, "type");
  if (text_field(reading, "type") == "bytes" && value->is_string()) {
    const std::string& base64 = value->get_ref<const std::string&>();
    std::size_t bytes = base64.size() / 4 * 3;
    if (base64.ends_with("==")) {
      bytes -= 2;
    } else if (base64.ends_with("=")) {
      bytes -= 1;
    }
    std::string text = "(" + wire::format_size(bytes);
    if (const std::string type = text_field(reading, "content_type"); !type.empty()) {
      text += ", " + type;
    }
    return text + ")";
  }
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_float()) {
    std::string text;
    wire::append_double(value->get<double>(), text);
    return text;
  }
  return value->dump();
}

}  // namespace

ReadingTable::ReadingTable(NamespaceColumn namespaces, std::optional<std::uint64_t> row_limit,
                           std::optional<std::int64_t> now_ns, std::FILE* out, Zone zone)
    : with_namespace_(namespaces == NamespaceColumn::Shown),
      row_limit_(row_limit),
      now_ns_(now_ns),
      zone_(std::move(zone)),
      table_(columns_of(with_namespace_, now_ns.has_value()), out) {}

bool ReadingTable::push(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      rest_ += piece;
      return true;
    }
    rest_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    const std::string line = std::exchange(rest_, {});
    if (!line.empty() && !take_line(line)) return false;
  }
  return true;
}

bool ReadingTable::take_line(std::string_view line) {
  if (row_limit_.has_value() && table_.rows() >= *row_limit_) {
    limit_reached_ = true;
    return false;
  }
  const nlohmann::json reading = nlohmann::json::parse(line, nullptr, false);
  if (!reading.is_object()) {
    status_ = io_error("the daemon's answer is no list of readings");
    return false;
  }
  std::vector<std::string> cells;
  if (with_namespace_) cells.push_back(text_field(reading, "namespace"));
  cells.push_back(text_field(reading, "device") + "/" + text_field(reading, "sensor"));
  const Result<std::int64_t> time = wire::parse_rfc3339_ns(text_field(reading, "time"));
  cells.push_back(time.ok() ? short_time(*time, zone_.get()) : text_field(reading, "time"));
  cells.push_back(value_of(reading));
  if (now_ns_.has_value()) cells.push_back(time.ok() ? age_text(*now_ns_ - *time) : "");
  table_.row(std::move(cells));
  return true;
}

Status ReadingTable::finish() {
  table_.flush();
  EC_TRY(status_);
  if (!rest_.empty() && !limit_reached_) return io_error("the daemon's answer broke off");
  return ok();
}

}  // namespace edgecase::cli
