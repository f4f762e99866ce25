#include "mqtt/ack_gate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mqtt/mqtt_fixture.h"
#include "edgecase/machine.h"
#include "mqtt/message_group.h"
#include "support/test_seed.h"

using namespace edgecase;
using mqtt::HeldAcks;
using mqtt::IncomingMessage;
using mqtt::InwardStream;
using mqtt::OutwardStream;
using mqtt::ProtocolVersion;
using test::bytes_of;

namespace {

constexpr std::size_t kNoLimit = 1u << 20;
constexpr std::uint32_t kStreamPacketMaxBytes = 100u << 10;
constexpr auto kTake = InwardStream::Publishes::Take;
constexpr auto kWait = InwardStream::Publishes::Wait;

// A message of topic "t" and packet id 1, with a payload of `size` bytes.
std::string publish(std::size_t size, int first_byte = 0x32) {
  const bool has_id = (first_byte & 0x06) != 0;
  std::string packet(1, static_cast<char>(first_byte));
  std::size_t remaining = size + (has_id ? 5 : 3);
  do {
    packet += static_cast<char>((remaining & 0x7f) | (remaining > 0x7f ? 0x80u : 0));
    remaining >>= 7;
  } while (remaining > 0);
  packet += bytes_of({0, 1, 't'});
  if (has_id) packet += bytes_of({0, 1});
  return packet + std::string(size, 'p');
}

// A stream of 3.1.1, and what it took.
struct Inward {
  bool advance(InwardStream::Publishes publishes = kTake, std::size_t output_max = kNoLimit) {
    const bool going = in.advance(publishes, output_max);
    for (const IncomingMessage& each : in.messages()) {
      payloads.emplace_back(each.payload);
      topics.emplace_back(each.topic);
      last = each;
    }
    answers += in.take_answers();
    return going;
  }
  InwardStream in{ProtocolVersion::V311, kStreamPacketMaxBytes};
  std::vector<std::string> payloads;
  std::vector<std::string> topics;
  std::string answers;
  IncomingMessage last;  // but for what it borrows
};

}  // namespace

TEST_CASE("held acks: they leave in order, up to what is durable, PUBREC for QoS 2") {
  for (const auto version : {ProtocolVersion::V311, ProtocolVersion::V5}) {
    HeldAcks acks(version);
    acks.hold({.topic = "t", .payload = "", .qos = 1, .packet_id = 7}, 5, 100);
    acks.hold({.topic = "t", .payload = "", .qos = 0}, 6, 150);
    acks.hold({.topic = "t", .payload = "", .qos = 2, .packet_id = 0x102}, 7, 200);
    CHECK(acks.held() == 2);
    CHECK(acks.held_since_ns() == 100);
    std::string out;
    acks.release(4, out);
    CHECK(out.empty());
    CHECK_FALSE(acks.holds_up_to(4));
    CHECK(acks.holds_up_to(5));
    acks.release(6, out);
    CHECK(out == bytes_of({0x40, 2, 0, 7}));
    CHECK(acks.held_since_ns() == 200);
    acks.release(7, out);
    CHECK(out == bytes_of({0x40, 2, 0, 7, 0x50, 2, 1, 2}));
    CHECK(acks.held() == 0);
    CHECK(acks.held_since_ns() == 0);
    CHECK(acks.released() == 2);
  }
}

TEST_CASE("outward stream: a subscriber's packets pass, in whatever pieces they come") {
  const std::string others = bytes_of({0x82, 6, 0, 1, 0, 1, 'a', 1}) +  // SUBSCRIBE
                             bytes_of({0xC0, 0}) +                      // PINGREQ
                             bytes_of({0xE0, 0});                       // DISCONNECT
  for (std::size_t piece = 1; piece <= others.size(); ++piece) {
    CAPTURE(piece);
    OutwardStream out;
    for (std::size_t at = 0; at < others.size(); at += piece) {
      REQUIRE(out.feed(std::string_view(others).substr(at, piece)));
    }
    CHECK(out.output() == others);
    CHECK(out.take_pings() == 1);
    CHECK(out.take_pings() == 0);
  }
}

TEST_CASE("outward stream: no acknowledgement passes, nor what is no packet") {
  for (const std::string& bytes :
       {bytes_of({0x40, 2, 0, 1}), bytes_of({0x50, 2, 0, 1}), bytes_of({0x70, 2, 0, 1}),
        bytes_of({0x00, 0}), bytes_of({0x4f, 2, 0, 1}), bytes_of({0x10, 0xff, 0xff, 0xff, 0xff}),
        bytes_of({0x10, 0xff, 0xff, 0xff, 0x7f})}) {
    OutwardStream out;
    CHECK_FALSE(out.feed(bytes));
    CHECK(out.output().empty());
  }
}

TEST_CASE("inward stream: messages are taken and all else passes, whatever the pieces") {
  const std::uint64_t seed = test::test_seed(1);
  MESSAGE("seed " << seed);
  SeededRandom random(seed);
  std::string all = bytes_of({0x20, 2, 1, 0, 0x90, 3, 0, 1, 1});  // CONNACK, SUBACK
  std::string others = all;
  std::vector<std::string> payloads;
  for (int i = 0; i < 200; ++i) {
    if (random.below(4) == 0) {
      all += bytes_of({0xD0, 0});
      others += bytes_of({0xD0, 0});
    } else {
      const std::size_t size = random.below(3) == 0 ? random.below(40'000) : random.below(200);
      all += publish(size);
      payloads.emplace_back(size, 'p');
    }
  }
  all += publish(1, 0x38);  // QoS 0, wrongly marked as sent again
  payloads.emplace_back("p");
  Inward inward;
  std::string passed;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t piece = 1 + random.below(random.below(2) == 0 ? 7 : 30'000);
    inward.in.feed(std::string_view(all).substr(at, piece));
    at += piece;
    REQUIRE(inward.advance());
    passed += std::exchange(inward.in.output(), {});
  }
  CHECK(passed == others);
  CHECK(inward.payloads == payloads);
  CHECK(inward.in.was_connected());
  CHECK(inward.last.qos == 0);
  CHECK_FALSE(inward.last.redelivered);
  CHECK(inward.last.oversized_bytes == 0);
}

TEST_CASE("inward stream: a DISCONNECT ends it, and the MQTT client is not shown it") {
  const std::string suback = bytes_of({0x90, 4, 0, 1, 0, 1});
  const std::string busy = bytes_of({0xE0, 2, 0x89, 0});
  const std::string wordy =
      bytes_of({0xE0, 0x86, 0x80, 0x04, 0x89, 0x82, 0x80, 0x04, 0x1F, 0xFF, 0xFF}) +
      std::string(65'535, 'x');
  for (const std::string& disconnect : {bytes_of({0xE0, 0}), busy, wordy}) {
    for (const std::size_t piece : {std::size_t{1}, disconnect.size() + suback.size() + 10}) {
      InwardStream in(ProtocolVersion::V5, kStreamPacketMaxBytes);
      const std::string all = suback + disconnect + publish(3) + bytes_of({0xFF});
      for (std::size_t at = 0; at < all.size(); at += piece) {
        in.feed(std::string_view(all).substr(at, piece));
        REQUIRE(in.advance(kTake, kNoLimit));
        CHECK(in.messages().empty());
      }
      CHECK(in.was_ended());
      CHECK(in.output() == suback);
      CHECK(in.waiting_bytes() == 0);
      CHECK(in.reason().find("the broker ended the connection") == 0);
    }
  }
}

TEST_CASE("inward stream: what a message says of itself") {
  struct Case {
    int first_byte, qos;
    bool redelivered, retained;
  };
  for (const Case& c :
       {Case{0x30, 0, false, false}, Case{0x31, 0, false, true}, Case{0x32, 1, false, false},
        Case{0x3A, 1, true, false}, Case{0x3D, 2, true, true}}) {
    CAPTURE(c.first_byte);
    Inward inward;
    inward.in.feed(publish(3, c.first_byte));
    REQUIRE(inward.advance());
    REQUIRE(inward.payloads == std::vector<std::string>{"ppp"});
    CHECK(inward.last.qos == c.qos);
    CHECK(inward.last.packet_id == (c.qos == 0 ? 0 : 1));
    CHECK(inward.last.redelivered == c.redelivered);
    CHECK(inward.last.retained == c.retained);
  }
}

TEST_CASE("inward stream: a topic that is none is for others to judge, a broken message is not") {
  Inward inward;
  inward.in.feed(bytes_of({0x30, 4, 0, 2, 0xff, 0}) + bytes_of({0x30, 3, 0, 0, 'x'}));
  REQUIRE(inward.advance());
  CHECK(inward.topics == std::vector<std::string>{bytes_of({0xff, 0}), ""});
  for (const std::string& bytes :
       {bytes_of({0x30, 2, 0, 9}), bytes_of({0x32, 5, 0, 1, 't', 0, 0}), bytes_of({0x36, 0}),
        bytes_of({0x62, 1, 0}), bytes_of({0x62, 2, 0, 0}), bytes_of({0x00, 0})}) {
    Inward broken;
    broken.in.feed(bytes);
    CHECK_FALSE(broken.advance());
  }
  InwardStream five(ProtocolVersion::V5, kStreamPacketMaxBytes);
  five.feed(bytes_of({0x30, 5, 0, 1, 't', 9, 'x'}));  // properties longer than the packet
  CHECK_FALSE(five.advance(kTake, kNoLimit));
  // Two subscription identifiers, and one of which nobody knows how long it is.
  InwardStream lenient(ProtocolVersion::V5, kStreamPacketMaxBytes);
  lenient.feed(bytes_of({0x30, 9, 0, 1, 't', 4, 0x0B, 1, 0x0B, 2, 'x'}) +
               bytes_of({0x30, 7, 0, 1, 't', 2, 0x7F, 1, 'y'}));
  REQUIRE(lenient.advance(kTake, kNoLimit));
  REQUIRE(lenient.messages().size() == 2);
  CHECK(lenient.messages()[0].payload == "x");
  CHECK(lenient.messages()[1].payload == "y");
}

TEST_CASE("inward stream: the end of an exchange of QoS 2 is answered, in either version") {
  Inward inward;
  inward.in.feed(bytes_of({0x62, 2, 1, 2, 0x62, 2, 0, 9}));
  REQUIRE(inward.advance());
  CHECK(inward.answers == bytes_of({0x70, 2, 1, 2, 0x70, 2, 0, 9}));
  CHECK(inward.in.output().empty());
  InwardStream five(ProtocolVersion::V5, kStreamPacketMaxBytes);
  five.feed(bytes_of({0x62, 4, 0, 9, 0x92, 0}));
  REQUIRE(five.advance(kTake, kNoLimit));
  CHECK(five.take_answers() == bytes_of({0x70, 2, 0, 9}));
}

TEST_CASE("inward stream: of a message over the limit only the beginning is kept") {
  const std::string message = publish(kStreamPacketMaxBytes + 1) + publish(2);
  for (const std::size_t piece : {std::size_t{1'000}, std::size_t{65'536}, message.size()}) {
    CAPTURE(piece);
    Inward inward;
    std::size_t waited_max = 0;
    for (std::size_t at = 0; at < message.size(); at += piece) {
      inward.in.feed(std::string_view(message).substr(at, piece));
      REQUIRE(inward.advance());
      if (inward.payloads.size() == 1) {
        CHECK(inward.last.oversized_bytes == kStreamPacketMaxBytes + 6);
        CHECK(inward.last.qos == 1);
        CHECK(inward.last.packet_id == 1);
      }
      waited_max = std::max(waited_max, inward.in.waiting_bytes());
    }
    REQUIRE(inward.advance());
    REQUIRE(inward.payloads.size() == 2);
    CHECK(inward.payloads[0].size() >= mqtt::kRejectedPayloadMaxBytes);
    CHECK(inward.payloads[0].size() < mqtt::kOversizedHeadBytes);
    CHECK(inward.payloads[1] == "pp");
    CHECK(inward.last.oversized_bytes == 0);
    if (piece == 1'000) CHECK(waited_max < mqtt::kOversizedHeadBytes + piece);
  }
}

TEST_CASE("inward stream: a new session is told before its messages are taken") {
  for (const bool present : {true, false}) {
    CAPTURE(present);
    Inward inward;
    inward.in.feed(bytes_of({0x20, 2, present ? 1 : 0, 0}) + publish(1));
    REQUIRE(inward.advance());
    CHECK(inward.payloads.empty() == !present);
    CHECK(inward.in.take_new_session() == !present);
    REQUIRE(inward.advance());
    CHECK(inward.payloads.size() == 1);
    CHECK_FALSE(inward.in.take_new_session());
  }
  Inward refused;
  refused.in.feed(bytes_of({0x20, 2, 0, 5}));
  REQUIRE(refused.advance());
  CHECK_FALSE(refused.in.take_new_session());
}

TEST_CASE("inward stream: stops before a message, never in it") {
  Inward inward;
  const std::string message = publish(1'000);
  inward.in.feed(message.substr(0, 10));
  REQUIRE(inward.advance());
  CHECK(inward.in.is_message_partial());
  inward.in.feed(message.substr(10) + bytes_of({0xD0, 0}) + message);
  REQUIRE(inward.advance(kWait));
  CHECK(inward.payloads.empty());
  CHECK(inward.in.is_stopped());
  CHECK(inward.in.waiting_bytes() == 2 * message.size() + 2);
  REQUIRE(inward.advance());
  CHECK_FALSE(inward.in.is_stopped());
  CHECK(inward.payloads.size() == 2);
  CHECK(inward.in.output() == bytes_of({0xD0, 0}));
  CHECK(inward.in.waiting_bytes() == 0);
}

TEST_CASE("inward stream: pings are answered while a message is stopped, each once") {
  Inward inward;
  const std::string answer = bytes_of({0xD0, 0});
  inward.in.expect_answers(1);  // its answer stands behind the message by now
  inward.in.feed(publish(1) + answer + answer + answer);
  REQUIRE(inward.advance(kWait));
  CHECK(inward.in.output() == answer);
  inward.in.expect_answers(1);
  REQUIRE(inward.advance(kWait));
  CHECK(inward.in.output() == answer + answer);
  inward.in.expect_answers(1);
  inward.in.output().clear();
  REQUIRE(inward.advance());
  CHECK(inward.in.output() == answer);
  CHECK(inward.payloads.size() == 1);
}

TEST_CASE("inward stream: what is given out is bounded") {
  Inward inward;
  for (int i = 0; i < 100; ++i) inward.in.feed(bytes_of({0xD0, 0}));
  REQUIRE(inward.advance(kTake, 1));
  CHECK(inward.in.output().size() <= 2);
  CHECK(inward.in.waiting_bytes() > 0);
}
