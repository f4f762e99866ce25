// The authority in a URL, a header or a setting: `host:port`, as RFC 3986 has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "edgecase/status.h"

namespace edgecase::wire {

struct Authority {
  std::string host;  // as it was written, without brackets
  std::optional<std::uint16_t> port;

  // Both again, in brackets where that is needed.
  std::string text() const;
};

// "board.lan", "192.0.2.7:8650", "[::1]:8650"; a colon without a port behind it is none.
// InvalidArgument says what is wrong in words that follow the text: "has no host".
Result<Authority> parse_authority(std::string_view text);

// In network order, 4 or 16 bytes; "": no literal of an address. The zone of an IPv6 address is
// dropped, and an IPv4 address inside one (::ffff:192.0.2.7) is taken out of it.
std::string address_bytes(std::string_view host);
// Whether only this machine can be reached by it: 127.0.0.0/8, ::1, and the name of both.
bool is_loopback(std::string_view host);
// The name of both loopback addresses, however it is written.
bool is_localhost(std::string_view host);
// "192.0.2.7", "2001:db8::/32": one address, or all that begin with so many bits.
struct Network {
  std::string bytes;
  int bits = 0;

  bool holds(std::string_view address) const;
};
// InvalidArgument says what would be right.
Result<Network> parse_network(std::string_view text);

// What counts as one address: whoever has one of IPv6 has the 2^64 of its network.
std::string network_of(const std::string& address);

// InvalidArgument unless it is the name or address of a host, without a port.
Status check_host(std::string_view text);

// Names of hosts know no case, and their last dot says nothing.
bool is_same_host(std::string_view one, std::string_view other);

}  // namespace edgecase::wire
