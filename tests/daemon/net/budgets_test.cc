#include "net/budgets.h"

#include <doctest/doctest.h>
#include <netinet/in.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/http/http_fixture.h"

namespace edgecase::http::test {
namespace {

constexpr const char* kHead = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

}  // namespace

TEST_CASE("byte budget: never more than its limit, and shares give back what they took") {
  net::ByteBudget budget(100);
  {
    net::BudgetShare first(budget);
    CHECK(first.grow(60));
    net::BudgetShare second(budget);
    CHECK_FALSE(second.grow(41));
    CHECK(second.bytes() == 0);
    CHECK(second.grow(40));
    CHECK(budget.used_bytes() == budget.limit_bytes());
    first.shrink(10);
    CHECK(budget.used_bytes() == 90);
    net::BudgetShare moved(std::move(first));
    CHECK(moved.bytes() == 50);
    second = std::move(moved);  // what it held goes back first
    CHECK(second.bytes() == 50);
    CHECK(budget.used_bytes() == 50);
  }
  CHECK(budget.used_bytes() == 0);
  CHECK_FALSE(budget.take(101));
  CHECK_FALSE(budget.take(UINT64_MAX));
}

TEST_CASE("address limit: counts by address, and by network where it is IPv6") {
  net::AddressLimit limit(2);
  std::optional<net::AddressShare> first(std::in_place, limit, "2001:db8::1");
  const net::AddressShare second(limit, "2001:db8::ffff");
  const net::AddressShare other(limit, "2001:db8:0:1::1");
  const net::AddressShare four(limit, "192.0.2.1");
  CHECK(limit.most() == 2);
  CHECK(limit.open("2001:db8::2") == 2);
  CHECK(limit.open("2001:db8:0:1::2") == 1);
  CHECK(limit.open("192.0.2.1") == 1);
  CHECK(limit.open("192.0.2.2") == 0);
  CHECK(first->network() == second.network());
  first.reset();
  CHECK(limit.open("2001:db8::2") == 1);
}

TEST_CASE("front: one address does not take every connection, and its idle ones make room") {
  ServerFixture f([](config::Settings& settings) { settings.http.connections_per_address = 2; });
  std::vector<Client> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(f.connect());
    busy.back().send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET / HT");
    REQUIRE(busy.back().receive().status == 200);
  }
  Client turned_away = f.connect();
  const Answer answer = turned_away.receive();
  CHECK(answer.status == 503);
  CHECK(answer.header("retry-after") == "1");
  CHECK(answer.body.find("http.connections-per-address") != std::string::npos);
  // IPv6 has one loopback address alone.
  if (net::loopback_host() != "::1") {
    constexpr std::uint32_t kNeighbour = INADDR_LOOPBACK + 1;
    Client neighbour = Client::over_tcp(f.server->tcp_port(), kNeighbour);
    neighbour.send(kHead);
    CHECK(neighbour.receive().status == 200);
  }
  busy[0].send("TP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(busy[0].receive().status == 200);
  // The first is idle as soon as its worker is done with it, which may be after its answer came.
  int status = 503;
  for (int i = 0; i < 10'000 && status == 503; ++i) {
    Client welcome = f.connect();
    welcome.send(kHead);
    status = welcome.receive().status;
  }
  CHECK(status == 200);
}

}  // namespace edgecase::http::test
