#include "mqtt/broker.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "mqtt/packet_codec.h"
#include "net/channel.h"

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

namespace {

// The client is given the numeric address, so that its socket has the same family. Ports and
// addresses are compared as bytes in network order.
bool same_peer(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    sockaddr_in x{}, y{};
    std::memcpy(&x, &a, sizeof x);
    std::memcpy(&y, &b, sizeof y);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a.ss_family == AF_INET6) {
    sockaddr_in6 x{}, y{};
    std::memcpy(&x, &a, sizeof x);
    std::memcpy(&y, &b, sizeof y);
    return x.sin6_port == y.sin6_port &&
           std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
  }
  return false;
}

bool is_connected_to(int file_descriptor, const ResolvedAddress& address) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(file_descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  return same_peer(peer, address.bytes);
}

// Calls `act` with each descriptor of a connection to `address`; counts those for which it is true.
template <typename Act>
int for_each_connection_to(const ResolvedAddress& address, Act act) {
  int count = 0;
  const auto visit = [&](int file_descriptor) {
    if (is_connected_to(file_descriptor, address) && act(file_descriptor)) ++count;
  };
  if (DIR* directory = ::opendir("/proc/self/fd"); directory != nullptr) {
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      int file_descriptor = -1;
      const auto [end, error] =
          std::from_chars(name.data(), name.data() + name.size(), file_descriptor);
      if (error == std::errc() && end == name.data() + name.size()) visit(file_descriptor);
    }
    ::closedir(directory);
    return count;
  }
  // No /proc: ask every number a descriptor can have here.
  constexpr int kDescriptorsTried = 65'536;
  for (int i = 0; i < kDescriptorsTried; ++i) visit(i);
  return count;
}

std::string text_of(const sockaddr_storage& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  BrokerAddress address;
  if (bytes.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &bytes, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    address.port = ntohs(v4.sin_port);
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &bytes, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    address.port = ntohs(v6.sin6_port);
  }
  address.host = text;
  return address.text();
}

}  // namespace

Result<std::vector<ResolvedAddress>> resolve_broker(const BrokerAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) {
    return unavailable("cannot find broker " + address.host + ": " + ::gai_strerror(error));
  }
  std::vector<ResolvedAddress> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    ResolvedAddress resolved;
    std::memcpy(&resolved.bytes, each->ai_addr, each->ai_addrlen);
    resolved.size = each->ai_addrlen;
    resolved.text = text_of(resolved.bytes);
    found.push_back(std::move(resolved));
  }
  ::freeaddrinfo(list);
  if (found.empty()) return unavailable("broker " + address.host + " has no IP address");
  return found;
}

bool is_loopback(const ResolvedAddress& address) {
  if (address.bytes.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.bytes, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
  }
  sockaddr_in v4{};
  std::memcpy(&v4, &address.bytes, sizeof v4);
  constexpr std::uint32_t kLoopbackNetwork = 127;
  return address.bytes.ss_family == AF_INET && ntohl(v4.sin_addr.s_addr) >> 24 == kLoopbackNetwork;
}

bool is_reachable(const ResolvedAddress& address, int timeout_ms) {
  const net::Socket socket(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  const auto* const to = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (::connect(socket.descriptor(), to, address.size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{socket.descriptor(), POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  return ::poll(&ready, 1, timeout_ms) == 1 &&
         ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool is_end_of_own_connection(int file_descriptor) {
  ResolvedAddress here;
  sockaddr_storage there{};
  here.size = sizeof here.bytes;
  socklen_t size = sizeof there;
  auto* const own = reinterpret_cast<sockaddr*>(&here.bytes);
  if (::getsockname(file_descriptor, own, &here.size) != 0) return false;
  if (::getpeername(file_descriptor, reinterpret_cast<sockaddr*>(&there), &size) != 0) return false;
  return for_each_connection_to(here, [&](int other) {
           sockaddr_storage name{};
           socklen_t name_size = sizeof name;
           return ::getsockname(other, reinterpret_cast<sockaddr*>(&name), &name_size) == 0 &&
                  same_peer(name, there);
         }) > 0;
}

}  // namespace edgecase::mqtt
