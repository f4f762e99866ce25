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
  for (const char* text : {"CREATE USER u",
                           "CREATE CONTINUOUS QUERY q ON default BEGIN SELECT 1 END",
                           "SHOW NOTHING",
                           "SELECT v INTO w FROM m",
                           "KILL QUERY 1 ON somewhere",
                           "SHOW",
                           "SHOW MEASUREMENTS LIMIT x",
                           "SHOW DATABASES LIMIT 1",
                           "CREATE",
                           "CREATE DATABASE",
                           "EXPLAIN SELECT 1",
                           "EXPLAIN SHOW DATABASES",
                           "GRANT ALL TO u",
                           "REVOKE ALL FROM u",
                           "SET PASSWORD FOR u = 'p'",
                           "UPDATE m",
                           "CREATE DATABASE b c",
                           "/* open",
                           "'open",
                           "DROP SHARD 1; DROP SHARD 2",
                           "DELETE FROM default.autogen.m",
                           "DELETE FROM default..m",
                           "DELETE m",
                           "CREATE DATABASE b WITH REPLICATION 0",
                           "CREATE DATABASE b; UPDATE m"}) {
    CAPTURE(text);
    const Answer answer = ask(text);
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"].is_string());
  }
  static_cast<void>(ask("SELECT /a;CREATE DATABASE b;c/ FROM m"));
  const nlohmann::json names = json_of(f.ask("GET", "/api/v1/namespaces"))["namespaces"];
  CHECK(std::find(names.begin(), names.end(), "b") == names.end());
  CHECK(f.stored().find("m") != std::string::npos);

  // What stands before one that fails is done, what stands behind it is not.
  const nlohmann::json results =
      json_of(ask("create database if not exists \"b\" ; show measurements;;"
                  "SHOW MEASUREMENTS ON default LIMIT 1 OFFSET 1; DELETE FROM m; -- end\n"
                  "CREATE DATABASE c;SHOW DATABASES"))["results"];
  REQUIRE(results.size() == 6);
  CHECK(results[0] == nlohmann::json{{"statement_id", 0}});
  CHECK(results[1]["series"][0]["values"] == nlohmann::json{{"m"}});
  CHECK(results[2] == nlohmann::json{{"statement_id", 2}});
  CHECK(results[3]["error"] ==
        "a statement that erases or alters stands before those that read, or alone; nothing was "
        "done of it");
  CHECK(results[4] == nlohmann::json{{"statement_id", 4}, {"error", "not executed"}});
  CHECK(results[5] == nlohmann::json{{"statement_id", 5}, {"error", "not executed"}});
  const nlohmann::json after = json_of(f.ask("GET", "/api/v1/namespaces"))["namespaces"];
  CHECK(after == nlohmann::json{"b", "default"});
}

TEST_CASE("http: a listing of measurements is in order, without any twice") {
  ServerFixture f([](config::Settings& settings) { settings.limits.query_statements = 3; });
  std::string lines;
  constexpr int kNames = 6'000;
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

namespace {

constexpr char kForm[] = "Content-Type: application/x-www-form-urlencoded\r\n";

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    char hex[8];
    snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
    out += hex;
  }
  return out;
}

std::string target_of(std::string_view query, std::string_view more = {}) {
  return "/query?q=" + encoded(query) + std::string(more);
}

}  // namespace

TEST_CASE("influx: a request says how it wants its answer, in the target or in a form") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write", "cpu,host=a v=1 1\ncpu,host=b v=1 1\nmem v=1 1").status == 204);
  const std::string plain =
      R"({"results":[{"statement_id":0,"series":[{"name":"measurements","columns":["name"],)"
      R"("values":[["cpu"],["mem"]]}]}]})"
      "\n";
  CHECK(f.ask("GET", target_of("SHOW MEASUREMENTS")).body == plain);
  CHECK(f.ask("POST", "/query?db=default", "q=" + encoded("SHOW MEASUREMENTS"), kForm).body ==
        plain);
  CHECK(f.ask("POST", "/query", "SHOW MEASUREMENTS", "Content-Type: application/vnd.influxql\r\n")
            .body == plain);
  CHECK(f.ask("POST", "/query", "SHOW MEASUREMENTS", "Content-Type: text/plain\r\n").body == plain);

  CHECK(f.ask("POST", "/query", "pretty=true&q=" + encoded("SHOW MEASUREMENTS LIMIT 1"), kForm)
            .body == R"({
    "results": [
        {
            "statement_id": 0,
            "series": [
                {
                    "name": "measurements",
                    "columns": [
                        "name"
                    ],
                    "values": [
                        [
                            "cpu"
                        ]
                    ]
                }
            ]
        }
    ]
}
)");
  CHECK(f.ask("GET", target_of("SHOW MEASUREMENTS;SHOW DATABASES", "&chunked=true&chunk_size=1"))
            .body ==
        R"({"results":[{"statement_id":0,"series":[{"name":"measurements","columns":["name"],)"
        R"("values":[["cpu"]],"partial":true}],"partial":true}]})"
        "\n"
        R"({"results":[{"statement_id":0,"series":[{"name":"measurements","columns":["name"],)"
        R"("values":[["mem"]]}]}]})"
        "\n"
        R"({"results":[{"statement_id":1,"series":[{"name":"databases","columns":["name"],)"
        R"("values":[["default"]]}]}]})"
        "\n");
  const Answer csv = f.ask("GET", target_of("SHOW TAG VALUES WITH KEY = host;SHOW DATABASES"), {},
                           "Accept: text/html, application/csv;q=0.9\r\n");
  CHECK(csv.header("content-type") == "text/csv");
  CHECK(csv.body ==
        "name,tags,key,value\ncpu,,host,a\ncpu,,host,b\n\nname,tags,name\ndatabases,,default\n");
  CHECK(f.ask("GET", target_of("SHOW TAG VALUES WITH KEY = host"), {}, "Accept: */*, text/csv\r\n")
            .header("content-type") == "application/json");

  // What a name stands for comes with it.
  CHECK(json_of(f.ask(
            "GET", target_of("SHOW SERIES WHERE host = $h",
                             "&params=" +
                                 encoded(R"({"h":"b"})"))))["results"][0]["series"][0]["values"] ==
        nlohmann::json{{"cpu,host=b"}});
  for (
      const auto& [params, keys] : std::initializer_list<std::pair<const char*, std::size_t>>{
          {R"({"h":{"string":"b"},"m":{"identifier":"cpu"},"n":{"integer":1},"r":{"regex":"b|c"}})",
           1},
          {R"({"h":{"string":"none"},"m":{"ident":"cpu"},"n":{"int":1},"r":{"regex":"."}})", 0}}) {
    const auto result = json_of(
        f.ask("GET", target_of("SHOW SERIES FROM $m WHERE host = $h AND host =~ $r LIMIT $n",
                               "&params=" + encoded(params))))["results"][0];
    CHECK_FALSE(result.contains("error"));
    CHECK((result.contains("series") ? result["series"][0]["values"].size() : 0) == keys);
  }
  CHECK(json_of(f.ask("GET", target_of("SHOW MEASUREMENTS", "&params=null")))["results"].size() ==
        1);
}

TEST_CASE("influx: what a request asks wrongly is refused as a whole, with the place of it") {
  ServerFixture f;
  struct Case {
    std::string target;
    const char* error;
  };
  for (const Case& c :
       {Case{target_of("SHOW DATABASES;\nSHOW TAGS"),
             "error parsing query: found TAGS, expected CONTINUOUS, DATABASES, DIAGNOSTICS, FIELD, "
             "GRANTS, MEASUREMENT, MEASUREMENTS, QUERIES, RETENTION, SERIES, SHARD, SHARDS, STATS, "
             "SUBSCRIPTIONS, TAG, USERS at line 2, char 6"},
        Case{target_of("SHOW DATABASES", "&epoch=d"), "epoch is none of ns, u, ms, s, m, h"},
        Case{target_of("SHOW DATABASES", "&chunk_size=1x"), "chunk_size is no whole number"},
        Case{target_of("SHOW DATABASES", "&params=%5B%5D"), "params is no JSON object"},
        Case{target_of("SHOW DATABASES", "&params=" + encoded(R"({"a":{"string":1}})")),
             "params: a is no text, number or truth value"},
        Case{target_of("SHOW DATABASES", "&params=" + encoded(R"({"a":{"integer":1.5}})")),
             "params: a is no text, number or truth value"},
        Case{target_of("SHOW DATABASES", "&params=" + encoded(R"({"a":{"x":true}})")),
             "params: a is no text, number or truth value"},
        Case{target_of("SHOW DATABASES", "&params=" + encoded(R"({"a":{"int":1,"float":2}})")),
             "params: a is no text, number or truth value"},
        Case{target_of("SHOW DATABASES", "&params=" + encoded(R"({"a":[]})")),
             "params: a is no text, number or truth value"}}) {
    CAPTURE(c.target);
    const Answer answer = f.ask("GET", c.target);
    CHECK(answer.status == 400);
    CHECK(json_of(answer)["error"] == c.error);
  }
}

TEST_CASE("influx: retention policies tell how long a database is kept") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write", "cpu v=1 1").status == 204);
  const auto duration = [&f](const char* database) {
    const nlohmann::json answer =
        json_of(f.ask("GET", target_of(std::string("SHOW RETENTION POLICIES ON ") + database)));
    return answer["results"][0]["series"][0]["values"][0][1];
  };
  CHECK(duration("default") == "0s");
  REQUIRE(f.ask("POST", "/api/v1/retention?ns=default&select=*/*&keep=90m&yes=true").status == 200);
  CHECK(duration("default") == "1h30m0s");
  REQUIRE(f.ask("POST", "/api/v1/retention?ns=default&select=*/*&keep=45s&yes=true").status == 200);
  CHECK(duration("default") == "45s");
  struct Shard {
    const char* keep;
    const char* shard;
  };
  for (const Shard& c : {Shard{"47h", "1h0m0s"}, Shard{"48h", "24h0m0s"}, Shard{"180d", "24h0m0s"},
                         Shard{"181d", "168h0m0s"}, Shard{"forever", "168h0m0s"}}) {
    CAPTURE(c.keep);
    REQUIRE(f.ask("POST",
                  std::string("/api/v1/retention?ns=default&select=*/*&yes=true&keep=") + c.keep)
                .status == 200);
    const nlohmann::json answer =
        json_of(f.ask("GET", target_of("SHOW RETENTION POLICIES ON default")));
    CHECK(answer["results"][0]["series"][0]["values"][0][2] == c.shard);
  }
}

TEST_CASE("influx: a statement is explained, and with ANALYZE counted") {
  ServerFixture f;
  REQUIRE(
      f.ask("POST", "/write", "cpu,host=a v=1,w=1 1\ncpu,host=b v=2 2\ncpu,host=b v=2 3").status ==
      204);
  const auto lines = [&f](const std::string& statement) {
    std::string text;
    const nlohmann::json answer = json_of(f.ask("GET", target_of(statement)))["results"][0];
    if (answer.contains("error")) return "error: " + answer["error"].get<std::string>();
    for (const nlohmann::json& row : answer["series"][0]["values"])
      text += row[0].get<std::string>() + "\n";
    return text;
  };
  CHECK(lines("EXPLAIN SELECT v FROM cpu") ==
        "COLUMNS: time, v\nTIME RANGE: from the beginning to the end\nNUMBER OF SERIES: 2\n"
        "NUMBER OF GROUPS: 1\n");
  CHECK(lines("EXPLAIN SELECT mean(v) FROM cpu WHERE time >= 0s AND time < 1h GROUP BY time(10m), "
              "host") ==
        "COLUMNS: time, mean\nTIME RANGE: from 1970-01-01T00:00:00.000000000Z to "
        "1970-01-01T00:59:59.999999999Z\nNUMBER OF SERIES: 2\nNUMBER OF GROUPS: 2\nWINDOW: 10m\n"
        "NUMBER OF WINDOWS OF A GROUP: about 6\n");
  const std::string analyzed = lines("EXPLAIN ANALYZE SELECT v FROM cpu GROUP BY host");
  CHECK(analyzed.find("SERIES ANSWERED: 2\nROWS ANSWERED: 3\nPOINTS READ: 3\n") !=
        std::string::npos);
  CHECK(lines("EXPLAIN SELECT v FROM nope").find("NUMBER OF SERIES: 0\n") != std::string::npos);
  CHECK(lines("EXPLAIN SELECT v INTO x FROM cpu").starts_with("error: "));
  CHECK(json_of(f.ask("GET",
                      target_of("EXPLAIN SELECT v FROM cpu", "&db=nodb")))["results"][0]["error"] ==
        "database not found: nodb");
}

TEST_CASE("influx: who asks is shown among the running queries, and nobody else is killed") {
  ServerFixture f;
  const nlohmann::json answer = json_of(f.ask("GET", target_of("SHOW QUERIES", "&db=x")));
  const nlohmann::json& series = answer["results"][0]["series"][0];
  CHECK(series["columns"] == nlohmann::json{"qid", "query", "database", "duration", "status"});
  REQUIRE(series["values"].size() == 1);
  CHECK(series["values"][0][1] == "SHOW QUERIES");
  CHECK(series["values"][0][2] == "x");
  CHECK(series["values"][0][4] == "running");
  CHECK(json_of(f.ask("GET", target_of("KILL QUERY 77")))["results"][0]["error"] ==
        "no such query id: 77");
}

TEST_CASE("influx: a token sees the names of what it may read") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write?db=a", "cpu,device=x v=1 1\nmem,device=y v=1 1").status == 204);
  REQUIRE(f.ask("POST", "/write?db=b", "disk,device=z v=1 1").status == 204);
  const std::string token = json_of(Client::over_unix(f.settings.http.socket)
                                        .ask("POST", "/api/v1/tokens?ns=a&read=x/*"))["token"];
  const auto result = [&](const char* query) {
    return json_of(f.ask("GET", target_of(query), {}, bearer(token)))["results"][0];
  };
  CHECK(result("SHOW DATABASES")["series"][0]["values"] == nlohmann::json{{"a"}});
  CHECK(result("SHOW MEASUREMENTS ON a")["series"][0]["values"] == nlohmann::json{{"cpu"}});
  CHECK(result("SHOW SERIES ON a")["series"][0]["values"] == nlohmann::json{{"cpu,device=x"}});
  CHECK(result("SHOW MEASUREMENTS ON b")["error"] == "database not found: b");
  CHECK(result("SHOW RETENTION POLICIES ON b")["error"] == "database not found: b");
  CHECK(result("CREATE DATABASE c")["error"].is_string());
}

TEST_CASE("influx: one refresh of a dashboard is one record, of the devices that it reached") {
  ServerFixture f([](config::Settings& settings) { settings.audit.mode = "strict"; });
  REQUIRE(f.ask("POST", "/write?db=a", "cpu,device=x v=1 1\nmem,device=y v=1 1").status == 204);
  const auto administer = [&f](std::string_view method, std::string_view target) {
    return json_of(Client::over_unix(f.settings.http.socket).ask(method, target));
  };
  const auto records = [&] {
    std::vector<nlohmann::json> found;
    const nlohmann::json all = administer("GET", "/api/v1/audit");
    for (const nlohmann::json& each : all["records"]) {
      if (each["operation"] == "influx.query") found.push_back(each);
    }
    return found;
  };
  const auto refresh = [&] {
    CHECK(f.ask("GET", target_of("SHOW TAG KEYS ON a FROM cpu;SHOW SERIES ON a FROM cpu;"
                                 "SHOW MEASUREMENTS ON a WHERE device='x'"))
              .status == 200);
    CHECK(f.ask("POST", "/query", "q=SHOW+FIELD+KEYS+FROM+cpu&db=a", kForm).status == 200);
  };
  refresh();
  refresh();
  REQUIRE(records().size() == 1);
  CHECK(records()[0]["namespace"] == "a");
  REQUIRE(records()[0]["devices"].size() == 1);
  CHECK(records()[0]["devices"][0]["device"] == "x");
  CHECK(records()[0]["more_devices"] == 0);
  // What it did not name yet has a record of its own, and so has a change or a new minute.
  CHECK(f.ask("GET", target_of("SHOW MEASUREMENTS ON a")).status == 200);
  REQUIRE(records().size() == 2);
  CHECK(records()[1]["devices"].size() == 2);
  CHECK(f.ask("POST", target_of("CREATE DATABASE c")).status == 200);
  REQUIRE(records().size() == 3);
  CHECK(records()[2]["detail"] == "makes a namespace");
  refresh();
  CHECK(records().size() == 3);
  f.clock.advance(60'000'000'000);
  refresh();
  CHECK(records().size() == 4);
}

}  // namespace edgecase::http::test
