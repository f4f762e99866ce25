// Reads what a broker says beside its acknowledgements: CONNACK, DISCONNECT, and through which
// subscriptions a message comes. Reads as much as can be; texts are cut to kBrokerTextMaxBytes.
// Pure functions; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mqtt/packet_codec.h"

namespace edgecase::mqtt {

// Through which subscriptions a broker sends a message, as far as these have an identifier; no more
// than kMax are told.
struct SubscriptionIds {
  static constexpr std::size_t kMax = 4;
  std::array<std::uint32_t, kMax> ids{};
  std::uint8_t count = 0;

  bool has(std::uint32_t id) const {
    return std::find(ids.begin(), ids.begin() + count, id) != ids.begin() + count;
  }
  void add(std::uint32_t id) {
    if (count < kMax && !has(id)) ids[count++] = id;
  }
};
inline constexpr std::uint32_t kSubscriptionIdMax = 268'435'455;
// The subscription identifiers in PublishPacket::properties.
SubscriptionIds read_subscription_ids(std::string_view properties);

inline constexpr std::size_t kBrokerTextMaxBytes = 256;

// What holds on a connection (MQTT 5, 3.2.2.3); of what is not said, what its absence means.
struct BrokerTerms {
  bool is_session_shorter = false;  // than was asked: it lives so long without a connection
  std::uint32_t session_expiry_seconds = 0;
  bool has_keep_alive = false;  // instead of ours
  std::uint16_t keep_alive_seconds = 0;
  std::uint16_t receive_maximum = 65'535;  // of messages that we would publish
  std::uint8_t maximum_qos = 2;
  bool retain = true;
  bool wildcards = true;
  bool subscription_ids = true;
  bool shared_subscriptions = true;
  std::uint32_t maximum_packet_bytes = 0;  // 0: any
  std::string assigned_client_id;
};
struct BrokerAnswer {
  bool is_whole = false;         // of CONNACK: its first two bytes are there
  bool session_present = false;  // of CONNACK
  std::uint8_t reason = 0;
  std::string reason_text;
  std::string server_reference;  // another broker to use
  BrokerTerms terms;             // of CONNACK
};
BrokerAnswer read_connack(std::string_view body, ProtocolVersion version);
BrokerAnswer read_broker_disconnect(std::string_view body);
// The reason codes of MQTT 5, as the standard names them, in lower case; "" for what it does not
// name.
std::string_view reason_name(std::uint8_t reason);

}  // namespace edgecase::mqtt
