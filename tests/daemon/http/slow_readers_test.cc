// Readers that are slow, over the wire: what is erased while their answer is under way they do not
// get any more, and an answer of which a part was erased before it was sent ends as incomplete.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr int kReadings = 20'000;  // of each device: megabytes, no socket takes them
constexpr std::string_view kNeedle = "needle-of-what-was-erased-";

std::size_t count_of(std::string_view needle, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(needle); at != text.npos; at = text.find(needle, at + 1)) ++count;
  return count;
}

// Devices a and c are kept, b is what goes.
struct SlowReaders : ServerFixture {
  SlowReaders() {
    for (const std::string device : {"a", "b", "c"}) {
      std::string lines;
      const std::string text = device == "b" ? std::string(kNeedle) : "kept-" + device + "-";
      for (int i = 0; i < kReadings; ++i) {
        lines += "m,device=" + device + " value=\"" + text + std::string(60, 'x') +
                 std::to_string(i) + "\" " + std::to_string(1'000 + i) + "\n";
      }
      REQUIRE(ask("POST", "/write?db=default", lines).status == 204);
    }
  }
  // One that has asked and reads no more than the beginning.
  Client reader(const std::string& target) const {
    Client client = connect();
    REQUIRE(client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    REQUIRE(client.await_answer());
    return client;
  }
  void erase(const std::string& select, const std::string& more = "") const {
    const Answer answer = ask("POST", "/api/v1/erase?wait=60s&select=" + select + more);
    REQUIRE(answer.status == 200);
  }
};

}  // namespace

TEST_CASE("slow readers: what is erased before its turn comes is left out, the rest is complete") {
  for (const std::string target :
       {"/api/v1/query?select=*/*&format=csv", "/api/v1/query?select=*/*&desc=true"}) {
    CAPTURE(target);
    SlowReaders f;
    Client client = f.reader(target);
    f.erase("b");
    const Answer answer = client.receive();
    CHECK(answer.complete);
    CHECK(count_of(kNeedle, answer.body) == 0);
    CHECK(count_of("kept-a-", answer.body) == kReadings);
    CHECK(count_of("kept-c-", answer.body) == kReadings);
  }
}

TEST_CASE("slow readers: an answer of which what waits was erased ends as incomplete") {
  SlowReaders f;
  Client client = f.reader("/api/v1/query?select=b&format=ndjson");
  f.erase("b");
  const Answer answer = client.receive();
  CHECK_FALSE(answer.complete);
  // What had left, for the reader's own buffer.
  CHECK(count_of(kNeedle, answer.body) < kReadings / 2);
}

TEST_CASE("slow readers: a range of times that is erased, and a rule that is made shorter") {
  for (const bool by_rule : {false, true}) {
    CAPTURE(by_rule);
    SlowReaders f;
    Client client = f.reader("/api/v1/query?select=*/*&format=csv");
    if (by_rule) {
      const auto id = f.catalog->ensure_namespace("default");
      REQUIRE(id.ok());
      f.engine.set_expiry_now_ns(1'000'000'000'000);
      REQUIRE(f.engine.set_retention({{*id, "", 1}}).ok());
    } else {
      f.erase("b", "&from=1970-01-01T00:00:00.000002Z&to=1970-01-02");
    }
    const Answer answer = client.receive();
    CHECK(count_of(kNeedle, answer.body) == (by_rule ? 0 : 1'000));
    // Everything has expired, also what waited to be sent.
    CHECK(answer.complete != by_rule);
  }
}

TEST_CASE("slow readers: a listing of which a name that waits was erased ends as incomplete") {
  ServerFixture f;
  constexpr int kDevices = 6'000;  // a megabyte of names
  const std::string name = "a-device-whose-name-takes-its-room-" + std::string(150, 'x');
  for (int from = 0; from < kDevices; from += 1'000) {
    std::string lines;
    for (int i = from; i < from + 1'000; ++i)
      lines += "m,device=" + name + std::to_string(i) + " value=1 1000\n";
    REQUIRE(f.ask("POST", "/write?db=default", lines).status == 204);
  }
  REQUIRE(f.ask("POST", "/write?db=default", "m,device=kept value=1 1000\n").status == 204);
  for (const std::string target : {"/api/v1/series", "/api/v1/devices"}) {
    CAPTURE(target);
    Client client = f.connect();
    REQUIRE(client.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    REQUIRE(client.await_answer());
    // What is read next goes with what waits: a range of times that all have.
    const Answer erased =
        f.ask("POST", "/api/v1/erase?wait=60s&select=" + name + "*&from=0&to=999");
    REQUIRE(erased.status == 200);
    const Answer answer = client.receive();
    CHECK_FALSE(answer.complete);
    CHECK(count_of(name, answer.body) < kDevices);
  }
  // Another device's erasure cuts nothing.
  Client client = f.connect();
  REQUIRE(client.send("GET /api/v1/devices HTTP/1.1\r\nHost: x\r\n\r\n"));
  REQUIRE(client.await_answer());
  REQUIRE(f.ask("POST", "/api/v1/erase?wait=60s&select=kept").status == 200);
  const Answer answer = client.receive();
  CHECK(answer.complete);
  CHECK(count_of(name, answer.body) == kDevices);
  CHECK(count_of("\"kept\"", answer.body) == 0);
}

TEST_CASE("slow readers: a value of megabytes that is erased is cut") {
  SlowReaders f;
  REQUIRE(f.ask("PUT", "/api/v1/blob/default/cam/shot?time=1970-01-01", std::string(8u << 20, 'n'))
              .status == 201);
  Client client = f.reader("/api/v1/blob/default/cam/shot?time=1970-01-01");
  f.erase("cam");
  client.await_reset();  // an answer is asked for what it holds every 50 ms
  const Answer answer = client.receive();
  CHECK_FALSE(answer.complete);
  CHECK(answer.body.size() < 5u << 20);
}

}  // namespace edgecase::http::test
