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

// InvalidArgument unless it is the name or address of a host, without a port.
Status check_host(std::string_view text);

// Names of hosts know no case, and their last dot says nothing.
bool is_same_host(std::string_view one, std::string_view other);

// Text as a part of a URL's path or query (RFC 3986, section 2.1).

// Each byte that is not unreserved there as `%` and two digits.
inline std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

// The text that was encoded; a `%` without two digits behind it stays.
inline std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (is_code) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace edgecase::wire
