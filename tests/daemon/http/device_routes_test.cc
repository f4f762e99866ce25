#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

struct DeviceRoom : ServerFixture {
  DeviceRoom() {
    CHECK(ask("POST", "/write",
              "m,device=meter value=1 1\nm,device=lamp value=2 1\nm,device=tv value=3 1")
              .status == 204);
    set("meter", "owner=alice&purpose=billing,heating&object=marketing&label=kind=meter");
    set("tv", "owner=alice&purpose=viewing");
  }
  void set(const std::string& device, const std::string& parameters) const {
    CHECK(ask("POST", "/api/v1/device?device=" + device + "&" + parameters).status == 200);
  }
  // The devices whose readings are answered, and how many were withheld.
  std::string readings(const std::string& path) const {
    const Answer answer = ask("GET", path);
    if (answer.status != 200) return std::to_string(answer.status);
    std::string text;
    for (const char* device : {"lamp", "meter", "tv"}) {
      if (answer.body.find(std::string("\"") + device + "\"") != std::string::npos) {
        text += std::string(device) + " ";
      }
    }
    return text + answer.header("x-edgecase-withheld-devices");
  }
};

}  // namespace

TEST_CASE("devices over HTTP: what is given replaces what was said, empty takes it back") {
  DeviceRoom f;
  const Answer shown = f.ask("GET", "/api/v1/device?device=meter");
  REQUIRE(shown.status == 200);
  CHECK(json_of(shown) == nlohmann::json{{"namespace", "default"},
                                         {"device", "meter"},
                                         {"owner", "alice"},
                                         {"purposes", {"billing", "heating"}},
                                         {"objections", {"marketing"}},
                                         {"location", ""},
                                         {"labels", {{"kind", "meter"}}}});
  f.set("meter", "owner=bob&purpose=&label=kind=&label=a=b&location=cellar");
  const nlohmann::json now = json_of(f.ask("GET", "/api/v1/device?device=meter"));
  CHECK(now["owner"] == "bob");
  CHECK(now["purposes"].empty());
  CHECK(now["objections"] == nlohmann::json{"marketing"});
  CHECK(now["location"] == "cellar");
  CHECK(now["labels"] == nlohmann::json{{"a", "b"}});
  CHECK(f.ask("GET", "/api/v1/device?device=lamp").status == 200);
  CHECK(f.ask("GET", "/api/v1/device?device=none").status == 404);
  CHECK(f.ask("GET", "/api/v1/device?device=lamp&ns=none").status == 404);
  CHECK(f.ask("GET", "/api/v1/device?device=lamp&ns=_tokens").status == 403);
  for (const char* wrong : {"", "owner=x", "device=lamp&label=x", "device=lamp&label==x",
                            "device=lamp&colour=red", "device=a/b&owner=x", "device=lamp&ns=*"}) {
    CAPTURE(wrong);
    CHECK(f.ask("POST", std::string("/api/v1/device?") + wrong).status == 400);
  }
}

TEST_CASE(
    "devices over HTTP: a device with purposes is read for one of them, and no objected one") {
  DeviceRoom f;
  for (const char* path : {"/api/v1/query?", "/api/v1/last?"}) {
    const auto ask = [&](const std::string& rest) { return f.readings(path + rest); };
    CHECK(ask("") == "lamp 2");
    CHECK(ask("purpose=billing") == "lamp meter 1");
    CHECK(ask("purpose=viewing") == "lamp tv 1");
    CHECK(ask("purpose=marketing") == "lamp 2");
    CHECK(ask("select=meter/*") == "403");
    CHECK(ask("select=meter/m") == "403");
    CHECK(ask("select=meter/m&purpose=marketing") == "403");
    CHECK(ask("select=meter/m&purpose=heating") == "meter ");
    CHECK(ask("select=lamp/m") == "lamp ");
    CHECK(ask("select=m*/*") == "1");
  }
  CHECK(f.ask("GET", "/api/v1/blob/default/meter/m").status == 403);
  CHECK(f.ask("GET", "/api/v1/blob/default/meter/m?purpose=billing").status == 200);
  CHECK(f.ask("GET", "/api/v1/blob/default/meter/m?time=@0.000000001").status == 403);
  // Names and counts are no readings; with a purpose only what may be read for it.
  CHECK(f.readings("/api/v1/series") == "lamp meter tv ");
  CHECK(f.readings("/api/v1/series?purpose=billing") == "lamp meter 1");
  // At once, both ways.
  f.set("meter", "object=marketing,billing");
  CHECK(f.readings("/api/v1/query?select=meter/m&purpose=billing") == "403");
  f.set("meter", "object=");
  CHECK(f.readings("/api/v1/query?select=meter/m&purpose=billing") == "meter ");
}

TEST_CASE("devices over HTTP: a token's purpose is what it reads for") {
  DeviceRoom f;
  const auto create = [&f](const std::string& parameters) {
    const Answer answer =
        Client::over_unix(f.settings.http.socket).ask("POST", "/api/v1/tokens?" + parameters);
    return bearer(json_of(answer).value("token", ""));
  };
  const std::string billing = create("read=*/*&purpose=billing");
  const std::string marketing = create("read=*/*&purpose=marketing");
  const std::string query = "/api/v1/query?select=meter/m";
  CHECK(f.ask("GET", query, {}, billing).status == 200);
  CHECK(f.ask("GET", query + "&purpose=billing", {}, billing).status == 200);
  CHECK(f.ask("GET", query + "&purpose=heating", {}, billing).status == 403);
  CHECK(f.ask("GET", query, {}, marketing).status == 403);
  CHECK(f.ask("POST", "/api/v1/device?device=meter&purpose=", {}, billing).status == 403);
}

TEST_CASE("devices over HTTP: devices are found by what is said of them") {
  DeviceRoom f;
  const auto found = [&f](const std::string& parameters) {
    return f.readings("/api/v1/devices?" + parameters);
  };
  CHECK(found("") == "lamp meter tv ");
  CHECK(found("owner=alice") == "meter tv ");
  CHECK(found("owner=alice&purpose=viewing") == "tv ");
  CHECK(found("object=marketing") == "meter ");
  CHECK(found("label=kind=meter") == "meter ");
  CHECK(found("owner=bob").empty());
  CHECK(found("owner=alice&select=t*") == "tv ");
  CHECK(found("owner=alice&ns=other").empty());
  CHECK(found("label=kind") == "400");
}

TEST_CASE("devices over HTTP: a long list comes by pages") {
  DeviceRoom f;
  const auto found = [&f](const std::string& parameters) {
    return f.readings("/api/v1/devices?" + parameters);
  };
  for (const char* owned : {"owner=alice&", ""}) {
    CAPTURE(owned);
    const std::string all = *owned == 0 ? "lamp meter " : "meter tv ";
    CHECK(found(std::string(owned) + "limit=2") == all);
    CHECK(found(std::string(owned) + "limit=0").empty());
    CHECK(found(std::string(owned) + "after=meter&limit=1") == "tv ");
    CHECK(found(std::string(owned) + "ns=*&after=default/meter") == "tv ");
    CHECK(found(std::string(owned) + "after=tv").empty());
    CHECK(found(std::string(owned) + "ns=*&after=meter") == "400");
    CHECK(found(std::string(owned) + "limit=x") == "400");
  }
}

TEST_CASE("devices over HTTP: many are described in one request") {
  DeviceRoom f;
  const auto describe = [&f](const std::string& body, const std::string& parameters = "") {
    return f.ask("POST", "/api/v1/devices" + parameters, body);
  };
  const std::string lamp = R"({"device":"lamp","owner":"bob","purposes":["light","heat"],)"
                           R"("objections":["ads"],"location":"hall","labels":{"floor":"2"}})";
  const std::string tv = R"({"namespace":"default","device":"tv","owner":"","labels":{"a":"b"}})";
  for (const std::string& body : {lamp + "\n" + tv + "\n", "[" + lamp + "," + tv + "]",
                                  "[\n" + lamp + ",\n" + tv + "\n]\n"}) {
    const Answer answer = describe(body);
    REQUIRE(answer.status == 200);
    CHECK(json_of(answer)["described"] == 2);
    CHECK(json_of(f.ask("GET", "/api/v1/device?device=lamp")) ==
          nlohmann::json{{"namespace", "default"},
                         {"device", "lamp"},
                         {"owner", "bob"},
                         {"purposes", {"heat", "light"}},
                         {"objections", {"ads"}},
                         {"location", "hall"},
                         {"labels", {{"floor", "2"}}}});
    const nlohmann::json of_tv = json_of(f.ask("GET", "/api/v1/device?device=tv"));
    CHECK(of_tv["owner"] == "");
    CHECK(of_tv["purposes"] == nlohmann::json{"viewing"});  // not given: as it was
    CHECK(of_tv["labels"] == nlohmann::json{{"a", "b"}});
    CHECK(describe(R"({"device":"tv","labels":{"a":""}})").status == 200);
    CHECK(describe(R"({"device":"lamp","owner":"x","purposes":[],"labels":{"floor":""}})").status ==
          200);
  }
  // What is answered of a device is taken.
  CHECK(describe(f.ask("GET", "/api/v1/device?device=meter").body).status == 200);
  CHECK(describe("{\n\"device\": \"tv\"\n}").status == 200);
  for (const char* wrong :
       {"", " \n", "{", "[]x", "5", R"(["tv"])", R"({"owner":"x"})", R"({"device":"tv","owner":5})",
        R"({"device":"tv","colour":"red"})", R"({"device":"tv","purposes":"x"})",
        R"({"device":"tv","purposes":[5]})", R"({"device":"tv","labels":["x"]})",
        R"({"device":"tv","labels":{"a=b":"c"}})",
        R"({"device":"tv","labels":{"a":{"b":{"c":1}}}})", R"({"device":"a/b","owner":"x"})",
        R"({"namespace":"","device":"tv"})"}) {
    CAPTURE(wrong);
    const Answer answer =
        describe(std::string(R"({"device":"meter","owner":"eve"})") + "\n" + wrong);
    if (std::string(wrong).find_first_not_of(" \n") != std::string::npos)
      CHECK(answer.status == 400);
    CHECK(describe(wrong).status == 400);
    if (answer.status == 400)
      CHECK(json_of(f.ask("GET", "/api/v1/device?device=meter"))["owner"] == "alice");
    CHECK(describe(R"({"device":"meter","owner":"alice"})").status == 200);
  }
  CHECK(describe(R"({"namespace":"none","device":"x"})").status == 404);
  CHECK(describe(R"({"namespace":"_tokens","device":"x"})").status == 403);
  CHECK(describe(std::string(5u << 20, ' ') + lamp).status == 400);
}

TEST_CASE("devices over HTTP: what describes too much is refused before it is taken apart") {
  ServerFixture f;
  const auto array = [](const std::string& element, std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += element + ",";
    text.back() = ']';
    return text;
  };
  struct Case {
    std::string body;
    const char* words;
  };
  for (const Case& c :
       {Case{array(R"({"device":"a"})", 200'000), "at most 10000 devices"},
        Case{R"({"device":"a","purposes":)" + array(R"("b")", 900'000) + "}", "at most 320000"},
        Case{std::string(100'000, '['), "more than 5 levels deep"}}) {
    const Answer answer = f.ask("POST", "/api/v1/devices", c.body);
    CHECK(answer.status == 400);
    CHECK(answer.body.find(c.words) != std::string::npos);
  }
}

TEST_CASE("devices over HTTP: a namespace that is dropped takes what is said with it") {
  DeviceRoom f;
  CHECK(f.ask("POST", "/write?db=n", "m,device=meter value=1 1").status == 204);
  CHECK(f.ask("POST", "/api/v1/device?ns=n&device=meter&owner=alice").status == 200);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=n").status == 200);
  CHECK(f.devices->metadata({"n", "meter"})->empty());
  CHECK(!f.devices->metadata({"default", "meter"})->empty());
}

TEST_CASE("devices over HTTP: a group by what is said of its devices is described at once") {
  DeviceRoom f;
  const auto shown = [&f](const std::string& device) {
    return json_of(f.ask("GET", "/api/v1/device?device=" + device));
  };
  Answer answer = f.ask("POST", "/api/v1/device?of_owner=alice&object=research&label=kind=");
  REQUIRE(answer.status == 200);
  CHECK(json_of(answer)["described"] == 2);
  for (const char* device : {"meter", "tv"}) {
    CHECK(shown(device)["objections"] == nlohmann::json{"research"});
    CHECK(shown(device)["labels"].empty());
    CHECK(shown(device)["owner"] == "alice");
  }
  CHECK(shown("lamp")["objections"].empty());
  // An objection holds at once.
  CHECK(f.readings("/api/v1/query?select=*/*&purpose=research") == "lamp 2");
  CHECK(f.ask("POST", "/api/v1/device?of_purpose=viewing&of_object=research&owner=bob").status ==
        200);
  CHECK(shown("tv")["owner"] == "bob");
  CHECK(shown("meter")["owner"] == "alice");
  CHECK(f.ask("POST", "/api/v1/device?of_owner=nobody&owner=x").status == 404);
  CHECK(f.ask("POST", "/api/v1/device?of_label=kind=meter&owner=x").status == 404);
  for (const char* wrong : {"of_owner=alice&device=tv&owner=x", "of_owner=&owner=x",
                            "of_label=x&owner=x", "of_owner=alice&as_of=now&owner=x"}) {
    CAPTURE(wrong);
    CHECK(f.ask("POST", std::string("/api/v1/device?") + wrong).status == 400);
  }
}

TEST_CASE("devices over HTTP: readings of devices of which something is said") {
  DeviceRoom f;
  f.set("lamp", "label=kind=meter");
  using Case = std::pair<const char*, const char*>;
  for (const Case& each :
       {Case{"label=kind=meter&purpose=billing", "lamp meter "}, Case{"label=kind=meter", "lamp 1"},
        Case{"of_purpose=billing&purpose=billing", "meter "},
        Case{"object=marketing&purpose=heating", "meter "},
        Case{"object=marketing&purpose=marketing", "1"},
        Case{"of_purpose=viewing&label=kind=meter", "404"},
        Case{"owner=alice&object=marketing", "meter "}, Case{"owner=alice", "meter tv "},
        Case{"of_purpose=nothing", "404"}, Case{"label=kind", "400"}, Case{"of_purpose=", "400"},
        Case{"object=a/b", "400"}}) {
    CAPTURE(each.first);
    CHECK(f.readings(std::string("/api/v1/query?export=true&") + each.first) == each.second);
  }
}

namespace {

struct FindRoom : ServerFixture {
  FindRoom() {
    REQUIRE(ask("POST", "/write",
                "air,device=Kitchen,room=hall temp=1,co2=2 1\nair,host=cellar temp=1 1\n"
                "door,device=hall state=\"open\" 1")
                .status == 204);
    REQUIRE(ask("POST", "/api/v1/readings",
                R"({"namespace":"lab","device":"b\u00e4r","sensor":"a","value":1,"time":5})")
                .status == 200);
  }

  // "NS/DEVICE/SENSOR …" of what is found, and " +N" where there is more.
  std::string found(const std::string& query, std::string_view headers = {}) const {
    const Answer answer = ask("GET", "/api/v1/find?" + query, {}, headers);
    REQUIRE(answer.status == 200);
    const nlohmann::json json = json_of(answer);
    std::string text;
    for (const nlohmann::json& each : json["found"]) {
      if (!text.empty()) text += ' ';
      text += each["namespace"].get<std::string>() + '/' + each["device"].get<std::string>() + '/' +
              each["sensor"].get<std::string>();
    }
    if (!json["next"].is_null()) text += " +" + std::to_string(json["next"].get<int>());
    return text;
  }
};

constexpr char kCo2[] = "default/Kitchen/air.co2{room=hall}";
constexpr char kTemp[] = "default/Kitchen/air.temp{room=hall}";

}  // namespace

TEST_CASE("find: all words are parts of names, the case aside") {
  FindRoom f;
  const std::string both = std::string(kCo2) + ' ' + kTemp;
  struct Case {
    const char* query;
    std::string want;
  };
  for (const Case& c :
       {Case{"q=kitchen", both}, Case{"q=KITCH+TEMP", kTemp}, Case{"q=temp+kitch", kTemp},
        Case{"q=%20%09kitchen%20", both}, Case{"q=cellar", "default/cellar/air.temp"},
        Case{"q=nothing", ""}, Case{"q=kitchen+nothing", ""}, Case{"q=room%3Dhall", both},
        Case{"q=host%3Dcell", "default/cellar/air.temp"}, Case{"ns=lab", "lab/b\u00e4r/a"},
        Case{"ns=*&q=b%C3%A4r", "lab/b\u00e4r/a"}, Case{"ns=*&q=lab", "lab/b\u00e4r/a"},
        Case{"q=lab", ""}}) {
    CAPTURE(c.query);
    CHECK(f.found(c.query) == c.want);
  }
}

TEST_CASE("find: in pages, each series once") {
  FindRoom f;
  CHECK(f.found("q=kitchen&limit=1") == std::string(kCo2) + " +1");
  CHECK(f.found("q=kitchen&limit=1&offset=1") == kTemp);
  CHECK(f.found("q=kitchen&limit=2") == std::string(kCo2) + ' ' + kTemp);
  CHECK(f.found("q=kitchen&offset=7") == "");
  CHECK(f.found("q=kitchen&limit=0") == " +0");
}

TEST_CASE("find: devices by their labels") {
  FindRoom f;
  REQUIRE(f.ask("POST", "/api/v1/device?device=Kitchen&label=floor=Two").status == 200);
  CHECK(f.found("q=floor%3DTwo+co2") == kCo2);
  CHECK(f.found("q=floor%3Dtwo") == "");
  CHECK(f.found("q=floor%3D") == "");
}

TEST_CASE("find: what may not be read is not found") {
  FindRoom f;
  REQUIRE(f.ask("POST", "/api/v1/device?device=Kitchen&purpose=heating").status == 200);
  CHECK(f.found("q=kitchen") == "");
  CHECK(f.found("q=kitchen+co2&purpose=heating") == kCo2);
  const Answer made = f.ask("POST", "/api/v1/tokens?read=cellar/*");
  REQUIRE(made.status == 201);
  const std::string token = bearer(json_of(made)["token"].get<std::string>());
  CHECK(f.found("ns=*", token) == "default/cellar/air.temp");
  CHECK(f.ask("GET", "/api/v1/find?ns=lab", {}, token).status == 403);
  CHECK(f.ask("GET", "/api/v1/find").status == 401);
}

TEST_CASE("find: what cannot be asked is refused") {
  FindRoom f;
  CHECK(f.ask("GET", "/api/v1/find?ns=none").status == 404);
  CHECK(f.ask("GET", "/api/v1/find?ns=_catalog").status == 403);
  std::string words = "q=";
  for (int i = 0; i < 17; ++i) words += "a+";
  const std::vector<std::string> queries = {"limit=x", "offset=-1", "no=1",
                                            "q=" + std::string(1'025, 'a'), words};
  for (const std::string& query : queries) {
    CAPTURE(query);
    CHECK(f.ask("GET", "/api/v1/find?" + query).status == 400);
  }
}

}  // namespace edgecase::http::test
