#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "net/channel.h"

using namespace edgecase;

namespace {

// Gives what a test says, and then nothing more.
class GivingChannel final : public net::Channel {
 public:
  explicit GivingChannel(std::string bytes) : Channel(net::Socket()), bytes_(std::move(bytes)) {}
  net::Transfer receive(char* buffer, std::size_t size) override {
    const std::size_t count = std::min(size, bytes_.size());
    if (count == 0) return {net::Outcome::Closed, 0};
    bytes_.copy(buffer, count);
    bytes_.erase(0, count);
    return {net::Outcome::Done, count};
  }

 private:
  std::string bytes_;
};

}  // namespace

TEST_CASE("received: nothing of it stays in the buffer") {
  GivingChannel channel("21.5,19.25");
  std::vector<char> buffer(8, '\0');
  {
    const net::Received got(channel, buffer);
    CHECK(got.outcome() == net::Outcome::Done);
    CHECK(got.bytes() == "21.5,19.");
  }
  CHECK(std::count(buffer.begin(), buffer.end(), '\0') == 8);
  CHECK(net::Received(channel, {buffer.data(), 2}).bytes() == "25");
  const net::Received end(channel, buffer);
  CHECK(end.outcome() == net::Outcome::Closed);
  CHECK(end.bytes().empty());
  CHECK(std::count(buffer.begin(), buffer.end(), '\0') == 8);
}

namespace edgecase::net {
namespace {

int family_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  return getsockname(socket.descriptor(), generic, &size) == 0 ? address.ss_family : AF_UNSPEC;
}

bool has(const char* host) {
  return listen_on_tcp(host, 0).ok();
}

}  // namespace

TEST_CASE("sockets: localhost is both loopback addresses, on one port") {
  for (const char* name : {"localhost", "LOCALHOST", "localhost."}) {
    CAPTURE(name);
    const auto sockets = listen_on_all(name, 0);
    REQUIRE(sockets.ok());
    std::vector<int> families;
    for (const Socket& socket : *sockets) {
      families.push_back(family_of(socket));
      CHECK(tcp_port_of(socket) == tcp_port_of(sockets->front()));
      CHECK(tcp_port_of(socket) != 0);
    }
    std::vector<int> want;
    if (has("127.0.0.1")) want.push_back(AF_INET);
    if (has("::1")) want.push_back(AF_INET6);
    CHECK(families == want);
  }
}

TEST_CASE("sockets: localhost is refused where either address has its port taken") {
  for (const char* taken : {"127.0.0.1", "::1"}) {
    CAPTURE(taken);
    if (!has(taken)) continue;
    const Socket holder = listen_on_tcp(taken, 0).value();
    const auto sockets = listen_on_all("localhost", tcp_port_of(holder));
    REQUIRE_FALSE(sockets.ok());
    CHECK(sockets.status().code() == StatusCode::AlreadyExists);
  }
}

TEST_CASE("sockets: an address is listened on alone") {
  for (const char* host : {"127.0.0.1", "::1"}) {
    CAPTURE(host);
    if (!has(host)) continue;
    const auto sockets = listen_on_all(host, 0);
    REQUIRE(sockets.ok());
    CHECK(sockets->size() == 1);
  }
  CHECK(listen_on_all("192.0.2.1", 0).status().code() == StatusCode::InvalidArgument);
}

}  // namespace edgecase::net

using namespace edgecase;

TEST_CASE("backoff: bounds double from half a second to a minute, and jitter fills them") {
  SeededRandom random(7);
  net::Backoff backoff(random);
  std::int64_t bound = net::Backoff::kFirstNs;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t pause = backoff.next_ns();
    CHECK(pause >= net::Backoff::kLeastNs);
    CHECK(pause <= bound);
    bound = std::min(bound * 2, net::Backoff::kMaxNs);
  }
  std::int64_t longest = 0;
  for (int i = 0; i < 200; ++i) longest = std::max(longest, backoff.next_ns());
  CHECK(longest > net::Backoff::kMaxNs * 9 / 10);
  for (int i = 0; i < 200; ++i) {
    CHECK(backoff.next_ns(net::Backoff::kLocalMaxNs) <= net::Backoff::kLocalMaxNs);
  }
  backoff.reset();
  CHECK(backoff.next_ns() <= net::Backoff::kFirstNs);
}
