// A worker that has answered waits a moment for the next request of the same client.
#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "daemon/http/front_fixture.h"

namespace edgecase::http::test {

namespace {

const std::string kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

std::string post_of(std::size_t bytes, const std::string& headers = {}) {
  return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n" +
         headers + "\r\n";
}

// Until a worker has received a request itself: a busy machine may have it come too late.
bool is_lingered_by(const FrontFixture& f, Client& client) {
  constexpr int kTries = 20'000;
  for (int i = 0; i < kTries && f.front->received_at_once() == 0; ++i)
    if (client.ask("GET", "/").status != 200) return false;
  return f.front->received_at_once() > 0;
}

}  // namespace

TEST_CASE("front: who asks one after the other is received by the worker that answered") {
  FrontFixture f({});
  Client client = f.connect();
  CHECK(is_lingered_by(f, client));
}

TEST_CASE("front: a worker that waits for one client keeps no other waiting") {
  FrontOptions options;
  options.threads = 1;
  FrontFixture f(options);
  Client one = f.connect();
  Client other = f.connect();
  CHECK(is_lingered_by(f, one));
  for (int i = 0; i < 200; ++i) {
    REQUIRE(one.ask("GET", "/").status == 200);
    REQUIRE(other.ask("POST", "/", "body").body == "body");
  }
  // Both at the same time.
  std::thread beside([&] {
    for (int i = 0; i < 200; ++i) CHECK(other.ask("POST", "/", "beside").body == "beside");
  });
  for (int i = 0; i < 200; ++i) CHECK(one.ask("GET", "/").status == 200);
  beside.join();
}

TEST_CASE("front: the next request is taken whatever it is and however it comes") {
  FrontFixture f({});
  Client client = f.connect();
  Client other = f.connect();
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    // In two pieces, with another client's in between.
    REQUIRE(client.send(kGet.substr(0, static_cast<std::size_t>(i) % kGet.size())));
    REQUIRE(other.ask("GET", "/").status == 200);
    REQUIRE(client.send(kGet.substr(static_cast<std::size_t>(i) % kGet.size())));
    REQUIRE(client.receive().status == 200);
    // Two at once.
    REQUIRE(client.send(kGet + kGet));
    REQUIRE(client.receive().status == 200);
    REQUIRE(client.receive().status == 200);
    // One that asks first.
    REQUIRE(client.send(post_of(4, "Expect: 100-continue\r\n")));
    REQUIRE(client.receive_exactly("HTTP/1.1 100 Continue\r\n\r\n"));
    REQUIRE(client.send("body"));
    REQUIRE(client.receive().body == "body");
  }
  // More than a worker receives.
  const std::string large(3u << 20, 'x');
  for (int i = 0; i < 5; ++i) REQUIRE(client.ask("POST", "/", large).body.size() == large.size());
  // None.
  REQUIRE(client.ask("GET", "/").status == 200);
  REQUIRE(client.send("NOT HTTP\r\n\r\n"));
  CHECK(client.receive().status == 400);
  CHECK(client.closed());
}

TEST_CASE("front: who leaves after an answer is let go") {
  FrontFixture f({});
  for (int i = 0; i < 100; ++i) {
    Client client = f.connect();
    REQUIRE(client.ask("GET", "/").status == 200);
  }
  while (f.front->connections() > 0) std::this_thread::yield();
  f.front->stop();
  CHECK(f.front->connections() == 0);
}

TEST_CASE("front: where connections may have to give way, no worker waits for one") {
  FrontOptions options;
  options.connections = 3;
  FrontFixture f(options);
  Client one = f.connect();
  Client other = f.connect();
  REQUIRE(one.ask("GET", "/").status == 200);
  REQUIRE(other.ask("GET", "/").status == 200);  // two are open from here on
  // A worker may have waited for this one since it was alone.
  REQUIRE(one.ask("GET", "/").status == 200);
  const std::uint64_t before = f.front->received_at_once();
  for (int i = 0; i < 300; ++i) REQUIRE(one.ask("GET", "/").status == 200);
  CHECK(f.front->received_at_once() == before);
}

}  // namespace edgecase::http::test
