#include "mqtt/packet_codec.h"

#include <doctest/doctest.h>

#include <string>

#include "daemon/mqtt/listener/packets.h"

using namespace edgecase;
using namespace edgecase::mqtt;
using namespace edgecase::test;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string body_of(const std::string& packet) {
  FixedHeader header;
  REQUIRE(read_fixed_header(packet, header) == HeaderProgress::Complete);
  REQUIRE(packet.size() == header.header_bytes + header.remaining_bytes);
  return packet.substr(header.header_bytes);
}

}  // namespace

TEST_CASE("packet codec: reads fixed headers of every length") {
  struct Case {
    std::string bytes;
    std::uint32_t remaining;
    std::uint32_t header;
  };
  for (const Case& c : {Case{bytes({0xC0, 0}), 0, 2}, Case{bytes({0x30, 0x7f}), 127, 2},
                        Case{bytes({0x30, 0x80, 1}), 128, 3},
                        Case{bytes({0x3d, 0xff, 0xff, 0xff, 0x7f}), kRemainingLengthMax, 5}}) {
    FixedHeader header;
    for (std::size_t size = 0; size < c.bytes.size(); ++size) {
      CHECK(read_fixed_header(c.bytes.substr(0, size), header) == HeaderProgress::NeedMore);
    }
    CHECK(read_fixed_header(c.bytes, header) == HeaderProgress::Complete);
    CHECK(header.remaining_bytes == c.remaining);
    CHECK(header.header_bytes == c.header);
  }
}

TEST_CASE("packet codec: refuses fixed headers that no client may send") {
  for (const std::string& wrong :
       {bytes({0x00, 0}), bytes({0x11, 0}), bytes({0x36, 0}), bytes({0x38, 0}), bytes({0x60, 0}),
        bytes({0x80, 0}), bytes({0xA0, 0}), bytes({0xC1, 0}), bytes({0xE1, 0}),
        bytes({0x30, 0x80, 0x80, 0x80, 0x80})}) {
    FixedHeader header;
    CAPTURE(static_cast<int>(static_cast<unsigned char>(wrong[0])));
    CHECK(read_fixed_header(wrong, header) == HeaderProgress::Malformed);
  }
}

TEST_CASE("packet codec: reads CONNECT of both versions, a will and credentials too") {
  // What a decoder returns borrows from these.
  const std::string four = body_of(mqtt_connect("ab", {.clean = false, .keep_alive = 300}));
  ConnectPacket packet;
  CHECK(decode_connect(four, packet) == ReasonCode::Success);
  CHECK(packet.version == ProtocolVersion::V311);
  CHECK(packet.client_id == "ab");
  CHECK(!packet.clean_start);
  CHECK(packet.keep_alive_seconds == 300);

  const std::string properties =
      bytes({0x11, 0, 0, 1, 0, 0x27, 0, 0, 2, 0, 0x17, 0, 0x26}) + mqtt_text("k") + mqtt_text("v");
  const std::string five = body_of(mqtt_connect("", {.version = 5, .properties = properties}));
  ConnectPacket asking;
  CHECK(decode_connect(five, asking) == ReasonCode::Success);
  CHECK(asking.version == ProtocolVersion::V5);
  CHECK(asking.session_expiry_seconds == 256);
  CHECK(asking.maximum_packet_bytes == 512);
  CHECK(!asking.wants_problem_information);

  const std::string will = mqtt_text("MQTT") + bytes({4, 0xF6, 0, 10}) + mqtt_text("id") +
                           mqtt_text("gone") + mqtt_text("1") + mqtt_text("user") +
                           mqtt_text("secret");
  ConnectPacket full;
  CHECK(decode_connect(will, full) == ReasonCode::Success);
  CHECK(full.has_will);
  CHECK(full.username == "user");

  // As mosquitto's bridges mark themselves.
  const std::string marked = mqtt_text("MQTT") + bytes({0x84, 2, 0, 10}) + mqtt_text("b");
  ConnectPacket bridge;
  CHECK(decode_connect(marked, bridge) == ReasonCode::Success);
  CHECK(bridge.version == ProtocolVersion::V311);
}

TEST_CASE("packet codec: says what is wrong with a CONNECT") {
  struct Case {
    std::string body;
    ReasonCode want;
  };
  const std::string mqtt = mqtt_text("MQTT");
  for (const Case& c : {
           Case{"", ReasonCode::MalformedPacket},
           Case{mqtt_text("HTTP") + bytes({4, 2, 0, 0}) + mqtt_text("a"),
                ReasonCode::ProtocolError},
           Case{mqtt + bytes({3, 2, 0, 0}) + mqtt_text("a"),
                ReasonCode::UnsupportedProtocolVersion},
           Case{mqtt_text("MQIsdp") + bytes({3, 2, 0, 0}) + mqtt_text("a"),
                ReasonCode::UnsupportedProtocolVersion},
           Case{mqtt + bytes({6, 2, 0, 0, 0}) + mqtt_text("a"),
                ReasonCode::UnsupportedProtocolVersion},
           Case{mqtt + bytes({4, 3, 0, 0}) + mqtt_text("a"), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 0x1E, 0, 0}) + mqtt_text("a"), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 0x22, 0, 0}) + mqtt_text("a"), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 0x42, 0, 0}) + mqtt_text("a") + mqtt_text("p"),
                ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 2, 0, 0}) + mqtt_text("a") + "x", ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 2, 0, 0, 0, 9}) + "a", ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 2, 0, 0}) + mqtt_text("\xff"), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 2, 0, 0, 0, 1, 0}), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({4, 6, 0, 0}) + mqtt_text("a") + mqtt_text("#") + mqtt_text("1"),
                ReasonCode::TopicNameInvalid},
           // Properties: cut short, unknown, twice, not of CONNECT, a value that cannot be.
           Case{mqtt + bytes({5, 2, 0, 0, 9, 0x11}), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({5, 2, 0, 0, 1, 0x7f}) + mqtt_text("a"), ReasonCode::MalformedPacket},
           Case{mqtt + bytes({5, 2, 0, 0, 6, 0x21, 0, 1, 0x21, 0, 1}) + mqtt_text("a"),
                ReasonCode::ProtocolError},
           Case{mqtt + bytes({5, 2, 0, 0, 3, 0x23, 0, 1}) + mqtt_text("a"),
                ReasonCode::ProtocolError},
           Case{mqtt + bytes({5, 2, 0, 0, 3, 0x21, 0, 0}) + mqtt_text("a"),
                ReasonCode::ProtocolError},
       }) {
    ConnectPacket packet;
    CAPTURE(c.body.size());
    CHECK(decode_connect(c.body, packet) == c.want);
  }
}

TEST_CASE("packet codec: reads PUBLISH and says what is wrong with one") {
  const std::string plain = mqtt_text("a/b") + bytes({1, 2}) + "21.5";
  PublishPacket packet;
  CHECK(decode_publish(0x0B, plain, ProtocolVersion::V311, packet) == ReasonCode::Success);
  CHECK(packet.topic == "a/b");
  CHECK(packet.payload == "21.5");
  CHECK(packet.packet_id == 258);
  CHECK(packet.qos == 1);
  CHECK(packet.duplicate);
  CHECK(packet.retain);

  const std::string short_one = bytes({0, 0, 3, 0x23, 0, 7}) + "1";
  PublishPacket aliased;
  CHECK(decode_publish(0, short_one, ProtocolVersion::V5, aliased) == ReasonCode::Success);
  CHECK(aliased.topic_alias == 7);
  CHECK(aliased.payload == "1");

  struct Case {
    std::uint8_t flags;
    std::string body;
    ProtocolVersion version;
    ReasonCode want;
  };
  const auto v3 = ProtocolVersion::V311;
  const auto v5 = ProtocolVersion::V5;
  for (const Case& c :
       {Case{0, "", v3, ReasonCode::MalformedPacket},
        Case{0, bytes({0, 5}) + "a", v3, ReasonCode::MalformedPacket},
        Case{0, mqtt_text(""), v3, ReasonCode::ProtocolError},
        Case{0, mqtt_text("a/+"), v3, ReasonCode::TopicNameInvalid},
        Case{0, mqtt_text("a/#"), v3, ReasonCode::TopicNameInvalid},
        Case{0, mqtt_text("a\xc3("), v3, ReasonCode::MalformedPacket},
        Case{0, mqtt_text(std::string("a\0", 2)), v3, ReasonCode::MalformedPacket},
        Case{2, mqtt_text("a"), v3, ReasonCode::MalformedPacket},
        Case{2, mqtt_text("a") + bytes({0, 0}), v3, ReasonCode::MalformedPacket},
        Case{0, mqtt_text("a"), v5, ReasonCode::MalformedPacket},
        Case{0, mqtt_text("") + bytes({0}), v5, ReasonCode::ProtocolError},
        Case{0, mqtt_text("a") + bytes({3, 0x23, 0, 0}), v5, ReasonCode::TopicAliasInvalid},
        Case{0, mqtt_text("a") + bytes({2, 0x0B, 1}), v5, ReasonCode::ProtocolError},
        Case{0, mqtt_text("a") + bytes({2, 0x01, 2}), v5, ReasonCode::ProtocolError}}) {
    PublishPacket wrong;
    CAPTURE(c.body);
    CHECK(decode_publish(c.flags, c.body, c.version, wrong) == c.want);
  }
}

TEST_CASE("packet codec: reads and refuses the smaller packets") {
  AckPacket ack;
  CHECK(decode_ack(bytes({1, 2}), ProtocolVersion::V311, ack) == ReasonCode::Success);
  CHECK(ack.packet_id == 258);
  CHECK(decode_ack(bytes({1, 2, 0x92}), ProtocolVersion::V5, ack) == ReasonCode::Success);
  CHECK(ack.reason == 0x92);
  for (const std::string& wrong : {bytes({}), bytes({1}), bytes({0, 0}), bytes({1, 2, 3})}) {
    CHECK(decode_ack(wrong, ProtocolVersion::V311, ack) == ReasonCode::MalformedPacket);
  }
  SubscribePacket subscribe;
  CHECK(
      decode_subscribe(PacketType::Subscribe,
                       bytes({0, 1}) + mqtt_text("a/#") + bytes({1}) + mqtt_text("b") + bytes({0}),
                       ProtocolVersion::V311, subscribe) == ReasonCode::Success);
  CHECK(subscribe.filters == 2);
  for (const std::string& wrong :
       {bytes({0, 0}) + mqtt_text("a") + bytes({0}), bytes({0, 1}) + mqtt_text("a") + bytes({3}),
        bytes({0, 1}) + mqtt_text("a"), bytes({0, 1}) + mqtt_text("") + bytes({0})}) {
    SubscribePacket packet;
    CHECK(decode_subscribe(PacketType::Subscribe, wrong, ProtocolVersion::V311, packet) ==
          ReasonCode::MalformedPacket);
  }
  SubscribePacket none;
  CHECK(decode_subscribe(PacketType::Unsubscribe, bytes({0, 1}), ProtocolVersion::V311, none) ==
        ReasonCode::ProtocolError);
  DisconnectPacket disconnect;
  CHECK(decode_disconnect("", ProtocolVersion::V311, disconnect) == ReasonCode::Success);
  CHECK(decode_disconnect(bytes({0}), ProtocolVersion::V311, disconnect) ==
        ReasonCode::MalformedPacket);
  CHECK(decode_disconnect(bytes({4, 5, 0x11, 0, 0, 0, 9}), ProtocolVersion::V5, disconnect) ==
        ReasonCode::Success);
  CHECK(disconnect.changes_expiry);
  CHECK(disconnect.session_expiry_seconds == 9);
}

TEST_CASE("packet codec: writes answers of both versions") {
  std::string out;
  append_connack(ProtocolVersion::V311, {.session_present = true}, out);
  CHECK(out == kMqttAcceptedPresent);
  out.clear();
  append_connack(ProtocolVersion::V311, {.reason = ReasonCode::ServerBusy}, out);
  CHECK(out == bytes({0x20, 2, 0, 3}));
  out.clear();
  append_connack(ProtocolVersion::V311, {.reason = ReasonCode::MalformedPacket}, out);
  CHECK(out.empty());
  append_connack(ProtocolVersion::V5, {.receive_maximum = 9, .maximum_packet_bytes = 1}, out);
  CHECK(out == bytes({0x20, 11, 0, 0, 8, 0x21, 0, 9, 0x27, 0, 0, 0, 1}));

  out.clear();
  append_ack(PacketType::Puback, 258, ProtocolVersion::V311, ReasonCode::QuotaExceeded, "x", 0,
             out);
  CHECK(out == bytes({0x40, 2, 1, 2}));
  out.clear();
  append_ack(PacketType::Puback, 258, ProtocolVersion::V5, ReasonCode::QuotaExceeded, "x", 0, out);
  CHECK(out == bytes({0x40, 8, 1, 2, 0x97, 4, 0x1F, 0, 1, 'x'}));
  out.clear();  // the client takes no packet that large
  append_ack(PacketType::Puback, 258, ProtocolVersion::V5, ReasonCode::QuotaExceeded, "x", 20, out);
  CHECK(out == bytes({0x40, 3, 1, 2, 0x97}));

  out.clear();
  append_suback(PacketType::Suback, 1, ProtocolVersion::V311, ReasonCode::ImplementationSpecific, 2,
                out);
  CHECK(out == bytes({0x90, 4, 0, 1, 0x80, 0x80}));
  out.clear();
  append_suback(PacketType::Unsuback, 1, ProtocolVersion::V311, ReasonCode::NoSubscriptionExisted,
                2, out);
  CHECK(out == bytes({0xB0, 2, 0, 1}));
  out.clear();
  append_suback(PacketType::Unsuback, 1, ProtocolVersion::V5, ReasonCode::NoSubscriptionExisted, 2,
                out);
  CHECK(out == bytes({0xB0, 5, 0, 1, 0, 0x11, 0x11}));
  out.clear();
  append_disconnect(ProtocolVersion::V311, ReasonCode::ProtocolError, "x", 0, out);
  CHECK(out.empty());
  append_disconnect(ProtocolVersion::V5, ReasonCode::ProtocolError, "", 0, out);
  CHECK(out == bytes({0xE0, 1, 0x82}));
}
