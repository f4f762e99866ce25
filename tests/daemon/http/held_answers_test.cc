#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/http/front_fixture.h"

namespace edgecase::http::test {

namespace {

// Answers that are held until what they tell of is durable; they are numbered as they come.
struct HeldAnswers {
  // A settlement waits until `open`, and makes durable what came up to its own, `durable_max` at
  // most.
  int hold(Call& call) {
    call.answer_text(200, "text/plain", "held");
    const std::lock_guard lock(mutex);
    const int number = ++arrived;
    changed.notify_all();
    call.exchange.settlement.is_settled = [this, number] {
      const std::lock_guard waiting(mutex);
      return number <= durable;
    };
    call.exchange.settlement.settle = [this, number]() -> Status {
      std::unique_lock waiting(mutex);
      settled.push_back(number);
      changed.notify_all();
      changed.wait(waiting, [this] { return open; });
      durable = std::max(durable, std::min(number, durable_max));
      return durable < number ? unavailable("no more can be recorded") : ok();
    };
    call.exchange.settlement.refused = [this, number](const Status& why) {
      CHECK(why.code() == StatusCode::Unavailable);
      const std::lock_guard refusing(mutex);
      refused.push_back(number);
    };
    return number;
  }
  // Asks `count` times, one after another; the first one has begun to settle before another comes.
  std::vector<Client> ask(const FrontFixture& front, int count) {
    std::vector<Client> clients;
    for (int i = 1; i <= count; ++i) {
      clients.push_back(front.connect());
      REQUIRE(clients.back().send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
      std::unique_lock lock(mutex);
      REQUIRE(changed.wait_for(lock, std::chrono::seconds(60),
                               [&] { return arrived == i && !settled.empty(); }));
    }
    return clients;
  }
  void say(bool& what) {
    const std::lock_guard lock(mutex);
    what = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> settled, refused;
  bool open = false;
  int arrived = 0, durable = 0, durable_max = std::numeric_limits<int>::max();
};

}  // namespace

TEST_CASE("front: answers that wait for something durable keep no worker, and leave together") {
  HeldAnswers held;
  held.durable_max = 4;
  FrontOptions options;
  options.threads = 2;
  FrontFixture f(options);
  f.router.add("GET", "/held", Effect::Reads, [&](Call& call) {
    CHECK(call.exchange.held_max_bytes > 0);
    held.hold(call);
  });
  // One settles, and the others serve all that come meanwhile.
  std::vector<Client> clients = held.ask(f, 6);
  Client other = f.connect();
  CHECK(other.ask("GET", "/").status == 200);
  {
    const std::lock_guard lock(held.mutex);
    CHECK(held.settled == std::vector<int>{1});
  }
  held.say(held.open);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    CAPTURE(i);
    const Answer answer = clients[i].receive();
    const bool is_refused = i >= 4;
    CHECK(answer.status == (is_refused ? 503 : 200));
    CHECK((answer.body == "held") == !is_refused);
    if (is_refused) {
      CHECK(clients[i].closed());
    } else {
      CHECK(clients[i].ask("GET", "/").status == 200);
    }
  }
  // The newest, most often 6: the others need no sync of their own.
  const std::lock_guard lock(held.mutex);
  CHECK(held.settled.size() <= 4);
  std::sort(held.refused.begin(), held.refused.end());
  CHECK(held.refused == std::vector<int>{5, 6});
}

TEST_CASE("front: an answer that was held before an older one waits for its own") {
  HeldAnswers held;
  bool second_goes_on = false;
  int together = 0;
  FrontOptions options;
  options.threads = 2;
  FrontFixture f(options);
  f.router.add("GET", "/held", Effect::Reads, [&](Call& call) {
    if (held.hold(call) != 2) return;
    std::unique_lock lock(held.mutex);
    held.changed.wait(lock, [&] { return second_goes_on; });
  });
  // Two of these at once take both workers.
  f.router.add("GET", "/both", Effect::Reads, [&](Call& call) {
    std::unique_lock lock(held.mutex);
    ++together;
    held.changed.notify_all();
    held.changed.wait(lock, [&] { return together == 2; });
    call.answer_text(200, "text/plain", "both");
  });
  std::vector<Client> clients = held.ask(f, 3);
  // One of the two workers stays with the second: the third is held by now.
  Client other = f.connect();
  CHECK(other.ask("GET", "/").status == 200);
  held.say(second_goes_on);
  // When both are free, the second is held, too, behind the third.
  REQUIRE(other.send("GET /both HTTP/1.1\r\nHost: x\r\n\r\n"));
  Client another = f.connect();
  CHECK(another.ask("GET", "/both").status == 200);
  CHECK(other.receive().status == 200);
  held.say(held.open);
  for (Client& client : clients) CHECK(client.receive().body == "held");
  const std::lock_guard lock(held.mutex);
  CHECK(held.durable == 3);
}

TEST_CASE("front: what others made durable leaves without a settlement") {
  FrontOptions options;
  options.threads = 1;
  FrontFixture f(options);
  std::mutex mutex;
  std::condition_variable changed;
  int settling = 0;
  bool is_durable = false, open = false;
  f.router.add("GET", "/held", Effect::Reads, [&](Call& call) {
    call.answer_text(200, "text/plain", "held");
    call.exchange.settlement.is_settled = [&] {
      const std::lock_guard lock(mutex);
      return is_durable;
    };
    call.exchange.settlement.settle = [&] {
      std::unique_lock lock(mutex);
      ++settling;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
      return ok();
    };
  });
  f.router.add("POST", "/commit", Effect::Changes, [&](Call& call) {
    const std::lock_guard lock(mutex);
    is_durable = true;
    call.answer_text(200, "text/plain", "durable");
  });
  Client first = f.connect(), second = f.connect(), third = f.connect();
  REQUIRE(first.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return settling == 1; }));
  }
  // The only worker that may serve does: who settles takes no place. Both answers leave, though
  // the first settlement has not returned.
  REQUIRE(second.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(third.ask("POST", "/commit").status == 200);
  CHECK(second.receive().body == "held");
  {
    const std::lock_guard lock(mutex);
    CHECK(settling == 1);
    open = true;
    changed.notify_all();
  }
  CHECK(first.receive().body == "held");
}

TEST_CASE("front: what is held does not wait for a request that takes long") {
  FrontOptions options;
  options.threads = 1;
  FrontFixture f(options);
  std::mutex mutex;
  std::condition_variable changed;
  bool has_arrived = false, goes_on = false, ends = false;
  const auto wait_for = [&](const bool& what) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&what] { return what; });
  };
  const auto say = [&](bool& what) {
    const std::lock_guard lock(mutex);
    what = true;
    changed.notify_all();
  };
  f.router.add("GET", "/held", Effect::Reads, [&](Call& call) {
    say(has_arrived);
    CHECK(wait_for(goes_on));
    call.answer_text(200, "text/plain", "held");
    call.exchange.settlement = {[] { return false; }, [] { return ok(); }};
  });
  f.router.add("GET", "/long", Effect::Reads, [&](Call& call) {
    CHECK(wait_for(ends));
    call.answer_text(200, "text/plain", "long");
  });
  Client held = f.connect(), slow = f.connect(), wrong = f.connect();
  REQUIRE(held.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
  REQUIRE(wait_for(has_arrived));
  // It is in the queue before the poller refuses what came after it.
  REQUIRE(slow.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
  REQUIRE(wrong.send("no request\r\n\r\n"));
  REQUIRE(wrong.receive().status == 400);
  say(goes_on);
  CHECK(held.receive().body == "held");
  say(ends);
  CHECK(slow.receive().body == "long");
}

}  // namespace edgecase::http::test
