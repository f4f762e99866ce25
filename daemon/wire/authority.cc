#include "wire/authority.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace edgecase::wire {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_host_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte != 0x7f &&
         std::string_view("/?#@[]\\:\"'<>^`{|},;").find(c) == std::string_view::npos;
}

Result<std::optional<std::uint16_t>> parse_port(std::string_view text) {
  if (text.empty()) return std::optional<std::uint16_t>();
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size()) {
    return std::optional<std::uint16_t>(port);
  }
  return invalid_argument("has no port of 0 to 65535 behind its colon");
}

}  // namespace

std::string Authority::text() const {
  const bool is_six = host.find(':') != std::string::npos;
  return (is_six ? "[" + host + "]" : host) + (port ? ":" + std::to_string(*port) : std::string());
}

Result<Authority> parse_authority(std::string_view text) {
  Authority authority;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return invalid_argument("has a bracket that does not end");
    authority.host = text.substr(1, end - 1);
    // The zone of an address is written %25eth0 in a URL, and %eth0 by people.
    if (const std::size_t zone = authority.host.find("%25"); zone != std::string::npos) {
      authority.host.erase(zone + 1, 2);
    }
    if (authority.host.find(':') == std::string::npos || address_bytes(authority.host).empty()) {
      return invalid_argument("has no IPv6 address in its brackets");
    }
    rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') {
      return invalid_argument("has something else than a port behind its brackets");
    }
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    if (text.rfind(':') != colon && text.rfind(':') != std::string_view::npos) {
      return invalid_argument("has an IPv6 address without brackets, write [::1]:8650");
    }
    authority.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (authority.host.empty()) return invalid_argument("has no host");
    if (!std::all_of(authority.host.begin(), authority.host.end(), is_host_character)) {
      return invalid_argument("has a host with a character that no host's name has");
    }
  }
  if (!rest.empty()) rest.remove_prefix(1);
  EC_ASSIGN_OR_RETURN(authority.port, parse_port(rest));
  return authority;
}

std::string address_bytes(std::string_view host) {
  const bool has_zone = host.find(':') != std::string_view::npos;
  const std::string text(has_zone ? host.substr(0, host.find('%')) : host);
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) {
    return {reinterpret_cast<const char*>(&four), sizeof four};
  }
  in6_addr six{};
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return {};
  const std::string bytes(reinterpret_cast<const char*>(&six), sizeof six);
  return IN6_IS_ADDR_V4MAPPED(&six) ? bytes.substr(12) : bytes;
}

bool is_loopback(std::string_view host) {
  const std::string bytes = address_bytes(host);
  if (bytes.size() == 4) return bytes[0] == 127;
  if (!bytes.empty()) return bytes == std::string(15, '\0') + '\1';
  return is_localhost(host);
}

bool Network::holds(std::string_view address) const {
  const std::string other = address_bytes(address);
  if (other.size() != bytes.size() || bytes.empty()) return false;
  for (int bit = 0; bit < bits; ++bit) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const int differing =
        static_cast<unsigned char>(bytes[at]) ^ static_cast<unsigned char>(other[at]);
    if ((differing >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

Result<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  Network network{address_bytes(text.substr(0, slash)), 0};
  const int most = static_cast<int>(network.bytes.size()) * 8;
  bool is_whole = most > 0;
  network.bits = most;
  if (is_whole && slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, network.bits);
    is_whole = error == std::errc() && end == last && network.bits >= 0 && network.bits <= most;
  }
  if (is_whole) return network;
  return invalid_argument("\"" + std::string(text) +
                          "\" is not an address, use 192.0.2.7, ::1 or 10.0.0.0/8");
}

std::string network_of(const std::string& address) {
  in6_addr six{};
  const std::string plain = address.substr(0, address.find('%'));
  if (inet_pton(AF_INET6, plain.c_str(), &six) != 1 || IN6_IS_ADDR_V4MAPPED(&six)) return address;
  std::fill(six.s6_addr + 8, six.s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET6, &six, text, sizeof text) == nullptr ? address : text;
}

Status check_host(std::string_view text) {
  if (!address_bytes(text).empty()) return ok();
  const auto authority = parse_authority(text);
  if (authority.ok() && !authority->port && !text.ends_with(':')) return ok();
  return invalid_argument("\"" + std::string(text) +
                          "\" is not the name of a host, use board.lan, without a port");
}

bool is_localhost(std::string_view host) {
  return is_same_host(host, "localhost");
}

bool is_same_host(std::string_view one, std::string_view other) {
  if (one.ends_with('.')) one.remove_suffix(1);
  if (other.ends_with('.')) other.remove_suffix(1);
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace edgecase::wire
