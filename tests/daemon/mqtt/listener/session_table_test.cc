#include "mqtt/listener/session_table.h"

#include <doctest/doctest.h>

#include <string>

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
