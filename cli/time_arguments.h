// --from, --since and --to: the half-open range of times of query and export.
#pragma once

#include <string>

#include "daemon_client.h"
#include "edgecase/status.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

struct RangeArguments {
  std::string from;
  std::string since;
  std::string to;
};

void add_range_options(CLI::App& command, RangeArguments& range);
// InvalidArgument for what is no time, and for a range that ends before it begins.
Status check_range(const RangeArguments& range);
// As the daemon's parameters; relative times go as they are, the daemon's clock counts.
void append_range(const RangeArguments& range, Parameters& parameters);

// Relative times mean something else whenever they are looked at: as they are now, "" as "".
Result<std::string> absolute_time(const std::string& text);

}  // namespace edgecase::cli
