#include <doctest/doctest.h>

#include "mqtt/broker_socket.h"

using namespace edgecase;

TEST_CASE("broker address: host and port") {
  struct Case {
    const char* url;
    const char* host;
    int port;
    const char* text;
  };
  for (const Case& c : {Case{"mqtt://10.0.0.7:1883", "10.0.0.7", 1883, "10.0.0.7:1883"},
                        Case{"mqtt://broker.lan", "broker.lan", 1883, "broker.lan:1883"},
                        Case{"mqtt://broker.lan/", "broker.lan", 1883, "broker.lan:1883"},
                        Case{"mqtt://[fd00::7]:2000", "fd00::7", 2000, "[fd00::7]:2000"},
                        Case{"mqtt://[fe80::1]", "fe80::1", 1883, "[fe80::1]:1883"}}) {
    CAPTURE(c.url);
    const auto address = mqtt::parse_broker_address(c.url);
    REQUIRE(address.ok());
    CHECK(address->host == c.host);
    CHECK(address->port == c.port);
    CHECK(address->text() == c.text);
  }
}

TEST_CASE("broker address: refuses the rest and says why") {
  struct Case {
    const char* url;
    const char* part;
  };
  for (const Case& c :
       {Case{"ssl://broker", "begin with mqtt://"}, Case{"broker:1883", "begin with mqtt://"},
        Case{"tcp://broker", "begin with mqtt://"}, Case{"mqtt://", "no host"},
        Case{"mqtt://:1883", "no host"}, Case{"mqtt://b:0", "1 to 65535"},
        Case{"mqtt://b:65536", "1 to 65535"}, Case{"mqtt://b:", "1 to 65535"},
        Case{"mqtt://b:x", "1 to 65535"}, Case{"mqtt://::1", "brackets"},
        Case{"mqtt://[::1", "without `]`"}, Case{"mqtt://[::1]1883", "`:PORT`"},
        Case{"mqtt://[host]", "IPv6"}, Case{"mqtt://me:secret@b", "mqtt.username"},
        Case{"mqtt://b/path", "only"}, Case{"mqtt://b%20c", "only"}}) {
    CAPTURE(c.url);
    const auto address = mqtt::parse_broker_address(c.url);
    REQUIRE(!address.ok());
    CHECK(address.status().message().find(c.part) != std::string::npos);
    CHECK(address.status().message().find("mqtt.broker") == 0);
  }
}
