#include "retention/retention_service.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ingest/ingest_pipeline.h"
#include "retention/retention_records.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/reading.h"

namespace edgecase::retention {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kNow = test::ManualClock::kStartWallNs;

struct Room {
  explicit Room(std::int64_t default_ns = kRetentionForever) {
    engine.set_expiry_now_ns(kNow);
    restart(default_ns);
  }
  void restart(std::int64_t default_ns) {
    pipeline.reset();
    service = RetentionService::open(engine, *catalog, default_ns).value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock, service.get());
  }
  // Ten readings, one an hour, the last of now.
  void write(const std::string& device, const std::string& sensor,
             const std::string& ns = "default", std::int64_t topic_ns = wire::kRetentionUnsaid) {
    wire::ReadingBatch batch;
    for (int hour = 0; hour < 10; ++hour) {
      wire::Reading reading{ns, device, sensor, kNow - hour * kHour, wire::Value::of_int64(hour)};
      reading.retention_ns = topic_ns;
      batch.readings.push_back(reading);
    }
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    const auto authorized = auth::authorize_write(principal, batch);
    REQUIRE(authorized.ok());
    const Status stored = pipeline->ingest(*authorized);
    CAPTURE(stored.to_string());
    REQUIRE(stored.ok());
  }
  Status set(const std::string& selector, std::int64_t retention_ns,
             const std::string& ns = "default") {
    return service->set({ns, wire::parse_selector(selector).value(), retention_ns});
  }
  Status clear(const std::string& selector, const std::string& ns = "default") {
    return service->clear(ns, wire::parse_selector(selector).value());
  }
  // Readings of a series that can be read.
  std::uint64_t left(const std::string& device, const std::string& sensor,
                     const std::string& ns = "default") {
    const auto entry = catalog->find(ns, device, sensor);
    REQUIRE(entry.ok());
    std::uint64_t count = 0;
    auto scan = engine.scan(entry->id.namespace_id, {}, {}).value();
    for (; scan->valid(); scan->next()) {
      wire::ReadingKey key;
      REQUIRE(wire::decode_reading_key(scan->key(), key));
      count += key.device == entry->id.device && key.sensor == entry->id.sensor ? 1u : 0u;
    }
    return count;
  }

  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<catalog::Catalog> catalog = catalog::Catalog::open(engine, {}).value();
  std::unique_ptr<RetentionService> service;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
};

}  // namespace

TEST_CASE("of the rules that match a series the most specific one holds, in whichever order") {
  struct Given {
    const char* selector;
    std::int64_t hours;
  };
  const std::vector<Given> given = {{"*/*", 9},     {"kitchen/*", 2},   {"*/temp", 5},
                                    {"kit*/*", 7},  {"kitchen/hum", 4}, {"k?tch*/hum", 8},
                                    {"cellar/*", 1}};
  struct Case {
    const char* device;
    const char* sensor;
    std::uint64_t want;  // readings: one an hour, and that of now
  };
  for (const bool backwards : {false, true}) {
    CAPTURE(backwards);
    Room room;
    const std::vector<Case> cases = {
        {"kitchen", "temp", 3}, {"kitchen", "hum", 5}, {"kit", "temp", 6},  {"kit", "co2", 8},
        {"attic", "temp", 6},   {"attic", "co2", 10},  {"cellar", "co2", 2}};
    for (const Case& c : cases) room.write(c.device, c.sensor);
    std::vector<Given> order = given;
    if (backwards) std::reverse(order.begin(), order.end());
    // Longer rules never bring back what shorter ones took: each is set before the next is looked
    // at.
    for (const Given& each : order) {
      const Status set = room.set(each.selector, each.hours * kHour);
      CAPTURE(set.to_string());
      REQUIRE(set.ok());
    }
    for (const Case& c : cases) {
      CAPTURE(c.device);
      CAPTURE(c.sensor);
      const auto entry = room.catalog->find("default", c.device, c.sensor);
      REQUIRE(entry.ok());
      CHECK(room.service->retention_ns(*entry) == static_cast<std::int64_t>(c.want - 1) * kHour);
      CHECK(room.left(c.device, c.sensor) <= c.want);
    }
    // New series get theirs with their first reading.
    room.write("kitchen", "noise");
    CHECK(room.left("kitchen", "noise") == 3);
    room.write("kitten", "temp");
    CHECK(room.left("kitten", "temp") == 6);
    room.restart(kRetentionForever);
    room.write("kitchen", "light");
    CHECK(room.left("kitchen", "light") == 3);
    CHECK(room.service->rules().size() == given.size());
  }
}

TEST_CASE("a rule holds for what is stored, both ways, and what expired never returns") {
  Room room;
  room.write("kitchen", "temp");
  REQUIRE(room.set("kitchen/temp", 4 * kHour).ok());
  CHECK(room.left("kitchen", "temp") == 5);
  REQUIRE(room.set("kitchen/temp", 8 * kHour).ok());
  CHECK(room.left("kitchen", "temp") == 5);
  room.engine.set_expiry_now_ns(kNow + 3 * kHour);
  CHECK(room.left("kitchen", "temp") == 5);  // longer, it keeps what the old one would have lost
  REQUIRE(room.clear("kitchen/temp").ok());
  room.engine.set_expiry_now_ns(kNow + 300 * kHour);
  CHECK(room.left("kitchen", "temp") == 5);
  CHECK(room.engine.retention_rules().empty());
}

TEST_CASE("namespaces have rules of their own, and the default holds where there is none") {
  Room room(6 * kHour);
  room.write("kitchen", "temp");
  room.write("kitchen", "temp", "plant");
  room.write("mqtt", "message", "_rejected");
  CHECK(room.left("kitchen", "temp") == 7);
  CHECK(room.left("mqtt", "message", "_rejected") == 10);
  REQUIRE(room.set("*/*", kHour, "plant").ok());
  REQUIRE(room.set("kitchen", 3 * kHour, "").ok());
  CHECK(room.left("kitchen", "temp", "plant") == 2);
  CHECK(room.left("kitchen", "temp") == 4);
  room.write("attic", "temp", "office");
  CHECK(room.left("attic", "temp", "office") == 7);
}

TEST_CASE("a rule for everything that gets shorter takes nothing of what another rule keeps") {
  Room room(8 * kHour);
  room.write("kitchen", "temp");
  // The same as for everything, so that nothing tells the two apart.
  REQUIRE(room.set("kitchen", 8 * kHour).ok());
  CHECK(room.left("kitchen", "temp") == 9);
  SUBCASE("by a rule") {
    REQUIRE(room.set("*/*", 2 * kHour).ok());
  }
  SUBCASE("by the configuration") {
    room.restart(2 * kHour);
  }
  CHECK(room.left("kitchen", "temp") == 9);
}

TEST_CASE("of a series that comes later all is there that its own rule keeps") {
  Room room(2 * kHour);
  REQUIRE(room.set("cellar*", 100 * kHour).ok());
  room.write("cellar1", "temp");
  CHECK(room.left("cellar1", "temp") == 10);
  room.write("kitchen", "temp", "default", 100 * kHour);  // of a topic
  CHECK(room.left("kitchen", "temp") == 10);
}

TEST_CASE("what a topic's rule says holds below the user's, above those for everything") {
  Room room(9 * kHour);
  room.write("kitchen", "temp", "default", 2 * kHour);
  CHECK(room.left("kitchen", "temp") == 3);
  REQUIRE(room.set("*/*", 8 * kHour).ok());
  room.write("attic", "temp", "default", 2 * kHour);
  CHECK(room.left("attic", "temp") == 3);
  REQUIRE(room.set("cellar*", kHour).ok());
  room.write("cellar1", "temp", "default", 2 * kHour);
  CHECK(room.left("cellar1", "temp") == 2);
  // It outlives the process, and the configuration may change its mind.
  room.restart(9 * kHour);
  const auto entry = room.catalog->find("default", "kitchen", "temp");
  REQUIRE(entry.ok());
  CHECK(room.service->retention_ns(*entry) == 2 * kHour);
  room.write("kitchen", "temp", "default", kHour);
  CHECK(room.left("kitchen", "temp") == 2);
  room.write("kitchen", "temp", "default", wire::kRetentionOfNoTopic);
  CHECK(room.service->retention_ns(*entry) == 8 * kHour);
}

TEST_CASE("a batch of which every reading was refused needs no rule") {
  Room room;
  REQUIRE(room.set("*/*", 60'000'000'000).ok());
  CHECK(room.service->cover({}, {}, false).ok());
  CHECK(room.service->cover({}, {}, true).ok());
}

TEST_CASE("a preview tells what would go, how much and when, and changes nothing") {
  Room room;
  room.write("kitchen", "temp");
  room.write("attic", "temp");
  const auto preview = room.service->preview("default", {"*", "*"}, wire::Keeping{4 * kHour});
  REQUIRE(preview.ok());
  CHECK(preview->series == 2);
  CHECK(preview->readings == 20);
  CHECK(preview->count == 10);
  CHECK(preview->bytes > 0);
  CHECK(preview->oldest_ns == kNow - 9 * kHour);
  CHECK(preview->next_ns == kNow);  // that of four hours ago is just old enough
  REQUIRE(preview->affected.size() == 2);
  CHECK(preview->affected[0].now.raw_ns == kRetentionForever);
  CHECK(preview->affected[0].then.raw_ns == 4 * kHour);
  CHECK_FALSE(preview->erases_everything());
  CHECK(room.left("kitchen", "temp") == 10);
  CHECK(room.service->rules().empty());

  // A narrower rule that is there stays as it is.
  REQUIRE(room.set("kitchen", kRetentionForever).ok());
  CHECK(room.service->preview("default", {"*", "*"}, wire::Keeping{4 * kHour})->count == 5);
  room.engine.set_expiry_now_ns(kNow + 100 * kHour);
  CHECK(
      room.service->preview("default", {"attic", "*"}, wire::Keeping{kHour})->erases_everything());
  CHECK(room.service->preview("default", {"*", "*"}, std::nullopt)->count == 0);
}

TEST_CASE("a rule may name a device that has not come yet, and holds when it comes") {
  Room room;
  CHECK(room.service->preview("default", {"garage", "*"}, wire::Keeping{kHour})->series == 0);
  REQUIRE(room.set("garage", kHour).ok());
  REQUIRE(room.set("kitchen/temp", 2 * kHour).ok());
  room.write("garage", "temp");
  room.write("kitchen", "temp");
  CHECK(room.left("garage", "temp") < 10);
  CHECK(room.left("kitchen", "temp") > room.left("garage", "temp"));
}

TEST_CASE("a preview of clearing a rule tells what the rule behind it takes") {
  Room room;
  room.write("kitchen", "temp");
  REQUIRE(room.set("kitchen", kRetentionForever).ok());
  REQUIRE(room.set("*/*", 4 * kHour).ok());
  const Rule rule{"default", {"kitchen", "*"}, kRetentionForever};
  CHECK(room.service->preview_clear({&rule, 1})->count == 5);
  CHECK(room.left("kitchen", "temp") == 10);
  const Rule other{"default", {"*", "*"}, kRetentionForever};
  CHECK(room.service->preview_clear({&other, 1})->count == 0);
}

TEST_CASE("an unknown namespace is refused, and a rule the engine refuses is not remembered") {
  Room room;
  room.write("kitchen", "temp");
  CHECK(room.set("*/*", kHour, "nowhere").code() == StatusCode::NotFound);
  CHECK(room.set("kitchen", 0).code() == StatusCode::InvalidArgument);
  CHECK(room.set("kitchen", -kHour).code() == StatusCode::InvalidArgument);
  CHECK(room.clear("kitchen").code() == StatusCode::NotFound);
  room.engine.fail_writes(out_of_space("the drive is full"));
  CHECK(room.set("kitchen", kHour).code() == StatusCode::OutOfSpace);
  room.engine.fail_writes(ok());
  CHECK(room.service->rules().empty());
  CHECK(room.left("kitchen", "temp") == 10);
  room.restart(kRetentionForever);
  CHECK(room.service->rules().empty());
  CHECK(room.left("kitchen", "temp") == 10);
}

// What releases have written is read for good: these bytes never change.
TEST_CASE(
    "retention: rules without tiers, rules with them, and marks are read as they were written") {
  Room room;
  room.write("kitchen", "temp");
  const auto entry = room.catalog->find("default", "kitchen", "temp");
  REQUIRE(entry.ok());
  const NamespaceId records = room.engine.find_namespace(kRetentionNamespace)->id;
  const auto bytes = [](std::initializer_list<int> all) {
    Bytes text;
    for (const int each : all) text += static_cast<char>(each);
    return text;
  };
  // 2 h; 2 h, then 1m:1d, then 1h:forever; thinned before 1970-01-01T01:00:00Z in windows of 1m,
  // and erased before half past.
  const Bytes plain = bytes({1, 0, 0, 6, 0x8c, 0x61, 0x71, 0x40, 0});
  const Bytes tiered =
      bytes({2,    0,    0,    6,    0x8c, 0x61, 0x71, 0x40, 0,    0,    0,    0,    0x0d, 0xf8,
             0x47, 0x58, 0,    0,    0,    0x4e, 0x94, 0x91, 0x4f, 0,    0,    0,    0,    3,
             0x46, 0x30, 0xb8, 0xa0, 0,    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  const Bytes mark = bytes({1,    0,    0,    3, 0x46, 0x30, 0xb8, 0xa0, 0,    0,    0,    1, 0xa3,
                            0x18, 0x5c, 0x50, 0, 0,    0,    0,    0x0d, 0xf8, 0x47, 0x58, 0});
  const auto key = [](char kind, const char* device) {
    return Bytes(1, kind) + "default" + Bytes(1, '\0') + device + Bytes(1, '\0') + "*";
  };
  WriteBatch batch;
  batch.put(records, key('R', "attic"), plain);
  batch.put(records, key('R', "kitchen"), tiered);
  batch.put(records, 'W' + topic_key(entry->id), mark);
  REQUIRE(room.engine.write(batch, Durability::Sync).ok());
  room.restart(kRetentionForever);
  const std::vector<Rule> rules = room.service->rules();
  REQUIRE(rules.size() == 2);
  CHECK(wire::keeping_text(rules[0].keeping()) == "2h");
  CHECK(wire::keeping_text(rules[1].keeping()) == "2h then 1m:1d then 1h:forever");
  CHECK(room.service->marks().find(entry->id) == TierMark{kHour, kHour / 2, {60 * kSecond}});
  CHECK(room.service->keeping(*entry).tiers.size() == 2);
  CHECK(room.service->expiry_ns(*entry) == kRetentionForever);
  // And written so.
  for (const Rule& rule : rules) REQUIRE(room.service->set(rule).ok());
  CHECK(*room.engine.get(records, key('R', "attic"), {}) == plain);
  CHECK(*room.engine.get(records, key('R', "kitchen"), {}) == tiered);
  WriteBatch again;
  TierMarks::append(records, entry->id, {kHour, kHour / 2, {60 * kSecond}}, again);
  REQUIRE(room.engine.write(again, Durability::Sync).ok());
  CHECK(*room.engine.get(records, 'W' + topic_key(entry->id), {}) == mark);
}

TEST_CASE("retention: records of tiers that are cut, too long or newer stop the start in words") {
  struct Case {
    char kind;
    Bytes value;
    StatusCode want;
  };
  const Bytes eight(8, '\1');
  for (const Case& c :
       {Case{'R', "", StatusCode::Corruption}, Case{'R', "\1", StatusCode::Corruption},
        Case{'R', '\1' + eight + eight, StatusCode::Corruption},
        Case{'R', '\2' + eight, StatusCode::Corruption},
        Case{'R', '\2' + eight + eight, StatusCode::Corruption},
        Case{'R', '\2' + eight + eight + eight, StatusCode::Corruption},  // kept no longer
        Case{'R', '\3' + eight, StatusCode::Unsupported}, Case{'W', "", StatusCode::Corruption},
        Case{'W', '\1' + eight, StatusCode::Corruption},
        Case{'W', '\1' + eight + eight + "x", StatusCode::Corruption},
        Case{'W', '\1' + eight + eight + eight + eight + eight + eight + eight,
             StatusCode::Corruption},
        Case{'W', '\2' + eight, StatusCode::Unsupported}}) {
    Room room;
    const NamespaceId records = room.engine.find_namespace(kRetentionNamespace)->id;
    const Bytes key = c.kind == 'R'
                          ? Bytes("R") + "default" + Bytes(1, '\0') + "a" + Bytes(1, '\0') + "*"
                          : 'W' + topic_key({1, 2, 3});
    WriteBatch batch;
    batch.put(records, key, c.value);
    REQUIRE(room.engine.write(batch, Durability::Sync).ok());
    const auto opened = RetentionService::open(room.engine, *room.catalog, kRetentionForever);
    CAPTURE(c.value.size());
    CHECK(opened.status().code() == c.want);
  }
}

}  // namespace edgecase::retention
