#include "forward/batch_reader.h"
#include "forward/thinned.h"

#include <doctest/doctest.h>

#include "daemon/tiers/tiered_store.h"
#include "forward/unsent.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kSettlesNs = 30 * tiers::kSecond;

config::ForwardSettings settings_of(const char* to, const char* every) {
  config::ForwardSettings settings;
  settings.name = "hub";
  settings.to = to;
  settings.select = {"*:*/*"};
  settings.every = every;
  return settings;
}

// A target that has the first half of two hours of readings, each 20 s; the rest is windows.
struct Thinning {
  explicit Thinning(std::int64_t settles_ns = 0, const char* every = "",
                    const char* keeping = "1h then 1m:forever")
      : settle_ns(settles_ns), settings(settings_of("influx+http://127.0.0.1:1", every)) {
    store.set("*", keeping);
    write("t", -240, -120);
    has_all();
    write("t", -120, 0);
    store.maker->spare(&unsent);
    become_windows();
    start();
  }
  // What is there now went as it came.
  void has_all() {
    unsent.set_targets(
        {{.target = {"hub", target.selections}, .cursor = Cursor(store.engine.committed())}});
  }
  void write(const char* sensor, int first, int last) {
    std::map<std::int64_t, wire::Value> values;
    for (int i = first; i < last; ++i)
      values[tiers::kNow - 2 * tiers::kHour + i * 20 * tiers::kSecond] = wire::Value::of_int64(i);
    REQUIRE(store.write(sensor, values) == values.size());
  }
  void become_windows() { store.pass(); }
  // As after a crash.
  void start() {
    reader.emplace(store.engine, *store.catalog, settings, target,
                   Shape{.every_ns = target.every_ns, .salt = {}}, store.retention.get(), &thinned);
    sender.emplace(ThinnedSender::Parts{.engine = store.engine,
                                        .catalog = *store.catalog,
                                        .thinned = thinned,
                                        .rules = store.retention.get(),
                                        .every_ns = target.every_ns,
                                        .keeps_names = true},
                   "hub", settle_ns);
  }
  ThinnedSender::Part read(std::size_t lines_max = Batch::kLinesMax) {
    auto part = sender->read(*reader, lines_max);
    REQUIRE_MESSAGE(part.ok(), part.status().to_string());
    return *std::move(part);
  }
  // Lines of what goes by itself, and the readings that do not go as windows of theirs.
  Batch fresh() {
    auto batch = reader->read({.after = 0, .upto = UINT64_MAX});
    REQUIRE_MESSAGE(batch.ok(), batch.status().to_string());
    return *std::move(batch);
  }
  // Windows that went, by their begin.
  std::set<std::int64_t> send(std::int64_t now_ns = 0, std::size_t lines_max = Batch::kLinesMax) {
    std::set<std::int64_t> begins_ns;
    while (sender->has_work()) {
      ThinnedSender::Part part = read(lines_max);
      REQUIRE(sender->announce(part).ok());
      for (const Batch::Line& each : part.batch.lines) begins_ns.insert(each.key.time_ns);
      sender->sent(std::move(part), now_ns, true);
      REQUIRE(sender->keep(now_ns).ok());
    }
    return begins_ns;
  }
  catalog::SeriesId id() { return store.catalog->find("default", "kitchen", "t").value().id; }

  const std::int64_t settle_ns;
  tiers::TieredStore store;
  const config::ForwardSettings settings;
  const config::ForwardTarget target = config::parse_forward(settings).value();
  std::unique_ptr<Records> records = Records::open(store.engine).value();
  Thinned thinned{store.engine, *records};
  Unsent unsent{store.engine,          *store.catalog, store.clock,
                store.retention.get(), nullptr,        &thinned};
  std::optional<BatchReader> reader;
  std::optional<ThinnedSender> sender;
};

TEST_CASE("thinned sender: windows of what waited go once, as columns, in parts or whole") {
  for (const std::size_t lines_max : {std::size_t{8}, Batch::kLinesMax}) {
    CAPTURE(lines_max);
    Thinning bench;
    const ThinnedSender::Part part = bench.read();
    // 40 windows of 3 readings, 7 columns each.
    CHECK(part.is_whole);
    CHECK(part.batch.lines.size() == 40 * 7);
    CHECK(part.batch.window_ns == tiers::kMinute);
    const std::string first(part.batch.text_of(0));
    CHECK(first.find("value_count=3i") != std::string::npos);
    bench.start();
    const std::set<std::int64_t> begins = bench.send(0, lines_max);
    CHECK(begins.size() == 40);
    CHECK(*begins.begin() == tiers::kNow - 2 * tiers::kHour - 40 * tiers::kMinute);
    CHECK(bench.sender->readings() == 120);
    CHECK(bench.send().empty());
    bench.start();
    CHECK(bench.send().empty());
    CHECK(bench.sender->readings() == 120);
  }
}

TEST_CASE("thinned sender: what has not settled goes again, and is counted once") {
  Thinning bench(kSettlesNs);
  CHECK(bench.send(tiers::kSecond).size() == 40);
  CHECK(bench.sender->readings() == 0);
  CHECK(bench.send(2 * tiers::kSecond).empty());
  bench.sender->go_back();
  CHECK(bench.send(3 * tiers::kSecond).size() == 40);
  bench.start();
  CHECK(bench.send(4 * tiers::kSecond).size() == 40);
  REQUIRE(bench.sender->keep(4 * tiers::kSecond + kSettlesNs).ok());
  CHECK(bench.sender->readings() == 120);
  bench.sender->go_back();
  CHECK(bench.send(5 * tiers::kSecond).empty());
}

TEST_CASE("thinned sender: an erasure finds what may have gone, before it is known that it has") {
  Thinning bench(kSettlesNs);
  CHECK_FALSE(bench.sender->has_any().value());
  const ThinnedSender::Part part = bench.read();
  REQUIRE(bench.sender->announce(part).ok());
  bench.start();
  const SentWindows sent = bench.sender->of(bench.id()).value();
  REQUIRE(sent.spans.size() == 1);
  CHECK(sent.spans[0] ==
        SentWindows::Span{.begin_ns = tiers::kNow - 2 * tiers::kHour - 40 * tiers::kMinute,
                          .end_ns = tiers::kNow - 2 * tiers::kHour,
                          .every_ns = tiers::kMinute,
                          .columns = kAllWindowColumns});
  CHECK(sent.done_to_ns == INT64_MIN);
  CHECK(bench.sender->has_any().value());
}

TEST_CASE("thinned sender: what was erased since does not go, and its records go with the series") {
  Thinning bench;
  erase::EraseRequest request;
  request.namespace_name = "default";
  request.selection = wire::parse_selector("*").value();
  request.from_ns = tiers::kNow - 2 * tiers::kHour - 10 * tiers::kMinute;
  REQUIRE(bench.store.erase->erase(tiers::reader(), request).ok());
  CHECK(bench.send().size() == 30);
  request.from_ns.reset();
  REQUIRE(bench.store.erase->erase(tiers::reader(), request).ok());
  bench.start();
  CHECK(bench.send().empty());
  CHECK(bench.thinned.owed("hub", std::nullopt, 1).value().empty());
}

TEST_CASE("thinned sender: a column that has the name of a series here does not go") {
  Thinning bench;
  REQUIRE(bench.store.write("t.value_min", tiers::kNow - tiers::kMinute, wire::Value::of_int64(1)));
  const ThinnedSender::Part part = bench.read();
  CHECK(part.batch.lines.size() == 40 * 6);
  CHECK(part.batch.text.find("value_min") == std::string::npos);
}

TEST_CASE("thinned sender: a window that was refused is read again by its place") {
  Thinning bench;
  bench.send();
  const wire::ReadingKey key{bench.id().device, bench.id().sensor,
                             tiers::kNow - 2 * tiers::kHour - 5 * tiers::kMinute};
  std::size_t taken = 0;
  const Batch batch =
      bench.reader
          ->read({{Place{bench.id().namespace_id, wire::make_reading_key(key)}, 400, 1},
                  {Place{bench.id().namespace_id,
                         wire::make_reading_key(
                             {key.device, key.sensor, key.time_ns + tiers::kSecond})},
                   400, 1}},
                 taken)
          .value();
  CHECK(taken == 2);
  CHECK(batch.lines.size() == 7);
  CHECK(batch.window_ns == tiers::kMinute);
}

std::string line_of(const char* column, const std::string& value, std::int64_t time_ns) {
  return std::string("value_") + column + "=" + value + " " + std::to_string(time_ns) + "\n";
}

constexpr std::int64_t kFirst = tiers::kNow - 2 * tiers::kHour - 40 * tiers::kMinute;

TEST_CASE("thinned sender: windows of `every` are made of finer ones, exactly") {
  Thinning bench(0, "10m");
  const ThinnedSender::Part part = bench.read();
  CHECK(part.batch.lines.size() == 4 * 7);
  CHECK(part.batch.window_ns == 10 * tiers::kMinute);
  struct Case {
    const char *column, *value;
  };
  for (const Case& each :
       {Case{"count", "30i"}, Case{"min", "-120i"}, Case{"max", "-91i"}, Case{"sum", "-3165i"},
        Case{"mean", "-105.5"}, Case{"first", "-120i"}, Case{"last", "-91i"}}) {
    CAPTURE(each.column);
    CHECK(part.batch.text.find(line_of(each.column, each.value, kFirst)) != std::string::npos);
  }
  REQUIRE(part.steps.size() == 1);
  CHECK(part.steps[0].after.spans ==
        std::vector{SentWindows::Span{kFirst, kFirst + 40 * tiers::kMinute, 10 * tiers::kMinute,
                                      kAllWindowColumns}});
  CHECK(bench.send().size() == 4);
  CHECK(bench.sender->readings() == 120);
}

TEST_CASE(
    "thinned sender: windows that are longer than `every`, or no part of it, go as they are") {
  struct Case {
    const char *every, *keeping;
    std::int64_t length_ns;
    std::size_t count;
  };
  for (const Case& each : {Case{"1m", "1h then 10m:forever", 10 * tiers::kMinute, 4},
                           Case{"7m", "1h then 10m:forever", 10 * tiers::kMinute, 4},
                           Case{"90s", "1h then 1m:forever", tiers::kMinute, 40}}) {
    CAPTURE(each.every);
    Thinning bench(0, each.every, each.keeping);
    const ThinnedSender::Part part = bench.read();
    CHECK(part.batch.lines.size() == each.count * 7);
    REQUIRE(part.steps.size() == 1);
    REQUIRE(part.steps[0].after.spans.size() == 1);
    CHECK(part.steps[0].after.spans[0].every_ns == each.length_ns);
    CHECK(bench.send().size() == each.count);
    CHECK(bench.sender->readings() == 120);
  }
}

TEST_CASE("thinned sender: a window of `every` has what became windows and what did not yet") {
  Thinning bench(0, "1h");
  bench.send();
  const std::int64_t begin_ns = tiers::kNow - tiers::kHour;
  const auto write = [&](std::int64_t from_ns, std::int64_t first) {
    for (std::int64_t i = 0; i < 10; ++i)
      REQUIRE(
          bench.store.write("t", from_ns + i * tiers::kSecond, wire::Value::of_int64(first + i)));
  };
  write(begin_ns + 5 * tiers::kMinute, 100);
  bench.store.engine.set_expiry_now_ns(tiers::kNow + 30 * tiers::kMinute);
  bench.become_windows();
  REQUIRE(bench.store.raw() == 0);
  // They belong to the same window, and stay as they came.
  write(begin_ns + 40 * tiers::kMinute, 1'000);
  const ThinnedSender::Part part = bench.read();
  CHECK(part.batch.lines.size() == 7);
  CHECK(part.batch.text.find(line_of("count", "20i", begin_ns)) != std::string::npos);
  CHECK(part.batch.text.find(line_of("first", "100i", begin_ns)) != std::string::npos);
  CHECK(part.batch.text.find(line_of("min", "100i", begin_ns)) != std::string::npos);
  CHECK(part.batch.text.find(line_of("max", "1009i", begin_ns)) != std::string::npos);
  CHECK(part.batch.text.find(line_of("last", "1009i", begin_ns)) != std::string::npos);
  const Batch fresh = bench.fresh();
  CHECK(fresh.text == part.batch.text);
  CHECK(fresh.unsent == UnsentCounts());
  // It is read again by its place, as all of it.
  std::size_t taken = 0;
  const auto again = bench.reader->read({{place_of(fresh.lines[0]), 400, 1}}, taken);
  REQUIRE(again.ok());
  CHECK(again->text == part.batch.text);
}

TEST_CASE("thinned sender: what a longer window took from one of `every` is told") {
  Thinning bench(0, "7m", "1h then 10m:forever");
  bench.send();
  REQUIRE(bench.store.write("t", tiers::kNow - 55 * tiers::kMinute, wire::Value::of_int64(1)));
  bench.store.engine.set_expiry_now_ns(tiers::kNow + 10 * tiers::kMinute);
  bench.become_windows();
  // Behind the last window of 10 minutes, within one of 7 that it cuts.
  const std::int64_t mark_ns = bench.store.retention->marks().find(bench.id()).before_ns;
  REQUIRE(window_begin_ns(mark_ns, 7 * tiers::kMinute) != mark_ns);
  REQUIRE(bench.store.write("t", mark_ns, wire::Value::of_int64(1)));
  const Batch fresh = bench.fresh();
  CHECK(fresh.lines.empty());
  CHECK(fresh.unsent[static_cast<std::size_t>(retention::Leaving::Thinned)] == 1);
}

TEST_CASE("thinned sender: what becomes windows late, before those that went, goes too") {
  for (const char* every : {"", "10m"}) {
    CAPTURE(every);
    Thinning bench(0, every);
    CHECK(bench.send().size() == (*every == 0 ? 40 : 4));
    // Without tiers whatever comes is stored as it came.
    bench.store.set("*", "forever");
    bench.store.pass();
    bench.has_all();
    const std::int64_t late_ns = kFirst + 12 * tiers::kMinute + tiers::kSecond;
    REQUIRE(bench.store.write("t", late_ns, wire::Value::of_int64(7)));
    bench.store.set("*", "1h then 1m:forever");
    bench.become_windows();
    REQUIRE(bench.thinned.owed("hub", bench.id()).value()->debt == 1);
    const std::int64_t begin_ns =
        window_begin_ns(late_ns, *every == 0 ? tiers::kMinute : 10 * tiers::kMinute);
    CHECK(bench.send() == std::set{begin_ns});
    CHECK(bench.sender->readings() == 121);
    CHECK(bench.send().empty());
    bench.start();
    CHECK(bench.send().empty());
    CHECK(bench.sender->readings() == 121);
  }
}

TEST_CASE("thinned sender: windows go however often their lengths change") {
  Thinning bench;
  bench.send();
  for (int i = 0; i < 70; ++i) {
    CAPTURE(i);
    bench.has_all();
    bench.store.set("*", i % 2 == 0 ? "1h then 2m:forever" : "1h then 1m:forever");
    const std::int64_t now_ns = tiers::kNow + (i + 1) * 10 * tiers::kMinute;
    bench.store.engine.set_expiry_now_ns(now_ns);
    REQUIRE(bench.store.write("t", now_ns - tiers::kHour - 9 * tiers::kMinute,
                              wire::Value::of_int64(i)));
    bench.become_windows();
    CHECK(bench.send().size() == 1);
  }
  const SentWindows sent = bench.sender->of(bench.id()).value();
  CHECK(sent.spans.size() == SentWindows::kSpansMax);
  CHECK(sent.spans[0].has_several_lengths());
}

TEST_CASE("thinned sender: a target that rests is owed one record a series, and gets it back") {
  Thinning bench;
  bench.send();
  // It is not configured: nobody knows what it was to get.
  const auto rest = [&] {
    bench.unsent.set_targets(
        {{.target = {"hub", std::nullopt}, .cursor = Cursor(bench.store.engine.committed())}});
  };
  const auto records = [&] {
    return bench.store.engine.range_stats(bench.records->id(), {}, {}).value().entries;
  };
  rest();
  std::uint64_t before = 0;
  for (int i = 0; i < 50; ++i) {
    const std::int64_t now_ns = tiers::kNow + (i + 1) * 10 * tiers::kMinute;
    bench.store.engine.set_expiry_now_ns(now_ns);
    REQUIRE(bench.store.write("t", now_ns - tiers::kHour - 9 * tiers::kMinute,
                              wire::Value::of_int64(i)));
    bench.become_windows();
    if (i == 0) before = records();
    CHECK(records() == before);
  }
  CHECK(bench.thinned.owed("hub", bench.id()).value()->readings == 120 + 50);
  bench.start();
  CHECK(bench.send().size() == 50);
  CHECK(bench.sender->readings() == 170);
  REQUIRE(bench.thinned.forget("hub").ok());
  CHECK_FALSE(bench.thinned.owed("hub", bench.id()).value());
}

}  // namespace
}  // namespace edgecase::forward
