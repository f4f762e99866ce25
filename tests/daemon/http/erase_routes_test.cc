// /api/v1/erase, /api/v1/erasures and /api/v1/where, over the wire.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"
#include "sign/signature.h"

namespace edgecase::http {
namespace {

using test::Answer;
using test::ServerFixture;
using Json = nlohmann::json;

void write(ServerFixture& f, const std::string& device, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "m,device=" + device + " value=" + std::to_string(i) + " " + std::to_string(1000 + i) +
             "\n";
  REQUIRE(f.ask("POST", "/write?db=default&precision=s", lines).status == 204);
}

}  // namespace

TEST_CASE("an erasure is previewed, done, certified, and holds against redelivery") {
  ServerFixture f;
  write(f, "kitchen", 10);
  write(f, "cellar", 5);
  Answer answer = f.ask("GET", "/api/v1/erase/preview?select=kitchen");
  REQUIRE(answer.status == 200);
  Json json = Json::parse(answer.body);
  CHECK(json["readings"] == 10);
  CHECK(json["devices"] == 1);
  CHECK(json["everything"] == false);
  CHECK(json["first"] == "1970-01-01T00:16:40.000000000Z");
  CHECK(json["matched"][0]["device"] == "kitchen");

  answer = f.ask("POST", "/api/v1/erase?select=kitchen");
  REQUIRE(answer.status == 200);
  json = Json::parse(answer.body);
  CHECK(json["state"] == "done");
  CHECK(json["level"] == "physical");
  CHECK(json["readings"] == 10);
  CHECK(answer.body.find("kitchen") == std::string::npos);
  CHECK(f.ask("POST", "/api/v1/erase?select=kitchen").status == 404);
  const std::string id = std::to_string(json["id"].get<int>());
  CHECK(Json::parse(f.ask("GET", "/api/v1/erasures?id=" + id).body) == json);
  CHECK(sign::check_signature(json).ok());
  json["readings"] = 9;
  CHECK(sign::check_signature(json).status().code() == StatusCode::Corruption);
  CHECK(f.ask("GET", "/api/v1/erasures?id=99").status == 404);
  json = Json::parse(f.ask("GET", "/api/v1/erasures?device=kitchen").body);
  CHECK(json["erasures"].size() == 1);
  CHECK(Json::parse(f.ask("GET", "/api/v1/erasures?device=cellar").body)["erasures"].empty());

  // Redelivered: what lies in erased times is named and left out, the rest is stored.
  answer = f.ask("POST", "/write?db=default&precision=s",
                 "m,device=kitchen value=1 1000\nm,device=cellar value=1 2000\n");
  CHECK(answer.status == 204);
  CHECK(answer.header("x-edgecase-erased") == "1");
  answer = f.ask("POST", "/api/v1/readings",
                 R"([{"device":"kitchen","sensor":"m","time":1000,"value":1}])");
  CHECK(answer.status == 200);
  CHECK(Json::parse(answer.body) == Json{{"stored", 0}, {"rejected", 0}, {"erased", 1}});
  CHECK(f.ask("PUT", "/api/v1/blob/default/kitchen/m?time=@1000", "x").status == 400);
  CHECK(f.ask("PUT", "/api/v1/blob/default/kitchen/m", "x").status == 201);
  json = Json::parse(f.ask("GET", "/api/v1/erasures").body);
  CHECK(json["refused_readings"] == 3);
  CHECK(json["fences"] == 1);
}

TEST_CASE("fences are listed, and lifted by the number of their erasure") {
  ServerFixture f;
  write(f, "kitchen", 2);
  CHECK(Json::parse(f.ask("GET", "/api/v1/fences").body) ==
        Json{{"fences", Json::array()}, {"more", 0}});
  Answer answer = f.ask("POST", "/api/v1/erase?select=kitchen&to=@1001");
  REQUIRE(answer.status == 200);
  const std::string id = std::to_string(Json::parse(answer.body)["id"].get<int>());
  const Json fence = Json::parse(f.ask("GET", "/api/v1/fences").body)["fences"].at(0);
  CHECK(std::to_string(fence["id"].get<int>()) == id);
  CHECK(fence["select"] == "kitchen/*");
  CHECK(fence["namespace"] == "default");
  CHECK(fence["from"].is_null());
  CHECK(fence["to"] == "1970-01-01T00:16:41.000000000Z");
  CHECK(fence["since"].is_string());
  CHECK(fence["refuses"] == "all");
  CHECK(Json::parse(f.ask("GET", "/api/v1/fences?ns=lab").body)["fences"].empty());

  CHECK(f.ask("DELETE", "/api/v1/fences").status == 400);
  CHECK(f.ask("DELETE", "/api/v1/fences?id=x").status == 400);
  CHECK(f.ask("DELETE", "/api/v1/fences?id=99").status == 404);
  const std::string line = "m,device=kitchen value=1 1000\n";
  CHECK(f.ask("POST", "/write?db=default&precision=s", line).header("x-edgecase-erased") == "1");
  CHECK(f.ask("DELETE", "/api/v1/fences?id=" + id).status == 200);
  CHECK(f.ask("POST", "/write?db=default&precision=s", line).header("x-edgecase-erased").empty());
  CHECK(f.ask("GET", "/api/v1/erasures?id=" + id).status == 200);
  CHECK(f.ask("POST", "/write?db=default&as_of=yesterweek", line).status == 400);
}

TEST_CASE("everything is erased only where that is said twice") {
  ServerFixture f;
  write(f, "kitchen", 2);
  write(f, "cellar", 2);
  Answer answer = f.ask("POST", "/api/v1/erase?select=*/*");
  CHECK(answer.status == 400);
  CHECK(answer.body.find("yes=true") != std::string::npos);
  CHECK(f.ask("POST", "/api/v1/erase?select=*/*&yes=true").status == 200);
  CHECK(f.stored() == "");
}

TEST_CASE("while the values drive is away the answer is 202, and the certificate follows") {
  ServerFixture f;
  write(f, "kitchen", 2);
  f.engine.fail_erasures(unavailable("the values drive is away"));
  Answer answer = f.ask("POST", "/api/v1/erase?select=kitchen&wait=60s");
  CHECK(answer.status == 202);
  Json json = Json::parse(answer.body);
  CHECK(json["state"] == "pending");
  CHECK(json["level"] == "logical");
  CHECK(json["drive_away"] == true);
  CHECK(json["waiting_for"] == "the values drive is away");
  CHECK(f.stored() == "");
  f.engine.fail_erasures(ok());
  CHECK(f.erase->drain().ok());
  const std::string path = "/api/v1/erasures?id=" + std::to_string(json["id"].get<int>());
  json = Json::parse(f.ask("GET", path).body);
  CHECK(json["state"] == "done");
}

TEST_CASE("certificates are listed newest first, however many there are") {
  ServerFixture f;
  constexpr int kCount = 70;  // more than one piece of an answer
  for (int i = 0; i < kCount; ++i) {
    const std::string device = i % 7 == 0 ? "cellar" : "kitchen" + std::to_string(i);
    f.clock.advance(1'000'000'000);
    REQUIRE(f.ask("POST", "/write", "m,device=" + device + " value=1").status == 204);
    REQUIRE(f.ask("POST", "/api/v1/erase?select=" + device).status == 200);
  }
  const Answer answer = f.ask("GET", "/api/v1/erasures");
  CHECK(answer.status == 200);
  const Json json = Json::parse(answer.body);
  REQUIRE(json["erasures"].size() == kCount);
  for (int i = 0; i < kCount; ++i) {
    const Json& each = json["erasures"][static_cast<std::size_t>(i)];
    CHECK(each["id"] == kCount - i);
    Json alone = Json::parse(f.ask("GET", "/api/v1/erasures?id=" + each["id"].dump()).body);
    alone.erase("signature");
    CHECK(each == alone);
  }
  CHECK(json["fences"] == 61);
  CHECK(json["refused_readings"] == 0);
  const Json some = Json::parse(f.ask("GET", "/api/v1/erasures?device=cellar").body);
  CHECK(some["erasures"].size() == 10);
  CHECK(some["fences"] == 61);
}

TEST_CASE("requests for erasure that mean nothing are refused") {
  ServerFixture f;
  write(f, "kitchen", 2);
  for (const char* query :
       {"", "?select=kitchen&owner=x", "?select=a/b/c", "?select=kitchen&from=yesterdayish",
        "?select=kitchen&from=@20&to=@20", "?select=kitchen&to=-9223372036854775808",
        "?select=kitchen&from=9223372036854775807&to=9223372036854775807",
        "?select=kitchen&form=@1", "?owner=a/b", "?select=kitchen&wait=soon"}) {
    CAPTURE(query);
    CHECK(f.ask("POST", std::string("/api/v1/erase") + query).status == 400);
  }
  CHECK(f.ask("POST", "/api/v1/erase?ns=nowhere&select=x").status == 404);
  CHECK(f.ask("POST", "/api/v1/erase?owner=nobody").status == 404);
  CHECK(f.ask("POST", "/api/v1/erase?ns=_tokens&select=x").status == 403);
  CHECK(f.ask("GET", "/api/v1/erase?select=kitchen").status == 405);
  CHECK(f.ask("GET", "/api/v1/erasures?id=x").status == 400);
  CHECK(f.ask("GET", "/api/v1/where?select=nothing").status == 404);
  CHECK(f.ask("GET", "/api/v1/where?select=kitchen").status == 200);
}

TEST_CASE("an erasure takes from its first instant up to its end, at both ends of time too") {
  struct Case {
    const char* range;
    const char* left;  // of five readings; "-": with its names
  };
  for (const Case& c : {
           Case{"", "-"},
           Case{"&from=-9223372036854775808", ""},
           Case{"&from=-9223372036854775807", "1"},
           Case{"&to=-9223372036854775807", "2345"},
           Case{"&from=0&to=1000000000", "1245"},
           Case{"&from=-10000&to=0", "1345"},
           Case{"&to=9223372036854775807", "5"},
           Case{"&from=-9223372036854775808&to=9223372036854775807", "5"},
           Case{"&from=1970-01-01T00:00:01Z", "123"},
           Case{"&from=9223372036854775806", "1234"},
           Case{"&from=9223372036854775807", "1234"},
           Case{"&from=9223372036854775806&to=9223372036854775807", "12345"},
       }) {
    CAPTURE(c.range);
    ServerFixture f;
    // Whose clock is right nobody knows: all that was erased stays out, however far ahead it was.
    f.clock.set_trust(ClockTrust::Untrusted);
    const std::string lines =
        "m,device=d value=1 -9223372036854775808\nm,device=d value=2 -10000\n"
        "m,device=d value=3 0\nm,device=d value=4 1000000000\n"
        "m,device=d value=5 9223372036854775807\n";
    REQUIRE(f.ask("POST", "/write", lines).status == 204);
    const std::string query = std::string("?select=d") + c.range;
    const Json preview = Json::parse(f.ask("GET", "/api/v1/erase/preview" + query).body);
    const std::string left = c.left == std::string("-") ? "" : c.left;
    CHECK(preview["readings"] == 5 - left.size());
    CHECK(f.ask("POST", "/api/v1/erase" + query).status == 200);
    const auto values = [&f] {
      const std::string body = f.ask("GET", "/api/v1/query?select=d&format=ndjson").body;
      std::string found;
      for (std::size_t at = 0; (at = body.find("\"value\":", at)) != std::string::npos; ++at)
        found += body[at + 8];
      return found;
    };
    CHECK(values() == left);
    CHECK((f.ask("GET", "/api/v1/query?select=d/m").status == 404) == (c.left == std::string("-")));
    // What was erased does not come back, neither the last instant of time.
    CHECK(f.ask("POST", "/write", lines).status == 204);
    CHECK(values() == left);
  }
}

TEST_CASE("erasing needs a token's erase scope, the list of certificates an administrator") {
  ServerFixture f;
  write(f, "kitchen", 2);
  write(f, "cellar", 2);
  const auto over_socket = [&f](const std::string& query) {
    auto client = test::Client::over_unix(f.settings.http.socket);
    const Answer answer = client.ask("POST", "/api/v1/tokens?" + query);
    REQUIRE(answer.status == 201);
    return "Authorization: Bearer " + Json::parse(answer.body)["token"].get<std::string>() + "\r\n";
  };
  const std::string reads = over_socket("read=*/*");
  const std::string erases = over_socket("erase=kitchen/*");
  const std::string path = "/api/v1/erase?select=kitchen";
  CHECK(f.ask("POST", path).status == 401);
  CHECK(f.ask("POST", path, "", reads).status == 403);
  CHECK(f.ask("GET", "/api/v1/erase/preview?select=kitchen", "", reads).status == 403);
  CHECK(f.ask("POST", "/api/v1/erase?select=cellar", "", erases).status == 403);
  const Answer answer = f.ask("POST", path, "", erases);
  CHECK(answer.status == 200);
  const std::string id = std::to_string(Json::parse(answer.body)["id"].get<int>());
  CHECK(f.ask("GET", "/api/v1/erasures?id=" + id, "", erases).status == 200);
  CHECK(f.ask("GET", "/api/v1/erasures?id=" + id, "", reads).status == 403);
  CHECK(f.ask("GET", "/api/v1/erasures", "", erases).status == 403);
  CHECK(f.ask("GET", "/api/v1/where?select=cellar", "", erases).status == 403);
  CHECK(f.ask("GET", "/api/v1/where?select=cellar", "", reads).status == 200);
}

TEST_CASE("devices are erased by what is said of them") {
  ServerFixture f;
  for (const char* device : {"kitchen", "cellar", "attic", "shed"}) write(f, device, 2);
  const auto say = [&f](const std::string& device, const std::string& said) {
    CHECK(f.ask("POST", "/api/v1/device?device=" + device + "&" + said).status == 200);
  };
  say("kitchen", "owner=alice&purpose=marketing");
  say("cellar", "owner=bob&purpose=marketing&object=marketing");
  say("attic", "owner=bob&label=floor=2&label=wing=west");
  say("shed", "label=floor=2");
  const auto previewed = [&f](const std::string& parameters) {
    const Answer answer = f.ask("GET", "/api/v1/erase/preview?" + parameters);
    if (answer.status != 200) return std::to_string(answer.status);
    std::string names;
    const Json json = Json::parse(answer.body);
    for (const Json& each : json["matched"]) names += each["device"].get<std::string>() + " ";
    return names;
  };
  CHECK(previewed("purpose=marketing") == "cellar kitchen ");
  CHECK(previewed("object=marketing") == "cellar ");
  CHECK(previewed("label=floor=2") == "attic shed ");
  CHECK(previewed("label=floor=2&label=wing=west") == "attic ");
  CHECK(previewed("owner=bob&purpose=marketing") == "cellar ");
  CHECK(previewed("owner=alice&object=marketing") == "404");
  CHECK(previewed("purpose=marketing&select=kitchen") == "400");
  CHECK(previewed("label=floor") == "400");

  // All that has a purpose, which is everything but two: no glob, so nothing has to be said twice.
  const Answer answer = f.ask("POST", "/api/v1/erase?purpose=marketing");
  REQUIRE(answer.status == 200);
  const Json json = Json::parse(answer.body);
  CHECK(json["state"] == "done");
  CHECK(json["devices"] == 2);
  CHECK(json["owner_pseudonym"] == "");
  CHECK(json["device_pseudonyms"].size() == 2);
  CHECK(Json::parse(f.ask("GET", "/api/v1/erasures?device=cellar").body)["erasures"].size() == 1);
  CHECK(f.ask("POST", "/write?db=default&precision=s", "m,device=kitchen value=1 1000").status ==
        204);
  CHECK(f.ask("POST", "/api/v1/erase?object=marketing").status == 404);
  const Answer owned = f.ask("POST", "/api/v1/erase?owner=bob&label=floor=2");
  REQUIRE(owned.status == 200);
  CHECK(Json::parse(owned.body)["owner_pseudonym"] != "");
  CHECK(f.stored().find("shed/m@") == 0);
}

}  // namespace edgecase::http
