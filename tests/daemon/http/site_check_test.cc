#include "http/router.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {

TEST_CASE("sites: a machine's own names") {
  const auto names = own_names("board",
                               "127.0.0.1 localhost\n"
                               "127.0.1.1\tboard.example.org  Board # board.comment\n"
                               "192.0.2.9 other other.lan\n",
                               "nameserver 192.0.2.1\nsearch home.arpa . fritz.box\ndomain x\n");
  for (const char* name : {"board", "board.local", "board.lan", "board.home.arpa",
                           "board.fritz.box", "board.x", "board.example.org"}) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  for (const char* name : {"other", "other.lan", "board.comment", "localhost", "board.", "lan"}) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) == names.end());
  }
  const auto whole = own_names("board.example.org", "", "");
  CHECK(std::find(whole.begin(), whole.end(), "board") != whole.end());
  CHECK(std::find(whole.begin(), whole.end(), "board.lan") != whole.end());
  CHECK(own_names("", "127.0.0.1 evil\n", "search evil\n").empty());
}

TEST_CASE("sites: names are taken in every spelling, others are refused to browsers") {
  const Sites sites = Sites::of({"board.lan", "Weather.Example"}, {}).value();
  struct Case {
    const char* host;
    bool is_taken;
  };
  for (const Case& c :
       {Case{"board.lan", true}, Case{"BOARD.LAN:8650", true}, Case{"board.lan.", true},
        Case{"weather.example", true}, Case{"localhost:1", true}, Case{"x.localhost", true},
        Case{"192.0.2.7:8650", true}, Case{"[2001:db8::1]:8650", true}, Case{"[::1]", true},
        Case{"board.lan.evil.example", false}, Case{"evil.board.lan", false},
        Case{"evil.example", false}, Case{"localhost.evil.example", false},
        Case{"192.0.2.7.evil.example", false}, Case{"[evil]", false}, Case{"u@board.lan", false},
        Case{"board.lan:x", false}, Case{".localhost.", false}}) {
    CAPTURE(c.host);
    RequestHead head;
    head.host = c.host;
    CHECK(check_site(head, Effect::Changes, sites).ok());
    head.user_agent = "Mozilla/5.0";
    CHECK(check_site(head, Effect::Changes, sites).ok() == c.is_taken);
  }
}

TEST_CASE("sites: what is neither a name nor an address is refused with words") {
  for (const char* name : {"", "board.lan:8650", "http://board", "board/", "a b", "board:"}) {
    CAPTURE(name);
    CHECK(Sites::of({name}, {}).status().code() == StatusCode::InvalidArgument);
  }
  for (const char* proxy : {"", "board.lan", "192.0.2.7:80", "192.0.2.7/33", "::1/129", "::1/-1",
                            "::1/", "192.0.2.0/2x", "[::1]"}) {
    CAPTURE(proxy);
    CHECK(Sites::of({}, {proxy}).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("sites: who asks behind a proxy is whom a believed one names") {
  const Sites sites = Sites::of({}, {"127.0.0.1", "10.0.0.0/8", "2001:db8::/32"}).value();
  struct Case {
    const char* peer;
    const char* list;       // X-Forwarded-For
    const char* forwarded;  // Forwarded
    const char* want;
  };
  for (const Case& c : {
           Case{"127.0.0.1", "192.0.2.7", "", "192.0.2.7"},
           Case{"127.0.0.1", "192.0.2.7:4711", "", "192.0.2.7"},
           Case{"127.0.0.1", "2001:DB9::7", "", "2001:db9::7"},
           Case{"127.0.0.1", "::ffff:192.0.2.7", "", "192.0.2.7"},
           // Only what believed ones added counts.
           Case{"127.0.0.1", "198.51.100.1, 192.0.2.7", "", "192.0.2.7"},
           Case{"127.0.0.1", "198.51.100.1, 10.1.2.3", "", "198.51.100.1"},
           Case{"2001:db8::9", "192.0.2.7", "", "192.0.2.7"},
           Case{"127.0.0.2", "192.0.2.7", "", "127.0.0.2"},
           Case{"203.0.113.1", "127.0.0.1", "", "203.0.113.1"},
           Case{"127.0.0.1", "unknown", "", "127.0.0.1"},
           Case{"127.0.0.1", "", "", "127.0.0.1"},
           Case{"127.0.0.1", "127.0.0.1", "", "127.0.0.1"},
           Case{"127.0.0.1", "", "for=192.0.2.7;proto=https", "192.0.2.7"},
           Case{"127.0.0.1", "", "by=x; For=\"[2001:db9::7]:4711\"", "2001:db9::7"},
           Case{"127.0.0.1", "", "for=198.51.100.1, for=\"192.0.2.7:80\"", "192.0.2.7"},
           Case{"127.0.0.1", "", "for=198.51.100.1;by=\"a,b\", for=10.0.0.1", "198.51.100.1"},
           Case{"127.0.0.1", "", "for=_hidden", "127.0.0.1"},
           Case{"127.0.0.1", "192.0.2.7", "for=198.51.100.1", "192.0.2.7"},
           Case{"uid 33", "192.0.2.7", "", "uid 33"},
       }) {
    CAPTURE(c.peer);
    CAPTURE(c.list);
    CAPTURE(c.forwarded);
    RequestHead head;
    head.is_forwarded = true;
    head.x_forwarded_for = c.list;
    head.forwarded = c.forwarded;
    const auth::Principal asks = asker(head, {auth::PrincipalKind::Loopback, c.peer}, sites);
    CHECK(asks.name == c.want);
    CHECK(asks.kind == auth::PrincipalKind::Remote);
  }
  RequestHead own;
  CHECK(asker(own, {auth::PrincipalKind::Loopback, "127.0.0.1"}, sites).kind ==
        auth::PrincipalKind::Loopback);
}

TEST_CASE("sites: what a proxy hands on is nobody's on this machine") {
  ServerFixture f([](config::Settings& s) { s.http.proxies = {"127.0.0.1"}; });
  for (const char* header :
       {"Forwarded: for=127.0.0.1\r\n", "forwarded: \r\n", "X-Forwarded-For: 127.0.0.1\r\n",
        "X-FORWARDED-PROTO: https\r\n", "X-Forwarded-Host: localhost\r\n", "X-Forwarded-: x\r\n",
        "Via: 1.1 proxy\r\n"}) {
    CAPTURE(header);
    f.clock.advance(auth::Authenticator::kBurst * auth::Authenticator::kRefillNs);
    CHECK(f.ask("GET", "/api/v1/series", {}, header).status == 401);
    CHECK(f.ask("POST", "/api/v1/tokens?admin=true", {}, header).status == 401);
    CHECK(f.ask("POST", "/write", "m value=1 1", header).status == 401);
    CHECK(f.ask("GET", "/healthz", {}, header).status == 200);
    // By the socket, too.
    Client local = Client::over_unix(f.settings.http.socket);
    CHECK(local.ask("GET", "/api/v1/series", {}, header).status == 401);
  }
  for (const char* header : {"X-Forward: x\r\n", "X-Viaduct: x\r\n", ""}) {
    CAPTURE(header);
    CHECK(f.ask("GET", "/api/v1/series", {}, header).status == 200);
  }
}

TEST_CASE("sites: a proxy that adds no header is known by what it sends") {
  ServerFixture f;
  const auto ask = [&f](const std::string& head) {
    f.clock.advance(auth::Authenticator::kBurst * auth::Authenticator::kRefillNs);
    Client client = f.connect();
    REQUIRE(client.send(head + "\r\n\r\n"));
    return client.receive().status;
  };
  const std::string get = "GET /api/v1/series ";
  // nginx with nothing but proxy_pass.
  CHECK(ask(get + "HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close") == 401);
  CHECK(ask("POST /api/v1/tokens?admin=true HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 0") ==
        401);
  CHECK(ask(get + "HTTP/1.1\r\nHost: 127.0.0.1\r\nReferer: http://board.lan/") == 401);
  // This machine's own programs.
  CHECK(ask(get + "HTTP/1.0") == 200);
  CHECK(ask(get + "HTTP/1.1\r\nHost: 127.0.0.1") == 200);
  CHECK(ask(get + "HTTP/1.1\r\nHost: localhost\r\nReferer: http://localhost/") == 200);
  CHECK(ask("GET /healthz HTTP/1.0\r\nHost: localhost") == 200);
}

TEST_CASE("sites: failed logins behind a proxy are each client's own") {
  ServerFixture f([](config::Settings& s) { s.http.proxies = {"127.0.0.1"}; });
  const std::string one = "X-Forwarded-For: 192.0.2.7\r\n" + bearer("ec1_wrong");
  int status = 401;
  for (int i = 0; i < 2 * auth::Authenticator::kBurst && status == 401; ++i) {
    status = f.ask("GET", "/api/v1/series", {}, one).status;
  }
  CHECK(status == 429);
  const std::string other = "X-Forwarded-For: 192.0.2.8\r\n" + bearer("ec1_wrong");
  CHECK(f.ask("GET", "/api/v1/series", {}, other).status == 401);
}

TEST_CASE("sites: names and proxies change while it runs") {
  ServerFixture f;
  const auto ask = [&f] {
    Client client = f.connect();
    client.send(
        "GET /api/v1/series HTTP/1.1\r\nUser-Agent: Mozilla/5.0\r\nHost: shed.example\r\n\r\n");
    return client.receive().status;
  };
  CHECK(ask() == 403);
  config::Settings fresh = f.settings;
  fresh.http.names = {"shed.example"};
  REQUIRE(f.server->reload(fresh).ok());
  CHECK(ask() == 200);
  fresh.http.names = {"shed.example:80"};
  CHECK(f.server->reload(fresh).code() == StatusCode::InvalidArgument);
  CHECK(ask() == 200);
}

TEST_CASE("sites: what a browser attaches by itself changes nothing") {
  const Sites sites = Sites::of({}, {}).value();
  struct Case {
    const char* agent;
    const char* path;
    const char* authorization;
    bool is_taken;
  };
  for (const Case& c : {Case{"Mozilla/5.0", "/api/v1/erase", "Basic YTpi", false},
                        Case{"Mozilla/5.0", "/api/v1/erase", " \tbAsIc\tYTpi", false},
                        Case{"Mozilla/5.0", "/api/v1/erase", "Basic", false},
                        Case{"Mozilla/5.0", "/api/v1/erase", "Bearer ec1_a_b", true},
                        Case{"Mozilla/5.0", "/api/v1/erase", "", true},
                        Case{"Mozilla/5.0", "/query", "Basic YTpi", true},
                        Case{"curl/8.0", "/api/v1/erase", "Basic YTpi", true}}) {
    CAPTURE(c.agent);
    CAPTURE(c.path);
    CAPTURE(c.authorization);
    RequestHead head;
    head.user_agent = c.agent;
    head.host = "localhost";
    head.path = c.path;
    head.authorization = c.authorization;
    CHECK(check_site(head, Effect::Changes, sites).ok() == c.is_taken);
    CHECK(check_site(head, Effect::Reads, sites).ok());
  }
}

}  // namespace edgecase::http::test
