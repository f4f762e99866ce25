// A connection to this machine itself, whichever loopback address it has. Fuzzers have it too, so
// what goes wrong is thrown: a test case ends with it.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "net/channel.h"

namespace edgecase::test {

// None: nobody listens there.
inline net::Socket try_loopback(std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(net::loopback_host().c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    throw std::runtime_error("the loopback address is none");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, &freeaddrinfo);
  net::Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.descriptor(), address->ai_addr, address->ai_addrlen) != 0) return {};
  return socket;
}
inline net::Socket connect_to_loopback(std::uint16_t port) {
  net::Socket socket = try_loopback(port);
  if (!socket) throw std::runtime_error("nobody listens on port " + std::to_string(port));
  return socket;
}

// As it stands in a URL, with `port` behind it.
inline std::string loopback_authority(std::uint16_t port) {
  const std::string host = net::loopback_host();
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
         std::to_string(port);
}

}  // namespace edgecase::test
