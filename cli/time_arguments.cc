#include "time_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edgecase/clock.h"
#include "output.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

std::string start_of(const RangeArguments& range) {
  return range.since.empty() ? range.from : "-" + range.since;
}

void set_zone(Result<wire::TimeZone> found, const char* option, Zone& zone) {
  // tidy: allow throw: this is how the parser is told of wrong usage
  if (!found.ok()) throw CLI::ValidationError(option, found.status().message());
  zone = std::make_shared<const wire::TimeZone>(std::move(found).value());
}

Result<std::optional<std::int64_t>> optional_time(const std::string& text, std::int64_t now_ns,
                                                  const Zone& zone) {
  if (text.empty()) return std::optional<std::int64_t>();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns, wire::parse_time_ns(text, now_ns, zone.get()));
  return std::optional<std::int64_t>(time_ns);
}

// Members of the daemon's documents that hold times.
constexpr std::array<std::string_view, 16> kTimeMembers = {
    "asked", "ends", "expires",   "first",  "from",   "gone",  "invisible", "last",
    "made",  "next", "last_used", "newest", "oldest", "since", "time",      "to"};

}  // namespace

void add_zone_options(CLI::App& command, Zone& zone) {
  CLI::Option* by_name =
      command
          .add_option_function<std::string>(
              "--tz",
              [&zone](const std::string& name) {
                set_zone(wire::TimeZone::find(name), "--tz", zone);
              },
              "Whose clock times without an offset are, and tables show: Europe/Berlin, +02:00.\n"
              "Default: UTC, and a time of day without an offset is refused")
          ->type_name("ZONE");
  command
      .add_flag_callback(
          "--local",
          [&zone] { set_zone(wire::TimeZone::local(std::getenv("TZ")), "--local", zone); },
          "As --tz with this machine's own zone")
      ->excludes(by_name);
}

void add_range_options(CLI::App& command, RangeArguments& range) {
  CLI::Option* from = command.add_option(
      "--from", range.from,
      "First time: 2026-11-20T14:00:00Z, 2026-11-20, @1763647200, -15m, today, yesterday, now.\n"
      "Default: the beginning");
  command
      .add_option("--since", range.since,
                  "How far back: 15m, 6h, 7d, 1h30m; units ns us ms s m h d w y. Default: --from")
      ->excludes(from);
  command.add_option("--to", range.to,
                     "End, itself not included, written as --from. Default: no end");
  add_zone_options(command, range.zone);
}

Result<std::optional<std::int64_t>> begin_of(const RangeArguments& range, std::int64_t now_ns) {
  if (!range.since.empty()) EC_TRY(wire::parse_duration_ns(range.since).status());
  return optional_time(start_of(range), now_ns, range.zone);
}

Result<std::optional<std::int64_t>> end_of(const RangeArguments& range, std::int64_t now_ns) {
  return optional_time(range.to, now_ns, range.zone);
}

Status check_range(const RangeArguments& range) {
  const std::int64_t now_ns = system_clock().wall_ns();
  EC_ASSIGN_OR_RETURN(const auto from_ns, begin_of(range, now_ns));
  EC_ASSIGN_OR_RETURN(const auto to_ns, end_of(range, now_ns));
  if (from_ns && to_ns && *to_ns < *from_ns) {
    return invalid_argument("the range ends before it begins: " + start_of(range) + " to " +
                            range.to);
  }
  return ok();
}

void append_range(const RangeArguments& range, Parameters& parameters) {
  if (std::string start = start_of(range); !start.empty()) {
    parameters.emplace_back("from", sent_time(start, range.zone));
  }
  if (!range.to.empty()) parameters.emplace_back("to", sent_time(range.to, range.zone));
}

std::string sent_time(const std::string& text, const Zone& zone) {
  if (zone == nullptr || !wire::depends_on_zone(text)) return text;
  const Result<std::string> absolute = absolute_time(text, zone);
  return absolute.ok() ? *absolute : text;
}

Result<std::string> absolute_time(const std::string& text, const Zone& zone) {
  if (text.empty()) return std::string();
  EC_ASSIGN_OR_RETURN(const std::int64_t time_ns,
                      wire::parse_time_ns(text, system_clock().wall_ns(), zone.get()));
  std::string absolute;
  wire::append_time(time_ns, absolute);
  return absolute;
}

void show_times_in(nlohmann::json& document, const Zone& zone) {
  if (zone == nullptr || !document.is_structured()) return;
  for (auto at = document.begin(); at != document.end(); ++at) {
    const bool is_time =
        document.is_object() && at->is_string() &&
        std::find(kTimeMembers.begin(), kTimeMembers.end(), at.key()) != kTimeMembers.end();
    if (!is_time) {
      show_times_in(*at, zone);
    } else if (const auto time = wire::parse_rfc3339_ns(at->get_ref<const std::string&>());
               time.ok()) {
      *at = short_time(*time, zone.get());
    }
  }
}

}  // namespace edgecase::cli
