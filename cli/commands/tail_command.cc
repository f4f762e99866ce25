#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "application.h"
#include "catch_up.h"
#include "commands/commands.h"
#include "daemon_client.h"
#include "output.h"
#include "reading_output.h"
#include "selection.h"
#include "wire/contract.h"
#include "wire/reading_format.h"

namespace edgecase::cli {
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
    bool is_any = lines == 0;
    if (lines > 0) {
      EC_TRY(catch_up_.show_newest(lines, [&](const wire::Reading& reading) {
        is_any = true;
        return show(reading);
      }));
    }
    if (!is_any) print_error("Nothing is there yet; what comes will be shown.\n");
    return print();
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
