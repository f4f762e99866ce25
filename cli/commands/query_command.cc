#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>

#include "application.h"
#include "catch_up.h"
#include "command_options.h"
#include "daemon_client.h"
#include "mended_line.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/reading_format.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct LastArguments {
  ConnectionArguments connection;
  ReadingOutput output;
  wire::SelectionTexts selection;
};

int run_last(const LastArguments& arguments) {
  const Status status = check_selection(arguments.selection);
  if (!status.ok()) return report_failure(status);
  ReadingOutput output = arguments.output;
  output.with_age = true;
  DaemonClient client(arguments.connection);
  Parameters parameters;
  append_selection(arguments.selection, parameters);
  return print_readings(client, wire::routes::kLast, std::move(parameters), output);
}

}  // namespace

void add_last_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LastArguments>();
  CLI::App* command = app.add_subcommand("last", "Print the newest reading of each series");
  add_selection(*command, arguments->selection, WithoutSelection::Everything);
  add_format_option(*command, arguments->output.format);
  add_zone_options(*command, arguments->output.zone);
  add_purpose_option(*command, arguments->output.purpose);
  add_namespace_options(*command, arguments->output.namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase last 'kitchen/*' boiler/temp"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_last(*arguments); }; });
}
namespace {

struct QueryArguments {
  ConnectionArguments connection;
  ReadingOutput output;
  RangeArguments range;
  wire::SelectionTexts selection;
  std::string every;
  std::string aggregate;
  std::optional<std::uint64_t> limit;
  bool descending = false, tiers = false;
  LayoutArguments layout;
};

Status check(const QueryArguments& arguments) {
  EC_TRY(check_selection(arguments.selection, WithoutSelection::Refused));
  EC_TRY(check_range(arguments.range));
  if (!arguments.every.empty()) {
    EC_ASSIGN_OR_RETURN(const std::int64_t every, wire::parse_duration_ns(arguments.every));
    if (every == 0) return invalid_argument("--every must be longer than nothing, as in 1h");
    if (arguments.aggregate.empty()) return invalid_argument("--every needs --agg, as in mean");
  }
  if (arguments.tiers && (!arguments.every.empty() || !arguments.aggregate.empty())) {
    return invalid_argument(
        "--tiers prints windows as they are kept: leave it out with --every and --agg, which read "
        "them by themselves");
  }
  if (!arguments.aggregate.empty()) EC_TRY(wire::parse_aggregate(arguments.aggregate).status());
  return check_layout(arguments.layout, arguments.output.format);
}

int run_query(const QueryArguments& arguments) {
  if (const Status status = check(arguments); !status.ok()) return report_failure(status);
  Parameters parameters;
  append_selection(arguments.selection, parameters);
  append_range(arguments.range, parameters);
  if (!arguments.every.empty()) parameters.emplace_back("every", arguments.every);
  if (!arguments.aggregate.empty()) parameters.emplace_back("agg", arguments.aggregate);
  if (arguments.limit.has_value()) {
    parameters.emplace_back("limit", std::to_string(*arguments.limit));
  }
  if (arguments.descending) parameters.emplace_back("desc", "true");
  if (arguments.tiers) parameters.emplace_back("tiers", "true");
  append_layout(arguments.layout, parameters);

  ReadingOutput output = arguments.output;
  // Its columns are as many as there are series: no table of a terminal.
  if (is_wide(arguments.layout) && output.format.empty()) output.format = "csv";
  output.limit = arguments.limit;
  output.zone = arguments.range.zone;
  DaemonClient client(arguments.connection);
  return print_readings(client, wire::routes::kQuery, std::move(parameters), output);
}

}  // namespace

void add_query_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<QueryArguments>();
  CLI::App* command = app.add_subcommand("query", "Print readings, ordered by series, then time");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  add_range_options(*command, arguments->range);
  command->add_option(
      "--every", arguments->every,
      "One row for each window of this length, as in 15m; needs --agg. Default: each reading");
  command->add_option(
      "--agg", arguments->aggregate,
      "mean, min, max, sum, count, first, last, stddev, p50, p95, p99 or minmax, also by names\n"
      "as avg and median; alone: one row a series. Default: none");
  command->add_option(
      "--limit", arguments->limit,
      "Print at most this many readings. Default: all; of a table on a terminal 1000");
  command->add_flag("--desc", arguments->descending, "Newest first. Default: oldest first");
  add_tiers_option(*command, arguments->tiers);
  add_layout_options(*command, arguments->layout);
  add_format_option(*command, arguments->output.format);
  add_purpose_option(*command, arguments->output.purpose);
  add_namespace_options(*command, arguments->output.namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase query 'kitchen/*' --since 24h --every 1h --agg mean",
                   "edgecase query 'kitchen/*' --layout wide --every 1h --agg mean --fill previous",
                   "edgecase query --measurement cpu --tag host=pi --field usage_idle --since 1h",
                   "edgecase query boiler/temp --from 2026-11-01 --format csv > nov.csv"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_query(*arguments); }; });
}

namespace {

struct GetArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string series;
  std::string time;
  std::string purpose;
  std::string output;
  Zone zone;
};

Result<std::string> blob_path(const GetArguments& arguments) {
  EC_ASSIGN_OR_RETURN(const wire::SeriesName series, wire::parse_series_name(arguments.series));
  std::string path = std::string(wire::routes::kBlob) + "/" +
                     percent_encode(arguments.namespaces.name) + "/" +
                     percent_encode(series.device) + "/" + percent_encode(series.sensor);
  Parameters parameters;
  if (!arguments.time.empty()) {
    parameters.emplace_back("time", sent_time(arguments.time, arguments.zone));
  }
  if (!arguments.purpose.empty()) parameters.emplace_back("purpose", arguments.purpose);
  return path_with(path, parameters);
}

Parameters asked(const GetArguments& arguments) {
  return {{"ns", arguments.namespaces.name}, {"select", arguments.series}};
}

// Text is shown on a terminal; other bytes would change what it does, so `-o -` has to ask for
// them.
int print_value(DaemonClient& client, const std::string& path, const GetArguments& arguments) {
  const bool guarded = arguments.output.empty() && is_terminal(stdout);
  bool refused = false;
  const Status status = client.get(path, [&](std::string_view piece) {
    refused = guarded && !is_text(piece);
    return !refused && std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size();
  });
  const int flushed = finish_stdout();
  if (refused) {
    print_error(
        "edgecase: the value is no text and may upset a terminal; -o FILE writes it to a file, "
        "-o - shows it all the same\n");
    return wire::kExitUsage;
  }
  if (!status.ok() && status.code() != StatusCode::Cancelled)
    return report_failure(client, asked(arguments), status);
  return flushed;
}

int run_get(const GetArguments& arguments) {
  const Result<std::string> path = blob_path(arguments);
  if (!path.ok()) return report_failure(path.status());
  DaemonClient client(arguments.connection);
  if (arguments.output.empty() || arguments.output == "-")
    return print_value(client, *path, arguments);

  stop_on_interrupt("\nedgecase: stopped, nothing was written\n", wire::kExitFailed);
  Result<TargetFile> file = TargetFile::open_output(arguments.output);
  if (!file.ok()) return report_failure(file.status());
  Status written;
  Status status = client.get(*path, [&](std::string_view piece) {
    written = file->write(piece);
    return written.ok();
  });
  if (!written.ok()) return report_failure(written);
  if (status.ok()) status = file->commit();
  return status.ok() ? wire::kExitOk : report_failure(client, asked(arguments), status);
}

}  // namespace

void add_get_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* command = app.add_subcommand("get", "Print one value's raw bytes");
  command->add_option("series", arguments->series, "device/sensor")->required();
  command->add_option("--time", arguments->time,
                      "The value's time, as query shows it. Default: the newest value");
  command
      ->add_option("-o,--output", arguments->output,
                   "File to write; -: stdout, also where it is a terminal. Default: stdout")
      ->type_name("FILE");
  add_zone_options(*command, arguments->zone);
  add_purpose_option(*command, arguments->purpose);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase get door/photo --time 2026-11-20T14:00:00Z -o front.jpg"}));
  command->callback([arguments, &action] { action = [arguments] { return run_get(*arguments); }; });
}

namespace {

// Between two questions: while readings come, while none do, and while the daemon is away.
constexpr std::chrono::milliseconds kBusyPause{50};
constexpr std::chrono::milliseconds kIdlePause{200};
constexpr std::chrono::milliseconds kAwayPause{1000};
// Readings that come first, where somebody looks, and at most.
constexpr std::size_t kLinesFirst = 10;
constexpr std::size_t kLinesFirstMax = 1'000;
// How much text is printed at once.
constexpr std::size_t kTextBytes = 256u << 10;

struct TailArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  wire::SelectionTexts selection;
  std::string purpose;
  std::string format;
  std::optional<std::uint64_t> limit;
  std::optional<std::size_t> lines;
  bool tiers = false;
  Zone zone;

  // How many readings come first that are there. A script that waits for the next one gets that.
  std::size_t first_lines() const {
    const bool is_looked_at = is_terminal(stdout) && !limit;
    return lines.value_or(is_looked_at ? kLinesFirst : 0);
  }
};

wire::ReadingFormat wire_format(const std::string& format) {
  // The table is made of NDJSON; the other names were checked when they were given.
  const Result<wire::ReadingFormat> parsed = wire::parse_reading_format(format);
  return parsed.ok() ? *parsed : wire::ReadingFormat::Ndjson;
}

// Asks for what came since the last answer, and prints it.
class Follower {
 public:
  explicit Follower(const TailArguments& arguments)
      : arguments_(arguments),
        client_(arguments.connection),
        format_(effective_format(arguments.format)),
        formatter_(
            wire_format(format_),
            arguments.namespaces.all ? wire::LineNamespaces::Told : wire::LineNamespaces::NotTold,
            arguments.tiers ? wire::WindowColumns::Told : wire::WindowColumns::NotTold),
        left_(arguments.limit),
        table_(arguments.namespaces.all ? NamespaceColumn::Shown : NamespaceColumn::Hidden,
               std::nullopt, std::nullopt, stdout, arguments.zone),
        catch_up_(client_, arguments.namespaces, arguments.selection, arguments.purpose) {
    client_.keep_connection();
  }

  // How many readings came.
  Result<std::uint64_t> ask() {
    const bool begins = cursor_.empty();
    if (is_behind_) EC_TRY(catch_up());
    EC_ASSIGN_OR_RETURN(const std::string text, client_.get_small(path()));
    const std::string missed = client_.answer_header(wire::routes::kMissedHeader);
    const std::string cursor = client_.answer_header(wire::routes::kCursorHeader);
    const std::string count = client_.answer_header(wire::routes::kReadingsHeader);
    if (cursor.empty() || count.empty()) return io_error("the daemon knows nothing of tail");
    // From the cursor on the feed brings all; what is there already is asked for after it.
    if (begins) EC_TRY(begin());
    cursor_ = cursor;
    tell_missed(missed);
    const std::uint64_t came = std::strtoull(count.c_str(), nullptr, 10);
    if (came == 0 && !is_behind_) catch_up_.forget_repeats();
    ReadingLines lines([this](const wire::Reading& reading) {
      const bool is_window = reading.window != nullptr;
      return (!is_window && catch_up_.skips(reading)) || show(reading);
    });
    const Status taken = lines.push(text);
    EC_TRY(print());
    if (taken.code() != StatusCode::Cancelled) EC_TRY(taken);
    return came;
  }

  bool has_begun() const { return !cursor_.empty(); }
  bool is_behind() const { return is_behind_; }
  bool is_done() const { return left_ == 0u || !is_read_; }

 private:
  std::string path() const {
    Parameters parameters = {{"ns", arguments_.namespaces.parameter()}, {"format", "ndjson"}};
    append_selection(arguments_.selection, parameters);
    if (!arguments_.purpose.empty()) parameters.emplace_back("purpose", arguments_.purpose);
    if (!cursor_.empty()) parameters.emplace_back("cursor", cursor_);
    if (arguments_.tiers) parameters.emplace_back("tiers", "true");
    if (left_) parameters.emplace_back("limit", std::to_string(*left_));
    return path_with(wire::routes::kTail, parameters);
  }

  Status begin() {
    EC_TRY(catch_up_.begin());
    formatter_.begin(text_);
    const std::size_t lines = arguments_.first_lines();
    if (catch_up_.found_nothing()) tell_nothing();
    if (lines > 0)
      EC_TRY(catch_up_.show_newest(lines,
                                   [&](const wire::Reading& reading) { return show(reading); }));
    return print();
  }

  // A mistyped name would be waited for without end.
  void tell_nothing() {
    const std::string ns = arguments_.namespaces.parameter();
    std::string near;
    for (const std::string& text : arguments_.selection.selectors) {
      if (near.empty()) near = near_selector(client_, ns, text);
    }
    const std::string where = arguments_.namespaces.all ? "" : " in namespace " + ns;
    print_error("Nothing of that is there%s yet%s; what comes will be shown.\n", where.c_str(),
                near.empty() ? "" : (" (did you mean " + for_shell(near) + "?)").c_str());
  }

  Status catch_up() {
    const Status status =
        catch_up_.show_missed([this](const wire::Reading& reading) { return show(reading); });
    EC_TRY(print());
    if (!is_done()) EC_TRY(status);
    is_behind_ = false;
    return ok();
  }

  // False: no more is wanted.
  bool show(const wire::Reading& reading) {
    if (is_done()) return false;
    formatter_.reading(reading, text_);
    if (reading.window == nullptr) catch_up_.shown(reading);
    if (left_) --*left_;
    return (text_.size() < kTextBytes || print().ok()) && !is_done();
  }

  Status print() {
    if (text_.empty()) return ok();
    if (format_ == "table") {
      table_.push(text_);
      EC_TRY(table_.finish());
    } else {
      write_out(stdout, text_);
    }
    text_.clear();
    is_read_ = finish_stdout() == wire::kExitOk;
    return ok();
  }

  void tell_missed(const std::string& missed) {
    if (missed.empty()) return;
    if (missed == "unknown") {
      is_behind_ = true;
      print_error(
          "edgecase: following begins anew; what was stored meanwhile comes first, by series\n");
      return;
    }
    print_error("edgecase: %s readings came too fast to be shown or looked through\n",
                missed.c_str());
  }

  const TailArguments& arguments_;
  DaemonClient client_;
  const std::string format_;
  wire::ReadingFormatter formatter_;
  std::optional<std::uint64_t> left_;
  ReadingTable table_;
  CatchUp catch_up_;
  std::string cursor_;
  std::string text_;  // to be printed
  bool is_behind_ = false;
  bool is_read_ = true;
};

int run_tail(const TailArguments& arguments) {
  const Status status = check_selection(arguments.selection, WithoutSelection::Refused);
  if (!status.ok()) return report_failure(status);
  Follower follower(arguments);
  bool away = false;
  while (!follower.is_done()) {
    const Result<std::uint64_t> came = follower.ask();
    if (!came.ok()) {
      const bool may_return = came.status().code() == StatusCode::Unavailable ||
                              came.status().code() == StatusCode::IoError ||
                              came.status().code() == StatusCode::Busy;
      if (!follower.has_begun() || !may_return) return report_failure(came.status());
      if (!away) {
        print_error("edgecase: %s; trying again\n", came.status().message().c_str());
      }
      away = true;
      std::this_thread::sleep_for(kAwayPause);
      continue;
    }
    away = false;
    if (follower.is_done() || follower.is_behind()) continue;
    std::this_thread::sleep_for(*came > 0 ? kBusyPause : kIdlePause);
  }
  return wire::kExitOk;
}

}  // namespace

void add_tail_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<TailArguments>();
  CLI::App* command =
      app.add_subcommand("tail",
                         "Print readings as they are stored, whatever their times. After a restart "
                         "of the daemon,\nor when it was away, those come first that were stored "
                         "meanwhile, ordered by series and\ntime: of each series what is later "
                         "than all it had before");
  add_selection(*command, arguments->selection, WithoutSelection::Refused);
  command
      ->add_option("--format", arguments->format,
                   "table, csv, ndjson or line. Default: table on a terminal, csv into a pipe")
      ->check(CLI::IsMember({"table", "csv", "ndjson", "line"}));
  command
      ->add_option(
          "--lines", arguments->lines,
          "Print so many of the newest readings first, at most 1000. Default: 10 on a terminal\n"
          "without --limit, else 0")
      ->check(CLI::Range(std::size_t{0}, kLinesFirstMax))
      ->type_name("UINT");
  command
      ->add_option("--limit", arguments->limit,
                   "End after this many readings. Default: go on until Ctrl-C")
      ->check([](const std::string& text) {
        return text == "0" ? std::string("0 readings are none, use 1 or more") : std::string();
      });
  command->add_flag("--tiers", arguments->tiers,
                    "Also windows of tiers, as they are made of readings that go. Default: "
                    "readings");
  add_zone_options(*command, arguments->zone);
  add_purpose_option(*command, arguments->purpose);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase tail 'kitchen/*'", "edgecase tail boiler/alarm --limit 1"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_tail(*arguments); }; });
}

}  // namespace edgecase::cli
