#include "tiers/tier_maker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "daemon/tiers/tiered_store.h"
#include "support/test_seed.h"
#include "wire/reading.h"

namespace edgecase::tiers {
namespace {

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

TEST_CASE("tiers: a window that the range of a question cuts is left out, and told") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "2h then 1h:forever");
  store.pass();
  wire::QueryRequest request = store.request("kitchen/temp", kHour, Aggregate::Count);
  request.from_ns = kNow - 9 * kHour - kMinute;
  request.to_ns = kNow - 4 * kHour + kMinute;
  std::string tiers;
  const std::string rows = store.ask(request, &tiers);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 5);
  CHECK(tiers == "1h before " + wire::time_text(kNow - 2 * kHour) +
                     "; cut by the range, so left out: 1h at " +
                     wire::time_text(kNow - 10 * kHour) + ", 1h at " +
                     wire::time_text(kNow - 4 * kHour));
  // Where the range begins there is nothing to cut, and where it ends it cuts no window.
  request.from_ns = kNow - 20 * kHour + kMinute;
  request.to_ns = kNow - 4 * kHour;
  store.ask(request, &tiers);
  CHECK(tiers == "1h before " + wire::time_text(kNow - 2 * kHour));
  request.to_ns = kNow - kMinute;  // among readings
  store.ask(request, &tiers);
  CHECK(tiers == "1h before " + wire::time_text(kNow - 2 * kHour));
}

TEST_CASE("tiers: where a finer tier begins behind a coarser one it is told") {
  TieredStore store;
  store.write("temp", ten_hours());
  store.set("*/*", "4h then 1h:forever");
  store.pass();
  const std::string before = wire::time_text(kNow - 4 * kHour);
  const auto ask = [&](std::int64_t every_ns, std::int64_t from_ns) {
    wire::QueryRequest request = store.request("kitchen/temp", every_ns, Aggregate::Mean);
    request.from_ns = from_ns;
    std::string tiers;
    store.ask(request, &tiers);
    return tiers;
  };
  const std::string nothing = "none before " + before + ": windows of 1h are kept there";
  CHECK(ask(kMinute, kNow - 9 * kHour) == nothing);
  // The rule has changed: the finer tier begins where there are readings.
  store.set("*/*", "4h then 1m:1d then 1h:forever");
  store.pass();
  CHECK(ask(kMinute, kNow - 9 * kHour) == "1m before " + before + "; " + nothing);
  CHECK(ask(kHour, kNow - 9 * kHour) == "1h before " + before);
  store.engine.set_expiry_now_ns(kNow + 2 * kHour);
  store.pass();
  const std::string later = "1m before " + wire::time_text(kNow - 2 * kHour);
  CHECK(ask(kMinute, kNow - 9 * kHour) == later + "; " + nothing);
  CHECK(ask(kMinute, kNow - 4 * kHour) == later);
  // It is kept less long.
  store.engine.set_expiry_now_ns(kNow + 21 * kHour);
  store.pass();
  CHECK(ask(kMinute, kNow - 4 * kHour)
            .ends_with("; none before " + wire::time_text(kNow - 3 * kHour) +
                       ": windows of 1h are kept there"));
}

TEST_CASE("tiers: a coarser window that begins before the finer tier's first one hides nothing") {
  TieredStore store;
  std::map<std::int64_t, Value> values = ten_hours();
  values.erase(values.begin(), values.lower_bound(kNow - 9 * kHour + 20 * kMinute));
  store.write("temp", values);
  store.set("*/*", "4h then 1m:1d then 1h:forever");
  store.pass();
  wire::QueryRequest request = store.request("kitchen/temp", kMinute, Aggregate::Mean);
  request.from_ns = kNow - 10 * kHour;
  std::string tiers;
  store.ask(request, &tiers);
  CHECK(tiers == "1m before " + wire::time_text(kNow - 4 * kHour));
}

TEST_CASE("tiers: what two threads have read in place of readings is told as one") {
  query::TierNote first, second;
  first.read_ns = {kMinute};
  first.read_before_ns = kNow - 2 * kHour;
  first.cut_ns = {{kNow - 5 * kHour, kHour}};
  second.missed_ns = {kHour};
  second.missed_before_ns = kNow - 4 * kHour;
  second.cut_ns = {{kNow - 6 * kHour, kHour}};
  first.add(second);
  CHECK(first.text() ==
        "1m before " + wire::time_text(kNow - 2 * kHour) + "; none before " +
            wire::time_text(kNow - 4 * kHour) +
            ": windows of 1h are kept there; cut by the range, so left out: 1h at " +
            wire::time_text(kNow - 6 * kHour) + ", 1h at " + wire::time_text(kNow - 5 * kHour));
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

TEST_CASE("tiers: a window that a rule's change cuts goes on where it was") {
  TieredStore store;
  store.write("temp", ten_hours());
  std::map<Aggregate, std::string> before;
  for (const Aggregate aggregate : kAnswered)
    before[aggregate] = store.ask("kitchen/temp", 3 * kHour, aggregate);
  store.set("*/*", "2h then 1m:1d then 1h:forever");
  store.pass();
  store.set("*/*", "1h then 1m:1d then 3h:forever");
  for (std::int64_t hours = 1; hours < 8; ++hours) {
    store.engine.set_expiry_now_ns(kNow + hours * kHour);
    store.pass();
    for (const Aggregate aggregate : kAnswered) {
      CAPTURE(wire::aggregate_name(aggregate));
      CAPTURE(hours);
      CHECK(store.ask("kitchen/temp", 3 * kHour, aggregate) == before[aggregate]);
    }
  }
  CHECK(store.raw() == 0);
}

TEST_CASE("tiers: a finer tier begins at the mark, within a window that this cuts or at its edge") {
  for (const std::int64_t every_ns : {7 * kMinute, 11 * kMinute, 40 * kMinute, 10 * kMinute}) {
    CAPTURE(every_ns / kMinute);
    TieredStore store;
    store.write("temp", ten_hours());
    store.set("*/*", "3h then 1h:forever");
    store.pass();
    // What is younger than the mark is there, no more: as if nothing had been before.
    const auto ask = [&](Aggregate aggregate) {
      wire::QueryRequest request = store.request("kitchen/temp", every_ns, aggregate);
      request.from_ns = kNow - 3 * kHour - kHour;
      return store.ask(request);
    };
    std::map<Aggregate, std::string> of_readings;
    for (const Aggregate aggregate : kAnswered) of_readings[aggregate] = ask(aggregate);
    store.set("*/*", "1h then " + std::to_string(every_ns / kMinute) + "m:forever");
    for (std::int64_t hours = 0; hours < 5; ++hours) {
      CAPTURE(hours);
      store.engine.set_expiry_now_ns(kNow + hours * kHour);
      store.pass();
      for (const Aggregate aggregate : kAnswered) {
        CAPTURE(wire::aggregate_name(aggregate));
        CHECK(ask(aggregate) == of_readings[aggregate]);
      }
      CHECK(store.columns(kHour) == 0);
    }
    CHECK(store.raw() == 0);
  }
}

TEST_CASE("tiers: while a copy comes in parts nothing of it is late") {
  TieredStore store;
  store.set("*/*", "1h then 1m:1d then 1h:forever");
  const auto all = ten_hours();
  const auto half = std::next(all.begin(), static_cast<std::ptrdiff_t>(all.size() / 2));
  store.retention->marks().note_copied(kNow);
  CHECK(store.write("temp", {all.begin(), half}) > 0);
  store.pass();
  CHECK(store.columns(kHour) == 0);
  const auto rest = std::map<std::int64_t, Value>(half, all.end());
  CHECK(store.write("temp", rest) == rest.size());
  // A while after the last part they are made.
  store.engine.set_expiry_now_ns(kNow + retention::TierMarks::kCopyRestNs - 1);
  store.pass();
  CHECK(store.columns(kHour) == 0);
  store.engine.set_expiry_now_ns(kNow + retention::TierMarks::kCopyRestNs);
  store.pass();
  CHECK(store.columns(kHour) == 6 * 9);
  // Copies that never end hold up nobody for more than a day.
  retention::TierMarks marks;
  CHECK_FALSE(marks.takes_copies(kNow));
  for (std::int64_t now_ns = kNow; now_ns < kNow + 50 * kHour; now_ns += 5 * kMinute) {
    marks.note_copied(now_ns);
    CHECK(marks.takes_copies(now_ns) == (now_ns < kNow + 24 * kHour));
  }
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
