// What becomes of long answers where as many are being sent as may be: here that is one.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "daemon/http/front_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr std::size_t kLongBytes = 16u << 20;  // no socket takes that while nobody reads
constexpr std::int64_t kNever = 3'600 * kSecondNs;

FrontOptions one_at_once() {
  FrontOptions options;
  options.threads = options.readers = 2;
  options.write_grace_ns = options.long_wait_ns = kNever;
  options.sweep_ns = kSecondNs / 50;
  return options;
}

// One reader has a long answer and has read nothing of it yet.
struct LongAnswers : FrontFixture {
  explicit LongAnswers(const FrontOptions& options = one_at_once()) : FrontFixture(options) {
    for (const char* const method : {"GET", "PUT", "POST"}) {
      const bool is_read = method == std::string("GET");
      router.add(method, "/long", is_read ? Effect::Reads : Effect::Changes, [this](Call& call) {
        ++asked;
        call.only_read = call.request.method == "POST";
        call.answer_text(200, "text/plain", std::string(kLongBytes, 'x'));
      });
    }
    router.on_answer([this](int) { ++told; });
    router.on_run({[](const Call&) { return ok(); }, [this](Call&) { ++recorded; }});
    first = ask();
    while (recorded < 1) std::this_thread::yield();  // it has its place then
  }

  Client ask(const char* method = "GET") {
    Client client = connect();
    REQUIRE(client.send(std::string(method) +
                        " /long HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
    return client;
  }
  // By the worker that is left, so that whatever came before is dealt with.
  void ask_for_little() {
    Client client = connect();
    REQUIRE(client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    CHECK(client.receive().status == 200);
    ++little;
  }
  // A request for a long answer that has been dealt with as far as it can be now.
  Client ask_and_wait(const char* method = "GET") {
    const int before = asked;
    Client client = ask(method);
    while (asked == before) std::this_thread::yield();
    ask_for_little();
    return client;
  }

  std::atomic<int> asked = 0, told = 0, recorded = 0;
  int little = 0;
  Client first = connect();
};

void check_whole(Client& client) {
  const Answer answer = client.receive();
  CHECK(answer.status == 200);
  CHECK(answer.complete);
  CHECK(answer.body.size() == kLongBytes);
}

}  // namespace

TEST_CASE("front: readers of long answers wait for their turn, and others for nobody") {
  LongAnswers f;
  std::vector<Client> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(f.ask_and_wait());
  check_whole(f.first);
  // In the order in which they came: the next has its turn once this one is read.
  for (Client& client : waiting) check_whole(client);
  // One that waited is asked twice, and told and recorded once. The last is recorded by now, and
  // told a bit later.
  CHECK(f.asked == 1 + 2 * 3);
  CHECK(f.recorded == 4 + f.little);
  f.front->stop();
  CHECK(f.told == 4 + f.little);
}

TEST_CASE("front: a connection that waited goes on") {
  LongAnswers f;
  Client waiting = f.ask_and_wait();
  check_whole(f.first);
  check_whole(waiting);
  REQUIRE(waiting.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(waiting.receive().body == "x");
}

TEST_CASE("front: whose turn does not come in time is told so") {
  FrontOptions options = one_at_once();
  options.long_wait_ns = kSecondNs / 5;
  LongAnswers f(options);
  Client waiting = f.ask_and_wait();
  const Answer answer = waiting.receive();
  CHECK(answer.status == 503);
  CHECK(answer.header("retry-after") == "1");
  CHECK(f.asked == 3);
  check_whole(f.first);
}

TEST_CASE("front: what changes something is refused at once, since it is not done twice") {
  LongAnswers f;
  Client changing = f.ask("PUT");
  CHECK(changing.receive().status == 503);
  CHECK(f.asked == 2);
  check_whole(f.first);
}

TEST_CASE("front: what has changed nothing waits, though others of its route change something") {
  LongAnswers f;
  Client reading = f.ask_and_wait("POST");
  check_whole(f.first);
  check_whole(reading);
  CHECK(f.asked == 3);
}

TEST_CASE("front: no more wait for a turn than may, and none with a large body") {
  FrontOptions options = one_at_once();
  options.waiting = 3;  // with the two that may be served
  LongAnswers f(options);
  Client large = f.connect();
  const std::string body(kWaitingBodyMaxBytes + 1, 'x');
  REQUIRE(large.send("GET /long HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body));
  CHECK(large.receive().status == 503);
  Client one = f.ask_and_wait();
  Client other = f.ask_and_wait();
  Client refused = f.ask_and_wait();
  CHECK(refused.receive().status == 503);
  check_whole(f.first);
  check_whole(one);
  check_whole(other);
}

TEST_CASE("front: a stop waits for nobody's turn") {
  FrontOptions options = one_at_once();
  options.stop_grace_ns = kNever;
  LongAnswers f(options);
  Client waiting = f.ask_and_wait();
  std::thread stopping([&f] { f.front->stop(); });
  CHECK(waiting.receive().status == 503);
  check_whole(f.first);  // what is being sent is sent
  stopping.join();
}

}  // namespace edgecase::http::test
