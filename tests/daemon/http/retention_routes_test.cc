// /api/v1/retention, over the wire.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"

namespace edgecase::http {
namespace {

using test::Answer;
using test::ServerFixture;
using Json = nlohmann::json;

void write(ServerFixture& f, const char* device, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += std::string("m,device=") + device + " value=" + std::to_string(i) + " " +
             std::to_string(1000 + i) + "\n";
  REQUIRE(f.ask("POST", "/write?db=default&precision=s", lines).status == 204);
}

}  // namespace

TEST_CASE("retention: tiers are set over HTTP, and refused where expiry is exact") {
  const std::string rule = "/api/v1/retention?select=kitchen&keep=1h&then=1m:1d";
  ServerFixture f;
  CHECK(f.ask("POST", rule).status == 200);
  CHECK(f.ask("GET", "/api/v1/retention").body.find("1m:1d") != std::string::npos);
  ServerFixture exact([](config::Settings& settings) { settings.storage.expiry = "exact"; });
  const Answer refused = exact.ask("POST", rule);
  CHECK(refused.status == 400);
  CHECK(refused.body.find("storage.expiry is exact") != std::string::npos);
  CHECK(exact.ask("GET", "/api/v1/retention").body.find("1m:1d") == std::string::npos);
  CHECK(exact.ask("POST", "/api/v1/retention?select=kitchen&keep=1h").status == 200);
}

TEST_CASE("retention rules are set, listed, previewed and cleared over HTTP") {
  ServerFixture f;
  write(f, "kitchen", 10);
  f.engine.set_expiry_now_ns(1'009'000'000'000);
  const std::string base = "/api/v1/retention";
  Answer answer = f.ask("GET", base + "/preview?select=kitchen&keep=5s");
  REQUIRE(answer.status == 200);
  Json json = Json::parse(answer.body);
  CHECK(json["erased_readings"] == 4);
  CHECK(json["readings"] == 10);
  CHECK(json["affected"][0]["keep_now"] == "forever");
  CHECK(json["affected"][0]["keep_then"] == "5s");
  CHECK(json["oldest"] == "1970-01-01T00:16:40.000000000Z");

  CHECK(f.ask("POST", base + "?select=kitchen&keep=5s").status == 200);
  answer = f.ask("GET", "/api/v1/query?select=kitchen&agg=count&format=ndjson");
  CHECK(Json::parse(answer.body)["value"] == 6);
  json = Json::parse(f.ask("GET", base).body);
  CHECK(json["default"] == "forever");
  CHECK(json["rules"] ==
        Json::parse(R"([{"namespace":"default","select":"kitchen/*","keep":"5s"}])"));

  // What would erase everything is asked for twice.
  f.engine.set_expiry_now_ns(1'009'500'000'000);
  answer = f.ask("POST", base + "?select=kitchen&keep=100ms");
  CHECK(answer.status == 400);
  CHECK(answer.body.find("yes=true") != std::string::npos);
  CHECK(f.ask("POST", base + "?select=kitchen&keep=100ms&yes=true").status == 200);
  CHECK(f.ask("GET", "/api/v1/query?select=kitchen&format=ndjson").body.empty());
  CHECK(f.ask("DELETE", base + "?select=kitchen").status == 200);
  CHECK(f.ask("DELETE", base + "?select=kitchen").status == 404);
  CHECK(f.ask("GET", "/api/v1/query?select=kitchen&format=ndjson").body.empty());
}

TEST_CASE("requests for retention that mean nothing are refused") {
  ServerFixture f;
  write(f, "kitchen", 1);
  struct Case {
    const char* method;
    const char* target;
    int status;
  };
  for (const Case& c :
       {Case{"POST", "?select=kitchen", 400}, Case{"POST", "?keep=5s", 400},
        Case{"POST", "?select=kitchen&keep=5", 400}, Case{"POST", "?select=kitchen&keep=0s", 400},
        Case{"POST", "?select=kitchen&keep=-5s", 400}, Case{"POST", "?select=a/b/c&keep=5s", 400},
        Case{"POST", "?ns=nowhere&select=*&keep=5s", 404},
        Case{"POST", "?select=kitchen&keep=5s&kep=1", 400}, Case{"DELETE", "?select=garage", 404},
        Case{"DELETE", "", 400}, Case{"GET", "/preview", 400},
        Case{"GET", "/preview?select=kitchen&clear=true&keep=5s", 400},
        Case{"GET", "/preview?select=kitchen&keep=x", 400},
        Case{"PUT", "?select=kitchen&keep=5s", 400}}) {
    CAPTURE(c.method);
    CAPTURE(c.target);
    CHECK(f.ask(c.method, std::string("/api/v1/retention") + c.target).status == c.status);
  }
  CHECK(f.engine.retention_rules().empty());
}

TEST_CASE("compaction and expiry are in the status and among the metrics") {
  ServerFixture f;
  const Json status = Json::parse(f.ask("GET", "/api/v1/status").body);
  for (const char* name : {"merges", "relocations", "garbage_bytes", "range_deletes", "runs_max"})
    CHECK(status["compaction"].contains(name));
  for (const char* name : {"mode", "default", "rules", "dropped_files", "dropped_bytes", "oldest"})
    CHECK(status["expiry"].contains(name));
  const std::string metrics = f.ask("GET", "/metrics").body;
  for (const char* name : {"edgecase_compaction_merges_total", "edgecase_compaction_garbage_bytes",
                           "edgecase_expiry_dropped_files_total", "edgecase_expiry_oldest_seconds"})
    CHECK(metrics.find(name) != std::string::npos);
}

TEST_CASE("a group of devices is kept by a rule each") {
  ServerFixture f;
  for (const char* device : {"kitchen", "cellar", "attic"}) write(f, device, 10);
  f.engine.set_expiry_now_ns(1'009'000'000'000);
  for (const char* said : {"kitchen&owner=alice&label=floor=1", "cellar&owner=alice",
                           "attic&owner=bob", "planned&owner=alice"})
    CHECK(f.ask("POST", std::string("/api/v1/device?device=") + said).status == 200);
  const std::string base = "/api/v1/retention";
  Json json = Json::parse(f.ask("GET", base + "/preview?owner=alice&keep=5s").body);
  CHECK(json["series"] == 2);
  CHECK(json["readings"] == 20);
  CHECK(json["erased_readings"] == 8);
  REQUIRE(json["affected"].size() == 2);
  CHECK(json["affected"][0]["device"] == "cellar");
  CHECK(json["affected"][1]["keep_then"] == "5s");
  CHECK(Json::parse(f.ask("GET", base).body)["rules"].empty());

  json = Json::parse(f.ask("POST", base + "?owner=alice&keep=5s").body);
  CHECK(json["erased_readings"] == 8);
  CHECK(json["rules"].size() == 2);
  CHECK(f.stored().find("attic/m@1970-01-01T00:16:40.000000000Z=") != std::string::npos);
  CHECK(f.stored().find("kitchen/m@1970-01-01T00:16:40.000000000Z=") == std::string::npos);
  CHECK(f.stored().find("kitchen/m@1970-01-01T00:16:49.000000000Z=") != std::string::npos);
  // What would erase everything of the group is asked for twice; nothing is set before.
  f.engine.set_expiry_now_ns(1'009'500'000'000);
  Answer answer = f.ask("POST", base + "?owner=alice&keep=100ms");
  CHECK(answer.status == 400);
  CHECK(answer.body.find("2 devices") != std::string::npos);
  CHECK(Json::parse(f.ask("GET", base).body)["rules"] ==
        Json::parse(R"([{"namespace":"default","select":"cellar/*","keep":"5s"},
                        {"namespace":"default","select":"kitchen/*","keep":"5s"}])"));
  CHECK(f.ask("POST", base + "?label=floor=1&keep=forever").status == 200);
  CHECK(Json::parse(f.ask("GET", base).body)["rules"][1]["keep"] == "forever");
  CHECK(Json::parse(f.ask("DELETE", base + "?owner=alice").body)["rules"] == 2);
  CHECK(f.ask("DELETE", base + "?owner=alice").status == 404);
  CHECK(f.ask("POST", base + "?owner=nobody&keep=5s").status == 404);
  CHECK(f.ask("POST", base + "?owner=alice&select=kitchen&keep=5s").status == 400);
}

}  // namespace edgecase::http
