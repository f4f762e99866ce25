// The address of a broker: "mqtt://host", "mqtt://host:1883", "mqtt://[::1]:1883"; mqtts:// for
// TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace edgecase::mqtt {

inline constexpr std::uint16_t kMqttPort = 1883;
inline constexpr std::uint16_t kMqttsPort = 8883;

struct BrokerAddress {
  std::string host;  // a name or an address, IPv6 without brackets
  std::uint16_t port = kMqttPort;
  bool secure = false;

  std::string text() const;  // "host:port", "[::1]:port"
  std::string url() const { return (secure ? "mqtts://" : "mqtt://") + text(); }
};

// InvalidArgument says what is wrong and what would be right. Percent-encoding and user names in
// the URL are not taken.
Result<BrokerAddress> parse_broker_address(std::string_view url);

}  // namespace edgecase::mqtt
