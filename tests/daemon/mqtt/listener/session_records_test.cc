#include "mqtt/listener/session_table.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "mqtt/topic_names.h"
#include "support/model_engine.h"

using namespace edgecase;
using namespace edgecase::mqtt;
using State = ReceivedIds::State;

namespace {

constexpr std::int64_t kStartNs = 1'000;
constexpr std::int64_t kASecondNs = 1'000'000'000;

struct RecordsRoom {
  test::ModelEngine engine;
  std::unique_ptr<SessionRecords> records = SessionRecords::open(engine, system_random()).value();
  const NamespaceId id = open_record_namespace(engine).value();
  SessionTable table;

  void put(const std::string& key, const std::string& value) {
    WriteBatch batch;
    batch.put(id, key, value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  SessionRecords::Loaded load(std::size_t sessions_max = 100) {
    table = {};
    const auto loaded = records->load(table, sessions_max, kStartNs);
    REQUIRE(loaded.ok());
    return *loaded;
  }
  // As the listener does.
  void remove_ended() {
    for (const SessionTable::Ended& ended : table.take_ended()) {
      WriteBatch batch;
      if (ended.with_session) batch.remove(id, ended.key);
      for (const std::uint16_t each : ended.packet_ids) {
        batch.remove(id, message_key(ended.key, each));
      }
      REQUIRE(engine.write(batch, Durability::Sync).ok());
      table.note_gone(ended.key);
    }
  }
  Session* session(const std::string& key) {
    const auto attached = table.attach(key, false, 1, kStartNs);
    return attached.was_present ? attached.session : nullptr;
  }
};

}  // namespace

TEST_CASE("session records: version 1, byte by byte") {
  CHECK(session_value(0x04030201) == "\1\1\2\3\4");
  CHECK(message_value(0x0807060504030201u) == "\1\1\2\3\4\5\6\7\10");
  const std::string key = "Q0123456789abcdef";
  REQUIRE(key.size() == kSessionKeyBytes);
  CHECK(message_key(key, 0x4142) == key + "AB");
  std::uint32_t expiry_seconds = 0;
  std::uint64_t fingerprint = 0;
  const std::string session("\1\1\2\3\4", 5), message("\1\1\2\3\4\5\6\7\10", 9);
  REQUIRE(decode_session_value(session, expiry_seconds));
  CHECK(expiry_seconds == 0x04030201);
  REQUIRE(decode_message_value(message, fingerprint));
  CHECK(fingerprint == 0x0807060504030201u);
  for (std::size_t size = 0; size < message.size(); ++size) {
    CAPTURE(size);
    CHECK(!decode_message_value(message.substr(0, size), fingerprint));
    CHECK(decode_session_value(message.substr(0, size), expiry_seconds) == (size == 5));
  }
  CHECK(!decode_session_value(session + "x", expiry_seconds));
  CHECK(!decode_message_value(message + "x", fingerprint));
  CHECK(!decode_session_value("\2\1\2\3\4", expiry_seconds));
  CHECK(!decode_message_value("\2\1\2\3\4\5\6\7\10", fingerprint));
}

TEST_CASE("session records: clients have keys of their own, which stay") {
  RecordsRoom room;
  const std::string key = room.records->key_of("pump");
  CHECK(key.size() == kSessionKeyBytes);
  CHECK(key.front() == 'Q');
  CHECK(key.find("pump") == std::string::npos);
  CHECK(key != room.records->key_of("pump2"));
  CHECK(room.records->fingerprint("a", "b") != room.records->fingerprint("a", "c"));
  CHECK(room.records->fingerprint("a", "b") != room.records->fingerprint("c", "b"));
  const auto again = SessionRecords::open(room.engine, system_random()).value();
  CHECK(again->key_of("pump") == key);
  CHECK(again->fingerprint("a", "b") == room.records->fingerprint("a", "b"));
  RecordsRoom other;
  CHECK(other.records->key_of("pump") != key);
  CHECK(other.records->fingerprint("a", "b") != room.records->fingerprint("a", "b"));
}

TEST_CASE("session records: sessions come back with what they had received") {
  RecordsRoom room;
  const std::string a = room.records->key_of("a"), b = room.records->key_of("b");
  room.put(a, session_value(10));
  room.put(message_key(a, 1), message_value(11));
  room.put(message_key(a, 65'535), message_value(12));
  room.put(b, session_value(0xffffffffu));
  const SessionRecords::Loaded loaded = room.load();
  CHECK(loaded.sessions == 2);
  CHECK(loaded.messages == 2);
  CHECK(loaded.unreadable == 0);
  CHECK(loaded.surplus == 0);
  CHECK(!room.table.has_ended());
  CHECK(room.table.next_end_ns() == kStartNs + 10 * kASecondNs);
  Session* const session = room.session(a);
  REQUIRE(session != nullptr);
  CHECK(session->recorded);
  CHECK(session->expiry_ns == 10 * kASecondNs);
  CHECK(session->received.size() == 2);
  CHECK(session->received.get(1).state == State::Stored);
  CHECK(session->received.get(1).fingerprint == 11);
  CHECK(session->received.get(65'535).fingerprint == 12);
  // No longer than the listener gives anybody.
  CHECK(room.table.next_end_ns() == kStartNs + std::int64_t{kSessionExpiryMaxSeconds} * kASecondNs);
  room.table.remove_expired(room.table.next_end_ns());
  const auto ended = room.table.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].key == b);
}

TEST_CASE("session records: what is damaged or of no use is counted and goes, the rest stays") {
  RecordsRoom room;
  const std::string good = room.records->key_of("good");
  const std::string bad = room.records->key_of("bad");
  struct Case {
    const char* what;
    std::vector<std::pair<std::string, std::string>> records;
    std::size_t unreadable;
    bool session_back;
  };
  const std::string message = message_value(7);
  const std::vector<Case> cases = {
      {"messages without a session", {{message_key(bad, 1), message}}, 1, false},
      {"an empty session", {{bad, ""}, {message_key(bad, 1), message}}, 2, false},
      {"a session of another version", {{bad, "\2\1\1\1\1"}}, 1, false},
      {"a session that ended with its connection",
       {{bad, session_value(0)}, {message_key(bad, 1), message}},
       1,
       false},
      {"a message cut short", {{bad, session_value(9)}, {message_key(bad, 1), "\1\1"}}, 1, true},
      {"packet id 0", {{bad, session_value(9)}, {message_key(bad, 0), message}}, 1, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    room.put(good, session_value(9));
    room.put(message_key(good, 5), message);
    for (const auto& each : c.records) room.put(each.first, each.second);
    const SessionRecords::Loaded loaded = room.load();
    CHECK(loaded.unreadable == c.unreadable);
    CHECK(room.table.is_ending(bad));
    CHECK(!room.table.is_ending(good));
    room.remove_ended();
    CHECK(!room.table.is_ending(bad));
    // Nothing is left to be told of at the next start.
    CHECK(room.load().unreadable == 0);
    CHECK(!room.table.has_ended());
    CHECK((room.session(bad) != nullptr) == c.session_back);
    REQUIRE(room.session(good) != nullptr);
    CHECK(room.session(good)->received.state(5) == State::Stored);
    WriteBatch away;
    away.remove(room.id, bad);
    REQUIRE(room.engine.write(away, Durability::Sync).ok());
  }
  // A record of a later version, perhaps: it is left alone.
  room.put("Qodd", "1");
  CHECK(room.load().unreadable == 1);
  CHECK(!room.table.has_ended());
}

TEST_CASE("session records: so many come back and no more") {
  RecordsRoom room;
  const std::string full = room.records->key_of("full");
  room.put(full, session_value(9));
  for (std::size_t i = 1; i <= ReceivedIds::kMax + 3; ++i) {
    room.put(message_key(full, static_cast<std::uint16_t>(i)), message_value(i));
  }
  SessionRecords::Loaded loaded = room.load();
  CHECK(loaded.messages == ReceivedIds::kMax);
  CHECK(loaded.surplus == 3);
  room.remove_ended();
  CHECK(room.load().surplus == 0);
  REQUIRE(room.session(full) != nullptr);
  CHECK(room.session(full)->received.size() == ReceivedIds::kMax);
  for (int i = 0; i < 5; ++i) {
    room.put(room.records->key_of("client " + std::to_string(i)), session_value(9));
  }
  loaded = room.load(4);
  CHECK(loaded.sessions == 4);
  CHECK(room.table.size() == 4);
  CHECK(loaded.surplus + loaded.unreadable >= 2);
  room.remove_ended();
  CHECK(room.load(4).surplus == 0);
}

TEST_CASE("session records: a drive that cannot be read is said so") {
  RecordsRoom room;
  room.engine.fail_next_read(io_error("gone"));
  CHECK(room.records->load(room.table, 10, 0).status().code() == StatusCode::IoError);
}
