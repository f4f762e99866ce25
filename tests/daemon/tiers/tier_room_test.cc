#include <doctest/doctest.h>

#include "daemon/tiers/tiered_store.h"

namespace edgecase::tiers {
namespace {

// A reading a minute of the last ten hours.
std::map<std::int64_t, Value> by_minutes() {
  std::map<std::int64_t, Value> values;
  for (std::int64_t time_ns = kNow - 10 * kHour; time_ns < kNow; time_ns += kMinute)
    values[time_ns] = Value::of_int64(time_ns / kMinute % 97);
  return values;
}

}  // namespace

TEST_CASE("tiers: to make room the oldest readings become windows before their time") {
  TieredStore store;
  for (const char* sensor : {"temp", "hum", "plain"}) store.write(sensor, by_minutes());
  store.set("kitchen/temp", "7d then 10m:90d then 1h:forever");
  store.set("kitchen/hum", "7d then 2h:forever");
  const std::string sums = store.ask("kitchen/*", 2 * kHour, Aggregate::Sum);
  const std::uint64_t all = store.raw();
  store.pass();
  CHECK(store.raw() == all);

  // About a fifth of all bytes: of two series alone, so more of their time.
  const auto info = store.engine.find_namespace("default");
  const std::uint64_t bytes = store.engine.approximate_size(info->id, {}).value() / 5;
  const retention::Thinned thinned = store.maker->thin_oldest(bytes, kNow);
  CHECK(thinned.left.find("but for the newest") != std::string::npos);
  CHECK(thinned.readings == all - store.raw());
  CHECK(thinned.value_bytes >= bytes / 2);
  CHECK(thinned.readings >= 120);
  CHECK(thinned.readings <= 600);
  CHECK(thinned.before_ns < kNow - 3 * kHour);
  CHECK(store.columns(kHour) > 0);
  CHECK(store.ask("kitchen/*", 2 * kHour, Aggregate::Sum) == sums);
  CHECK_FALSE(store.write("temp", kNow - 10 * kHour + 1, Value::of_int64(1)));
  CHECK(store.write("plain", kNow - 10 * kHour + 1, Value::of_int64(0)));
  // What is hidden is erased, and only then has room been made.
  CHECK_FALSE(store.retention->marks().waiting(10).empty());
  CHECK_FALSE(store.maker->is_going(false));
  CHECK(store.retention->marks().waiting(10).empty());

  // As much as there is: whole windows, to the limit, and no more than once.
  CHECK(store.maker->thin_oldest(bytes * 100, kNow - 90 * kMinute).readings > 0);
  CHECK(store.ask("kitchen/*", 2 * kHour, Aggregate::Sum) == sums);
  CHECK(store.raw() == 601 + 2 * 60 + (kNow / kHour % 2 == 0 ? 120 : 180));
  CHECK(store.maker->thin_oldest(bytes, kNow - 90 * kMinute).readings == 0);
  store.restart();
  CHECK(store.ask("kitchen/*", 2 * kHour, Aggregate::Sum) == sums);
}

TEST_CASE("tiers: who reads holds the room that is made, but not for ever") {
  TieredStore store;
  store.write("temp", by_minutes());
  store.set("*/*", "7d then 1h:forever");
  const std::shared_ptr<const Snapshot> reader = store.engine.snapshot();
  CHECK(store.maker->thin_oldest(1, kNow).readings > 0);
  CHECK(store.maker->is_going(false));
  CHECK_FALSE(store.maker->is_going(true));
}

TEST_CASE("tiers: what keeps readings from making room is told") {
  TieredStore store;
  store.write("temp", by_minutes());
  const retention::Thinned without = store.maker->thin_oldest(1000, kNow);
  CHECK(without.readings == 0);
  CHECK(without.left.find("no rule of retention has tiers") != std::string::npos);
  store.set("*/*", "7d then 1h:forever");
  store.engine.fail_writes(io_error("a broken drive"));
  const retention::Thinned failed = store.maker->thin_oldest(1000, kNow);
  CHECK(failed.readings == 0);
  CHECK(failed.left.find("a broken drive") != std::string::npos);
  store.engine.fail_writes(ok());
  CHECK(store.maker->thin_oldest(1000, kNow).readings > 0);
}

}  // namespace edgecase::tiers
