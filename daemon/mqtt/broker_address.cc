#include "mqtt/broker_address.h"

#include <charconv>

namespace edgecase::mqtt {
namespace {

Status bad_address(std::string_view url, std::string_view what) {
  return invalid_argument("mqtt.broker: \"" + std::string(url) + "\": " + std::string(what));
}

}  // namespace

std::string BrokerAddress::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<BrokerAddress> parse_broker_address(std::string_view url) {
  BrokerAddress address;
  address.secure = url.starts_with("mqtts://");
  if (!address.secure && !url.starts_with("mqtt://")) {
    return bad_address(url, "must begin with mqtt:// or mqtts://, as in mqtt://127.0.0.1:1883");
  }
  if (address.secure) address.port = kMqttsPort;
  std::string_view rest = url.substr(url.find("//") + 2);
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  if (rest.find('@') != rest.npos) {
    return bad_address(url, "takes no user; set mqtt.username and mqtt.password-file");
  }
  if (rest.find_first_of("/?#% \t") != rest.npos)
    return bad_address(url, "only mqtt://HOST or mqtt://HOST:PORT");
  std::string_view port;
  bool has_port = false;
  if (!rest.empty() && rest[0] == '[') {
    const std::size_t close = rest.find(']');
    if (close == rest.npos) return bad_address(url, "`[` without `]`");
    address.host = rest.substr(1, close - 1);
    if (address.host.find(':') == std::string::npos)
      return bad_address(url, "brackets are for IPv6");
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest[0] != ':') return bad_address(url, "after `]` comes `:PORT`");
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else {
    const std::size_t colon = rest.find(':');
    if (colon != rest.npos && rest.find(':', colon + 1) != rest.npos) {
      return bad_address(url, "an IPv6 address goes into brackets, as in mqtt://[::1]:1883");
    }
    address.host = rest.substr(0, colon);
    has_port = colon != rest.npos;
    if (has_port) port = rest.substr(colon + 1);
  }
  if (address.host.empty()) return bad_address(url, "has no host");
  if (has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size() || address.port == 0) {
      return bad_address(url, "the port is a number from 1 to 65535");
    }
  }
  return address;
}

}  // namespace edgecase::mqtt
