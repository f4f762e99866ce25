// SHOW over what is stored. Answers are those of InfluxDB 1.6.7 to the same lines, but where a
// comment says otherwise.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/http_fixture.h"
#include "http/influx_query.h"
#include "influxql/statement.h"

namespace edgecase::http::test {
namespace {

constexpr char kLines[] =
    "cpu,host=a,region=eu usage=1.5,idle=2i 1000000000\n"
    "cpu,host=b,region=eu usage=2.5 2000000000\n"
    "cpu,host=c usage=2.5,ok=true 604800000000000\n"
    "mem,host=a,zone=q\\ 1 used=5i,free=3 1000000000\n"
    "disk,path=/ used=\"x\" 1000000000\n"
    "sp\\ ace,ta\\=g=v\\,1 f\\ 1=1 1000000000\n"
    "zed v=1 1000000000\n"
    "cpu,region=us usage=7 3000000000\n";

struct ShowRoom : ServerFixture {
  ShowRoom() { CHECK(ask("POST", "/write?db=d", kLines).status == 204); }

  // The first result, without its number.
  nlohmann::json result(const std::string& query) const {
    const Answer answer =
        ask("POST", "/query?db=d", query, "Content-Type: application/vnd.influxql\r\n");
    CHECK(answer.status == 200);
    nlohmann::json made = json_of(answer)["results"][0];
    made.erase("statement_id");
    return made;
  }
  // Its series as `NAME: CELL CELL, CELL …; NAME: …`, or its error.
  std::string told(const std::string& query) const {
    const nlohmann::json made = result(query);
    if (made.contains("error")) return "error: " + made["error"].get<std::string>();
    std::string text;
    for (const nlohmann::json& series : made.value("series", nlohmann::json::array())) {
      if (!text.empty()) text += "; ";
      text += series.value("name", std::string()) + ":";
      bool is_first = true;
      for (const nlohmann::json& row : series["values"]) {
        text += is_first ? "" : ",";
        is_first = false;
        for (const nlohmann::json& cell : row)
          text += " " + (cell.is_string() ? cell.get<std::string>() : cell.dump());
      }
    }
    return text;
  }
};

}  // namespace

TEST_CASE("influx show: names of what is stored, with their clauses") {
  const ShowRoom f;
  struct Case {
    const char* query;
    const char* told;
  };
  for (const Case& c : {
           Case{"SHOW MEASUREMENTS", "measurements: cpu, disk, mem, sp ace, zed"},
           Case{"SHOW MEASUREMENTS WITH MEASUREMENT =~ /e/", "measurements: mem, sp ace, zed"},
           Case{"SHOW MEASUREMENTS WITH MEASUREMENT = \"sp ace\"", "measurements: sp ace"},
           Case{"SHOW MEASUREMENTS WHERE host='a'", "measurements: cpu, mem"},
           Case{"SHOW MEASUREMENTS LIMIT 2 OFFSET 1", "measurements: disk, mem"},
           Case{"SHOW MEASUREMENTS OFFSET 9", ""},
           Case{"SHOW SERIES",
                ": cpu,host=a,region=eu, cpu,host=b,region=eu, cpu,host=c, cpu,region=us, "
                "disk,path=/, mem,host=a,zone=q\\ 1, sp\\ ace,ta\\=g=v\\,1, zed"},
           Case{"SHOW SERIES FROM cpu WHERE region='eu'",
                ": cpu,host=a,region=eu, cpu,host=b,region=eu"},
           Case{"SHOW SERIES LIMIT 2 OFFSET 1", ": cpu,host=b,region=eu, cpu,host=c"},
           Case{"SHOW SERIES WHERE host = '' AND region =~ /./", ": cpu,region=us"},
           Case{"SHOW TAG KEYS", "cpu: host, region; disk: path; mem: host, zone; sp ace: ta=g"},
           Case{"SHOW TAG KEYS FROM cpu, mem", "cpu: host, region; mem: host, zone"},
           Case{"SHOW TAG KEYS FROM /e/ LIMIT 1", "mem: host; sp ace: ta=g"},
           Case{"SHOW TAG KEYS LIMIT 1 OFFSET 1", "cpu: region; mem: zone"},
           Case{"SHOW TAG KEYS WHERE host='a'", "cpu: host, region; mem: host, zone"},
           Case{"SHOW TAG KEYS FROM nope", ""},
           Case{"SHOW TAG VALUES WITH KEY = host", "cpu: host a, host b, host c; mem: host a"},
           Case{"SHOW TAG VALUES FROM cpu WITH KEY IN (host,region)",
                "cpu: host a, host b, host c, region eu, region us"},
           Case{"SHOW TAG VALUES WITH KEY =~ /o/",
                "cpu: host a, host b, host c, region eu, region us; mem: host a, zone q 1"},
           Case{"SHOW TAG VALUES WITH KEY != host",
                "cpu: region eu, region us; disk: path /; mem: zone q 1; sp ace: ta=g v,1"},
           Case{"SHOW TAG VALUES WITH KEY !~ /o/", "disk: path /; sp ace: ta=g v,1"},
           Case{"SHOW TAG VALUES WITH KEY IN (host,region) LIMIT 1 OFFSET 1", "cpu: host b"},
           Case{"SHOW TAG VALUES WITH KEY=host WHERE region='eu'", "cpu: host a, host b"},
           Case{"SHOW TAG VALUES WITH KEY=host WHERE host=~/a|b/",
                "cpu: host a, host b; mem: host a"},
           Case{"SHOW TAG VALUES WITH KEY=host WHERE _name='mem'", "mem: host a"},
           Case{"SHOW TAG VALUES WITH KEY=host WHERE usage = 1 AND host='a'",
                "cpu: host a; mem: host a"},
           Case{"SHOW TAG VALUES WITH KEY=host WHERE usage = 1 OR host='a'",
                "cpu: host a, host b, host c; mem: host a"},
           Case{"SHOW FIELD KEYS",
                "cpu: idle integer, ok boolean, usage float; disk: used string; "
                "mem: free float, used integer; sp ace: f 1 float; zed: v float"},
           Case{"SHOW FIELD KEYS FROM cpu LIMIT 1", "cpu: idle integer"},
           Case{"SHOW FIELD KEYS FROM d.autogen.zed", "zed: v float"},
       }) {
    CAPTURE(c.query);
    CHECK(f.told(c.query) == c.told);
  }
  CHECK(f.result("SHOW SERIES LIMIT 1")["series"][0] ==
        nlohmann::json{{"columns", {"key"}}, {"values", {{"cpu,host=a,region=eu"}}}});
  CHECK(f.result("SHOW FIELD KEYS FROM zed")["series"][0]["columns"] ==
        nlohmann::json{"fieldKey", "fieldType"});
  CHECK(f.result("SHOW TAG VALUES FROM disk WITH KEY = path")["series"][0]["columns"] ==
        nlohmann::json{"key", "value"});
}

TEST_CASE("influx show: a field has each type that its series have, whichever comes first") {
  const ShowRoom f;
  REQUIRE(
      f.ask("POST", "/write?db=d", "mix,h=a v=1.5 1\nmix,h=b v=2i 1\nmix,h=c v=\"t\" 1\n").status ==
      204);
  CHECK(f.told("SHOW FIELD KEYS FROM mix") == "mix: v float, v integer, v string");
}

TEST_CASE("influx show: how many there are") {
  const ShowRoom f;
  REQUIRE(f.ask("POST", "/query?q=CREATE+DATABASE+e").status == 200);
  struct Case {
    const char* query;
    const char* told;
  };
  for (const Case& c : {
           Case{"SHOW SERIES CARDINALITY", ": 8"},
           Case{"SHOW SERIES EXACT CARDINALITY", "cpu: 4; disk: 1; mem: 1; sp ace: 1; zed: 1"},
           Case{"SHOW SERIES EXACT CARDINALITY WHERE host='a'", "cpu: 1; mem: 1"},
           Case{"SHOW MEASUREMENT CARDINALITY", ": 5"},
           Case{"SHOW MEASUREMENT EXACT CARDINALITY", ": 5"},
           Case{"SHOW MEASUREMENT CARDINALITY WHERE host='a'", ": 2"},
           Case{"SHOW TAG KEY CARDINALITY", "cpu: 2; disk: 1; mem: 2; sp ace: 1"},
           Case{"SHOW TAG KEY CARDINALITY FROM cpu LIMIT 1 OFFSET 1", ""},
           Case{"SHOW TAG VALUES CARDINALITY WITH KEY = host", "cpu: 3; mem: 1"},
           Case{"SHOW FIELD KEY CARDINALITY", "cpu: 3; disk: 1; mem: 2; sp ace: 1; zed: 1"},
           Case{"SHOW SERIES EXACT CARDINALITY ON e", ""},
           Case{"SHOW SERIES CARDINALITY ON e", ": 0"},
           Case{"SHOW MEASUREMENT CARDINALITY ON e", ": 0"},
           Case{"SHOW SERIES ON e", ""},
       }) {
    CAPTURE(c.query);
    CHECK(f.told(c.query) == c.told);
  }
  CHECK(f.result("SHOW SERIES CARDINALITY")["series"][0]["columns"] ==
        nlohmann::json{"cardinality estimation"});
  CHECK(f.result("SHOW SERIES EXACT CARDINALITY")["series"][0]["columns"] ==
        nlohmann::json{"count"});
}

// InfluxDB looks which shards a time is in; here a series is listed where it has a reading then.
TEST_CASE("influx show: a condition of time lists what has readings then") {
  const ShowRoom f;
  CHECK(f.told("SHOW TAG VALUES WITH KEY=host WHERE time > now() - 1h") == "");
  CHECK(f.told("SHOW TAG VALUES WITH KEY=host WHERE time >= 2s AND time < 3s") == "cpu: host b");
  CHECK(f.told("SHOW TAG VALUES WITH KEY=host WHERE time > 100s AND host =~ /./") == "cpu: host c");
  CHECK(f.told("SHOW TAG KEYS WHERE time < 2s AND host = 'a'") ==
        "cpu: host, region; mem: host, zone");
  CHECK(f.told("SHOW MEASUREMENTS WHERE time > 5s AND time < 2s") == "");
}

TEST_CASE("influx show: what is not obeyed is refused, not passed over") {
  const ShowRoom f;
  struct Case {
    const char* query;
    const char* error;
  };
  for (const Case& c : {
           Case{"SHOW MEASUREMENTS ON nope", "database not found: nope"},
           Case{"SHOW SERIES CARDINALITY ON nope", "database not found: nope"},
           Case{"SHOW TAG KEYS FROM nope.cpu", "retention policy not found: nope"},
           Case{"SHOW TAG KEYS FROM e.autogen.cpu",
                "SHOW names another database behind ON, not behind FROM, here"},
           Case{"SHOW TAG KEYS ORDER BY time DESC", "SHOW in descending order is not offered here"},
           Case{"SHOW SERIES EXACT CARDINALITY GROUP BY host",
                "SHOW with GROUP BY is not offered here"},
           Case{"SHOW TAG KEYS WHERE host > 'a'", "invalid tag comparison operator"},
           Case{"SHOW TAG KEYS WHERE usage > 1", "invalid tag comparison operator"},
           Case{"SHOW TAG KEYS WHERE host", "invalid condition in WHERE"},
           Case{"SHOW TAG KEYS WHERE host + 'a'", "invalid condition in WHERE"},
       }) {
    CAPTURE(c.query);
    CHECK(f.told(c.query) == "error: " + std::string(c.error));
  }
  for (const char* query : {"SHOW TAG KEYS WHERE host =~ /(/", "SHOW TAG KEYS FROM /(/",
                            "SHOW TAG VALUES WITH KEY =~ /(/"}) {
    CAPTURE(query);
    CHECK(f.told(query).starts_with("error: "));
  }
}

TEST_CASE("influx show: what is erased is listed no more, and readings without a line are") {
  const ShowRoom f;
  REQUIRE(f.ask("POST", "/api/v1/readings?ns=d",
                R"({"device":"kitchen","sensor":"temp","value":1,"time":5})")
              .status == 200);
  CHECK(f.told("SHOW SERIES FROM temp") == ": temp,device=kitchen");
  CHECK(f.told("SHOW FIELD KEYS FROM temp") == "temp: value float");
  REQUIRE(f.ask("POST", "/api/v1/erase?ns=d&select=kitchen/*&yes=true&wait=10s").status / 100 == 2);
  CHECK(f.told("SHOW SERIES FROM temp") == "");
}

TEST_CASE("influx show: what is erased while it is listed cuts what was given, not what comes") {
  const ShowRoom f;
  auto statements = influxql::parse_statements("SHOW MEASUREMENTS", 1);
  REQUIRE(statements.ok());
  influxql::Asking asking;
  asking.principal = {auth::PrincipalKind::LocalSocket, "uid 0", nullptr};
  asking.database = "d";
  auto rows = show_names(std::move(statements->front()), asking, *f.queries, true);
  REQUIRE(rows.ok());
  influxql::SeriesHead head;
  std::vector<influxql::Cell> row;
  REQUIRE(*(*rows)->next_series(head));
  REQUIRE(*(*rows)->next_row(row));
  CHECK(row[0].text == "cpu");
  query::GivenReadings before = (*rows)->take_given();
  CHECK_FALSE(before.is_revoked());
  // The device of a line without a tag for it is its measurement.
  REQUIRE(f.ask("POST", "/api/v1/erase?ns=d&select=disk/*&yes=true&wait=10s").status / 100 == 2);
  CHECK(before.is_revoked());
  (*rows)->let_go();
  REQUIRE(*(*rows)->next_row(row));
  CHECK(row[0].text == "mem");
  CHECK_FALSE((*rows)->take_given().is_revoked());
}

}  // namespace edgecase::http::test
