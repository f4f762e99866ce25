// Groups of messages, stored one after another in a thread of its own.
#include "mqtt/message_committer.h"

#include <doctest/doctest.h>

#include <atomic>

#include "daemon/mqtt/mqtt_fixture.h"
#include "support/mosquitto_broker.h"

namespace edgecase::mqtt {
namespace {

using test::eventually;

struct CommitterRoom : test::MqttFixture {
  CommitterRoom() { rules = compile_rules({test::mqtt_rule("s/{device}/{sensor}")}).value(); }

  // Into the group that fills.
  void bring(std::initializer_list<const char*> payloads, const char* topic = "s/k/t") {
    auto group = committer.take();
    for (const char* const payload : payloads) {
      IncomingPublish message;
      message.topic = topic;
      message.payload = payload;
      message.qos = 1;
      message.packet_id = ++packet_id;
      group->add(message, rules, limits, *pipeline, 0);
    }
    committer.offer(std::move(group));
  }
  // Packet ids of the messages that are done by now, in their order.
  void collect() {
    for (auto& group : committer.take_done()) {
      for (const GroupMessage& message : group->messages()) done.push_back(message.packet_id);
      committer.reuse(std::move(group));
    }
  }
  bool are_done(std::size_t count) {
    return eventually([this, count] {
      collect();
      return done.size() >= count;
    });
  }
  bool waits() {
    return eventually([this] { return committer.counters().waiting_since_ns != 0; });
  }

  const config::LimitSettings limits;
  std::vector<TopicRule> rules;
  std::uint16_t packet_id = 0;
  std::vector<std::uint16_t> done;
  std::atomic<int> wakes{0};
  MessageCommitter committer{{.pipeline = *pipeline,
                              .rejected = *rejected,
                              .clock = system_clock(),
                              .logger = nullptr,
                              .thread_name = "mqtt-commit",
                              .source = {},
                              .while_owed = WhileOwed::Tell},
                             [this] { ++wakes; }};
};

}  // namespace

TEST_CASE("message committer: what may succeed later is told by the code, never by words") {
  for (const StatusCode code :
       {StatusCode::Busy, StatusCode::OutOfSpace, StatusCode::IoError, StatusCode::Unavailable,
        StatusCode::Locked, StatusCode::Corruption, StatusCode::Cancelled})
    CHECK(may_succeed_later({code, "limits.d: limits.devices, limit reached"}));
  for (const StatusCode code : {StatusCode::LimitReached, StatusCode::InvalidArgument,
                                StatusCode::NotAllowed, StatusCode::Unsupported})
    CHECK_FALSE(may_succeed_later({code, "busy, try again later"}));
}

TEST_CASE("message committer: groups are done in their order, once they are stored") {
  CommitterRoom room;
  for (int i = 0; i < 20; ++i) room.bring({"1", "2", "3"});
  REQUIRE(room.are_done(60));
  CHECK(room.wakes > 0);
  for (std::size_t i = 0; i < room.done.size(); ++i) CHECK(room.done[i] == i + 1);
  CHECK(room.readings("default", "k", "t").size() == 60);
  CHECK(room.committer.counters().messages == 60);
  CHECK(room.committer.counters().readings == 60);
}

TEST_CASE(
    "message committer: while one group waits for the drive the next one fills, and nothing "
    "is done") {
  CommitterRoom room;
  room.engine.fail_writes(out_of_space("full"));
  room.bring({"1"});
  REQUIRE(room.waits());
  CHECK(room.committer.counters().waiting_for == out_of_space("full").to_string());
  for (int i = 0; i < 5; ++i) room.bring({"2"});
  room.collect();
  CHECK(room.done.empty());
  room.engine.fail_writes(ok());
  REQUIRE(room.are_done(6));
  CHECK(room.committer.counters().waiting_since_ns == 0);
  CHECK(room.committer.counters().waiting_for.empty());
  CHECK(room.readings("default", "k", "t").size() == 6);
}

TEST_CASE("message committer: a message that can never be stored costs itself, not its group") {
  CommitterRoom room;
  room.bring({"1", "{", "2"});
  REQUIRE(room.are_done(3));
  CHECK(room.readings("default", "k", "t").size() == 2);
  CHECK(room.readings("_rejected", "mqtt", "message").size() == 1);
  CHECK(room.committer.counters().rejected == 1);
}

TEST_CASE("message committer: an engine that refuses for good has the messages kept as rejected") {
  CommitterRoom room;
  room.engine.fail_next_write(invalid_argument("no such thing"));
  room.bring({"1"});
  REQUIRE(room.are_done(1));
  CHECK(room.committer.counters().messages == 1);
  CHECK(room.readings("default", "k", "t").size() +
            room.readings("_rejected", "mqtt", "message").size() ==
        1);
}

TEST_CASE(
    "message committer: what the drive refuses to the end is not done, and stop() ends all the "
    "same") {
  CommitterRoom room;
  room.engine.fail_writes(io_error("broken"));
  room.bring({"1"});
  REQUIRE(room.waits());
  room.bring({"2"});
  room.committer.stop();
  room.committer.stop();
  room.collect();
  CHECK(room.done.empty());
  room.engine.fail_writes(ok());
  CHECK(room.readings("default", "k", "t").empty());
}

TEST_CASE("message committer: what waits when it is stopped is stored if the drive takes it") {
  CommitterRoom room;
  room.bring({"1", "2"});
  room.committer.stop();
  room.collect();
  CHECK(room.done.size() == 2);
  CHECK(room.readings("default", "k", "t").size() == 2);
}

TEST_CASE(
    "message committer: an empty group is kept for the next that comes, and nobody is woken") {
  CommitterRoom room;
  auto group = room.committer.take();
  const MessageGroup* const same = group.get();
  room.committer.offer(std::move(group));
  CHECK(room.committer.take().get() == same);
  CHECK(room.wakes == 0);
}

}  // namespace edgecase::mqtt
