#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/machine.h"
#include "output.h"
#include "plot/chart.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

// Charts of one call; who wants more narrows the selector.
constexpr std::size_t kChartsMax = 20;

struct PlotArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  RangeArguments range;
  wire::SelectionTexts selection;
  std::string purpose;
  std::string svg, png;
  std::size_t width = 0;  // 0: the terminal's
  std::size_t height = ChartSize().rows;
};

struct Series {
  std::string namespace_name, device, sensor;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};

// The first of these that is set decides, as everywhere.
ChartGlyphs terminal_glyphs() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    const bool utf8 = locale.find("UTF-8") != std::string_view::npos ||
                      locale.find("utf8") != std::string_view::npos;
    return utf8 ? ChartGlyphs::Braille : ChartGlyphs::Ascii;
  }
  return ChartGlyphs::Ascii;
}

Result<std::vector<Series>> list_series(DaemonClient& client, const PlotArguments& arguments) {
  Parameters parameters{{"ns", arguments.namespaces.parameter()}, {"purpose", arguments.purpose}};
  append_selection(arguments.selection, parameters);
  EC_ASSIGN_OR_RETURN(const std::string body,
                      client.get_small(path_with(wire::routes::kSeries, parameters)));
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  std::vector<Series> list;
  if (!document.is_object() || !document.contains("series")) return list;
  for (const nlohmann::json& row : document["series"]) {
    if (!row.is_object()) continue;
    const Result<std::int64_t> first = wire::parse_rfc3339_ns(text_field(row, "first"));
    const Result<std::int64_t> last = wire::parse_rfc3339_ns(text_field(row, "last"));
    if (!first.ok() || !last.ok()) continue;
    list.push_back({text_field(row, "namespace"), text_field(row, "device"),
                    text_field(row, "sensor"), *first, *last});
  }
  return list;
}

// The edges: what was asked for, else the first and the last reading.
Status set_edges(const RangeArguments& range, const Series& series, Chart& chart) {
  const std::int64_t now_ns = system_clock().wall_ns();
  chart.from_ns = series.first_ns;
  chart.to_ns = series.last_ns;
  EC_ASSIGN_OR_RETURN(const auto from_ns, begin_of(range, now_ns));
  EC_ASSIGN_OR_RETURN(const auto to_ns, end_of(range, now_ns));
  if (from_ns) chart.from_ns = *from_ns;
  if (to_ns) chart.to_ns = *to_ns;
  return ok();
}

// The number of an aggregate's reading; bools are 0 and 1.
std::optional<double> number_of(const nlohmann::json& reading) {
  const auto value = reading.find("value");
  if (value == reading.end()) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>() ? 1.0 : 0.0;
  return number_field(reading, "value");
}

// Smallest and largest value of each window. A range that was asked for does not include its end.
Status read_points(DaemonClient& client, const Series& series, const std::string& purpose,
                   std::size_t dots, bool ends_before_edge, Chart& chart) {
  const auto span =
      static_cast<std::uint64_t>(chart.to_ns) - static_cast<std::uint64_t>(chart.from_ns);
  const std::uint64_t window_ns = std::max<std::uint64_t>(1, span / dots + (span % dots != 0));
  std::string from;
  std::string to;
  wire::append_time(chart.from_ns, from);
  if (ends_before_edge) {
    wire::append_time(chart.to_ns, to);
  } else if (chart.to_ns < std::numeric_limits<std::int64_t>::max()) {
    wire::append_time(chart.to_ns + 1, to);
  }
  std::map<std::int64_t, ChartPoint> points;
  for (const char* aggregate : {"min", "max"}) {
    const bool is_low = aggregate == std::string_view("min");
    std::string rest;
    Status bad;
    Parameters parameters = {
        {"ns", series.namespace_name},
        {"select", wire::escape_name(series.device) + "/" + wire::escape_name(series.sensor)},
        {"from", from},
        {"every", std::to_string(window_ns) + "ns"},
        {"agg", aggregate},
        {"purpose", purpose},
        {"format", "ndjson"}};
    if (!to.empty()) parameters.emplace_back("to", to);
    EC_TRY(client.get(path_with(wire::routes::kQuery, parameters), [&](std::string_view piece) {
      rest += piece;
      std::size_t begin = 0;
      for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos;
           begin = end + 1) {
        const nlohmann::json reading =
            nlohmann::json::parse(rest.begin() + static_cast<std::ptrdiff_t>(begin),
                                  rest.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
        if (!reading.is_object()) {
          bad = io_error("the daemon's answer is no reading");
          return false;
        }
        const Result<std::int64_t> time = wire::parse_rfc3339_ns(text_field(reading, "time"));
        const std::optional<double> number = number_of(reading);
        if (!time.ok() || !number) continue;
        ChartPoint& point = points[*time];
        point.time_ns = std::max(*time, chart.from_ns);
        (is_low ? point.low : point.high) = *number;
      }
      rest.erase(0, begin);
      return true;
    }));
    EC_TRY(bad);
  }
  for (const auto& [time_ns, point] : points) chart.points.push_back(point);
  return ok();
}

Result<std::vector<Chart>> read_charts(const PlotArguments& arguments, std::size_t dots) {
  EC_TRY(check_selection(arguments.selection, WithoutSelection::Refused));
  EC_TRY(check_range(arguments.range));
  DaemonClient client(arguments.connection);
  EC_ASSIGN_OR_RETURN(const std::vector<Series> list, list_series(client, arguments));
  std::vector<Chart> charts;
  for (const Series& series : list) {
    if (charts.size() == kChartsMax) {
      print_error("Stopped at %zu charts; a narrower selector shows the others.\n", kChartsMax);
      break;
    }
    Chart chart;
    chart.zone = arguments.range.zone;
    if (arguments.namespaces.all) chart.title = series.namespace_name + ": ";
    chart.title += series.device + "/" + series.sensor;
    EC_TRY(set_edges(arguments.range, series, chart));
    const bool has_end = !arguments.range.to.empty();
    if (chart.to_ns < chart.from_ns || (has_end && chart.to_ns == chart.from_ns)) continue;
    EC_TRY(read_points(client, series, arguments.purpose, dots, has_end, chart));
    if (!chart.points.empty()) charts.push_back(std::move(chart));
  }
  if (charts.empty()) {
    Parameters asked{{"ns", arguments.namespaces.parameter()}};
    append_selection(arguments.selection, asked);
    look_for_names(client, asked);
    return not_found("no numbers there to draw");
  }
  return charts;
}

Status write_picture(const PlotArguments& arguments, const std::vector<Chart>& charts) {
  const bool is_png = !arguments.png.empty();
  const std::string& path = is_png ? arguments.png : arguments.svg;
  stop_on_interrupt("\nedgecase: stopped, " + path + " was not written\n", wire::kExitFailed);
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::open_output(path));
  EC_ASSIGN_OR_RETURN(const std::string picture,
                      is_png ? charts_png(charts) : Result<std::string>(charts_svg(charts)));
  EC_TRY(file.write(picture));
  return file.commit();
}

int run_plot(const PlotArguments& arguments) {
  ChartSize size;
  if (const std::size_t told = terminal_columns(); told > 0) size.columns = told;
  size.columns = arguments.width > 0 ? arguments.width : std::max(size.columns, kChartColumnsMin);
  size.rows = arguments.height;
  const ChartGlyphs glyphs = terminal_glyphs();
  const bool is_picture = !arguments.svg.empty() || !arguments.png.empty();
  const std::size_t dots = is_picture ? kPictureDots : chart_dots(size, glyphs);
  const Result<std::vector<Chart>> charts = read_charts(arguments, dots);
  if (!charts.ok()) return report_failure(charts.status());
  if (is_picture) {
    const Status status = write_picture(arguments, *charts);
    return status.ok() ? wire::kExitOk : report_failure(status);
  }
  for (const Chart& chart : *charts) write_out(stdout, chart_text(chart, size, glyphs));
  return finish_stdout();
}

}  // namespace

void add_plot_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PlotArguments>();
  CLI::App* command =
      app.add_subcommand("plot", "Draw series over time, in the terminal or as a picture");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  add_range_options(*command, arguments->range);
  add_purpose_option(*command, arguments->purpose);
  CLI::Option* const svg =
      command
          ->add_option("--svg", arguments->svg,
                       "Write the drawing to this file. Default: drawn in the terminal")
          ->type_name("FILE");
  command
      ->add_option("--png", arguments->png,
                   "The same as PNG, for what shows no SVG. Default: drawn in the terminal")
      ->type_name("FILE")
      ->excludes(svg);
  command->add_option("--width", arguments->width, "Columns. Default: as the terminal has, else 80")
      ->check(CLI::Range(kChartColumnsMin, std::size_t{1'000}));
  command->add_option("--height", arguments->height, "Rows of each drawing")
      ->check(CLI::Range(kChartRowsMin, std::size_t{200}))
      ->capture_default_str();
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase plot kitchen/temperature --since 24h",
                               "edgecase plot 'kitchen/*' --png kitchen.png"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_plot(*arguments); }; });
}

}  // namespace edgecase::cli
