#include "mqtt/device_names.h"

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/message_sink.h"

using namespace edgecase;
using test::StoredReading;

namespace {

struct NamesFixture : test::MqttFixture {
  NamesFixture() {
    config::MqttRuleSettings zigbee, ttn;
    zigbee.preset = "zigbee2mqtt";
    ttn.preset = "ttn";
    auto compiled = mqtt::compile_rules({zigbee, ttn});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
  }
  // One run of the daemon.
  void deliver(const std::vector<std::pair<std::string, std::string>>& messages) {
    auto names = mqtt::DeviceNames::open(engine, random);
    REQUIRE(names.ok());
    mqtt::MessageSink sink(mqtt::SinkParts{.rules = rules,
                                           .limits = settings,
                                           .pipeline = *pipeline,
                                           .rejected = *rejected,
                                           .clock = system_clock(),
                                           .names = names->get()});
    for (const auto& [topic, payload] : messages) {
      const mqtt::IncomingMessage message{.topic = topic, .payload = payload, .qos = 1};
      sink.take({&message, 1});
    }
    sink.stop();
  }

  const config::LimitSettings settings;
  SeededRandom random{7};
  std::vector<mqtt::TopicRule> rules;
};

const char* const kUplink = R"({"uplink_message":{"decoded_payload":{"t":1}}})";

}  // namespace

TEST_CASE("device names: two devices never become one, also over restarts") {
  NamesFixture fixture;
  auto names = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(names.ok());
  const auto name_of = [&names](const char* wanted, const char* levels) {
    const auto named = (*names)->name_of("default", wanted, levels);
    (*names)->keep(named);
    return named.name;
  };
  CHECK(name_of("1.OG", "1/OG") == "1.OG");
  CHECK(name_of("1.OG", "1/OG") == "1.OG");
  const std::string other = name_of("1.OG", "1.OG");
  CHECK(other.starts_with("1.OG~"));
  CHECK(name_of("1.OG", "1.OG") == other);
  CHECK((*names)->name_of("plant", "1.OG", "1.OG").name == "1.OG");
  // Nobody has a name that it was not allowed to take.
  CHECK((*names)->name_of("default", "2.OG", "2/OG").is_new);
  CHECK((*names)->name_of("default", "2.OG", "2.OG").is_new);

  fixture.deliver({{"zigbee2mqtt/1.OG", R"({"t":1})"}});
  fixture.deliver({{"zigbee2mqtt/1/OG", R"({"t":2})"},
                   {"zigbee2mqtt/1.OG", R"({"t":3})"},
                   {"zigbee2mqtt/1.OG/state", "ON"}});
  fixture.deliver({{"zigbee2mqtt/1/OG", R"({"t":4})"}});
  CHECK(fixture.readings("default", "1.OG", "t").size() == 2);
  CHECK(fixture.readings("default", "1.OG", "state").size() == 1);
  auto again = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(again.ok());
  const std::string slashed = (*again)->name_of("default", "1.OG", "1/OG").name;
  CHECK(slashed.starts_with("1.OG~"));
  CHECK(fixture.readings("default", slashed, "t").size() == 2);
}

TEST_CASE("device names: The Things Stack's devices are told apart by their application") {
  NamesFixture fixture;
  fixture.deliver({{"v3/farm@ttn/devices/soil-1/up", kUplink}});
  fixture.deliver(
      {{"v3/park@ttn/devices/soil-1/up", kUplink}, {"v3/farm@ttn/devices/soil-1/up", kUplink}});
  CHECK(fixture.readings("default", "soil-1", "t").size() == 2);
  auto names = mqtt::DeviceNames::open(fixture.engine, fixture.random);
  REQUIRE(names.ok());
  const std::string other = (*names)->name_of("default", "soil-1", "park@ttn/soil-1").name;
  CHECK(other.starts_with("soil-1~"));
  CHECK(fixture.readings("default", other, "t").size() == 1);
}
