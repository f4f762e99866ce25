#include "wire/authority.h"

#include <doctest/doctest.h>

#include <string>

namespace edgecase::wire {

TEST_CASE("authorities: host and port, with brackets where an address has colons") {
  struct Case {
    const char* text;
    const char* host;
    int port;  // -1: none
    const char* written;
  };
  for (const Case& c :
       {Case{"board.lan", "board.lan", -1, "board.lan"},
        Case{"board.lan:8650", "board.lan", 8650, "board.lan:8650"},
        Case{"192.0.2.7:0", "192.0.2.7", 0, "192.0.2.7:0"},
        Case{"[::2]:65535", "::2", 65535, "[::2]:65535"}, Case{"[::1]", "::1", -1, "[::1]"},
        Case{"[2001:db8::AF]:80", "2001:db8::AF", 80, "[2001:db8::AF]:80"},
        Case{"[fe80::1%25eth0]:1", "fe80::1%eth0", 1, "[fe80::1%eth0]:1"},
        Case{"[fe80::1%eth0]", "fe80::1%eth0", -1, "[fe80::1%eth0]"},
        Case{"localhost:", "localhost", -1, "localhost"}, Case{"a:08650", "a", 8650, "a:8650"}}) {
    CAPTURE(c.text);
    const auto authority = parse_authority(c.text);
    REQUIRE(authority.ok());
    CHECK(authority->host == c.host);
    CHECK((authority->port ? int{*authority->port} : -1) == c.port);
    CHECK(authority->text() == c.written);
  }
  for (const char* text : {"",
                           ":",
                           ":80",
                           "a:65536",
                           "a:-1",
                           "a:80x",
                           "a: 80",
                           "::1",
                           "::1:80",
                           "[::1",
                           "[::1:80",
                           "[zz]:80",
                           "[]",
                           "[127.0.0.1]:80",
                           "http://a:80",
                           "a b:80",
                           "[::1]80",
                           "u@a",
                           "a/",
                           "a?b",
                           "a#b",
                           "a,b",
                           "a\n"}) {
    CAPTURE(text);
    CHECK(parse_authority(text).status().code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("authorities: loopback is what only this machine reaches") {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
                           "localhost", "LocalHost", "localhost."}) {
    CAPTURE(host);
    CHECK(is_loopback(host));
  }
  for (const char* host : {"0.0.0.0", "::", "192.168.0.1", "::ffff:10.0.0.1", "example", "",
                           "127.0.0.1%x", "localhost.example", "notlocalhost", "127.1"}) {
    CAPTURE(host);
    CHECK_FALSE(is_loopback(host));
  }
}

TEST_CASE("authorities: networks hold what begins with their bits") {
  struct Case {
    const char* network;
    const char* address;
    bool holds;
  };
  for (const Case& c :
       {Case{"192.0.2.7", "192.0.2.7", true}, Case{"192.0.2.7", "192.0.2.6", false},
        Case{"192.0.2.7", "::ffff:192.0.2.7", true}, Case{"10.0.0.0/8", "10.255.0.1", true},
        Case{"10.0.0.0/8", "11.0.0.1", false}, Case{"192.0.2.0/25", "192.0.2.127", true},
        Case{"192.0.2.0/25", "192.0.2.128", false}, Case{"0.0.0.0/0", "1.2.3.4", true},
        Case{"0.0.0.0/0", "::1", false}, Case{"2001:db8::/33", "2001:db8:7fff::1", true},
        Case{"2001:db8::/33", "2001:db8:8000::1", false}, Case{"::1", "board", false}}) {
    CAPTURE(c.network);
    CAPTURE(c.address);
    CHECK(parse_network(c.network).value().holds(c.address) == c.holds);
  }
}

TEST_CASE("authorities: one address has one form, whatever it is written in") {
  CHECK(address_bytes("192.0.2.7") == std::string("\xc0\x00\x02\x07", 4));
  CHECK(address_bytes("::ffff:192.0.2.7") == address_bytes("192.0.2.7"));
  CHECK(address_bytes("2001:DB8::1%eth0") == address_bytes("2001:db8:0:0::1"));
  for (const char* text : {"", "board", "192.0.2", "192.0.2.7:80", "[::1]", "1.2.3.4.5"}) {
    CAPTURE(text);
    CHECK(address_bytes(text).empty());
  }
}

}  // namespace edgecase::wire
