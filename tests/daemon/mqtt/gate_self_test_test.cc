#include "mqtt/ack_gate.h"

#include <doctest/doctest.h>

using namespace edgecase;

TEST_CASE("gate self-test: with this paho the gate holds, in either version") {
  for (const auto version : {mqtt::ProtocolVersion::V311, mqtt::ProtocolVersion::V5}) {
    const Status status = mqtt::test_ack_gate(system_clock(), version);
    CHECK_MESSAGE(status.ok(), status.to_string());
  }
}
