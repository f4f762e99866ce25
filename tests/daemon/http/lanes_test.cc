// Lanes: who is served whatever others do, and what becomes of reads that are too many, or that
// nobody waits for any more.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "daemon/http/front_fixture.h"
#include "edgecase/machine.h"
#include "http/http_routes.h"
#include "http/lanes.h"

namespace edgecase::http::test {
namespace {

constexpr std::int64_t kForever = 3'600 * kSecondNs;

FrontOptions smallest() {
  FrontOptions options;
  options.threads = 1;
  options.readers = 2;
  options.waiting = 3;
  options.long_wait_ns = kForever;
  return options;
}

// Routes that answer once they are told to.
struct Lanes : FrontFixture {
  explicit Lanes(const FrontOptions& options = smallest()) : FrontFixture(options) {
    const auto stuck = [this](Call& call) {
      ++begun;
      while (!released) std::this_thread::yield();
      call.answer_text(200, "text/plain", "done");
    };
    router.add("GET", "/stuck", Effect::Reads, stuck);
    router.add("PUT", "/stuck", Effect::Changes, stuck);
    router.add("POST", "/api/v1/readings", Effect::Changes, stuck);
    const auto at_once = [](Call& call) { call.answer_text(200, "text/plain", "ok"); };
    for (const char* path : {"/healthz", "/readyz", "/metrics"})
      router.add("GET", path, Effect::Reads, at_once);
    router.add("POST", "/write", Effect::Changes, at_once);
    router.add("GET", "/work", Effect::Reads, [this](Call& call) {
      ++begun;
      REQUIRE(call.exchange.patience != nullptr);
      Status status;
      while (status.ok() && !released) status = call.exchange.patience->go_on();
      ended_with = static_cast<int>(status.code());
      ++ended;
      call.answer_text(200, "text/plain", "done");
    });
  }
  ~Lanes() {
    released = true;
    front->stop();
  }

  Client ask(const std::string& method, const std::string& path) {
    Client client = connect();
    REQUIRE(client.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    return client;
  }
  void wait_for(std::atomic<int>& count, int wanted) {
    while (count < wanted) std::this_thread::yield();
  }

  std::atomic<int> begun = 0, ended = 0, ended_with = 0;
  std::atomic<bool> released = false;
};

}  // namespace

TEST_CASE("lanes: each request has one, by its method and path alone") {
  struct Case {
    const char* method;
    const char* target;
    Lane lane;
  };
  for (const Case& c :
       {Case{"GET", "/healthz", Lane::Prompt}, Case{"HEAD", "/readyz?a=b", Lane::Prompt},
        Case{"GET", "/metrics", Lane::Prompt}, Case{"GET", "/ping?verbose=true", Lane::Prompt},
        Case{"GET", "/", Lane::Prompt}, Case{"POST", "/write?db=a", Lane::Ingest},
        Case{"POST", "/api/v2/write", Lane::Ingest}, Case{"POST", "/api/v1/readings", Lane::Ingest},
        Case{"PUT", "/api/v1/blob/a/b/c", Lane::Ingest},
        Case{"GET", "/api/v1/blob/a/b/c", Lane::Reads}, Case{"GET", "/api/v1/devices", Lane::Reads},
        Case{"POST", "/query", Lane::Reads}, Case{"GET", "/query?q=a", Lane::Reads},
        Case{"GET", "/%68ealthz", Lane::Prompt}, Case{"POST", "/api/v1/erase", Lane::Changes},
        Case{"DELETE", "/healthz", Lane::Changes}, Case{"GET", "/api/v1/status", Lane::Reads}}) {
    CAPTURE(c.target);
    RequestHead head;
    std::size_t used = 0;
    Refusal refusal;
    const std::string text = std::string(c.method) + " " + c.target + " HTTP/1.0\r\n\r\n";
    REQUIRE(parse_request_head(text, head, used, refusal) == HeadOutcome::Complete);
    CHECK(lane_of(head) == c.lane);
  }
}

TEST_CASE("lanes: health is told and readings are taken whatever else is asked") {
  Lanes f;
  std::vector<Client> stuck;
  for (int i = 0; i < 8; ++i) stuck.push_back(f.ask("GET", "/stuck"));
  for (int i = 0; i < 3; ++i) stuck.push_back(f.ask("PUT", "/stuck"));
  f.wait_for(f.begun, 3);  // two reads and a change
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
    Client client = f.ask("GET", path);
    CHECK(client.receive().status == 200);
  }
  Client writer = f.ask("POST", "/write");
  CHECK(writer.receive().status == 200);
  // Writes that a drive holds up keep nobody from asking for health either.
  Client held = f.ask("POST", "/api/v1/readings");
  f.wait_for(f.begun, 4);
  Client client = f.ask("GET", "/healthz");
  CHECK(client.receive().status == 200);
  f.released = true;
  CHECK(held.receive().status == 200);
}

TEST_CASE("lanes: beyond those that may wait a read is refused, with the time to come again") {
  Lanes f;
  std::vector<Client> stuck;
  for (int i = 0; i < 2; ++i) {
    stuck.push_back(f.ask("GET", "/stuck"));
    f.wait_for(f.begun, i + 1);
  }
  for (int i = 0; i < 9; ++i) stuck.push_back(f.ask("GET", "/stuck"));
  int refused = 0;
  Client prompt = f.ask("GET", "/healthz");
  CHECK(prompt.receive().status == 200);
  f.released = true;
  for (Client& client : stuck) {
    const Answer answer = client.receive();
    if (answer.status == 200) continue;
    CHECK(answer.status == 503);
    CHECK(answer.header("retry-after") == "1");
    ++refused;
  }
  CHECK(refused == 6);
}

TEST_CASE("lanes: a read that waits too long for its turn is refused") {
  FrontOptions options = smallest();
  options.readers = 1;
  options.long_wait_ns = 0;
  Lanes f(options);
  Client first = f.ask("GET", "/stuck");
  Client second = f.ask("GET", "/stuck");
  f.released = true;
  CHECK(second.receive().status == 503);
}

TEST_CASE("lanes: work for a client that has left ends") {
  for (const bool half : {false, true}) {
    CAPTURE(half);
    Lanes f;
    {
      Client client = f.ask("GET", "/work");
      f.wait_for(f.begun, 1);
      if (half) {
        client.end_sending();
        f.wait_for(f.ended, 1);
      }
    }
    f.wait_for(f.ended, 1);
    CHECK(f.ended_with == static_cast<int>(StatusCode::Cancelled));
  }
}

TEST_CASE("lanes: who only ends its side of the connection is answered") {
  Lanes f;
  f.router.add("GET", "/pieces", Effect::Reads, [left = 200](Call& call) {
    auto pieces_left = std::make_shared<int>(left);
    answer_in_pieces(call, "text/plain", [pieces_left](std::string& piece) -> Result<bool> {
      piece += std::string(1'000, 'x');
      const std::int64_t until_ns = system_clock().boot_ns() + kSecondNs / 1'000;
      while (system_clock().boot_ns() < until_ns) std::this_thread::yield();
      return --*pieces_left > 0;
    });
  });
  Client client = f.ask("GET", "/pieces");
  client.end_sending();
  const Answer answer = client.receive();
  CHECK(answer.complete);
  CHECK(answer.body.size() == 200'000);
}

TEST_CASE("lanes: slots are handed on in the order in which they were asked for") {
  ReadSlots slots(1);
  slots.take();
  CHECK(!slots.is_wanted());
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      slots.take();
      order.push_back(i);  // who has the only slot is alone
      slots.give_back();
    });
    while (slots.waiting() < static_cast<std::size_t>(i) + 1) std::this_thread::yield();
  }
  CHECK(slots.is_wanted());
  slots.give_back();
  for (std::thread& thread : threads) thread.join();
  CHECK(order == std::vector<int>{0, 1, 2});
}

TEST_CASE("lanes: a second thread has a slot only where nobody else wants one") {
  ReadSlots slots(2);
  ReadTurn first(slots, [] { return false; });
  {
    const auto second = ReadTurn::second(slots);
    REQUIRE(second != nullptr);
    CHECK(second->go_on().ok());
    CHECK(ReadTurn::second(slots) == nullptr);
  }
  CHECK(ReadTurn::second(slots) != nullptr);  // it was given back
  slots.take();
  std::thread other([&] {
    slots.take();
    slots.give_back();
  });
  while (slots.waiting() == 0) std::this_thread::yield();
  CHECK(ReadTurn::second(slots) == nullptr);
  slots.give_back();
  other.join();
}

namespace {

struct Behind final : Patience {
  int asked = 0, rested = 0;
  Status go_on() override {
    ++asked;
    return ok();
  }
  void rest() override { ++rested; }
  void resume() override { --rested; }
};

auth::Principal reader(const char* name) {
  auth::Scopes scopes;
  scopes.read = {wire::Selector{}};
  auto grant = std::make_shared<auth::Grant>();
  grant->scopes = scopes;
  return {auth::PrincipalKind::Remote, name, grant};
}

}  // namespace

TEST_CASE(
    "running queries: each is told until it ends, and killed by its asker or an administrator") {
  RunningQueries table;
  const auth::Principal ann = reader("ann"), ben = reader("ben");
  const auth::Principal local{auth::PrincipalKind::LocalSocket, "uid 0", nullptr};
  Behind behind;
  auto first = table.begin("SHOW SERIES", "a", ann, &behind, 1'000);
  auto second = table.begin(std::string(5'000, 'x'), "b", ben, nullptr, 2'000);
  REQUIRE(table.tell(local, 3'000).size() == 2);
  CHECK(table.tell(local, 3'000)[0].running_ns == 2'000);
  CHECK(table.tell(local, 3'000)[1].text.size() == RunningQueries::kTextMaxBytes);
  REQUIRE(table.tell(ann, 3'000).size() == 1);
  CHECK(table.tell(ann, 3'000)[0].text == "SHOW SERIES");
  CHECK(table.tell(ann, 3'000)[0].database == "a");

  const auto id_of = [&](std::size_t i) {
    return static_cast<std::int64_t>(table.tell(local, 0)[i].id);
  };
  for (const std::int64_t id : {id_of(1), std::int64_t{0}, std::int64_t{-1}, INT64_MAX})
    CHECK(table.kill(id, ann).code() == StatusCode::NotFound);
  CHECK(second->go_on().ok());
  CHECK(first->go_on().ok());
  CHECK(behind.asked == 1);
  first->rest();
  CHECK(behind.rested == 1);
  first->resume();
  second->rest();

  CHECK(table.kill(id_of(0), ann).ok());
  CHECK(first->go_on().code() == StatusCode::Cancelled);
  CHECK(table.tell(ann, 0)[0].is_killed);
  CHECK(table.kill(id_of(1), local).ok());
  CHECK(second->go_on().code() == StatusCode::Cancelled);
  first = nullptr;
  CHECK(table.tell(ann, 0).empty());
  CHECK(table.tell(local, 0).size() == 1);
}

}  // namespace edgecase::http::test
