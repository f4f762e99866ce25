// Messages that are stored together: what each brings, and what becomes of their records.

#include <vector>

#include <doctest/doctest.h>

#include "daemon/mqtt/mqtt_fixture.h"
#include "mqtt/message_group.h"

namespace edgecase::mqtt {
namespace {

struct GroupRoom : test::MqttFixture {
  GroupRoom() { rules = compile_rules({test::mqtt_rule("s/{device}/{sensor}")}).value(); }

  DecodeResult add(std::string_view topic, std::string_view payload,
                   const auth::Principal* principal = nullptr) {
    IncomingPublish message;
    message.topic = topic;
    message.payload = payload;
    message.packet_id = 7;
    message.qos = 1;
    message.principal = principal;
    return group.add(message, rules, limits, *pipeline, 99);
  }
  const GroupMessage& last() { return group.messages().back(); }
  ingest::RecordChange record(std::string_view key) const {
    return {ingest::RecordChange::Kind::Put, 1, key, "value"};
  }
  static std::vector<std::string> keys_of(const std::vector<ingest::RecordChange>& changes) {
    std::vector<std::string> keys;
    for (const auto& each : changes) keys.emplace_back(each.key);
    return keys;
  }

  const config::LimitSettings limits;
  std::vector<TopicRule> rules;
  MessageGroup group;
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("message group: a message has its own readings, which bear the time of its arrival") {
  GroupRoom room;
  room.add("s/k/t", "1");
  room.add("s/k/t", R"({"a":2,"b":3})");
  REQUIRE(room.group.messages().size() == 2);
  const GroupMessage& first = room.group.messages()[0];
  const GroupMessage& second = room.group.messages()[1];
  CHECK(first.first_reading == 0);
  CHECK(first.readings == 1);
  CHECK(second.first_reading == 1);
  CHECK(second.readings == 2);
  CHECK(second.content_hash == 99);
  CHECK(second.arrival_ns > first.arrival_ns);
  const auto& readings = room.group.batch().readings;
  REQUIRE(readings.size() == 3);
  CHECK(readings[0].time_ns == first.arrival_ns);
  CHECK(readings[1].time_ns == second.arrival_ns);
  CHECK(readings[1].sensor == "t.a");
  CHECK(room.group.counters().messages == 2);
  CHECK(room.group.unsettled().empty());
}

TEST_CASE("message group: a message that is not stored says why, and has no readings") {
  GroupRoom room;
  struct Case {
    const char* topic;
    const char* payload;
    ReasonCode want;
  };
  for (const Case& each : {Case{"else/where", "1", ReasonCode::TopicNameInvalid},
                           Case{"s/k/t", "{", ReasonCode::PayloadFormatInvalid},
                           Case{"s/k/t", "", ReasonCode::Success}}) {
    CAPTURE(each.topic);
    CAPTURE(each.payload);
    room.add(each.topic, each.payload);
    CHECK(room.last().reason == each.want);
    CHECK(room.last().readings == 0);
    CHECK(room.last().reason_text.empty() == (each.want == ReasonCode::Success));
  }
  CHECK(room.group.batch().readings.empty());
  CHECK(room.group.counters().ignored == 1);
}

TEST_CASE("message group: one reading outside a scope keeps the whole message from being stored") {
  GroupRoom room;
  auth::Principal principal;
  principal.name = "meter";
  const auto grant = std::make_shared<auth::Grant>();
  grant->token_id = "t1";
  grant->scopes.write = {wire::Selector{"k", "t.a"}};
  principal.grant = grant;
  room.add("s/k/t", R"({"a":1})", &principal);
  CHECK(room.last().reason == ReasonCode::Success);
  room.add("s/k/t", R"({"a":1,"b":2})", &principal);
  CHECK(room.last().reason == ReasonCode::NotAuthorized);
  CHECK(room.last().readings == 0);
  CHECK(room.group.batch().readings.size() == 1);
}

TEST_CASE(
    "message group: records go with their message, those of a rejected one behind it or not") {
  GroupRoom room;
  using IfRejected = MessageGroup::IfRejected;
  room.add("s/k/t", "1");
  room.group.add_record(room.record("stored"), IfRejected::Dropped);
  room.add("s/k/t", "{");
  room.group.add_record(room.record("kept"), IfRejected::Kept);
  room.group.add_record(room.record("dropped"), IfRejected::Dropped);
  CHECK(GroupRoom::keys_of(room.group.stored_records()) == Keys{"stored"});
  CHECK(GroupRoom::keys_of(room.group.rejected_records()) == Keys{"kept"});
  // A session that ends in the same group takes along the records that begin with its key.
  room.group.add_other(Purpose::Ended, 1, 1).topic = "ke";
  CHECK(room.group.rejected_records().empty());
}

TEST_CASE("message group: repeats and oversized packets are counted, and answered with the group") {
  GroupRoom room;
  IncomingPublish message;
  message.topic = "s/k/t";
  message.payload = "begin";
  message.duplicate = true;
  room.group.add_repeat(message);
  CHECK(room.last().reason == ReasonCode::Success);
  room.group.add_oversized(message, 5'000'000, room.limits);
  CHECK(room.last().reason == ReasonCode::QuotaExceeded);
  CHECK(room.last().reason_text.find("5000000 bytes") != std::string_view::npos);
  CHECK(room.group.counters().repeats_dropped == 1);
  CHECK(room.group.counters().redelivered == 2);
}

TEST_CASE("message group: it is full at its limits, and empty again once it is cleared") {
  GroupRoom room;
  CHECK(room.group.empty());
  const std::string large(MessageGroup::kBytesMax / 4, 'x');
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(room.group.full());
    room.add("s/k/t", large);
  }
  CHECK(room.group.full());
  room.group.clear();
  CHECK(room.group.empty());
  CHECK_FALSE(room.group.full());
  CHECK(room.group.counters().messages == 0);
  while (!room.group.full()) room.group.add_other(Purpose::Release, 1, 1);
  CHECK(room.group.messages().size() > 1'000);
  CHECK(room.group.messages().size() <= MessageGroup::kMessagesMax);
}

TEST_CASE("message group: the largest packet is what a message may have, within the budget") {
  config::LimitSettings limits;
  limits.message_limit_bytes = 1'000;
  const std::uint32_t free_of_budget = packet_max_bytes(limits, UINT64_MAX);
  CHECK(free_of_budget > 1'000 + kTopicMaxBytes);
  CHECK(packet_max_bytes(limits, 500) == 500);
  limits.message_limit_bytes = std::uint64_t{1} << 40;
  CHECK(packet_max_bytes(limits, UINT64_MAX) == kRemainingLengthMax);
}

}  // namespace edgecase::mqtt
