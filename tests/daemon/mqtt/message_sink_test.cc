#include "mqtt/message_sink.h"

#include <thread>

#include "audit/audit_reader.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"

using namespace edgecase;
using mqtt::Delivery;
using test::eventually;

namespace {

struct SinkFixture : test::MqttFixture {
  explicit SinkFixture(std::int64_t hold = 0, catalog::CatalogLimits limits = {}) {
    auto opened = catalog::Catalog::open(engine, limits);
    REQUIRE(opened.ok());
    catalog = std::move(opened).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, system_clock());
    auto compiled = mqtt::compile_rules({test::mqtt_rule("s/{device}/{sensor}")});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
    open_rejected(100);
    sink = std::make_unique<mqtt::MessageSink>(rules, config::LimitSettings{}, *pipeline, *rejected,
                                               system_clock(), nullptr, hold);
  }
  Delivery deliver(std::string_view topic, std::string_view payload, std::uint16_t packet_id = 1,
                   bool redelivered = false, bool retained = false) {
    return sink->deliver(
        {topic, payload, packet_id == 0 ? 0 : 1, packet_id, redelivered, retained});
  }

  std::vector<mqtt::TopicRule> rules;
  std::unique_ptr<mqtt::MessageSink> sink;
};

}  // namespace

TEST_CASE("message sink: stores, ignores and rejects, and acknowledges all three") {
  SinkFixture fixture;
  CHECK(fixture.deliver("s/k/t", "21.5") == Delivery::Acknowledge);
  CHECK(fixture.deliver("s/k/t", "") == Delivery::Acknowledge);
  CHECK(fixture.deliver("s/k/t", "{\"a\":") == Delivery::Acknowledge);
  CHECK(fixture.deliver("else/where", "1") == Delivery::Acknowledge);
  CHECK(fixture.readings("default", "k", "t").size() == 1);
  CHECK(fixture.readings("_rejected", "mqtt", "message").size() == 2);
  const auto counters = fixture.sink->counters();
  CHECK(counters.messages == 4);
  CHECK(counters.readings == 1);
  CHECK(counters.ignored == 1);
  CHECK(counters.rejected == 2);
}

TEST_CASE("message sink: the audit log tells connection and rule, of messages of either kind") {
  test::TempDirectory directory;
  SinkFixture fixture;
  SeededRandom random(1);
  auto log = audit::AuditLog::open(
      {.mode = audit::Mode::Batched, .head_directory = directory.path(), .runs_thread = false},
      {fixture.engine, posix_file_system(), system_clock(), random});
  REQUIRE(log.ok());
  ingest::IngestPipeline pipeline(fixture.engine, *fixture.catalog, system_clock(), nullptr,
                                  nullptr, log->get());
  fixture.rules = mqtt::compile_rules({test::mqtt_rule("s/{device}/{sensor}"),
                                       test::mqtt_rule("home/secret/{device}/{sensor}")})
                      .value();
  fixture.sink = std::make_unique<mqtt::MessageSink>(fixture.rules, config::LimitSettings{},
                                                     pipeline, *fixture.rejected, system_clock(),
                                                     nullptr, 0, "mqtt broker:1883 as edgecase");
  CHECK(fixture.deliver("home/secret/k/t", "1") == Delivery::Acknowledge);
  CHECK(fixture.deliver("s/k/t", "2", 0) == Delivery::Acknowledge);  // QoS 0: gathered
  fixture.sink.reset();                                              // and stored
  auto cursor = audit::RecordCursor::open(**log, {});
  REQUIRE(cursor.ok());
  std::vector<std::string> actors;
  for (audit::Record record; (*cursor)->next(record).value();) actors.push_back(record.actor);
  CHECK(actors == std::vector<std::string>{"mqtt broker:1883 as edgecase rule 2",
                                           "mqtt broker:1883 as edgecase rule 1"});
  cursor->reset();
  log->reset();
}

TEST_CASE("message sink: withholds while the drive refuses, also a rejection") {
  for (const Status& status : {out_of_space("full"), io_error("broken"), unavailable("gone"),
                               busy("the log is at its limit")}) {
    SinkFixture fixture;
    fixture.engine.fail_writes(status);
    CHECK(fixture.deliver("s/k/t", "1") == Delivery::Withhold);
    CHECK(fixture.deliver("s/k/t", "{") == Delivery::Withhold);
    fixture.engine.fail_writes(ok());
    CHECK(fixture.deliver("s/k/t", "1") == Delivery::Acknowledge);
    CHECK(fixture.readings("default", "k", "t").size() == 1);
    CHECK(fixture.sink->counters().withheld == 2);
  }
}

TEST_CASE("message sink: waits for the drive to come back") {
  SinkFixture fixture(60'000'000'000);
  fixture.engine.fail_writes(out_of_space("full"));
  std::thread healer([&fixture] {
    CHECK(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
    CHECK(fixture.sink->counters().waiting_for == "out of space: full");
    fixture.engine.fail_writes(ok());
  });
  CHECK(fixture.deliver("s/k/t", "1") == Delivery::Acknowledge);
  healer.join();
  CHECK(fixture.sink->counters().waiting_since_ns == 0);
  CHECK(fixture.readings("default", "k", "t").size() == 1);
}

TEST_CASE("message sink: an interrupt ends the wait") {
  SinkFixture fixture(60'000'000'000);
  fixture.engine.fail_writes(out_of_space("full"));
  std::thread stopper([&fixture] {
    CHECK(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
    fixture.sink->interrupt();
  });
  CHECK(fixture.deliver("s/k/t", "1") == Delivery::Withhold);
  stopper.join();
}

TEST_CASE("message sink: a limit of the catalog rejects instead of blocking everything") {
  catalog::CatalogLimits limits;
  limits.series = 2;
  SinkFixture fixture(0, limits);
  CHECK(fixture.deliver("s/k/a", "1") == Delivery::Acknowledge);
  CHECK(fixture.deliver("bad", "1") == Delivery::Acknowledge);  // takes the second series
  CHECK(fixture.deliver("s/k/b", "1") == Delivery::Acknowledge);
  CHECK(fixture.sink->counters().rejected == 2);
  const auto kept = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 2);
  CHECK(kept[1].text.find("limits.series") != std::string::npos);
}

TEST_CASE("message sink: QoS 0 messages are gathered and stored") {
  SinkFixture fixture;
  for (int i = 0; i < 1'000; ++i) fixture.deliver("s/k/t", std::to_string(i), 0);
  CHECK(eventually([&fixture] { return fixture.sink->counters().readings == 1'000; }));
  CHECK(fixture.readings("default", "k", "t").size() == 1'000);
  CHECK(fixture.engine.stats().wal_syncs < 1'001);
  fixture.deliver("s/k/t", "{", 0);
  CHECK(fixture.sink->counters().rejected == 1);
}

TEST_CASE("message sink: a redelivered or retained message is stored once") {
  SinkFixture fixture;
  for (std::uint16_t id = 1; id <= 100; ++id) {
    fixture.deliver("s/k/t", std::to_string(id), id);
  }
  CHECK(fixture.deliver("s/k/t", "100", 100, true) == Delivery::Acknowledge);
  CHECK(fixture.deliver("s/k/t", "100", 101, false, true) == Delivery::Acknowledge);
  CHECK(fixture.readings("default", "k", "t").size() == 100);
  CHECK(fixture.sink->counters().repeats_dropped == 2);
  // Another value, or a flag without a memory of it, is new.
  CHECK(fixture.deliver("s/k/t", "7", 100, true) == Delivery::Acknowledge);
  fixture.sink->new_session();
  CHECK(fixture.deliver("s/k/t", "99", 99, true) == Delivery::Acknowledge);
  CHECK(fixture.readings("default", "k", "t").size() == 102);
}
