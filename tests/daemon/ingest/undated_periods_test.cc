#include "ingest/reading_times.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "wire/time_text.h"

using namespace edgecase;
using ingest::UndatedPeriod;
using ingest::UndatedPeriods;
using State = UndatedPeriod::State;

namespace {

constexpr std::int64_t kStepNs = 1'000'000'000;

struct Store {
  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{7};

  Store() { clock.set_trust(ClockTrust::Untrusted); }
  std::unique_ptr<UndatedPeriods> open(const std::string& boot_id = "a") {
    auto opened = UndatedPeriods::open(engine, clock, random, boot_id);
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  // As the pipeline writes it; returns the time.
  std::int64_t arrive(UndatedPeriods& periods) {
    const std::int64_t time_ns = periods.arrival_ns().value();
    WriteBatch batch;
    const std::vector<std::uint32_t> slots = periods.append_records({&time_ns, 1}, batch);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    periods.confirm(slots);
    return time_ns;
  }
  NamespaceId records() { return engine.find_namespace(wire::kUndatedNamespace)->id; }
  std::size_t record_count() { return engine.range_stats(records(), {}, {})->entries; }
};

UndatedPeriod dated(UndatedPeriod period, std::int64_t boot_at_ns, State state = State::Dated) {
  period.state = state;
  period.boot_at_ns = boot_at_ns;
  period.not_after_ns = boot_at_ns + 100 * kStepNs;
  return period;
}

}  // namespace

TEST_CASE("undated periods: only while the clock is not trusted, and in order of arrival") {
  Store store;
  const auto periods = store.open();
  const std::int64_t first = store.arrive(*periods);
  CHECK(wire::is_undated_time(first));
  store.clock.advance(kStepNs);
  CHECK(store.arrive(*periods) == first + kStepNs);
  CHECK(store.record_count() == 1);
  store.clock.set_trust(ClockTrust::Trusted);
  CHECK_FALSE(periods->arrival_ns());
  REQUIRE(periods->periods().size() == 1);
  CHECK(periods->periods()[0].boot_id == "a");
  CHECK(periods->periods()[0].moment_ns(first + kStepNs) == store.clock.boot_ns());
}

TEST_CASE("undated periods: a store whose clock was always right has no records of them") {
  Store store;
  store.clock.set_trust(ClockTrust::Trusted);
  CHECK_FALSE(store.open()->arrival_ns());
  CHECK_FALSE(store.engine.find_namespace(wire::kUndatedNamespace).ok());
  store.clock.set_trust(ClockTrust::Untrusted);
  store.engine.fail_writes(out_of_space("full"));
  const auto periods = store.open();  // it starts on a full drive
  CHECK_FALSE(periods->arrival_ns());
  store.engine.fail_writes(ok());
  store.arrive(*periods);
  CHECK(store.record_count() == 1);
}

TEST_CASE(
    "undated periods: a record goes with the first batch that needs it, until one is durable") {
  Store store;
  const auto periods = store.open();
  const std::vector<std::int64_t> times{periods->arrival_ns().value(), 5,
                                        periods->arrival_ns().value()};
  for (int attempt = 0; attempt < 2; ++attempt) {
    WriteBatch batch;
    CHECK(periods->append_records(times, batch).size() == 1);
    CHECK(batch.count() == 1);
  }
  periods->confirm(std::vector<std::uint32_t>{wire::undated_slot_of(times[0])});
  WriteBatch batch;
  CHECK(periods->append_records(times, batch).empty());
  CHECK(batch.count() == 0);
}

TEST_CASE("undated periods: a restart goes on in the period of its boot, a reboot begins another") {
  Store store;
  const std::int64_t first = store.arrive(*store.open());
  store.clock.advance(kStepNs);
  CHECK(store.arrive(*store.open()) == first + kStepNs);
  const std::int64_t other = store.arrive(*store.open("b"));
  CHECK(wire::undated_slot_of(other) == wire::undated_slot_of(first) + 1);
  const auto periods = store.open("b")->periods();
  REQUIRE(periods.size() == 2);
  CHECK(periods[0].boot_id == "a");
  CHECK(periods[1].boot_id == "b");
}

TEST_CASE("undated periods: a period that was dated takes no more arrivals, and is remembered") {
  Store store;
  std::int64_t first = 0;
  {
    const auto periods = store.open();
    first = store.arrive(*periods);
    CHECK(periods->dated_ns(first) == first);
    const UndatedPeriod period = dated(periods->periods()[0], 1'000 * kStepNs);
    REQUIRE(periods->change({&period, 1}).ok());
    CHECK(periods->dated_ns(first) == 1'000 * kStepNs + store.clock.boot_ns());
    CHECK(periods->dated_ns(17) == 17);
    CHECK(wire::undated_slot_of(store.arrive(*periods)) == wire::undated_slot_of(first) + 1);
  }
  const auto again = store.open();
  CHECK(again->dated_ns(first) == 1'000 * kStepNs + store.clock.boot_ns());
}

TEST_CASE("undated periods: a change that is not durable did not happen") {
  Store store;
  const auto periods = store.open();
  const std::int64_t first = store.arrive(*periods);
  const UndatedPeriod period = dated(periods->periods()[0], 1'000 * kStepNs);
  store.engine.fail_next_write(out_of_space("full"));
  CHECK(periods->change({&period, 1}).code() == StatusCode::OutOfSpace);
  CHECK(periods->dated_ns(first) == first);
  CHECK(periods->periods()[0].state == State::Waits);
}

TEST_CASE("undated periods: a span longer than a slot takes another, which goes on in order") {
  Store store;
  const auto periods = store.open();
  const std::int64_t first = store.arrive(*periods);
  store.clock.advance(wire::kUndatedSlotNs);
  const std::int64_t later = store.arrive(*periods);
  CHECK(later > first);
  CHECK(wire::undated_slot_of(later) == wire::undated_slot_of(first) + 1);
  CHECK(periods->periods()[1].moment_ns(later) == store.clock.boot_ns());
}

TEST_CASE("undated periods: of those that are done so many are kept, used up, they begin anew") {
  Store store;
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < wire::kUndatedSlots / 2; ++i) {
    const auto periods = store.open();
    last = wire::undated_slot_of(store.arrive(*periods));
    const UndatedPeriod period = dated(periods->periods().back(), kStepNs, State::Done);
    REQUIRE(periods->change({&period, 1}).ok());
    REQUIRE(periods->periods().size() <= ingest::kDonePeriodsMax);
    REQUIRE(store.record_count() <= ingest::kDonePeriodsMax);
    if (last >= wire::kUndatedSlots / 2) break;
  }
  CHECK(last == wire::kUndatedSlots / 2);
  const auto anew = store.open();
  CHECK(store.record_count() == 0);
  CHECK(wire::undated_slot_of(store.arrive(*anew)) < wire::kUndatedSlots / 4);
}

TEST_CASE("undated periods: with no slot left the wall's time has to do") {
  Store store;
  for (std::uint32_t i = 0; i <= wire::kUndatedSlots; ++i) {
    const auto periods = store.open("boot " + std::to_string(i));
    if (!periods->arrival_ns()) {
      CHECK(periods->periods().back().slot == wire::kUndatedSlots - 1);
      return;
    }
    // Skips to the end.
    UndatedPeriod period = periods->periods().back();
    period.slot = wire::kUndatedSlots - 1;
    REQUIRE(periods->change({&period, 1}).ok());
  }
  FAIL("there is always another slot");
}

TEST_CASE("undated periods: a record that cannot be read is one of an unknown boot") {
  Store store;
  const std::int64_t first = store.arrive(*store.open());
  const Bytes key =
      Bytes("P\0\0", 3) + Bytes{static_cast<char>(wire::undated_slot_of(first) >> 8),
                                static_cast<char>(wire::undated_slot_of(first) & 0xff)};
  const Bytes whole = store.engine.get(store.records(), key, {}).value();
  for (std::size_t length = 0; length < 36; ++length) {
    WriteBatch batch;
    batch.put(store.records(), key, ByteView(whole).substr(0, length));
    REQUIRE(store.engine.write(batch, Durability::Sync).ok());
    const auto periods = store.open()->periods();
    REQUIRE(periods.size() == 1);
    CHECK(periods[0].state == State::Waits);
    CHECK(periods[0].boot_id != "a");
    CHECK(periods[0].first_ns() == first);
  }
  WriteBatch batch;
  batch.put(store.records(), key, Bytes(1, 2) + whole.substr(1));
  REQUIRE(store.engine.write(batch, Durability::Sync).ok());
  CHECK(UndatedPeriods::open(store.engine, store.clock, store.random, "a").status().code() ==
        StatusCode::Unsupported);
}
