#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "daemon/http/http_fixture.h"
#include "wire/encoding.h"

namespace edgecase::http::test {
namespace {

struct TokenRoom : ServerFixture {
  // Over the Unix socket, as whoever administers does.
  Answer administer(std::string_view method, std::string_view target) const {
    return Client::over_unix(settings.http.socket).ask(method, target);
  }
  std::string create(const std::string& parameters) const {
    const Answer answer = administer("POST", "/api/v1/tokens?" + parameters);
    CHECK(answer.status == 201);
    CHECK(answer.header("cache-control") == "no-store");
    return json_of(answer).value("token", "");
  }
};

constexpr char kKitchenReading[] = R"({"device":"kitchen","sensor":"temp","value":1,"time":5})";

}  // namespace

TEST_CASE("tokens over HTTP: loopback is open until the first one is made, and never again") {
  TokenRoom f;
  CHECK(f.ask("GET", "/api/v1/series").status == 200);
  const std::string token = f.create("read=*/*");
  const Answer refused = f.ask("GET", "/api/v1/series");
  CHECK(refused.status == 401);
  CHECK(json_of(refused)["error"]["code"] == "not_allowed");
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 200);
  CHECK(f.administer("GET", "/api/v1/series").status == 200);
  for (const char* open : {"/healthz", "/readyz", "/ping", "/ping?verbose=true", "/"}) {
    CHECK(f.ask("GET", open).status / 100 == 2);
    CHECK(f.ask("HEAD", open).status / 100 == 2);
  }
  for (const char* closed :
       {"/health", "/ready", "/metrics", "/api/v1/status", "/query?q=SHOW+DATABASES"}) {
    CHECK(f.ask("GET", closed).status == 401);
    CHECK(f.ask("GET", closed, {}, bearer(token)).status == 200);
  }
  CHECK(f.administer("DELETE", "/api/v1/tokens?id=" + token.substr(4, 10)).status == 200);
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 401);
  CHECK(f.ask("GET", "/api/v1/series").status == 401);
}

TEST_CASE("tokens over HTTP: every 401 has a line for each scheme, Basic first") {
  TokenRoom f;
  f.create("read=*/*");
  struct Case {
    const char* method;
    const char* target;
    const char* header;  // that it shows
    const char* bearer;
  };
  const char* const plain = "Bearer realm=\"EdgeCase\"";
  const char* const invalid = "Bearer realm=\"EdgeCase\", error=\"invalid_token\"";
  for (const Case& c :
       {Case{"GET", "/api/v1/series", "", plain}, Case{"HEAD", "/api/v1/status", "", plain},
        Case{"POST", "/write", "", plain}, Case{"POST", "/query?q=SHOW+DATABASES", "", plain},
        Case{"PUT", "/api/v1/blob/default/a/b", "", plain},
        Case{"DELETE", "/api/v1/tokens?id=a", "", plain},
        Case{"GET", "/metrics", "Authorization: Bearer wrong\r\n", invalid},
        Case{"GET", "/health", "Authorization: Digest a=b\r\n", invalid}}) {
    CAPTURE(c.target);
    Client client = f.connect();
    REQUIRE(client.send(std::string(c.method) + " " + c.target +
                        " HTTP/1.1\r\nHost: localhost\r\n" + c.header +
                        "Content-Length: 0\r\nConnection: close\r\n\r\n"));
    CHECK(client.receive_exactly("HTTP/1.1 401 Unauthorized\r\n"));
    std::string head;
    for (std::string byte(1, '\0'); head.find("\r\n\r\n") == std::string::npos;) {
      REQUIRE(client.receive_some(byte));
      head += byte;
    }
    const std::string line = "\r\nWWW-Authenticate: ";
    std::vector<std::string> lines;
    for (std::size_t at = head.find(line); at != std::string::npos; at = head.find(line, at + 1)) {
      const std::size_t begin = at + line.size();
      lines.push_back(head.substr(begin, head.find("\r\n", begin) - begin));
    }
    CHECK(lines == std::vector<std::string>{"Basic realm=\"EdgeCase\", charset=\"UTF-8\"", c.bearer,
                                            "Token realm=\"EdgeCase\""});
  }
}

TEST_CASE("tokens over HTTP: a scheme with nothing behind it is as if there were none") {
  TokenRoom f;
  struct Case {
    const char* shown;
    int status;
  };
  const auto cases = {Case{"", 200},
                      Case{"Token ", 200},
                      Case{"Token", 200},
                      Case{"token \t ", 200},
                      Case{"Bearer ", 200},
                      Case{"BEARER", 200},
                      Case{"Basic ", 200},
                      Case{"Basic", 200},
                      Case{"Basic Og==", 200},
                      Case{"Basic cm9vdDo=", 200},  // root:
                      Case{"Basic cm9vdDpyb290", 200},
                      Case{"Basic cm9vdA==", 401},  // root
                      Case{"Basic !", 401},
                      Case{"Token x", 401},
                      Case{"Token root:root", 200},
                      Case{"Token :", 200},
                      Case{"Token root:ec1_none", 401},
                      Case{"Digest", 401}};
  for (const Case& c : cases) {
    CAPTURE(c.shown);
    const std::string header = std::string("Authorization: ") + c.shown + "\r\n";
    CHECK(f.ask("GET", "/api/v1/series", {}, header).status == c.status);
  }
  f.create("read=*/*");
  CHECK(f.ask("GET", "/api/v1/series", {}, "Authorization: Token \r\n").status == 401);
}

TEST_CASE("tokens over HTTP: figures of the whole store are for tokens that read something") {
  TokenRoom f;
  struct Case {
    const char* scopes;
    int status;
  };
  for (const Case& c : {Case{"read=kitchen/*", 200}, Case{"export=kitchen/*", 200},
                        Case{"admin=true", 200}, Case{"write=*/*", 403}, Case{"erase=*/*", 403}}) {
    CAPTURE(c.scopes);
    const std::string token = f.create(c.scopes);
    for (const char* path : {"/metrics", "/api/v1/status"}) {
      CHECK(f.ask("GET", path, {}, bearer(token)).status == c.status);
    }
    CHECK(f.ask("GET", "/healthz", {}, bearer(token)).status == 200);
  }
}

TEST_CASE("tokens over HTTP: Bearer, Token, and the password of Basic") {
  TokenRoom f;
  const std::string token = f.create("write=kitchen/*");
  std::string basic, wrong;
  wire::append_base64("telegraf:" + token, basic);
  wire::append_base64("telegraf:secret", wrong);
  for (const std::string& good :
       {"Bearer " + token, "bearer  " + token, "Token " + token, "Basic " + basic}) {
    CAPTURE(good);
    const std::string header = "Authorization: " + good + "\r\n";
    CHECK(f.ask("POST", "/api/v1/readings", kKitchenReading, header).status == 200);
  }
  for (const std::string& bad :
       {std::string("Bearer"), "Bearer " + token + "0", "Basic " + token, "Basic " + wrong,
        "Digest " + token, token, std::string("Basic !")}) {
    CAPTURE(bad);
    const std::string header = "Authorization: " + bad + "\r\n";
    CHECK(f.ask("POST", "/api/v1/readings", kKitchenReading, header).status == 401);
  }
  CHECK(f.ask("POST", "/api/v1/readings", kKitchenReading, bearer(token) + bearer(token)).status ==
        400);
}

TEST_CASE("tokens over HTTP: outside its scope is 403, on every way in and out") {
  TokenRoom f;
  const std::string reader = f.create("read=kitchen/*");
  const std::string writer = f.create("write=kitchen/*");
  CHECK(f.ask("POST", "/api/v1/readings", kKitchenReading, bearer(writer)).status == 200);
  CHECK(f.ask("POST", "/api/v1/readings", kKitchenReading, bearer(reader)).status == 403);
  const Answer line = f.ask("POST", "/write", "m,device=shed value=1", bearer(writer));
  CHECK(line.status == 403);
  CHECK(json_of(line)["error"].is_string());
  CHECK(f.ask("POST", "/write?db=other", "m,device=kitchen value=1", bearer(writer)).status == 403);
  CHECK(f.ask("PUT", "/api/v1/blob/default/shed/image", "x", bearer(writer)).status == 403);
  CHECK(f.ask("PUT", "/api/v1/blob/default/kitchen/image", "x", bearer(writer)).status == 201);
  CHECK(f.ask("GET", "/api/v1/blob/default/kitchen/image", {}, bearer(writer)).status == 403);
  CHECK(f.ask("GET", "/api/v1/blob/default/kitchen/image", {}, bearer(reader)).status == 200);
  for (const char* path : {"/api/v1/query", "/api/v1/last", "/api/v1/series", "/api/v1/devices"}) {
    CAPTURE(path);
    const std::string select = std::string(path) + "?select=";
    CHECK(f.ask("GET", select + "kitchen/*", {}, bearer(reader)).status == 200);
    CHECK(f.ask("GET", select + "kitchen/*", {}, bearer(writer)).status == 403);
    CHECK(f.ask("GET", select + "shed/*", {}, bearer(reader)).status == 403);
    CHECK(f.ask("GET", select + "shed/temp", {}, bearer(reader)).status == 403);
    CHECK(f.ask("GET", select + "kitchen/*&ns=other", {}, bearer(reader)).status == 403);
  }
  CHECK(f.ask("GET", "/api/v1/query?export=true", {}, bearer(reader)).status == 403);
  const std::string exporter = f.create("export=kitchen/temp");
  CHECK(f.ask("GET", "/api/v1/query?export=true", {}, bearer(exporter)).status == 200);
  CHECK(f.ask("GET", "/api/v1/query", {}, bearer(exporter)).status == 403);
  for (const auto& [method, target] :
       {std::pair("GET", "/api/v1/tokens"), std::pair("POST", "/api/v1/tokens?admin=true"),
        std::pair("DELETE", "/api/v1/tokens?id=0123456789"),
        std::pair("POST", "/api/v1/namespaces?name=other"),
        std::pair("DELETE", "/api/v1/namespaces?name=default"),
        std::pair("POST", "/api/v1/retention?select=*/*&keep=1d&yes=true"),
        std::pair("GET", "/api/v1/retention/preview?select=*/*"),
        std::pair("DELETE", "/api/v1/retention?select=*/*")}) {
    const std::string asked = target;  // lambdas of Clang 14 capture no structured bindings
    CAPTURE(asked);
    CHECK(f.ask(method, asked, {}, bearer(reader)).status == 403);
  }
}

TEST_CASE("tokens over HTTP: what a selector matches beyond the scope is left out") {
  TokenRoom f;
  CHECK(f.ask("POST", "/write", "m,device=kitchen value=1 1\nm,device=shed value=2 1").status ==
        204);
  CHECK(f.ask("POST", "/write?db=other", "m,device=kitchen value=3 1").status == 204);
  const std::string token = f.create("read=k*/*");
  const Answer answer = f.ask("GET", "/api/v1/query?format=csv&ns=*", {}, bearer(token));
  CHECK(answer.body ==
        "namespace,device,sensor,time,value,type\n"
        "default,kitchen,m,1970-01-01T00:00:00.000000001Z,1,float\n");
  const Answer names = f.ask("GET", "/api/v1/namespaces", {}, bearer(token));
  CHECK(json_of(names)["namespaces"] == nlohmann::json::array({"default"}));
  const Answer all = f.ask("GET", "/query?q=SHOW+DATABASES", {}, bearer(token));
  CHECK(all.body.find("other") == std::string::npos);
}

TEST_CASE("tokens over HTTP: an admin token administers") {
  TokenRoom f;
  const std::string admin = f.create("admin=true&expires=1d");
  CHECK(f.ask("POST", "/api/v1/namespaces?name=n", {}, bearer(admin)).status == 201);
  CHECK(f.ask("DELETE", "/api/v1/namespaces?name=n", {}, bearer(admin)).status == 200);
  const Answer list = f.ask("GET", "/api/v1/tokens", {}, bearer(admin));
  REQUIRE(list.status == 200);
  const nlohmann::json token = json_of(list)["tokens"][0];
  CHECK(token["state"] == "active");
  CHECK(token["admin"] == true);
  CHECK(token["last_used"].is_string());
  CHECK(list.body.find(admin.substr(15)) == std::string::npos);
  f.clock.advance(86'400'000'000'000);
  CHECK(f.ask("GET", "/api/v1/tokens", {}, bearer(admin)).status == 401);
  CHECK(json_of(f.administer("GET", "/api/v1/tokens"))["tokens"][0]["state"] == "expired");
}

TEST_CASE("tokens over HTTP: one can be ended later, and serves until then") {
  TokenRoom f;
  const std::string token = f.create("read=*/*");
  const std::string id = token.substr(4, 10);
  CHECK(f.administer("DELETE", "/api/v1/tokens?id=" + id + "&after=soon").status == 400);
  CHECK(f.administer("DELETE", "/api/v1/tokens?id=" + id + "&after=1h").status == 200);
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 200);
  CHECK(json_of(f.administer("GET", "/api/v1/tokens"))["tokens"][0]["state"] == "active");
  f.clock.advance(3'600'000'000'000 - 1);
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 200);
  f.clock.advance(1);
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 401);
  CHECK(json_of(f.administer("GET", "/api/v1/tokens"))["tokens"][0]["state"] == "revoked");
}

TEST_CASE("tokens over HTTP: one in a URL is refused with words, u and p mean nothing") {
  TokenRoom f;
  const std::string token = f.create("write=*/*");
  const Answer answer = f.ask("POST", "/write?u=x&p=" + token, "m value=1", bearer(token));
  CHECK(answer.status == 400);
  CHECK(json_of(answer)["error"].get<std::string>().find("Authorization") != std::string::npos);
  CHECK(f.ask("POST", "/write?u=x&p=y", "m value=1").status == 401);
  CHECK(f.ask("POST", "/write?u=x&p=y", "m value=1", bearer(token)).status == 204);
}

TEST_CASE("tokens over HTTP: too many failures are answered with 429, a good token still served") {
  TokenRoom f;
  const std::string token = f.create("read=*/*");
  for (int i = 0; i < auth::Authenticator::kBurst; ++i) {
    CHECK(f.ask("GET", "/api/v1/series", {}, bearer("x")).status == 401);
  }
  const Answer answer = f.ask("GET", "/api/v1/series", {}, bearer("x"));
  CHECK(answer.status == 429);
  CHECK(answer.header("retry-after") == "6");
  CHECK(json_of(answer)["error"]["code"] == "not_allowed");
  CHECK(f.ask("GET", "/api/v1/series", {}, bearer(token)).status == 200);
}

TEST_CASE("tokens over HTTP: what cannot be made is refused with words") {
  TokenRoom f;
  for (const char* parameters :
       {"", "read=", "read=a/b/c", "admin=maybe", "read=*/*&expires=yesterdayish",
        "read=*/*&expires=2001-01-01", "read=*/*&expires=9999999d", "read=*/*&colour=red",
        "read=*/*&ns=a/b"}) {
    CAPTURE(parameters);
    CHECK(f.administer("POST", std::string("/api/v1/tokens?") + parameters).status == 400);
  }
  CHECK(f.administer("DELETE", "/api/v1/tokens?id=0123456789").status == 404);
  CHECK(json_of(f.administer("GET", "/api/v1/tokens"))["tokens"].empty());
}

TEST_CASE("tokens over HTTP: a scope has so many selectors, and no more") {
  TokenRoom f;
  std::string parameters;
  for (std::size_t i = 0; i < wire::kSelectorsMax; ++i)
    parameters += "read=d" + std::to_string(i) + "/*&";
  CHECK(f.administer("POST", "/api/v1/tokens?" + parameters).status == 201);
  CHECK(f.administer("POST", "/api/v1/tokens?" + parameters + "read=e/*").status == 400);
}

}  // namespace edgecase::http::test
