// Which records of the audit log are asked for over HTTP.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"
#include "wire/time_text.h"

namespace edgecase::http::test {

TEST_CASE("audit over HTTP: bad parameters are told") {
  const ServerFixture f([](config::Settings& settings) { settings.audit.mode = "strict"; });
  for (const char* target :
       {"/api/v1/audit?limit=x", "/api/v1/audit?from=yesterdayish", "/api/v1/audit?desc=maybe",
        "/api/v1/audit?select=x", "/api/v1/audit?ns=*&device=x", "/api/v1/audit/verify?from=now"}) {
    CAPTURE(target);
    CHECK(Client::over_unix(f.settings.http.socket).ask("GET", target).status == 400);
  }
}

TEST_CASE("audit over HTTP: ranges are half open, to the ends of time") {
  ServerFixture f([](config::Settings& settings) { settings.audit.mode = "strict"; });
  constexpr char kOneReading[] = R"({"device":"kitchen","sensor":"temp","value":1,"time":5})";
  CHECK(f.ask("POST", "/api/v1/readings", kOneReading).status == 200);
  const auto records = [&](const std::string& parameters) {
    const Answer answer = Client::over_unix(f.settings.http.socket)
                              .ask("GET", "/api/v1/audit?limit=1000" + parameters);
    CHECK(answer.status == 200);
    return json_of(answer)["records"];
  };
  const std::string time = records("&desc=true")[0]["time"];
  const auto time_ns = wire::parse_rfc3339_ns(time);
  REQUIRE(time_ns.ok());
  const auto finds = [&](const std::string& range) {
    const nlohmann::json found = records(range);
    return std::any_of(found.begin(), found.end(),
                       [&time](const nlohmann::json& record) { return record["time"] == time; });
  };
  const std::string behind = std::to_string(*time_ns + 1);
  struct Case {
    std::string range;
    bool want;
  };
  for (const Case& c :
       {Case{"", true}, Case{"&from=" + time, true}, Case{"&from=" + behind, false},
        Case{"&to=" + time, false}, Case{"&to=" + behind, true},
        Case{"&from=" + time + "&to=" + behind, true}, Case{"&from=" + time + "&to=" + time, false},
        Case{"&from=-9223372036854775808", true},
        Case{"&from=-9223372036854775808&to=-9223372036854775808", false},
        Case{"&to=9223372036854775807", true}, Case{"&from=9223372036854775807", false},
        Case{"&from=-9223372036854775808&to=9223372036854775807&desc=true", true},
        Case{"&from=today", true}, Case{"&from=yesterday&to=today", false}}) {
    CAPTURE(c.range);
    CHECK(finds(c.range) == c.want);
  }
}

}  // namespace edgecase::http::test
