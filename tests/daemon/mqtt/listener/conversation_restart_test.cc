// What of a conversation survives a restart of the daemon.
#include "daemon/mqtt/listener/conversation_room.h"

using namespace edgecase;
using namespace edgecase::test;
using Room = ConversationRoom;

namespace {

std::string connect_kept(int version) {
  return mqtt_connect("client-of-alice",
                      {.version = version,
                       .clean = false,
                       .properties = version == 5 ? hex({0x11, 0, 0, 0, 60}) : std::string()});
}

std::string publish_second(int version, bool duplicate, std::string_view payload = "1") {
  return mqtt_publish("s/d/x", payload,
                      {.qos = 2, .packet_id = 9, .duplicate = duplicate, .version = version});
}

// Connects again and says whether its session was there.
Conversation& come_again(Room& room, const std::string& connect, bool& was_present) {
  Conversation& client = room.open();
  room.send(client, connect);
  const std::string answer = room.answer(client);
  REQUIRE(answer.size() >= 4);
  was_present = answer[2] == 1;
  return client;
}

}  // namespace

TEST_CASE("conversation: what was answered with PUBREC is stored once over a restart") {
  for (const int version : {4, 5}) {
    CAPTURE(version);
    Room room;
    Conversation& first = room.open(connect_kept(version));
    room.send(first, publish_second(version, false));
    const std::uint64_t syncs = room.engine.stats().wal_syncs;
    room.commit();
    CHECK(room.engine.stats().wal_syncs == syncs + 1);
    CHECK(room.answer(first) == mqtt_pubrec(9));
    CHECK(room.restart().messages == 1);
    bool was_present = false;
    Conversation& second = come_again(room, connect_kept(version), was_present);
    CHECK(was_present);
    room.send(second, publish_second(version, true));
    room.commit();
    CHECK(room.answer(second) == mqtt_pubrec(9));
    CHECK(room.stored() == 1);
    room.send(second, mqtt_pubrel(9));
    CHECK(room.answer(second).empty());
    room.commit();
    CHECK(room.answer(second) == mqtt_pubcomp(9));
    CHECK(room.restart().messages == 0);
    // The id is free, for the same content too.
    Conversation& third = come_again(room, connect_kept(version), was_present);
    CHECK(was_present);
    room.send(third, publish_second(version, false));
    room.commit();
    CHECK(room.stored() == 2);
  }
}

TEST_CASE("conversation: what was not durable is as if it had not come") {
  Room room;
  Conversation& first = room.open(connect_kept(4));
  room.send(first, publish_second(4, false));
  CHECK(room.restart().sessions == 0);
  bool was_present = true;
  Conversation& second = come_again(room, connect_kept(4), was_present);
  CHECK(!was_present);
  room.send(second, publish_second(4, true));
  room.commit();
  CHECK(room.stored() == 1);
  // A release that did not reach the drive is asked for again.
  room.send(second, mqtt_pubrel(9));
  room.restart();
  Conversation& third = come_again(room, connect_kept(4), was_present);
  CHECK(was_present);
  room.send(third, mqtt_pubrel(9));
  room.commit();
  CHECK(room.answer(third) == mqtt_pubcomp(9));
  CHECK(room.stored() == 1);
}

TEST_CASE("conversation: another message under an id that was not released is stored") {
  Room room;
  Conversation& first = room.open(connect_kept(5));
  room.send(first, publish_second(5, false, "1") + publish_second(5, false, "2"));
  room.commit();
  CHECK(room.answer(first) == mqtt_pubrec(9) + mqtt_pubrec(9));
  CHECK(room.stored() == 2);
  room.restart();
  bool was_present = false;
  Conversation& second = come_again(room, connect_kept(5), was_present);
  room.send(second, publish_second(5, true, "2"));
  room.commit();
  CHECK(room.stored() == 2);
  room.send(second, publish_second(5, false, "3"));
  room.commit();
  CHECK(room.stored() == 3);
  // One that is refused leaves nothing of the one before.
  room.answer(second);
  room.send(second, publish_second(5, false, "{"));
  room.commit();
  CHECK(room.restart().messages == 0);
}

TEST_CASE("conversation: nothing is recorded but of QoS 2 in sessions that are kept") {
  for (const int version : {4, 5}) {
    CAPTURE(version);
    Room room;
    Conversation& kept = room.open(connect_kept(version));
    room.send(kept, mqtt_publish("s/d/x", "1", {.qos = 0, .version = version}) +
                        mqtt_publish("s/d/x", "2", {.packet_id = 1, .version = version}));
    Conversation& passing = room.open(mqtt_connect("b", {.version = version}));
    room.send(passing, publish_second(version, false));
    room.commit();
    CHECK(room.answer(passing) == mqtt_pubrec(9));
    room.send(passing, mqtt_pubrel(9));
    CHECK(room.answer(passing) == mqtt_pubcomp(9));
    CHECK(room.stored() == 3);
    CHECK(room.kept().empty());
    room.send(kept, publish_second(version, false));
    room.commit();
    CHECK(room.kept().size() == 2);
    // No record names anybody or anything.
    for (const auto& record : room.kept()) {
      for (const char* text : {"alice", "s/d/x"}) {
        CHECK(record.first.find(text) == Bytes::npos);
        CHECK(record.second.find(text) == Bytes::npos);
      }
    }
  }
}

TEST_CASE("conversation: a rejected message is remembered where its exchange goes on") {
  for (const int version : {4, 5}) {
    CAPTURE(version);
    Room room;
    Conversation& client = room.open(connect_kept(version));
    room.send(client, publish_second(version, false, "{"));
    room.commit();
    CHECK(room.restart().messages == (version == 4 ? 1 : 0));
  }
  // Not where its session has ended in the same group.
  Room room;
  room.send(room.open(connect_kept(4)), publish_second(4, false, "{"));
  room.send(room.open(), mqtt_connect("client-of-alice"));
  room.commit();
  CHECK(room.kept().empty());
}

TEST_CASE("conversation: a clean start forgets before it is answered") {
  for (const int version : {4, 5}) {
    CAPTURE(version);
    Room room;
    Conversation& first = room.open(connect_kept(version));
    room.send(first, publish_second(version, false));
    room.commit();
    room.restart();
    Conversation& second = room.open();
    room.send(second, mqtt_connect("client-of-alice", {.version = version}) + kMqttPing +
                          publish_second(version, false));
    CHECK(second.is_starting());
    CHECK(room.answer(second).empty());
    room.commit();
    CHECK(!second.is_starting());
    const std::string answer = room.answer(second);
    REQUIRE(answer.size() > 4);
    CHECK(answer[0] == 0x20);
    CHECK(answer[2] == 0);
    CHECK(answer.ends_with(kMqttPong + mqtt_pubrec(9)));
    CHECK(room.stored() == 2);
    CHECK(room.kept().empty());
    // With nothing to forget it is answered at once.
    Conversation& third = room.open();
    room.send(third, mqtt_connect("client-of-alice", {.version = version}));
    CHECK(!third.is_starting());
    CHECK(!room.answer(third).empty());
  }
}

TEST_CASE("conversation: a client that left while it waited is not answered") {
  Room room;
  Conversation& first = room.open(connect_kept(4));
  room.send(first, publish_second(4, false));
  room.commit();
  room.all[0].reset();
  Conversation& second = room.open();
  room.send(second, mqtt_connect("client-of-alice") + kMqttDisconnect);
  CHECK(second.has_ended());
  room.commit();
  CHECK(room.answer(second).empty());
  CHECK(room.kept().empty());
}

TEST_CASE("conversation: the drive knows how long a session lives") {
  Room room;
  const auto connect = [](int seconds) {
    return mqtt_connect(
        "a", {.version = 5, .clean = false, .properties = hex({0x11, 0, 0, 0, seconds})});
  };
  Conversation& first = room.open(connect(60));
  room.send(first, publish_second(5, false));
  room.commit();
  room.all[0].reset();
  // The same again: nothing to wait for.
  Conversation& same = room.open(connect(60));
  CHECK(!same.is_starting());
  Conversation& other = room.open();
  room.send(other, connect(30));
  CHECK(other.is_starting());
  room.commit();
  room.restart();
  CHECK(room.sessions.next_end_ns() == room.now_ns + 30'000'000'000);
  bool was_present = false;
  Conversation& third = come_again(room, connect(30), was_present);
  CHECK(was_present);
  // DISCONNECT with an expiry of 90 s, then one of none.
  room.send(third, mqtt_packet(0xE0, hex({0, 5, 0x11, 0, 0, 0, 90})));
  room.commit();
  room.restart();
  CHECK(room.sessions.next_end_ns() == room.now_ns + 90'000'000'000);
  Conversation& fourth = come_again(room, connect(90), was_present);
  room.send(fourth, mqtt_packet(0xE0, hex({0, 5, 0x11, 0, 0, 0, 0})));
  room.all.back().reset();
  room.commit();
  CHECK(room.kept().empty());
  CHECK(room.restart().sessions == 0);
}

TEST_CASE("conversation: a session that is over its time, or one too many, leaves no record") {
  Room room;
  Conversation& first = room.open(connect_kept(5));
  room.send(first, publish_second(5, false));
  room.commit();
  room.all[0].reset();
  room.now_ns += 60'000'000'000;
  room.sessions.remove_expired(room.now_ns);
  room.commit();
  CHECK(room.kept().empty());
  for (std::size_t i = 0; i <= mqtt::SessionTable::kKeptMax; ++i) {
    Conversation& client = room.open(mqtt_connect("client" + std::to_string(i), {.clean = false}));
    room.send(client, publish_second(4, false));
    room.commit();
    room.all.back().reset();
  }
  room.commit();
  CHECK(room.kept().size() == 2 * mqtt::SessionTable::kKeptMax);
}
