#include "forward/batch_reader.h"

#include <doctest/doctest.h>

#include "support/model_engine.h"
#include "wire/time_text.h"

namespace edgecase::forward {
namespace {

// A store with readings, and a target that wants some of them.
struct Bench {
  explicit Bench(config::ForwardKind kind, std::vector<config::ForwardSelection> selections)
      : catalog(std::move(catalog::Catalog::open(engine, {})).value()) {
    target.kind = kind;
    target.selections = std::move(selections);
    reader = std::make_unique<BatchReader>(engine, *catalog, settings, target);
  }

  void store(const wire::Reading& reading, bool is_named = true) {
    std::vector<catalog::SeriesId> ids;
    catalog::CatalogAdditions additions;
    REQUIRE(catalog->resolve({&reading, 1}, ids, additions).ok());
    WriteBatch batch;
    additions.append_to(batch);
    Bytes value;
    wire::append_value(reading.value, value);
    batch.put(ids[0].namespace_id,
              wire::make_reading_key({ids[0].device, ids[0].sensor, *reading.time_ns}), value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
    if (is_named) catalog->confirm(additions);
  }
  void store(const char* device, const char* sensor, std::int64_t time_ns, double value) {
    store({.namespace_name = "default",
           .device = device,
           .sensor = sensor,
           .time_ns = time_ns,
           .value = wire::Value::of_float64(value)});
  }
  Batch read(CommitPosition after = 0, CommitPosition upto = UINT64_MAX) {
    auto batch = reader->read({.after = after, .upto = upto});
    REQUIRE(batch.ok());
    return std::move(batch).value();
  }

  test::ModelEngine engine;
  std::unique_ptr<catalog::Catalog> catalog;
  config::ForwardSettings settings;
  config::ForwardTarget target;
  std::unique_ptr<BatchReader> reader;
};

std::vector<config::ForwardSelection> all_of_default() {
  return {{"default", {"*", "*"}}};
}

TEST_CASE("batch reader: lines are what a range holds, as it is now") {
  Bench bench(config::ForwardKind::Influx, all_of_default());
  bench.store("a", "x", 1, 1.5);
  const CommitPosition before = bench.engine.committed();
  bench.store("a", "x", 2, 2.5);
  bench.store("b", "y", 1, 3.5);
  const CommitPosition middle = bench.engine.committed();
  CHECK(bench.read(before).text == "x,device=a value=2.5 2\ny,device=b value=3.5 1\n");
  CHECK(bench.read(0, before).text == "x,device=a value=1.5 1\n");
  // What was corrected later belongs to the later range alone.
  bench.store("a", "x", 2, 9);
  CHECK(bench.read(before, middle).text == "y,device=b value=3.5 1\n");
  const Batch late = bench.read(middle);
  CHECK(late.text == "x,device=a value=9 2\n");
  CHECK(late.is_whole);
  REQUIRE(late.parts.size() == 1);
  CHECK(late.parts[0].database == "default");
}

TEST_CASE("batch reader: what is not wanted, not dated or not to be held is left out") {
  Bench bench(config::ForwardKind::Influx, {{"default", {"k*", "*"}}, {"lab", {"*", "*"}}});
  bench.store("kitchen", "x", 1, 1);
  bench.store("hall", "x", 1, 1);
  bench.store("kitchen", "x", wire::kUndatedFromNs, 1);
  bench.store({.namespace_name = "other",
               .device = "kitchen",
               .sensor = "x",
               .time_ns = 1,
               .value = wire::Value::of_int64(1)});
  bench.store({.namespace_name = "lab",
               .device = "d",
               .sensor = "x",
               .time_ns = 1,
               .value = wire::Value::of_bool(true)});
  bench.store({.namespace_name = "lab",
               .device = "d",
               .sensor = "x",
               .time_ns = 2,
               .value = wire::Value::of_bytes("\x01", "image/png")});
  const Batch batch = bench.read();
  CHECK(batch.text == "x,device=kitchen value=1 1\nx,device=d value=true 1\n");
  CHECK(batch.unfit == 1);
  REQUIRE(batch.parts.size() == 2);
  CHECK(batch.parts[1].database == "lab");
}

TEST_CASE("batch reader: an EdgeCase gets bytes, too, and a place is gone on from") {
  Bench bench(config::ForwardKind::EdgeCase, all_of_default());
  bench.store({.namespace_name = "default",
               .device = "a",
               .sensor = "x",
               .time_ns = 1,
               .value = wire::Value::of_bytes("\x01", "image/png")});
  for (std::int64_t i = 0; i < 20'000; ++i) bench.store("b", "y", i, 1);
  const Batch first = bench.read();
  CHECK(first.text.find("image/png") != std::string::npos);
  CHECK(first.unfit == 0);
  CHECK_FALSE(first.is_whole);
  std::size_t lines = first.lines.size();
  std::optional<Place> behind = first.last;
  for (bool is_whole = false; !is_whole;) {
    const auto batch = bench.reader->read({.after = 0, .upto = UINT64_MAX, .behind = behind});
    REQUIRE(batch.ok());
    lines += batch->lines.size();
    is_whole = batch->is_whole;
    behind = batch->last;
  }
  CHECK(lines == 20'001);
}

TEST_CASE("batch reader: an EdgeCase gets a column of each series and type") {
  Bench bench(config::ForwardKind::EdgeCase, all_of_default());
  const auto store = [&bench](const char* sensor, std::int64_t time_ns, const wire::Value& value) {
    bench.store({.namespace_name = "default",
                 .device = "a",
                 .sensor = sensor,
                 .time_ns = time_ns,
                 .value = value});
  };
  store("x", 1, wire::Value::of_int64(1));
  store("x", 2, wire::Value::of_float64(2.5));
  store("x", 3, wire::Value::of_text("off"));
  store("x", 4, wire::Value::of_int64(4));
  store("y", 5, wire::Value::of_bool(true));
  const Batch batch = bench.read();
  CHECK(batch.columns.size() == 3);
  const std::string body = batch.body_of(0, batch.lines.size());
  CHECK(body.find(R"(00000001Z","steps":[3],"values":[1,4],"type":"int"})") != std::string::npos);
  CHECK(body.find(R"(00000002Z","value":2.5})") != std::string::npos);
  CHECK(body.find(R"("value":"off"})") != std::string::npos);
  CHECK(body.find(R"("sensor":"y","time":"1970-01-01T00:00:00.000000005Z","value":true})") !=
        std::string::npos);
}

TEST_CASE("batch reader: rules of series go along until they are said, and after a change") {
  Bench bench(config::ForwardKind::EdgeCase, all_of_default());
  constexpr std::int64_t kHour = 3'600'000'000'000;
  bench.store("a", "x", 1, 1.5);
  bench.store("b", "y", 1, 1.5);
  const auto rules =
      retention::RetentionService::open(bench.engine, *bench.catalog, kRetentionForever).value();
  const auto set = [&](std::int64_t retention_ns) {
    REQUIRE(rules->set({"default", {"a", "*"}, retention_ns, {}}).ok());
  };
  set(kHour);
  bench.settings.retention = true;
  bench.reader = std::make_unique<BatchReader>(bench.engine, *bench.catalog, bench.settings,
                                               bench.target, Shape{}, rules.get());
  const Batch first = bench.read();
  CHECK(first.rules.find(R"("device":"a","sensor":"x")") != std::string::npos);
  CHECK(first.rules.find(R"("value":"1h")") != std::string::npos);
  CHECK(first.rules.find(R"("value":"")") != std::string::npos);  // of b there is none
  CHECK(bench.read().rules == first.rules);                       // it was not taken
  bench.reader->note_said(first);
  CHECK(bench.read().rules.empty());
  set(2 * kHour);
  const Batch changed = bench.read();
  CHECK(changed.said.size() == 1);
  CHECK(changed.rules.find(R"("value":"2h")") != std::string::npos);
  std::optional<catalog::SeriesRow> row = 0;
  CHECK(bench.reader->read_rules(row).rules == changed.rules);
  CHECK_FALSE(row);
}

TEST_CASE("batch reader: a reading whose name is not to be found yet is waited for") {
  Bench bench(config::ForwardKind::Influx, all_of_default());
  bench.store({.namespace_name = "default",
               .device = "a",
               .sensor = "x",
               .time_ns = 1,
               .value = wire::Value::of_int64(1)},
              false);
  CHECK(bench.reader->read({.after = 0, .upto = UINT64_MAX}).status().code() == StatusCode::Busy);
  const auto skipped =
      bench.reader->read({.after = 0, .upto = UINT64_MAX, .behind = {}, .skips_nameless = true});
  REQUIRE(skipped.ok());
  CHECK(skipped->unfit == 1);
  CHECK(skipped->lines.empty());
}

TEST_CASE("batch reader: refused readings are read again by their keys, if they are there") {
  Bench bench(config::ForwardKind::Influx, all_of_default());
  bench.store("a", "x", 1, 1);
  const Batch batch = bench.read();
  REQUIRE(batch.lines.size() == 1);
  const Place there{batch.lines[0].namespace_id, wire::make_reading_key(batch.lines[0].key)};
  Place gone = there;
  gone.key.back() = 9;
  std::size_t taken = 0;
  const auto again = bench.reader->read({{there, 400, 0}, {gone, 400, 0}}, taken);
  REQUIRE(again.ok());
  CHECK(taken == 2);
  CHECK(again->text == batch.text);
}

TEST_CASE("batch reader: a thinned target gets each window once, from all that is stored of it") {
  Bench bench(config::ForwardKind::Influx, all_of_default());
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto thinned = [&](const BatchReader::Wish& wish) {
    BatchReader reader(bench.engine, *bench.catalog, bench.settings, bench.target,
                       {.every_ns = kSecond, .salt = {}});
    auto batch = reader.read(wish);
    REQUIRE(batch.ok());
    return std::move(batch).value();
  };
  bench.store("a", "x", 1, 1);
  const CommitPosition before = bench.engine.committed();
  for (std::int64_t i = 2; i < 10; ++i) bench.store("a", "x", i, static_cast<double>(i));
  const CommitPosition boundary = bench.engine.committed();
  bench.store("a", "x", kSecond - 1, 99);  // late
  bench.store("a", "x", kSecond, 7);       // of a window that is open
  const CommitPosition upto = bench.engine.committed();

  const Batch all = thinned({.after = 0, .upto = upto});
  CHECK(all.lines.size() == 14);
  CHECK(all.window_ns == kSecond);
  CHECK(all.text.find("x,device=a value_count=10i 0\n") != std::string::npos);
  CHECK(all.text.find("x,device=a value_last=99 0\n") != std::string::npos);

  const Round round{
      .boundary = boundary, .over_ns = kSecond, .before_upto = 0, .before_over_ns = 0};
  const Batch first = thinned(
      {.after = before, .upto = upto, .behind = {}, .skips_nameless = false, .round = round});
  CHECK(first.lines.size() == 7);
  CHECK(first.lines[0].key.time_ns == 0);
  CHECK(first.text.find("value_count=10i 0\n") != std::string::npos);
  const Round next{
      .boundary = upto, .over_ns = 2 * kSecond, .before_upto = upto, .before_over_ns = kSecond};
  const Batch second = thinned(
      {.after = boundary, .upto = upto, .behind = {}, .skips_nameless = false, .round = next});
  CHECK(second.lines.size() == 7);
  CHECK(second.lines[0].key.time_ns == kSecond);

  // What was kept aside is a window, too.
  BatchReader reader(bench.engine, *bench.catalog, bench.settings, bench.target,
                     {.every_ns = kSecond, .salt = {}});
  const Batch::Line& line = second.lines[0];
  std::size_t taken = 0;
  const auto again = reader.read({{place_of(line), 400, 0}}, taken);
  REQUIRE(again.ok());
  CHECK(again->text == second.text);
}

TEST_CASE("batch reader: a window that has lost readings here does not go, and is told") {
  Bench bench(config::ForwardKind::Influx, all_of_default());
  constexpr std::int64_t kSecond = 1'000'000'000;
  for (std::int64_t i = 0; i < 4; ++i) bench.store("a", "x", i * kSecond / 2, 1);
  const auto rules =
      retention::RetentionService::open(bench.engine, *bench.catalog, kRetentionForever).value();
  const auto thinned = [&] {
    BatchReader reader(bench.engine, *bench.catalog, bench.settings, bench.target,
                       {.every_ns = kSecond, .salt = {}}, rules.get());
    auto batch = reader.read({.after = 0, .upto = UINT64_MAX});
    REQUIRE(batch.ok());
    return std::move(batch).value();
  };
  const auto unsent = [](const Batch& batch, retention::Leaving why) {
    return batch.unsent[static_cast<std::size_t>(why)];
  };
  CHECK(thinned().lines.size() == 14);
  const auto series = bench.catalog->find("default", "a", "x");
  REQUIRE(series.ok());
  REQUIRE(bench.engine.evict(std::vector{series->id.namespace_id}, kSecond + 1).ok());
  const Batch cut = thinned();
  CHECK(cut.lines.empty());
  CHECK(unsent(cut, retention::Leaving::Evicted) == 1);
}

}  // namespace
}  // namespace edgecase::forward
