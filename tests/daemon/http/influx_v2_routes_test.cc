// What clients of InfluxDB 2 ask beside writing.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr char kJsonType[] = "Content-Type: application/json\r\n";
constexpr char kStatementsType[] = "Content-Type: application/vnd.influxql\r\n";

}  // namespace

TEST_CASE("influx v2: statements of InfluxQL are answered, Flux is refused in a sentence") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/api/v2/write?bucket=a", "cpu,host=x v=1 1").status == 204);
  const nlohmann::json wanted{{"cpu"}};
  const auto values = [](const Answer& answer) {
    CHECK(answer.status == 200);
    return json_of(answer)["results"][0]["series"][0]["values"];
  };
  CHECK(values(f.ask("POST", "/api/v2/query?org=o",
                     R"({"query":"SHOW MEASUREMENTS","type":"influxql","bucket":"a"})",
                     kJsonType)) == wanted);
  CHECK(values(f.ask("POST", "/api/v2/query",
                     R"({"query":"SHOW SERIES WHERE host=$h","type":"influxql","bucket":)"
                     R"("a/autogen","params":{"h":"x"}})",
                     kJsonType)) == nlohmann::json{{"cpu,host=x"}});
  CHECK(values(f.ask("POST", "/api/v2/query?bucket=a", "SHOW MEASUREMENTS", kStatementsType)) ==
        wanted);
  CHECK(f.ask("POST", "/api/v2/query?bucket=a", "SHOW MEASUREMENTS",
              std::string(kStatementsType) + "Accept: text/csv\r\n")
            .body == "name,tags,name\nmeasurements,,cpu\n");

  // A policy that is no tier's has no readings to give.
  const Answer other =
      f.ask("POST", "/api/v2/query",
            R"({"query":"SELECT v FROM cpu","type":"influxql","bucket":"a/other"})", kJsonType);
  CHECK(json_of(other)["results"][0]["error"].is_string());

  struct Case {
    int status;
    const char* type;
    const char* body;
  };
  for (const Case& c :
       {Case{501, "application/vnd.flux", "buckets[]"},
        Case{501, "application/json", R"({"query":"buckets[]"})"},
        Case{501, "application/json", R"({"query":"buckets[]","type":"flux"})"},
        Case{400, "application/json", R"({"query":"SHOW DATABASES","type":"sql"})"},
        Case{400, "application/json", R"({"query":5,"type":"influxql"})"},
        Case{400, "application/json", "[]"}, Case{400, "application/json", "{"},
        Case{400, "application/json", ""}, Case{400, "text/plain", "SHOW DATABASES"},
        Case{400, "application/vnd.influxql", ""}, Case{400, "application/vnd.influxql", "SHOW"}}) {
    CAPTURE(c.body);
    const Answer answer =
        f.ask("POST", "/api/v2/query", c.body, std::string("Content-Type: ") + c.type + "\r\n");
    CHECK(answer.status == c.status);
    CHECK(json_of(answer)["error"].is_string());
    CHECK(json_of(answer)["message"].is_string());
  }
}

TEST_CASE("influx v2: brackets in each other take no stack") {
  ServerFixture f;
  constexpr int kDepth = 60'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const Answer answer = f.ask(
      "POST", "/api/v2/query",
      R"({"type":"influxql","query":"SHOW DATABASES","params":{"a":)" + deep + "}}", kJsonType);
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["error"] == "params: a is no text, number or truth value");
  CHECK(f.ask("POST", "/query",
              "q=SHOW+DATABASES&params={\"a\":" + deep.substr(kDepth / 2, kDepth) + "}",
              "Content-Type: application/x-www-form-urlencoded\r\n")
            .status == 400);
}

TEST_CASE("influx v2: buckets are namespaces, and an organisation is whatever is asked for") {
  ServerFixture f;
  for (const char* name : {"a", "b", "c"})
    REQUIRE(f.ask("POST", std::string("/api/v1/namespaces?name=") + name).status == 201);
  REQUIRE(f.ask("POST", "/api/v1/retention?ns=b&select=*/*&keep=1h&yes=true").status == 200);
  const auto names = [&f](const std::string& parameters) {
    std::string text;
    const Answer answer = f.ask("GET", "/api/v2/buckets" + parameters);
    CHECK(answer.status == 200);
    const nlohmann::json json = json_of(answer);
    for (const nlohmann::json& each : json["buckets"])
      text += each["name"].get<std::string>() + " ";
    return text;
  };
  CHECK(names("") == "a b c default ");
  CHECK(names("?name=b&org=any") == "b ");
  CHECK(names("?name=nope") == "");
  CHECK(names("?limit=2&offset=1") == "b c ");
  CHECK(f.ask("GET", "/api/v2/buckets?limit=x").status == 400);
  const nlohmann::json b = json_of(f.ask("GET", "/api/v2/buckets?name=b"))["buckets"][0];
  CHECK(b["id"].get<std::string>().size() == 16);
  CHECK(b["retentionRules"] == nlohmann::json{{{"type", "expire"}, {"everySeconds", 3600}}});
  CHECK(names("?id=" + b["id"].get<std::string>()) == "b ");
  CHECK(names("?after=" + b["id"].get<std::string>()) == "c default ");

  const nlohmann::json orgs = json_of(f.ask("GET", "/api/v2/orgs?org=home"))["orgs"];
  REQUIRE(orgs.size() == 1);
  CHECK(orgs[0]["name"] == "home");
  CHECK(orgs[0]["id"] == b["orgID"]);
}

}  // namespace edgecase::http::test
