// What a question is about, and how much it may take.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {

TEST_CASE("http: several selectors, and series by what they are called where they came from") {
  ServerFixture f;
  REQUIRE(f.ask("POST", "/write",
                "cpu,host=pi,cpu=0 idle=1,user=2 1\ncpu,host=nas,cpu=0 idle=3 1\n"
                "mem,host=pi used=4 1")
              .status == 204);
  REQUIRE(f.ask("POST", "/api/v1/readings",
                R"([{"device":"pi","sensor":"temp","value":5,"time":1},)"
                R"({"device":"attic","sensor":"temp","value":6,"time":1}])")
              .status == 200);
  // Values, in the order of the answer.
  const auto values = [&f](const std::string& path, const std::string& asked) {
    const Answer answer = f.ask("GET", path + "?format=csv&" + asked);
    std::string all = std::to_string(answer.status) + ":";
    std::istringstream lines(answer.body);
    std::string line;
    std::getline(lines, line);
    while (answer.status == 200 && std::getline(lines, line)) {
      const std::size_t end = line.rfind(',');
      const std::size_t begin = line.rfind(',', end - 1) + 1;
      all += " " + line.substr(begin, end - begin);
    }
    return all;
  };
  for (const std::string path : {"/api/v1/query", "/api/v1/last"}) {
    CHECK(values(path, "select=pi/temp&select=attic/temp&select=*/temp") == "200: 6 5");
    CHECK(values(path, "measurement=cpu") == "200: 3 1 2");
    CHECK(values(path, "measurement=cpu&measurement=mem&tag=host=pi") == "200: 1 2 4");
    CHECK(values(path, "tag=cpu=0&tag=host=pi&field=idle") == "200: 1");
    CHECK(values(path, "select=pi&measurement=c*&field=u*") == "200: 2");
    // What came by names has the identity that they give.
    CHECK(values(path, "measurement=temp&tag=device=pi&field=value") == "200: 5");
    CHECK(values(path, "measurement=none") == "200:");
    CHECK(values(path, "select=none/x&select=no/y") == "404:");
  }
  // One that is not there is told, and the others are answered.
  for (const char* path : {"/api/v1/query", "/api/v1/last", "/api/v1/series", "/api/v1/where"}) {
    CAPTURE(path);
    const Answer partly = f.ask("GET", std::string(path) + "?select=pi/temp&select=none/x");
    CHECK(partly.status == 200);
    const nlohmann::json left =
        nlohmann::json::parse(partly.header("x-edgecase-left-out"), nullptr, false);
    REQUIRE(left.is_array());
    CHECK(left[0]["device"] == "none");
    CHECK(left[0]["code"] == "not_found");
    // Patterns too, beside others; alone they are an empty answer. Only the names count for that.
    const auto left_out = [&](const std::string& asked) {
      const Answer answer = f.ask("GET", std::string(path) + "?" + asked);
      const nlohmann::json all =
          nlohmann::json::parse(answer.header("x-edgecase-left-out"), nullptr, false);
      std::string names;
      for (const nlohmann::json& each : all) {
        if (each.is_object())
          names += each.value("device", "") + "/" + each.value("sensor", "") + " ";
      }
      return names;
    };
    CHECK(left_out("select=pi/temp&select=none") == "none/* ");
    CHECK(left_out("select=no*/x&select=none/x&select=pi&select=attic/t*") == "none/x no*/x ");
    CHECK(left_out("select=pi&select=attic&measurement=cpu") == "");
  }
  CHECK(f.ask("GET", "/api/v1/query?select=none&select=no*/x").header("x-edgecase-left-out") == "");
  const nlohmann::json devices = json_of(f.ask("GET", "/api/v1/devices?measurement=cpu"));
  CHECK(devices["devices"].size() == 2);
  CHECK(devices["devices"][1]["series"] == 2);
  for (const char* wrong : {"tag=host", "tag=", "tag=host=", "measurement=", "select=a/b/c"})
    CHECK(f.ask("GET", std::string("/api/v1/last?") + wrong).status == 400);
  CHECK(f.ask("GET", "/api/v1/retention/preview?select=*/*&measurement=cpu").status == 400);
}

TEST_CASE("http: points are the least and the greatest readings of a drawing's windows") {
  ServerFixture f;
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += "m,device=d value=" + std::to_string(i * 37 % 1000) + " " + std::to_string(i) + "\n";
  REQUIRE(f.ask("POST", "/write?precision=ms", lines).status == 204);
  const std::string range =
      "/api/v1/query?select=d/m&from=1970-01-01T00:00:00Z&to=1970-01-01T00:00:01Z&format=csv";
  for (const std::size_t points : {4u, 5u, 10u, 500u}) {
    CAPTURE(points);
    const Answer answer = f.ask("GET", range + "&points=" + std::to_string(points));
    REQUIRE(answer.status == 200);
    const auto rows =
        static_cast<std::size_t>(std::count(answer.body.begin(), answer.body.end(), '\n')) - 1;
    CHECK(rows <= points);
    CHECK(rows >= points / 2);
    CHECK(answer.body.find(",0,float\n") != std::string::npos);
    CHECK(answer.body.find(",999,float\n") != std::string::npos);
  }
  for (const char* wrong : {"&points=3", "&points=x", "&points=10&agg=mean", "&points=10&every=1s"})
    CHECK(f.ask("GET", range + wrong).status == 400);
  CHECK(f.ask("GET", "/api/v1/query?select=d/m&points=10").status == 400);
}

TEST_CASE("http: by identity exactly these series are erased, and stay away") {
  ServerFixture f;
  const std::string lines =
      "cpu,host=pi,cpu=0 idle=1 1\ncpu,host=pi,cpu=1 idle=2 1\nmem,host=pi used=3 1";
  REQUIRE(f.ask("POST", "/write", lines).status == 204);
  const Answer preview = f.ask("GET", "/api/v1/erase/preview?measurement=cpu&tag=cpu=0");
  CHECK(json_of(preview)["series"] == 1);
  CHECK(json_of(preview)["devices"] == 0);
  const Answer erased = f.ask("POST", "/api/v1/erase?measurement=cpu&tag=host=pi&yes=true");
  REQUIRE(erased.status == 200);
  CHECK(json_of(erased)["series"] == 2);
  CHECK(json_of(erased)["devices"] == 0);
  CHECK(json_of(erased)["series_pseudonyms"].size() == 2);
  const std::string left = "pi/mem.used@1970-01-01T00:00:00.000000001Z=3\n";
  CHECK(f.stored() == left);
  CHECK(f.ask("POST", "/write", lines).status == 204);
  CHECK(f.stored() == left);
  // A series that was not there then is another one.
  CHECK(f.ask("POST", "/write", "cpu,host=pi,cpu=2 idle=4 1").status == 204);
  CHECK(f.stored() != left);
  const Answer partly =
      f.ask("POST", "/api/v1/erase?select=pi/mem.used&select=none/x&from=@0&to=@9&yes=true");
  CHECK(partly.status == 200);
  CHECK(partly.header("x-edgecase-left-out").find("none") != std::string::npos);
}

TEST_CASE("http: a fence holds for the series that was erased, not for one with the same name") {
  ServerFixture f;
  // Both are derived to be called pi/a.b.c, so that the later one gets a hash.
  const std::string first = "a.b,host=pi c=1 1", second = "a,host=pi b.c=2 1";
  REQUIRE(f.ask("POST", "/write", first + "\n" + second).status == 204);
  const auto erase = [&f](const char* measurement) {
    const std::string asked = std::string("/api/v1/erase?from=@0&to=@1&measurement=") + measurement;
    return json_of(f.ask("POST", asked))["series"] == 1;
  };
  const auto values = [&] {
    const std::string body = f.ask("GET", "/api/v1/last?format=line").body;
    return std::pair(body.find(first) != std::string::npos, body.find(second) != std::string::npos);
  };
  REQUIRE(values() == std::pair(true, true));
  REQUIRE(erase("a"));
  CHECK(values() == std::pair(true, false));
  static_cast<void>(f.ask("POST", "/write", second));
  CHECK(values() == std::pair(true, false));
  // The other one is not fenced: it is written again under the same time.
  CHECK(f.ask("POST", "/write", first).header("x-edgecase-erased").empty());
  CHECK(f.ask("POST", "/write", second).header("x-edgecase-erased") == "1");
}

TEST_CASE("http: what a question may take are settings, which a reload changes") {
  ServerFixture f([](config::Settings& settings) { settings.limits.query_windows = 3; });
  REQUIRE(f.ask("POST", "/write", "m v=1 1\nm v=2 2\nm v=3 3\nm v=4 4").status == 204);
  const auto windows = [&f](const std::string& more) {
    return f.ask("GET", "/api/v1/query?select=*/*&every=1ns&agg=sum&format=csv" + more);
  };
  // Over a range that is known it is refused before anything is read.
  const Answer refused = windows("&from=@0&to=@1");
  CHECK(refused.status == 400);
  CHECK(refused.body.find("limits.query-windows is 3") != std::string::npos);
  CHECK(windows("&from=@0.000000001&to=@0.000000004").status == 200);
  CHECK(windows("&from=@0&to=@1&limit=3").status == 200);
  // Elsewhere windows are counted.
  CHECK(windows("").status == 400);
  CHECK(windows("&limit=3").status == 200);
  const char* const kStatement =
      "/query?q=SELECT%20sum(v)%20FROM%20m%20WHERE%20time%20<%205%20GROUP%20BY%20time(1ns)";
  CHECK(f.ask("GET", kStatement).body.find("limits.query-windows is 3") != std::string::npos);

  config::Settings fresh = f.settings;
  fresh.limits.query_windows = 10;
  fresh.limits.query_points = 3;
  REQUIRE(f.server->reload(fresh).ok());
  CHECK(windows("").status == 200);
  CHECK(f.ask("GET", kStatement).body.find("limits.query-points is 3") != std::string::npos);
  fresh.limits.query_points = 4;
  REQUIRE(f.server->reload(fresh).ok());
  CHECK(f.ask("GET", kStatement).body.find("error") == std::string::npos);
}

}  // namespace edgecase::http::test
