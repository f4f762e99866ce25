#include "audit/audit_log.h"

#include <array>
#include <cstdio>

#include "daemon/audit/audit_room.h"
#include "daemon/audit/store_sealer.h"

namespace edgecase::audit::test {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

std::vector<std::uint64_t> sequences(const std::vector<Record>& records) {
  std::vector<std::uint64_t> numbers;
  for (const Record& record : records) numbers.push_back(record.sequence);
  return numbers;
}

}  // namespace

TEST_CASE("audit: strict, a record comes with the write that it describes, in one sync") {
  AuditRoom room;
  const NamespaceId id = *room.engine.create_namespace("n", {});
  const auto ticket = room.log->append(room.example(0));
  REQUIRE(ticket.ok());
  CHECK(room.log->state().sequence == 0);
  WriteBatch batch;
  batch.put(id, "a", "1");
  const std::uint64_t syncs = room.engine.stats().wal_syncs;
  REQUIRE(room.engine.write(batch, Durability::Sync).ok());
  REQUIRE(room.log->settle(*ticket).ok());
  CHECK(room.engine.stats().wal_syncs == syncs + 1);
  CHECK(room.log->state().sequence == 1);
}

TEST_CASE("audit: strict, what can not be recorded can not be done, and all is well afterwards") {
  AuditRoom room;
  room.fill(3);
  room.engine.fail_writes(io_error("the drive is gone"));
  CHECK(room.log->note(room.example(3)).code() == StatusCode::Unavailable);
  CHECK(room.log->ready().code() == StatusCode::Unavailable);
  CHECK(room.log->state().failures == 1);
  CHECK_FALSE(room.log->state().failure.ok());
  room.engine.fail_writes(ok());
  room.log->tick();
  CHECK(room.log->ready().ok());
  CHECK(room.log->state().sequence == 4);
  room.fill(1);
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: a write that failed is told in its record, or in one that follows") {
  AuditRoom room;
  auto ticket = room.log->append(std::vector{draft_of(room.example(0)), draft_of(room.example(1))});
  REQUIRE(ticket.ok());
  SUBCASE("in the records, as they were not written") {
    room.log->amend(*ticket, room.example(0), out_of_space("full"));
    const std::vector<Record> records = room.list();
    REQUIRE(records.size() == 2);
    CHECK(records[0].outcome == Outcome::OutOfSpace);
    CHECK(records[1].outcome == Outcome::OutOfSpace);
  }
  SUBCASE("in another one") {
    REQUIRE(room.log->settle(*ticket).ok());
    room.log->amend(*ticket, room.example(0), out_of_space("full"));
    const std::vector<Record> records = room.list();
    REQUIRE(records.size() == 3);
    CHECK(records[1].outcome == Outcome::Ok);
    CHECK(records[2].outcome == Outcome::OutOfSpace);
    CHECK(records[2].detail == "of record 2");
  }
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: batched, records are durable with the next tick, and at the end") {
  AuditRoom room(Mode::Batched);
  room.fill(3);
  CHECK(room.log->state().sequence == 0);
  CHECK(room.log->state().queued == 3);
  room.log->tick();
  CHECK(room.log->state().sequence == 3);
  room.fill(2);
  room.log.reset();
  room.open();
  CHECK(room.log->state().sequence == 5);
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: the queue is bounded, and what it does not take is told") {
  constexpr int kMore = 5;
  SUBCASE("batched: lost records are counted, and recorded when the drive is back") {
    AuditRoom room(Mode::Batched);
    room.engine.fail_writes(io_error("gone"));
    room.log->tick();
    room.fill(static_cast<int>(AuditLog::kQueueRecordsMax));
    room.log->tick();
    room.fill(kMore);
    CHECK(room.log->state().queued == AuditLog::kQueueRecordsMax);
    CHECK(room.log->state().lost == kMore);
    room.engine.fail_writes(ok());
    room.log->tick();
    room.clock.advance(AuditLog::kCutSpacingNs);
    room.log->tick();
    const std::vector<Record> records = room.list({.limit = 1, .descending = true});
    REQUIRE(records.size() == 1);
    CHECK(records[0].operation == "audit.lost");
    CHECK(records[0].count == kMore);
    CHECK(room.first_fault() == 0);
  }
  SUBCASE("strict: nothing is taken") {
    AuditRoom room;
    room.engine.fail_writes(io_error("gone"));
    for (std::size_t i = 0; i < AuditLog::kQueueRecordsMax; ++i) {
      REQUIRE(room.log->append(room.example(0)).ok());
    }
    CHECK(room.log->append(room.example(0)).status().code() == StatusCode::Busy);
    room.engine.fail_writes(ok());
  }
}

TEST_CASE("audit: what is urgent finds room in a full queue, and goes with the next commit") {
  for (const Mode mode : {Mode::Strict, Mode::Batched}) {
    AuditRoom room(mode);
    room.engine.fail_writes(out_of_space("full"));
    room.log->tick();
    Record long_one = room.example(0);
    long_one.detail = std::string(kTextMaxBytes, 'x');
    while (room.log->state().queued < AuditLog::kQueueRecordsMax) {
      if (!room.log->append(long_one).ok() || room.log->state().lost > 0) break;
      if (room.log->state().queued % 1'000 == 0) room.log->tick();
    }
    CHECK(room.log->state().queued > 5'000);
    const auto urgent = room.log->append_urgent(room.example(1));
    REQUIRE(urgent.ok());
    CHECK(urgent->last == room.log->state().queued);
    for (std::size_t i = 1; i < AuditLog::kUrgentRecordsMax; ++i)
      REQUIRE(room.log->append_urgent(room.example(1)).ok());
    if (room.log->state().queued >= AuditLog::kQueueRecordsMax + AuditLog::kUrgentRecordsMax)
      CHECK(room.log->append_urgent(room.example(1)).status().code() == StatusCode::Busy);
    room.engine.fail_writes(ok());
    REQUIRE(room.engine.write(WriteBatch(), Durability::Sync).ok());
    CHECK(room.log->is_settled(*urgent));
    CHECK(room.log->state().sequence > AuditLog::kUrgentRecordsMax);
    CHECK(room.first_fault() == 0);
  }
}

TEST_CASE("audit: strict, what a full drive does not take is kept beside the log, and joins it") {
  AuditRoom room;
  room.log.reset();
  room.options.spare_directory = room.directory.path();
  room.open();
  room.fill(2);
  room.engine.fail_writes(out_of_space("the drive is full"));
  room.fill(3);
  CHECK(room.log->state().queued == 3);
  CHECK(room.log->ready().ok());
  // What it says already, another record has to change.
  const auto ticket = room.log->append(room.example(5));
  REQUIRE(ticket.ok());
  REQUIRE(room.log->settle(*ticket).ok());
  CHECK(room.log->is_settled(*ticket));
  room.log->amend(*ticket, room.example(5), io_error("failed"));

  SUBCASE("once there is room") {
    room.engine.fail_writes(ok());
    room.log->tick();
    CHECK(room.list().size() == 7);
    room.kill();
    room.open();
    CHECK(room.log->state().queued == 0);
  }
  SUBCASE("at the latest when it stops") {
    room.engine.fail_writes(ok());
    room.log.reset();
    room.open();
    CHECK(room.list().size() == 7);
  }
  SUBCASE("after a kill, in the same order and with the same times, twice") {
    const std::int64_t now_ns = room.clock.wall_ns();
    room.kill();
    room.engine.fail_writes(out_of_space("the drive is full"));
    room.open();
    CHECK(room.log->state().queued == 4);
    room.fill(1);
    room.kill();
    room.open();
    CHECK(room.log->state().queued == 5);
    REQUIRE(room.log->flush().ok());
    const std::vector<Record> records = room.list();
    REQUIRE(records.size() == 7);
    CHECK(records[5].time_ns == now_ns);
    CHECK(records[5].outcome == Outcome::Ok);
    CHECK(records[3].operation == "query");
    CHECK(records[3].detail == "purpose billing");
    CHECK(records[3].targets == room.example(1).targets);
    room.log->tick();
    CHECK(room.list().size() == 7);
  }
  CHECK(room.first_fault() == 0);
  // Nothing is left of it there.
  const auto file = posix_file_system().open_file(room.directory.path() + "/" + kSpareFileName);
  REQUIRE(file.ok());
  Bytes bytes(kSpareBytes, 'x');
  REQUIRE((*file)->read(0, bytes.size(), bytes.data()).value() == kSpareBytes);
  CHECK((bytes == Bytes(kSpareBytes, '\0')));
}

TEST_CASE("audit: strict, what is kept beside an encrypted log nobody reads, and it joins it") {
  test::StoreSealer store;
  AuditRoom room;
  room.log.reset();
  room.engine.set_sealer(store.get());
  room.options.spare_directory = room.directory.path();
  room.open();
  room.fill(2);
  room.engine.fail_writes(out_of_space("the drive is full"));
  Record record = room.example(2);
  record.actor = record.detail = "canary";
  REQUIRE(room.log->note(record).ok());
  room.fill(1);
  const auto in_file = [&room](std::string_view text) {
    const auto file = posix_file_system().open_file(room.directory.path() + "/" + kSpareFileName);
    REQUIRE(file.ok());
    Bytes bytes((*file)->size_bytes(), '\0');
    REQUIRE((*file)->read(0, bytes.size(), bytes.data()).ok());
    return bytes.find(text) != Bytes::npos;
  };
  CHECK_FALSE(in_file("canary"));
  CHECK_FALSE(in_file("uid 1000"));
  room.kill();
  SUBCASE("with the same master key") {}
  SUBCASE("with another one that took its place") {
    store.change_master_key();
    room.engine.set_sealer(store.get());
  }
  room.open();
  CHECK(room.log->state().queued == 2);
  REQUIRE(room.log->flush().ok());
  const std::vector<Record> records = room.list();
  REQUIRE(records.size() == 4);
  CHECK(records[2].actor == "canary");
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: strict, a page beside the log that was cut short or changed is none") {
  for (const std::uint64_t at : {0u, 5u, 20u, 60u}) {
    CAPTURE(at);
    AuditRoom room;
    room.log.reset();
    room.options.spare_directory = room.directory.path();
    room.open();
    room.fill(1);
    room.engine.fail_writes(out_of_space("the drive is full"));
    room.fill(1);
    room.kill();
    const std::string path = room.directory.path() + "/" + kSpareFileName;
    {
      const auto file = posix_file_system().open_log_file(path);
      REQUIRE(file.ok());
      REQUIRE((*file)->write(at, "\x7f").ok());
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> said(std::tmpfile(), std::fclose);
    REQUIRE(said);
    {
      observe::Logger logger(fileno(said.get()), observe::LogStyle::Plain, room.clock);
      room.told = &logger;
      room.open();
      room.told = nullptr;
      CHECK(room.log->state().queued == 0);
      room.log.reset();
    }
    std::array<char, 1'000> text{};
    std::rewind(said.get());
    REQUIRE(std::fread(text.data(), 1, text.size() - 1, said.get()) > 0);
    CHECK(std::string_view(text.data()).find("no whole page, and are overwritten") !=
          std::string_view::npos);
    room.open();
    room.fill(1);
    CHECK(room.first_fault() == 0);
  }
}

TEST_CASE("audit: strict, what is kept beside the log is bounded" * doctest::test_suite("bulk")) {
  AuditRoom room;
  room.log.reset();
  room.options.spare_directory = room.directory.path();
  room.open();
  room.engine.fail_writes(out_of_space("the drive is full"));
  std::size_t taken = 0;
  Record record = room.example(0);
  record.detail = std::string(kTextMaxBytes, 'x');
  while (taken <= AuditLog::kQueueRecordsMax && room.log->note(record).ok()) ++taken;
  CHECK(taken > 1'000);
  CHECK(taken <= AuditLog::kQueueRecordsMax);
  room.engine.fail_writes(ok());
  REQUIRE(room.log->flush().ok());
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: off, nothing is written, and what is there can be read") {
  AuditRoom room;
  room.fill(3);
  room.log.reset();
  room.options.mode = Mode::Off;
  room.open();
  room.fill(3);
  room.log->tick();
  CHECK(room.list().size() == 3);
  CHECK(room.first_fault() == 0);
  room.log.reset();
  room.options.mode = Mode::Strict;
  room.open();
  room.fill(1);
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: lists by time, device and number, also over a clock that was set back") {
  AuditRoom room;
  const std::int64_t begin_ns = room.clock.wall_ns();
  room.fill(10);                                         // 1 to 10: begin + 1 s to + 10 s
  room.clock.set_wall_ns(begin_ns - 1'000 * kSecondNs);  // and back
  room.fill(10);                                         // 11 to 20: begin - 999 s to - 990 s
  room.clock.set_wall_ns(begin_ns + 2 * kSecondNs);
  room.fill(5);  // 21 to 25: begin + 3 s to + 7 s
  using Numbers = std::vector<std::uint64_t>;
  CHECK(sequences(room.list()).size() == 25);
  const ListRequest first{.from_ns = begin_ns + 3 * kSecondNs, .to_ns = begin_ns + 5 * kSecondNs};
  CHECK(sequences(room.list(first)) == Numbers{3, 4, 21, 22});
  ListRequest newest = first;
  newest.descending = true;
  CHECK(sequences(room.list(newest)) == Numbers{22, 21, 4, 3});
  newest.limit = 3;
  CHECK(sequences(room.list(newest)) == Numbers{22, 21, 4});
  CHECK(sequences(room.list({.to_ns = begin_ns - 997 * kSecondNs})) == Numbers{11, 12});
  CHECK(sequences(room.list({.from_ns = begin_ns + 9 * kSecondNs})) == Numbers{9, 10});
  CHECK(room.list({.from_ns = begin_ns + 100 * kSecondNs}).empty());
  // A record of every third is of this device.
  const ListRequest device{.to_ns = begin_ns, .namespace_name = "default", .device = "device-0"};
  CHECK(sequences(room.list(device)) == Numbers{11, 14, 17, 20});
  CHECK(room.list({.namespace_name = "other", .device = "device-0"}).empty());
}

TEST_CASE("audit: lists from the middle of pages, and none spans a clock that was set back") {
  AuditRoom room(Mode::Batched);
  const std::int64_t begin_ns = room.clock.wall_ns();
  room.fill(6);  // begin + 1 s to + 6 s
  room.clock.set_wall_ns(begin_ns - 1'000 * kSecondNs);
  room.fill(6);  // 7 to 12: begin - 999 s to - 994 s
  room.log->tick();
  room.clock.set_wall_ns(begin_ns + 6 * kSecondNs);
  room.fill(4);  // 14 to 17, behind the step's own record, 13: begin + 7 s to + 10 s
  room.log->tick();
  using Numbers = std::vector<std::uint64_t>;
  CHECK(sequences(room.list({.from_ns = begin_ns + 5 * kSecondNs,
                             .to_ns = begin_ns + 9 * kSecondNs})) == Numbers{5, 6, 14, 15});
  CHECK(sequences(room.list({.from_ns = begin_ns + 5 * kSecondNs,
                             .to_ns = begin_ns + 9 * kSecondNs,
                             .limit = 3,
                             .descending = true})) == Numbers{15, 14, 6});
  CHECK(sequences(room.list({.to_ns = begin_ns - 997 * kSecondNs})) == Numbers{7, 8});
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: a step of the clock is recorded, with what the clock is worth") {
  AuditRoom room;
  room.clock.set_trust(ClockTrust::Untrusted);
  room.clock.set_wall_ns(room.clock.wall_ns() + 3'600 * kSecondNs);
  room.log->tick();
  const std::vector<Record> records = room.list();
  REQUIRE(records.size() == 1);
  CHECK(records[0].operation == "clock.step");
  CHECK(records[0].detail == "+3600000 ms");
  CHECK(records[0].trust == ClockTrust::Untrusted);
}

TEST_CASE("audit: denials that came too fast are one record a minute") {
  AuditRoom room;
  for (int i = 0; i < 1'000; ++i) room.log->note_throttled();
  room.clock.advance(AuditLog::kCutSpacingNs);
  room.log->tick();
  const std::vector<Record> records = room.list();
  REQUIRE(records.size() == 1);
  CHECK(records[0].count == 1'000);
  CHECK(records[0].outcome == Outcome::Denied);
}

}  // namespace edgecase::audit::test
