// Times on the command line: --from, --since and --to, the half-open range of times of query,
// export, plot and erase; --tz and --local, which say whose clock times without an offset are and
// in which times are shown to people. Data (csv, ndjson, json, line) keep UTC.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon_client.h"
#include "edgecase/status.h"
#include "wire/time_zone.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

// Null: UTC for times that are shown, and none for those that are given.
using Zone = std::shared_ptr<const wire::TimeZone>;

struct RangeArguments {
  std::string from;
  std::string since;
  std::string to;
  Zone zone;
};

// `zone` lives as long as `command`. No such zone is wrong usage.
void add_zone_options(CLI::App& command, Zone& zone);
// With those of the zone.
void add_range_options(CLI::App& command, RangeArguments& range);
// InvalidArgument for what is no time, and for a range that ends before it begins.
Status check_range(const RangeArguments& range);
// As the daemon's parameters.
void append_range(const RangeArguments& range, Parameters& parameters);
// Where the range begins and ends; nullopt: it does not.
Result<std::optional<std::int64_t>> begin_of(const RangeArguments& range, std::int64_t now_ns);
Result<std::optional<std::int64_t>> end_of(const RangeArguments& range, std::int64_t now_ns);

// A time as the daemon takes it: what the zone decides is absolute. Relative times go as they are,
// the daemon's clock counts; so does what is no time, for the daemon to say so.
std::string sent_time(const std::string& text, const Zone& zone);
// Relative times mean something else whenever they are looked at: as they are now, "" as "".
Result<std::string> absolute_time(const std::string& text, const Zone& zone);

// Members of the document, and of all in it, that hold times ("first", "last", "time", ...) as the
// zone's clocks show them. Without a zone nothing changes.
void show_times_in(nlohmann::json& document, const Zone& zone);

}  // namespace edgecase::cli
