// The bytes of MQTT 3.1.1 and 5: what a server reads from clients and answers. Pure functions; any
// thread. Shared by whoever speaks MQTT without a library.
//
// Reading: read_fixed_header() until a packet is whole, then the decoder of its type on the bytes
// behind the fixed header. What decoders return borrows from those bytes. A decoder returns
// ReasonCode::Success, or why the connection has to end.
// Sources: MQTT Version 3.1.1 and MQTT Version 5.0, OASIS standards; sections are named where a
// rule is not obvious.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/names.h"

namespace edgecase::mqtt {

enum class ProtocolVersion : std::uint8_t { V311 = 4, V5 = 5 };

enum class PacketType : std::uint8_t {
  Connect = 1,
  Connack,
  Publish,
  Puback,
  Pubrec,
  Pubrel,
  Pubcomp,
  Subscribe,
  Suback,
  Unsubscribe,
  Unsuback,
  Pingreq,
  Pingresp,
  Disconnect,
  Auth,
};

// Reason codes of MQTT 5, section 2.4. 3.1.1 has no such codes but in CONNACK
// (connect_return_code()).
enum class ReasonCode : std::uint8_t {
  Success = 0x00,
  NoSubscriptionExisted = 0x11,
  Unspecified = 0x80,
  MalformedPacket = 0x81,
  ProtocolError = 0x82,
  ImplementationSpecific = 0x83,
  UnsupportedProtocolVersion = 0x84,
  ClientIdentifierNotValid = 0x85,
  BadUserNameOrPassword = 0x86,
  NotAuthorized = 0x87,
  ServerBusy = 0x89,
  ServerShuttingDown = 0x8B,
  BadAuthenticationMethod = 0x8C,
  KeepAliveTimeout = 0x8D,
  SessionTakenOver = 0x8E,
  TopicNameInvalid = 0x90,
  PacketIdentifierNotFound = 0x92,
  ReceiveMaximumExceeded = 0x93,
  TopicAliasInvalid = 0x94,
  PacketTooLarge = 0x95,
  QuotaExceeded = 0x97,
  PayloadFormatInvalid = 0x99,
  ConnectionRateExceeded = 0x9F,
};

inline constexpr std::size_t kFixedHeaderMaxBytes = 5;
inline constexpr std::uint32_t kRemainingLengthMax = 268'435'455;  // four bytes of seven bits

struct FixedHeader {
  PacketType type = PacketType::Connect;
  std::uint8_t flags = 0;
  std::uint32_t remaining_bytes = 0;  // behind the header
  std::uint32_t header_bytes = 0;
};

enum class HeaderProgress : std::uint8_t { NeedMore, Complete, Malformed };
// Malformed: no such type, flags that the type does not allow, a length of more than four bytes.
HeaderProgress read_fixed_header(std::string_view bytes, FixedHeader& header);

// What a server publishes when the client goes without DISCONNECT. Its retain flag and its other
// properties mean nothing to who stores it.
struct WillPacket {
  std::string_view topic;
  std::string_view payload;
  std::uint32_t delay_seconds = 0;  // of MQTT 5
};
struct ConnectPacket {
  ProtocolVersion version = ProtocolVersion::V311;
  bool clean_start = true;  // "clean session" in 3.1.1
  bool has_will = false;
  WillPacket will;
  std::uint16_t keep_alive_seconds = 0;
  std::string_view client_id;
  std::string_view username;
  std::string_view password;  // a secret: never logged
  // Properties of MQTT 5; the defaults are what their absence means.
  std::uint32_t session_expiry_seconds = 0;
  std::uint32_t maximum_packet_bytes = 0;  // that the client takes; 0: any
  bool wants_problem_information = true;
  bool wants_authentication = false;  // an Authentication Method was given
};
// UnsupportedProtocolVersion leaves `packet.version` at what the client can be answered in. A
// bridge of mosquitto marks itself by the highest bit of the version, which means nothing here.
ReasonCode decode_connect(std::string_view body, ConnectPacket& packet);

struct PublishPacket {
  std::string_view topic;  // may be empty with an alias
  std::string_view payload;
  std::string_view properties;  // of MQTT 5, as they lie
  std::uint16_t packet_id = 0;  // 0 at QoS 0
  std::uint16_t topic_alias = 0;
  std::uint8_t qos = 0;
  bool duplicate = false;
  bool retain = false;
};
// What the packet is made of, whatever bytes its topic has, and whatever properties. `body` may be
// cut short within the payload.
ReasonCode read_publish(std::uint8_t flags, std::string_view body, ProtocolVersion version,
                        PublishPacket& packet);
// The same of a client's, and whether the topic is one, or an alias stands for it.
ReasonCode decode_publish(std::uint8_t flags, std::string_view body, ProtocolVersion version,
                          PublishPacket& packet);

// PUBACK, PUBREC, PUBREL, PUBCOMP; the reason is of MQTT 5.
struct AckPacket {
  std::uint16_t packet_id = 0;
  std::uint8_t reason = 0;
};
ReasonCode decode_ack(std::string_view body, ProtocolVersion version, AckPacket& packet);

// SUBSCRIBE and UNSUBSCRIBE: every filter is checked and counted.
struct SubscribePacket {
  static constexpr std::size_t kQosKeptMax = 1'024;
  std::uint16_t packet_id = 0;
  std::size_t filters = 0;
  std::string qos;  // what SUBSCRIBE asks, a byte a filter, of the first kQosKeptMax
};
ReasonCode decode_subscribe(PacketType type, std::string_view body, ProtocolVersion version,
                            SubscribePacket& packet);

// The session expiry that a DISCONNECT of MQTT 5 changes to; `changes` false: it does not.
struct DisconnectPacket {
  std::uint8_t reason = 0;
  bool changes_expiry = false;
  std::uint32_t session_expiry_seconds = 0;
};
ReasonCode decode_disconnect(std::string_view body, ProtocolVersion version,
                             DisconnectPacket& packet);

// ---- Answers: each appends one whole packet.

struct ConnackPacket {
  bool session_present = false;
  ReasonCode reason = ReasonCode::Success;
  // Properties of MQTT 5, sent with success only; 0 and empty are left out.
  std::string_view reason_text = {};  // with a failure
  std::string_view assigned_client_id = {};
  std::uint32_t session_expiry_seconds = 0;
  bool tells_session_expiry = false;  // when it is less than what was asked
  std::uint16_t receive_maximum = 0;
  std::uint16_t topic_alias_maximum = 0;
  std::uint32_t maximum_packet_bytes = 0;
};
// Nothing for 3.1.1 where it has no return code for the reason.
void append_connack(ProtocolVersion version, const ConnackPacket& packet, std::string& out);
// The return code of 3.1.1; 0 for Success and for what it has none for.
std::uint8_t connect_return_code(ReasonCode reason);

// PUBACK, PUBREC, PUBCOMP. `reason` and its text go to MQTT 5 only, the text where the whole packet
// stays within `packet_max_bytes` (0: any).
void append_ack(PacketType type, std::uint16_t packet_id, ProtocolVersion version,
                ReasonCode reason, std::string_view reason_text, std::uint32_t packet_max_bytes,
                std::string& out);
// SUBACK and UNSUBACK with the same `reason` for each of `count` filters (in 3.1.1: failure, or
// nothing for UNSUBACK).
void append_suback(PacketType type, std::uint16_t packet_id, ProtocolVersion version,
                   ReasonCode reason, std::size_t count, std::string& out);
// SUBACK that grants each filter the QoS of its byte.
void append_granted(std::uint16_t packet_id, ProtocolVersion version, std::string_view qos,
                    std::string& out);
void append_pingreq(std::string& out);
void append_pingresp(std::string& out);
// A client's DISCONNECT: its session stays, a will is not sent.
void append_leave(std::string& out);
// MQTT 5; nothing for 3.1.1, whose servers just close.
void append_disconnect(ProtocolVersion version, ReasonCode reason, std::string_view reason_text,
                       std::uint32_t packet_max_bytes, std::string& out);

// The topic of a PUBLISH: UTF-8, not empty, no wildcard, no NUL.
bool is_topic_name(std::string_view topic);

// UTF-8 without NUL.
inline bool is_packet_text(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && wire::is_valid_utf8(bytes);
}

// Takes the parts of an MQTT packet off its front: integers, texts, properties. Every read is
// checked; after one that failed, ok() is false and the rest reads as empty.
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
