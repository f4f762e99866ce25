#include "forward/http_client.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "net/channel.h"

namespace edgecase::forward {
namespace {

// Answers each connection with the next of its texts, whatever it is asked, and closes it.
class RawServer {
 public:
  explicit RawServer(std::vector<std::string> answers)
      : listener_(std::move(net::listen_on_tcp(net::loopback_host(), 0)).value()),
        thread_([this, texts = std::move(answers)] {
          for (const std::string& each : texts) serve(each);
        }) {}
  ~RawServer() { thread_.join(); }
  std::uint16_t port() const { return net::tcp_port_of(listener_); }

 private:
  void serve(const std::string& answer) const {
    pollfd waiting{listener_.descriptor(), POLLIN, 0};
    if (::poll(&waiting, 1, 10'000) != 1) return;
    const net::Socket connection(::accept(listener_.descriptor(), nullptr, nullptr));
    // The request's end is the body "body"; a question has none.
    std::string request;
    char buffer[4096];
    while (!request.ends_with("body") &&
           !(request.starts_with("GET ") && request.ends_with("\r\n\r\n"))) {
      pollfd readable{connection.descriptor(), POLLIN, 0};
      if (::poll(&readable, 1, 10'000) != 1) return;
      const ssize_t n = ::recv(connection.descriptor(), buffer, sizeof buffer, 0);
      if (n <= 0) return;
      request.append(buffer, static_cast<std::size_t>(n));
    }
    std::string_view rest = answer;
    while (!rest.empty()) {
      const ssize_t n = ::send(connection.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  net::Socket listener_;
  std::thread thread_;
};

HttpClient client_of(const RawServer& server) {
  return HttpClient(
      {.host = net::loopback_host(), .port = server.port(), .tls = nullptr, .proxy = {}},
      system_clock());
}

Result<HttpAnswer> ask(HttpClient& client) {
  return client.post("/write", "X-Header: 1\r\n", "body");
}

TEST_CASE("http client: answers of every form are understood") {
  struct Case {
    std::string answer;
    int status;
    std::string body;
  };
  const Case cases[] = {
      {"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", 204, ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"},
      {"HTTP/1.1 200 OK\r\ncontent-length:  5 \r\n\r\nhello", 200, "hello"},
      {"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbad\r\n2;x=y\r\n!!\r\n0\r\nT: "
       "v\r\n\r\n",
       400, "bad!!"},
      {"HTTP/1.0 500 Oops\r\n\r\nuntil it closes", 500, "until it closes"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Done\r\n\r\n", 204, ""},
      {"HTTP/1.1 503 Busy\r\nContent-Length: 6000\r\n\r\n" + std::string(6'000, 'x'), 503,
       std::string(HttpClient::kKeptBodyMaxBytes, 'x')},
  };
  for (const Case& each : cases) {
    CAPTURE(each.answer.substr(0, 40));
    const RawServer server({each.answer});
    HttpClient client = client_of(server);
    const auto answer = ask(client);
    REQUIRE(answer.ok());
    CHECK(answer->status == each.status);
    CHECK(answer->body == each.body);
  }
}

TEST_CASE("http client: what is no answer is told in words, and takes bounded memory") {
  const std::string cases[] = {
      "",
      "garbage\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + std::string(2u << 20, 'x'),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n" + std::string(HttpClient::kHeadMaxBytes * 2, 'h'),
      "HTTP/1.0 200 OK\r\n\r\n" + std::string(2u << 20, 'x'),
  };
  for (const std::string& each : cases) {
    CAPTURE(each.substr(0, 60));
    const RawServer server({each});
    HttpClient client = client_of(server);
    const auto answer = ask(client);
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.status().code() == StatusCode::Unavailable);
    CHECK_FALSE(answer.status().message().empty());
  }
}

TEST_CASE("http client: an answer longer than is taken is cut, where all of it was wanted") {
  const std::string body(HttpClient::kBodyMaxBytes + 1, 'x');
  char size[32];
  std::snprintf(size, sizeof size, "%zx", body.size());
  RawServer server(
      {"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
       std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + size + "\r\n" + body +
           "\r\n0\r\n\r\n",
       "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"});
  HttpClient client = client_of(server);
  for (int i = 0; i < 2; ++i) {
    const auto cut = client.ask("GET", "/export", "");
    REQUIRE_MESSAGE(cut.ok(), cut.status().to_string());
    CHECK(cut->is_cut);
    CHECK(cut->body.size() <= HttpClient::kBodyMaxBytes);
  }
  const auto whole = client.ask("GET", "/export", "");
  REQUIRE_MESSAGE(whole.ok(), whole.status().to_string());
  CHECK_FALSE(whole->is_cut);
  CHECK(whole->body == "hello");
  CHECK(client.lost_connections() == 0);
}

TEST_CASE("http client: a kept connection that was closed meanwhile is made again, and counted") {
  const std::string good = "HTTP/1.1 204 No Content\r\n\r\n";
  const RawServer server({good, good});
  HttpClient client = client_of(server);
  REQUIRE(ask(client).ok());
  CHECK(client.lost_connections() == 0);
  REQUIRE(ask(client).ok());
  CHECK(client.lost_connections() == 1);
}

TEST_CASE("http client: headers that pacing and people look at are kept, without control bytes") {
  const RawServer server(
      {"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nLocation: /a\tb\r\n"
       "content-type: text/html\r\nContent-Length: 0\r\n\r\n"});
  HttpClient client = client_of(server);
  const auto answer = ask(client);
  REQUIRE(answer.ok());
  CHECK(answer->retry_after == "7");
  CHECK(answer->location == "/a?b");
  CHECK(answer->content_type == "text/html");
}

TEST_CASE("http client: nobody listens, or it was told to stop") {
  std::uint16_t port = 0;
  {
    const auto listener = net::listen_on_tcp(net::loopback_host(), 0);
    REQUIRE(listener.ok());
    port = net::tcp_port_of(*listener);
  }
  HttpClient client({.host = net::loopback_host(), .port = port, .tls = nullptr, .proxy = {}},
                    system_clock());
  CHECK(ask(client).status().code() == StatusCode::Unavailable);

  const auto silent = net::listen_on_tcp(net::loopback_host(), 0);
  REQUIRE(silent.ok());
  HttpClient stopped({.host = net::loopback_host(),
                      .port = net::tcp_port_of(*silent),
                      .tls = nullptr,
                      .proxy = {}},
                     system_clock());
  stopped.stop();
  CHECK(ask(stopped).status().code() == StatusCode::Cancelled);
}

TEST_CASE("http client: a proxy is taken from the environment's words, but for some hosts") {
  const auto proxy =
      proxy_of("http://user:pass@proxy.example:3128/", "a.example,.b.example, c", "target.example");
  REQUIRE(proxy.ok());
  REQUIRE(proxy->has_value());
  CHECK((*proxy)->host == "proxy.example");
  CHECK((*proxy)->port == 3128);
  CHECK((*proxy)->login == "user:pass");
  CHECK((*proxy_of("proxy:1", "", "t"))->host == "proxy");
  CHECK((*proxy_of("[::1]:1", "", "t"))->host == "::1");
  CHECK_FALSE(proxy_of("", "", "t")->has_value());
  for (const char* host : {"a.example", "x.a.example", "B.example", "x.b.example", "c"})
    CHECK_FALSE(proxy_of("proxy:1", "a.example,.b.example, c", host)->has_value());
  CHECK(proxy_of("proxy:1", "a.example", "xa.example")->has_value());
  CHECK_FALSE(proxy_of("proxy:1", "*", "t")->has_value());
  for (const char* wrong : {"socks5://proxy:1", "proxy", "http://:1", "https://proxy:1"})
    CHECK(proxy_of(wrong, "", "t").status().code() == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace edgecase::forward
