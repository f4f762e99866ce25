#include "mqtt/broker_socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "net/socket.h"

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
