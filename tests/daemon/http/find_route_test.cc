#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
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
