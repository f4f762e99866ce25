#include "mqtt/broker_answers.h"

#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {
namespace {

std::string cut_text(std::string_view text) {
  return std::string(text.substr(0, kBrokerTextMaxBytes));
}

// Reads the properties of CONNACK and DISCONNECT. What cannot be read ends it.
void read_broker_properties(PacketReader& packet, BrokerAnswer& answer) {
  PacketReader reader(packet.take(packet.variable()));
  BrokerTerms& terms = answer.terms;
  while (packet.ok() && reader.ok() && !reader.empty()) {
    switch (static_cast<Property>(reader.byte())) {
      case Property::SessionExpiry:
        terms.is_session_shorter = true;
        terms.session_expiry_seconds = reader.fixed32();
        break;
      case Property::ServerKeepAlive:
        terms.has_keep_alive = true;
        terms.keep_alive_seconds = reader.fixed16();
        break;
      case Property::ReceiveMaximum: terms.receive_maximum = reader.fixed16(); break;
      case Property::TopicAliasMaximum: reader.fixed16(); break;
      case Property::MaximumQos: terms.maximum_qos = reader.byte(); break;
      case Property::RetainAvailable: terms.retain = reader.byte() != 0; break;
      case Property::WildcardAvailable: terms.wildcards = reader.byte() != 0; break;
      case Property::SubscriptionIdsAvailable: terms.subscription_ids = reader.byte() != 0; break;
      case Property::SharedAvailable: terms.shared_subscriptions = reader.byte() != 0; break;
      case Property::MaximumPacketSize: terms.maximum_packet_bytes = reader.fixed32(); break;
      case Property::AssignedClientIdentifier:
        terms.assigned_client_id = cut_text(reader.text());
        break;
      case Property::ReasonString: answer.reason_text = cut_text(reader.text()); break;
      case Property::ServerReference: answer.server_reference = cut_text(reader.text()); break;
      case Property::UserProperty: reader.text(); [[fallthrough]];
      case Property::ResponseInformation:
      case Property::AuthenticationMethod: reader.text(); break;
      case Property::AuthenticationData: reader.binary(); break;
      default: return;
    }
  }
}

// By code; what is not here has no name.
struct ReasonName {
  std::uint8_t code;
  std::string_view name;
};
constexpr ReasonName kReasonNames[] = {
    {0x04, "disconnect with will message"},
    {0x80, "unspecified error"},
    {0x81, "malformed packet"},
    {0x82, "protocol error"},
    {0x83, "implementation specific error"},
    {0x84, "unsupported protocol version"},
    {0x85, "client identifier not valid"},
    {0x86, "bad user name or password"},
    {0x87, "not authorized"},
    {0x88, "server unavailable"},
    {0x89, "server busy"},
    {0x8A, "banned"},
    {0x8B, "server shutting down"},
    {0x8C, "bad authentication method"},
    {0x8D, "keep alive timeout"},
    {0x8E, "session taken over"},
    {0x8F, "topic filter invalid"},
    {0x90, "topic name invalid"},
    {0x91, "packet identifier in use"},
    {0x92, "packet identifier not found"},
    {0x93, "receive maximum exceeded"},
    {0x94, "topic alias invalid"},
    {0x95, "packet too large"},
    {0x96, "message rate too high"},
    {0x97, "quota exceeded"},
    {0x98, "administrative action"},
    {0x99, "payload format invalid"},
    {0x9A, "retain not supported"},
    {0x9B, "QoS not supported"},
    {0x9C, "use another server"},
    {0x9D, "server moved"},
    {0x9E, "shared subscriptions not supported"},
    {0x9F, "connection rate exceeded"},
    {0xA0, "maximum connect time"},
    {0xA1, "subscription identifiers not supported"},
    {0xA2, "wildcard subscriptions not supported"},
};

}  // namespace

SubscriptionIds read_subscription_ids(std::string_view properties) {
  SubscriptionIds found;
  PacketReader reader(properties);
  while (reader.ok() && !reader.empty()) {
    switch (static_cast<Property>(reader.byte())) {
      case Property::PayloadFormat: reader.byte(); break;
      case Property::MessageExpiry: reader.fixed32(); break;
      case Property::UserProperty: reader.text(); [[fallthrough]];
      case Property::ContentType:
      case Property::ResponseTopic: reader.text(); break;
      case Property::CorrelationData: reader.binary(); break;
      case Property::TopicAlias: reader.fixed16(); break;
      case Property::SubscriptionIdentifier: found.add(reader.variable()); break;
      default: return found;
    }
  }
  return found;
}

BrokerAnswer read_connack(std::string_view body, ProtocolVersion version) {
  BrokerAnswer answer;
  PacketReader reader(body);
  answer.session_present = (reader.byte() & 1) != 0;
  answer.reason = reader.byte();
  answer.is_whole = reader.ok();
  if (answer.is_whole && version == ProtocolVersion::V5 && !reader.empty()) {
    read_broker_properties(reader, answer);
  }
  return answer;
}

BrokerAnswer read_broker_disconnect(std::string_view body) {
  BrokerAnswer answer;
  PacketReader reader(body);
  if (reader.empty()) return answer;
  answer.reason = reader.byte();
  if (!reader.empty()) read_broker_properties(reader, answer);
  return answer;
}

std::string_view reason_name(std::uint8_t reason) {
  for (const ReasonName& each : kReasonNames) {
    if (each.code == reason) return each.name;
  }
  return {};
}

}  // namespace edgecase::mqtt
