#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "daemon/mqtt/listener/packets.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/broker.h"
#include "mqtt/mqtt_source.h"
#include "net/channel.h"
#include "support/loopback.h"
#include "support/mosquitto_broker.h"

using namespace edgecase;
using namespace edgecase::mqtt;
using namespace edgecase::test;

namespace {

// A broker of MQTT 5 that says what a test gives it, and is told what it was asked.
class ScriptedBroker {
 public:
  struct Script {
    std::string connack_properties = {};
    int connack_reason = 0;
    std::string reason_properties = {};  // of a refusal
    std::vector<int> subacks = {1};      // one after another; the last one for all that follow
    std::string suback_properties = {};
    std::string disconnect = {};  // sent behind the first SUBACK
    int keep_alive_ms = 0;        // hangs up when it hears nothing for so long
  };
  explicit ScriptedBroker(Script script)
      : script_(std::move(script)),
        listener_(net::listen_on_tcp(net::loopback_host(), 0).value()),
        thread_([this] { run(); }) {}
  ~ScriptedBroker() {
    stopping_ = true;
    thread_.join();
  }
  ScriptedBroker(const ScriptedBroker&) = delete;
  ScriptedBroker& operator=(const ScriptedBroker&) = delete;

  std::string url() const { return "mqtt://" + loopback_authority(net::tcp_port_of(listener_)); }
  int subscribes() const { return subscribes_; }
  int pings() const { return pings_; }
  int connects() const { return connects_; }

 private:
  static constexpr int kPollMs = 20;

  void run() {
    while (!stopping_) {
      pollfd ready{listener_.descriptor(), POLLIN, 0};
      if (poll(&ready, 1, kPollMs) <= 0) continue;
      const net::Socket accepted(accept(listener_.descriptor(), nullptr, nullptr));
      if (accepted) converse(accepted.descriptor());
    }
  }
  static std::string packet(int type, std::string body) {
    return bytes_of({type, static_cast<int>(body.size())}) + std::move(body);
  }
  static std::string with_length(const std::string& properties) {
    return static_cast<char>(properties.size()) + properties;
  }
  void converse(int connection) {
    const auto say = [connection](const std::string& bytes) {
      send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    };
    std::string input;
    int silent_ms = 0;
    while (!stopping_) {
      pollfd ready{connection, POLLIN, 0};
      if (poll(&ready, 1, kPollMs) <= 0) {
        silent_ms += kPollMs;
        if (script_.keep_alive_ms > 0 && silent_ms > script_.keep_alive_ms) return;
        continue;
      }
      silent_ms = 0;
      char bytes[512];
      const ssize_t got = recv(connection, bytes, sizeof bytes, 0);
      if (got <= 0) return;
      input.append(bytes, static_cast<std::size_t>(got));
      mqtt::FixedHeader header;
      while (mqtt::read_fixed_header(input, header) == mqtt::HeaderProgress::Complete &&
             input.size() >= header.header_bytes + header.remaining_bytes) {
        const std::string body = input.substr(header.header_bytes, header.remaining_bytes);
        input.erase(0, header.header_bytes + header.remaining_bytes);
        if (header.type == mqtt::PacketType::Connect) {
          ++connects_;
          const bool refused = script_.connack_reason != 0;
          say(packet(0x20, bytes_of({0, script_.connack_reason}) +
                               with_length(refused ? script_.reason_properties
                                                   : script_.connack_properties)));
          if (refused) return;
        } else if (header.type == mqtt::PacketType::Subscribe) {
          const auto turn = std::min<std::size_t>(static_cast<std::size_t>(subscribes_++),
                                                  script_.subacks.size() - 1);
          say(packet(0x90, body.substr(0, 2) + with_length(script_.suback_properties) +
                               bytes_of({script_.subacks[turn]})));
          if (!script_.disconnect.empty()) say(std::exchange(script_.disconnect, {}));
        } else if (header.type == mqtt::PacketType::Pingreq) {
          ++pings_;
          say(bytes_of({0xD0, 0}));
        }
      }
    }
  }

  Script script_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> subscribes_{0};
  std::atomic<int> pings_{0};
  std::atomic<int> connects_{0};
  net::Socket listener_;
  std::thread thread_;
};

std::string text_property(int identifier, std::string_view text) {
  return bytes_of({identifier, 0, static_cast<int>(text.size())}) + std::string(text);
}

config::MqttSettings settings_of_script(const std::string& url) {
  config::MqttSettings settings;
  settings.broker = url;
  settings.client_id = "edgecase-test";
  settings.rules = {mqtt_rule("s/{device}"), mqtt_rule("t/{device}/{sensor}")};
  settings.rules.front().sensor = "n";
  return settings;
}

}  // namespace

TEST_CASE("broker answers: reads what a broker says, as far as it can be read") {
  const BrokerAnswer plain = read_connack(bytes_of({1, 0}), ProtocolVersion::V311);
  CHECK(plain.is_whole);
  CHECK(plain.session_present);
  CHECK(!read_connack(bytes_of({0}), ProtocolVersion::V5).is_whole);
  // A property cut short, one that is none, a length beyond the packet.
  for (const std::string& bad :
       {bytes_of({0, 0, 3, 0x13, 0}), bytes_of({0, 0, 2, 0x7F, 0}), bytes_of({0, 0, 90, 0x24, 0}),
        bytes_of({0, 0, 0xFF, 0xFF, 0xFF, 0xFF})}) {
    CHECK(read_connack(bad, ProtocolVersion::V5).is_whole);
    CHECK(read_connack(bad, ProtocolVersion::V5).terms.wildcards);
  }
  const std::string text = bytes_of({0x1F}) + mqtt_text(std::string(1'000, 'x'));
  const BrokerAnswer wordy =
      read_connack(bytes_of({0, 0x87}) + bytes_of({0xEB, 0x07}) + text, ProtocolVersion::V5);
  CHECK(wordy.reason == 0x87);
  CHECK(wordy.reason_text == std::string(kBrokerTextMaxBytes, 'x'));
  CHECK(read_broker_disconnect("").reason == 0);
  CHECK(read_broker_disconnect(bytes_of({0x8E})).reason == 0x8E);
}

TEST_CASE("broker answers: reads subscription identifiers of a message") {
  const SubscriptionIds ids =
      read_subscription_ids(bytes_of({0x01, 1, 0x0B, 5, 0x26}) + mqtt_text("k") + mqtt_text("v") +
                            bytes_of({0x0B, 0xFF, 0xFF, 0xFF, 0x7F, 0x0B, 5}));
  CHECK(ids.count == 2);
  CHECK(ids.has(5));
  CHECK(ids.has(kSubscriptionIdMax));
  CHECK(read_subscription_ids(bytes_of({0x0B})).count <= 1);
  CHECK(read_subscription_ids("").count == 0);
}

TEST_CASE(
    "mqtt source: a subscription that is refused is shown and asked for until it is granted") {
  ScriptedBroker broker(
      {.subacks = {0x87, 1, 0x87, 0, 1}, .suback_properties = text_property(0x1F, "not you")});
  MqttFixture fixture;
  auto parts = fixture.parts();
  parts.ask_again_ns = 1'000'000;
  auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, parts);
  REQUIRE(source.ok());
  std::vector<std::string> seen;
  (*source)->start();
  CHECK(eventually([&] {
    const mqtt::MqttStatus status = (*source)->status();
    for (const auto& each : status.poor_subscriptions) {
      CHECK(each.filter == "s/+");
      std::string text =
          each.granted_qos ? "QoS " + std::to_string(*each.granted_qos) : each.reason;
      if (seen.empty() || seen.back() != text) seen.push_back(text);
      const std::string json = mqtt::status_json(status);
      CHECK(json.find("\"poor_subscriptions\":[{\"filter\":\"s/+\",\"qos\":1,\"granted\":") !=
            std::string::npos);
    }
    return status.connected && broker.subscribes() >= 5 && status.poor_subscriptions.empty();
  }));
  CHECK(seen == std::vector<std::string>{
                    "the broker refuses it, reason 135 (not authorized): not you", "QoS 0"});
  CHECK((*source)->status().connected);
  CHECK(mqtt::status_json((*source)->status()).find("\"subscriptions_refused\":0") !=
        std::string::npos);
}

TEST_CASE("mqtt source: what a broker says of itself is kept to, or shown") {
  const std::string silent = bytes_of({0x28, 0});  // no wildcards
  const std::string small = bytes_of({0x27, 0, 0, 0, 10});
  MqttFixture fixture;
  SUBCASE("no wildcards") {
    ScriptedBroker broker({.connack_properties = silent});
    auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
    (*source)->start();
    CHECK(eventually([&] { return (*source)->status().connected; }));
    CHECK((*source)->status().poor_subscriptions.size() == 2);
    CHECK((*source)->status().poor_subscriptions.front().reason.find("wildcard") !=
          std::string::npos);
    CHECK(broker.subscribes() == 0);
    CHECK(mqtt::status_json((*source)->status()).find("\"wildcards\":false") != std::string::npos);
  }
  SUBCASE("small packets") {
    ScriptedBroker broker({.connack_properties = small});
    auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
    (*source)->start();
    CHECK(eventually([&] { return (*source)->status().connected; }));
    CHECK((*source)->status().poor_subscriptions.size() == 2);
    CHECK(broker.subscribes() == 0);
  }
  SUBCASE("everything else") {
    ScriptedBroker broker({.connack_properties = bytes_of({0x11, 0, 0, 0, 60, 0x21, 0, 9, 0x24, 0,
                                                           0x25, 0, 0x29, 0, 0x2A, 0}) +
                                                 text_property(0x12, "you")});
    auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
    (*source)->start();
    CHECK(eventually([&] { return (*source)->status().connected; }));
    const std::string json = mqtt::status_json((*source)->status());
    CHECK(json.find(R"("broker_terms":{"session_expiry_seconds":60,"receive_maximum":9,)"
                    R"("maximum_qos":0,"retain":false,"subscription_ids":false,)"
                    R"("shared_subscriptions":false,"client_id":"you"})") != std::string::npos);
  }
  SUBCASE("a keep-alive of its own") {
    ScriptedBroker broker({.connack_properties = bytes_of({0x13, 0, 1}), .keep_alive_ms = 1'500});
    auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
    (*source)->start();
    CHECK(eventually([&] { return broker.pings() >= 4; }));
    CHECK(broker.connects() == 1);
    CHECK((*source)->status().connected);
  }
}

TEST_CASE("mqtt source: why a broker refuses or ends a connection is told in its words") {
  struct Case {
    ScriptedBroker::Script script;
    const char* want;
  };
  const std::string moved = text_property(0x1C, "other:1883") + text_property(0x1F, "we moved");
  for (const Case& c :
       {Case{{.connack_reason = 0x9D, .reason_properties = moved},
             "reason 157 (server moved): we moved; it says to use other:1883 instead"},
        Case{{.connack_reason = 0x8A}, "reason 138 (banned)"},
        Case{{.connack_reason = 0x97}, "reason 151 (quota exceeded)"},
        Case{{.connack_reason = 0x86}, "wrong mqtt.username or password"},
        Case{{.disconnect = bytes_of({0xE0, 13, 0x8B, 11}) + text_property(0x1F, "upgrade!")},
             "reason 139 (server shutting down): upgrade!"},
        Case{{.disconnect = bytes_of({0xE0, 2, 0x98, 0})}, "reason 152 (administrative action)"},
        Case{{.disconnect = bytes_of({0xE0, 0})}, "the broker ended the connection, reason 0"}}) {
    CAPTURE(c.want);
    ScriptedBroker broker(c.script);
    MqttFixture fixture;
    auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
    (*source)->start();
    std::string last;
    CHECK(eventually(
        [&] {
          last = (*source)->status().last_error;
          return last.find(c.want) != std::string::npos;
        },
        20));
    CAPTURE(last);
  }
}

TEST_CASE("mqtt source: a real broker that grants less is shown with the QoS granted") {
  if (!MosquittoBroker::is_installed()) {
    MESSAGE("skipped: mosquitto is not installed");
    return;
  }
  MosquittoBroker broker("max_qos 0\n");
  REQUIRE(broker.start());
  MqttFixture fixture;
  auto source = mqtt::MqttSource::create(settings_of_script(broker.url()), {}, fixture.parts());
  (*source)->start();
  CHECK(eventually([&] { return (*source)->status().connected; }));
  const mqtt::MqttStatus status = (*source)->status();
  REQUIRE(status.poor_subscriptions.size() == 2);
  CHECK(status.poor_subscriptions.front().granted_qos == 0);
  CHECK(status.terms.maximum_qos == 0);
}

namespace edgecase::mqtt {
namespace {

constexpr std::int64_t kSoon = TakeoverWatch::kShortNs - 1;

void lose_all_but_one(TakeoverWatch& watch) {
  for (int i = 1; i < TakeoverWatch::kLosses; ++i) CHECK(watch.connection_lost(kSoon) == 0);
}

}  // namespace

TEST_CASE("answer patience: doubles with every silence, up to its limit, until all was answered") {
  AnswerPatience patience(15);
  std::int64_t want_ns = 15;
  for (int i = 0; i < AnswerPatience::kDoublingsMax; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
    want_ns *= 2;
  }
  for (int i = 0; i < 100; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
  }
  patience.all_answered();
  CHECK(patience.now_ns() == 15);
}

TEST_CASE("takeover watch: several short connections in a row are one, and the pauses grow") {
  TakeoverWatch watch;
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(kSoon) == TakeoverWatch::kFirstPauseNs);
  CHECK(watch.connection_lost(0) == 2 * TakeoverWatch::kFirstPauseNs);
  std::int64_t pause_ns = 0;
  for (int i = 0; i < 20; ++i) pause_ns = watch.connection_lost(0);
  CHECK(pause_ns == TakeoverWatch::kMaxPauseNs);
}

TEST_CASE("takeover watch: a broker that was away, or a connection that held, starts it over") {
  TakeoverWatch watch;
  lose_all_but_one(watch);
  watch.broker_is_away();
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(TakeoverWatch::kShortNs) == 0);
  lose_all_but_one(watch);
  CHECK(watch.connection_lost(0) == TakeoverWatch::kFirstPauseNs);
}

}  // namespace edgecase::mqtt

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
