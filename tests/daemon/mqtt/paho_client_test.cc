#include <doctest/doctest.h>

#include "mqtt/ack_gate.h"
#include "mqtt/connection.h"

using namespace edgecase;

TEST_CASE("paho client: a library older than 1.3.10 is refused with words") {
  for (const char* const text : {"1.3.10", "1.3.13", "1.4.0", "1.10", "2.0.0", "2"}) {
    CAPTURE(text);
    CHECK(mqtt::PahoClient::check_version(text).ok());
  }
  for (const char* const text : {"1.3.9", "1.3.0", "1.2.99", "0.9.9", "1.3", "1", "", "new"}) {
    CAPTURE(text);
    const Status status = mqtt::PahoClient::check_version(text);
    CHECK(status.code() == StatusCode::Unsupported);
    CHECK(status.message().find("1.3.10 is needed") != std::string_view::npos);
  }
  CHECK(mqtt::PahoClient::check_version().ok());
}

using namespace edgecase;

TEST_CASE("gate self-test: with this paho the gate holds, in either version") {
  for (const auto version : {mqtt::ProtocolVersion::V311, mqtt::ProtocolVersion::V5}) {
    const Status status = mqtt::test_ack_gate(system_clock(), version);
    CHECK_MESSAGE(status.ok(), status.to_string());
  }
}
