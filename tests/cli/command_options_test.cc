#include "command_options.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "output.h"

using namespace edgecase;
using namespace edgecase::cli;

namespace {

struct Parsed {
  RangeArguments range;
  bool ok = false;
  std::string problem;
};

Parsed parse(std::vector<std::string> words) {
  Parsed parsed;
  CLI::App app;
  add_range_options(app, parsed.range);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
    parsed.ok = true;
  } catch (const CLI::ParseError& error) {
    parsed.problem = error.what();
  }
  return parsed;
}

}  // namespace

TEST_CASE("time arguments: what the zone decides goes to the daemon as an instant") {
  struct Case {
    std::vector<std::string> words;
    const char* from;
    const char* to;
  };
  for (const Case& c : {
           Case{{"--from", "2026-11-20T14:00", "--tz", "Europe/Berlin"},
                "2026-11-20T13:00:00.000000000Z",
                ""},
           Case{{"--tz", "+02:00", "--from", "2026-11-20", "--to", "2026-11-21"},
                "2026-11-19T22:00:00.000000000Z",
                "2026-11-20T22:00:00.000000000Z"},
           Case{{"--from", "2026-11-20T14:00Z", "--tz", "Asia/Tokyo"}, "2026-11-20T14:00Z", ""},
           Case{{"--from", "-1h", "--to", "now-15m", "--tz", "Asia/Tokyo"}, "-1h", "now-15m"},
           Case{{"--since", "1y"}, "-1y", ""},
           Case{{"--from", "1h"}, "1h", ""},
           Case{{"--from", "yesterday", "--to", "today"}, "yesterday", "today"},
       }) {
    const Parsed parsed = parse(c.words);
    REQUIRE_MESSAGE(parsed.ok, parsed.problem);
    CHECK(check_range(parsed.range).ok());
    Parameters parameters;
    append_range(parsed.range, parameters);
    std::string from, to;
    for (const auto& [name, text] : parameters) (name == "from" ? from : to) = text;
    CHECK(from == c.from);
    CHECK(to == c.to);
  }
}

TEST_CASE("time arguments: what is wrong is said before the daemon is asked") {
  CHECK(parse({"--tz", "Mars/Crater"}).problem.find("Mars/Crater") != std::string::npos);
  CHECK_FALSE(parse({"--tz", "UTC", "--local"}).ok);
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--from", "2026-11-20T14:00"},
           {"--from", "tomorrow"},
           {"--since", "-1h"},
           {"--from", "2026-11-20", "--to", "2026-11-19"},
           {"--from", "today", "--to", "yesterday"},
       }) {
    const Parsed parsed = parse(words);
    REQUIRE(parsed.ok);
    CHECK(check_range(parsed.range).code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("time arguments: times are shown as the zone's clocks show them") {
  const auto zone = wire::TimeZone::find("Europe/Berlin");
  REQUIRE(zone.ok());
  const auto shared = std::make_shared<const wire::TimeZone>(*zone);
  constexpr std::int64_t kSummer = 1'784'563'200'500'000'000;  // 2026-07-20T16:00:00.5Z
  CHECK(short_time(kSummer) == "2026-07-20T16:00:00.500Z");
  CHECK(short_time(kSummer, shared.get()) == "2026-07-20T18:00:00.500+02:00");
  const auto west = wire::TimeZone::find("-03:30");
  REQUIRE(west.ok());
  CHECK(short_time(kSummer, &*west) == "2026-07-20T12:30:00.500-03:30");
  CHECK(short_time(INT64_MAX, shared.get()) == "2262-04-11T23:47:16.854775807Z");

  nlohmann::json document = nlohmann::json::parse(
      R"({"series":[{"device":"2026-07-20T16:00:00Z","first":"2026-07-20T16:00:00Z","last":null}],
          "next":"never"})");
  show_times_in(document, nullptr);
  CHECK(document["series"][0]["first"] == "2026-07-20T16:00:00Z");
  show_times_in(document, shared);
  CHECK(document["series"][0]["first"] == "2026-07-20T18:00:00+02:00");
  CHECK(document["series"][0]["device"] == "2026-07-20T16:00:00Z");
  CHECK(document["next"] == "never");
}
