// Readings from the daemon to stdout, in the format that was asked for. Shared by query and last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/status.h"
#include "output.h"

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

// Readings as a table: takes the daemon's NDJSON piece by piece.

enum class NamespaceColumn : unsigned char { Hidden, Shown };

class ReadingTable {
 public:
  // After `row_limit` rows push() says that it wants no more. `now_ns` set: with a column that
  // tells how old a reading is. `zone`: whose clocks show the times; null: UTC.
  ReadingTable(NamespaceColumn namespaces, std::optional<std::uint64_t> row_limit,
               std::optional<std::int64_t> now_ns, std::FILE* out, Zone zone = nullptr);

  // False: the limit is reached or a line was no reading (status() tells which).
  bool push(std::string_view piece);
  // Prints what waits. IoError when a line was no reading or the last one is unfinished.
  Status finish();
  bool limit_reached() const { return limit_reached_; }
  std::uint64_t rows() const { return table_.rows(); }

 private:
  bool take_line(std::string_view line);

  const bool with_namespace_;
  const std::optional<std::uint64_t> row_limit_;
  const std::optional<std::int64_t> now_ns_;
  const Zone zone_;
  Table table_;
  std::string rest_;  // the beginning of a line whose end has not come
  Status status_;
  bool limit_reached_ = false;
};

}  // namespace edgecase::cli
