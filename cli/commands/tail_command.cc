#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "commands/commands.h"
#include "daemon_client.h"
#include "help_text.h"
#include "output.h"
#include "reading_output.h"
#include "reading_table.h"
#include "wire/errors.h"
#include "wire/routes.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

// Between two questions: while readings come, while none do, and while the daemon is away.
constexpr std::chrono::milliseconds kBusyPause{50};
constexpr std::chrono::milliseconds kIdlePause{200};
constexpr std::chrono::milliseconds kAwayPause{1000};

struct TailArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string selector;
  std::string purpose;
  std::string format;
  std::optional<std::uint64_t> limit;
};

// Asks for what came since the last answer, and prints it.
class Follower {
 public:
  explicit Follower(const TailArguments& arguments)
      : arguments_(arguments),
        client_(arguments.connection),
        format_(effective_format(arguments.format)),
        left_(arguments.limit),
        table_(arguments.namespaces.all ? NamespaceColumn::Shown : NamespaceColumn::Hidden,
               std::nullopt, std::nullopt, stdout) {
    client_.keep_connection();
  }

  // How many readings came.
  Result<std::uint64_t> ask() {
    EC_ASSIGN_OR_RETURN(const std::string text, client_.get_small(path()));
    tell_missed(client_.answer_header(wire::routes::kMissedHeader));
    cursor_ = client_.answer_header(wire::routes::kCursorHeader);
    const std::string count = client_.answer_header(wire::routes::kReadingsHeader);
    if (cursor_.empty() || count.empty()) return io_error("the daemon knows nothing of tail");
    const std::uint64_t came = std::strtoull(count.c_str(), nullptr, 10);
    if (left_) *left_ -= std::min(came, *left_);
    EC_TRY(print(text));
    return came;
  }

  bool has_begun() const { return !cursor_.empty(); }
  bool is_done() const { return left_ == 0u || !is_read_; }

 private:
  std::string path() const {
    Parameters parameters = {{"ns", arguments_.namespaces.parameter()},
                             {"select", arguments_.selector},
                             {"format", format_ == "table" ? "ndjson" : format_}};
    if (!arguments_.purpose.empty()) parameters.emplace_back("purpose", arguments_.purpose);
    if (!cursor_.empty()) parameters.emplace_back("cursor", cursor_);
    if (left_) parameters.emplace_back("limit", std::to_string(*left_));
    return path_with(wire::routes::kTail, parameters);
  }

  Status print(const std::string& text) {
    if (text.empty()) return ok();
    if (format_ == "table") {
      table_.push(text);
      EC_TRY(table_.finish());
    } else {
      write_out(stdout, text);
    }
    is_read_ = finish_stdout() == wire::kExitOk;
    return ok();
  }

  static void tell_missed(const std::string& missed) {
    if (missed.empty()) return;
    if (missed == "unknown") {
      std::fputs("edgecase: the daemon was started again; what came meanwhile is not shown\n",
                 stderr);
      return;
    }
    std::fprintf(stderr, "edgecase: %s readings came too fast to be shown or looked through\n",
                 missed.c_str());
  }

  const TailArguments& arguments_;
  DaemonClient client_;
  const std::string format_;
  std::optional<std::uint64_t> left_;
  ReadingTable table_;
  std::string cursor_;
  bool is_read_ = true;
};

int run_tail(const TailArguments& arguments) {
  const Status status = wire::parse_selector(arguments.selector).status();
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
        std::fprintf(stderr, "edgecase: %s; trying again\n", came.status().message().c_str());
      }
      away = true;
      std::this_thread::sleep_for(kAwayPause);
      continue;
    }
    away = false;
    if (!follower.is_done()) std::this_thread::sleep_for(*came > 0 ? kBusyPause : kIdlePause);
  }
  return wire::kExitOk;
}

}  // namespace

void add_tail_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<TailArguments>();
  CLI::App* command =
      app.add_subcommand("tail", "Print readings as they are stored, whatever their times");
  command
      ->add_option("selector", arguments->selector,
                   "device/sensor with globs * and ?; kitchen alone means kitchen/*")
      ->required();
  command
      ->add_option("--format", arguments->format,
                   "table, csv, ndjson or line; else table on a terminal, csv into a pipe")
      ->check(CLI::IsMember({"table", "csv", "ndjson", "line"}));
  command->add_option("--limit", arguments->limit, "End after this many readings")
      ->check([](const std::string& text) {
        return text == "0" ? std::string("0 readings are none, use 1 or more") : std::string();
      });
  add_purpose_option(*command, arguments->purpose);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*command, arguments->connection);
  command->footer(
      help_footer({"edgecase tail 'kitchen/*'", "edgecase tail boiler/alarm --limit 1"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_tail(*arguments); }; });
}

}  // namespace edgecase::cli
