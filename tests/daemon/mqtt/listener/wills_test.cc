// Wills: what the listener stores of clients that were lost.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "daemon/mqtt/listener/conversation_room.h"
#include "daemon/mqtt/listener/listener_fixture.h"

using namespace edgecase;
using test::eventually;
using test::hex;
using test::mqtt_connect;
using test::mqtt_packet;
using test::mqtt_publish;
using test::MqttConnect;

namespace {

constexpr std::int64_t kWillSecondNs = 1'000'000'000;

std::string seconds(int identifier, int value) {
  return hex({identifier, 0, 0, value >> 8, value & 0xff});
}

// A CONNECT of version 5: a session that outlives its connection by `expiry` seconds, a will by
// `delay`.
MqttConnect willing(int delay, int expiry, bool clean = false) {
  return {.version = 5,
          .clean = clean,
          .properties = seconds(0x11, expiry),
          .will_topic = "s/d/lwt",
          .will_payload = "Offline",
          .will_properties = seconds(0x18, delay)};
}
MqttConnect willing_of_3() {
  return {.will_topic = "s/d/lwt", .will_payload = "Offline"};
}

struct WillRoom : test::ConversationRoom {
  // How many are stored by now.
  std::size_t wills() {
    sessions.remove_expired(now_ns);
    commit();
    return stored("d", "lwt");
  }
  void lose(test::Conversation& conversation) { conversation.leave(now_ns); }
  void pass(int of_seconds) { now_ns += of_seconds * kWillSecondNs; }
};

}  // namespace

TEST_CASE("wills: stored when the client goes without DISCONNECT") {
  WillRoom room;
  SUBCASE("its connection breaks") {
    room.lose(room.open(mqtt_connect("a", willing_of_3())));
  }
  SUBCASE("it breaks the protocol") {
    auto& client = room.open(mqtt_connect("a", willing_of_3()));
    CHECK(!room.send(client, mqtt_connect("a")));
    room.lose(client);
  }
  SUBCASE("nothing is heard of it") {
    auto& client = room.open(mqtt_connect("a", willing_of_3()));
    client.end(test::ReasonCode::KeepAliveTimeout, "nothing was heard");
    room.lose(client);
  }
  SUBCASE("DISCONNECT asks for it") {
    auto& client = room.open(mqtt_connect("a", willing(0, 0)));
    CHECK(!room.send(client, mqtt_packet(0xE0, hex({4}))));
    room.lose(client);
  }
  SUBCASE("DISCONNECT is wrong") {
    auto& client = room.open(mqtt_connect("a", willing(0, 0)));
    CHECK(!room.send(client, mqtt_packet(0xE0, hex({0, 5}) + seconds(0x11, 9))));
    room.lose(client);
  }
  SUBCASE("another connection takes its session over") {
    room.open(mqtt_connect("a", willing_of_3()));
    room.open(mqtt_connect("a"));
  }
  SUBCASE("another connection takes its kept session over, and it has no delay") {
    room.open(mqtt_connect("a", willing(0, 60)));
    room.open(mqtt_connect("a", {.version = 5, .clean = false}));
  }
  SUBCASE("another connection begins anew") {
    room.open(mqtt_connect("a", willing(60, 60)));
    room.open(mqtt_connect("a", {.version = 5, .clean = true}));
  }
  SUBCASE("its session does not outlive the connection") {
    room.lose(room.open(mqtt_connect("a", willing(60, 0))));
  }
  CHECK(room.wills() == 1);
  CHECK(room.readings("default", "d", "lwt").back().text == "Offline");
  CHECK(room.wills() == 1);
}

TEST_CASE("wills: none of a client that says goodbye") {
  WillRoom room;
  auto& three = room.open(mqtt_connect("a", willing_of_3()));
  CHECK(!room.send(three, test::kMqttDisconnect));
  room.lose(three);
  auto& five = room.open(mqtt_connect("b", willing(0, 60)));
  CHECK(!room.send(five, mqtt_packet(0xE0, hex({0}))));
  room.lose(five);
  CHECK(room.wills() == 0);
  CHECK(room.open(test::Conversation::Standing::TurnedAway).output().empty());
  room.send(*room.all.back(), mqtt_connect("c", willing_of_3()));  // never was a client
  room.lose(*room.all.back());
  CHECK(room.wills() == 0);
}

TEST_CASE("wills: one with a delay waits, and is not needed when its client comes back") {
  WillRoom room;
  SUBCASE("the delay passes") {
    room.lose(room.open(mqtt_connect("a", willing(30, 60))));
    room.pass(29);
    CHECK(room.wills() == 0);
    CHECK(room.sessions.next_end_ns() - room.now_ns < 2 * kWillSecondNs);
    room.pass(2);
    CHECK(room.wills() == 1);
    // The session goes on without it.
    CHECK(room.sessions.size() == 1);
    room.pass(60);
    CHECK(room.wills() == 1);
    CHECK(room.sessions.size() == 0);
  }
  SUBCASE("its session ends before") {
    room.lose(room.open(mqtt_connect("a", willing(600, 10))));
    room.pass(11);
    CHECK(room.wills() == 1);
  }
  SUBCASE("it comes back") {
    room.lose(room.open(mqtt_connect("a", willing(30, 60))));
    room.pass(10);
    room.open(mqtt_connect("a", {.version = 5, .clean = false, .properties = seconds(0x11, 60)}));
    room.pass(100);
    CHECK(room.wills() == 0);
  }
  SUBCASE("it comes back on another connection before it has lost the first") {
    auto& first = room.open(mqtt_connect("a", willing(30, 60)));
    room.open(mqtt_connect("a", willing(30, 60)));
    room.lose(first);
    room.pass(100);
    CHECK(room.wills() == 0);
  }
  SUBCASE("it begins anew") {
    room.lose(room.open(mqtt_connect("a", willing(30, 60))));
    room.open(mqtt_connect("a", {.version = 5, .clean = true}));
    CHECK(room.wills() == 1);
  }
}

TEST_CASE("wills: Offline is before what the client says when it is there again") {
  WillRoom room;
  room.open(mqtt_connect("a", willing_of_3()));
  auto& again = room.open(mqtt_connect("a", willing_of_3()));
  room.send(again, mqtt_publish("s/d/lwt", "Online"));
  CHECK(room.wills() == 2);
  const auto said = room.readings("default", "d", "lwt");
  CHECK(said.front().text == "Offline");
  CHECK(said.back().text == "Online");
}

TEST_CASE("wills: checked as every message is, when they are stored") {
  WillRoom room;
  SUBCASE("no rule") {
    room.lose(room.open(mqtt_connect("a", {.will_topic = "gone", .will_payload = "x"})));
  }
  SUBCASE("over the limit") {
    room.lose(room.open(
        mqtt_connect("a", {.will_topic = "s/d/lwt", .will_payload = std::string(1'001, 'x')})));
  }
  SUBCASE("outside the token's scope") {
    const auto token = room.create("other/*");
    auto how = willing_of_3();
    how.username = token.id;
    how.password = token.text;
    room.lose(room.open(mqtt_connect("a", how)));
  }
  SUBCASE("of a token that has ended") {
    const auto token = room.create("d/*");
    auto how = willing_of_3();
    how.username = token.id;
    how.password = token.text;
    auto& client = room.open(mqtt_connect("a", how));
    REQUIRE(room.tokens->revoke(token.id, std::nullopt).ok());
    room.lose(client);
  }
  mqtt::add_due_wills(*room.parts, room.group);
  REQUIRE(room.group.messages().size() == 1);
  CHECK(room.group.messages()[0].reason != test::ReasonCode::Success);
  CHECK(!room.group.messages()[0].reason_text.empty());
  CHECK(room.wills() == 0);
}

TEST_CASE("wills: so many bytes of them are kept, and who brings more is told") {
  WillRoom room;
  auto how = willing_of_3();
  how.will_payload = std::string(60'000, 'x');
  std::size_t taken = 0;
  std::string answer;
  for (int i = 0; i < 80; ++i) {
    auto& client = room.open();
    room.send(client, mqtt_connect("c" + std::to_string(i), how));
    if (client.is_connected()) {
      ++taken;
      continue;
    }
    answer = room.answer(client);
    break;
  }
  CHECK(taken == mqtt::SessionTable::kWillBytesMax / 60'200);
  CHECK(answer == hex({0x20, 2, 0, 3}));
  // A client that leaves makes room.
  room.send(*room.all[0], test::kMqttDisconnect);
  room.lose(*room.all[0]);
  CHECK(room.open(mqtt_connect("late", how)).is_connected());
}

TEST_CASE("wills: over sockets, and when the daemon stops") {
  test::ListenerFixture fixture;
  auto lost = fixture.client(mqtt_connect("a", willing_of_3()));
  lost.close();
  REQUIRE(eventually([&fixture] { return fixture.stored("d", "lwt") == 1; }));
  CHECK(fixture.listener->status().wills == 1);
  CHECK(mqtt::status_json(fixture.listener->status()).find("\"wills\":1") != std::string::npos);
  auto there = fixture.client(mqtt_connect("b", willing_of_3()));
  auto leaving = fixture.client(mqtt_connect("c", willing_of_3()));
  leaving.send(test::kMqttDisconnect);
  CHECK(leaving.receive_all().empty());
  fixture.listener->stop();
  CHECK(fixture.stored("d", "lwt") == 2);
}

TEST_CASE("subscriptions: granted as they were asked where the setting says so") {
  test::ConversationRoom room;
  room.parts->grants_subscriptions = true;
  const std::string filters = test::mqtt_text("a/#") + hex({0}) + test::mqtt_text("b") + hex({1}) +
                              test::mqtt_text("+") + hex({2});
  auto& three = room.open(mqtt_connect("three"));
  CHECK(room.send(three, mqtt_packet(0x82, hex({0, 7}) + filters)));
  CHECK(room.answer(three) == hex({0x90, 5, 0, 7, 0, 1, 2}));
  auto& five = room.open(mqtt_connect("five", {.version = 5}));
  CHECK(room.send(five, mqtt_packet(0x82, hex({0, 8, 0}) + filters)));
  CHECK(room.answer(five) == hex({0x90, 6, 0, 8, 0, 0, 1, 2}));
}
