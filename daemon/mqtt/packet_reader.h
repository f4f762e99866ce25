// Takes the parts of an MQTT packet off its front: integers, texts, properties. Every read is
// checked; after one that failed, ok() is false and the rest reads as empty.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/names.h"

namespace edgecase::mqtt {

// UTF-8 without NUL.
inline bool is_packet_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && wire::is_valid_utf8(bytes);
}

class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::uint8_t byte() {
    const std::string_view taken = take(1);
    return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken[0]);
  }
  std::uint16_t fixed16() {
    const std::uint16_t high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  std::uint32_t fixed32() {
    const std::uint32_t high = fixed16();
    return high << 16 | fixed16();
  }
  // At most four bytes of seven bits, the lowest first.
  std::uint32_t variable() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint32_t>(next & 0x7f) << shift;
      if ((next & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  // Two bytes of length, then so many.
  std::string_view binary() { return take(fixed16()); }
  // The same, which must be a text.
  std::string_view text() {
    const std::string_view taken = binary();
    if (!is_packet_text(taken)) ok_ = false;
    return taken;
  }
  std::string_view take(std::size_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Properties of MQTT 5, section 2.2.2.2.
enum class Property : std::uint8_t {
  PayloadFormat = 0x01,
  MessageExpiry = 0x02,
  ContentType = 0x03,
  ResponseTopic = 0x08,
  CorrelationData = 0x09,
  SubscriptionIdentifier = 0x0B,
  SessionExpiry = 0x11,
  AssignedClientIdentifier = 0x12,
  ServerKeepAlive = 0x13,
  AuthenticationMethod = 0x15,
  AuthenticationData = 0x16,
  RequestProblemInformation = 0x17,
  WillDelay = 0x18,
  RequestResponseInformation = 0x19,
  ResponseInformation = 0x1A,
  ServerReference = 0x1C,
  ReasonString = 0x1F,
  ReceiveMaximum = 0x21,
  TopicAliasMaximum = 0x22,
  TopicAlias = 0x23,
  MaximumQos = 0x24,
  RetainAvailable = 0x25,
  UserProperty = 0x26,
  MaximumPacketSize = 0x27,
  WildcardAvailable = 0x28,
  SubscriptionIdsAvailable = 0x29,
  SharedAvailable = 0x2A,
};

}  // namespace edgecase::mqtt
