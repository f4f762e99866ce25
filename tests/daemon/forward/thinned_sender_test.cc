#include "forward/target.h"

#include <doctest/doctest.h>

#include "daemon/tiers/tiered_store.h"
#include "forward/unsent.h"

namespace edgecase::forward {
namespace {

constexpr std::int64_t kSettlesNs = 30 * tiers::kSecond;

config::ForwardSettings settings_of(const char* to) {
  config::ForwardSettings settings;
  settings.name = "hub";
  settings.to = to;
  settings.select = {"*:*/*"};
  return settings;
}

// A target that has the first half of two hours of readings, each 20 s; the rest is windows.
struct Thinning {
  explicit Thinning(std::int64_t settles_ns = 0) : settle_ns(settles_ns) {
    store.set("*", "1h then 1m:forever");
    write("t", -240, -120);
    unsent.set_targets({{.target = {"hub", target.selections},
                         .cursor = Cursor(store.engine.committed())}});
    write("t", -120, 0);
    store.maker->spare(&unsent);
    become_windows();
    start();
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
    reader.emplace(store.engine, *store.catalog, settings, target, Shape(), store.retention.get(),
                   &thinned);
    sender.emplace(ThinnedSender::Parts{.engine = store.engine,
                                        .catalog = *store.catalog,
                                        .thinned = thinned,
                                        .rules = store.retention.get()},
                   "hub", settle_ns);
  }
  ThinnedSender::Part read(std::size_t lines_max = Batch::kLinesMax) {
    auto part = sender->read(*reader, lines_max);
    REQUIRE_MESSAGE(part.ok(), part.status().to_string());
    return *std::move(part);
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
  const config::ForwardSettings settings = settings_of("influx+http://127.0.0.1:1");
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

}  // namespace
}  // namespace edgecase::forward
