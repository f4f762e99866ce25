// Whatever is done to the log behind the daemon's back is found.
#include <functional>

#include "daemon/audit/audit_room.h"

namespace edgecase::audit::test {

TEST_CASE("audit: what was written verifies, also after a restart and a kill") {
  AuditRoom room;
  room.fill(10);
  Verification found = room.verified();
  CHECK(found.fault_count == 0);
  CHECK(found.records == 10);
  CHECK(found.first == 1);
  CHECK(found.last == 10);
  CHECK(found.head == room.log->state().hash);
  room.log.reset();
  room.open();
  room.fill(5);
  room.kill();
  room.open();
  room.fill(1);
  found = room.verified();
  CHECK(found.fault_count == 0);
  CHECK(found.last == 16);
}

TEST_CASE("audit: one changed byte of a record is found, wherever it is") {
  AuditRoom room;
  room.fill(5);
  const Bytes good = room.value(3);
  for (std::size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    Bytes bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    room.put(page_key(3), bad);
    CHECK(room.first_fault() == 3);
  }
  room.put(page_key(3), good);
  CHECK(room.first_fault() == 0);
}

TEST_CASE("audit: a changed field is found, also when its hash was made anew") {
  using Change = std::function<void(Record&)>;
  const std::vector<Change> changes = {
      [](Record& r) { ++r.time_ns; },
      [](Record& r) { r.trust = ClockTrust::Untrusted; },
      [](Record& r) { r.outcome = Outcome::Denied; },
      [](Record& r) { r.operation = "x"; },
      [](Record& r) { r.actor = "nobody"; },
      [](Record& r) { r.token = "x"; },
      [](Record& r) { r.namespace_name = "x"; },
      [](Record& r) { r.selector = "x"; },
      [](Record& r) { r.detail = "x"; },
      [](Record& r) { ++r.count; },
      [](Record& r) { r.targets.clear(); },
      [](Record& r) { ++r.targets[0].pseudonym; },
      [](Record& r) { ++r.targets[0].count; },
      [](Record& r) { r.reaches_more = true; },
      [](Record& r) { r.more_devices = 1; },
  };
  AuditRoom room;
  room.fill(5);
  const Bytes good = room.value(3);
  const auth::Digest previous = room.record(2).hash;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    Record record = decode_page(3, good).value().records.front();
    changes[i](record);
    const Bytes body = AuditRoom::body_with(record);
    room.put(page_key(3), page_value(record.hash, body));
    CHECK(room.first_fault() == 3);
    room.put(page_key(3), page_value(chain_hash(previous, 3, body), body));
    CHECK(room.first_fault() == 4);
  }
}

TEST_CASE("audit: pages of several records verify, and whatever is done to one is found") {
  AuditRoom room(Mode::Batched);
  for (int page = 0; page < 3; ++page) {
    room.fill(4);
    room.log->tick();
  }
  Verification found = room.verified();
  CHECK(found.fault_count == 0);
  CHECK(found.records == 12);
  CHECK(found.last == 12);
  const Bytes good = room.value(8);
  SUBCASE("a byte changed") {
    for (std::size_t i = 0; i < good.size(); ++i) {
      CAPTURE(i);
      Bytes bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      room.put(page_key(8), bad);
      CHECK(room.first_fault() == 5);
    }
  }
  SUBCASE("removed") {
    room.remove(page_key(8));
    found = room.verified();
    REQUIRE(found.faults.size() == 1);
    CHECK(found.faults[0].what == "records 5 to 8 are missing");
    CHECK(found.records == 8);
  }
  SUBCASE("put in twice") {
    room.put(page_key(10), good);
    CHECK(room.first_fault() == 7);
  }
  SUBCASE("exchanged") {
    room.put(page_key(8), room.value(12));
    room.put(page_key(12), good);
    CHECK(room.first_fault() == 5);
  }
  SUBCASE("a restart goes on behind it") {
    room.log.reset();
    room.open();
    room.fill(1);
    CHECK(room.first_fault() == 0);
    CHECK(room.verified().last == 13);
  }
}

TEST_CASE("audit: removed and reordered records are found") {
  for (std::uint64_t gone = 1; gone <= 5; ++gone) {
    CAPTURE(gone);
    AuditRoom room;
    room.fill(5);
    room.remove(page_key(gone));
    CHECK(room.first_fault() == gone);
  }
  AuditRoom room;
  room.fill(5);
  const Bytes two = room.value(2), three = room.value(3);
  room.put(page_key(2), three);
  room.put(page_key(3), two);
  CHECK(room.first_fault() == 2);
}

TEST_CASE("audit: an end that was cut off is found by the heads, and never forgotten") {
  AuditRoom room;
  room.fill(300);
  room.log.reset();
  room.open();
  const Mark long_ago{100, room.record(100).hash, 0};
  for (std::uint64_t gone = 300; gone > 250; --gone) room.remove(page_key(gone));
  SUBCASE("by the checkpoint in the log") {
    room.kill();
    REQUIRE(write_head_file(posix_file_system(), room.directory.path(), long_ago).ok());
  }
  SUBCASE("by the file on the other drive") {
    room.remove(kHeadKey);
    room.kill();
  }
  room.open();
  // The new records take the numbers of those that are gone; the first says so.
  CHECK(room.first_fault() == 251);
  room.fill(20);
  room.log.reset();
  room.open();
  CHECK(room.first_fault() == 251);
  CHECK(room.list()[250].operation == kMismatchOperation);
}

TEST_CASE("audit: while the daemon runs it knows its head itself") {
  AuditRoom room;
  room.fill(20);
  room.remove(kHeadKey);
  room.remove(page_key(20));
  CHECK(room.first_fault() == 20);
}

TEST_CASE("audit: a head file that is gone, changed, or of another log is found") {
  AuditRoom room;
  room.fill(5);
  room.log.reset();
  const std::string path = room.directory / kHeadFileName;
  SUBCASE("gone") {
    REQUIRE(posix_file_system().remove_file(path).ok());
  }
  SUBCASE("changed") {
    REQUIRE(posix_file_system().remove_file(path).ok());
    auto file = posix_file_system().create_file(path);
    REQUIRE(file.ok());
    REQUIRE((*file)->append("edgecase audit head 1 5 00\nx\n").ok());
    REQUIRE((*file)->sync().ok());
  }
  SUBCASE("of another log") {
    REQUIRE(write_head_file(posix_file_system(), room.directory.path(), {5, {}, 0}).ok());
  }
  room.open();
  CHECK(room.first_fault() == 6);
}

TEST_CASE("audit: old records go, the rest verifies, and a cut that nobody made is found") {
  constexpr std::int64_t kDayNs = 86'400'000'000'000;
  AuditRoom room;
  room.options.retention_ns = 10 * kDayNs;
  room.log.reset();
  room.open();
  room.fill(50);
  room.clock.advance(5 * kDayNs);
  room.fill(50);
  room.clock.advance(6 * kDayNs);
  room.engine.set_expiry_now_ns(room.clock.wall_ns());
  SUBCASE("by age") {
    room.log->tick();
    const std::vector<Record> records = room.list();
    CHECK(records.front().sequence == 51);
    CHECK(records.back().operation == kCutOperation);
    CHECK(records.back().count == 50);
    CHECK(room.first_fault() == 0);
    room.log.reset();
    room.open();
    room.fill(5);
    CHECK(room.first_fault() == 0);
    CHECK(room.verified().first == 51);
    // Further than the daemon cut.
    const Record last_gone = room.record(60);
    for (std::uint64_t gone = 51; gone <= 60; ++gone) room.remove(page_key(gone));
    CHECK(room.first_fault() == 51);
    room.put(kAnchorKey, encode_mark({61, last_gone.hash, 0}));
    CHECK(room.first_fault() == 61);
  }
  SUBCASE("not while the clock is not trusted") {
    room.clock.set_trust(ClockTrust::Untrusted);
    room.log->tick();
    CHECK(room.list().front().sequence == 1);
  }
  SUBCASE("not by a clock that readings do not expire by, as it was set far ahead") {
    room.engine.set_expiry_now_ns(room.clock.wall_ns() - 6 * kDayNs);
    room.log->tick();
    CHECK(room.list().front().sequence == 1);
  }
  SUBCASE("not for a day by a clock that leapt while it ran") {
    room.engine.set_expiry_now_ns(room.clock.wall_ns() - 6 * kDayNs);
    room.log->tick();
    room.engine.set_expiry_now_ns(room.clock.wall_ns());
    const auto look_later = [&](std::int64_t ns) {
      room.clock.advance(ns);
      room.engine.set_expiry_now_ns(room.clock.wall_ns());
      room.log->tick();
      return room.list().front().sequence;
    };
    CHECK(look_later(kDayNs / 2) == 1);
    SUBCASE("confirmed") {
      room.clock.set_synchronised(true);
      CHECK(look_later(kDayNs / 24) == 51);
    }
    SUBCASE("a day later") {
      CHECK(look_later(kDayNs / 4) == 1);
      CHECK(look_later(kDayNs) == 51);
    }
  }
  SUBCASE("not while no time is known") {
    room.engine.set_expiry_now_ns(INT64_MIN);
    room.log->tick();
    CHECK(room.list().front().sequence == 1);
  }
  SUBCASE("by size") {
    room.options.retention_ns = INT64_MAX;
    room.options.size_limit_bytes = 3'000;
    room.log.reset();
    room.open();
    room.clock.advance(kDayNs);
    room.log->tick();
    CHECK(room.list().front().sequence > 70);
    CHECK(room.list().size() > 10);
    CHECK(room.first_fault() == 0);
  }
}

}  // namespace edgecase::audit::test
