#include "http/answer_stream.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "daemon/http/front_fixture.h"

namespace edgecase::http::test {

TEST_CASE("front: who makes an answer is told now and then that its reader is slow") {
  std::atomic<int> told{0};
  FrontFixture f(FrontOptions{});
  f.router.add("GET", "/long", Effect::Reads, [&told](Call& call) {
    call.exchange.stream.on_slow([&told] { ++told; });
    call.answer_text(200, "text/plain", std::string(16u << 20, 'x'));
  });
  Client client = f.connect();
  client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  while (told < 2) std::this_thread::yield();
  const Answer answer = client.receive();
  CHECK(answer.status == 200);
  CHECK(answer.body.size() == 16u << 20);
}

}  // namespace edgecase::http::test
