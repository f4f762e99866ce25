#include "forward/erasures.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "auth/hashing.h"
#include "daemon/erase/erase_room.h"

namespace edgecase::forward {
namespace {

using erase::EraseRequest;
using erase::test::kHour;
using erase::test::kNow;
using erase::test::Room;

std::vector<config::ForwardSelection> only(const char* ns, const char* selector) {
  return {{ns, wire::parse_selector(selector).value()}};
}

// A store whose readings went to targets, and that can crash.
struct Travels {
  Travels() { restart(); }
  void restart() {
    room.restart();
    records = Records::open(room.engine).value();
    erasures = Erasures::open(room.engine, *records, room.random, room.clock).value();
    erasures->set_targets(targets);
    room.service->pass_on_by(erasures.get());
  }
  void watch(std::vector<WatchedTarget> all) {
    targets = std::move(all);
    erasures->set_targets(targets);
  }
  std::uint64_t erase(const std::string& selector) {
    const auto made = room.erase(selector);
    CAPTURE(made.status().to_string());
    REQUIRE(made.ok());
    return made->number;
  }
  std::vector<std::string> names(const ErasureOrder& order) {
    std::vector<std::string> all;
    for (std::uint32_t chunk = 0; chunk < order.chunks; ++chunk) {
      const std::vector<ErasedName> some = erasures->names(order, chunk).value();
      for (const ErasedName& each : some)
        all.push_back(each.device + (each.is_device ? "" : "/" + each.sensor));
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  Status answer(std::uint64_t number, const char* target, ErasureStep step) {
    return erasures->note(number, {target, step, {}, {}, 0});
  }
  // Records whose keys begin so.
  std::size_t kept(const char* kind) {
    const catalog::KeySpan span = catalog::span_of_prefix(records->id(), kind);
    auto each = room.engine.scan(records->id(), {span.lower, span.upper}, {}).value();
    std::size_t count = 0;
    for (; each->valid(); each->next()) ++count;
    return count;
  }

  Room room;
  std::vector<WatchedTarget> targets;
  std::unique_ptr<Records> records;
  std::unique_ptr<Erasures> erasures;
};

TEST_CASE("erasures: a crash between the erasure and its first request loses none") {
  Travels store;
  store.watch({{"hub", only("default", "*")}});
  store.room.fill("kitchen", "temp");
  store.room.fill("kitchen", "power");
  const std::uint64_t number = store.erase("kitchen");
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    const auto order = store.erasures->next("hub");
    REQUIRE(order);
    CHECK(order->number == number);
    CHECK(order->has_all_times);
    const std::vector<std::string> names = store.names(*order);
    REQUIRE(names.size() == 3);
    CHECK(names[0] == "kitchen");
    CHECK(names[1] == "kitchen/power");
    CHECK(names[2] == "kitchen/temp");
    store.restart();
  }
  REQUIRE(store.answer(number, "hub", ErasureStep::Confirmed).ok());
  store.restart();
  CHECK_FALSE(store.erasures->next("hub"));
  CHECK(store.erasures->of(number).value()[0].step == ErasureStep::Confirmed);
}

TEST_CASE("erasures: one that is damaged stops no start, and the others are told") {
  Travels t;
  t.watch({{"cloud", std::nullopt}});
  t.room.fill("kitchen", "temp");
  t.room.fill("cellar", "temp");
  const std::uint64_t lost = t.erase("kitchen");
  const std::uint64_t kept = t.erase("cellar");
  CHECK_FALSE(t.erasures->is_damaged());
  Bytes key("E");
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(lost >> shift));
  WriteBatch batch;
  batch.put(t.records->id(), key, "{\"version\":1,");
  REQUIRE(t.room.engine.write(batch, Durability::Sync).ok());
  t.restart();
  CHECK(t.erasures->is_damaged());
  CHECK(t.erasures->waiting("cloud") == 1);
  CHECK(t.erasures->next("cloud")->number == kept);
}

TEST_CASE("erasures: names wait where nobody can read them, until the last target has answered") {
  Travels store;
  store.watch({{"hub", std::nullopt}, {"cloud", only("*", "kit*")}});
  store.room.fill("kitchen", "temp");
  const std::uint64_t number = store.erase("kitchen");
  CHECK_FALSE(store.room.holds("kitchen"));
  REQUIRE(store.answer(number, "hub", ErasureStep::Confirmed).ok());
  CHECK(store.kept("K") == 1);
  CHECK(store.kept("N") == 1);
  REQUIRE(store.answer(number, "cloud", ErasureStep::NotPossible).ok());
  CHECK(store.kept("K") == 0);
  CHECK(store.kept("N") == 0);
  CHECK(store.kept("E") == 1);
  CHECK(store.erasures->waiting("cloud") == 0);
}

TEST_CASE("erasures: an erasure that fails tells nobody, and what it wrote ahead goes") {
  Travels store;
  store.watch({{"hub", std::nullopt}});
  store.room.fill("kitchen", "temp");
  store.room.engine.fail_writes_after(1, io_error("planted"));
  CHECK_FALSE(store.room.erase("kitchen").ok());
  store.room.engine.fail_writes(ok());
  CHECK_FALSE(store.erasures->next("hub"));
  store.restart();
  CHECK_FALSE(store.erasures->next("hub"));
  CHECK(store.kept("N") == 0);
  CHECK(store.room.readings() == 10);
}

TEST_CASE("erasures: a target hears of what it takes alone") {
  Travels store;
  store.room.fill("kitchen", "temp");
  store.room.fill("hall", "temp");
  store.watch({{"sensor", only("default", "*/power")},
               {"other", only("lab", "*")},
               {"hall", only("default", "hall")},
               {"gone", std::nullopt}});
  const auto matched = store.room.catalog->select("default", wire::Selector());
  CHECK(store.erasures->takers(matched, true) == std::vector<std::string>{"hall", "gone"});
  CHECK(store.erasures->takers({}, false).size() == 4);
  const std::uint64_t number = store.erase("hall");
  const auto told = store.erasures->of(number).value();
  REQUIRE(told.size() == 3);  // a device that goes may have had any sensor
  CHECK(told[0].target == "sensor");
  CHECK(told[1].target == "hall");
  CHECK(told[2].target == "gone");
  CHECK_FALSE(store.erasures->next("other"));
}

TEST_CASE("erasures: names that have gone here travel, sealed until the last answer") {
  Travels store;
  store.watch({{"hub", only("default", "*")}, {"part", only("default", "stove/heat")}});
  store.room.fill("kitchen", "temp");
  const std::uint64_t first = store.erase("kitchen");
  REQUIRE(store.answer(first, "hub", ErasureStep::NotPossible).ok());
  REQUIRE(store.room.service->drain().ok());
  const std::uint64_t again = store.erase("kitchen");
  const auto order = store.erasures->next("hub");
  REQUIRE(order);
  CHECK(order->number == again);
  CHECK(store.names(*order) == std::vector<std::string>{"kitchen"});
  CHECK(store.erasures->names(*order, 0).value()[0].is_gone);
  CHECK(store.room.service->certificate(again).value().series == 0);
  CHECK_FALSE(store.room.holds("kitchen"));
  CHECK(store.kept("N") == 1);
  REQUIRE(store.answer(again, "hub", ErasureStep::Confirmed).ok());
  CHECK(store.kept("N") == 0);
  CHECK(store.kept("K") == 0);
  // A series, and a range of times of it; of a device that may be known there in part.
  EraseRequest request = Room::request("stove/heat");
  request.to_ns = kNow;
  const auto ranged = store.room.service->erase(erase::test::local(), request);
  REQUIRE(ranged.ok());
  CHECK(store.names(*store.erasures->next("part")) == std::vector<std::string>{"stove/heat"});
  CHECK(store.erasures->next("hub")->number == ranged->number);
  // What no target takes, what no name says in full, and what may not be erased is not found.
  CHECK(store.room.erase("k*").status().code() == StatusCode::NotFound);
  CHECK(store.room.erase("*/temp").status().code() == StatusCode::NotFound);
  const auto refused = store.room.service->erase(erase::test::token("stove/*"), Room::request("b"));
  CHECK_FALSE(refused.ok());
  store.watch({{"part", only("default", "stove/heat")}});
  CHECK(store.room.erase("kitchen").status().code() == StatusCode::NotFound);
}

TEST_CASE("erasures: they go one after another, and again where an answer may be forgotten") {
  Travels store;
  store.watch({{"hub", std::nullopt}});
  store.room.fill("kitchen", "temp");
  store.room.fill("hall", "temp");
  const std::uint64_t first = store.erase("kitchen"), second = store.erase("hall");
  CHECK(store.erasures->next("hub")->number == first);
  REQUIRE(store.answer(first, "hub", ErasureStep::Requested).ok());
  CHECK(store.erasures->next("hub")->number == second);
  store.erasures->ask_again("hub");
  CHECK(store.erasures->next("hub")->number == first);
  // What has certificates there is looked at, not asked again.
  REQUIRE(store.erasures->note(first, {"hub", ErasureStep::Requested, {}, {17}, 0}).ok());
  store.erasures->ask_again("hub");
  store.restart();
  CHECK(store.erasures->next("hub")->number == second);
  CHECK(store.erasures->pending_there("hub")->second.certificates ==
        std::vector<std::uint64_t>{17});
  // An answer that cannot be kept is none.
  store.room.engine.fail_next_write(io_error("planted"));
  CHECK_FALSE(store.answer(second, "hub", ErasureStep::Confirmed).ok());
  CHECK(store.erasures->next("hub")->number == second);
  REQUIRE(store.erasures->forget("hub").ok());
  CHECK_FALSE(store.erasures->next("hub"));
  CHECK(store.erasures->of(second).value()[0].step == ErasureStep::NotPossible);
}

TEST_CASE("erasures: ranges and fences are told as they are here") {
  Travels store;
  store.watch({{"hub", std::nullopt}});
  store.room.fill("kitchen", "temp");
  erase::EraseRequest request = Room::request("kitchen/temp");
  request.from_ns = kNow - 5 * kHour;
  request.to_ns = kNow - 2 * kHour;
  request.fence = erase::FenceKind::Copies;
  REQUIRE(store.room.service->erase(erase::test::local(), request).ok());
  store.restart();
  const auto order = store.erasures->next("hub");
  REQUIRE(order);
  CHECK_FALSE(order->has_all_times);
  CHECK(order->range == request.range());
  CHECK(order->fence == erase::FenceKind::Copies);
  CHECK(order->fence_to_ns == kNow);
  CHECK(store.names(*order) == std::vector<std::string>{"kitchen/temp"});
}

TEST_CASE("erasures: many names go in chunks") {
  Travels store;
  store.watch({{"hub", std::nullopt}});
  for (int i = 0; i < 600; ++i)
    REQUIRE(store.room.write("kitchen", "s" + std::to_string(i), kNow - kHour));
  store.erase("kitchen");
  const auto order = store.erasures->next("hub");
  REQUIRE(order);
  CHECK(order->chunks == 3);
  CHECK(store.names(*order).size() == 601);
}

TEST_CASE("erasures: fences are lifted where they were made, after the erasure, once") {
  Travels store;
  store.watch({{"hub", only("default", "*")}, {"lines", only("default", "*")}});
  store.room.fill("kitchen", "temp");
  const std::uint64_t number = store.erase("kitchen");
  REQUIRE(store.answer(number, "lines", ErasureStep::Confirmed).ok());
  REQUIRE(store.room.service->lift(number).ok());
  CHECK_FALSE(store.erasures->next_lift("hub"));  // it is not asked for the erasure yet
  CHECK_FALSE(store.erasures->next_lift("lines"));
  REQUIRE(store.erasures
              ->note(number, {.target = "hub", .step = ErasureStep::Confirmed, .certificates = {7}})
              .ok());
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    const auto lift = store.erasures->next_lift("hub");
    REQUIRE(lift);
    CHECK(lift->first == number);
    CHECK(lift->second.certificates == std::vector<std::uint64_t>{7});
    CHECK(store.erasures->waiting("hub") == 1);
    CHECK_FALSE(store.erasures->next("hub"));
    store.restart();
  }
  REQUIRE(store.erasures->note_lifted(number, "hub").ok());
  CHECK_FALSE(store.erasures->next_lift("hub"));
  CHECK(store.kept("K") == 0);
  // It is over, and may be asked for again when other fences are.
  REQUIRE(store.erasures->lift(number).ok());
  CHECK(store.erasures->next_lift("hub"));
  REQUIRE(store.erasures->forget("hub").ok());
  CHECK_FALSE(store.erasures->next_lift("hub"));
  CHECK(store.erasures->of(number).value()[0].step == ErasureStep::Confirmed);
  CHECK(store.erasures->lift(99).ok());  // it went nowhere
}

// What was written once is read for good.
TEST_CASE("erasures: one of version 1, whose names have no numbers, is told") {
  Travels t;
  WriteBatch batch;
  const NamespaceId id = t.records->made_id().value();
  const Bytes key = auth::make_seal_key(t.room.random);
  Bytes number("\0\0\0\0\0\0\0\x07", 8);
  batch.put(id, "K" + number, key);
  const Bytes names(
      "\0\0\0\0\x07"
      "default\0\0\0\x01"
      "a\0\0\0\x01"
      "t\0\0\0\0",
      26);
  batch.put(id, "N" + number + Bytes(4, '\0'), auth::seal(key, 0, names));
  batch.put(
      id, "E" + number,
      R"({"version":1,"asked":1,"all":true,"from":0,"copies":false,"chunks":1,)"
      R"("targets":[{"name":"hub","step":"waiting","why":"","certificates":[],"answered":0}]})");
  REQUIRE(t.room.engine.write(batch, Durability::Sync).ok());
  t.restart();
  const auto order = t.erasures->next("hub");
  REQUIRE(order);
  const auto read = t.erasures->names(*order, 0);
  REQUIRE_MESSAGE(read.ok(), read.status().to_string());
  REQUIRE(read->size() == 1);
  CHECK((*read)[0].sensor == "t");
  CHECK((*read)[0].id.sensor == 0);
}

}  // namespace
}  // namespace edgecase::forward
