#include "ingest/redating.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/erase/erase_room.h"
#include "mqtt/message_group.h"
#include "wire/time_text.h"

using namespace edgecase;
using erase::test::kHour;
using erase::test::kNow;
using erase::test::kSecond;
using ingest::Redating;

namespace {

// A store whose clock is not right yet.
struct EarlyRoom : erase::test::Room {
  explicit EarlyRoom(std::string boot = "a") { start(std::move(boot)); }
  // The daemon starts, on this boot or on another.
  void start(std::string boot) {
    boot_id = std::move(boot);
    redating.reset();
    restart();
    set_wrong();
    periods = ingest::UndatedPeriods::open(engine, clock, random, boot_id).value();
    pipeline->date_later(periods.get());
    redating = std::make_unique<Redating>(ingest::RedatingParts{
        .engine = engine,
        .catalog = *catalog,
        .clock = clock,
        .fences = service->fences(),
        .periods = *periods,
        .events = {.done = [this](const ingest::RedatedPeriod& each) { done.push_back(each); }}});
  }
  void set_wrong() {
    clock.set_wall_ns(5 * kSecond);
    clock.set_trust(ClockTrust::Untrusted);
  }
  void set_right(std::int64_t wall_ns = kNow) {
    clock.set_wall_ns(wall_ns);
    clock.set_trust(ClockTrust::Trusted);
  }
  Status send(const std::string& device, const std::vector<std::int64_t>& values,
              std::optional<std::int64_t> time_ns = std::nullopt) {
    wire::ReadingBatch batch;
    for (const std::int64_t value : values) {
      batch.readings.push_back({"default", device, "n", time_ns, wire::Value::of_int64(value)});
    }
    const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
    return pipeline->ingest(*auth::authorize_write(principal, batch));
  }
  // Values of a series by their times.
  std::map<std::int64_t, std::int64_t> stored(const std::string& device) {
    std::map<std::int64_t, std::int64_t> values;
    const auto entry = catalog->find("default", device, "n");
    if (!entry.ok()) return values;
    const auto range = erase::range_of_series(entry->id, {});
    for (auto at = engine.scan(entry->id.namespace_id, range, {}).value(); at->valid();
         at->next()) {
      wire::ReadingKey key;
      wire::Value value;
      REQUIRE(wire::decode_reading_key(at->key(), key));
      REQUIRE(wire::decode_value(at->value(), value));
      values[key.time_ns] = value.int64;
    }
    return values;
  }
  std::vector<std::int64_t> in_order(const std::string& device) {
    std::vector<std::int64_t> values;
    for (const auto& [time_ns, value] : stored(device)) values.push_back(value);
    return values;
  }

  std::string boot_id;
  std::unique_ptr<ingest::UndatedPeriods> periods;
  std::vector<ingest::RedatedPeriod> done;
  std::unique_ptr<Redating> redating;
};

using Values = std::map<std::int64_t, std::int64_t>;

}  // namespace

TEST_CASE("redating: what came before the clock was right gets its time once it is") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1}).ok());
  room.clock.advance(10 * kSecond);
  REQUIRE(room.send("d", {2, 3}).ok());
  REQUIRE(room.send("d", {4}, 77).ok());  // has its own
  CHECK(room.stored("d").size() == 4);
  CHECK(wire::is_undated_time(room.stored("d").rbegin()->first));
  REQUIRE(room.redating->look().ok());  // not yet
  CHECK(wire::is_undated_time(room.stored("d").rbegin()->first));
  CHECK(room.redating->status().waiting_periods == 1);

  room.clock.advance(20 * kSecond);
  room.set_right();
  REQUIRE(room.send("d", {5}).ok());
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == Values{{77, 4},
                                   {kNow - 30 * kSecond, 1},
                                   {kNow - 20 * kSecond, 2},
                                   {kNow - 20 * kSecond + 1, 3},
                                   {kNow, 5}});
  REQUIRE(room.done.size() == 1);
  CHECK(room.done[0].readings == 3);
  CHECK_FALSE(room.done[0].period.is_estimate);
  CHECK(room.redating->status().waiting_periods == 0);
  CHECK(room.redating->status().estimates.empty());
  const Values before = room.stored("d");
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == before);
  CHECK(room.done.size() == 1);
}

TEST_CASE("redating: a restart of the daemon in the same boot changes nothing") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1}).ok());
  room.clock.advance(10 * kSecond);
  room.start("a");
  REQUIRE(room.send("d", {2}).ok());
  room.clock.advance(10 * kSecond);
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == Values{{kNow - 20 * kSecond, 1}, {kNow - 10 * kSecond, 2}});
}

TEST_CASE("redating: of earlier boots it is the latest time that can be, in order, and told so") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1}).ok());
  room.clock.advance(10 * kSecond);
  REQUIRE(room.send("d", {2}).ok());
  room.start("b");
  REQUIRE(room.send("d", {3}).ok());
  REQUIRE(room.send("e", {4}).ok());
  room.start("c");
  REQUIRE(room.send("d", {5}).ok());
  room.clock.advance(5 * kSecond);
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.in_order("d") == std::vector<std::int64_t>{1, 2, 3, 5});
  const Values values = room.stored("d");
  const std::int64_t boot_c = kNow - room.clock.boot_ns();
  auto at = values.begin();
  const std::int64_t first = at->first;
  const std::int64_t second = (++at)->first;
  const std::int64_t third = (++at)->first;
  CHECK(second - first == 10 * kSecond);
  CHECK(second < third);
  CHECK(third < boot_c);
  CHECK(room.stored("e").begin()->first == boot_c - 1);  // the last of boot b
  CHECK((++at)->first == kNow - 5 * kSecond);
  const auto status = room.redating->status();
  CHECK(status.waiting_periods == 0);
  REQUIRE(status.estimates.size() == 2);
  CHECK(status.estimates[1].not_after_ns == boot_c);
}

TEST_CASE("redating: restored where the machine was started before, nothing is dated back") {
  EarlyRoom room;
  room.engine.set_expiry_now_ns(kNow - kHour);
  REQUIRE(room.send("d", {1}).ok());
  room.clock.advance(10 * kSecond);
  REQUIRE(room.send("d", {2}).ok());
  room.clock.advance(100 * kHour);
  room.start("another");
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == Values{{kNow - 1 - 10 * kSecond, 1}, {kNow - 1, 2}});
  REQUIRE(room.redating->status().estimates.size() == 1);
  CHECK(room.redating->status().estimates[0].not_after_ns == kNow);
}

TEST_CASE("redating: nothing expires before it has its time, and then what is due does") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1}).ok());
  const auto id = room.engine.find_namespace("default")->id;
  const RetentionRule rule{id, {}, kHour};
  REQUIRE(room.engine.set_retention({rule}).ok());
  room.clock.advance(kHour / 2);
  room.engine.set_expiry_now_ns(kNow);
  CHECK(room.in_order("d") == std::vector<std::int64_t>{1});
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == Values{{kNow - kHour / 2, 1}});
}

TEST_CASE("redating: a time that another reading has gives way to the next that is free") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1, 2}).ok());
  room.clock.advance(10 * kSecond);
  room.set_right();
  const std::int64_t then = kNow - 10 * kSecond;
  REQUIRE(room.send("d", {8}, then).ok());
  REQUIRE(room.send("d", {9}, then + 2).ok());
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d") == Values{{then, 8}, {then + 1, 1}, {then + 2, 9}, {then + 3, 2}});
}

TEST_CASE("redating: more readings than go at once, of many series") {
  EarlyRoom room;
  constexpr int kRounds = 3 * static_cast<int>(ingest::kMoveReadingsMax) / 100 + 1;
  std::vector<std::int64_t> sent;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> values;
    for (int i = 0; i < 100; ++i) values.push_back(static_cast<std::int64_t>(sent.size()) + i);
    REQUIRE(room.send("d", values).ok());
    REQUIRE(room.send("e" + std::to_string(round), values).ok());
    sent.insert(sent.end(), values.begin(), values.end());
    room.clock.advance(kSecond);
  }
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.in_order("d") == sent);
  CHECK(room.redating->status().redated_readings == 2 * sent.size());
  CHECK_FALSE(wire::is_undated_time(room.stored("e0").rbegin()->first));
}

TEST_CASE("redating: a drive that refuses delays it, and nothing is there twice") {
  EarlyRoom room;
  for (const char* device : {"a", "b", "c"}) REQUIRE(room.send(device, {1, 2}).ok());
  room.clock.advance(kSecond);
  room.set_right();
  for (std::uint64_t writes = 0; writes < 5; ++writes) {
    room.engine.fail_writes_after(writes % 2, out_of_space("full"));
    CHECK_FALSE(room.redating->look().ok());
    for (const char* device : {"a", "b", "c"})
      CHECK(room.in_order(device) == std::vector<std::int64_t>{1, 2});
    room.engine.fail_writes(ok());
    room.clock.advance(kSecond);  // the offset found first holds
    room.set_right(kNow + 3 * kSecond);
    if (writes == 2) room.start("a"), room.set_right(kNow + 9 * kSecond);
  }
  REQUIRE(room.redating->look().ok());
  for (const char* device : {"a", "b", "c"}) {
    CHECK(room.in_order(device) == std::vector<std::int64_t>{1, 2});
    CHECK_FALSE(wire::is_undated_time(room.stored(device).rbegin()->first));
  }
}

TEST_CASE("redating: what has been taken for an undated time before goes to the real one, too") {
  EarlyRoom room;
  const std::int64_t taken = room.pipeline->times().take_arrival_time();  // waits in a group
  REQUIRE(room.send("d", {1}, taken).ok());
  room.clock.advance(kSecond);
  room.set_right();
  REQUIRE(room.redating->look().ok());
  // Again, and for the first time in another series: an export, or a group that came late.
  REQUIRE(room.send("d", {1}, taken).ok());
  REQUIRE(room.send("e", {2}, taken).ok());
  CHECK(room.stored("d") == Values{{kNow - kSecond, 1}});
  CHECK(room.stored("e") == Values{{kNow - kSecond, 2}});
}

TEST_CASE("redating: a device over its rate is refused, also with times that are known by now") {
  EarlyRoom room;
  ingest::IngestPipeline pipeline(room.engine, *room.catalog, room.clock, nullptr, nullptr, nullptr,
                                  &room.service->fences(), {1, 1, 10});
  pipeline.date_later(room.periods.get());
  const std::int64_t taken = pipeline.times().take_arrival_time();
  room.clock.advance(kSecond);
  room.set_right();
  const auth::Principal principal{auth::PrincipalKind::Internal, "test"};
  const auto send = [&](std::int64_t time_ns) {
    wire::ReadingBatch batch;
    batch.readings.push_back({"default", "d", "n", time_ns, wire::Value::of_int64(1)});
    batch.readings.push_back({"default", "d", "m", time_ns, wire::Value::of_int64(1)});
    ingest::Pacing pacing;
    return pipeline.ingest(*auth::authorize_write(principal, batch), nullptr, {}, {}, &pacing);
  };
  CHECK(send(taken).ok());
  CHECK(send(taken).code() == StatusCode::Busy);
  CHECK(room.stored("d") == Values{{kNow - kSecond, 1}});
}

TEST_CASE("redating: a time behind every clock that no period took is a time as any other") {
  EarlyRoom room;
  REQUIRE(room.send("d", {1}).ok());
  const std::int64_t elsewhere = wire::kUndatedToNs - 1;
  REQUIRE(room.send("d", {2}, elsewhere).ok());
  room.set_right();
  REQUIRE(room.redating->look().ok());
  CHECK(room.stored("d").at(elsewhere) == 2);
}

TEST_CASE("redating: what is erased stays away, and fences none that comes later") {
  EarlyRoom room;
  REQUIRE(room.send("gone", {1}).ok());
  REQUIRE(room.send("cut", {1}).ok());
  room.clock.advance(10 * kSecond);
  REQUIRE(room.send("cut", {2}).ok());
  room.clock.advance(10 * kSecond);
  room.set_right();
  REQUIRE(room.erase("gone").ok());
  // A range of times that the first of `cut` will turn out to be in.
  erase::EraseRequest request = erase::test::Room::request("cut");
  request.from_ns = kNow - kHour;
  request.to_ns = kNow - 15 * kSecond;
  REQUIRE(room.service->erase(erase::test::local(), request).ok());
  room.clock.advance(kSecond);
  CHECK(room.write("gone", "n", kNow + kSecond));
  REQUIRE(room.redating->look().ok());
  CHECK(room.in_order("gone").size() == 1);
  CHECK(room.stored("cut") == Values{{kNow - 10 * kSecond, 2}});
  CHECK(room.redating->status().refused_readings == 1);
}

TEST_CASE("redating: rejected messages are dated later, too, and stay bounded") {
  EarlyRoom room;
  const auto open = [&room] {
    return mqtt::RejectedMessages::open(room.engine, *room.catalog, *room.pipeline, 3).value();
  };
  auto rejected = open();
  const auto keep = [&](const char* topic) {
    const mqtt::RejectedMessage message{topic, "no", "x"};
    return rejected->keep({&message, 1}).ok();
  };
  for (const char* topic : {"a", "b", "c", "d"}) CHECK(keep(topic));
  CHECK(room.readings("_rejected") == 3);
  room.clock.advance(kSecond);
  room.set_right();
  CHECK(keep("e"));
  CHECK(room.readings("_rejected") == 3);
  REQUIRE(room.redating->look().ok());
  CHECK(room.readings("_rejected") == 3);
  for (const char* topic : {"f", "g", "h"}) {
    CHECK(keep(topic));
    CHECK(room.readings("_rejected") == 3);
  }
  CHECK_FALSE(room.holds("\"e\""));
  CHECK(room.holds("\"h\""));
}

TEST_CASE("redating: rejected messages that are forgotten while they are moved do not come back") {
  constexpr int kRounds = 30;
  constexpr std::uint64_t kKept = 100;
  const std::string payload(1000, 'x');
  for (int round = 0; round < kRounds; ++round) {
    EarlyRoom room;
    auto rejected =
        mqtt::RejectedMessages::open(room.engine, *room.catalog, *room.pipeline, kKept).value();
    const auto keep = [&](const char* topic) {
      const mqtt::RejectedMessage message{topic, "no", payload};
      return rejected->keep({&message, 1}).ok();
    };
    for (std::uint64_t i = 0; i < kKept; ++i) REQUIRE(keep("old"));
    room.clock.advance(kSecond);
    room.set_right();
    std::thread redating([&room] { static_cast<void>(room.redating->look().ok()); });
    for (std::uint64_t i = 0; i < kKept; ++i) CHECK(keep("new"));
    redating.join();
    REQUIRE(room.readings("_rejected") == kKept);
    REQUIRE_FALSE(room.holds("old"));
  }
}
