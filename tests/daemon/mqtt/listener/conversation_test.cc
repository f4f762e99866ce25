#include "daemon/mqtt/listener/conversation_room.h"
#include "support/test_seed.h"
#include "support/test_share.h"

using namespace edgecase;
using namespace edgecase::test;
using Room = ConversationRoom;

TEST_CASE("conversation: acknowledges only what was committed, in order") {
  Room room;
  Conversation& client = room.open();
  CHECK(room.send(client, mqtt_connect("a") + mqtt_publish("s/d/x", "1", {.packet_id = 5}) +
                              mqtt_publish("s/d/x", "2", {.qos = 2, .packet_id = 9}) +
                              mqtt_publish("s/d/x", "3", {.qos = 0}) + kMqttPing));
  CHECK(room.answer(client) == kMqttAccepted + kMqttPong);
  room.commit();
  CHECK(room.answer(client) == mqtt_puback(5) + mqtt_pubrec(9));
  CHECK(room.stored() == 3);
  CHECK(room.send(client, mqtt_pubrel(9)));
  CHECK(room.answer(client) == mqtt_pubcomp(9));
}

TEST_CASE("conversation: QoS 2 is stored once, however often it comes") {
  Room room;
  const std::string connect = mqtt_connect("a", {.clean = false});
  const auto publish = [](bool duplicate) {
    return mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 9, .duplicate = duplicate});
  };
  Conversation& first = room.open(connect);
  room.send(first, publish(false) + publish(true));
  room.commit();
  CHECK(room.stored() == 1);
  CHECK(room.answer(first) == mqtt_pubrec(9) + mqtt_pubrec(9));

  // The answer was lost with the connection: the client sends it again in the same session.
  Conversation& second = room.open();
  room.send(second, connect + publish(true));
  CHECK(room.answer(second) == kMqttAcceptedPresent);
  room.commit();
  CHECK(room.stored() == 1);
  CHECK(room.answer(second) == mqtt_pubrec(9));
  room.send(second, mqtt_pubrel(9));
  CHECK(room.answer(second).empty());
  room.commit();
  CHECK(room.answer(second) == mqtt_pubcomp(9));
  // The id is free again: this is another message.
  room.send(second, publish(false));
  room.commit();
  CHECK(room.stored() == 2);
}

TEST_CASE("conversation: QoS 2 that is being stored when its connection breaks is stored once") {
  Room room;
  const std::string connect = mqtt_connect("a", {.clean = false});
  const std::string publish = mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 9});
  room.send(room.open(connect), publish);
  Conversation& second = room.open(connect);
  CHECK(second.take_predecessor() == 1);
  room.all[0].reset();
  room.send(second, publish);
  CHECK(room.answer(second).empty());
  room.commit();
  CHECK(room.stored() == 1);
  CHECK(room.answer(second) == mqtt_pubrec(9));
}

TEST_CASE("conversation: a QoS 1 message without a time that comes again is stored once") {
  Room room;
  const std::string connect = mqtt_connect("a", {.clean = false});
  const std::size_t count = mqtt::RedeliveryFilter::kIdsBeforeTrust;
  Conversation& first = room.open(connect);
  for (unsigned id = 1; id <= count; ++id) {
    room.send(first, mqtt_publish("s/d/x", std::to_string(id), {.packet_id = id}));
  }
  room.commit();
  room.all[0].reset();
  Conversation& second = room.open(connect);
  room.send(second, mqtt_publish("s/d/x", "64", {.packet_id = 64, .duplicate = true}) +
                        mqtt_publish("s/d/x", "other", {.packet_id = 63, .duplicate = true}));
  room.commit();
  CHECK(room.answer(second) == mqtt_puback(64) + mqtt_puback(63));
  CHECK(room.stored() == count + 1);
  // Another session: nothing is known of it.
  Conversation& stranger = room.open(mqtt_connect("b", {.clean = false}));
  room.send(stranger, mqtt_publish("s/d/x", "64", {.packet_id = 64, .duplicate = true}));
  room.commit();
  CHECK(room.stored() == count + 2);
}

TEST_CASE("conversation: a session that was not kept forgets what it received") {
  Room room;
  const std::string publish = mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 9});
  for (int round = 1; round <= 2; ++round) {
    Conversation& client = room.open(mqtt_connect("a"));
    room.send(client, publish);
    room.commit();
    CHECK(room.answer(client) == mqtt_pubrec(9));
    room.all.back().reset();
    CHECK(room.stored() == static_cast<std::size_t>(round));
  }
}

TEST_CASE("conversation: subscriptions are answered with failure") {
  Room room;
  const std::string filter = mqtt_text("a/#");
  Conversation& three = room.open(mqtt_connect("a"));
  CHECK(room.send(three, mqtt_packet(0x82, hex({0, 7}) + filter + hex({1}))));
  CHECK(room.answer(three) == hex({0x90, 3, 0, 7, 0x80}));
  CHECK(room.send(three, mqtt_packet(0xA2, hex({0, 8}) + filter)));
  CHECK(room.answer(three) == hex({0xB0, 2, 0, 8}));
  Conversation& five = room.open(mqtt_connect("b", {.version = 5}));
  CHECK(room.send(five, mqtt_packet(0x82, hex({0, 7, 0}) + filter + hex({1}))));
  CHECK(room.answer(five) == hex({0x90, 4, 0, 7, 0, 0x83}));
  CHECK(room.send(five, mqtt_packet(0xA2, hex({0, 8, 0}) + filter)));
  CHECK(room.answer(five) == hex({0xB0, 4, 0, 8, 0, 0x11}));
}

TEST_CASE("conversation: what is kept as rejected is acknowledged, with the reason in MQTT 5") {
  Room room;
  struct Case {
    std::string topic;
    std::string payload;
    ReasonCode want;
  };
  unsigned id = 0;
  Conversation& three = room.open(mqtt_connect("three"));
  Conversation& five = room.open(mqtt_connect("five", {.version = 5}));
  for (const Case& c : {Case{"else", "1", ReasonCode::TopicNameInvalid},
                        Case{"s/d/x", "{", ReasonCode::PayloadFormatInvalid}}) {
    ++id;
    room.send(three, mqtt_publish(c.topic, c.payload, {.packet_id = id}));
    room.commit();
    CHECK(room.answer(three) == mqtt_puback(id));
    room.send(five, mqtt_publish(c.topic, c.payload, {.packet_id = id, .version = 5}));
    room.commit();
    const std::string answer = room.answer(five);
    REQUIRE(answer.size() > 6);
    CHECK(static_cast<unsigned char>(answer[4]) == static_cast<unsigned>(c.want));
  }
}

TEST_CASE("conversation: what breaks the protocol ends it, and MQTT 5 is told why") {
  struct Case {
    const char* what;
    std::string packet;
    ReasonCode want;
  };
  const std::string id = hex({0, 1});
  for (const Case& c : {
           Case{"reserved type", hex({0x00, 0}), ReasonCode::MalformedPacket},
           Case{"QoS 3", hex({0x36, 0}), ReasonCode::MalformedPacket},
           Case{"length of five bytes", hex({0x30, 0xff, 0xff, 0xff, 0xff, 1}),
                ReasonCode::MalformedPacket},
           Case{"second CONNECT", mqtt_connect("a", {.version = 5}), ReasonCode::ProtocolError},
           Case{"CONNACK from a client", hex({0x20, 2, 0, 0}), ReasonCode::ProtocolError},
           Case{"PUBACK for nothing", mqtt_puback(1), ReasonCode::ProtocolError},
           Case{"AUTH", hex({0xF0, 0}), ReasonCode::ProtocolError},
           Case{"PINGREQ with a body", hex({0xC0, 1, 0}), ReasonCode::MalformedPacket},
           Case{"wildcard", mqtt_publish("a/#", "1", {.version = 5}), ReasonCode::TopicNameInvalid},
           Case{"packet id 0", mqtt_publish("a", "1", {.packet_id = 0, .version = 5}),
                ReasonCode::MalformedPacket},
           Case{"unknown alias",
                mqtt_publish("", "1", {.version = 5, .properties = hex({0x23, 0, 1})}),
                ReasonCode::ProtocolError},
           Case{"alias over the maximum",
                mqtt_publish("a", "1", {.version = 5, .properties = hex({0x23, 0, 17})}),
                ReasonCode::TopicAliasInvalid},
           Case{"no filter", mqtt_packet(0x82, id + hex({0})), ReasonCode::ProtocolError},
           Case{"too large", hex({0x30, 0xff, 0xff, 0x7f}), ReasonCode::PacketTooLarge},
           Case{"a session kept after all", mqtt_packet(0xE0, hex({0, 5, 0x11, 0, 0, 0, 9})),
                ReasonCode::ProtocolError},
       }) {
    Room room;
    CAPTURE(c.what);
    Conversation& five = room.open(mqtt_connect("five", {.version = 5}));
    CHECK(!room.send(five, c.packet + kMqttPing));
    const std::string answer = room.answer(five);
    REQUIRE(answer.size() >= 3);
    CHECK(static_cast<unsigned char>(answer[0]) == 0xE0);
    CHECK(static_cast<unsigned char>(answer[2]) == static_cast<unsigned>(c.want));
    CHECK(!five.failure().empty());
    CHECK(room.group.empty());
  }
}

TEST_CASE("conversation: nothing but CONNECT may come first, and a bad one is refused") {
  Room room;
  for (const std::string& first : {kMqttPing, mqtt_publish("s/d/x", "1"),
                                   hex({0x10, 0xff, 0xff, 0x7f}), mqtt_packet(0x10, "nonsense")}) {
    Conversation& client = room.open();
    CHECK(!room.send(client, first));
    CHECK(room.answer(client).empty());
    CHECK(!client.is_connected());
  }
  struct Case {
    std::string connect;
    std::string answer;
  };
  for (const Case& c : {Case{mqtt_connect("", {.clean = false}), hex({0x20, 2, 0, 2})},
                        Case{mqtt_connect(std::string(257, 'x')), hex({0x20, 2, 0, 2})},
                        Case{mqtt_connect("a", {.version = 3}), hex({0x20, 2, 0, 1})}}) {
    Conversation& client = room.open();
    CHECK(!room.send(client, c.connect));
    CHECK(room.answer(client) == c.answer);
  }
  Conversation& busy = room.open(Conversation::Standing::TurnedAway);
  CHECK(!room.send(busy, mqtt_connect("a")));
  CHECK(room.answer(busy) == hex({0x20, 2, 0, 3}));
  CHECK(room.sessions.size() == 0);
}

TEST_CASE("conversation: MQTT 5 is told the limits, and an id where it has none") {
  Room room;
  Conversation& client = room.open();
  CHECK(room.send(client, mqtt_connect("", {.version = 5})));
  const std::string answer = room.answer(client);
  CHECK(answer.find(client.client_id()) != std::string::npos);
  CHECK(answer.find(hex({0x21, 4, 0})) != std::string::npos);   // Receive Maximum 1024
  CHECK(answer.find(hex({0x22, 0, 16})) != std::string::npos);  // Topic Alias Maximum
  CHECK(answer.find('\x27') != std::string::npos);              // Maximum Packet Size
}

TEST_CASE("conversation: topic aliases stand for their topic, until it is another") {
  Room room;
  Conversation& client = room.open(mqtt_connect("a", {.version = 5}));
  const auto publish = [](const std::string& topic, const char* payload) {
    return mqtt_publish(topic, payload, {.qos = 0, .version = 5, .properties = hex({0x23, 0, 16})});
  };
  CHECK(room.send(
      client, publish("s/d/x", "1") + publish("", "2") + publish("s/d/y", "3") + publish("", "4")));
  room.commit();
  CHECK(room.stored("d", "x") == 2);
  CHECK(room.stored("d", "y") == 2);
}

TEST_CASE("conversation: more than the Receive Maximum ends it") {
  for (const unsigned qos : {1u, 2u}) {
    for (const int version : {4, 5}) {
      Room room;
      CAPTURE(qos);
      CAPTURE(version);
      Conversation& client = room.open(mqtt_connect("a", {.version = version}));
      for (unsigned id = 1; id <= Conversation::kReceiveMaximum; ++id) {
        REQUIRE(room.send(
            client, mqtt_publish("s/d/x", "1", {.qos = qos, .packet_id = id, .version = version})));
      }
      // A client of 3.1.1 knows no such limit; its QoS 1 messages are held back by TCP alone.
      const bool goes_on = version == 4 && qos == 1;
      CHECK(room.send(client, mqtt_publish("s/d/x", "1",
                                           {.qos = qos, .packet_id = 2'000, .version = version})) ==
            goes_on);
    }
  }
}

TEST_CASE("conversation: a message over the limit is kept as rejected for 3.1.1, not buffered") {
  Room room;
  Conversation& client = room.open(mqtt_connect("a"));
  const std::string large(room.parts->packet_max_bytes + 1'000'000, 'x');
  const std::string packet = mqtt_publish("s/d/x", large, {.packet_id = 3});
  for (std::size_t at = 0; at < packet.size(); at += 60'000) {
    REQUIRE(room.send(client, packet.substr(at, 60'000)));
    REQUIRE(room.budget.used_bytes() < 150'000);
  }
  CHECK(room.send(client, mqtt_publish("s/d/x", "1", {.packet_id = 4})));
  REQUIRE(room.group.messages().size() == 2);
  CHECK(room.group.messages()[0].reason == ReasonCode::QuotaExceeded);
  CHECK(room.group.messages()[0].topic == "s/d/x");
  CHECK(room.group.messages()[0].reason_text.find("limits.message-limit") != std::string::npos);
  room.commit();
  CHECK(room.answer(client) == mqtt_puback(3) + mqtt_puback(4));
  CHECK(room.budget.used_bytes() < 2'000);
}

TEST_CASE("conversation: packets that are not whole yet share one budget") {
  Room room(100'000);
  const std::string half = mqtt_publish("s/d/x", std::string(60'000, 'x')).substr(0, 55'000);
  Conversation& first = room.open(mqtt_connect("a", {.version = 5}));
  Conversation& second = room.open(mqtt_connect("b", {.version = 5}));
  CHECK(room.send(first, half));
  const bool went_on = room.send(second, half);
  CHECK(room.budget.used_bytes() <= 100'000);
  CHECK(!went_on);
  CHECK(static_cast<unsigned char>(room.answer(second)[2]) == 0x97);
  room.all[0].reset();
  room.all[1].reset();
  CHECK(room.budget.used_bytes() == 0);
}

TEST_CASE("conversation: the same, however the bytes are cut") {
  std::string stream = mqtt_connect("a", {.version = 5});
  for (unsigned id = 1; id <= 40; ++id) {
    stream += mqtt_publish(id % 7 == 0 ? "else" : "s/d/x", std::string(id * 13, '7'),
                           {.qos = id % 3, .packet_id = id, .version = 5});
    if (id % 5 == 0) stream += kMqttPing;
  }
  const auto outcome = [&stream](const auto& next_size) {
    Room room;
    Conversation& client = room.open();
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = next_size();
      room.send(client, stream.substr(at, size));
      at += size;
    }
    std::string text = room.answer(client);
    room.commit();
    return text + room.answer(client) + std::to_string(room.stored());
  };
  const std::string whole = outcome([&] { return stream.size(); });
  CHECK(outcome([] { return std::size_t{1}; }) == whole);
  const std::uint64_t seed = test_seed(1);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (std::uint64_t round = 0; round < share_of(200); ++round) {
    CHECK(outcome([&random] { return std::size_t{1} + random.below(200); }) == whole);
  }
}

TEST_CASE("conversation: any bytes at all end it or not, and the budget is given back") {
  const std::uint64_t seed = test_seed(1);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (std::uint64_t round = 0; round < share_of(2'000); ++round) {
    Room room;
    {
      Conversation& client = room.open(mqtt_connect("a", {.version = round % 2 == 0 ? 4 : 5}));
      std::string bytes = mqtt_publish("s/d/x", "21.5", {.qos = 2}) + mqtt_pubrel(1) +
                          mqtt_packet(0x82, hex({0, 7}) + mqtt_text("a") + hex({1}));
      for (int flips = 0; flips < 3; ++flips) {
        bytes[random.below(bytes.size())] = static_cast<char>(random.next());
      }
      room.send(client, bytes);
    }
    room.all.clear();
    REQUIRE(room.budget.used_bytes() == 0);
  }
}
