// A listener on an engine in memory, and clients that send it what they like.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "daemon/mqtt/listener/packets.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/listener/mqtt_listener.h"
#include "mqtt/topic_names.h"
#include "net/channel.h"
#include "support/loopback.h"
#include "support/mosquitto_broker.h"

namespace edgecase::test {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(connect_to_loopback(port)) {}

  // False: the other side does not take it any more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // Exactly so many, or fewer when the connection ends before.
  std::string receive(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes && readable(60'000)) {
      char part[4096];
      const ssize_t n =
          ::recv(socket_.descriptor(), part, std::min(sizeof part, bytes - text.size()), 0);
      if (n <= 0) break;
      text.append(part, static_cast<std::size_t>(n));
    }
    return text;
  }
  // Everything until the other side closes.
  std::string receive_all() { return receive(std::size_t{1} << 30); }
  bool readable(int milliseconds) const {
    pollfd wait{socket_.descriptor(), POLLIN, 0};
    return ::poll(&wait, 1, milliseconds) > 0;
  }
  // Whether `expected` comes next.
  bool gets(std::string_view expected) { return receive(expected.size()) == expected; }
  void close() { socket_ = net::Socket(); }

 private:
  net::Socket socket_;
};

class ListenerFixture : public MqttFixture {
 public:
  // Deadlines are for tests of them to shorten.
  explicit ListenerFixture(mqtt::ListenerOptions given = {}, std::uint64_t series = 100'000,
                           net::ChannelMaker maker = {})
      : channels(std::move(maker)) {
    auto opened = catalog::Catalog::open(engine, {.series = series});
    REQUIRE(opened.ok());
    catalog = std::move(opened).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, system_clock());
    open_rejected(1'000);
    auto compiled = mqtt::compile_rules({mqtt_rule("s/{device}/{sensor}")});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
    options = given;
    options.host = "localhost";
    start();
  }

  void start() {
    auto started =
        mqtt::MqttListener::start(options, {engine, system_random(), rules, limits, *pipeline,
                                            *rejected, system_clock(), nullptr, channels});
    REQUIRE_MESSAGE(started.ok(), started.status().to_string());
    listener = std::move(started).value();
  }
  RawClient client() const { return RawClient(listener->port()); }
  RawClient client(const std::string& connect) const {
    RawClient its(listener->port());
    its.send(connect);
    CHECK(its.gets(kMqttAccepted));
    return its;
  }
  std::size_t stored(std::string_view device = "d", std::string_view sensor = "x") {
    return readings("default", device, sensor).size();
  }

  config::LimitSettings limits;
  std::vector<mqtt::TopicRule> rules;
  mqtt::ListenerOptions options;
  net::ChannelMaker channels;
  std::unique_ptr<mqtt::MqttListener> listener;
};

}  // namespace edgecase::test
