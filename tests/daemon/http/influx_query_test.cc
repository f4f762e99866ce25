// What clients of InfluxDB ask beside writing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {

TEST_CASE("http: what clients of Influx ask at start") {
  ServerFixture f;
  struct Ping {
    const char* target;
    int status;
  };
  for (const Ping& c :
       {Ping{"/ping", 204}, Ping{"/ping?wait_for_leader=1s", 204}, Ping{"/ping?verbose=true", 200},
        Ping{"/ping?verbose=1", 200}, Ping{"/ping?verbose=false", 204},
        Ping{"/ping?verbose=0", 204}, Ping{"/health", 200}, Ping{"/ready", 200}}) {
    CAPTURE(c.target);
    const Answer got = f.ask("GET", c.target);
    CHECK(got.status == c.status);
    CHECK(got.header("x-influxdb-version") == "1.8.0");
    CHECK(got.body.empty() == (c.status == 204));
    CHECK(f.ask("HEAD", c.target).status == c.status);
  }
  CHECK(json_of(f.ask("GET", "/ping?verbose=true"))["version"] == "1.8.0");
  const nlohmann::json health = json_of(f.ask("GET", "/health"));
  CHECK(health["name"] == "influxdb");
  CHECK(health["status"] == "pass");
  CHECK(health["message"] == "ready for queries and writes");
  CHECK(json_of(f.ask("GET", "/ready"))["status"] == "ready");
  CHECK(json_of(f.ask("POST", "/query?q=CREATE+DATABASE+%22telegraf%22"))["results"][0] ==
        nlohmann::json{{"statement_id", 0}});
  Answer answer = f.ask("POST", "/query", "q=create+database+%22b%2Dc%22+WITH+REPLICATION+1&db=",
                        "Content-Type: application/x-www-form-urlencoded\r\n");
  CHECK(answer.status == 200);
  answer = f.ask("GET", "/query?q=show%20databases");
  const nlohmann::json values = json_of(answer)["results"][0]["series"][0]["values"];
  CHECK(std::find(values.begin(), values.end(), nlohmann::json{"telegraf"}) != values.end());
  CHECK(std::find(values.begin(), values.end(), nlohmann::json{"b-c"}) != values.end());
  REQUIRE(f.ask("POST", "/write?db=telegraf", "cpu,host=a u=1,v=2 1\nmem,host=a u=1 1").status ==
          204);
  answer =
      f.ask("GET", "/query?q=SHOW+MEASUREMENTS;SHOW+RETENTION+POLICIES+ON+telegraf&db=telegraf");
  CHECK(json_of(answer)["results"][0]["series"][0]["values"] == nlohmann::json{{"cpu"}, {"mem"}});
  CHECK(json_of(answer)["results"][1]["series"][0]["values"][0][0] == "autogen");
  CHECK(json_of(f.ask("POST", "/query?q=drop+database+nothere"))["results"][0] ==
        nlohmann::json{{"statement_id", 0}});
  for (const char* query :
       {"drop+database+telegraf", "CREATE+DATABASE+_x", "CREATE+DATABASE+%22a/b%22",
        "SHOW+MEASUREMENTS+ON+nothere", "show+retention+policies+on+nothere"}) {
    CAPTURE(query);
    answer = f.ask("GET", std::string("/query?q=") + query);
    CHECK(answer.status == 200);
    CHECK(json_of(answer)["results"][0]["error"].is_string());
  }
  for (const char* query : {"", "nonsense", "%22open", ";;"}) {
    answer = f.ask("GET", std::string("/query?q=") + query);
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"].is_string());
  }
}

TEST_CASE("http: a statement that is not done is an error, however it is written") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write", "m value=1 1").status == 204);
  const auto ask = [&f](const std::string& text) {
    std::string form = "db=default&q=";
    for (const char c : text) {
      char hex[8];
      snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
      form += hex;
    }
    return f.ask("POST", "/query", form, "Content-Type: application/x-www-form-urlencoded\r\n");
  };
  for (const char* text : {"SELECT * FROM m",
                           "select*from m;",
                           "DELETE FROM m",
                           "DROP SERIES FROM m",
                           "DROP MEASUREMENT m",
                           "drop  retention\tpolicy a on b",
                           "-- a comment\nDELETE FROM m",
                           "/* DELETE */ ALTER RETENTION POLICY autogen ON default DURATION 1h",
                           "CREATE RETENTION POLICY a ON default DURATION 1h REPLICATION 1 DEFAULT",
                           "CREATE DATABASE b WITH DURATION 1h",
                           "CREATE DATABASE b WITH NAME c",
                           "CREATE USER u",
                           "CREATE CONTINUOUS QUERY q ON default BEGIN SELECT 1 END",
                           "SHOW TAG KEYS",
                           "SHOW TAG VALUES WITH KEY = a",
                           "SHOW FIELD KEYS",
                           "SHOW SERIES",
                           "SHOW NOTHING",
                           "SHOW",
                           "SHOW MEASUREMENTS WITH MEASUREMENT = a",
                           "SHOW MEASUREMENTS LIMIT x",
                           "SHOW DATABASES LIMIT 1",
                           "SHOW MEASUREMENT CARDINALITY",
                           "CREATE",
                           "CREATE DATABASE",
                           "KILL QUERY 1",
                           "EXPLAIN SELECT 1",
                           "GRANT ALL TO u",
                           "REVOKE ALL FROM u",
                           "SET PASSWORD FOR u = 'p'",
                           "UPDATE m",
                           "CREATE DATABASE b c",
                           "/* open",
                           "'open",
                           "SELECT /a;CREATE DATABASE b;c/ FROM m",
                           "DROP SHARD 1; DELETE FROM m",
                           "CREATE DATABASE b; UPDATE m"}) {
    CAPTURE(text);
    const Answer answer = ask(text);
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"].is_string());
  }
  const nlohmann::json names = json_of(f.ask("GET", "/api/v1/namespaces"))["namespaces"];
  CHECK(std::find(names.begin(), names.end(), "b") == names.end());
  CHECK(f.stored().find("m") != std::string::npos);

  // Statements that are done are done, whatever stands beside them.
  const nlohmann::json results =
      json_of(ask("create database if not exists \"b\" ; DELETE FROM m; -- end\n"
                  "show measurements;;SHOW MEASUREMENTS ON default LIMIT 1 OFFSET 1;"))["results"];
  REQUIRE(results.size() == 4);
  CHECK(results[0] == nlohmann::json{{"statement_id", 0}});
  CHECK(results[1]["error"] == "DELETE is not offered here, and nothing was done of it");
  CHECK(results[2]["series"][0]["values"] == nlohmann::json{{"m"}});
  CHECK(results[3] == nlohmann::json{{"statement_id", 3}});
}

TEST_CASE("http: a listing of measurements is in order, without any twice, beyond what is held") {
  ServerFixture f([](config::Settings& settings) { settings.limits.query_statements = 3; });
  std::string lines;
  constexpr int kNames = 6'000;  // more than kMeasurementsHeldBytes has room for
  for (int i = 0; i < kNames; ++i) {
    for (const char* device : {"a", "b"}) {
      lines += "m" + std::to_string(100'000 + i * 7'919 % kNames) + ",device=" + device +
               " value=1,w=2 1\n";
    }
  }
  REQUIRE(f.ask("POST", "/write", lines).status == 204);
  const Answer answer =
      f.ask("GET", "/query?q=SHOW+MEASUREMENTS;SHOW+MEASUREMENTS+LIMIT+2+OFFSET+5000");
  REQUIRE(answer.complete);
  CHECK(answer.header("transfer-encoding") == "chunked");
  const nlohmann::json results = json_of(answer)["results"];
  const nlohmann::json values = results[0]["series"][0]["values"];
  REQUIRE(values.size() == kNames);
  bool in_order = true;
  for (int i = 0; i < kNames; ++i)
    in_order =
        in_order && values[static_cast<std::size_t>(i)][0] == "m" + std::to_string(100'000 + i);
  CHECK(in_order);
  CHECK(results[1]["series"][0]["values"] == nlohmann::json{{"m105000"}, {"m105001"}});
  CHECK(f.ask("GET", "/query?q=SHOW+DATABASES;SHOW+DATABASES;SHOW+DATABASES").status == 200);
  const Answer refused =
      f.ask("GET", "/query?q=SHOW+DATABASES;SHOW+DATABASES;SHOW+DATABASES;SHOW+DATABASES");
  CHECK(refused.status == 400);
  CHECK(json_of(refused)["error"].get<std::string>().find("limits.query-statements = 3") !=
        std::string::npos);
}

}  // namespace edgecase::http::test
