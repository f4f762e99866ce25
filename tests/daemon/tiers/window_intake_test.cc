#include "tiers/window_intake.h"

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/tiers/tiered_store.h"
#include "wire/reading_json.h"

namespace edgecase::tiers {
namespace {

// A store, and what it takes of windows.
struct Taking : TieredStore {
  Taking() { set("*/*", "1h then 1m:90d then 10m:forever"); }
  WindowOutcome take(std::vector<wire::Reading> windows) {
    wire::ReadingBatch batch;
    batch.readings = std::move(windows);
    const auto authorized = auth::authorize_write(reader(), batch);
    REQUIRE(authorized.ok());
    WindowIntake intake({engine, *catalog, clock, *retention, erase->fences()});
    WindowOutcome outcome;
    const Status taken = intake.take(*authorized, {}, outcome);
    REQUIRE_MESSAGE(taken.ok(), taken.to_string());
    return outcome;
  }
  // Everything, a line each.
  std::string all() {
    wire::QueryRequest asked = request("*/*", 0, std::nullopt);
    asked.tiers = true;
    auto cursor = service->query(reader(), asked);
    REQUIRE(cursor.ok());
    std::string text;
    wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
    wire::Reading reading;
    for (;;) {
      const auto more = (*cursor)->next(reading);
      REQUIRE_MESSAGE(more.ok(), more.status().to_string());
      if (!*more) return text;
      formatter.reading(reading, text);
    }
  }
};

std::vector<wire::Reading> windows_of(const std::string& text, wire::ReadingBatch& batch) {
  wire::JsonDecodeOutcome outcome;
  REQUIRE(wire::decode_readings_json(text, {}, batch, outcome).ok());
  REQUIRE_MESSAGE(outcome.errors.empty(), outcome.errors.front().message);
  std::vector<wire::Reading> windows;
  std::copy_if(batch.readings.begin(), batch.readings.end(), std::back_inserter(windows),
               [](const wire::Reading& each) { return each.window != nullptr; });
  return windows;
}

// Numbers and texts of half a day, of which the last hour stays.
void fill(Taking& store, SeededRandom& random) {
  for (const char* sensor : {"a", "b"}) {
    std::map<std::int64_t, Value> values;
    for (std::int64_t at = kNow - 12 * kHour; at < kNow; at += kSecond * 47) {
      const std::uint64_t odd = random.next() % 20;
      if (odd == 0) continue;
      values[at] = odd == 1   ? Value::of_text("x")
                   : odd == 2 ? Value::of_int64(static_cast<std::int64_t>(random.next() % 100))
                              : Value::of_float64(static_cast<double>(random.next() % 1000) / 7);
    }
    store.write(sensor, values);
  }
  store.pass();
}

}  // namespace

TEST_CASE("windows: what one store keeps another one takes, in any order, and once more") {
  SeededRandom random(20261129);
  Taking from;
  fill(from, random);
  wire::ReadingBatch batch;
  std::vector<wire::Reading> windows = windows_of(from.all(), batch);
  REQUIRE(windows.size() > 600);
  for (int round = 0; round < 4; ++round) {
    Taking to;
    if (round > 0) {
      for (std::size_t i = windows.size(); i > 1; --i)
        std::swap(windows[i - 1], windows[random.next() % i]);
    }
    const std::size_t cut = random.next() % windows.size();
    const auto middle = windows.begin() + static_cast<std::ptrdiff_t>(cut);
    CHECK(to.take({windows.begin(), middle}).refused.empty());
    to.restart();
    CHECK(to.take({middle, windows.end()}).refused.empty());
    CHECK(to.take(windows).refused.empty());
    // Behind the windows it takes readings, as the other one has them.
    for (const wire::Reading& each : batch.readings) {
      if (each.window == nullptr)
        CHECK(to.write(std::string(each.sensor), *each.time_ns, each.value));
    }
    CHECK(to.all() == from.all());
    to.pass();
    CHECK(to.all() == from.all());
    CHECK_FALSE(to.write("a", kNow - 11 * kHour, Value::of_float64(1)));
  }
}

TEST_CASE("windows: nothing is taken that would count twice, or comes beside readings") {
  SeededRandom random(7);
  Taking from;
  fill(from, random);
  wire::ReadingBatch batch;
  const std::vector<wire::Reading> windows = windows_of(from.all(), batch);
  const auto of_length = [&](std::int64_t every_ns) {
    return *std::find_if(windows.begin(), windows.end(), [=](const wire::Reading& each) {
      return each.window->every_ns == every_ns;
    });
  };
  const wire::Reading minute = of_length(kMinute), coarse = of_length(10 * kMinute);
  {
    Taking store;
    wire::Window small = *coarse.window;
    small.count = small.numbers = 1;
    wire::Reading smaller = coarse;
    smaller.window = &small;
    CHECK(store.take({smaller}).refused.empty());
    std::vector<wire::Reading> fine;
    std::copy_if(windows.begin(), windows.end(), std::back_inserter(fine),
                 [&](const wire::Reading& each) {
                   return each.sensor == coarse.sensor && each.window->every_ns == kMinute &&
                          each.window->begin_ns < coarse.window->begin_ns + 10 * kMinute;
                 });
    REQUIRE(fine.size() > 2);
    CHECK(store.take(fine).refused.size() == fine.size());
    CHECK(store.take({coarse}).refused.size() == 1);  // another one is there
  }
  {
    Taking store;
    const std::string sensor(minute.sensor);
    REQUIRE(store.write(sensor, minute.window->begin_ns + kMinute - 1, Value::of_float64(1)));
    CHECK(store.take({minute}).refused.size() == 1);
    CHECK(store.raw() == 1);
  }
  {
    Taking store;
    store.set("*/*", "1h then 1h:forever");
    CHECK(store.take({minute}).refused.size() == 1);
    CHECK(store.all().empty());
  }
}

}  // namespace edgecase::tiers
