// Tiers on the real engine while the values drive is away, and with damage: what is lacking is
// said, the rest is answered, and nothing becomes windows that cannot be read.
#include <doctest/doctest.h>

#include "catalog/tier_spaces.h"
#include "crash/tiers_store.h"
#include "wire/reading.h"
#include "wire/tiers.h"

namespace edgecase::test {
namespace {

constexpr std::int64_t kMinute = 60 * kTierSecondNs;
constexpr std::int64_t kHourNs = 60 * kMinute;
constexpr std::int64_t kNow = ManualClock::kStartWallNs;

// The rows of windows; those that lack something are counted.
struct Answer {
  TierStore::Rows rows;
  std::uint64_t unavailable = 0, damaged = 0;
  Status status;
};

class Room {
 public:
  // Readings of four hours, one each 5 s: those of the first three become windows.
  Room() : store(1, false) {
    REQUIRE(store.open().ok());
    write(kNow - 4 * kHourNs, kNow - 2 * kHourNs);
    settle();
    write(kNow - 2 * kHourNs, kNow);
  }

  void write(std::int64_t from_ns, std::int64_t to_ns) {
    for (std::int64_t begin_ns = from_ns; begin_ns < to_ns; begin_ns += 10 * kMinute) {
      wire::ReadingBatch batch;
      for (std::int64_t time_ns = begin_ns; time_ns < begin_ns + 10 * kMinute;
           time_ns += 5 * kTierSecondNs)
        batch.readings.push_back({"default", "board", "x", time_ns,
                                  wire::Value::of_int64(time_ns / kTierSecondNs % 97)});
      REQUIRE(store.pipeline->ingest(*auth::authorize_write(somebody(), batch)).ok());
    }
  }
  void rule() {
    const wire::Keeping keeping = wire::parse_keeping("1h then 1m:1d then 10m:forever").value();
    REQUIRE(store.retention
                ->set({"", wire::parse_selector("*/*").value(), keeping.raw_ns, keeping.tiers})
                .ok());
  }
  // Everything lies in tables, and nothing in memory.
  void settle() {
    REQUIRE(store.engine->flush().ok());
    REQUIRE(store.compact().ok());
    CHECK(store.rest(3) == "");
  }
  void reopen() {
    store.close();
    REQUIRE(store.open().ok());
  }
  Answer ask(std::int64_t every_ns, wire::Aggregate aggregate = wire::Aggregate::Sum) {
    wire::QueryRequest request;
    request.selection = wire::parse_selector("board/x").value();
    request.every_ns = every_ns;
    request.aggregate = aggregate;
    request.lacks_to_ns = kNow + kHourNs;
    Answer answer;
    const auto cursor = store.query->query(somebody(), request);
    if (!cursor.ok()) {
      answer.status = cursor.status();
      return answer;
    }
    wire::Reading reading;
    while (true) {
      const auto more = (*cursor)->next(reading);
      if (!more.ok()) answer.status = more.status();
      if (!more.ok() || !*more) return answer;
      answer.unavailable += reading.lack == wire::Lack::Unavailable ? 1 : 0;
      answer.damaged += reading.lack == wire::Lack::Damaged ? 1 : 0;
      if (reading.lack == wire::Lack::Nothing)
        answer.rows[reading.time_ns.value_or(0)] = reading.value.int64;
    }
  }
  // A byte of the largest value table of a namespace.
  void damage(NamespaceId id) {
    const auto shares = store.engine->locate(id, {});
    REQUIRE(shares.ok());
    std::size_t damaged = 0;
    store.close();
    for (const FileShare& each : *shares) {
      if (!each.path.starts_with("/v/")) continue;
      store.disk.flip_bit(each.path, store.disk.contents(each.path).size() / 3, 3);
      ++damaged;
      break;
    }
    REQUIRE(damaged > 0);
    REQUIRE(store.open().ok());
    CHECK(store.rest(70) == "");
  }
  NamespaceId readings() const { return store.engine->find_namespace("default")->id; }
  NamespaceId tier(std::int64_t every_ns) const {
    return store.engine->find_namespace(catalog::tier_space_name(readings(), every_ns))->id;
  }

  TierStore store;
};

}  // namespace

TEST_CASE("tiers: while the values drive is away windows are unavailable, and come back") {
  Room room;
  room.rule();
  const Answer before = room.ask(10 * kMinute);
  REQUIRE(room.store.maker->pass().ok());
  const retention::TierMark mark = room.store.mark("x");
  CHECK(mark.before_ns > kNow - 2 * kHourNs);
  room.settle();
  room.reopen();
  room.store.disk.set_gone("/v", true);
  room.store.pass(70 * kTierSecondNs);
  const Answer away = room.ask(10 * kMinute);
  CHECK(away.status.to_string() == "ok");
  CHECK(away.unavailable > 0);
  CHECK(away.damaged == 0);
  for (const auto& [time_ns, value] : away.rows) CHECK(before.rows.at(time_ns) == value);
  // Readings that cannot be read stay, and their mark with them.
  room.store.pass(2 * kHourNs);
  const Status passed = room.store.maker->pass();
  CHECK_FALSE(passed.ok());
  CHECK(passed.file().starts_with("/v/store"));
  CHECK(room.store.mark("x").before_ns == mark.before_ns);
  CHECK(room.store.maker->thin_oldest(1, kNow).readings == 0);
  room.store.cure();
  CHECK(room.store.rest(120) == "");
  CHECK(room.ask(10 * kMinute).rows == before.rows);
  CHECK(room.store.maker->pass().ok());
  CHECK(room.store.mark("x").before_ns > mark.before_ns);
  CHECK(room.ask(10 * kMinute).rows == before.rows);
}

TEST_CASE("tiers: damaged windows are told, and the others answered") {
  Room room;
  room.rule();
  const Answer before = room.ask(10 * kMinute);
  REQUIRE(room.store.maker->pass().ok());
  room.settle();
  room.damage(room.tier(10 * kMinute));
  const Answer after = room.ask(10 * kMinute);
  CHECK(after.status.to_string() == "ok");
  CHECK(after.damaged > 0);
  CHECK(after.rows.size() >= 5);  // of readings, at least
  for (const auto& [time_ns, value] : after.rows) CHECK(before.rows.at(time_ns) == value);
  // Another tier is whole.
  CHECK(room.ask(kMinute).damaged == 0);
  CHECK(room.ask(5 * kMinute).rows.size() == 48);
}

TEST_CASE("tiers: damaged readings become no windows, with all that is newer of their series") {
  Room room;
  REQUIRE(room.store.engine->flush().ok());
  room.damage(room.readings());
  room.rule();
  const Answer before = room.ask(kMinute);
  CHECK(before.damaged > 0);
  CHECK(before.damaged < 240);
  const Status passed = room.store.maker->pass();
  CHECK(passed.code() == StatusCode::Corruption);
  CHECK(room.store.maker->status().problem == passed.message());
  CHECK(room.store.mark("x").every_ns.empty());
  const Answer after = room.ask(kMinute);
  CHECK(after.rows == before.rows);
  CHECK(after.damaged == before.damaged);
  const retention::Thinned thinned = room.store.maker->thin_oldest(1u << 20, kNow);
  CHECK(thinned.readings == 0);
  CHECK(thinned.left.find("damaged") != std::string::npos);
}

}  // namespace edgecase::test
