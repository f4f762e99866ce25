// Statements that change what there is, over the wire: what goes, what stays, who may.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

using Json = nlohmann::json;

std::string question(std::string_view statement) {
  std::string target = "/query?db=d&q=";
  for (const char c : statement) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    target += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return target;
}

constexpr char kSchemaLines[] =
    "cpu,host=a,core=0 v=1,w=2 1000\ncpu,host=a,core=0 v=2 2000\ncpu,host=b v=3 1000\n"
    "mem,host=a u=1i 1000\nmem,host=b u=2i 5000";

struct Schema {
  explicit Schema(void (*adjust)(config::Settings&) = nullptr) : f(adjust) {}

  Json post(const std::string& statement, const std::string& token = {}) {
    const Answer answer = token.empty() ? administer("POST", question(statement))
                                        : f.ask("POST", question(statement), {}, bearer(token));
    const Json json = json_of(answer);
    return json.contains("results") ? json["results"][0] : json;
  }
  // From the first token on nobody else is served without one.
  Answer administer(std::string_view method, std::string_view target) const {
    return Client::over_unix(f.settings.http.socket).ask(method, target);
  }
  void fill() { REQUIRE(f.ask("POST", "/write?db=d", kSchemaLines).status == 204); }
  // "cpu,core=0,host=a cpu,host=b …"
  std::string series() {
    const Json answer = post("SHOW SERIES");
    std::string text;
    if (!answer.contains("series")) return text;
    for (const Json& row : answer["series"][0]["values"])
      text += (text.empty() ? "" : " ") + row[0].get<std::string>();
    return text;
  }
  std::string token(const std::string& scopes) {
    return json_of(administer("POST", "/api/v1/tokens?ns=d&" + scopes))["token"];
  }

  ServerFixture f;
};

const Json kDone{{"statement_id", 0}};
const std::string kAll = "cpu,core=0,host=a cpu,host=b mem,host=a mem,host=b";

}  // namespace

TEST_CASE("schema: a statement erases the series that it names, and no other") {
  struct Case {
    const char* statement;
    std::string left;
  };
  for (const Case& c : {
           Case{"DELETE FROM cpu", "mem,host=a mem,host=b"},
           Case{"DROP MEASUREMENT cpu", "mem,host=a mem,host=b"},
           Case{"DROP SERIES FROM /^c.u$/", "mem,host=a mem,host=b"},
           Case{"DROP SERIES FROM cpu, mem WHERE host =~ /^b/", "cpu,core=0,host=a mem,host=a"},
           Case{"DROP SERIES WHERE host = 'a'", "cpu,host=b mem,host=b"},
           Case{"DROP SERIES FROM cpu WHERE host = 'a' OR host = 'b'", "mem,host=a mem,host=b"},
           Case{"DROP SERIES FROM cpu WHERE host != 'a'",
                "cpu,core=0,host=a mem,host=a mem,host=b"},
           Case{"DROP SERIES FROM cpu WHERE core = ''", "cpu,core=0,host=a mem,host=a mem,host=b"},
           Case{"DELETE WHERE host = 'b' AND time = 1000",
                "cpu,core=0,host=a mem,host=a mem,host=b"},
           Case{"DELETE FROM cpu WHERE host = 'a' AND time <= 1000", kAll},
           Case{"DELETE FROM cpu WHERE host = 'a' AND time <= 2000",
                "cpu,host=b mem,host=a mem,host=b"},
           Case{"DELETE FROM cpu WHERE time > 5000 AND time < 4000", kAll},
           Case{"DELETE FROM cpu WHERE nokey = 'x'", kAll},
           Case{"DELETE FROM nope", kAll},
           Case{"DROP MEASUREMENT nope", kAll},
           Case{"DROP DATABASE nope", kAll},
           Case{"DROP RETENTION POLICY nope ON d", kAll},
           Case{"DELETE", kAll},
       }) {
    CAPTURE(c.statement);
    Schema schema;
    schema.fill();
    const Answer answer = schema.f.ask("POST", question(c.statement));
    const bool is_wrong = std::string_view(c.statement) == "DELETE";
    CHECK(answer.status == (is_wrong ? 400 : 200));
    if (!is_wrong) CHECK(json_of(answer)["results"][0] == kDone);
    CHECK(schema.series() == c.left);
  }
}

TEST_CASE("schema: what cannot be done is an error in words, and nothing is done of it") {
  Schema schema;
  schema.fill();
  struct Case {
    const char* statement;
    std::string error;
  };
  for (const Case& c : {
           Case{"DELETE FROM cpu WHERE v = 1",
                "fields not supported in WHERE clause during deletion"},
           Case{"DROP SERIES FROM cpu WHERE v > 1 AND host = 'a'",
                "fields not supported in WHERE clause during deletion"},
           Case{"DROP SERIES FROM cpu WHERE host > 'a'", "invalid condition in WHERE"},
           Case{"DROP SERIES FROM cpu WHERE time > 1",
                "DROP SERIES doesn't support time in WHERE clause"},
           Case{"DELETE FROM cpu WHERE host", "invalid condition expression: host"},
           Case{"DELETE FROM cpu WHERE host = 5", "invalid condition in WHERE"},
           Case{"DELETE FROM cpu WHERE true", "invalid condition in WHERE"},
           Case{"DELETE FROM cpu WHERE 'a' = 'a'", "invalid condition in WHERE"},
           Case{"DELETE FROM cpu WHERE host =~ 'a'", "expected regex"},
           Case{"DELETE FROM cpu WHERE host::field = 'a'", "invalid condition in WHERE"},
           Case{"DELETE FROM cpu WHERE host =~ /(/", "error parsing regexp"},
           Case{"DELETE FROM /(/", "error parsing regexp"},
           Case{"CREATE DATABASE e WITH DURATION 30m",
                "retention policy duration must be at least 1h0m0s"},
           Case{"CREATE DATABASE e WITH DURATION 2h SHARD DURATION 3h",
                "retention policy duration must be greater than the shard duration"},
           Case{"CREATE DATABASE e WITH DURATION 1d NAME year", "edgecase retention set --help"},
           Case{"CREATE DATABASE d WITH DURATION 1h",
                "retention policy conflicts with an existing policy"},
           Case{"CREATE RETENTION POLICY year ON d DURATION 365d REPLICATION 1",
                "edgecase retention set --help"},
           Case{"CREATE RETENTION POLICY autogen ON nope DURATION 1d REPLICATION 1",
                "database not found: nope"},
           Case{"ALTER RETENTION POLICY year ON d DURATION 1d", "retention policy not found: year"},
           Case{"ALTER RETENTION POLICY autogen ON d DURATION 10m",
                "retention policy duration must be at least 1h0m0s"},
           Case{"DROP RETENTION POLICY autogen ON d", "autogen holds all readings"},
           Case{"DROP DATABASE _rejected", "the store's own"},
       }) {
    CAPTURE(c.statement);
    const Json result = schema.post(c.statement);
    REQUIRE(result.contains("error"));
    CHECK(result["error"].get<std::string>().find(c.error) != std::string::npos);
    CHECK(schema.series() == kAll);
  }
  CHECK(schema.post("SHOW RETENTION POLICIES ON e")["error"] == "database not found: e");
  for (const char* statement :
       {"DELETE FROM cpu", "DROP SERIES FROM cpu", "DROP MEASUREMENT cpu"}) {
    CAPTURE(statement);
    std::string elsewhere = question(statement);
    elsewhere.replace(elsewhere.find("db=d"), 4, "db=nodb");
    const Answer lost = schema.f.ask("POST", elsewhere);
    CHECK(json_of(lost)["results"][0]["error"] == "database not found: nodb");
    // What erases is not asked for by following a link.
    const Answer got = schema.f.ask("GET", question(statement));
    CHECK(json_of(got)["results"][0]["error"].get<std::string>().find("POST") != std::string::npos);
    CHECK(schema.series() == kAll);
  }
}

TEST_CASE("schema: what is written afterwards is new, and an earlier copy stays out") {
  Schema schema;
  schema.fill();
  const Answer dropped = schema.f.ask("POST", question("DROP MEASUREMENT cpu"));
  const std::string number(dropped.header("x-edgecase-erasure"));
  REQUIRE_FALSE(number.empty());
  const Json certificate = json_of(schema.f.ask("GET", "/api/v1/erasures?id=" + number));
  CHECK(certificate["state"] == "done");
  CHECK(certificate["readings"] == 4);
  const Json fence = json_of(schema.f.ask("GET", "/api/v1/fences"))["fences"].at(0);
  CHECK(fence["refuses"] == "copies");
  const std::string copy = "/write?db=d&as_of=" + certificate["asked"].get<std::string>();
  CHECK(schema.f.ask("POST", copy, "cpu,host=b v=3 1000").header("x-edgecase-erased") == "1");
  CHECK(schema.series() == "mem,host=a mem,host=b");
  schema.fill();
  CHECK(schema.series() == kAll);
}

TEST_CASE("schema: a database that is dropped is gone with its rule, and made anew") {
  Schema schema;
  CHECK(schema.post(
            "CREATE DATABASE d WITH DURATION 3d REPLICATION 2 SHARD DURATION 2h NAME autogen") ==
        kDone);
  const auto duration = [&schema] {
    return schema.post("SHOW RETENTION POLICIES ON d")["series"][0]["values"][0][1];
  };
  CHECK(duration() == "72h0m0s");
  CHECK(schema.post("CREATE DATABASE d WITH DURATION 3d") == kDone);
  CHECK(schema.post("ALTER RETENTION POLICY autogen ON d DURATION 4000w DEFAULT") == kDone);
  schema.fill();
  CHECK(schema.post("ALTER RETENTION POLICY autogen ON d SHARD DURATION 1d") == kDone);
  CHECK(schema.post("CREATE RETENTION POLICY autogen ON d DURATION INF REPLICATION 1 DEFAULT") ==
        kDone);
  CHECK(duration() == "0s");
  CHECK(schema.series() == kAll);
  CHECK(schema.post("ALTER RETENTION POLICY autogen ON d DURATION 1h") == kDone);
  CHECK(duration() == "1h0m0s");
  CHECK(schema.post("DROP DATABASE d") == kDone);
  CHECK(schema.post("SHOW SERIES")["error"] == "database not found: d");
  CHECK(schema.post("CREATE DATABASE d") == kDone);
  CHECK(duration() == "0s");
  schema.fill();
  CHECK(schema.series() == kAll);
  CHECK(schema.post("DROP DATABASE default") == kDone);
}

TEST_CASE("schema: a token does what its scopes say, whole or not at all") {
  Schema schema;
  schema.fill();
  struct Case {
    const char* scopes;
    const char* statement;
    bool is_done;
  };
  for (const Case& c : {
           Case{"read=*/*&write=*/*", "DELETE FROM nope", false},
           Case{"erase=a/*", "DELETE FROM cpu", false},
           Case{"erase=a/*", "DELETE FROM cpu WHERE host = 'zz'", true},
           Case{"erase=a/*&write=*/*", "DROP DATABASE d", false},
           Case{"write=*/*", "ALTER RETENTION POLICY autogen ON d DURATION INF", true},
           Case{"write=*/*", "ALTER RETENTION POLICY autogen ON d DURATION 1d", false},
           Case{"write=a/*&erase=*/*", "ALTER RETENTION POLICY autogen ON d DURATION 1d", false},
           Case{"erase=a/*", "DELETE FROM cpu WHERE host = 'a'", true},
           Case{"erase=*/*", "DROP SERIES FROM cpu", true},
           Case{"write=*/*&erase=*/*", "ALTER RETENTION POLICY autogen ON d DURATION 1d", true},
           Case{"erase=*/*", "DROP DATABASE d", true},
       }) {
    CAPTURE(c.scopes);
    CAPTURE(c.statement);
    const auto stored = [&schema] {
      return schema.administer("GET", "/api/v1/query?ns=d&format=csv").body;
    };
    const std::string before = stored();
    const Json result = schema.post(c.statement, schema.token(c.scopes));
    CHECK(result.contains("error") == !c.is_done);
    if (!c.is_done) CHECK(stored() == before);
  }
}

TEST_CASE("schema: each statement that changes something is begun and done in the audit log") {
  Schema schema([](config::Settings& settings) { settings.audit.mode = "strict"; });
  schema.fill();
  CHECK(schema.post("DELETE FROM cpu WHERE host = 'a'") == kDone);
  CHECK(schema.post("ALTER RETENTION POLICY autogen ON d DURATION INF") == kDone);
  CHECK(schema.post("DROP DATABASE d") == kDone);
  std::vector<std::string> told;
  const Json all = json_of(schema.administer("GET", "/api/v1/audit"));
  for (const Json& each : all["records"]) {
    const std::string operation = each["operation"];
    if (operation == "erase" || operation == "retention.set" || operation == "namespace.drop") {
      CHECK(each["namespace"] == "d");
      told.push_back(operation + " " + each["result"].get<std::string>());
    }
  }
  CHECK(told == std::vector<std::string>{"erase begun", "erase ok", "retention.set begun",
                                         "retention.set ok", "namespace.drop begun",
                                         "namespace.drop ok"});
}

}  // namespace edgecase::http::test
