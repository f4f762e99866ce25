#include "mqtt/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "audit/audit_log.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "support/loopback.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

// A broker that knows MQTT 3.1.1 alone, as far as CONNECT and SUBSCRIBE.
class OldBroker {
 public:
  enum class Refusal : unsigned char { InWords, HangsUp };

  explicit OldBroker(Refusal refusal, int granted = 1)
      : refusal_(refusal),
        granted_(granted),
        listener_(net::listen_on_tcp(net::loopback_host(), 0).value()),
        thread_([this] { run(); }) {}
  ~OldBroker() {
    shutdown(listener_.descriptor(), SHUT_RDWR);
    shutdown(connection_, SHUT_RDWR);
    thread_.join();
  }
  OldBroker(const OldBroker&) = delete;
  OldBroker& operator=(const OldBroker&) = delete;

  std::string url() const { return "mqtt://" + loopback_authority(net::tcp_port_of(listener_)); }

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
  void converse(int connection) const {
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
        const char suback[] = {static_cast<char>(0x90), 3, bytes[2], bytes[3],
                               static_cast<char>(granted_)};
        send(connection, suback, sizeof suback, MSG_NOSIGNAL);
      }
    }
  }

  const Refusal refusal_;
  const int granted_;  // SUBACK's code
  net::Socket listener_;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};

// A broker of MQTT 5 that answers CONNECT, and SUBSCRIBE only after so many messages, or so many
// turns of silence; with silence, on its first connection never.
class SlowBroker {
 public:
  enum class Meanwhile : std::uint8_t { Messages, Silence };
  explicit SlowBroker(int turns_before_answer, Meanwhile meanwhile = Meanwhile::Messages)
      : turns_before_answer_(turns_before_answer),
        meanwhile_(meanwhile),
        listener_(net::listen_on_tcp(net::loopback_host(), 0).value()),
        thread_([this] { run(); }) {}
  ~SlowBroker() {
    stopping_ = true;
    thread_.join();
  }
  SlowBroker(const SlowBroker&) = delete;
  SlowBroker& operator=(const SlowBroker&) = delete;

  std::string url() const { return "mqtt://" + loopback_authority(net::tcp_port_of(listener_)); }
  int connects() const { return connects_; }

 private:
  static constexpr int kPollMs = 20;  // between messages, too

  bool is_never_answered() const { return meanwhile_ == Meanwhile::Silence && connects_ == 1; }
  static bool is_ready(int descriptor) {
    pollfd ready{descriptor, POLLIN, 0};
    return poll(&ready, 1, kPollMs) > 0;
  }
  void run() {
    while (!stopping_) {
      if (!is_ready(listener_.descriptor())) continue;
      const net::Socket accepted(accept(listener_.descriptor(), nullptr, nullptr));
      if (accepted) converse(accepted.descriptor());
    }
  }
  void converse(int connection) {
    const std::string publish = bytes_of({0x30, 8, 0, 4, 's', '/', 'd', 'x', 0, '1'});
    char bytes[512];
    std::string suback;
    int left = 0;
    while (!stopping_) {
      if (!is_ready(connection)) {
        if (suback.empty()) continue;
        const bool waits = left-- > 0;
        if (waits && meanwhile_ == Meanwhile::Silence) continue;
        const std::string& next = waits ? publish : suback;
        send(connection, next.data(), next.size(), MSG_NOSIGNAL);
        if (&next == &suback) suback.clear();
        continue;
      }
      const ssize_t got = recv(connection, bytes, sizeof bytes, 0);
      if (got <= 0) return;
      const auto type = static_cast<unsigned char>(bytes[0]) >> 4;
      if (type == static_cast<unsigned>(mqtt::PacketType::Connect)) {
        ++connects_;
        const std::string connack = bytes_of({0x20, 3, 0, 0, 0});
        send(connection, connack.data(), connack.size(), MSG_NOSIGNAL);
      } else if (type == static_cast<unsigned>(mqtt::PacketType::Subscribe) &&
                 turns_before_answer_ >= 0 && !is_never_answered()) {
        left = turns_before_answer_;
        suback = bytes_of({0x90, 4, static_cast<unsigned char>(bytes[2]),
                           static_cast<unsigned char>(bytes[3]), 0, 1});
      }
    }
  }

  const int turns_before_answer_;  // below 0: it never answers
  const Meanwhile meanwhile_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connects_{0};
  net::Socket listener_;
  std::thread thread_;
};

config::MqttSettings settings_of_url(const std::string& url) {
  config::MqttSettings settings;
  settings.broker = url;
  settings.client_id = "edgecase-test";
  settings.rules = {mqtt_rule("s/{device}"), mqtt_rule("t/{device}/{sensor}")};
  settings.rules.front().sensor = "n";
  return settings;
}

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

TEST_CASE("mqtt source: a broker that leaves a SUBSCRIBE unanswered is connected to anew") {
  const SlowBroker broker(-1);
  MqttFixture fixture;
  mqtt::MqttSourceParts parts = fixture.parts();
  parts.answer_patience_ns = 100'000'000;
  auto source = mqtt::MqttSource::create(settings_of_url(broker.url()), {}, parts);
  REQUIRE(source.ok());
  (*source)->start();
  bool was_connected = false;
  CHECK(eventually([&] {
    was_connected = was_connected || (*source)->status().connected;
    return broker.connects() >= 2;
  }));
  CHECK_FALSE(was_connected);
  CHECK((*source)->status().last_error.find("no answer") != std::string::npos);
}

TEST_CASE("mqtt source: a broker that answers late is given more time by and by") {
  const SlowBroker broker(12, SlowBroker::Meanwhile::Silence);  // over 240 ms, for each filter
  MqttFixture fixture;
  mqtt::MqttSourceParts parts = fixture.parts();
  parts.answer_patience_ns = 50'000'000;
  auto source = mqtt::MqttSource::create(settings_of_url(broker.url()), {}, parts);
  REQUIRE(source.ok());
  (*source)->start();
  CHECK(eventually([&] { return (*source)->status().connected; }));
  CHECK(broker.connects() >= 2);
}

TEST_CASE("mqtt source: an answer may take long while messages come") {
  const SlowBroker broker(60);  // over a second, for each of two filters
  MqttFixture fixture;
  mqtt::MqttSourceParts parts = fixture.parts();
  parts.answer_patience_ns = 1'000'000'000;
  auto source = mqtt::MqttSource::create(settings_of_url(broker.url()), {}, parts);
  REQUIRE(source.ok());
  (*source)->start();
  CHECK(eventually([&] { return (*source)->status().connected; }));
  CHECK(broker.connects() == 1);
  CHECK(eventually([&] { return (*source)->status().counters.messages == 120; }));
}

TEST_CASE("mqtt source: a broker that forgot the session is a possible gap, logged and audited") {
  if (!MosquittoBroker::is_installed()) {
    MESSAGE("skipped: mosquitto is not installed");
    return;
  }
  for (const bool keeps : {false, true}) {
    CAPTURE(keeps);
    MosquittoBroker broker(keeps ? "" : "persistence false");
    REQUIRE(broker.start());
    TempDirectory directory;
    MqttFixture fixture;
    SeededRandom random(1);
    auto audit_log = audit::AuditLog::open(
        {.mode = audit::Mode::Batched, .head_directory = directory.path(), .runs_thread = false},
        {fixture.engine, posix_file_system(), system_clock(), random});
    REQUIRE(audit_log.ok());
    fixture.pipeline = std::make_unique<ingest::IngestPipeline>(
        fixture.engine, *fixture.catalog, system_clock(), nullptr, nullptr, audit_log->get());
    fixture.open_rejected(100);
    const std::string log = directory.path() + "/log";
    const int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    {
      observe::Logger logger(file, observe::LogStyle::Plain, system_clock());
      mqtt::MqttSourceParts parts = fixture.parts();
      parts.logger = &logger;
      config::MqttSettings settings;
      settings.broker = broker.url();
      settings.client_id = "edgecase-test";
      settings.rules = {mqtt_rule("s/{device}/{sensor}")};
      auto source = mqtt::MqttSource::create(settings, {}, parts);
      REQUIRE(source.ok());
      (*source)->start();
      REQUIRE(eventually([&] { return (*source)->status().connected; }));
      CHECK((*source)->status().sessions_lost == 0);
      broker.stop();
      REQUIRE(eventually([&] { return !(*source)->status().connected; }));
      REQUIRE(broker.start());
      REQUIRE(eventually([&] { return (*source)->status().connected; }));
      CHECK((*source)->status().sessions_lost == (keeps ? 0 : 1));
      // What comes from now on is stored.
      REQUIRE(broker.publish("s/k/t", {"1"}));
      CHECK(eventually([&] { return fixture.readings("default", "k", "t").size() == 1; }));
    }
    ::close(file);
    std::stringstream said;
    said << std::ifstream(log).rdbuf();
    const bool logged = said.str().find("the broker forgot the session: messages may be missing") !=
                        std::string::npos;
    CHECK(logged == !keeps);
    REQUIRE((*audit_log)->flush().ok());
    auto cursor = audit::RecordCursor::open(**audit_log, {});
    REQUIRE(cursor.ok());
    int gaps = 0;
    for (audit::Record record; (*cursor)->next(record).value();) {
      if (record.operation != "mqtt.session-lost") continue;
      ++gaps;
      CHECK(record.detail == "possible gap");
      CHECK(record.outcome == audit::Outcome::Failed);
      CHECK(record.actor.find("as edgecase-test") != std::string::npos);
    }
    CHECK(gaps == (keeps ? 0 : 1));
    cursor->reset();
    fixture.rejected.reset();
    fixture.pipeline.reset();
    audit_log->reset();
  }
}

TEST_CASE("mqtt source: what a broker of 3.1.1 refuses or lowers is shown, too") {
  for (const int code : {0x80, 0, 1}) {
    CAPTURE(code);
    OldBroker broker(OldBroker::Refusal::InWords, code);
    MqttFixture fixture;
    auto source = mqtt::MqttSource::create(settings_of_url(broker.url()), {}, fixture.parts());
    REQUIRE(source.ok());
    (*source)->start();
    CHECK(eventually([&] { return (*source)->status().connected; }));
    const auto poor = (*source)->status().poor_subscriptions;
    REQUIRE(poor.size() == (code == 1 ? 0 : 2));
    if (code == 0x80) CHECK_FALSE(poor.front().granted_qos);
    if (code == 0) CHECK(poor.front().granted_qos == 0);
  }
}
