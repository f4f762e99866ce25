// Messages that no rule took: what is kept of them, and how many.
#include "mqtt/rejected_messages.h"

#include <string>

#include <doctest/doctest.h>

#include "daemon/mqtt/mqtt_fixture.h"

using namespace edgecase;

namespace {

Status keep(mqtt::RejectedMessages& messages, std::string_view topic) {
  const mqtt::RejectedMessage message{topic, "no", "x"};
  return messages.keep({&message, 1});
}

}  // namespace

TEST_CASE("rejected messages: say topic, reason and payload, whatever it is") {
  CHECK(mqtt::rejected_message_json("a/\"b", "no", "{x") ==
        R"({"topic":"a/\"b","reason":"no","payload":"{x"})");
  CHECK(mqtt::rejected_message_json("a", "no", std::string("\xff\x00", 2)) ==
        R"({"topic":"a","reason":"no","payload_base64":"/wA="})");
  const std::string large(mqtt::kRejectedPayloadMaxBytes + 1, 'x');
  const std::string json = mqtt::rejected_message_json("a", "no", large);
  CHECK(json.find("\"payload_bytes\":4097}") != std::string::npos);
  CHECK(json.size() < large.size() + 100);
  // Cut between characters, not inside one.
  std::string umlauts = "x";
  while (umlauts.size() <= mqtt::kRejectedPayloadMaxBytes) umlauts += "\xc3\xa4";
  CHECK(mqtt::rejected_message_json("a", "no", umlauts).find("base64") == std::string::npos);
}

TEST_CASE("rejected messages: the oldest goes, also after a restart") {
  test::MqttFixture fixture;
  const auto open = [&fixture](std::uint64_t limit) {
    auto opened =
        mqtt::RejectedMessages::open(fixture.engine, *fixture.catalog, *fixture.pipeline, limit);
    REQUIRE(opened.ok());
    return std::move(opened).value();
  };
  const auto kept = [&fixture] { return fixture.readings("_rejected", "mqtt", "message"); };
  auto messages = open(3);
  for (const char* topic : {"a", "b", "c", "d", "e"}) {
    REQUIRE(keep(*messages, topic).ok());
  }
  REQUIRE(kept().size() == 3);
  CHECK(kept()[0].text.find("\"c\"") != std::string::npos);
  messages = open(3);
  REQUIRE(keep(*messages, "f").ok());
  REQUIRE(kept().size() == 3);
  CHECK(kept()[0].text.find("\"d\"") != std::string::npos);
  CHECK(kept()[2].text.find("\"f\"") != std::string::npos);
  messages = open(1);  // a smaller limit shrinks what is there
  REQUIRE(keep(*messages, "g").ok());
  REQUIRE(kept().size() == 1);
  messages = open(0);
  REQUIRE(keep(*messages, "h").ok());
  CHECK(kept().size() == 1);
}
