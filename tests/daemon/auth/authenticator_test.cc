#include "auth/token_store.h"

#include <doctest/doctest.h>

#include "support/manual_clock.h"
#include "support/model_engine.h"

using namespace edgecase;
using namespace edgecase::test;
using auth::Authenticator;
using auth::InsecureAccess;
using auth::Principal;
using auth::PrincipalKind;

namespace {

struct AuthRoom {
  explicit AuthRoom(InsecureAccess insecure = InsecureAccess::Refused)
      : authenticator(*tokens, clock, insecure) {}
  auth::TokenStore::Created create() {
    auth::Scopes scopes;
    scopes.read = {wire::Selector{}};
    return tokens->create(scopes, std::nullopt).value();
  }
  StatusCode ask(PrincipalKind kind, std::string_view token = {}, const char* from = "10.0.0.7") {
    return authenticator.authenticate({kind, from}, token).status().code();
  }

  ModelEngine engine;
  ManualClock clock;
  SeededRandom random{7};
  std::unique_ptr<auth::TokenStore> tokens = auth::TokenStore::open(engine, clock, random).value();
  Authenticator authenticator;
};

}  // namespace

TEST_CASE(
    "authenticator: a certificate that a token stands for is enough, a token goes before it") {
  AuthRoom room;
  auth::Scopes scopes;
  scopes.write = {wire::Selector{}};
  const auto made = room.tokens->create(scopes, std::nullopt, "pump").value();
  const auto other = room.create();
  Principal peer{PrincipalKind::Remote, "10.0.0.7"};
  peer.certificate = {"nobody", "pump"};
  const auto shown = room.authenticator.authenticate(peer, {});
  REQUIRE(shown.ok());
  CHECK(shown->name == "certificate pump of 10.0.0.7");
  CHECK(shown->grant->token_id == made.id);
  CHECK(room.authenticator.is_current(*shown));
  CHECK(room.authenticator.authenticate(peer, other.text)->grant->token_id == other.id);
  CHECK(!room.authenticator.authenticate(peer, "ec1_wrong").ok());
  REQUIRE(room.tokens->revoke(made.id, std::nullopt).ok());
  CHECK(!room.authenticator.is_current(*shown));
  CHECK(room.authenticator.authenticate(peer, {}).status().code() == StatusCode::NotAllowed);
}

TEST_CASE("authenticator: who needs a token, before the first is made and after") {
  struct Case {
    InsecureAccess insecure;
    PrincipalKind kind;
    bool before, after;
  };
  for (const Case& c : {Case{InsecureAccess::Refused, PrincipalKind::LocalSocket, true, true},
                        Case{InsecureAccess::Refused, PrincipalKind::Loopback, true, false},
                        Case{InsecureAccess::Refused, PrincipalKind::Remote, false, false},
                        Case{InsecureAccess::Allowed, PrincipalKind::LocalSocket, true, true},
                        Case{InsecureAccess::Allowed, PrincipalKind::Loopback, true, false},
                        Case{InsecureAccess::Allowed, PrincipalKind::Remote, true, false}}) {
    AuthRoom room(c.insecure);
    const Principal peer{c.kind, "10.0.0.7"};
    CHECK(room.authenticator.authenticate(peer, {}).ok() == c.before);
    CHECK(room.authenticator.is_current(peer) == c.before);
    const auto made = room.create();
    CHECK(room.authenticator.authenticate(peer, {}).ok() == c.after);
    CHECK(room.authenticator.is_current(peer) == c.after);
    const auto shown = room.authenticator.authenticate(peer, made.text);
    REQUIRE(shown.ok());
    CHECK(shown->grant->token_id == made.id);
    CHECK(shown->name == "token " + made.id + " of 10.0.0.7");
    CHECK(room.authenticator.is_current(*shown));
    // A wrong one is never taken for none.
    CHECK(room.ask(c.kind, "nonsense") == StatusCode::NotAllowed);
    REQUIRE(room.tokens->revoke(made.id, std::nullopt).ok());
    CHECK(!room.authenticator.is_current(*shown));
    CHECK(room.ask(c.kind, made.text) == StatusCode::NotAllowed);
    CHECK(room.authenticator.authenticate(peer, {}).ok() == c.after);
  }
}

TEST_CASE("authenticator: failures are limited by address, good tokens never") {
  AuthRoom room;
  const auto made = room.create();
  for (int i = 0; i < Authenticator::kBurst; ++i) {
    CHECK(room.ask(PrincipalKind::Remote, "nonsense") == StatusCode::NotAllowed);
  }
  CHECK(room.ask(PrincipalKind::Remote, "nonsense") == StatusCode::Busy);
  CHECK(room.ask(PrincipalKind::Remote) == StatusCode::Busy);
  CHECK(room.ask(PrincipalKind::Remote, made.text) == StatusCode::Ok);
  CHECK(room.ask(PrincipalKind::Remote, "nonsense", "10.0.0.8") == StatusCode::NotAllowed);
  CHECK(room.authenticator.failures() == Authenticator::kBurst + 3);
  CHECK(room.authenticator.throttled() == 2);
  room.clock.advance(Authenticator::kRefillNs);
  CHECK(room.ask(PrincipalKind::Remote, "nonsense") == StatusCode::NotAllowed);
  CHECK(room.ask(PrincipalKind::Remote, "nonsense") == StatusCode::Busy);
}

TEST_CASE("authenticator: addresses of one IPv6 network count as one, others as their own") {
  AuthRoom room;
  const char* const kNeighbours[] = {"2001:db8:1:2::1", "2001:db8:1:2:ffff::9%eth0"};
  for (int i = 0; i < Authenticator::kBurst; ++i) {
    CHECK(room.ask(PrincipalKind::Remote, "x", kNeighbours[i % 2]) == StatusCode::NotAllowed);
  }
  CHECK(room.ask(PrincipalKind::Remote, "x", "2001:db8:1:2::3") == StatusCode::Busy);
  CHECK(room.ask(PrincipalKind::Remote, "x", "2001:db8:1:3::3") == StatusCode::NotAllowed);
}

TEST_CASE("authenticator: the table of addresses is bounded, and forgets who failed longest ago") {
  AuthRoom room;
  const auto fail = [&room](std::size_t n) {
    return room.ask(PrincipalKind::Remote, "x", ("10.1." + std::to_string(n)).c_str());
  };
  for (int i = 0; i < Authenticator::kBurst; ++i) fail(0);
  for (std::size_t n = 1; n < Authenticator::kAddressesMax; ++n) fail(n);
  CHECK(fail(0) == StatusCode::Busy);
  fail(Authenticator::kAddressesMax);  // takes the place of 1
  CHECK(fail(0) == StatusCode::Busy);
  for (std::size_t n = 1; n <= Authenticator::kAddressesMax; ++n) fail(n);
  CHECK(fail(0) == StatusCode::NotAllowed);
}
