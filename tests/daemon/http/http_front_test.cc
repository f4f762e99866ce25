#include "http/http_front.h"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "daemon/http/front_fixture.h"
#include "daemon/http/http_fixture.h"
#include "edgecase/machine.h"

namespace edgecase::http::test {
namespace {

FrontOptions quick() {
  FrontOptions options;
  options.threads = 2;
  options.idle_ns = options.head_ns = options.body_grace_ns = options.write_grace_ns =
      kSecondNs / 5;
  options.body_bytes_per_second_min = options.slow_bytes_per_second = 1u << 30;
  options.sweep_ns = kSecondNs / 50;
  return options;
}

constexpr char kHead[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace

TEST_CASE("front: what is no request is refused with its reason, then closed") {
  ServerFixture f([](config::Settings& s) { s.http.body_limit_bytes = 100'000; });
  struct Case {
    std::string bytes;
    int status;
  };
  const std::string post = "POST /write HTTP/1.1\r\nHost: x\r\n";
  const Case cases[] = {
      {std::string("\x10\x0c\0\4MQTT", 8), 400},
      {std::string("\x80\x2e\x01\x03", 4), 400},
      {"\r\n\x01", 400},
      {"\n", 400},
      {"GET / HTTP/1.1\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\n\n", 400},
      {"GET / HTTP/1.1\rHost: x\r\r", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\r", 400},
      {"GET /\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 501},
      {"GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n", 400},
      {std::string("GET /\0x HTTP/1.1\r\nHost: x\r\n\r\n", 29), 400},
      {"GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
      {"GET /" + std::string(40'000, 'a'), 414},
      {"GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n", 431},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 1x\r\n\r\n", 400},
      {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {post + "Content-Length: 99999999999999999999999\r\n\r\n", 413},
      {post + "Content-Length: 100001\r\n\r\n", 413},
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n2\nab", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\n186a1\r\n", 413},
      {post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(1'000, 'a'), 400},
      {post + "Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 415},
      {post + "Expect: cake\r\nContent-Length: 1\r\n\r\nx", 417},
      {"POST /write HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
  };
  for (const Case& c : cases) {
    CAPTURE(c.bytes.substr(0, 120));
    Client client = f.connect();
    client.send(c.bytes);
    const Answer answer = client.receive();
    CHECK(answer.status == c.status);
    CHECK(answer.header("connection") == "close");
    const auto body = nlohmann::json::parse(answer.body, nullptr, false);
    CHECK(body.contains("error"));
    CHECK(client.closed());
  }
  CHECK(f.ask("GET", "/healthz").status == 200);
  CHECK(f.stored().empty());
}

TEST_CASE("front: who speaks TLS to the plain port gets an alert of it at once") {
  FrontFixture f(FrontOptions{});
  for (const char* hello : {"\x16", "\x16\x03", "\x16\x03\x01\x02"}) {
    Client client = f.connect();
    client.send(hello);
    CHECK(client.receive_exactly({"\x15\x03\x01\x00\x02\x02\x28", 7}));
    CHECK(client.closed());
  }
}

TEST_CASE("front: who sends slowly is waited for while it sends, who stops is not") {
  FrontOptions options = quick();
  options.body_grace_ns = kSecondNs;
  options.body_bytes_per_second_min = 4;
  FrontFixture f(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n";
  Client slow = f.connect();
  slow.send(head);
  const std::int64_t began = system_clock().boot_ns();
  std::int64_t passed = 0;
  // In longer than the grace.
  for (int sent = 0; sent < 12; ++sent) {
    while (passed < sent * kSecondNs / 10) passed = system_clock().boot_ns() - began;
    slow.send("x");
  }
  CHECK(slow.receive("POST").status == 200);
  // What came fast buys nobody an hour of silence.
  Client silent = f.connect();
  silent.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  silent.send(std::string(90'000, 'x'));
  CHECK(silent.receive("POST").status == 408);
}

TEST_CASE("front: compressed and chunked bodies") {
  ServerFixture f;
  const std::string line = "m,device=d value=1 1\n";
  const std::string want = "d/m@1970-01-01T00:00:00.000000001Z=1\n";
  struct Case {
    std::string body;
    const char* headers;
  };
  const std::string two =
      compress("m,device=d val", Wrapper::Gzip) + compress("ue=1 1\n", Wrapper::Gzip);
  std::string zstd;
  REQUIRE(wire::pack_once(wire::Coding::Zstd, line, zstd));
  for (const Case& c : {Case{compress(line, Wrapper::Gzip), "Content-Encoding: gzip\r\n"},
                        Case{zstd, "Content-Encoding: ZStd\r\n"},
                        Case{compress(line, Wrapper::Gzip), "Content-Encoding: X-GZIP\r\n"},
                        Case{compress(line, Wrapper::Zlib), "Content-Encoding: deflate\r\n"},
                        Case{compress(line, Wrapper::None), "Content-Encoding: deflate\r\n"},
                        Case{two, "Content-Encoding: gzip\r\n"}, Case{line, ""}}) {
    for (const bool chunked : {false, true}) {
      ServerFixture fresh;
      std::string request = "POST /write HTTP/1.1\r\nHost: x\r\n" + std::string(c.headers);
      if (chunked) {
        request += "Transfer-Encoding: chunked\r\n\r\n";
        for (const char byte : c.body) request += std::string("1;x=y\r\n") + byte + "\r\n";
        request += "0\r\nTrailer: x\r\n\r\n";
      } else {
        request += "Content-Length: " + std::to_string(c.body.size()) + "\r\n\r\n" + c.body;
      }
      Client client = fresh.connect();
      client.send(request);
      CHECK(client.receive().status == 204);
      CHECK(fresh.stored() == want);
    }
  }
}

TEST_CASE("front: damaged, cut and exploding bodies") {
  ServerFixture f([](config::Settings& s) { s.http.body_limit_bytes = 1u << 20; });
  const std::string good = compress("m value=1 1\n", Wrapper::Gzip);
  std::string damaged = good;
  damaged[14] = static_cast<char>(damaged[14] ^ 0x55);
  const std::string bomb = compress(std::string(200u << 20, '\n'), Wrapper::Gzip);
  // The same, with a length that lies.
  std::string sly = bomb;
  sly.replace(sly.size() - 4, 4, std::string(4, '\1'));
  struct Case {
    std::string body;
    int status;
  };
  for (const Case& c :
       {Case{good.substr(0, good.size() / 2), 400}, Case{good.substr(0, good.size() - 1), 400},
        Case{damaged, 400}, Case{good + "tail", 400}, Case{"not gzip at all", 400}, Case{bomb, 413},
        Case{sly, 413}}) {
    const Answer answer = f.ask("POST", "/write", c.body, "Content-Encoding: gzip\r\n");
    CHECK(answer.status == c.status);
    CHECK(nlohmann::json::parse(answer.body, nullptr, false)["error"].is_string());
  }
  CHECK(f.ask("POST", "/write", "", "Content-Encoding: gzip\r\n").status == 204);
  CHECK(f.stored().empty());
}

TEST_CASE("front: of a large body is told while it comes, but not all the time") {
  for (const std::int64_t pause_ns : {std::int64_t{0}, 1'000 * kSecondNs}) {
    CAPTURE(pause_ns);
    std::atomic<int> told{0};
    FrontOptions options;
    options.on_large_body = [&told] { ++told; };
    options.large_body_ns = pause_ns;
    FrontFixture f(options);
    Client client = f.connect();
    CHECK(client.ask("POST", "/", std::string(1u << 20, 'x')).status == 200);
    CHECK(told == 0);
    CHECK(client.ask("POST", "/", std::string(5u << 20, 'x')).status == 200);
    CHECK(told == 1);
    CHECK(client.ask("POST", "/", std::string(5u << 20, 'x')).status == 200);
    CHECK(told == (pause_ns == 0 ? 2 : 1));
  }
}

TEST_CASE("front: a refusal reaches a client that is still sending") {
  ServerFixture f([](config::Settings& s) { s.http.body_limit_bytes = 1u << 20; });
  const Answer answer = f.ask("POST", "/write", std::string(20u << 20, 'x'));
  CHECK(answer.status == 413);
  CHECK(answer.complete);
}

TEST_CASE("front: one connection takes any number of requests, pipelined too") {
  ServerFixture f;
  Client client = f.connect();
  for (int i = 0; i < 500; ++i) {
    REQUIRE(client.ask("POST", "/write", "m value=1 " + std::to_string(i)).status == 204);
  }
  std::string many;
  for (int i = 0; i < 200; ++i) {
    many += "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nm value=2 1";
    many += "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.send(many);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(client.receive().status == 204);
    REQUIRE(client.receive().body == "ok\n");
  }
  // Line breaks that a client adds behind a body belong to nobody.
  client.send("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n\n\r\n");
  CHECK(client.receive().status == 204);
  const Answer last = client.ask("GET", "/healthz", "", "Connection: close\r\n");
  CHECK(last.header("connection") == "close");
  CHECK(client.closed());
}

TEST_CASE("front: a request may come byte by byte, and its body be asked for") {
  ServerFixture f;
  Client client = f.connect();
  for (const char byte : std::string("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n"
                                     "Expect: 100-continue\r\n\r\n")) {
    REQUIRE(client.send({&byte, 1}));
  }
  REQUIRE(client.receive_exactly("HTTP/1.1 100 Continue\r\n\r\n"));
  for (const char byte : std::string("m value=3 1")) REQUIRE(client.send({&byte, 1}));
  CHECK(client.receive().status == 204);
  // Refused before the body is sent.
  client.send(
      "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n"
      "Expect: 100-continue\r\n\r\n");
  CHECK(client.receive().status == 413);
}

TEST_CASE("front: slow connections take no worker") {
  ServerFixture f;
  std::vector<Client> slow;
  for (int i = 0; i < 64; ++i) {
    slow.push_back(f.connect());
    REQUIRE(slow.back().send(
        i % 2 == 0 ? "GET /healthz HT"
                   : "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nm v"));
  }
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (int i = 0; i < 20; ++i) REQUIRE(f.ask("GET", "/healthz").status == 200);
  CHECK(system_clock().boot_ns() - begin_ns < 10 * kSecondNs);
  for (int i = 0; i < 64; ++i) {
    slow[static_cast<std::size_t>(i)].send(i % 2 == 0 ? "TP/1.1\r\nHost: x\r\n\r\n" : "alue=1");
    CHECK(slow[static_cast<std::size_t>(i)].receive().status == (i % 2 == 0 ? 200 : 204));
  }
}

TEST_CASE("front: deadlines") {
  FrontFixture f(quick());
  Client idle = f.connect();
  CHECK(idle.closed());
  Client head = f.connect();
  head.send("GET / HTT");
  CHECK(head.receive().status == 408);
  CHECK(head.closed());
  Client body = f.connect();
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
  CHECK(body.receive().status == 408);
  Client after = f.connect();
  after.send(kHead);
  CHECK(after.receive().status == 200);
  CHECK(after.closed());
}

TEST_CASE("front: an answer that is not read is given up") {
  FrontFixture f(quick(), 64u << 20);
  Client unread = f.connect();
  unread.send(kHead);
  // The other worker goes on meanwhile; a second long answer is turned away while one waits.
  Client probe = f.connect();
  probe.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  CHECK(probe.receive().body == "hi");
  while (f.front->connections() > 1) {
    Client knock = f.connect();
    knock.send("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
    CHECK(knock.receive().status == 200);
    CHECK(knock.closed());
    probe.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    if (probe.receive().status != 200) break;
  }
  CHECK(!unread.receive().complete);
}

TEST_CASE("front: connections over the limit are told so, idle ones make room") {
  FrontOptions options;
  options.connections = 4;
  options.slow_ns = 3'600 * kSecondNs;
  FrontFixture f(options);
  std::vector<Client> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(f.connect());
    busy.back().send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT");
    REQUIRE(busy.back().receive().status == 200);
  }
  Client turned_away = f.connect();
  const Answer answer = turned_away.receive();
  CHECK(answer.status == 503);
  CHECK(answer.header("retry-after") == "1");
  // Clients that come again as fast as they are turned away do not keep the front from closing.
  std::atomic<int> told = 0;
  const auto knock = [&] {
    for (int i = 0; i < 1'000; ++i) told += f.connect().receive().status == 503 ? 1 : 0;
  };
  std::vector<std::thread> knocking;
  for (int i = 0; i < 3; ++i) knocking.emplace_back(knock);
  for (std::thread& each : knocking) each.join();
  CHECK(told.load() == 3'000);
  busy[0].send("TP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(busy[0].receive().status == 200);
  REQUIRE(turned_away.closed());
  // The first is idle as soon as its worker is done with it, which may be after its answer came.
  int status = 503;
  for (int i = 0; i < 10'000 && status == 503; ++i) {
    Client welcome = f.connect();
    welcome.send(kHead);
    status = welcome.receive().status;
  }
  CHECK(status == 200);
}

TEST_CASE("front: where connections are short, slow ones make room") {
  FrontOptions options;
  options.connections = 4;
  options.slow_ns = kSecondNs / 10;
  FrontFixture f(options);
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n";
  // The first is as slow as the others, but far ahead of the pace.
  Client ahead = f.connect();
  REQUIRE(ahead.send(post + std::string(1'900'000, 'x')));
  std::vector<Client> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(f.connect());
    REQUIRE(slow.back().send(i == 1 ? post + "x" : "GET / HT"));
  }
  // Before they are slow, who comes is turned away; who is let in and idle is the next to make
  // room, so that it takes more than three.
  std::atomic<bool> is_over = false;
  std::thread others([&] {
    std::deque<Client> welcome;
    while (!is_over) {
      if (welcome.size() > 2 * options.connections) welcome.pop_front();
      Client client = f.connect();
      client.send(kHead);
      if (client.receive().status != 200) continue;
      client.send("GET / HT");
      welcome.push_back(std::move(client));
    }
  });
  for (Client& each : slow) {
    const Answer answer = each.receive();
    CHECK(answer.status == 408);
    CHECK(answer.body.find("came too slowly, and others wait") != std::string::npos);
  }
  is_over = true;
  others.join();
  REQUIRE(ahead.send(std::string(100'000, 'x')));
  CHECK(ahead.receive().status == 200);
}

TEST_CASE("front: bodies in flight share one budget") {
  FrontOptions options;
  options.body_limit_bytes = 1'000;
  options.in_flight_limit_bytes = 1'500;
  FrontFixture f(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
  Client first = f.connect();
  first.send(head + std::string(999, 'a'));
  while (f.front->in_flight_bytes() < 999) {
    Client knock = f.connect();
    knock.send(kHead);
    REQUIRE(knock.receive().status == 200);
  }
  Client second = f.connect();
  second.send(head + std::string(1'000, 'b'));
  const Answer refused = second.receive();
  CHECK(refused.status == 503);
  CHECK(refused.header("retry-after") == "1");
  first.send("a");
  CHECK(first.receive().body == std::string(1'000, 'a'));
  Client third = f.connect();
  third.send(head + std::string(1'000, 'c'));
  CHECK(third.receive().body == std::string(1'000, 'c'));
}

TEST_CASE("front: stopping answers what is complete and closes the rest") {
  FrontFixture f(FrontOptions{});
  Client idle = f.connect();
  Client half = f.connect();
  half.send("GET / HT");
  Client served = f.connect();
  served.send(kHead);
  CHECK(served.receive().status == 200);
  f.front->stop();
  CHECK(idle.closed());
  CHECK(half.closed());
  CHECK(served.closed());
  CHECK(!f.connect().connected());
  f.front->stop();
}

}  // namespace edgecase::http::test
