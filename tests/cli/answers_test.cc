#include "answers.h"

#include <doctest/doctest.h>

#include <string>

#include "wire/contract.h"

namespace edgecase::cli {
namespace {

// `size` bytes, report and its length, as the daemon sends them.
std::string with_report(std::size_t size, const std::string& report) {
  const std::string digits = std::to_string(report.size());
  return std::string(size, 'x') + report +
         std::string(wire::routes::kReportLengthDigits - digits.size(), '0') + digits;
}

TEST_CASE("a report behind a body is taken from it, however the pieces fall") {
  const std::string report(wire::routes::kReportMaxBytes, 'r');
  for (const std::size_t size : {0u, 1u, 200'000u}) {
    for (const std::size_t piece : {1u, 7'001u, 1'000'000u}) {
      CAPTURE(size);
      CAPTURE(piece);
      std::string received;
      const Receive receive = [&received](std::string_view part) {
        received += part;
        return true;
      };
      BodyWithReport body(receive);
      const std::string sent = with_report(size, report);
      for (std::size_t at = 0; at < sent.size(); at += piece)
        REQUIRE(body.push(std::string_view(sent).substr(at, piece)));
      std::string found;
      bool goes_on = false;
      REQUIRE(body.finish(found, goes_on));
      CHECK(goes_on);
      CHECK(found == report);
      CHECK(received == std::string(size, 'x'));
    }
  }
}

TEST_CASE("a body that broke off has no report") {
  const Receive receive = [](std::string_view) { return true; };
  for (const char* sent : {"", "1234567", "0000000x", "99999999", "[]00000003"}) {
    CAPTURE(sent);
    BodyWithReport body(receive);
    REQUIRE(body.push(sent));
    std::string report;
    bool goes_on = true;
    CHECK_FALSE(body.finish(report, goes_on));
  }
}

TEST_CASE("what is damaged decides the exit code before what is away, once") {
  take_exit_code_of_answers();
  name_left_out("no list");
  name_left_out("[]");
  CHECK_FALSE(has_left_out());
  const std::string away =
      R"([{"namespace":"n","device":"d","sensor":"s","code":"unavailable","reason":"away"}])";
  name_left_out(away);
  CHECK(has_left_out());
  CHECK(take_exit_code_of_answers() == wire::kExitPartly);
  CHECK(take_exit_code_of_answers() == wire::kExitOk);

  name_left_out(R"([{"namespace":"n","device":"d","sensor":"s","code":"corruption"}])");
  name_left_out(away);
  expect_what_is_not_there();  // does not excuse what is damaged
  CHECK(take_exit_code_of_answers() == wire::kExitCorruption);

  name_left_out(away);
  expect_what_is_not_there();
  CHECK_FALSE(has_left_out());
}

TEST_CASE("losses of several answers are added up, and none is said where none is") {
  Losses losses;
  CHECK(losses.add("no document") == 0);
  CHECK(losses.add(R"({"stored": 5, "expired": -1})") == 0);
  CHECK(losses.texts().empty());
  CHECK(losses.add(R"({"expired": 2, "erased": 1})") == 3);
  CHECK(losses.add(R"({"expired": 1})") == 1);
  REQUIRE(losses.texts().size() == 2);
  CHECK(losses.texts()[0].starts_with("3 not kept: older"));
  CHECK(losses.texts()[1].starts_with("1 not kept: their time was erased"));
}

}  // namespace
}  // namespace edgecase::cli
