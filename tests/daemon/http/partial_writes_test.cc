// Partial writes: what cannot be taken for good costs itself alone, and what is acknowledged and
// not there as it was sent is told.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

// Over the Unix socket, as whoever administers does.
Answer administer(const ServerFixture& f, std::string_view method, std::string_view target) {
  return Client::over_unix(f.settings.http.socket).ask(method, target);
}

constexpr const char* kJson = "/api/v1/readings";

}  // namespace

TEST_CASE("http: a limit costs those alone that are over it, whichever way they come") {
  ServerFixture f([](config::Settings& settings) { settings.limits.devices = 2; });
  REQUIRE(f.ask("POST", "/write", "m,device=known value=1 1\n").status == 204);
  struct Case {
    const char* target;
    const char* body;
  };
  for (const Case& c :
       {Case{"/write",
             "m,device=known value=2 2\nm,device=new value=2 2\nm,device=over value=2 2\n"
             "m,device=known value=3 3\n"},
        Case{kJson, R"([{"device":"known","sensor":"m","time":4,"value":4},)"
                    R"({"device":"over","sensor":"m","time":4,"value":4},)"
                    R"({"device":"known","sensor":"m","time":5,"value":5},)"
                    R"({"device":"new","sensor":"m","time":5,"value":5}])"},
        Case{kJson,
             "{\"device\":\"over\",\"sensor\":\"m\",\"time\":6,\"value\":4}\n"
             "{\"device\":\"known\",\"sensor\":\"m\",\"time\":6,\"value\":4}\n"
             "{\"device\":\"known\",\"sensor\":\"m\",\"time\":7,\"value\":4}\n"
             "{\"device\":\"new\",\"sensor\":\"m\",\"time\":7,\"value\":4}\n"}}) {
    CAPTURE(c.body);
    const Answer answer = f.ask("POST", c.target, c.body);
    CHECK(answer.status == 400);
    CHECK(answer.header("retry-after").empty());
    const nlohmann::json body = json_of(answer);
    CHECK(body["stored"] == 3);
    CHECK(body["rejected"] == 1);
    const std::string reason = body["errors"][0]["message"];
    CHECK(reason.find("over/m: ") == 0);
    CHECK(reason.find("limits.devices") != std::string::npos);
    const auto& error = body["error"].is_object() ? body["error"] : body;
    CHECK(error["code"] == "limit_reached");
    CHECK(error["message"].get<std::string>().find("partial write") == 0);
  }
  const Answer blob = f.ask("PUT", "/api/v1/blob/default/over/m", "x");
  CHECK(blob.status == 400);
  CHECK(json_of(blob)["stored"] == 0);
  CHECK(f.ask("PUT", "/api/v1/blob/default/known/m", "x").status == 201);
}

TEST_CASE("http: a scope costs those alone that it does not hold") {
  ServerFixture f;
  const nlohmann::json made = json_of(administer(f, "POST", "/api/v1/tokens?write=known%2F*"));
  const std::string token = "Authorization: Bearer " + made["token"].get<std::string>() + "\r\n";
  const std::string lines = "m,device=known value=1 1\nm,device=other value=1 1\n";
  Answer answer = f.ask("POST", "/write", lines, token);
  CHECK(answer.status == 403);
  CHECK(json_of(answer)["stored"] == 1);
  CHECK(json_of(answer)["rejected"] == 1);
  CHECK(json_of(answer)["code"] == "not_allowed");
  answer = f.ask("POST", "/write", lines + "no line\n", token);
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["stored"] == 1);
  CHECK(json_of(answer)["rejected"] == 2);
}

TEST_CASE("http: what has expired on arrival, or is replaced in its batch, is told") {
  ServerFixture f;
  const std::string now = "360000000000000";  // 100 h
  f.engine.set_expiry_now_ns(360'000'000'000'000);
  REQUIRE(f.ask("POST", "/write", "m,device=d value=1 " + now + "\n").status == 204);
  REQUIRE(f.ask("POST", "/api/v1/retention?select=d&keep=1h").status == 200);
  Answer answer = f.ask("POST", "/write",
                        "m,device=d value=1 1\nm,device=d value=2 2\nm,device=d value=3 " + now +
                            "\nm,device=d value=4 " + now + "\nm,device=d value=4 " + now + "\n");
  CHECK(answer.status == 204);
  CHECK(answer.header("x-edgecase-expired") == "2");
  CHECK(answer.header("x-edgecase-replaced") == "1");
  CHECK(answer.header("x-edgecase-erased").empty());
  answer = f.ask("POST", kJson, R"({"device":"d","sensor":"m","time":5,"value":1})");
  CHECK(answer.status == 200);
  CHECK(json_of(answer) == nlohmann::json{{"stored", 0}, {"rejected", 0}, {"expired", 1}});
  answer = f.ask("PUT", "/api/v1/blob/default/d/picture?time=@5", "x");
  CHECK(answer.status == 201);
  CHECK(json_of(answer)["expired"] == 1);
  answer = f.ask("POST", kJson, R"({"device":"other","sensor":"m","time":5,"value":1})");
  CHECK(json_of(answer) == nlohmann::json{{"stored", 1}, {"rejected", 0}});
  const nlohmann::json told = json_of(f.ask("GET", "/api/v1/status"))["rates"]["not_stored"];
  CHECK(told["expired"] == 4);
  CHECK(told["replaced"] == 1);
  CHECK(told["devices"][0]["device"] == "d");
  CHECK(told["devices"][0]["expired"] == 4);
  CHECK(told["other_devices"] == nlohmann::json::object());
  CHECK(f.ask("GET", "/metrics")
            .body.find("edgecase_ingest_not_stored_by_device_total{namespace=\"default\","
                       "device=\"d\",cause=\"expired\"} 4\n") != std::string::npos);
  CHECK(
      f.ask("GET", "/metrics").body.find("edgecase_ingest_not_stored_total{cause=\"expired\"} 4") !=
      std::string::npos);
}

TEST_CASE("http: ranges are half open, to the ends of time, and times have one grammar") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write",
                "m,device=d value=1 -9223372036854775808\nm,device=d value=2 -10000\n"
                "m,device=d value=3 0\nm,device=d value=4 1000000000\n"
                "m,device=d value=5 9223372036854775807\n")
              .status == 204);
  struct Case {
    const char* range;
    const char* want;  // the values
  };
  for (const Case& c :
       {Case{"", "12345"}, Case{"&from=-9223372036854775808", "12345"},
        Case{"&from=-9223372036854775807", "2345"}, Case{"&to=-9223372036854775808", ""},
        Case{"&to=-9223372036854775807", "1"}, Case{"&from=-10000&to=0", "2"},
        Case{"&from=0&to=0", ""}, Case{"&from=0&to=1000000000", "3"},
        Case{"&from=@1&to=@1.000000001", "4"}, Case{"&from=1970-01-01T00:00:01Z", "45"},
        Case{"&from=1970-01-01&to=1970-01-02", "34"}, Case{"&from=9223372036854775807", "5"},
        Case{"&from=9223372036854775806", "5"}, Case{"&to=9223372036854775807", "1234"},
        Case{"&from=9223372036854775807&to=9223372036854775807", ""}}) {
    for (const char* const desc : {"", "&desc=true", "&export=true"}) {
      CAPTURE(c.range);
      CAPTURE(desc);
      const Answer answer =
          f.ask("GET", std::string("/api/v1/query?select=d&format=ndjson") + c.range + desc);
      CHECK(answer.status == 200);
      std::string values;
      for (std::size_t at = 0; (at = answer.body.find("\"value\":", at)) != std::string::npos; ++at)
        values += answer.body[at + 8];
      std::sort(values.begin(), values.end());
      CHECK(values == c.want);
    }
  }
  for (const char* const time : {"1000000000", "@1", "1970-01-01T00:00:01Z"}) {
    CAPTURE(time);
    CHECK(f.ask("GET", std::string("/api/v1/blob/default/d/m?time=") + time).body == "4");
    CHECK(f.ask("PUT", std::string("/api/v1/blob/default/d/b?time=") + time, "x").status == 201);
    CHECK(f.ask("POST", kJson,
                std::string(R"({"device":"d","sensor":"j","value":1,"time":")") + time + "\"}")
              .status == 200);
  }
  CHECK(f.ask("GET", "/api/v1/blob/default/d/m?time=9223372036854775807").body == "5");
  CHECK(f.ask("GET", "/api/v1/blob/default/d/m?time=-9223372036854775808").body == "1");
  CHECK(f.ask("GET", "/api/v1/blob/default/d/m?time=9223372036854775808").status == 400);
}

}  // namespace edgecase::http::test
