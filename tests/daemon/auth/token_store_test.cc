#include "auth/token_store.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/manual_clock.h"
#include "support/model_engine.h"

using namespace edgecase;
using namespace edgecase::test;
using auth::TokenStore;

namespace {

constexpr std::int64_t kDayNs = 86'400'000'000'000;

struct TokenRoom {
  TokenRoom() { reopen(); }
  void reopen() { tokens = TokenStore::open(engine, clock, random).value(); }
  TokenStore::Created create(std::optional<std::int64_t> ends_ns = std::nullopt) {
    auth::Scopes scopes;
    scopes.namespace_name = "home";
    scopes.read = {wire::parse_selector("k*/*").value()};
    scopes.purpose = "billing";
    return tokens->create(scopes, ends_ns).value();
  }
  // Every byte that is stored of the tokens.
  std::string records() {
    std::string all;
    const auto iterator =
        engine.scan(engine.find_namespace(auth::kTokensNamespace)->id, {}, {}).value();
    for (; iterator->valid(); iterator->next()) {
      all += std::string(iterator->key()) + std::string(iterator->value());
    }
    return all;
  }

  ModelEngine engine;
  ManualClock clock;
  SeededRandom random{7};
  std::unique_ptr<TokenStore> tokens;
};

StatusCode code_of(TokenStore& tokens, std::string_view text) {
  return tokens.check(text).status().code();
}

}  // namespace

TEST_CASE("tokens: one that is made is good, here and after a restart, its secret is not stored") {
  TokenRoom room;
  CHECK(!room.tokens->any());
  const TokenStore::Created made = room.create();
  CHECK(auth::looks_like_token(made.text));
  CHECK(made.text.size() == 4 + 10 + 1 + 64);
  CHECK(made.text.substr(4, 10) == made.id);
  for (int round = 0; round < 2; ++round, room.reopen()) {
    CHECK(room.tokens->any());
    const auto grant = room.tokens->check(made.text);
    REQUIRE(grant.ok());
    CHECK((*grant)->token_id == made.id);
    CHECK((*grant)->scopes.namespace_name == "home");
    CHECK((*grant)->scopes.read.at(0).device == "k*");
    CHECK((*grant)->scopes.write.empty());
    CHECK(!(*grant)->scopes.admin);
    CHECK((*grant)->scopes.purpose == "billing");
    CHECK(room.records().find(made.text.substr(15)) == std::string::npos);
  }
  CHECK(room.create().text.substr(15) != made.text.substr(15));
}

TEST_CASE("tokens: one stands for a certificate, whoever shows it, and its secret is nobody's") {
  TokenRoom room;
  auth::Scopes scopes;
  scopes.write = {wire::Selector{}};
  const auto make = [&](const std::string& name, std::optional<std::int64_t> ends_ns = {}) {
    return room.tokens->create(scopes, ends_ns, name);
  };
  const TokenStore::Created made = make("sensor-17").value();
  CHECK(made.text.empty());
  for (const char* odd : {"a\nb", "\x7f", "\xff"})
    CHECK(make(odd).status().code() == StatusCode::InvalidArgument);
  CHECK(make(std::string(TokenStore::kCertificateNameMaxBytes + 1, 'a')).status().code() ==
        StatusCode::InvalidArgument);
  for (int round = 0; round < 2; ++round, room.reopen()) {
    const auto grant = room.tokens->of_certificate("sensor-17");
    REQUIRE(grant != nullptr);
    CHECK(grant->token_id == made.id);
    CHECK(room.tokens->list().front().certificate == "sensor-17");
    for (const char* other : {"", "sensor-1", "sensor-170", "SENSOR-17"})
      CHECK(room.tokens->of_certificate(other) == nullptr);
    CHECK(make("sensor-17").status().code() == StatusCode::InvalidArgument);
  }
  // One that has ended makes room for the next.
  REQUIRE(room.tokens->revoke(made.id, std::nullopt).ok());
  CHECK(room.tokens->of_certificate("sensor-17") == nullptr);
  const auto next = make("sensor-17", room.clock.wall_ns() + kDayNs);
  REQUIRE(next.ok());
  CHECK(room.tokens->of_certificate("sensor-17")->token_id == next->id);
  room.clock.advance(kDayNs);
  CHECK(room.tokens->of_certificate("sensor-17") == nullptr);
  room.reopen();
  CHECK(room.tokens->of_certificate("sensor-17") == nullptr);
}

TEST_CASE("tokens: one digit that differs, anywhere, and it is none") {
  TokenRoom room;
  const std::string text = room.create().text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == '0' ? '1' : '0';
    CHECK(code_of(*room.tokens, other) == StatusCode::NotAllowed);
  }
  for (const std::string& other : {std::string(), text.substr(1), text + "0", text + "\n"}) {
    CHECK(code_of(*room.tokens, other) == StatusCode::NotAllowed);
  }
}

TEST_CASE("tokens: expired at the nanosecond, and for good") {
  TokenRoom room;
  const std::int64_t end = room.clock.wall_ns() + kDayNs;
  const std::string text = room.create(end).text;
  const auto grant = room.tokens->check(text).value();
  room.clock.advance(kDayNs - 1);
  CHECK(room.tokens->check(text).ok());
  CHECK(!room.tokens->has_ended(*grant));
  room.clock.advance(1);
  CHECK(code_of(*room.tokens, text) == StatusCode::NotAllowed);
  CHECK(room.tokens->has_ended(*grant));
  // A clock that is behind after a start: the engine knows how far it was.
  room.engine.set_expiry_now_ns(end);
  room.clock.set_wall_ns(0);
  CHECK(code_of(*room.tokens, text) == StatusCode::NotAllowed);
  room.reopen();
  CHECK(code_of(*room.tokens, text) == StatusCode::NotAllowed);
  CHECK(room.tokens->list()[0].has_ended);
  CHECK(!room.tokens->list()[0].is_revoked);
}

TEST_CASE("tokens: revoked ends what is held of it at once, or when it is said") {
  TokenRoom room;
  const TokenStore::Created made = room.create();
  const auto grant = room.tokens->check(made.text).value();
  const std::int64_t later = room.clock.wall_ns() + kDayNs;
  REQUIRE(room.tokens->revoke(made.id, later).ok());
  CHECK(room.tokens->check(made.text).ok());
  CHECK(room.tokens->revoke(made.id, later + 1).code() == StatusCode::InvalidArgument);
  REQUIRE(room.tokens->revoke(made.id, std::nullopt).ok());
  CHECK(room.tokens->has_ended(*grant));
  for (int round = 0; round < 2; ++round, room.reopen()) {
    CHECK(code_of(*room.tokens, made.text) == StatusCode::NotAllowed);
    CHECK(room.tokens->list()[0].is_revoked);
    // A client that could do without a token before the first one cannot again.
    CHECK(room.tokens->any());
  }
  CHECK(room.tokens->revoke("0123456789", std::nullopt).code() == StatusCode::NotFound);
}

TEST_CASE("tokens: a drive that refuses makes none and ends none") {
  TokenRoom room;
  const TokenStore::Created made = room.create();
  room.engine.fail_next_write(out_of_space("full"));
  auth::Scopes admin;
  admin.admin = true;
  CHECK(room.tokens->create(admin, std::nullopt).status().code() == StatusCode::OutOfSpace);
  room.engine.fail_next_write(out_of_space("full"));
  CHECK(room.tokens->revoke(made.id, std::nullopt).code() == StatusCode::OutOfSpace);
  CHECK(room.tokens->list().size() == 1);
  // Nobody is kept out because the time of use could not be written.
  room.engine.fail_writes(out_of_space("full"));
  CHECK(room.tokens->check(made.text).ok());
}

TEST_CASE("tokens: when it was last used is known, and after a restart to the minute") {
  TokenRoom room;
  const std::string text = room.create().text;
  CHECK(!room.tokens->list()[0].last_used_ns);
  CHECK(room.tokens->check(text).ok());
  const std::int64_t first = room.clock.wall_ns();
  CHECK(room.tokens->list()[0].last_used_ns == first);
  room.clock.advance(TokenStore::kUsedSpacingNs - 1);
  CHECK(room.tokens->check(text).ok());
  CHECK(room.tokens->list()[0].last_used_ns == room.clock.wall_ns());
  room.reopen();
  CHECK(room.tokens->list()[0].last_used_ns == first);
  room.clock.advance(1);
  CHECK(room.tokens->check(text).ok());
  room.reopen();
  CHECK(room.tokens->list()[0].last_used_ns == room.clock.wall_ns());
}

TEST_CASE("tokens: one without any scope or already expired is refused") {
  TokenRoom room;
  CHECK(room.tokens->create({}, std::nullopt).status().code() == StatusCode::InvalidArgument);
  auth::Scopes admin;
  admin.admin = true;
  CHECK(room.tokens->create(admin, room.clock.wall_ns()).status().code() ==
        StatusCode::InvalidArgument);
  CHECK(!room.tokens->any());
}

TEST_CASE("tokens: at the limit the one that ended first makes room, without one it is busy") {
  TokenRoom room;
  auth::Scopes admin;
  admin.admin = true;
  const TokenStore::Created first = room.create();
  const TokenStore::Created second = room.create();
  for (std::size_t i = 2; i < TokenStore::kTokensMax; ++i) room.create();
  CHECK(room.tokens->create(admin, std::nullopt).status().code() == StatusCode::LimitReached);
  REQUIRE(room.tokens->revoke(second.id, std::nullopt).ok());
  room.clock.advance(1);
  REQUIRE(room.tokens->revoke(first.id, std::nullopt).ok());
  CHECK(room.tokens->create(admin, std::nullopt).ok());
  const auto holds = [&room](const std::string& id) {
    for (const auth::TokenInfo& info : room.tokens->list()) {
      if (info.id == id) return true;
    }
    return false;
  };
  for (int round = 0; round < 2; ++round, room.reopen()) {
    CHECK(room.tokens->list().size() == TokenStore::kTokensMax);
    CHECK(!holds(second.id));
    CHECK(holds(first.id));
  }
}

TEST_CASE("tokens: a damaged record stops the start, a newer one too") {
  const auto open_with = [](std::string_view key, std::string_view value) {
    TokenRoom room;
    room.create();
    WriteBatch batch;
    batch.put(room.engine.find_namespace(auth::kTokensNamespace)->id, key, value);
    REQUIRE(room.engine.write(batch, Durability::Sync).ok());
    return TokenStore::open(room.engine, room.clock, room.random).status().code();
  };
  CHECK(open_with("T0123456789", R"({"version":3})") == StatusCode::Unsupported);
  for (const char* value :
       {"", "{}x", R"({"version":"1"})", R"({"version":1})", R"({"version":1,"hash":"12"})",
        R"({"version":1,"read":""})", R"({"version":2})", R"({"version":2,"read":[]})",
        R"({"version":2,"read":["a/*",7]})", R"({"version":2,"read":{"a":"b"}})"}) {
    CAPTURE(value);
    CHECK(open_with("T0123456789", value) != StatusCode::Ok);
  }
  CHECK(open_with("T01", "{}") == StatusCode::Corruption);
}

TEST_CASE("tokens: several selectors are kept, and a record of one is as it was") {
  TokenRoom room;
  room.create();
  CHECK(room.records().find(R"("read":"k*/*","version":1)") != std::string::npos);
  auth::Scopes scopes;
  for (const char* each : {"kitchen/*", "cellar/temp"})
    scopes.read.push_back(wire::parse_selector(each).value());
  const TokenStore::Created made = room.tokens->create(scopes, std::nullopt).value();
  CHECK(room.records().find(R"("read":["kitchen/*","cellar/temp"],"version":2)") !=
        std::string::npos);
  room.reopen();
  const auto grant = room.tokens->check(made.text);
  REQUIRE(grant.ok());
  CHECK(auth::scope_json((*grant)->scopes.read).dump() == R"(["kitchen/*","cellar/temp"])");
  CHECK(auth::scope_json((*grant)->scopes.write).dump() == "null");
}

// As a store keeps it whose tokens were made by this version, or by one since.
TEST_CASE("tokens: records of both versions are read") {
  TokenRoom room;
  const std::string rest = R"("hash":")" + std::string(64, 'a') + R"(","namespace":"","created":1)";
  WriteBatch batch;
  const NamespaceId records = room.engine.find_namespace(auth::kTokensNamespace)->id;
  batch.put(records, "T0000000001", "{" + rest + R"(,"read":"a/*","version":1})");
  batch.put(records, "T0000000002", "{" + rest + R"(,"read":["a/*","b/?"],"version":2})");
  REQUIRE(room.engine.write(batch, Durability::Sync).ok());
  room.reopen();
  const auto list = room.tokens->list();
  REQUIRE(list.size() == 2);
  CHECK(list[0].scopes.read.size() == 1);
  CHECK(list[1].scopes.read.size() == 2);
  CHECK(list[1].scopes.read.at(1).device == "b");
}
