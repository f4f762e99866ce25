#include "mqtt/gate_streams.h"

#include <doctest/doctest.h>

#include <vector>

#include "daemon/mqtt/mqtt_fixture.h"
#include "edgecase/random.h"
#include "support/test_seed.h"

using namespace edgecase;
using mqtt::InwardStream;
using mqtt::OutwardStream;
using test::bytes_of;

namespace {

std::string ack(int id) {
  return bytes_of({0x40, 2, id >> 8, id & 0xff});
}

// A message of QoS 1 with a payload of `size` bytes.
std::string publish(std::size_t size) {
  std::string packet(1, 0x32);
  std::size_t remaining = size + 5;
  do {
    packet += static_cast<char>((remaining & 0x7f) | (remaining > 0x7f ? 0x80u : 0));
    remaining >>= 7;
  } while (remaining > 0);
  return packet + bytes_of({0, 1, 't', 0, 1}) + std::string(size, 'p');
}

constexpr std::size_t kNoLimit = 1u << 20;

}  // namespace

TEST_CASE("outward stream: acknowledgements leave in order, up to what is durable") {
  OutwardStream out;
  REQUIRE(out.feed(ack(1), 5, 100));
  REQUIRE(out.feed(ack(2) + bytes_of({0x50, 2, 0, 9}), 7, 200));  // PUBREC waits, too
  CHECK(out.output().empty());
  CHECK(out.held() == 3);
  CHECK(out.held_since_ns() == 100);
  out.release(4);
  CHECK(out.output().empty());
  CHECK_FALSE(out.holds_up_to(4));
  CHECK(out.holds_up_to(5));
  out.release(6);
  CHECK(out.output() == ack(1));
  CHECK(out.held_since_ns() == 200);
  out.release(7);
  CHECK(out.output() == ack(1) + ack(2) + bytes_of({0x50, 2, 0, 9}));
  CHECK(out.held() == 0);
  CHECK(out.held_since_ns() == 0);
  CHECK(out.acks_seen() == 3);
  CHECK(out.acks_released() == 3);
}

TEST_CASE("outward stream: everything else passes, in whatever pieces it comes") {
  const std::string others = bytes_of({0x82, 6, 0, 1, 0, 1, 'a', 1}) +  // SUBSCRIBE
                             bytes_of({0xC0, 0}) +                      // PINGREQ
                             bytes_of({0x62, 2, 0, 9}) +                // PUBREL
                             bytes_of({0xE0, 0});                       // DISCONNECT
  for (std::size_t piece = 1; piece <= others.size(); ++piece) {
    CAPTURE(piece);
    OutwardStream out;
    for (std::size_t at = 0; at < others.size(); at += piece) {
      REQUIRE(out.feed(std::string_view(others).substr(at, piece), 0, 0));
    }
    CHECK(out.output() == others);
    CHECK(out.take_pings() == 1);
    CHECK(out.take_pings() == 0);
  }
}

TEST_CASE("outward stream: a piece of an acknowledgement takes the stamp of its last byte") {
  OutwardStream out;
  REQUIRE(out.feed(ack(1).substr(0, 3), 1, 0));
  CHECK(out.held() == 0);
  REQUIRE(out.feed(ack(1).substr(3), 2, 0));
  out.release(1);
  CHECK(out.output().empty());
  out.release(2);
  CHECK(out.output() == ack(1));
}

TEST_CASE("outward stream: refuses what is no packet") {
  for (const std::string& bytes :
       {bytes_of({0x00, 0}), bytes_of({0x4f, 2, 0, 1}), bytes_of({0x40, 65}),
        bytes_of({0x10, 0xff, 0xff, 0xff, 0xff}), bytes_of({0x10, 0xff, 0xff, 0xff, 0x7f})}) {
    OutwardStream out;
    CHECK_FALSE(out.feed(bytes, 0, 0));
  }
}

TEST_CASE("inward stream: passes everything unchanged, whatever the pieces") {
  const std::uint64_t seed = test::test_seed(1);
  MESSAGE("seed " << seed);
  SeededRandom random(seed);
  std::string all = bytes_of({0x20, 2, 0, 0, 0x90, 3, 0, 1, 1});  // CONNACK, SUBACK
  std::uint64_t messages = 0;
  for (int i = 0; i < 200; ++i) {
    if (random.below(4) == 0) {
      all += bytes_of({0xD0, 0});
    } else {
      all += publish(random.below(3) == 0 ? random.below(40'000) : random.below(200));
      ++messages;
    }
  }
  all += bytes_of({0x38, 4, 0, 1, 't', 'x'});  // QoS 0, wrongly marked as sent again
  InwardStream in;
  std::string passed;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t piece = 1 + random.below(random.below(2) == 0 ? 7 : 30'000);
    in.feed(std::string_view(all).substr(at, piece));
    at += piece;
    REQUIRE(in.advance(InwardStream::Publishes::Pass, kNoLimit));
    passed += in.output();
    in.output().clear();
  }
  CHECK(passed == all);
  CHECK(in.publishes_passed() == messages);
  CHECK(in.was_connected());
}

TEST_CASE("inward stream: stops before a message, never in it") {
  InwardStream in;
  const std::string message = publish(1'000);
  in.feed(message.substr(0, 10));
  REQUIRE(in.advance(InwardStream::Publishes::Pass, kNoLimit));
  in.feed(message.substr(10) + bytes_of({0xD0, 0}) + message);
  REQUIRE(in.advance(InwardStream::Publishes::Wait, kNoLimit));
  CHECK(in.output() == message + bytes_of({0xD0, 0}));
  CHECK(in.is_stopped());
  CHECK(in.waiting_bytes() == message.size());
  REQUIRE(in.advance(InwardStream::Publishes::Pass, kNoLimit));
  CHECK_FALSE(in.is_stopped());
  CHECK(in.output() == message + bytes_of({0xD0, 0}) + message);
}

TEST_CASE("inward stream: pings are answered while a message is stopped, each once") {
  InwardStream in;
  const std::string answer = bytes_of({0xD0, 0});
  in.expect_answers(1);  // its answer stands behind the message by now
  in.feed(publish(1) + answer + answer + answer);
  REQUIRE(in.advance(InwardStream::Publishes::Wait, kNoLimit));
  CHECK(in.output() == answer);
  in.expect_answers(1);
  REQUIRE(in.advance(InwardStream::Publishes::Wait, kNoLimit));
  CHECK(in.output() == answer + answer);
  in.expect_answers(1);
  in.output().clear();
  REQUIRE(in.advance(InwardStream::Publishes::Pass, kNoLimit));
  CHECK(in.output() == publish(1) + answer);
}

TEST_CASE("inward stream: what is given out is bounded") {
  InwardStream in;
  in.feed(publish(100) + publish(100));
  REQUIRE(in.advance(InwardStream::Publishes::Pass, 1));
  CHECK(in.output().size() <= 2);
  CHECK(in.waiting_bytes() > 0);
}
