#include "mqtt/listener/mqtt_listener.h"

#include <deque>
#include <thread>

#include "daemon/mqtt/listener/listener_fixture.h"
#include "support/test_share.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr std::int64_t kMs = 1'000'000;

// Deadlines are looked at often, and only the one under test passes within it.
mqtt::ListenerOptions patient() {
  mqtt::ListenerOptions options;
  options.connect_ns = options.packet_grace_ns = options.write_grace_ns = 600'000 * kMs;
  options.sweep_ns = 5 * kMs;
  return options;
}

}  // namespace

TEST_CASE("mqtt listener: stores what devices publish, at every QoS") {
  ListenerFixture room;
  RawClient client = room.client(mqtt_connect("a"));
  client.send(mqtt_publish("s/d/x", "1", {.qos = 0}) +
              mqtt_publish("s/d/x", "2", {.packet_id = 1}) +
              mqtt_publish("s/d/x", "3", {.qos = 2, .packet_id = 2}));
  CHECK(client.gets(mqtt_puback(1) + mqtt_pubrec(2)));
  CHECK(room.stored() == 3);
  client.send(mqtt_pubrel(2) + kMqttPing);
  CHECK(client.gets(mqtt_pubcomp(2) + kMqttPong));
  client.send(kMqttDisconnect);
  CHECK(client.receive_all().empty());
  const mqtt::ListenerStatus status = room.listener->status();
  CHECK(status.connects == 1);
  CHECK(status.counters.messages == 3);
  CHECK(status.counters.readings == 3);
  CHECK(status.failed == 0);
}

TEST_CASE("mqtt listener: nothing is acknowledged while the drive refuses, and all once it does") {
  ListenerFixture room;
  RawClient client = room.client(mqtt_connect("a"));
  room.engine.fail_writes(out_of_space("full"));
  client.send(mqtt_publish("s/d/x", "1", {.packet_id = 1}) +
              mqtt_publish("else", "1", {.packet_id = 2}));
  CHECK(eventually([&] { return room.listener->status().counters.waiting_since_ns != 0; }));
  CHECK(room.listener->status().counters.waiting_for == "out of space: full");
  client.send(kMqttPing);  // the connection lives meanwhile
  CHECK(client.gets(kMqttPong));
  room.engine.fail_writes(ok());
  CHECK(client.gets(mqtt_puback(1) + mqtt_puback(2)));
  CHECK(room.stored() == 1);
  CHECK(room.readings("_rejected", "mqtt", "message").size() == 1);
}

TEST_CASE("mqtt listener: what the drive refuses until the end is not acknowledged") {
  ListenerFixture room;
  RawClient client = room.client(mqtt_connect("a", {.clean = false}));
  room.engine.fail_writes(io_error("gone"));
  client.send(mqtt_publish("s/d/x", "1", {.packet_id = 1}));
  CHECK(eventually([&] { return room.listener->status().counters.waiting_since_ns != 0; }));
  room.listener->stop();
  CHECK(client.receive_all().empty());
  room.engine.fail_writes(ok());
  CHECK(room.stored() == 0);
}

TEST_CASE("mqtt listener: while the drive refuses, so much is read and no more") {
  ListenerFixture room;
  RawClient client = room.client(mqtt_connect("a"));
  room.engine.fail_writes(out_of_space("full"));
  // Far more than two groups hold: sending it all must block.
  std::string many;
  for (unsigned id = 1; id <= 60'000; ++id) {
    many += mqtt_publish("s/d/x", std::string(400, 'x'), {.packet_id = id});
  }
  std::thread sender([&] { CHECK(client.send(many)); });
  CHECK(eventually([&] { return room.listener->status().counters.waiting_since_ns != 0; }));
  room.engine.fail_writes(ok());
  CHECK(client.receive(60'000 * 4).size() == 60'000 * 4);
  sender.join();
  CHECK(room.listener->status().counters.messages == 60'000);
  // What came by then is stored in many groups, not in one that grew.
  CHECK(room.engine.stats().wal_syncs > 5);
}

TEST_CASE("mqtt listener: one reading that cannot be stored does not take others with it") {
  ListenerFixture room({}, 3);
  RawClient client = room.client(mqtt_connect("a", {.version = 4}));
  // Rejected messages have a series of their own, so two are left for these.
  client.send(mqtt_publish("else", "1", {.packet_id = 9}));
  CHECK(client.gets(mqtt_puback(9)));
  std::string many;
  std::string want;
  for (unsigned id = 1; id <= 100; ++id) {
    const std::string sensor = id % 10 == 0 ? "new" + std::to_string(id) : id % 2 == 0 ? "x" : "y";
    many += mqtt_publish("s/d/" + sensor, "1", {.packet_id = id});
    want += mqtt_puback(id);
  }
  client.send(many);
  CHECK(client.gets(want));
  CHECK(room.stored("d", "x") == 40);
  CHECK(room.stored("d", "y") == 50);
  CHECK(room.listener->status().counters.rejected == 11);
  const auto kept = room.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 11);
  CHECK(kept.back().text.find("limits.series") != std::string::npos);
  // However they are mixed: a sync for what is stored and one for what is rejected, in each group.
  CHECK(room.engine.stats().wal_syncs < 30);
}

TEST_CASE("mqtt listener: names of the store's own are refused to clients") {
  ListenerFixture room;
  auto compiled = mqtt::compile_rules({mqtt_rule("{namespace}/{device}/{sensor}")});
  REQUIRE(compiled.ok());
  room.listener->set_rules(std::move(compiled).value());  // as when the settings are read again
  RawClient client = room.client(mqtt_connect("a"));
  client.send(mqtt_publish("_audit/d/x", "1", {.packet_id = 1}) +
              mqtt_publish("home/d/x", "1", {.packet_id = 2}));
  CHECK(client.gets(mqtt_puback(1) + mqtt_puback(2)));
  CHECK(room.readings("home", "d", "x").size() == 1);
  CHECK(room.listener->status().counters.rejected == 1);
}

TEST_CASE("mqtt listener: a client that connects again takes its session over") {
  ListenerFixture room;
  RawClient first = room.client();
  first.send(mqtt_connect("a", {.version = 5}));
  REQUIRE(first.receive(1) == "\x20");
  RawClient second = room.client();
  second.send(mqtt_connect("a", {.version = 5}));
  REQUIRE(second.receive(1) == "\x20");
  const std::string rest = first.receive_all();
  CHECK(rest.find("\xe0") != std::string::npos);
  CHECK(rest.find("\x8e") != std::string::npos);
  CHECK(eventually([&] { return room.listener->status().connections == 1; }));
  CHECK(room.listener->status().taken_over == 1);
  CHECK(room.listener->status().failed == 0);
}

TEST_CASE("mqtt listener: many publishers at once share syncs, and each gets its own answers") {
  ListenerFixture room;
  const unsigned count = static_cast<unsigned>(share_of(2'000));
  constexpr unsigned kClients = 8;
  std::deque<RawClient> clients;
  std::vector<std::thread> threads;
  for (unsigned c = 0; c < kClients; ++c) {
    clients.push_back(room.client(mqtt_connect("client " + std::to_string(c))));
    threads.emplace_back([&, c] {
      std::string many;
      for (unsigned i = 0; i < count; ++i) {
        many += mqtt_publish("s/d" + std::to_string(c) + "/x", std::to_string(i),
                             {.packet_id = i + 1 + c});
      }
      clients[c].send(many);
      std::string want;
      for (unsigned i = 0; i < count; ++i) want += mqtt_puback(i + 1 + c);
      CHECK(clients[c].gets(want));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned c = 0; c < kClients; ++c) CHECK(room.stored("d" + std::to_string(c)) == count);
  CHECK(room.engine.stats().wal_syncs < kClients * count / 2);
}

TEST_CASE("mqtt listener: who does not say who it is is shown out") {
  mqtt::ListenerOptions options = patient();
  options.connect_ns = 20 * kMs;
  ListenerFixture room(options);
  RawClient silent = room.client();
  RawClient slow = room.client();
  slow.send(mqtt_connect("a").substr(0, 3));
  CHECK(silent.receive_all().empty());
  CHECK(slow.receive_all().empty());
}

TEST_CASE("mqtt listener: half a packet has a deadline, an idle client has none") {
  mqtt::ListenerOptions options = patient();
  options.packet_grace_ns = 20 * kMs;
  ListenerFixture room(options);
  RawClient idle = room.client(mqtt_connect("idle"));
  RawClient half = room.client();
  half.send(mqtt_connect("half", {.version = 5}));
  REQUIRE(half.receive(1) == "\x20");
  half.send(mqtt_publish("s/d/x", "1", {.version = 5}).substr(0, 5));
  CHECK(half.receive_all().find("\xe0") != std::string::npos);
  idle.send(kMqttPing);
  CHECK(idle.gets(kMqttPong));
  CHECK(room.stored() == 0);
}

TEST_CASE("mqtt listener: a keep-alive that passes in silence ends the connection") {
  ListenerFixture room(patient());
  RawClient client = room.client();
  client.send(mqtt_connect("a", {.version = 5, .keep_alive = 1}));
  const std::string all = client.receive_all();
  CHECK(all.find("\x8d") != std::string::npos);
  CHECK(room.listener->status().failed == 1);
}

TEST_CASE("mqtt listener: who does not read its answers is not read either, then shown out") {
  mqtt::ListenerOptions options = patient();
  options.write_grace_ns = 20 * kMs;
  ListenerFixture room(options);
  RawClient client = room.client(mqtt_connect("a"));
  std::string pings;
  for (int i = 0; i < 10'000; ++i) pings += kMqttPing;
  bool cut = false;
  for (int i = 0; i < 10'000 && !cut; ++i) cut = !client.send(pings);
  CHECK(cut);
  CHECK(eventually([&] { return room.listener->status().connections == 0; }));
}

TEST_CASE("mqtt listener: at its limit it says so, and strangers give way to newcomers") {
  mqtt::ListenerOptions options;
  options.connections = 4;
  ListenerFixture room(options);
  std::deque<RawClient> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(room.client());
  std::deque<RawClient> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(room.client(mqtt_connect("c" + std::to_string(i))));
  RawClient refused = room.client();
  refused.send(mqtt_connect("late"));
  CHECK(refused.receive_all() == std::string("\x20\x02\x00\x03", 4));
  clients.front().close();
  CHECK(eventually([&] {
    RawClient again = room.client();
    again.send(mqtt_connect("late"));
    return again.receive(4) == kMqttAccepted;
  }));
}

TEST_CASE("mqtt listener: one address does not take every connection") {
  mqtt::ListenerOptions options = patient();
  options.connections_per_address = 2;
  ListenerFixture room(options);
  std::deque<RawClient> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(room.client(mqtt_connect("c" + std::to_string(i))));
  RawClient refused = room.client();
  refused.send(mqtt_connect("late", {.version = 5}));
  CHECK(refused.receive_all().find("mqtt.connections-per-address") != std::string::npos);
  clients.front().close();
  CHECK(eventually([&] {
    RawClient again = room.client();
    again.send(mqtt_connect("late"));
    return again.receive(4) == kMqttAccepted;
  }));
}

TEST_CASE("mqtt listener: clients are told when it stops") {
  ListenerFixture room;
  RawClient client = room.client();
  client.send(mqtt_connect("a", {.version = 5}));
  REQUIRE(client.receive(1) == "\x20");
  room.listener->stop();
  CHECK(client.receive_all().find("\x8b") != std::string::npos);
}

TEST_CASE("mqtt listener: a port that is taken is said so") {
  ListenerFixture room;
  mqtt::ListenerOptions same = room.options;
  same.port = room.listener->port();
  const auto second =
      mqtt::MqttListener::start(same, {room.engine, system_random(), room.rules, room.limits,
                                       *room.pipeline, *room.rejected, system_clock(), nullptr});
  CHECK(second.status().code() == StatusCode::AlreadyExists);
}

TEST_CASE(
    "mqtt listener: a restart finds the sessions of QoS 2, and a clean start waits for the drive") {
  ListenerFixture room;
  const std::string connect = mqtt_connect("a", {.clean = false});
  const std::string publish = mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 9});
  RawClient first = room.client(connect);
  first.send(publish);
  CHECK(first.gets(mqtt_pubrec(9)));
  room.listener.reset();
  room.start();
  CHECK(room.listener->status().sessions == 1);
  RawClient second = room.client();
  second.send(connect);
  CHECK(second.gets(kMqttAcceptedPresent));
  second.send(publish);
  CHECK(second.gets(mqtt_pubrec(9)));
  CHECK(room.stored() == 1);
  second.close();

  room.engine.fail_writes(out_of_space("full"));
  RawClient clean = room.client();
  clean.send(mqtt_connect("a", {.clean = true, .keep_alive = 1}) + kMqttPing);
  CHECK(eventually([&] { return room.listener->status().counters.waiting_since_ns != 0; }));
  // Others are let in meanwhile.
  RawClient other = room.client(mqtt_connect("b", {.clean = false}));
  CHECK(!clean.readable(0));
  room.engine.fail_writes(ok());
  CHECK(clean.gets(kMqttAccepted + kMqttPong));
  clean.send(publish);
  CHECK(clean.gets(mqtt_pubrec(9)));
  CHECK(room.stored() == 2);
}

TEST_CASE("mqtt listener: QoS 2 that a limit refuses is remembered too, and what came with it") {
  ListenerFixture room({}, 2);
  const std::string connect = mqtt_connect("a", {.clean = false});
  const std::string publish = mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 1}) +
                              mqtt_publish("s/d/y", "1", {.qos = 2, .packet_id = 2}) +
                              mqtt_publish("s/d/x", "2", {.qos = 2, .packet_id = 3});
  RawClient filler = room.client(mqtt_connect("b"));
  filler.send(mqtt_publish("else", "1", {.packet_id = 1}));
  CHECK(filler.gets(mqtt_puback(1)));
  for (const bool restarted : {false, true}) {
    CAPTURE(restarted);
    if (restarted) {
      room.listener.reset();
      room.start();
    }
    RawClient client = room.client();
    client.send(connect + publish);
    CHECK(client.gets(restarted ? kMqttAcceptedPresent : kMqttAccepted));
    CHECK(client.gets(mqtt_pubrec(1) + mqtt_pubrec(2) + mqtt_pubrec(3)));
    CHECK(room.stored() == 2);
    CHECK(room.readings("_rejected", "mqtt", "message").size() == 2);
  }
}

TEST_CASE("mqtt listener: a session that ends while nobody is connected leaves no record") {
  ListenerFixture room;
  const NamespaceId id = room.engine.find_namespace(mqtt::kMqttNamespace)->id;
  {
    RawClient client = room.client();
    client.send(mqtt_connect("a", {.version = 5, .properties = bytes_of({0x11, 0, 0, 0, 1})}) +
                mqtt_publish("s/d/x", "1", {.qos = 2, .packet_id = 9, .version = 5}));
    CHECK(eventually([&] { return room.engine.range_stats(id, {}, {})->entries == 2; }));
  }
  CHECK(eventually([&] { return room.engine.range_stats(id, {}, {})->entries == 0; }));
  CHECK(room.listener->status().sessions == 0);
}
