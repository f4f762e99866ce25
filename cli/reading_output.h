// Readings from the daemon to stdout, in the format that was asked for. Shared by query and last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon_client.h"
#include "time_arguments.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

// How many rows a table shows on a terminal when no limit was given.
inline constexpr std::uint64_t kTerminalRowsMax = 1000;

struct ReadingOutput {
  std::string format;  // "": table on a terminal, csv into a pipe
  NamespaceArguments namespaces;
  std::string purpose;
  bool with_age = false;
  std::optional<std::uint64_t> limit;
  Zone zone;  // of tables
};

struct LayoutArguments {
  std::string layout, fill;  // "": long, none
};
// --layout, --fill.
void add_layout_options(CLI::App& command, LayoutArguments& arguments);
inline bool is_wide(const LayoutArguments& arguments) {
  return arguments.layout == "wide";
}
Status check_layout(const LayoutArguments& arguments, std::string_view format);
// As the daemon's parameters.
void append_layout(const LayoutArguments& arguments, Parameters& parameters);

// --tiers.
void add_tiers_option(CLI::App& command, bool& tiers);

// --format.
void add_format_option(CLI::App& command, std::string& format);
// Whether a format is a file of columns, which no terminal shows, and which has no lines.
bool is_columnar(std::string_view format);
std::uint64_t lines_in(std::string_view piece);
// InvalidArgument: stdout is a terminal, and the format none for it.
Status check_destination(std::string_view format);
// The format as it is used: never empty.
std::string effective_format(const std::string& format);

// Asks `path` with `parameters` (and the format) and prints what comes. Returns the exit code.
int print_readings(DaemonClient& client, std::string_view path, Parameters parameters,
                   const ReadingOutput& output);

// Hands what was printed to the system: the exit code of what was lost. A reader that went away
// (`| head`) is told nothing.
int finish_stdout();
// A JSON document of the daemon as it came, on a line of its own; returns the exit code.
int print_document(std::string_view body);

}  // namespace edgecase::cli
