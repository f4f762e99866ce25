#include "mqtt/packet_codec.h"

#include <cstdint>

namespace edgecase::mqtt {
namespace {

constexpr std::uint8_t kBridgeBit = 0x80;
constexpr std::uint8_t kQosMax = 2;

std::uint64_t bit(Property property) {
  return std::uint64_t{1} << static_cast<unsigned>(property);
}

template <typename... Each>
std::uint64_t set_of(Each... each) {
  return (bit(each) | ...);
}

// What a client may send, and where.
const std::uint64_t kConnectProperties =
    set_of(Property::SessionExpiry, Property::AuthenticationMethod, Property::AuthenticationData,
           Property::RequestProblemInformation, Property::RequestResponseInformation,
           Property::ReceiveMaximum, Property::TopicAliasMaximum, Property::UserProperty,
           Property::MaximumPacketSize);
const std::uint64_t kWillProperties =
    set_of(Property::PayloadFormat, Property::MessageExpiry, Property::ContentType,
           Property::ResponseTopic, Property::CorrelationData, Property::WillDelay,
           Property::UserProperty);
const std::uint64_t kPublishProperties =
    set_of(Property::PayloadFormat, Property::MessageExpiry, Property::ContentType,
           Property::ResponseTopic, Property::CorrelationData, Property::TopicAlias,
           Property::UserProperty);
const std::uint64_t kAckProperties = set_of(Property::ReasonString, Property::UserProperty);
const std::uint64_t kSubscribeProperties =
    set_of(Property::SubscriptionIdentifier, Property::UserProperty);
const std::uint64_t kUnsubscribeProperties = set_of(Property::UserProperty);
const std::uint64_t kDisconnectProperties =
    set_of(Property::SessionExpiry, Property::ReasonString, Property::UserProperty);

struct PropertyValue {
  Property property = Property::UserProperty;
  std::uint32_t number = 0;
};

// False where the byte names no property that a client sends.
bool read_value(PacketReader& reader, PropertyValue& value) {
  switch (value.property) {
    case Property::PayloadFormat:
    case Property::RequestProblemInformation:
    case Property::RequestResponseInformation:
      value.number = reader.byte();
      return value.number <= 1;
    case Property::ReceiveMaximum:
    case Property::TopicAlias: value.number = reader.fixed16(); return value.number != 0;
    case Property::TopicAliasMaximum: value.number = reader.fixed16(); return true;
    case Property::MaximumPacketSize: value.number = reader.fixed32(); return value.number != 0;
    case Property::MessageExpiry:
    case Property::SessionExpiry:
    case Property::WillDelay: value.number = reader.fixed32(); return true;
    case Property::SubscriptionIdentifier:
      value.number = reader.variable();
      return value.number != 0;
    case Property::CorrelationData:
    case Property::AuthenticationData: reader.binary(); return true;
    case Property::UserProperty: reader.text(); [[fallthrough]];
    case Property::ContentType:
    case Property::ResponseTopic:
    case Property::AuthenticationMethod:
    case Property::ReasonString: reader.text(); return true;
    case Property::AssignedClientIdentifier:
    case Property::ServerKeepAlive:
    case Property::ResponseInformation:
    case Property::ServerReference:
    case Property::MaximumQos:
    case Property::RetainAvailable:
    case Property::WildcardAvailable:
    case Property::SubscriptionIdsAvailable:
    case Property::SharedAvailable: break;
  }
  return false;
}

// Calls `each` with every property. One that is not allowed here, or comes twice, is a protocol
// error; a value that cannot be is too (3.1.2.11.3 and others), but for lengths.
template <typename Each>
ReasonCode read_properties(std::string_view properties, std::uint64_t allowed, Each each) {
  PacketReader reader(properties);
  std::uint64_t seen = 0;
  while (!reader.empty()) {
    const std::uint8_t identifier = reader.byte();
    PropertyValue value;
    value.property = static_cast<Property>(identifier);
    if (identifier > 0x2A) return ReasonCode::MalformedPacket;
    const std::uint64_t own = bit(value.property);
    if ((allowed & own) == 0) return ReasonCode::ProtocolError;
    if ((seen & own) != 0 && value.property != Property::UserProperty) {
      return ReasonCode::ProtocolError;
    }
    seen |= own;
    const bool sensible = read_value(reader, value);
    if (!reader.ok()) return ReasonCode::MalformedPacket;
    if (!sensible) {
      return value.property == Property::TopicAlias ? ReasonCode::TopicAliasInvalid
                                                    : ReasonCode::ProtocolError;
    }
    each(value);
  }
  return ReasonCode::Success;
}

template <typename Each>
ReasonCode read_properties(PacketReader& packet, std::uint64_t allowed, Each each) {
  const std::string_view properties = packet.take(packet.variable());
  if (!packet.ok()) return ReasonCode::MalformedPacket;
  return read_properties(properties, allowed, each);
}

ReasonCode skip_properties(PacketReader& packet, std::uint64_t allowed) {
  return read_properties(packet, allowed, [](const PropertyValue&) {});
}

ReasonCode read_connect_properties(PacketReader& reader, ConnectPacket& packet) {
  return read_properties(reader, kConnectProperties, [&packet](const PropertyValue& value) {
    switch (value.property) {
      case Property::SessionExpiry: packet.session_expiry_seconds = value.number; break;
      case Property::MaximumPacketSize: packet.maximum_packet_bytes = value.number; break;
      case Property::RequestProblemInformation:
        packet.wants_problem_information = value.number != 0;
        break;
      case Property::AuthenticationMethod: packet.wants_authentication = true; break;
      default: break;
    }
  });
}

ReasonCode read_will(PacketReader& reader, ProtocolVersion version, WillPacket& will) {
  if (version == ProtocolVersion::V5) {
    const ReasonCode properties =
        read_properties(reader, kWillProperties, [&will](const PropertyValue& value) {
          if (value.property == Property::WillDelay) will.delay_seconds = value.number;
        });
    if (properties != ReasonCode::Success) return properties;
  }
  will.topic = reader.text();
  will.payload = reader.binary();
  if (!reader.ok()) return ReasonCode::MalformedPacket;
  return is_topic_name(will.topic) ? ReasonCode::Success : ReasonCode::TopicNameInvalid;
}

// ---- Writing

void append_fixed16(std::size_t value, std::string& out) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}

void append_fixed32(std::uint32_t value, std::string& out) {
  append_fixed16(value >> 16, out);
  append_fixed16(value & 0xffff, out);
}

void append_variable(std::size_t value, std::string& out) {
  do {
    const std::size_t seven = value & 0x7f;
    value >>= 7;
    out += static_cast<char>(value > 0 ? seven | 0x80 : seven);
  } while (value > 0);
}

void append_property(Property property, std::string& out) {
  out += static_cast<char>(property);
}

void append_text_property(Property property, std::string_view text, std::string& out) {
  if (text.empty()) return;
  append_property(property, out);
  append_fixed16(text.size(), out);
  out += text;
}

void append_header(PacketType type, std::size_t remaining_bytes, std::string& out) {
  out += static_cast<char>(static_cast<unsigned>(type) << 4);
  append_variable(remaining_bytes, out);
}

// A text that makes the packet larger than the client takes is left out (3.4.2.2.2).
std::string_view fitting(std::string_view text, std::uint32_t packet_max_bytes) {
  constexpr std::size_t kAround = kFixedHeaderMaxBytes + 2 + 1 + 1 + 3;
  constexpr std::size_t kTextMaxBytes = 100;
  std::size_t most = kTextMaxBytes;
  if (packet_max_bytes != 0 && packet_max_bytes < kAround + most) return {};
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

HeaderProgress read_fixed_header(std::string_view bytes, FixedHeader& header) {
  if (bytes.empty()) return HeaderProgress::NeedMore;
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  if (first >> 4 == 0) return HeaderProgress::Malformed;
  header.type = static_cast<PacketType>(first >> 4);
  header.flags = first & 0x0f;
  if (header.type == PacketType::Publish) {
    const unsigned qos = header.flags >> 1 & 3;
    if (qos > kQosMax || (qos == 0 && (header.flags & 8) != 0)) return HeaderProgress::Malformed;
  } else {
    const bool two = header.type == PacketType::Pubrel || header.type == PacketType::Subscribe ||
                     header.type == PacketType::Unsubscribe;
    if (header.flags != (two ? 2 : 0)) return HeaderProgress::Malformed;
  }
  header.remaining_bytes = 0;
  for (std::size_t i = 1; i < kFixedHeaderMaxBytes; ++i) {
    if (i >= bytes.size()) return HeaderProgress::NeedMore;
    const auto next = static_cast<std::uint8_t>(bytes[i]);
    header.remaining_bytes |= static_cast<std::uint32_t>(next & 0x7f) << (7 * (i - 1));
    if ((next & 0x80) != 0) continue;
    header.header_bytes = static_cast<std::uint32_t>(i) + 1;
    return HeaderProgress::Complete;
  }
  return HeaderProgress::Malformed;
}

bool is_topic_name(std::string_view topic) {
  return !topic.empty() && topic.find_first_of(std::string_view("+#\0", 3)) == topic.npos;
}

ReasonCode decode_connect(std::string_view body, ConnectPacket& packet) {
  PacketReader reader(body);
  const std::string_view name = reader.text();
  const std::uint8_t level = reader.byte() & static_cast<std::uint8_t>(~kBridgeBit);
  if (!reader.ok()) return ReasonCode::MalformedPacket;
  if (name != "MQTT" && name != "MQIsdp") return ReasonCode::ProtocolError;
  packet.version = level < 5 ? ProtocolVersion::V311 : ProtocolVersion::V5;
  if (name != "MQTT" || level < 4 || level > 5) return ReasonCode::UnsupportedProtocolVersion;

  const std::uint8_t flags = reader.byte();
  packet.keep_alive_seconds = reader.fixed16();
  packet.clean_start = (flags & 0x02) != 0;
  packet.has_will = (flags & 0x04) != 0;
  const bool has_username = (flags & 0x80) != 0;
  const bool has_password = (flags & 0x40) != 0;
  const unsigned will_qos = flags >> 3 & 3;
  if (!reader.ok() || (flags & 0x01) != 0 || will_qos > kQosMax) return ReasonCode::MalformedPacket;
  if (!packet.has_will && (flags & 0x38) != 0) return ReasonCode::MalformedPacket;
  const bool v5 = packet.version == ProtocolVersion::V5;
  if (!v5 && has_password && !has_username) return ReasonCode::MalformedPacket;
  if (v5) {
    const ReasonCode properties = read_connect_properties(reader, packet);
    if (properties != ReasonCode::Success) return properties;
  }
  packet.client_id = reader.text();
  if (packet.has_will && reader.ok()) {
    const ReasonCode will = read_will(reader, packet.version, packet.will);
    if (will != ReasonCode::Success) return will;
  }
  if (has_username) packet.username = reader.text();
  if (has_password) packet.password = reader.binary();
  if (!reader.ok() || !reader.empty()) return ReasonCode::MalformedPacket;
  return ReasonCode::Success;
}

ReasonCode read_publish(std::uint8_t flags, std::string_view body, ProtocolVersion version,
                        PublishPacket& packet) {
  packet.qos = flags >> 1 & 3;
  packet.duplicate = (flags & 8) != 0;
  packet.retain = (flags & 1) != 0;
  PacketReader reader(body);
  packet.topic = reader.binary();
  if (packet.qos > 0) {
    packet.packet_id = reader.fixed16();
    if (reader.ok() && packet.packet_id == 0) return ReasonCode::MalformedPacket;
  }
  if (!reader.ok()) return ReasonCode::MalformedPacket;
  if (version == ProtocolVersion::V5) {
    packet.properties = reader.take(reader.variable());
    if (!reader.ok()) return ReasonCode::MalformedPacket;
  }
  packet.payload = reader.rest();
  return ReasonCode::Success;
}

ReasonCode decode_publish(std::uint8_t flags, std::string_view body, ProtocolVersion version,
                          PublishPacket& packet) {
  ReasonCode reason = read_publish(flags, body, version, packet);
  if (reason != ReasonCode::Success) return reason;
  if (!is_packet_text(packet.topic)) return ReasonCode::MalformedPacket;
  reason =
      read_properties(packet.properties, kPublishProperties, [&packet](const PropertyValue& value) {
        if (value.property == Property::TopicAlias) {
          packet.topic_alias = static_cast<std::uint16_t>(value.number);
        }
      });
  if (reason != ReasonCode::Success) return reason;
  if (packet.topic.empty()) {
    return packet.topic_alias != 0 ? ReasonCode::Success : ReasonCode::ProtocolError;
  }
  return is_topic_name(packet.topic) ? ReasonCode::Success : ReasonCode::TopicNameInvalid;
}

ReasonCode decode_ack(std::string_view body, ProtocolVersion version, AckPacket& packet) {
  PacketReader reader(body);
  packet.packet_id = reader.fixed16();
  if (!reader.ok() || packet.packet_id == 0) return ReasonCode::MalformedPacket;
  if (version == ProtocolVersion::V5 && !reader.empty()) {
    packet.reason = reader.byte();
    if (!reader.empty()) {
      const ReasonCode properties = skip_properties(reader, kAckProperties);
      if (properties != ReasonCode::Success) return properties;
    }
  }
  return reader.empty() ? ReasonCode::Success : ReasonCode::MalformedPacket;
}

ReasonCode decode_subscribe(PacketType type, std::string_view body, ProtocolVersion version,
                            SubscribePacket& packet) {
  const bool subscribes = type == PacketType::Subscribe;
  PacketReader reader(body);
  packet.packet_id = reader.fixed16();
  if (!reader.ok() || packet.packet_id == 0) return ReasonCode::MalformedPacket;
  if (version == ProtocolVersion::V5) {
    const ReasonCode properties =
        skip_properties(reader, subscribes ? kSubscribeProperties : kUnsubscribeProperties);
    if (properties != ReasonCode::Success) return properties;
  }
  if (reader.empty()) return ReasonCode::ProtocolError;
  const unsigned reserved = version == ProtocolVersion::V5 ? 0xC0 : 0xFC;
  while (!reader.empty()) {
    const std::string_view filter = reader.text();
    if (subscribes) {
      const unsigned options = reader.byte();
      if ((options & reserved) != 0 || (options & 3) > kQosMax) return ReasonCode::MalformedPacket;
      if (packet.qos.size() < SubscribePacket::kQosKeptMax) {
        packet.qos += static_cast<char>(options & 3);
      }
    }
    if (!reader.ok() || filter.empty()) return ReasonCode::MalformedPacket;
    ++packet.filters;
  }
  return ReasonCode::Success;
}

ReasonCode decode_disconnect(std::string_view body, ProtocolVersion version,
                             DisconnectPacket& packet) {
  if (body.empty()) return ReasonCode::Success;
  if (version != ProtocolVersion::V5) return ReasonCode::MalformedPacket;
  PacketReader reader(body);
  packet.reason = reader.byte();
  if (reader.empty()) return ReasonCode::Success;
  const ReasonCode properties =
      read_properties(reader, kDisconnectProperties, [&packet](const PropertyValue& value) {
        if (value.property != Property::SessionExpiry) return;
        packet.changes_expiry = true;
        packet.session_expiry_seconds = value.number;
      });
  if (properties != ReasonCode::Success) return properties;
  return reader.empty() ? ReasonCode::Success : ReasonCode::MalformedPacket;
}

std::uint8_t connect_return_code(ReasonCode reason) {
  switch (reason) {
    case ReasonCode::UnsupportedProtocolVersion: return 1;
    case ReasonCode::ClientIdentifierNotValid: return 2;
    case ReasonCode::ServerBusy:
    case ReasonCode::ServerShuttingDown:
    case ReasonCode::QuotaExceeded: return 3;
    case ReasonCode::BadUserNameOrPassword: return 4;
    case ReasonCode::ConnectionRateExceeded:
    case ReasonCode::NotAuthorized: return 5;
    default: return 0;
  }
}

void append_connack(ProtocolVersion version, const ConnackPacket& packet, std::string& out) {
  if (version == ProtocolVersion::V311) {
    const std::uint8_t code = connect_return_code(packet.reason);
    if (packet.reason != ReasonCode::Success && code == 0) return;
    append_header(PacketType::Connack, 2, out);
    out += packet.session_present ? '\1' : '\0';
    out += static_cast<char>(code);
    return;
  }
  std::string properties;
  append_text_property(Property::ReasonString, fitting(packet.reason_text, 0), properties);
  append_text_property(Property::AssignedClientIdentifier, packet.assigned_client_id, properties);
  if (packet.tells_session_expiry) {
    append_property(Property::SessionExpiry, properties);
    append_fixed32(packet.session_expiry_seconds, properties);
  }
  if (packet.receive_maximum != 0) {
    append_property(Property::ReceiveMaximum, properties);
    append_fixed16(packet.receive_maximum, properties);
  }
  if (packet.topic_alias_maximum != 0) {
    append_property(Property::TopicAliasMaximum, properties);
    append_fixed16(packet.topic_alias_maximum, properties);
  }
  if (packet.maximum_packet_bytes != 0) {
    append_property(Property::MaximumPacketSize, properties);
    append_fixed32(packet.maximum_packet_bytes, properties);
  }
  const std::size_t length_bytes = properties.size() < 128 ? 1 : 2;
  append_header(PacketType::Connack, 2 + length_bytes + properties.size(), out);
  out += packet.session_present ? '\1' : '\0';
  out += static_cast<char>(packet.reason);
  append_variable(properties.size(), out);
  out += properties;
}

void append_ack(PacketType type, std::uint16_t packet_id, ProtocolVersion version,
                ReasonCode reason, std::string_view reason_text, std::uint32_t packet_max_bytes,
                std::string& out) {
  if (version == ProtocolVersion::V311 || reason == ReasonCode::Success) {
    const char packet[] = {static_cast<char>(static_cast<unsigned>(type) << 4), 2,
                           static_cast<char>(packet_id >> 8), static_cast<char>(packet_id & 0xff)};
    out.append(packet, sizeof packet);
    return;
  }
  std::string properties;
  append_text_property(Property::ReasonString, fitting(reason_text, packet_max_bytes), properties);
  append_header(type, 2 + 1 + (properties.empty() ? 0 : 1 + properties.size()), out);
  append_fixed16(packet_id, out);
  out += static_cast<char>(reason);
  if (properties.empty()) return;
  append_variable(properties.size(), out);
  out += properties;
}

void append_suback(PacketType type, std::uint16_t packet_id, ProtocolVersion version,
                   ReasonCode reason, std::size_t count, std::string& out) {
  const bool v5 = version == ProtocolVersion::V5;
  const std::size_t codes = v5 || type == PacketType::Suback ? count : 0;
  append_header(type, 2 + (v5 ? 1 : 0) + codes, out);
  append_fixed16(packet_id, out);
  if (v5) append_variable(0, out);
  out.append(codes, static_cast<char>(v5 ? reason : ReasonCode::Unspecified));
}

void append_granted(std::uint16_t packet_id, ProtocolVersion version, std::string_view qos,
                    std::string& out) {
  const bool v5 = version == ProtocolVersion::V5;
  append_header(PacketType::Suback, 2 + (v5 ? 1 : 0) + qos.size(), out);
  append_fixed16(packet_id, out);
  if (v5) append_variable(0, out);
  out += qos;
}

void append_pingreq(std::string& out) {
  append_header(PacketType::Pingreq, 0, out);
}

void append_pingresp(std::string& out) {
  append_header(PacketType::Pingresp, 0, out);
}

void append_leave(std::string& out) {
  append_header(PacketType::Disconnect, 0, out);
}

void append_disconnect(ProtocolVersion version, ReasonCode reason, std::string_view reason_text,
                       std::uint32_t packet_max_bytes, std::string& out) {
  if (version == ProtocolVersion::V311) return;
  std::string properties;
  append_text_property(Property::ReasonString, fitting(reason_text, packet_max_bytes), properties);
  append_header(PacketType::Disconnect, properties.empty() ? 1 : 2 + properties.size(), out);
  out += static_cast<char>(reason);
  if (properties.empty()) return;
  append_variable(properties.size(), out);
  out += properties;
}

}  // namespace edgecase::mqtt
