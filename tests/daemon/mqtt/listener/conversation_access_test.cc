// Tokens at the MQTT listener.
#include "daemon/mqtt/listener/conversation_room.h"

using namespace edgecase;
using namespace edgecase::test;
using Room = ConversationRoom;

TEST_CASE("conversation: the password is a token, the username its id") {
  Room room;
  const auto token = room.create("d/*");
  const auto reader = room.create(nullptr, "*/*");
  struct Case {
    std::string username, password;
    int three;
    ReasonCode five;
  };
  for (const Case& c : {Case{token.id, token.text, 0, ReasonCode::Success},
                        Case{"", "", 5, ReasonCode::NotAuthorized},
                        Case{"someone", token.text, 4, ReasonCode::BadUserNameOrPassword},
                        Case{token.id, reader.text, 4, ReasonCode::BadUserNameOrPassword},
                        Case{token.id, token.text.substr(1), 4, ReasonCode::BadUserNameOrPassword},
                        Case{reader.id, reader.text, 5, ReasonCode::NotAuthorized}}) {
    CAPTURE(c.username);
    CAPTURE(c.password);
    Conversation& three = room.open();
    room.send(three, mqtt_connect("a", {.username = c.username, .password = c.password}));
    CHECK(room.answer(three) == hex({0x20, 2, 0, c.three}));
    CHECK(three.is_connected() == (c.three == 0));
    Conversation& five = room.open();
    room.send(five,
              mqtt_connect("b", {.version = 5, .username = c.username, .password = c.password}));
    CHECK(static_cast<ReasonCode>(room.answer(five)[3]) == c.five);
    CHECK(five.failure().find(token.text.substr(15)) == std::string::npos);
  }
}

TEST_CASE("conversation: before the first token credentials mean nothing, but a wrong token does") {
  Room room;
  Conversation& client = room.open();
  room.send(client, mqtt_connect("a", {.username = "u", .password = "p"}));
  CHECK(client.is_connected());
  Conversation& wrong = room.open();
  const std::string token = "ec1_0123456789_" + std::string(64, 'a');
  room.send(wrong, mqtt_connect("b", {.username = "0123456789", .password = token}));
  CHECK(!wrong.is_connected());
  // From now on they mean something, to who is connected too.
  room.create("d/*");
  CHECK(!room.send(client, kMqttPing));
  CHECK(room.answer(client).find(kMqttPong) == std::string::npos);
}

TEST_CASE(
    "conversation: what is outside the token's scope is rejected, with the reason in MQTT 5") {
  Room room;
  const auto token = room.create("d/x");
  const auto open = [&](int version) -> Conversation& {
    return room.open(
        mqtt_connect(std::to_string(version),
                     {.version = version, .username = token.id, .password = token.text}));
  };
  for (const int version : {4, 5}) {
    Conversation& client = open(version);
    room.send(client, mqtt_publish("s/d/x", "1", {.packet_id = 1, .version = version}) +
                          mqtt_publish("s/other/x", "1", {.packet_id = 2, .version = version}) +
                          mqtt_publish("s/d/y", "1", {.packet_id = 3, .version = version}));
    REQUIRE(room.group.messages().size() == 3);
    CHECK(room.group.batch().readings.size() == 1);
    CHECK(room.group.messages()[1].reason == ReasonCode::NotAuthorized);
    room.commit();
    const std::string answer = room.answer(client);
    if (version == 4) CHECK(answer == mqtt_puback(1) + mqtt_puback(2) + mqtt_puback(3));
    if (version == 5) {
      CHECK(answer.substr(0, 4) == mqtt_puback(1));
      CHECK(static_cast<ReasonCode>(answer[8]) == ReasonCode::NotAuthorized);
    }
  }
  CHECK(room.stored("d", "x") == 2);
  CHECK(room.stored("d", "y") == 0);
  CHECK(room.stored("other", "x") == 0);
}

TEST_CASE("conversation: a token that is revoked ends the connection before the next message") {
  Room room;
  const auto token = room.create("d/*");
  Conversation& client =
      room.open(mqtt_connect("a", {.version = 5, .username = token.id, .password = token.text}));
  room.send(client, mqtt_publish("s/d/x", "1", {.version = 5}));
  room.commit();
  room.answer(client);
  REQUIRE(room.tokens->revoke(token.id, std::nullopt).ok());
  CHECK(!room.send(client, mqtt_publish("s/d/x", "2", {.packet_id = 2, .version = 5})));
  CHECK(static_cast<ReasonCode>(room.answer(client)[2]) == ReasonCode::NotAuthorized);
  room.commit();
  CHECK(room.stored() == 1);
}
