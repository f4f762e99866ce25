#include "tiers/tier_maker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/random.h"
#include "erase/erase_service.h"
#include "ingest/ingest_pipeline.h"
#include "query/query_service.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/test_seed.h"
#include "wire/reading_format.h"
#include "wire/reading_key.h"

namespace edgecase::tiers {
namespace {

using wire::Aggregate;
using wire::Value;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
// A full hour.
constexpr std::int64_t kNow = test::ManualClock::kStartWallNs / kHour * kHour;

const auth::Principal& reader() {
  static const auth::Principal principal{auth::PrincipalKind::LocalSocket, "test"};
  return principal;
}

// A store with everything that tiers touch; restart() is what a crash leaves of it.
struct TieredStore {
  TieredStore() {
    engine.set_expiry_now_ns(kNow);
    restart();
  }
  void restart() {
    maker.reset();
    service.reset();
    pipeline.reset();
    erase.reset();
    catalog = catalog::Catalog::open(engine, {}).value();
    devices = catalog::DeviceIndex::open(engine).value();
    retention = retention::RetentionService::open(engine, *catalog, kRetentionForever).value();
    erase = erase::EraseService::open(
                {engine, *catalog, *devices, *retention, clock, random, erase::DriveWatch::Look()})
                .value();
    pipeline = std::make_unique<ingest::IngestPipeline>(engine, *catalog, clock, retention.get(),
                                                        devices.get(), nullptr, &erase->fences());
    service = std::make_unique<query::QueryService>(engine, *catalog, devices.get());
    service->read_tiers(&retention->marks());
    maker = std::make_unique<TierMaker>(engine, *catalog, *retention, erase->fences());
  }
  void set(const std::string& selector, const std::string& keeping) {
    wire::Keeping keep = wire::parse_keeping(keeping).value();
    const Status done = retention->set(
        {"default", wire::parse_selector(selector).value(), keep.raw_ns, std::move(keep.tiers)});
    REQUIRE_MESSAGE(done.ok(), done.to_string());
  }
  // How many were kept.
  std::size_t write(const std::string& sensor, const std::map<std::int64_t, Value>& values) {
    wire::ReadingBatch batch;
    for (const auto& [time_ns, value] : values)
      batch.readings.push_back({"default", "kitchen", sensor, time_ns, value});
    const auto authorized = auth::authorize_write(reader(), batch);
    REQUIRE(authorized.ok());
    ingest::Outcome outcome;
    const Status stored = pipeline->ingest(*authorized, &outcome);
    REQUIRE_MESSAGE(stored.ok(), stored.to_string());
    CHECK(outcome.of(ingest::Loss::Expired) == outcome.not_stored());
    return values.size() - outcome.not_stored();
  }
  bool write(const std::string& sensor, std::int64_t time_ns, Value value) {
    return write(sensor, {{time_ns, value}}) == 1;
  }
  void pass() {
    const Status done = maker->pass();
    REQUIRE_MESSAGE(done.ok(), done.to_string());
  }

  wire::QueryRequest request(const std::string& selector, std::int64_t every_ns,
                             std::optional<Aggregate> aggregate) {
    wire::QueryRequest request;
    request.selection = wire::parse_selector(selector).value();
    request.every_ns = every_ns;
    request.aggregate = aggregate;
    return request;
  }
  std::string ask(const wire::QueryRequest& asked, std::string* tiers = nullptr) {
    query::Reach reach;
    auto cursor = service->query(reader(), asked, &reach);
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    if (tiers != nullptr) *tiers = reach.tiers.text();
    std::string text;
    wire::ReadingFormatter formatter(wire::ReadingFormat::Csv);
    wire::Reading reading;
    while (true) {
      const auto more = (*cursor)->next(reading);
      REQUIRE_MESSAGE(more.ok(), more.status().to_string());
      if (!*more) return text;
      formatter.reading(reading, text);
    }
  }
  std::string ask(const std::string& selector, std::int64_t every_ns,
                  std::optional<Aggregate> aggregate, std::string* tiers = nullptr) {
    return ask(request(selector, every_ns, aggregate), tiers);
  }
  std::uint64_t entries(const std::string& space) {
    const auto info = engine.find_namespace(space);
    return info.ok() ? engine.range_stats(info->id, {}, {}).value().entries : 0;
  }
  // Entries of the tier with windows of that length.
  std::uint64_t columns(std::int64_t every_ns) {
    const auto info = engine.find_namespace("default");
    return info.ok() ? entries(catalog::tier_space_name(info->id, every_ns)) : 0;
  }
  std::uint64_t raw() { return entries("default"); }

  test::ModelEngine engine;
  test::ManualClock clock;
  SeededRandom random{20251129};
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<catalog::DeviceIndex> devices;
  std::unique_ptr<retention::RetentionService> retention;
  std::unique_ptr<erase::EraseService> erase;
  std::unique_ptr<ingest::IngestPipeline> pipeline;
  std::unique_ptr<query::QueryService> service;
  std::unique_ptr<TierMaker> maker;
};

// A reading every 7 s of the last ten hours, in whole numbers, whose sums are exact.
std::map<std::int64_t, Value> ten_hours() {
  std::map<std::int64_t, Value> values;
  for (std::int64_t time_ns = kNow - 10 * kHour; time_ns < kNow; time_ns += 7 * kSecond)
    values[time_ns] = Value::of_float64(static_cast<double>(time_ns / kSecond % 97));
  return values;
}

constexpr Aggregate kAnswered[] = {Aggregate::Count, Aggregate::Min,  Aggregate::Max,
                                   Aggregate::Sum,   Aggregate::Mean, Aggregate::First,
                                   Aggregate::Last};

}  // namespace

TEST_CASE("tiers: questions of windows have the same answers before and after") {
  TieredStore store;
  REQUIRE(store.write("temp", ten_hours()) == ten_hours().size());
  std::map<std::string, std::string> before;
  const auto all = [&](const auto& take) {
    for (const Aggregate aggregate : kAnswered) {
      for (const std::int64_t every_ns :
           {kMinute, 10 * kMinute, kHour, 2 * kHour, std::int64_t{0}}) {
        for (const bool descending : {false, true}) {
          wire::QueryRequest request = store.request("kitchen/temp", every_ns, aggregate);
          request.descending = descending;
          // With a beginning, a row of the whole range has its time.
          if (every_ns == 0) request.from_ns = kNow - 11 * kHour;
          take(std::string(wire::aggregate_name(aggregate)) + std::to_string(every_ns / kSecond) +
                   (descending ? "down" : "up"),
               request);
        }
      }
    }
  };
  all([&](const std::string& name, const auto& request) { before[name] = store.ask(request); });
  const std::uint64_t raw = store.raw();
  store.set("kitchen/*", "2h then 1m:1d then 1h:forever");
  CHECK(store.raw() == raw);  // nothing goes before its windows are there
  store.pass();
  CHECK(store.raw() < raw / 2);
  CHECK(store.columns(kMinute) == 6 * 8 * 60);
  CHECK(store.columns(kHour) == 6 * 8);
  for (const bool is_anew : {false, true}) {
    CAPTURE(is_anew);
    if (is_anew) store.restart();
    all([&](const std::string& name, const auto& request) {
      CAPTURE(name);
      std::string tiers;
      CHECK(store.ask(request, &tiers) == before[name]);
      CHECK(tiers.find(" before 20") != std::string::npos);
      CHECK(tiers.find("none") == std::string::npos);
    });
  }
  store.pass();  // there is nothing left to do
  CHECK(store.columns(kHour) == 6 * 8);
}

TEST_CASE("tiers: what windows cannot tell is said, and not answered wrongly") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1m:1d then 1h:forever");
  store.pass();
  struct Case {
    std::int64_t every_ns;
    std::optional<Aggregate> aggregate;
  };
  for (const Case& c : {Case{kHour, Aggregate::Stddev}, Case{kHour, Aggregate::P50},
                        Case{10 * kSecond, Aggregate::Mean}, Case{0, std::nullopt}}) {
    CAPTURE(c.every_ns);
    std::string tiers;
    const std::string rows = store.ask("kitchen/temp", c.every_ns, c.aggregate, &tiers);
    CHECK(tiers.starts_with("none before "));
    CHECK(tiers.find("windows of 1m, 1h are kept there") != std::string::npos);
    CHECK(!rows.empty());  // of readings
  }
  // Nothing is said of what is younger.
  wire::QueryRequest late = store.request("kitchen/temp", kMinute, Aggregate::Mean);
  late.from_ns = kNow - kHour;
  std::string tiers;
  store.ask(late, &tiers);
  CHECK(tiers.empty());
}

TEST_CASE("tiers: a window that the range of a question cuts is left out") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1h:forever");
  store.pass();
  wire::QueryRequest request = store.request("kitchen/temp", kHour, Aggregate::Count);
  request.from_ns = kNow - 9 * kHour - kMinute;
  request.to_ns = kNow - 4 * kHour + kMinute;
  const std::string rows = store.ask(request);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 5);
}

TEST_CASE("tiers: a late reading is refused and told, also after a restart") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1m:1d then 1h:forever");
  store.pass();
  const std::string before = store.ask("kitchen/temp", kHour, Aggregate::Sum);
  for (const bool is_anew : {false, true}) {
    CAPTURE(is_anew);
    if (is_anew) store.restart();
    CHECK(!store.write("temp", kNow - 5 * kHour, Value::of_float64(1000)));
    // Not thinned yet, the first time.
    CHECK(store.write("other", kNow - 5 * kHour, Value::of_float64(1000)) == !is_anew);
    CHECK(store.write("temp", kNow + is_anew, Value::of_float64(7)));
    store.pass();
    CHECK(store.ask("kitchen/temp", kHour, Aggregate::Sum).starts_with(before));
  }
}

TEST_CASE("tiers: every type of value, and windows of text alone") {
  TieredStore store;
  const std::int64_t then = kNow - 5 * kHour;
  const std::map<std::int64_t, Value> ints{{then, Value::of_int64(INT64_MAX)},
                                           {then + kSecond, Value::of_int64(1)}};
  const std::map<std::int64_t, Value> mixed{{then, Value::of_text("on")},
                                            {then + kSecond, Value::of_int64(3)},
                                            {then + 2 * kSecond, Value::of_bool(true)},
                                            {then + 3 * kSecond, Value::of_float64(-0.5)}};
  const std::map<std::int64_t, Value> texts{{then, Value::of_text("a")},
                                            {then + 1, Value::of_text("b")}};
  store.write("ints", ints);
  store.write("mixed", mixed);
  store.write("texts", texts);
  std::map<std::string, std::string> before;
  for (const char* sensor : {"ints", "mixed", "texts"}) {
    for (const Aggregate aggregate : kAnswered)
      before[sensor + std::to_string(static_cast<int>(aggregate))] =
          store.ask(std::string("kitchen/") + sensor, kHour, aggregate);
  }
  store.set("*/*", "1h then 1m:1d then 1h:forever");
  store.pass();
  CHECK(store.raw() == 0);
  for (const char* sensor : {"ints", "mixed", "texts"}) {
    for (const Aggregate aggregate : kAnswered) {
      CAPTURE(sensor);
      CAPTURE(wire::aggregate_name(aggregate));
      const std::string after = store.ask(std::string("kitchen/") + sensor, kHour, aggregate);
      const bool is_text = (aggregate == Aggregate::First && sensor != std::string_view("ints")) ||
                           (aggregate == Aggregate::Last && sensor == std::string_view("texts"));
      if (is_text) {
        CHECK(after.empty());
      } else {
        CHECK(after == before[sensor + std::to_string(static_cast<int>(aggregate))]);
      }
    }
  }
}

TEST_CASE("tiers: an erasure takes windows along, whole ones") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.write("hum", ten_hours());
  store.set("*/*", "2h then 1m:1d then 1h:forever");
  store.pass();
  erase::EraseRequest request;
  request.namespace_name = "default";
  request.selection = wire::parse_selector("kitchen/temp").value();
  request.from_ns = kNow - 5 * kHour - 90 * kSecond;
  request.to_ns = kNow - 5 * kHour + 90 * kSecond;
  const auto preview = store.erase->preview(reader(), request);
  REQUIRE(preview.ok());
  CHECK(preview->windows == 4 + 2);  // minutes, hours
  CHECK(preview->cuts_windows);
  REQUIRE(store.erase->erase(reader(), request, erase::Everything::Allowed).ok());
  CHECK(store.columns(kMinute) == 2 * 6 * 8 * 60 - 6 * 4);
  CHECK(store.columns(kHour) == 2 * 6 * 8 - 6 * 2);
  // With all times and its name; and as a device.
  request.from_ns = request.to_ns = std::nullopt;
  REQUIRE(store.erase->erase(reader(), request, erase::Everything::Allowed).ok());
  CHECK(store.columns(kMinute) == 6 * 8 * 60);
  CHECK(store.retention->marks().size() == 1);
  request.selection = wire::parse_selector("kitchen").value();
  REQUIRE(store.erase->erase(reader(), request, erase::Everything::Allowed).ok());
  CHECK(store.columns(kMinute) == 0);
  CHECK(store.columns(kHour) == 0);
  CHECK(store.retention->marks().size() == 0);
  store.restart();
  CHECK(store.retention->marks().size() == 0);
}

TEST_CASE("tiers: what became windows is erased for good once nobody reads it") {
  const auto hide = [](TieredStore& store) {
    store.set("*/*", "1h then 1m:1d");
    REQUIRE(store.write("t", kNow - 3 * kHour, Value::of_float64(1)));
    store.pass();
    CHECK(store.retention->marks().waiting(10).size() == 1);
  };
  const auto is_left = [](TieredStore& store) {
    return !store.retention->marks().waiting(10).empty();
  };
  {
    TieredStore store;
    store.set("*/*", "forever");
    std::shared_ptr<const Snapshot> reader = store.engine.snapshot();
    hide(store);
    const std::uint64_t revocations = store.engine.revocations();
    store.pass();
    CHECK(is_left(store));
    CHECK(store.engine.revocations() == revocations);
    reader.reset();
    store.pass();
    CHECK_FALSE(is_left(store));
    CHECK(store.engine.revocations() > revocations);
    store.restart();
    CHECK_FALSE(is_left(store));
  }
  {
    // A reader that never ends holds it for a while.
    TieredStore store;
    const std::shared_ptr<const Snapshot> reader = store.engine.snapshot();
    hide(store);
    store.pass();
    CHECK(is_left(store));
    store.engine.set_expiry_now_ns(kNow + kHeldMaxNs);
    store.pass();
    CHECK_FALSE(is_left(store));
  }
  {
    // A restart in between, and a rule without tiers, leave nothing hidden.
    TieredStore store;
    hide(store);
    store.restart();
    CHECK(is_left(store));
    store.pass();
    CHECK_FALSE(is_left(store));
    REQUIRE(store.write("u", kNow - 3 * kHour, Value::of_float64(1)));
    store.pass();
    const std::uint64_t revocations = store.engine.revocations();
    store.set("*/*", "1d");
    store.pass();
    CHECK_FALSE(is_left(store));
    CHECK(store.engine.revocations() > revocations);
  }
}

TEST_CASE("tiers: a namespace takes its tiers along, and its name has none when it comes again") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1h:forever");
  store.pass();
  REQUIRE(store.columns(kHour) > 0);
  REQUIRE(store.catalog->drop_namespace("default").ok());
  for (const NamespaceInfo& info : store.engine.namespaces())
    CHECK(!info.name.starts_with(catalog::kTierPrefix));
  store.restart();
  store.write("temp", kNow - kMinute, Value::of_int64(1));
  CHECK(store.columns(kHour) == 0);
}

TEST_CASE("tiers: a rule that changes holds for what is stored") {
  TieredStore store;
  store.write("temp", ten_hours());
  const std::string by_hours = store.ask("kitchen/temp", kHour, Aggregate::Sum);
  store.set("*/*", "2h then 1m:1d");
  store.pass();
  CHECK(store.columns(kMinute) == 6 * 8 * 60);
  // A coarser tier is made of the finer one, which goes where the rule has it no more.
  const auto preview = store.retention->preview("default", {"*", "*"},
                                                wire::parse_keeping("2h then 1h:forever").value());
  REQUIRE(preview.ok());
  CHECK(preview->windows == 8 * 60);
  CHECK(preview->count == 0);
  store.set("*/*", "2h then 1h:forever");
  store.pass();
  CHECK(store.columns(kMinute) == 0);
  CHECK(store.columns(kHour) == 6 * 8);
  CHECK(store.ask("kitchen/temp", kHour, Aggregate::Sum) == by_hours);
  // Without tiers nothing of them is left, and old readings may come again.
  store.set("*/*", "forever");
  store.pass();
  CHECK(store.columns(kHour) == 0);
  CHECK(store.write("temp", kNow - 5 * kHour, Value::of_float64(1)));
}

TEST_CASE("tiers: windows expire by the rule of their tier") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1m:4h then 1h:forever");
  store.pass();
  // ModelEngine hides what has expired.
  CHECK(store.columns(kMinute) == 6 * 2 * 60);
  CHECK(store.columns(kHour) == 6 * 8);
  const std::string rows = store.ask("kitchen/temp", kHour, Aggregate::Count);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 10);
}

TEST_CASE("tiers: a clock that is not known makes none") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1h:forever");
  store.engine.set_expiry_now_ns(INT64_MIN);
  store.pass();
  CHECK(store.columns(kHour) == 0);
  CHECK(store.raw() == ten_hours().size());
}

TEST_CASE("tiers: cut short at any write, nothing is lost or counted twice") {
  for (const bool is_change : {false, true}) {
    for (std::uint64_t writes = 0;; ++writes) {
      CAPTURE(is_change);
      CAPTURE(writes);
      TieredStore store;
      store.write("temp", ten_hours());
      const std::string sums = store.ask("kitchen/temp", kHour, Aggregate::Sum);
      const std::string counts = store.ask("kitchen/temp", kHour, Aggregate::Count);
      store.set("*/*", "2h then 1m:1d");
      if (is_change) {
        store.pass();
        store.set("*/*", "2h then 1h:forever");
      }
      store.engine.fail_writes_after(writes, io_error("cut short"));
      const bool is_done = store.maker->pass().ok();
      store.engine.fail_writes(ok());
      for (const bool is_anew : {false, true}) {
        if (is_anew) store.restart();
        CHECK(store.ask("kitchen/temp", kHour, Aggregate::Sum) == sums);
        CHECK(store.ask("kitchen/temp", kHour, Aggregate::Count) == counts);
      }
      store.pass();
      CHECK(store.ask("kitchen/temp", kHour, Aggregate::Sum) == sums);
      CHECK(store.ask("kitchen/temp", kHour, Aggregate::Count) == counts);
      CHECK(store.columns(kMinute) == (is_change ? 0 : 6 * 8 * 60));
      if (is_done) break;
    }
  }
}

TEST_CASE("tiers: what is being made into windows takes no more readings meanwhile") {
  TieredStore store;
  store.write("temp", ten_hours());
  const auto entry = store.catalog->find("default", "kitchen", "temp");
  REQUIRE(entry.ok());
  store.retention->marks().announce(entry->id, kNow - 5 * kHour);
  CHECK(!store.write("temp", kNow - 6 * kHour + 1, Value::of_float64(1)));
  CHECK(store.write("temp", kNow - 5 * kHour + 1, Value::of_float64(1)));
  store.retention->marks().withdraw_all();
  CHECK(store.write("temp", kNow - 6 * kHour + 1, Value::of_float64(1)));
}

TEST_CASE("tiers: passes as time goes by come to what one pass would") {
  const std::uint64_t seed = test::test_seed(20251129);
  CAPTURE(seed);
  SeededRandom random(seed);
  TieredStore store, whole;
  whole.set("*/*", "forever");
  store.set("*/*", "30m then 1m:12h then 10m:forever");
  std::int64_t now = kNow;
  for (int step = 0; step < 40; ++step) {
    std::map<std::int64_t, Value> values;
    for (std::uint64_t i = random.below(60); i > 0; --i) {
      const std::int64_t time_ns = now - static_cast<std::int64_t>(random.below(20 * 60)) * kSecond;
      values[time_ns] = Value::of_int64(static_cast<std::int64_t>(random.below(1000)));
    }
    CHECK(store.write("temp", values) == values.size());
    whole.write("temp", values);
    now += static_cast<std::int64_t>(random.below(15)) * kMinute;
    store.engine.set_expiry_now_ns(now);
    store.pass();
    if (step % 8 == 7) store.restart();
    for (const Aggregate aggregate : kAnswered) {
      CAPTURE(wire::aggregate_name(aggregate));
      const std::int64_t every_ns = 10 * kMinute * static_cast<std::int64_t>(1 + random.below(3));
      CHECK(store.ask("kitchen/temp", every_ns, aggregate) ==
            whole.ask("kitchen/temp", every_ns, aggregate));
    }
  }
  CHECK(store.raw() < whole.raw());
}

}  // namespace edgecase::tiers
