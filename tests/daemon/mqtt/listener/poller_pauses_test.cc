#include <thread>

#include "daemon/mqtt/listener/listener_fixture.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr unsigned kMessages = 3'000;

// Where one device may bring so many readings a second.
struct RateFixture : ListenerFixture {
  explicit RateFixture(std::uint32_t per_second, std::uint32_t burst) {
    listener.reset();
    limited = std::make_unique<ingest::IngestPipeline>(
        engine, *catalog, system_clock(), nullptr, nullptr, nullptr, nullptr,
        ingest::DeviceRateLimits{.per_second = per_second, .burst = burst});
    limited.swap(pipeline);
    open_rejected(1'000);
    start();
  }
  ~RateFixture() { listener.reset(); }

  std::unique_ptr<ingest::IngestPipeline> limited;  // the one before
};

std::string flood(unsigned first, unsigned count) {
  std::string all;
  for (unsigned id = first; id < first + count; ++id) {
    all += mqtt_publish("s/d/x", std::to_string(id) + std::string(200, ' '), {.packet_id = id});
  }
  return all;
}

std::string acks(unsigned first, unsigned count) {
  std::string all;
  for (unsigned id = first; id < first + count; ++id) all += mqtt_puback(id);
  return all;
}

}  // namespace

TEST_CASE("mqtt listener: a device over its rate waits, loses nothing and holds up nobody") {
  RateFixture room(1'000, 100);
  RawClient client = room.client(mqtt_connect("a", {.keep_alive = 1}));
  const std::int64_t begin_ns = system_clock().boot_ns();
  std::thread sender([&] { CHECK(client.send(flood(1, kMessages))); });
  REQUIRE(eventually([&] { return room.pipeline->rates().waits() > 0; }));
  RawClient other = room.client(mqtt_connect("b"));
  other.send(mqtt_publish("s/e/x", "1"));
  CHECK(other.gets(mqtt_puback(1)));
  CHECK(client.gets(acks(1, kMessages)));
  sender.join();
  CHECK(room.stored() == kMessages);
  // Nothing more is read before all of these are paid off.
  client.send(mqtt_publish("s/d/x", "last", {.packet_id = 1}));
  CHECK(client.gets(mqtt_puback(1)));
  CHECK((system_clock().boot_ns() - begin_ns) / 1'000'000 >= std::int64_t{kMessages} - 100);
  CHECK(room.stored("e") == 1);
  CHECK(room.listener->status().failed == 0);
}

TEST_CASE("mqtt listener: without a limit nobody waits") {
  RateFixture room(0, 1);
  RawClient client = room.client(mqtt_connect("a"));
  std::thread sender([&] { CHECK(client.send(flood(1, kMessages))); });
  CHECK(client.gets(acks(1, kMessages)));
  sender.join();
  CHECK(room.pipeline->rates().waits() == 0);
}

TEST_CASE("mqtt listener: whoever is held back does not go on through another connection") {
  RateFixture room(1, 10);
  RawClient client = room.client(mqtt_connect("a"));
  client.send(flood(1, 100));
  CHECK(client.gets(acks(1, 100)));
  REQUIRE(room.pipeline->rates().waits() > 0);
  for (unsigned i = 0; i < 5; ++i) {
    RawClient again = room.client(mqtt_connect("c" + std::to_string(i)));
    again.send(flood(1'000 + i * 100, 100));
    CHECK(again.receive_all().empty());  // closed, and nothing is acknowledged
  }
  CHECK(room.stored() < 100 + 5 * 2);
  CHECK(room.listener->status().failed == 5);
  RawClient other = room.client(mqtt_connect("b"));
  other.send(mqtt_publish("s/e/x", "1"));
  CHECK(other.gets(mqtt_puback(1)));
}
