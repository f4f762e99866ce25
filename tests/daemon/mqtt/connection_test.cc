#include "mqtt/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "daemon/mqtt/mqtt_fixture.h"
#include "support/mosquitto_broker.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

// A broker that knows MQTT 3.1.1 alone, as far as CONNECT and SUBSCRIBE.
class OldBroker {
 public:
  enum class Refusal : unsigned char { InWords, HangsUp, FirstSubscriptionUnanswered };

  explicit OldBroker(Refusal refusal)
      : refusal_(refusal),
        listener_(net::listen_on_tcp("127.0.0.1", 0).value()),
        thread_([this] { run(); }) {}
  ~OldBroker() {
    shutdown(listener_.descriptor(), SHUT_RDWR);
    shutdown(connection_, SHUT_RDWR);
    thread_.join();
  }
  OldBroker(const OldBroker&) = delete;
  OldBroker& operator=(const OldBroker&) = delete;

  std::string url() const {
    return "mqtt://127.0.0.1:" + std::to_string(net::tcp_port_of(listener_));
  }

 private:
  void run() {
    while (true) {
      pollfd ready{listener_.descriptor(), POLLIN, 0};
      poll(&ready, 1, -1);
      const net::Socket accepted(accept(listener_.descriptor(), nullptr, nullptr));
      if (!accepted) return;
      connection_ = accepted.descriptor();
      converse(accepted.descriptor());
      connection_ = -1;
    }
  }
  void converse(int connection) {
    constexpr std::size_t kLevelAt = 8;  // behind the fixed header and "MQTT"
    constexpr char kLevel311 = 4;
    char bytes[512];
    bool welcome = false;
    for (ssize_t got = 0; (got = recv(connection, bytes, sizeof bytes, 0)) > 0;) {
      const auto type = static_cast<unsigned char>(bytes[0]) >> 4;
      if (type == static_cast<unsigned>(mqtt::PacketType::Connect)) {
        welcome = bytes[kLevelAt] == kLevel311;
        if (!welcome && refusal_ == Refusal::HangsUp) return;
        const char connack[] = {0x20, 2, 0, static_cast<char>(welcome ? 0 : 1)};
        send(connection, connack, sizeof connack, MSG_NOSIGNAL);
        if (!welcome) return;
      } else if (type == static_cast<unsigned>(mqtt::PacketType::Subscribe)) {
        const bool first = ++subscriptions_ == 1;
        if (first && refusal_ == Refusal::FirstSubscriptionUnanswered) continue;
        const char suback[] = {static_cast<char>(0x90), 3, bytes[2], bytes[3], 1};
        send(connection, suback, sizeof suback, MSG_NOSIGNAL);
      }
    }
  }

  const Refusal refusal_;
  net::Socket listener_;
  std::atomic<int> connection_{-1};
  int subscriptions_ = 0;  // of the thread alone
  std::thread thread_;
};

}  // namespace

TEST_CASE("mqtt source: speaks MQTT 3.1.1 to a broker that knows no other") {
  for (const auto refusal : {OldBroker::Refusal::InWords, OldBroker::Refusal::HangsUp}) {
    CAPTURE(static_cast<int>(refusal));
    const OldBroker broker(refusal);
    MqttFixture fixture;
    config::MqttSettings settings;
    settings.broker = broker.url();
    settings.client_id = "edgecase-test";
    settings.rules = {mqtt_rule("s/{device}/{sensor}")};
    auto source = mqtt::MqttSource::create(settings, {}, fixture.parts());
    REQUIRE(source.ok());
    (*source)->start();
    CHECK(eventually([&] { return (*source)->status().connected; }));
    CHECK((*source)->status().protocol == "3.1.1");
  }
}

TEST_CASE("mqtt source: a subscription that is not answered in time is asked for again") {
  const OldBroker broker(OldBroker::Refusal::FirstSubscriptionUnanswered);
  MqttFixture fixture;
  config::MqttSettings settings;
  settings.broker = broker.url();
  settings.client_id = "edgecase-test";
  // Another one follows: it must not be asked of the client that was given up.
  settings.rules = {mqtt_rule("s/{device}/{sensor}"), mqtt_rule("t/{device}/{sensor}")};
  auto source = mqtt::MqttSource::create(settings, {}, fixture.parts());
  REQUIRE(source.ok());
  (*source)->start();
  CHECK(eventually([&] { return (*source)->status().connected; }));
}
