#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/broker.h"
#include "mqtt/mqtt_source.h"
#include "net/channel.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"
#include "support/test_certificate.h"

using namespace edgecase;
using namespace edgecase::test;

#define SKIP_WITHOUT_MOSQUITTO()                    \
  if (!MosquittoBroker::is_installed()) {           \
    MESSAGE("skipped: mosquitto is not installed"); \
    return;                                         \
  }

namespace {

// A mosquitto with a second listener that speaks TLS, on every address of this machine.
class TlsBroker {
 public:
  explicit TlsBroker(const std::string& more = "", const char* ends = "20991231235959",
                     const char* begins = "20000101000000")
      : certificate(
            make_test_certificate(directory.path(), "broker", KeyKind::Elliptic, ends, begins)),
        port(free_port()),
        broker("listener " + std::to_string(port) + "\ncertfile " + certificate.certificate +
               "\nkeyfile " + certificate.key + "\n" + more) {
    REQUIRE(broker.start());
  }
  config::MqttSettings settings(const std::string& host) const {
    config::MqttSettings settings;
    settings.broker = "mqtts://" + host + ":" + std::to_string(port);
    settings.client_id = "edgecase-tls";
    settings.tls_ca = certificate.certificate;
    settings.rules = {mqtt_rule("s/{device}/{sensor}")};
    return settings;
  }

  const TempDirectory directory;
  const TestCertificate certificate;
  const std::uint16_t port;
  MosquittoBroker broker;

 private:
  static std::uint16_t free_port() {
    return net::tcp_port_of(net::listen_on_tcp(net::loopback_host(), 0).value());
  }
};

// The clock of a board that has lost the time.
class LostClock final : public Clock {
 public:
  std::int64_t wall_ns() const override { return 0; }
  std::int64_t boot_ns() const override { return system_clock().boot_ns(); }
  ClockTrust trust() const override { return ClockTrust::Untrusted; }
};

std::int64_t year_ns(std::int64_t year) {
  return (year - 1970) * 31'556'952 * 1'000'000'000;
}

std::unique_ptr<mqtt::MqttSource> start(MqttFixture& fixture,
                                        const config::MqttSettings& settings) {
  auto source = mqtt::MqttSource::create(settings, {}, fixture.parts());
  REQUIRE_MESSAGE(source.ok(), source.status().to_string());
  (*source)->start();
  return std::move(source).value();
}

bool connects(const mqtt::MqttSource& source) {
  return eventually([&] { return source.status().connected; });
}

std::size_t distinct(MqttFixture& fixture) {
  std::set<std::string> all;
  for (const auto& reading : fixture.readings("default", "k", "t")) all.insert(reading.text);
  return all.size();
}

}  // namespace

TEST_CASE("mqtt over tls: a broker is trusted by its name and by its address") {
  SKIP_WITHOUT_MOSQUITTO();
  TlsBroker tls;
  for (const char* const host : {"localhost", "127.0.0.1"}) {
    CAPTURE(host);
    MqttFixture fixture;
    const auto source = start(fixture, tls.settings(host));
    REQUIRE(connects(*source));
    CHECK(source->status().broker == tls.settings(host).broker);
    REQUIRE(tls.broker.publish("s/k/t", numbers(0, 300)));
    REQUIRE(tls.broker.publish_one("s/k/frame", std::string(200'000, '\xff'), false));
    CHECK(eventually([&] { return source->status().counters.readings == 301; }));
    CHECK(distinct(fixture) == 300);
  }
}

TEST_CASE("mqtt over tls: a broker that cannot be trusted is refused, with the reason") {
  SKIP_WITHOUT_MOSQUITTO();
  TlsBroker tls;
  MqttFixture fixture;
  config::MqttSettings stranger = tls.settings("localhost");
  stranger.tls_ca = make_test_certificate(tls.directory.path(), "other").certificate;
  config::MqttSettings misnamed = tls.settings("127.0.0.2");
  config::MqttSettings clear = tls.settings("localhost");
  clear.broker = "mqtts" + tls.broker.url().substr(4);  // the port that speaks no TLS
  struct Case {
    config::MqttSettings settings;
    const char* why;
  };
  for (const Case& c : {Case{stranger, "not correctly signed by the trusted CA"},
                        Case{misnamed, "does not match with the expected"}, Case{clear, "TLS: "}}) {
    CAPTURE(c.settings.broker);
    const auto source = start(fixture, c.settings);
    CHECK(eventually([&] { return source->status().last_error.find(c.why) != std::string::npos; }));
    CHECK_FALSE(source->status().connected);
    MESSAGE(source->status().last_error);
  }
  CHECK(fixture.readings("default", "k", "t").empty());
}

TEST_CASE("mqtt over tls: what was not stored comes again, also over a broker's restart") {
  SKIP_WITHOUT_MOSQUITTO();
  TlsBroker tls;
  MqttFixture fixture;
  const auto source = start(fixture, tls.settings("localhost"));
  REQUIRE(connects(*source));
  fixture.engine.fail_writes(out_of_space("full"));
  REQUIRE(tls.broker.publish("s/k/t", numbers(0, 100)));
  CHECK(eventually([&] { return source->status().unacknowledged > 0; }));
  CHECK(distinct(fixture) == 0);
  fixture.engine.fail_writes(ok());
  CHECK(eventually([&] { return distinct(fixture) == 100; }));
  tls.broker.stop();
  REQUIRE(tls.broker.start());
  REQUIRE(tls.broker.publish("s/k/t", numbers(100, 200)));
  CHECK(eventually([&] { return distinct(fixture) == 200; }));
}

TEST_CASE("mqtt over tls: a broker that asks is shown the daemon's certificate") {
  SKIP_WITHOUT_MOSQUITTO();
  const TempDirectory directory;
  const TestCertificate own = make_test_certificate(directory.path(), "daemon");
  TlsBroker tls("cafile " + own.certificate + "\nrequire_certificate true\n");
  MqttFixture fixture;
  {
    const auto nobody = start(fixture, tls.settings("localhost"));
    CHECK(eventually([&] { return !nobody->status().last_error.empty(); }));
    CHECK_FALSE(nobody->status().connected);
  }
  config::MqttSettings settings = tls.settings("localhost");
  settings.tls_cert = own.certificate;
  settings.tls_key = own.key;
  CHECK(connects(*start(fixture, settings)));
}

TEST_CASE("mqtt over tls: with an untrusted clock a certificate must not have ended by then") {
  SKIP_WITHOUT_MOSQUITTO();
  struct Case {
    const char* begins;
    const char* ends;
    std::int64_t known_ns;  // by the store
    bool connects;
  };
  for (const Case& c : {Case{"20000101000000", "20990101000000", 0, true},
                        // Before this program was built.
                        Case{"20000101000000", "20240101000000", 0, false},
                        // Which no clock but the store's can tell.
                        Case{"20000101000000", "20400101000000", year_ns(2041), false},
                        Case{"20000101000000", "20400101000000", year_ns(2039), true},
                        // It may have begun meanwhile.
                        Case{"20980101000000", "20990101000000", 0, true}}) {
    CAPTURE(c.begins);
    CAPTURE(c.ends);
    TlsBroker tls("", c.ends, c.begins);
    MqttFixture fixture;
    LostClock clock;
    const std::string log = tls.directory.path() + "/log";
    const int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    {
      observe::Logger logger(file, observe::LogStyle::Plain, clock);
      fixture.engine.set_expiry_now_ns(c.known_ns);
      mqtt::MqttSourceParts parts{fixture.engine, *fixture.pipeline, *fixture.rejected,
                                  clock,          system_random(),   &logger};
      auto source = mqtt::MqttSource::create(tls.settings("localhost"), {}, parts);
      REQUIRE(source.ok());
      (*source)->start();
      if (c.connects) {
        CHECK(connects(**source));
      } else {
        CHECK(eventually([&] {
          return (*source)->status().last_error.find("has expired") != std::string::npos;
        }));
        CHECK_FALSE((*source)->status().connected);
      }
    }
    ::close(file);
    std::stringstream said;
    said << std::ifstream(log).rdbuf();
    CHECK(said.str().find("the clock is not trusted: the certificate of") != std::string::npos);
    if (c.known_ns == year_ns(2041)) CHECK(said.str().find("ended by 204") != std::string::npos);
  }
}

TEST_CASE("mqtt over tls: settings that cannot work are named") {
  const TempDirectory directory;
  config::MqttSettings settings;
  settings.broker = "mqtts://localhost";
  settings.tls_ca = directory / "none";
  CHECK(mqtt::check_mqtt_settings(settings).message().find("mqtt.tls-ca: ") == 0);
  settings.broker = "mqtt://localhost";
  CHECK(mqtt::check_mqtt_settings(settings).message() ==
        "mqtt.tls-ca: is set, but mqtt.broker is not mqtts://");
  CHECK(mqtt::parse_broker_address("mqtts://b").value().port == 8883);
  CHECK(mqtt::parse_broker_address("mqtts://b:1").value().url() == "mqtts://b:1");
  CHECK_FALSE(mqtt::parse_broker_address("ssl://b").ok());
}

TEST_CASE("mqtt over tls: a broker that speaks TLS 1.3 alone is refused in words that say so") {
  SKIP_WITHOUT_MOSQUITTO();
  TlsBroker tls("tls_version tlsv1.3\n");
  MqttFixture fixture;
  const auto source = start(fixture, tls.settings("localhost"));
  CHECK(eventually([&] {
    return source->status().last_error.find("takes TLS 1.3 alone") != std::string::npos;
  }));
  CHECK_FALSE(source->status().connected);
}
