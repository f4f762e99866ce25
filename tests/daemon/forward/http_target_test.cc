#include "forward/http_target.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "http/request_reader.h"
#include "net/channel.h"

namespace edgecase::forward {
namespace {

struct ReceivedBody {
  wire::Coding coding = wire::Coding::Identity;
  std::string body;
};

// Answers each request with the next of its texts, and closes the connection.
class AnsweringOnce {
 public:
  explicit AnsweringOnce(std::vector<std::string> answers)
      : socket_(std::move(net::listen_on_tcp(net::loopback_host(), 0)).value()),
        thread_([this, texts = std::move(answers)] {
          for (const std::string& each : texts) serve(each);
        }) {}
  std::uint16_t port() const { return net::tcp_port_of(socket_); }
  const std::vector<ReceivedBody>& asked() {
    thread_.join();
    return asked_;
  }

 private:
  void serve(const std::string& answer) {
    pollfd waiting{socket_.descriptor(), POLLIN, 0};
    if (::poll(&waiting, 1, 10'000) != 1) return;
    const net::Socket connection(::accept(socket_.descriptor(), nullptr, nullptr));
    std::string bytes;
    http::RequestHead head;
    std::size_t used = 0;
    http::Refusal refusal;
    while (http::parse_request_head(bytes, head, used, refusal) != http::HeadOutcome::Complete ||
           bytes.size() < used + head.content_length) {
      char buffer[4096];
      pollfd readable{connection.descriptor(), POLLIN, 0};
      if (::poll(&readable, 1, 10'000) != 1) return;
      const ssize_t n = ::recv(connection.descriptor(), buffer, sizeof buffer, 0);
      if (n <= 0) return;
      bytes.append(buffer, static_cast<std::size_t>(n));
    }
    net::ByteBudget budget(1u << 20);
    net::BudgetShare share(budget);
    ReceivedBody asked{head.coding, {}};
    http::inflate_body(std::string_view(bytes).substr(used), head.coding, 1u << 20, share,
                       asked.body);
    asked_.push_back(asked);
    ::send(connection.descriptor(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  net::Socket socket_;
  std::vector<ReceivedBody> asked_;
  std::thread thread_;
};

TEST_CASE("http target: an EdgeCase gets zstd until it takes none, others get gzip") {
  const std::string yes =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\n{\"stored\":1}";
  const std::string unknown =
      "HTTP/1.1 415 Unsupported\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  const std::string done = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
  using wire::Coding;
  struct Case {
    config::ForwardKind kind;
    std::vector<std::string> answers;
    std::vector<Coding> codings;
    bool is_taken;
  };
  for (const Case& c :
       {Case{config::ForwardKind::EdgeCase, {yes, yes}, {Coding::Zstd, Coding::Zstd}, true},
        Case{config::ForwardKind::EdgeCase,
             {unknown, yes, yes},
             {Coding::Zstd, Coding::Gzip, Coding::Gzip},
             true},
        Case{config::ForwardKind::EdgeCase,
             {unknown, unknown, unknown},
             {Coding::Zstd, Coding::Gzip, Coding::Gzip},
             false},
        Case{config::ForwardKind::Influx, {done, done}, {Coding::Gzip, Coding::Gzip}, true}}) {
    CAPTURE(c.answers.front());
    AnsweringOnce listener(c.answers);
    config::ForwardTarget target;
    target.kind = c.kind;
    target.host = net::loopback_host();
    target.port = listener.port();
    target.is_secure = false;
    const auto carrier = HttpTarget::create({}, target, system_clock()).value();
    for (const char* lines : {"first", "second"}) {
      const Answer answer = carrier->carry("default", lines, 1);
      CHECK((answer.verdict == Verdict::Taken) == c.is_taken);
    }
    std::vector<Coding> codings;
    std::string bodies;
    for (const ReceivedBody& each : listener.asked()) {
      codings.push_back(each.coding);
      bodies += each.body + " ";
    }
    CHECK(codings == c.codings);
    CHECK(bodies == (codings.size() == 2 ? "first second " : "first first second "));
  }
}

}  // namespace
}  // namespace edgecase::forward
