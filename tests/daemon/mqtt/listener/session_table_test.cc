#include "mqtt/listener/session_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace edgecase::mqtt;
using State = ReceivedIds::State;

TEST_CASE("session table: a kept session comes back with what it held, a clean one does not") {
  SessionTable table;
  auto first = table.attach("pump", false, 1, 0);
  CHECK(!first.was_present);
  first.session->expiry_ns = 100;
  first.session->received.begin(7, 77);
  first.session->received.set(7, State::Stored);
  const std::uint64_t number = first.session->number;
  table.detach(number, 1, 10);

  auto again = table.attach("pump", false, 2, 109);
  CHECK(again.was_present);
  CHECK(again.taken_from == 0);
  CHECK(again.session->number == number);
  CHECK(again.session->received.state(7) == State::Stored);

  auto clean = table.attach("pump", true, 3, 110);
  CHECK(!clean.was_present);
  CHECK(clean.taken_from == 2);
  CHECK(clean.session->number != number);
  CHECK(table.find(number) == nullptr);
}

TEST_CASE("session table: a session ends with its expiry") {
  SessionTable table;
  auto kept = table.attach("a", false, 1, 0);
  kept.session->expiry_ns = 100;
  table.detach(kept.session->number, 1, 10);
  CHECK(!table.attach("a", false, 2, 110).was_present);
  CHECK(table.size() == 1);
  auto passing = table.attach("b", true, 3, 0);
  table.detach(passing.session->number, 3, 0);
  CHECK(table.size() == 1);
}

TEST_CASE("session table: who lost its session to another connection does not end it") {
  SessionTable table;
  const auto first = table.attach("a", false, 1, 0);
  first.session->expiry_ns = 100;
  const auto second = table.attach("a", false, 2, 0);
  CHECK(second.taken_from == 1);
  CHECK(second.session == first.session);
  table.detach(first.session->number, 1, 0);
  CHECK(table.find(second.session->number) == second.session);
  CHECK(second.session->connection == 2);
}

TEST_CASE("session table: keeps so many without a connection, those used last") {
  SessionTable table;
  for (std::uint64_t i = 1; i <= SessionTable::kKeptMax + 1; ++i) {
    auto attached = table.attach("client " + std::to_string(i), false, i, 0);
    attached.session->expiry_ns = SessionTable::kForever;
    table.detach(attached.session->number, i, 0);
  }
  CHECK(table.size() == SessionTable::kKeptMax);
  CHECK(table.attach("client 2", false, 5'000, 0).was_present);
  CHECK(!table.attach("client 1", false, 5'001, 0).was_present);
}

TEST_CASE("session table: a session that was to end with its connection is not taken over") {
  SessionTable table;
  const auto first = table.attach("a", true, 1, 0);
  const std::uint64_t number = first.session->number;
  const auto second = table.attach("a", false, 2, 0);
  CHECK(second.taken_from == 1);
  CHECK(!second.was_present);
  CHECK(second.session->number != number);
}

TEST_CASE("session table: a recorded session that has ended is told, with what it had received") {
  SessionTable table;
  table.restore("a", 100, 0).received.begin(7, 1);
  table.restore("b", 100, 0);
  table.attach("c", true, 1, 0);
  table.detach(table.attach("c", true, 2, 0).session->number, 2, 0);
  CHECK(!table.has_ended());
  CHECK(!table.attach("a", true, 3, 0).was_present);
  CHECK(table.is_ending("a"));
  CHECK(!table.is_ending("b"));
  CHECK(table.next_end_ns() == 100);
  table.remove_expired(100);
  CHECK(table.next_end_ns() == SessionTable::kForever);
  const auto ended = table.take_ended();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].key == "a");
  CHECK(ended[0].packet_ids == std::vector<std::uint16_t>{7});
  CHECK(ended[1].key == "b");
  CHECK(!table.has_ended());
  CHECK(table.is_ending("a"));
  // It may end again before the first end is durable.
  table.restore("a", 0, 0);
  table.remove_expired(0);
  table.note_gone("a");
  CHECK(table.is_ending("a"));
  table.note_gone("a");
  CHECK(!table.is_ending("a"));
}

TEST_CASE("session table: sessions beyond the limit that came back stay until their clients came") {
  SessionTable table;
  constexpr std::uint64_t kMore = 5;
  const auto name = [](std::uint64_t i) { return "client " + std::to_string(i); };
  for (std::uint64_t i = 0; i < SessionTable::kKeptMax + kMore; ++i) {
    table.restore(name(i), SessionTable::kForever, 0);
  }
  for (std::uint64_t i = 0; i < kMore; ++i) {
    CHECK(table.attach(name(i), false, i + 1, 0).was_present);
  }
  CHECK(table.size() == SessionTable::kKeptMax + kMore);
  // From now on the limit holds: whoever leaves takes the place of the one left alone longest.
  for (std::uint64_t i = 0; i < kMore; ++i) {
    const auto again = table.attach(name(i), false, i + 1, 0);
    table.detach(again.session->number, i + 1, 0);
  }
  CHECK(table.size() == SessionTable::kKeptMax);
  CHECK(table.take_ended().size() == kMore);
}

TEST_CASE("received ids: known until they are released, in any order") {
  ReceivedIds ids;
  for (const int id : {9, 3, 65'535, 1}) {
    ids.begin(static_cast<std::uint16_t>(id), 1);
  }
  CHECK(ids.size() == 4);
  ids.set(3, State::Stored);
  CHECK(ids.state(3) == State::Stored);
  CHECK(ids.state(9) == State::Storing);
  CHECK(ids.state(2) == State::Unknown);
  ids.set(3, State::Unknown);
  ids.set(2, State::Unknown);
  CHECK(ids.state(3) == State::Unknown);
  CHECK(ids.size() == 3);
}
