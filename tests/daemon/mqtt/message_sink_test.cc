#include "mqtt/mqtt_source.h"

#include <atomic>

#include "audit/audit_log.h"
#include "daemon/mqtt/mqtt_fixture.h"
#include "support/mosquitto_broker.h"
#include "support/temp_directory.h"

using namespace edgecase;
using test::eventually;

namespace {

struct SinkFixture : test::MqttFixture {
  explicit SinkFixture(catalog::CatalogLimits limits = {}) {
    auto opened = catalog::Catalog::open(engine, limits);
    REQUIRE(opened.ok());
    catalog = std::move(opened).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, system_clock());
    auto compiled = mqtt::compile_rules({test::mqtt_rule("s/{device}/{sensor}")});
    REQUIRE(compiled.ok());
    rules = std::move(compiled).value();
    open_rejected(100);
    open_sink(*pipeline, "mqtt");
  }
  void open_sink(ingest::IngestPipeline& into, const char* source) {
    sink = std::make_unique<mqtt::MessageSink>(mqtt::SinkParts{.rules = rules,
                                                               .limits = settings,
                                                               .pipeline = into,
                                                               .rejected = *rejected,
                                                               .clock = system_clock(),
                                                               .source = source,
                                                               .wake = [this] { ++wakes; }});
  }
  void deliver(std::string_view topic, std::string_view payload, std::uint16_t packet_id = 1,
               bool redelivered = false, bool retained = false) {
    const mqtt::IncomingMessage message{.topic = topic,
                                        .payload = payload,
                                        .qos = packet_id == 0 ? 0 : 1,
                                        .packet_id = packet_id,
                                        .redelivered = redelivered,
                                        .retained = retained};
    sink->take({&message, 1});
  }
  // Everything that was delivered is durable.
  bool settles() {
    return eventually([this] { return sink->durable() == sink->appended(); });
  }

  const config::LimitSettings settings;
  std::vector<mqtt::TopicRule> rules;
  std::atomic<int> wakes{0};
  std::unique_ptr<mqtt::MessageSink> sink;
};

}  // namespace

TEST_CASE("message sink: stores, ignores and rejects, and all three become durable") {
  SinkFixture fixture;
  fixture.deliver("s/k/t", "21.5");
  fixture.deliver("s/k/t", "");
  fixture.deliver("s/k/t", "{\"a\":");
  fixture.deliver("else/where", "1");
  CHECK(fixture.sink->appended() == 4);
  REQUIRE(fixture.settles());
  CHECK(eventually([&fixture] { return fixture.wakes > 0; }));  // told after it is so
  CHECK(fixture.readings("default", "k", "t").size() == 1);
  CHECK(fixture.readings("_rejected", "mqtt", "message").size() == 2);
  const auto counters = fixture.sink->counters();
  CHECK(counters.messages == 4);
  CHECK(counters.readings == 1);
  CHECK(counters.ignored == 1);
  CHECK(counters.rejected == 2);
}

TEST_CASE("message sink: what nobody can read costs itself, and the message is kept beside it") {
  SinkFixture fixture;
  fixture.deliver("s/k/t", R"({"a":0x1F,"b":2,"c":nan})");
  fixture.deliver("s/k/t", R"({"b":3,"c":nan})");
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t.b").size() == 2);
  const auto rejected = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(rejected.size() == 1);
  CHECK(rejected.front().text.find("/a: \\\"0x1F\\\" is no decimal number") != std::string::npos);
  const auto counters = fixture.sink->counters();
  CHECK(counters.rejected == 1);
  CHECK(counters.readings == 2);
  CHECK(counters.skipped_values == 2);
}

TEST_CASE("message sink: records without a time of their own do not replace each other") {
  SinkFixture fixture;
  config::MqttRuleSettings rule = test::mqtt_rule("r/{device}");
  rule.records = "/";
  rule.time = "/at";
  fixture.rules = mqtt::compile_rules({rule}).value();
  fixture.open_sink(*fixture.pipeline, "mqtt");
  fixture.deliver("r/k", R"([{"t":1},{"t":2},{"at":5,"t":3},{"at":"1970-01-01T00:00:05Z","t":4}])");
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 3);
  CHECK(fixture.readings("default", "k", "t~2").size() == 1);
}

TEST_CASE("message sink: what comes again with a time that a statement erased stays out") {
  SinkFixture fixture;
  config::MqttRuleSettings rule = test::mqtt_rule("r/{device}");
  rule.time = "/at";
  fixture.rules = mqtt::compile_rules({rule}).value();
  erase::Fences fences(0, auth::Pseudonyms(Bytes(auth::kPseudonymKeyBytes, 'k')));
  constexpr std::int64_t kEndNs = 1'500'000'000'000'000'000;
  fences.set(fences.pseudonyms().of_device("default", "k"),
             {{{{INT64_MIN, kEndNs}, 1, kEndNs, erase::FenceKind::Copies}}});
  ingest::IngestPipeline pipeline(fixture.engine, *fixture.catalog, system_clock(), nullptr,
                                  nullptr, nullptr, &fences);
  fixture.open_sink(pipeline, "mqtt");
  fixture.deliver("r/k", R"({"t":1,"at":"2011-01-01T00:00:00Z"})", 1);
  fixture.deliver("r/k", R"({"t":2,"at":"2012-01-01T00:00:00Z"})", 2, true);
  fixture.deliver("r/k", R"({"t":3,"at":"2013-01-01T00:00:00Z"})", 3, false, true);
  fixture.deliver("r/k", R"({"t":4,"at":"2022-01-01T00:00:00Z"})", 4, true);
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 2);
  CHECK(fences.refused_count() == 2);
  fixture.sink.reset();
}

TEST_CASE("message sink: many messages share a sync") {
  SinkFixture fixture;
  for (std::uint16_t i = 1; i <= 1'000; ++i) fixture.deliver("s/k/t", std::to_string(i), i);
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 1'000);
  CHECK(fixture.engine.stats().wal_syncs < 1'000);
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
  fixture.open_sink(pipeline, "mqtt broker:1883 as edgecase");
  fixture.deliver("home/secret/k/t", "1");
  fixture.deliver("s/k/t", "2", 0);
  fixture.sink.reset();  // what waits is stored
  auto cursor = audit::RecordCursor::open(**log, {});
  REQUIRE(cursor.ok());
  std::vector<std::string> actors;
  for (audit::Record record; (*cursor)->next(record).value();) actors.push_back(record.actor);
  CHECK(actors == std::vector<std::string>{"mqtt broker:1883 as edgecase rule 2",
                                           "mqtt broker:1883 as edgecase rule 1"});
  cursor->reset();
  log->reset();
}

TEST_CASE("message sink: nothing is durable while the drive refuses, rejections neither") {
  for (const Status& status :
       {out_of_space("full"), io_error("broken"), unavailable("gone"),
        busy("the log is at its limit"), busy("cannot write /srv/limits.d/store/values/7.val")}) {
    SinkFixture fixture;
    fixture.engine.fail_writes(status);
    fixture.deliver("s/k/t", "1");
    fixture.deliver("s/k/t", "{");
    REQUIRE(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
    CHECK(fixture.sink->counters().waiting_for == status.to_string());
    CHECK(fixture.sink->durable() == 0);
    fixture.engine.fail_writes(ok());
    REQUIRE(fixture.settles());
    CHECK(fixture.sink->counters().waiting_since_ns == 0);
    CHECK(fixture.readings("default", "k", "t").size() == 1);
    CHECK(fixture.readings("_rejected", "mqtt", "message").size() == 1);
  }
}

TEST_CASE("message sink: what the drive refused at the end is never durable, nor what follows") {
  SinkFixture fixture;
  fixture.deliver("s/k/t", "1");
  REQUIRE(fixture.settles());
  fixture.engine.fail_writes(out_of_space("full"));
  fixture.deliver("s/k/t", "2");
  REQUIRE(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
  fixture.deliver("s/k/t", "3");  // in the group that follows
  // The first attempt after the stop fails, and the drive is well again: a gap must not be hidden.
  fixture.sink->stop();
  fixture.engine.fail_writes(ok());
  fixture.deliver("s/k/t", "4");
  fixture.deliver("s/k/t", "5", 0);
  CHECK(fixture.sink->durable() == 1);
  CHECK(fixture.sink->appended() == 5);
  CHECK(fixture.readings("default", "k", "t").size() == 1);
  CHECK(fixture.sink->counters().lost_at_qos0 == 1);
}

TEST_CASE("message sink: says when it is full, and when no more") {
  SinkFixture fixture;
  fixture.engine.fail_writes(out_of_space("full"));
  const std::string large(mqtt::MessageGroup::kBytesMax / 2, 'x');
  fixture.deliver("s/k/t", "1");
  REQUIRE(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
  CHECK_FALSE(fixture.sink->full());
  fixture.deliver("s/k/t", large);
  fixture.deliver("s/k/t", large);
  CHECK(fixture.sink->full());
  fixture.deliver("s/k/t", "2");  // what was received by then is still taken
  const int wakes = fixture.wakes;
  fixture.engine.fail_writes(ok());
  REQUIRE(fixture.settles());
  CHECK(eventually([&] { return !fixture.sink->full() && fixture.wakes > wakes; }));
  CHECK(fixture.readings("default", "k", "t").size() == 4);
}

TEST_CASE("message sink: a limit of the catalog rejects instead of blocking everything") {
  catalog::CatalogLimits limits;
  limits.series = 2;
  SinkFixture fixture(limits);
  for (const char* const topic : {"s/k/a", "bad", "s/k/b"}) {  // the second series is _rejected's
    fixture.deliver(topic, "1");
    REQUIRE(fixture.settles());
  }
  CHECK(fixture.sink->counters().rejected == 2);
  const auto kept = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 2);
  CHECK(kept[1].text.find("limits.series") != std::string::npos);
}

TEST_CASE("message sink: of a message what can be stored is, and it is kept for the rest") {
  catalog::CatalogLimits limits;
  limits.series = 2;
  SinkFixture fixture(limits);
  fixture.deliver("s/k/t", R"({"a":1,"b":2,"c":3})");
  fixture.deliver("s/k/t", R"({"b":4})");
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t.a").size() == 1);
  CHECK(fixture.readings("default", "k", "t.b").size() == 2);
  CHECK(fixture.readings("default", "k", "t.c").empty());
  const auto kept = fixture.readings("_rejected", "mqtt", "message");
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].text.find("1 of its readings: ") != std::string::npos);
  CHECK(kept[0].text.find("limits.series") != std::string::npos);
  CHECK(fixture.sink->counters().readings == 3);
}

TEST_CASE("message sink: a redelivered or retained message is stored once") {
  SinkFixture fixture;
  for (std::uint16_t id = 1; id <= 100; ++id) {
    fixture.deliver("s/k/t", std::to_string(id), id);
  }
  fixture.deliver("s/k/t", "100", 100, true);
  fixture.deliver("s/k/t", "100", 101, false, true);
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 100);
  CHECK(fixture.sink->counters().repeats_dropped == 2);
  // Another value, or a flag without a memory of it, is new.
  fixture.deliver("s/k/t", "7", 100, true);
  fixture.sink->new_session();
  fixture.deliver("s/k/t", "99", 99, true);
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 102);
}

TEST_CASE("message sink: a repeat of what waits for the drive is not stored twice") {
  SinkFixture fixture;
  for (std::uint16_t id = 1; id <= 100; ++id) fixture.deliver("s/k/t", std::to_string(id), id);
  REQUIRE(fixture.settles());
  fixture.engine.fail_writes(unavailable("gone"));
  fixture.deliver("s/k/t", "101", 101);
  REQUIRE(eventually([&fixture] { return fixture.sink->counters().waiting_since_ns != 0; }));
  fixture.deliver("s/k/t", "101", 101, true);
  CHECK(fixture.sink->durable() == 100);
  fixture.engine.fail_writes(ok());
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 101);
}

TEST_CASE("message sink: many at once become durable together, and each is judged alone") {
  SinkFixture fixture;
  const std::vector<mqtt::IncomingMessage> messages = {
      {.topic = "s/k/t", .payload = "1", .qos = 1, .packet_id = 1},
      {.topic = "s/k/t", .payload = "{", .qos = 1, .packet_id = 2},
      {.topic = std::string_view("s/\xff\0/t", 6), .payload = "2", .qos = 1, .packet_id = 3},
      {.topic = "", .payload = "3", .qos = 1, .packet_id = 4},
      {.topic = "s/k/t", .payload = "9", .qos = 1, .packet_id = 5, .oversized_bytes = 1u << 30},
      {.topic = "s/k/t", .payload = "4", .qos = 0}};
  fixture.sink->take(messages);
  CHECK(fixture.sink->appended() == messages.size());
  REQUIRE(fixture.settles());
  CHECK(fixture.readings("default", "k", "t").size() == 2);
  CHECK(fixture.readings("_rejected", "mqtt", "message").size() == 4);
  CHECK(fixture.sink->counters().rejected == 4);
}

TEST_CASE("message sink: a device over its rate holds acknowledgements back, and loses nothing") {
  SinkFixture fixture;
  ingest::IngestPipeline limited(fixture.engine, *fixture.catalog, system_clock(), nullptr, nullptr,
                                 nullptr, nullptr, {.per_second = 100, .burst = 10});
  fixture.open_sink(limited, "mqtt");
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (std::uint16_t i = 1; i <= 110; ++i) fixture.deliver("s/k/t", std::to_string(i), i);
  REQUIRE(eventually([&] { return fixture.sink->counters().waiting_since_ns != 0; }));
  CHECK(fixture.sink->counters().waiting_for.find("limits.device-rate = 100") != std::string::npos);
  CHECK(fixture.sink->durable() < fixture.sink->appended());
  REQUIRE(fixture.settles());
  CHECK(system_clock().boot_ns() - begin_ns >= 1'000'000'000);
  CHECK(fixture.readings("default", "k", "t").size() == 110);
  CHECK(limited.rates().waits() > 0);
  // What is stored is acknowledged when the daemon stops meanwhile.
  for (std::uint16_t i = 1; i <= 60'000; ++i) fixture.deliver("s/k/t", std::to_string(i), i);
  REQUIRE(eventually([&] { return fixture.sink->counters().waiting_since_ns != 0; }));
  fixture.sink->stop();
  CHECK(fixture.sink->durable() == fixture.sink->appended());
  fixture.sink.reset();
}

TEST_CASE("message sink: a clock that was never set costs no value") {
  SinkFixture fixture;
  auto rule = test::mqtt_rule("s/{device}");
  rule.time = "/ts";
  fixture.rules = mqtt::compile_rules({rule}).value();
  int count = 0;
  for (const char* time :
       {"\"0001-01-01T00:00:00Z\"", "\"1970-01-01T00:00:05Z\"", "\"9999-12-31T23:59:59Z\"",
        "\"soon\"", "\"2026-11-20T14:00:00\"", "4711", "-5", "0", "1e30", "-1e30", "true",
        "99999999999999999999", "\"NaN\"", "\"\""}) {
    CAPTURE(time);
    const std::string payload = "{\"t\":" + std::to_string(++count) + ",\"ts\":" + time + "}";
    fixture.deliver("s/k", payload, static_cast<std::uint16_t>(count));
    REQUIRE(fixture.settles());
    CHECK(fixture.readings("default", "k", "t").size() == static_cast<std::size_t>(count));
    CHECK(fixture.readings("default", "k", "t").front().time_ns > ingest::kFirstBelievableNs);
    CHECK(fixture.sink->counters().times_unbelievable == static_cast<std::uint64_t>(count));
  }
  CHECK(fixture.sink->counters().rejected == 0);
  fixture.deliver("s/k", "{\"t\":99,\"ts\":null}", 99);
  REQUIRE(fixture.settles());
  CHECK(fixture.sink->counters().times_unbelievable == static_cast<std::uint64_t>(count));
}

TEST_CASE("message sink: values of a clock that stands are all there, redelivered ones once") {
  SinkFixture fixture;
  auto rule = test::mqtt_rule("");
  rule.preset = "zigbee2mqtt";
  fixture.rules = mqtt::compile_rules({rule}).value();
  const auto send = [&fixture](int value, std::uint16_t packet_id, bool again = false) {
    const std::string payload = R"({"t":)" + std::to_string(value) +
                                R"(,"battery":90,"last_seen":"2026-11-20T14:00:00+01:00"})";
    fixture.deliver("zigbee2mqtt/lamp", payload, packet_id, again);
    REQUIRE(fixture.settles());
  };
  // It takes this many different packet ids before a redelivery can be told.
  for (std::uint16_t i = 1; i <= 80; ++i) send(i, i);
  send(80, 80, true);
  CHECK(fixture.readings("default", "lamp", "t").size() == 80);
  CHECK(fixture.readings("default", "lamp", "battery").size() == 1);
  CHECK(fixture.sink->counters().times_repeated == 79);
  CHECK(fixture.sink->counters().repeats_dropped == 1);
}
