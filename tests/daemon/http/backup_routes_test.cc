#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"
#include "query/pinned_moments.h"
#include "wire/json_text.h"

namespace edgecase::http::test {
namespace {

constexpr char kPin[] = "/api/v1/backups";

std::string name_of(int number) {
  const std::string digits = std::to_string(number);
  return "d" + std::string(5 - digits.size(), '0') + digits;
}

// A server with `count` devices, and as much said of each.
struct Described : ServerFixture {
  Described(int count, std::size_t label_bytes) {
    catalog::DeviceMetadata said;
    said.location = "hall";
    for (int i = 0; i < 16; ++i)
      said.labels["l" + std::to_string(i)] = std::string(label_bytes, 'x');
    const catalog::Saying saying{1'000'000'000, "somebody"};
    std::vector<catalog::DeviceChange> changes;
    for (int i = 0; i < count; ++i) {
      said.owner = "owner " + std::to_string(i);
      said.purposes = {i % 2 == 0 ? "billing" : "heating"};
      changes.push_back(
          {{"default", name_of(i)}, [said](catalog::DeviceMetadata& now) { now = said; }});
    }
    REQUIRE(devices->update_all(changes, saying).ok());
  }
};

}  // namespace

TEST_CASE("backups over HTTP: what is said of devices is told of each, in their order" *
          doctest::test_suite("bulk")) {
  constexpr int kCount = 1'501;  // three pages and one more
  Described f(kCount, 1);
  REQUIRE(f.ask("POST", "/write", "m,device=silent value=1 1").status == 204);
  REQUIRE(f.ask("POST", "/api/v1/namespaces?name=hall").status == 201);
  REQUIRE(f.ask("POST", "/api/v1/retention?select=silent&keep=30d&yes=true").status / 100 == 2);
  const Answer answer = f.ask("POST", kPin);
  CHECK(answer.status == 201);
  CHECK(answer.header("content-type") == "application/json");
  const wire::Json told = wire::Json::parse(answer.body);
  std::vector<std::string> members;
  for (const auto& [name, value] : told.items()) members.push_back(name);
  CHECK(members == std::vector<std::string>{"moment", "made", "state"});
  const wire::Json& state = told["state"];
  CHECK(state["namespaces"] == wire::Json{"default", "hall"});
  CHECK(state["retention"] ==
        wire::Json::array({{{"namespace", "default"}, {"select", "silent/*"}, {"keep", "30d"}}}));
  REQUIRE(state["devices"].size() == kCount);
  for (int i = 0; i < kCount; ++i) {
    CAPTURE(i);
    // As it is told of one alone.
    wire::Json shown = wire::Json::parse(f.ask("GET", "/api/v1/device?device=" + name_of(i)).body);
    shown["consents"] = wire::Json::array({{{"since", "1970-01-01T00:00:01.000000000Z"},
                                            {"by", "somebody"},
                                            {"purposes", shown["purposes"]},
                                            {"objections", wire::Json::array()}}});
    REQUIRE(state["devices"][static_cast<std::size_t>(i)] == shown);
  }
  const std::string moment = told["moment"].get<std::string>();
  CHECK(f.ask("DELETE", kPin + std::string("?moment=") + moment).status == 200);
}

TEST_CASE("backups over HTTP: a store of which nothing is said") {
  ServerFixture f;
  const Answer answer = f.ask("POST", kPin);
  CHECK(answer.status == 201);
  const wire::Json state = wire::Json::parse(answer.body)["state"];
  CHECK(state == wire::Json{{"namespaces", wire::Json::array({"default"})},
                            {"thinned_series", 0},
                            {"devices", wire::Json::array()},
                            {"retention", wire::Json::array()}});
}

TEST_CASE("backups over HTTP: whose each device is goes into a backup and back") {
  const std::string run(16, '1');
  const auto header = [&](char digit) {
    return "X-EdgeCase-Origin: " + std::string(32, digit) + " " + run + "\r\n";
  };
  const auto write = [&](const ServerFixture& f, const char* device, const std::string& headers) {
    const std::string reading =
        R"({"sensor":"s","time":1,"value":1,"device":")" + std::string(device) + "\"}";
    REQUIRE(f.ask("POST", "/api/v1/readings", reading, headers).status / 100 == 2);
  };
  ServerFixture hub;
  write(hub, "own", "");
  write(hub, "pump", header('a'));
  write(hub, "pump", header('b'));
  const wire::Json state = wire::Json::parse(hub.ask("POST", kPin).body)["state"];
  REQUIRE(state["origins"].size() == 2);
  const wire::Json& owned = state["device_origins"];
  REQUIRE(owned.size() == 3);
  CHECK(owned[0] == wire::Json{{"namespace", "default"}, {"device", "own"}, {"origin", 0}});
  CHECK(owned[2]["there"] == "pump");
  std::string lines;
  for (const char* const list : {"origins", "device_origins"}) {
    for (const wire::Json& each : state[list]) lines += each.dump() + "\n";
  }
  ServerFixture restored;
  const std::string put = std::string(kPin) + "?as_of=now";
  for (int round = 0; round < 2; ++round) {
    const Answer answer = restored.ask("PUT", put, lines);
    REQUIRE(answer.status == 200);
    CHECK(json_of(answer) == nlohmann::json{{"devices", 3},
                                            {"others_devices", 0},
                                            {"others", nlohmann::json::array()}});
  }
  write(restored, "pump", header('c'));
  write(restored, "own", header('a'));
  write(restored, "pump", header('b'));
  write(restored, "pump", header('a'));
  const auto counts = restored.catalog->count_origins();
  CHECK(counts.at(state["origins"][0]["origin"]).devices == 2);
  CHECK(counts.at(state["origins"][0]["origin"]).renamed == 1);
  CHECK(counts.at(state["origins"][1]["origin"]).devices == 1);
  CHECK(counts.at(0).devices == 1);
  for (const char* wrong :
       {"[]", "{}", R"({"device":"d","origin":0})", R"({"namespace":"n","device":"d"})",
        R"({"namespace":"n","device":"d","origin":77})",
        R"({"namespace":"_n","device":"d","origin":0})",
        R"({"origin":5,"store":"x","run":"y","since":"2026-01-01"})"}) {
    CAPTURE(wrong);
    CHECK(restored.ask("PUT", put, wrong).status == 400);
  }
}

TEST_CASE("backups over HTTP: a moment of which not all was told is held for nobody" *
          doctest::test_suite("bulk")) {
  // 15 MB, which no socket takes while nobody reads.
  constexpr int kCount = 8'000;
  Described f(kCount, 100);
  const std::string request =
      std::string("POST ") + kPin + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
  // As soon as its worker knows that nobody reads, there is room for another one.
  constexpr int kTries = 10'000;
  std::size_t begun = 0;
  for (int i = 0; i < kTries && begun <= 2 * query::PinnedMoments::kMomentsMax; ++i) {
    Client client = f.connect();
    REQUIRE(client.send(request));
    if (client.receive_exactly("HTTP/1.1 201 ")) ++begun;
  }
  REQUIRE(begun > 2 * query::PinnedMoments::kMomentsMax);
  Answer answer = f.ask("POST", kPin);
  for (int i = 0; i < kTries && answer.status == 503; ++i) answer = f.ask("POST", kPin);
  REQUIRE(answer.status == 201);
  int told = 0;
  constexpr std::string_view kOwner = R"("owner":)";
  for (std::size_t at = 0; (at = answer.body.find(kOwner, at)) != std::string::npos; ++at) ++told;
  CHECK(told == kCount);
}

}  // namespace edgecase::http::test
