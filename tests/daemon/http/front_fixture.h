#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/http/http_fixture.h"
#include "http/http_front.h"

namespace edgecase::http::test {

// A front of its own, for what depends on deadlines: they are short here.
struct FrontFixture {
  explicit FrontFixture(const FrontOptions& options, std::size_t answer_bytes = 1) {
    router.add("GET", "/", Effect::Reads, [answer_bytes](Call& call) {
      call.answer_text(200, "text/plain", std::string(answer_bytes, 'x'));
    });
    router.add("POST", "/", Effect::Changes,
               [](Call& call) { call.answer_text(200, "text/plain", std::string(call.body())); });
    net::Socket listener = net::listen_on_tcp(net::loopback_host(), 0).value();
    port = net::tcp_port_of(listener);
    std::vector<FrontListener> listeners;
    listeners.push_back({std::move(listener), net::ListenerKind::Tcp});
    front = Front::start(options, std::move(listeners), router).value();
  }
  Client connect() const { return Client::over_tcp(port); }

  Router router;
  std::uint16_t port = 0;
  std::unique_ptr<Front> front;
};

}  // namespace edgecase::http::test
