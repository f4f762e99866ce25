#include "forward/thinned.h"

#include <doctest/doctest.h>

#include "daemon/tiers/tiered_store.h"

namespace edgecase::forward {
namespace {

constexpr catalog::SeriesId kSeries{.namespace_id = 3, .device = 4, .sensor = 5};

struct Kept {
  Status owe(std::int64_t from_ns, std::int64_t to_ns, std::uint64_t readings) {
    WriteBatch batch;
    EC_TRY(thinned.owe("hub", kSeries, from_ns, to_ns, readings, batch));
    return engine.write(batch, Durability::Sync);
  }
  std::optional<OwedWindows> owed() {
    const auto some = thinned.owed("hub", std::nullopt, 10);
    REQUIRE_MESSAGE(some.ok(), some.status().to_string());
    return some->empty() ? std::nullopt : std::optional(some->front().second);
  }
  void put(const Bytes& key, const Bytes& value) {
    WriteBatch batch;
    batch.put(records->made_id().value(), key, value);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }

  test::ModelEngine engine;
  std::unique_ptr<Records> records = Records::open(engine).value();
  Thinned thinned{engine, *records};
};

SentWindows some_sent() {
  SentWindows sent{.done_to_ns = 1, .readings = 2, .debt = 5};
  sent.note({.begin_ns = 60, .end_ns = 120, .every_ns = 60, .columns = 3});
  return sent;
}

// What was written once is read for good.
TEST_CASE("thinned: records are written as they always were, and of version 1 are read") {
  Kept kept;
  const Bytes series("\0\0\0\x03\0\0\0\x04\0\0\0\x05", 12);
  REQUIRE(kept.owe(1, 2, 3).ok());
  const Bytes owed("\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0", 29);
  const Bytes owed_key = Bytes("Whub\0", 5) + series;
  CHECK(kept.engine.get(kept.records->id(), owed_key, {}).value() == owed);
  REQUIRE(kept.thinned.write("hub", {{kSeries, some_sent()}}, 9).ok());
  const Bytes sent_key = Bytes("Xhub\0", 5) + series, total_key("Xhub\0", 5);
  const Bytes sent(
      "\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x05"
      "\0\0\0\0\0\0\0\x3c\0\0\0\0\0\0\0\x78\0\0\0\0\0\0\0\x3c\x03",
      21 + 25);
  CHECK(kept.engine.get(kept.records->id(), sent_key, {}).value() == sent);
  CHECK(kept.engine.get(kept.records->id(), total_key, {}).value() ==
        Bytes("\x02\0\0\0\0\0\0\0\x09", 9));
  CHECK(kept.owed() == OwedWindows{1, 2, 3, 0});
  CHECK(kept.thinned.sent("hub", kSeries).value() == some_sent());
  CHECK(kept.thinned.sent_readings("hub").value() == 9);
  for (std::size_t cut = 0; cut < owed.size(); ++cut) {
    kept.put(owed_key, owed.substr(0, cut));
    CHECK(kept.thinned.owed("hub", std::nullopt, 1).status().code() == StatusCode::Corruption);
  }
  for (std::size_t cut = 0; cut < sent.size(); ++cut) {
    if (cut == 21) continue;  // nothing went
    kept.put(sent_key, sent.substr(0, cut));
    CHECK(kept.thinned.sent("hub", kSeries).status().code() == StatusCode::Corruption);
  }
  // Damage does not keep readings from becoming windows.
  CHECK(kept.owe(5, 7, 1).ok());
  CHECK(kept.owed() == OwedWindows{5, 7, 1, 0});
  kept.put(owed_key, "\x01" + owed.substr(1, 24));
  CHECK(kept.owed() == OwedWindows{1, 2, 3, 0});
  kept.put(sent_key, "\x01" + sent.substr(1, 16) + sent.substr(21));
  SentWindows before = some_sent();
  before.debt = 0;
  CHECK(kept.thinned.sent("hub", kSeries).value() == before);
  kept.put(owed_key, "\x03" + owed.substr(1));
  CHECK(kept.thinned.owed("hub", std::nullopt, 1).status().code() == StatusCode::Unsupported);
  kept.put(sent_key, "\x03" + sent.substr(1));
  CHECK(kept.thinned.sent("hub", kSeries).status().code() == StatusCode::Unsupported);
}

TEST_CASE("thinned: a series that nobody knows any more is found by what it was called") {
  Kept kept;
  const Bytes hash = Thinned::hash_of("default", "kitchen", "t");
  CHECK(hash.size() == 16);
  CHECK(hash != Thinned::hash_of("defaultk", "itchen", "t"));
  CHECK(kept.thinned.find_gone("hub", hash).value().knows_all);
  REQUIRE(kept.thinned.write("hub", {{kSeries, some_sent()}}, 0, {{hash, kSeries}}).ok());
  CHECK(kept.thinned.find_gone("hub", hash).value().id == kSeries);
  CHECK_FALSE(kept.thinned.find_gone("other", hash).value().id);
  // Where windows went before names were kept, it may have had others.
  kept.put(Bytes("Xhub\0", 5), Bytes("\x01\0\0\0\0\0\0\0\x09", 9));
  CHECK_FALSE(kept.thinned.find_gone("hub", hash).value().knows_all);
  REQUIRE(kept.thinned.write("hub", {}, 9).ok());
  CHECK_FALSE(kept.thinned.find_gone("hub", hash).value().knows_all);
  REQUIRE(kept.thinned.remove_sent("hub", {{hash, kSeries}}).ok());
  CHECK_FALSE(kept.thinned.find_gone("hub", hash).value().id);
  CHECK(kept.thinned.sent("hub", kSeries).value() == SentWindows());
  REQUIRE(kept.thinned.write("hub", {{kSeries, some_sent()}}, 0, {{hash, kSeries}}).ok());
  REQUIRE(kept.thinned.forget("hub").ok());
  CHECK_FALSE(kept.thinned.find_gone("hub", hash).value().id);
}

TEST_CASE("thinned: what is owed grows, and begins anew once it was paid") {
  Kept kept;
  REQUIRE(kept.owe(10, 20, 3).ok());
  REQUIRE(kept.owe(25, 30, 4).ok());
  CHECK(kept.owed() == OwedWindows{10, 30, 7, 0});
  SentWindows sent;
  sent.done_to_ns = 29;
  REQUIRE(kept.thinned.write("hub", {{kSeries, sent}}, 0).ok());
  REQUIRE(kept.owe(35, 40, 1).ok());
  CHECK(kept.owed() == OwedWindows{29, 40, 8, 0});
  sent.done_to_ns = 40;
  REQUIRE(kept.thinned.write("hub", {{kSeries, sent}}, 0).ok());
  REQUIRE(kept.owe(50, 60, 1).ok());
  CHECK(kept.owed() == OwedWindows{50, 60, 9, 0});
  // Before the end of what is known, which may be on its way: that is another debt.
  REQUIRE(kept.owe(45, 60, 1).ok());
  CHECK(kept.owed() == OwedWindows{45, 60, 10, 1});
  sent.done_to_ns = 60;  // of the first
  REQUIRE(kept.thinned.write("hub", {{kSeries, sent}}, 0).ok());
  CHECK(sent.done_to_of(*kept.owed()) == 45);
  REQUIRE(kept.owe(60, 70, 1).ok());
  CHECK(kept.owed() == OwedWindows{45, 70, 11, 1});
  sent.debt = 1;
  sent.done_to_ns = 65;
  REQUIRE(kept.thinned.write("hub", {{kSeries, sent}}, 0).ok());
  REQUIRE(kept.owe(69, 70, 1).ok());
  CHECK(kept.owed() == OwedWindows{65, 70, 12, 2});
  CHECK_FALSE(kept.thinned.sent_readings("other").value());
  REQUIRE(kept.thinned.forget("hub").ok());
  CHECK_FALSE(kept.owed());
  CHECK_FALSE(kept.thinned.sent_readings("hub").value());
  CHECK(kept.thinned.sent("hub", kSeries).value() == SentWindows());
}

TEST_CASE("thinned: spans of one kind are one where nothing else lies between, and are bounded") {
  SentWindows sent = some_sent();
  sent.note({240, 300, 60, 3});
  CHECK(sent.spans.size() == 1);
  sent.note({300, 600, 300, 3});
  sent.note({600, 660, 60, 3});
  CHECK(sent.spans.size() == 3);
  REQUIRE(sent.find(120) != nullptr);
  CHECK(sent.find(120)->every_ns == 60);
  CHECK(sent.find(121) == nullptr);
  CHECK(sent.find(360) == nullptr);
  CHECK(sent.find(300)->every_ns == 300);
  CHECK(sent.find(660) == nullptr);
}

TEST_CASE("thinned: of more spans than there may be the oldest are one, and none is lost") {
  SentWindows sent;
  for (std::int64_t at = 0; at < 1'000; ++at) {
    const std::int64_t every_ns = at % 2 == 0 ? 60 : 90;
    const WindowColumns columns = at % 2 == 0 ? WindowColumns{1} : WindowColumns{2};
    sent.note({at * 180, at * 180 + every_ns, every_ns, columns});
    REQUIRE(sent.spans.size() <= SentWindows::kSpansMax);
  }
  CHECK(sent.spans.size() == SentWindows::kSpansMax);
  CHECK(sent.spans[0] ==
        SentWindows::Span{0, 936 * 180 + 60, 30, WindowColumns{3} | kSeveralLengths});
  CHECK(sent.spans[1] == SentWindows::Span{937 * 180, 937 * 180 + 90, 90, 2});
  for (std::int64_t at = 0; at < 1'000; ++at) REQUIRE(sent.find(at * 180) != nullptr);
  // What goes again there needs no other span.
  const std::vector<SentWindows::Span> before = sent.spans;
  sent.note({180, 270, 90, 2});
  CHECK(sent.spans == before);
}

TEST_CASE("thinned: of each time the windows of the finest tier that has it whole") {
  tiers::TieredStore store;
  store.set("*", "1h then 1m:3h then 1h:forever");
  std::map<std::int64_t, wire::Value> values;
  for (std::int64_t at_ns = tiers::kNow - 6 * tiers::kHour; at_ns < tiers::kNow;
       at_ns += 10 * tiers::kMinute)
    values[at_ns + tiers::kSecond] = wire::Value::of_int64(1);
  REQUIRE(store.write("t", values) == values.size());
  store.pass();
  const catalog::SeriesEntry series = store.catalog->find("default", "kitchen", "t").value();
  const auto windows = [&](std::int64_t from_ns, std::int64_t to_ns) {
    std::map<std::int64_t, std::int64_t> lengths;
    std::uint64_t readings = 0;
    const Status read =
        each_finest_window(store.engine, *store.retention, series, from_ns, to_ns,
                           store.engine.snapshot(), [&](const wire::Window& window) {
                             CHECK(lengths.emplace(window.begin_ns, window.every_ns).second);
                             readings += window.count;
                             return true;
                           });
    REQUIRE_MESSAGE(read.ok(), read.to_string());
    return std::pair(lengths, readings);
  };
  store.engine.set_expiry_now_ns(tiers::kNow + tiers::kMinute);
  // Windows of a minute have expired within the hour that began 3 h ago: the longer one has it.
  const auto [all, readings] = windows(tiers::kNow - 6 * tiers::kHour, tiers::kNow - tiers::kHour);
  CHECK(readings == 5 * 6);
  CHECK(all.size() == 4 + 6);
  CHECK(all.at(tiers::kNow - 3 * tiers::kHour) == tiers::kHour);
  CHECK(all.at(tiers::kNow - 2 * tiers::kHour) == tiers::kMinute);
  // The window that holds the beginning, and no more than is asked for.
  const auto [some, few] =
      windows(tiers::kNow - 2 * tiers::kHour + 10 * tiers::kMinute + 30 * tiers::kSecond,
              tiers::kNow - tiers::kHour - 10 * tiers::kMinute);
  CHECK(few == 4);
  CHECK(some.begin()->first == tiers::kNow - 2 * tiers::kHour + 10 * tiers::kMinute);
}

TEST_CASE(
    "thinned: columns are kept as the tier that they are of, and the coarser ones behind it") {
  const wire::Keeping keeping = wire::parse_keeping("7d then 1m:90d then 1h:forever").value();
  CHECK(wire::keeping_text(keeping_of_columns(keeping, tiers::kMinute)) == "90d then 1h:forever");
  CHECK(keeping_of_columns(keeping, tiers::kHour) == wire::Keeping{});
  CHECK(keeping_of_columns(keeping, 24 * tiers::kHour) == wire::Keeping{});
  CHECK(wire::keeping_text(keeping_of_columns(wire::parse_keeping("7d").value(), tiers::kMinute)) ==
        "7d");
}

}  // namespace
}  // namespace edgecase::forward
