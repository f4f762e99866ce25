#include "time_arguments.h"

#include <CLI/CLI.hpp>

#include "edgecase/clock.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

std::string start_of(const RangeArguments& range) {
  return range.since.empty() ? range.from : "-" + range.since;
}

}  // namespace

void add_range_options(CLI::App& command, RangeArguments& range) {
  CLI::Option* from = command.add_option(
      "--from", range.from, "First time: 2026-11-20T14:00:00Z, 2026-11-20, @1763647200, -15m, now");
  command.add_option("--since", range.since, "How far back: 15m, 6h, 7d")->excludes(from);
  command.add_option("--to", range.to, "End, itself not included");
}

Status check_range(const RangeArguments& range) {
  const std::int64_t now_ns = system_clock().wall_ns();
  if (!range.since.empty()) EC_TRY(wire::parse_duration_ns(range.since).status());
  std::int64_t from_ns = 0;
  const std::string start = start_of(range);
  if (!start.empty()) {
    EC_ASSIGN_OR_RETURN(from_ns, wire::parse_time_ns(start, now_ns));
  }
  if (range.to.empty()) return ok();
  EC_ASSIGN_OR_RETURN(const std::int64_t to_ns, wire::parse_time_ns(range.to, now_ns));
  if (!start.empty() && to_ns < from_ns) {
    return invalid_argument("the range ends before it begins: " + start + " to " + range.to);
  }
  return ok();
}

void append_range(const RangeArguments& range, Parameters& parameters) {
  if (std::string start = start_of(range); !start.empty()) {
    parameters.emplace_back("from", std::move(start));
  }
  if (!range.to.empty()) parameters.emplace_back("to", range.to);
}

Result<std::string> absolute_time(const std::string& text) {
  if (text.empty()) return std::string();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      wire::parse_time_ns(text, system_clock().wall_ns()));
  std::string absolute;
  wire::append_time(time_ns, absolute);
  return absolute;
}

}  // namespace edgecase::cli
