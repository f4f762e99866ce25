#include "mqtt/mqtt_source.h"

#include <fstream>
#include <set>
#include <thread>

#include "daemon/mqtt/listener/listener_fixture.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/broker.h"
#include "mqtt/connection.h"
#include "support/mosquitto_broker.h"

using namespace edgecase;
using test::eventually;
using test::MosquittoBroker;
using test::mqtt_rule;
using test::MqttFixture;
using test::numbers;

#define SKIP_WITHOUT_MOSQUITTO()                    \
  if (!MosquittoBroker::is_installed()) {           \
    MESSAGE("skipped: mosquitto is not installed"); \
    return;                                         \
  }

namespace {

config::MqttSettings settings_for(const MosquittoBroker& broker) {
  config::MqttSettings settings;
  settings.broker = broker.url();
  settings.client_id = "edgecase-test";
  settings.rules = {mqtt_rule("s/{device}/{sensor}")};
  return settings;
}

std::unique_ptr<mqtt::MqttSource> source_of(MqttFixture& fixture,
                                            const config::MqttSettings& settings) {
  auto source = mqtt::MqttSource::create(settings, {}, fixture.parts());
  REQUIRE(source.ok());
  (*source)->start();
  return std::move(source).value();
}

std::unique_ptr<mqtt::MqttSource> connected_source(MqttFixture& fixture,
                                                   const config::MqttSettings& settings) {
  auto source = source_of(fixture, settings);
  REQUIRE(eventually([&source] { return source->status().connected; }));
  return source;
}

std::set<int> stored_numbers(MqttFixture& fixture) {
  std::set<int> all;
  for (const auto& reading : fixture.readings("default", "k", "t")) {
    all.insert(static_cast<int>(std::stod(reading.text)));
  }
  return all;
}

}  // namespace

TEST_CASE("mqtt source: messages become readings") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  REQUIRE(broker.publish("s/k/t", numbers(0, 500)));
  REQUIRE(broker.publish("s/k/t", numbers(500, 1'000), 0));
  REQUIRE(broker.publish_one("s/k/frame", std::string("\xff\x00\x01", 3), false));
  CHECK(eventually([&source] { return source->status().counters.readings == 1'001; }));
  CHECK(stored_numbers(fixture).size() == 1'000);
  CHECK(fixture.readings("default", "k", "frame").size() == 1);
  const auto status = source->status();
  CHECK(status.broker == broker.url());
  CHECK(status.counters.messages == 1'001);
  CHECK(status.last_message_ns > 0);
  CHECK(mqtt::status_json(status).find("\"connected\":true") != std::string::npos);
}

TEST_CASE("mqtt source: connected means that the broker has taken the subscriptions") {
  SKIP_WITHOUT_MOSQUITTO();
  constexpr int kRules = 60;
  MosquittoBroker broker("log_type all");
  REQUIRE(broker.start());
  auto settings = settings_for(broker);
  settings.rules.clear();
  for (int i = 0; i < kRules; ++i) {
    settings.rules.push_back(mqtt_rule(("s" + std::to_string(i) + "/{device}/{sensor}").c_str()));
  }
  MqttFixture fixture;
  const auto source = connected_source(fixture, settings);
  const std::string log = broker.log();
  const std::string_view answer = "Sending SUBACK to edgecase-test";
  int answers = 0;
  for (std::size_t at = log.find(answer); at != std::string::npos; at = log.find(answer, at + 1)) {
    ++answers;
  }
  CHECK(answers == kRules);
}

TEST_CASE("mqtt source: what arrives while the daemon is down waits at the broker") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  source->stop();
  source.reset();
  REQUIRE(broker.publish("s/k/t", numbers(0, 200)));
  source = connected_source(fixture, settings_for(broker));
  CHECK(eventually([&fixture] { return stored_numbers(fixture).size() == 200; }));
}

TEST_CASE("mqtt source: reconnects after the broker was killed, nothing it kept is lost") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker("autosave_on_changes true\nautosave_interval 1");
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  int sent = 0;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(broker.publish("s/k/t", numbers(sent, sent + 50)));
    sent += 50;
    // A clean end lets mosquitto save; after SIGKILL it is only asked to be there again.
    if (round == 1) {
      REQUIRE(eventually([&] { return stored_numbers(fixture).size() == std::size_t(sent); }));
      broker.kill();
    } else {
      broker.stop();
    }
    REQUIRE(eventually([&source] { return !source->status().connected; }));
    REQUIRE(broker.start());
    REQUIRE(eventually([&source] { return source->status().connected; }));
  }
  REQUIRE(broker.publish("s/k/t", numbers(sent, sent + 50)));
  CHECK(eventually([&] { return stored_numbers(fixture).size() == std::size_t(sent) + 50; }));
  CHECK(source->status().connects >= 4);
}

TEST_CASE("mqtt source: a broker that is not there yet is waited for") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  broker.stop();
  MqttFixture fixture;
  auto source = source_of(fixture, settings_for(broker));
  REQUIRE(eventually([&source] { return !source->status().last_error.empty(); }));
  CHECK(!source->status().connected);
  REQUIRE(broker.start());
  CHECK(eventually([&source] { return source->status().connected; }));
}

TEST_CASE("mqtt source: what cannot be stored is not acknowledged, and the connection lives on") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  REQUIRE(broker.publish("s/k/t", numbers(0, 10)));
  REQUIRE(eventually([&fixture] { return stored_numbers(fixture).size() == 10; }));
  fixture.engine.fail_writes(out_of_space("drive is full"));
  REQUIRE(broker.publish("s/k/t", numbers(10, 100)));
  REQUIRE(eventually([&source] { return source->status().unacknowledged == 90; }));
  CHECK(source->status().counters.waiting_for == "out of space: drive is full");
  CHECK(source->status().lag_ns > 0);
  CHECK(stored_numbers(fixture).size() == 10);
  fixture.engine.fail_writes(ok());
  CHECK(eventually([&source] { return source->status().unacknowledged == 0; }));
  CHECK(stored_numbers(fixture).size() == 100);
  CHECK(source->status().counters.redelivered == 0);
  CHECK(source->status().connects == 1);
}

TEST_CASE("mqtt source: what was not acknowledged comes again after a loss, and is stored once") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  REQUIRE(broker.publish("s/k/t", numbers(0, 100)));
  REQUIRE(eventually([&fixture] { return stored_numbers(fixture).size() == 100; }));
  fixture.engine.fail_writes(out_of_space("drive is full"));
  REQUIRE(broker.publish("s/k/t", numbers(100, 150)));
  REQUIRE(eventually([&source] { return source->status().unacknowledged == 50; }));
  broker.stop();
  REQUIRE(eventually([&source] { return source->status().counters.withheld == 50; }));
  REQUIRE(broker.start());
  REQUIRE(eventually([&source] { return source->status().unacknowledged == 50; }));
  fixture.engine.fail_writes(ok());
  CHECK(eventually([&source] { return source->status().unacknowledged == 0; }));
  CHECK(fixture.readings("default", "k", "t").size() == 150);
  CHECK(source->status().counters.redelivered == 50);
}

TEST_CASE("mqtt source: stopping while the drive refuses leaves the messages with the broker") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  fixture.engine.fail_writes(io_error("pulled out"));
  REQUIRE(broker.publish("s/k/t", numbers(0, 100)));
  REQUIRE(eventually([&source] { return source->status().lag_ns > 0; }));
  source->stop();
  CHECK(stored_numbers(fixture).empty());
  fixture.engine.fail_writes(ok());
  source = connected_source(fixture, settings_for(broker));
  CHECK(eventually([&fixture] { return stored_numbers(fixture).size() == 100; }));
}

TEST_CASE("mqtt source: stopping acknowledges what is stored, and nothing of it comes again") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  for (int round = 0; round < 5; ++round) {
    // Stopped while messages come: what is still on its way then comes again, and only that.
    const std::size_t published = (std::size_t(round) + 1) * 2'000;
    REQUIRE(broker.publish("s/k/t", numbers(round * 2'000, (round + 1) * 2'000)));
    source->stop();
    const std::size_t stored = stored_numbers(fixture).size();
    source = connected_source(fixture, settings_for(broker));
    REQUIRE(eventually([&] { return stored_numbers(fixture).size() == published; }));
    CHECK(source->status().counters.redelivered <= published - stored);
  }
  // One that was stored before would have been stored again, under another time.
  CHECK(fixture.readings("default", "k", "t").size() == 10'000);
}

TEST_CASE("mqtt source: what becomes durable while it stops is acknowledged") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  // The second time the broker has more than it may have on its way: each acknowledgement that it
  // reads lets it send, while this end already goes.
  for (const std::size_t published : {std::size_t{100}, std::size_t{3'000}}) {
    CAPTURE(published);
    MqttFixture fixture;
    auto source = connected_source(fixture, settings_for(broker));
    const std::size_t taken = std::min<std::size_t>(published, mqtt::PahoClient::kReceiveMaximum);
    fixture.engine.hold_writes();
    REQUIRE(broker.publish("s/k/t", numbers(0, static_cast<int>(published))));
    REQUIRE(eventually([&] { return source->status().unacknowledged == taken; }));
    std::thread stopping([&source] { source->stop(); });
    const bool begun = eventually([&source] { return !source->status().connected; });
    // One that reads the acknowledgements late.
    broker.pause();
    fixture.engine.release_writes();
    const bool released = eventually([&] { return source->status().released == taken; });
    broker.go_on();
    stopping.join();
    REQUIRE(begun);
    REQUIRE(released);
    REQUIRE(stored_numbers(fixture).size() == taken);
    source = connected_source(fixture, settings_for(broker));
    REQUIRE(broker.publish_one("s/k/t", std::to_string(published), false));
    REQUIRE(eventually([&] { return stored_numbers(fixture).size() == published + 1; }));
    // One that came again would have been stored again, under another time.
    CHECK(fixture.readings("default", "k", "t").size() == published + 1);
    CHECK(source->status().counters.redelivered <= published - taken);
  }
}

TEST_CASE("mqtt source: an acknowledgement that is held for too long costs the connection") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  fixture.ack_patience_ns = 100'000'000;
  auto source = connected_source(fixture, settings_for(broker));
  // A drive that neither takes nor refuses.
  fixture.engine.hold_writes();
  REQUIRE(broker.publish_one("s/k/t", "1", false));
  CHECK(eventually([&source] { return source->status().overdue > 0; }));
  CHECK(eventually([&source] {
    return source->status().last_error.find("held for too long") != std::string::npos;
  }));
  fixture.engine.release_writes();
  CHECK(eventually([&source] {
    return source->status().counters.repeats_dropped > 0 ||
           source->status().counters.redelivered > 0;
  }));
  CHECK(eventually([&source] { return source->status().connected; }));
  CHECK(stored_numbers(fixture).size() == 1);
}

TEST_CASE(
    "mqtt source: speaks MQTT 5 where the broker does, and lets it send a window of messages") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  CHECK(source->status().protocol == "5");
  fixture.engine.fail_writes(out_of_space("full"));
  REQUIRE(broker.publish("s/k/t", numbers(0, 3'000)));
  CHECK(eventually(
      [&source] { return source->status().unacknowledged == mqtt::PahoClient::kReceiveMaximum; }));
  fixture.engine.fail_writes(ok());
  CHECK(eventually([&fixture] { return stored_numbers(fixture).size() == 3'000; }));
}

TEST_CASE("mqtt source: retained messages come once, not at every reconnect") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  REQUIRE(broker.publish_one("s/k/state", "on", true));
  MqttFixture fixture;
  auto source = connected_source(fixture, settings_for(broker));
  REQUIRE(eventually([&source] { return source->status().counters.readings == 1; }));
  broker.stop();
  REQUIRE(eventually([&source] { return !source->status().connected; }));
  REQUIRE(broker.start());
  REQUIRE(eventually([&source] { return source->status().connected; }));
  REQUIRE(broker.publish_one("s/k/last", "1", false));
  REQUIRE(eventually([&source] { return source->status().counters.readings == 2; }));
  CHECK(fixture.readings("default", "k", "state").size() == 1);
}

TEST_CASE("mqtt source: messages no rule takes are kept as rejected and acknowledged") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto settings = settings_for(broker);
  settings.rules = {mqtt_rule("a/{device+}/temp")};
  auto source = connected_source(fixture, settings);
  REQUIRE(broker.publish_one("a/b/c/temp", "1", false));
  REQUIRE(broker.publish_one("a/b/c/hum", "2", false));
  REQUIRE(broker.publish_one("a/b/temp", "{\"x\":", false));
  CHECK(eventually([&source] { return source->status().counters.rejected == 2; }));
  CHECK(fixture.readings("default", "b.c", "temp").empty());
  CHECK(fixture.readings("default", "b.c", "value").size() == 1);
  const auto kept = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].text ==
        R"({"topic":"a/b/c/hum","reason":"no rule takes this topic","payload":"2"})");
}

TEST_CASE(
    "mqtt source: a message far over the limit is passed over, kept as rejected, acknowledged") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  const auto source = connected_source(fixture, settings_for(broker));
  REQUIRE(broker.publish_one("s/k/t", std::string(8u << 20, 'x'), false));
  REQUIRE(broker.publish_one("s/k/t", "1", false));
  CHECK(eventually([&source] { return source->status().released == 2; }));
  CHECK(stored_numbers(fixture) == std::set<int>{1});
  const auto kept = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].text.find("packet of 8388618 bytes is over limits.message-limit = 1048576") !=
        std::string::npos);
  CHECK(source->status().connects == 1);
}

TEST_CASE("mqtt source: the filter of a removed rule is unsubscribed at the next start") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto settings = settings_for(broker);
  settings.rules = {mqtt_rule("old/{device}/{sensor}"), mqtt_rule("s/{device}/{sensor}")};
  auto source = connected_source(fixture, settings);
  REQUIRE(broker.publish_one("old/k/t", "1", false));
  REQUIRE(eventually([&source] { return source->status().counters.readings == 1; }));
  source.reset();
  settings.rules.erase(settings.rules.begin());
  source = connected_source(fixture, settings);
  REQUIRE(broker.publish_one("old/k/t", "2", false));
  REQUIRE(broker.publish_one("s/k/t", "3", false));
  REQUIRE(eventually([&source] { return source->status().counters.readings == 1; }));
  CHECK(source->status().counters.messages == 1);
  CHECK(source->status().counters.rejected == 0);
}

TEST_CASE("mqtt source: two with one client id do not fight for the session") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = source_of(fixture, settings_for(broker));
  const auto has_noticed = [&] {
    return source->status().last_error.find("another client uses mqtt.client-id") !=
           std::string::npos;
  };
  // The other one takes the session back whenever it has lost it.
  test::RawClient other(broker.port());
  int takeovers = 0;
  while (!has_noticed() && takeovers <= mqtt::TakeoverWatch::kLosses) {
    REQUIRE(eventually([&] { return source->status().connected; }));
    other = test::RawClient(broker.port());
    REQUIRE(other.send(test::mqtt_connect("edgecase-test", {.clean = false})));
    REQUIRE(other.gets(test::kMqttAcceptedPresent));
    ++takeovers;
    REQUIRE(eventually([&] { return !source->status().connected; }));
    eventually([&] { return has_noticed() || source->status().connected; });
  }
  CHECK(has_noticed());
  CHECK_FALSE(source->status().connected);
  REQUIRE(other.send(test::kMqttPing));
  CHECK(other.gets(test::kMqttPong));
}

TEST_CASE("mqtt source: user name and password of a file") {
  SKIP_WITHOUT_MOSQUITTO();
  test::TempDirectory directory;
  const std::string passwords = directory.path() + "/passwords";
  if (test::run_process({"mosquitto_passwd", "-b", "-c", passwords, "edge", "secret word"}, "") !=
      0) {
    MESSAGE("skipped: mosquitto_passwd is not installed");
    return;
  }
  MosquittoBroker broker("allow_anonymous false\npassword_file " + passwords);
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto settings = settings_for(broker);
  settings.username = "edge";
  settings.password_file = directory.path() + "/secret";
  std::ofstream(settings.password_file) << "wrong\n";
  auto source = source_of(fixture, settings);
  CHECK(eventually(
      [&source] { return source->status().last_error.find("authori") != std::string::npos; }));
  std::ofstream(settings.password_file, std::ios::trunc) << "secret word\n";
  CHECK(eventually([&source] { return source->status().connected; }, 60));
}

TEST_CASE("mqtt source: settings are checked before anything starts") {
  struct Case {
    const char* part;
    config::MqttSettings settings;
  };
  const auto with = [](auto change) {
    config::MqttSettings settings;
    change(settings);
    return settings;
  };
  MqttFixture fixture;
  for (const Case& c :
       {Case{"begin with mqtt://", with([](auto& s) { s.broker = "ssl://b"; })},
        Case{"mqtt.tls-ca", with([](auto& s) { s.tls_ca = "/ca.pem"; })},
        Case{"mqtt.client-id", with([](auto& s) { s.client_id = ""; })},
        Case{"needs mqtt.username", with([](auto& s) { s.password_file = "/p"; })},
        Case{"a line from /nowhere", with([](auto& s) {
               s.username = "u";
               s.password_file = "/nowhere";
             })},
        Case{"mqtt.rule 1", with([](auto& s) { s.rules = {mqtt_rule("a/#/b")}; })}}) {
    CAPTURE(c.part);
    const auto source = mqtt::MqttSource::create(c.settings, {}, fixture.parts());
    REQUIRE(!source.ok());
    CHECK(source.status().code() == StatusCode::InvalidArgument);
    CHECK(source.status().message().find(c.part) != std::string::npos);
  }
  const auto off =
      mqtt::MqttSource::create(with([](auto& s) { s.broker = ""; }), {}, fixture.parts());
  REQUIRE(off.ok());
  CHECK(*off == nullptr);
  CHECK(mqtt::check_mqtt_settings(config::MqttSettings{}).ok());
}

TEST_CASE("mqtt source: its figures appear among the metrics") {
  MqttFixture fixture;
  const auto source = mqtt::MqttSource::create({}, {}, fixture.parts());
  REQUIRE(source.ok());
  observe::Metrics metrics;
  mqtt::register_metrics(**source, metrics);
  CHECK(metrics.render().find("edgecase_mqtt_messages_total 0") != std::string::npos);
  metrics.clear_callbacks();
}

TEST_CASE("mqtt source: one publish is one reading, though two filters match it") {
  SKIP_WITHOUT_MOSQUITTO();
  MosquittoBroker broker;
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto settings = settings_for(broker);
  settings.rules = {mqtt_rule("s/{device}/t"), mqtt_rule("s/k/{sensor}")};
  settings.rules.front().sensor = "t";
  settings.rules.back().device = "k";
  const auto source = connected_source(fixture, settings);
  REQUIRE(broker.publish("s/k/t", numbers(0, 20)));
  REQUIRE(broker.publish("s/k/t", std::vector<std::string>(30, "7")));
  REQUIRE(broker.publish("s/k/u", {"1"}));
  CHECK(eventually([&] { return source->status().counters.repeats_dropped == 50; }));
  CHECK(eventually([&] { return fixture.readings("default", "k", "u").size() == 1; }));
  CHECK(fixture.readings("default", "k", "t").size() == 50);
}
