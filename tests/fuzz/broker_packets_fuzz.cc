// Any bytes from a broker, in one piece and cut up: what is taken, what passes and what is answered
// is the same however the bytes were cut, and no more waits than one message may have. The first
// byte chooses the version, the cuts, and whether messages have to wait in between.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/fuzz_targets.h"
#include "mqtt/ack_gate.h"
#include "mqtt/message_group.h"

namespace edgecase::test {
namespace {

using mqtt::InwardStream;

constexpr std::uint32_t kBrokerPacketMaxBytes = 2u << 10;  // less than the head of an oversized one
constexpr std::size_t kBrokerInputMaxBytes = 256u << 10;
constexpr std::size_t kBrokerOutputMaxBytes = 4u << 10;

struct Heard {
  std::string messages;
  std::string passed;
  std::string answers;
  bool broken = false;

  bool operator==(const Heard&) const = default;
};

std::string text_of(const mqtt::IncomingMessage& message) {
  std::string text(message.topic);
  for (const std::uint32_t part :
       {static_cast<std::uint32_t>(message.qos), std::uint32_t{message.packet_id},
        std::uint32_t{message.redelivered}, std::uint32_t{message.retained},
        message.oversized_bytes, static_cast<std::uint32_t>(message.payload.size())}) {
    text += ' ' + std::to_string(part);
  }
  return text + ' ' + std::string(message.payload) + '\n';
}

// False: the stream is broken.
bool advance(InwardStream& in, InwardStream::Publishes publishes, std::size_t output_max,
             Heard& heard) {
  const bool going = in.advance(publishes, output_max);
  for (const mqtt::IncomingMessage& each : in.messages()) heard.messages += text_of(each);
  if (in.take_new_session()) heard.messages += "new session\n";
  heard.passed += std::exchange(in.output(), {});
  heard.answers += in.take_answers();
  return going;
}

bool advance_all(InwardStream& in, Heard& heard) {
  std::size_t waiting = 0;
  std::size_t passed = 0;
  do {
    waiting = in.waiting_bytes();
    passed = heard.passed.size();
    if (!advance(in, InwardStream::Publishes::Take, kBrokerOutputMaxBytes, heard)) return false;
  } while (in.waiting_bytes() < waiting || heard.passed.size() > passed);
  return true;
}

Heard hear(std::string_view bytes, std::size_t step, mqtt::ProtocolVersion version, bool waits) {
  InwardStream in(version, kBrokerPacketMaxBytes);
  Heard heard;
  for (std::size_t at = 0; at < bytes.size() && !heard.broken; at += step) {
    in.feed(bytes.substr(at, step));
    if (waits) {
      heard.broken = !advance(in, InwardStream::Publishes::Wait, 1, heard);
      demand(in.messages().size() <= 1);  // the rest of one that is too large may have come
    }
    if (!heard.broken) heard.broken = !advance_all(in, heard);
    demand(heard.broken || in.waiting_bytes() <= mqtt::kOversizedHeadBytes + 5);
  }
  return heard;
}

}  // namespace

void take_broker_packets(std::string_view data) {
  if (data.empty() || data.size() > kBrokerInputMaxBytes) return;
  const unsigned choice = static_cast<unsigned char>(data[0]);
  const auto version = (choice & 1) != 0 ? mqtt::ProtocolVersion::V5 : mqtt::ProtocolVersion::V311;
  const std::size_t step = 1 + choice / 4;
  const Heard whole = hear(data.substr(1), data.size(), version, false);
  demand(hear(data.substr(1), step, version, (choice & 2) != 0) == whole);
}

}  // namespace edgecase::test
