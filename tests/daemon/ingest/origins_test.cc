#include "ingest/origins.h"

#include <functional>

#include <doctest/doctest.h>

#include "support/manual_clock.h"
#include "support/model_engine.h"

namespace edgecase::ingest {
namespace {

const std::string kStore = "00112233445566778899aabbccddeeff";
const std::string kOtherStore = "ff112233445566778899aabbccddeeff";

std::string run(int number) {
  std::string digits = "0000000000000000" + std::to_string(number);
  return digits.substr(digits.size() - 16);
}

OriginClaim claim_of(const std::string& store, std::vector<int> runs) {
  OriginClaim claim{.store = store, .runs = {}};
  for (const int each : runs) claim.runs.push_back(run(each));
  return claim;
}

struct Hub {
  test::ModelEngine engine;
  test::ManualClock clock;
  std::unique_ptr<Origins> origins = open();

  std::unique_ptr<Origins> open() {
    auto opened = Origins::open(engine, clock);
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  Origins::Holder enter(const OriginClaim& claim) {
    auto holder = origins->enter(claim, "token");
    REQUIRE_MESSAGE(holder.ok(), holder.status().to_string());
    return *holder;
  }
};

}  // namespace

TEST_CASE("origins: a store goes on by its runs, and another has its own number") {
  Hub hub;
  const Origins::Holder first = hub.enter(claim_of(kStore, {1}));
  CHECK(first.is_new);
  CHECK_FALSE(first.is_second);
  CHECK(first.numbers.front() == 0x001122 + 1);
  CHECK(hub.enter(claim_of(kOtherStore, {1})).numbers != first.numbers);
  // Nothing of the runs between has arrived here.
  for (const auto& runs : {std::vector<int>{1}, {4, 3, 2, 1}, {4}, {5, 4}}) {
    const Origins::Holder again = hub.enter(claim_of(kStore, runs));
    CHECK(again.numbers == first.numbers);
    CHECK_FALSE(again.is_new);
    hub.origins = hub.open();
  }
}

TEST_CASE("origins: the second copy of a store is another holder, whichever comes second") {
  Hub hub;
  const Origins::Holder first = hub.enter(claim_of(kStore, {1}));
  const Origins::Holder copy = hub.enter(claim_of(kStore, {2, 1}));
  CHECK(copy.numbers == first.numbers);
  hub.origins = hub.open();
  const Origins::Holder second = hub.enter(claim_of(kStore, {3, 1}));
  CHECK(second.is_new);
  CHECK(second.is_second);
  CHECK(second.numbers != first.numbers);
  // Each goes on by itself.
  CHECK(hub.enter(claim_of(kStore, {4, 2, 1})).numbers == first.numbers);
  const Origins::Holder again = hub.enter(claim_of(kStore, {5, 3, 1}));
  CHECK(again.numbers == second.numbers);
  CHECK(again.is_second);
  CHECK(hub.origins->find(claim_of(kStore, {5})).ok());
  CHECK(hub.origins->find(claim_of(kStore, {9})).status().code() == StatusCode::NotFound);
}

TEST_CASE("origins: one that is handed over is the heir's, and who was it before is kept apart") {
  Hub hub;
  const auto lost = hub.enter(claim_of(kStore, {1})).numbers.front();
  const auto heir = hub.enter(claim_of(kOtherStore, {1})).numbers.front();
  CHECK(hub.origins->hand_over(lost, 9).code() == StatusCode::NotFound);
  CHECK(hub.origins->hand_over(lost, lost).code() == StatusCode::InvalidArgument);
  REQUIRE(hub.origins->hand_over(lost, heir).ok());
  CHECK(hub.origins->hand_over(heir, lost).code() == StatusCode::InvalidArgument);
  hub.origins = hub.open();
  CHECK(hub.enter(claim_of(kOtherStore, {2, 1})).numbers ==
        std::vector<catalog::OriginNumber>{lost, heir});
  const Origins::Holder back = hub.enter(claim_of(kStore, {2, 1}));
  CHECK(back.is_second);
  CHECK(back.numbers.size() == 1);
  CHECK(back.numbers.front() != heir);
  CHECK(back.numbers.front() != lost);
}

TEST_CASE("origins: restored ones go on under their numbers, whatever runs they began since") {
  Hub hub, restored;
  const auto first = hub.enter(claim_of(kStore, {1})).numbers;
  const auto second = hub.enter(claim_of(kStore, {2})).numbers;
  const auto other = hub.enter(claim_of(kOtherStore, {1})).numbers;
  const auto others = restored.origins->restore(hub.origins->list());
  REQUIRE(others.ok());
  CHECK(others->empty());
  restored.origins = restored.open();
  CHECK(restored.enter(claim_of(kOtherStore, {9})).numbers == other);
  CHECK(restored.enter(claim_of(kOtherStore, {8})).is_second);
  // Which of two copies comes is told by its run; then the other one is known too.
  CHECK(restored.origins->find(claim_of(kStore, {7})).status().code() == StatusCode::NotFound);
  CHECK(restored.enter(claim_of(kStore, {3, 2})).numbers == second);
  restored.origins = restored.open();
  CHECK(restored.enter(claim_of(kStore, {7})).numbers == first);
  // A second time it changes nothing.
  REQUIRE(restored.origins->restore(hub.origins->list()).ok());
  CHECK(restored.enter(claim_of(kStore, {8, 7})).numbers == first);
  CHECK(restored.enter(claim_of(kStore, {6})).is_new);
}

TEST_CASE("origins: a number that another store has here is told, and what cannot be is refused") {
  Hub hub;
  const auto number = hub.enter(claim_of(kStore, {1})).numbers.front();
  Origin good;
  good.number = good.holder = number;
  good.store = kOtherStore;
  good.run = run(1);
  CHECK(*hub.origins->restore({good}) == std::vector<catalog::OriginNumber>{number});
  CHECK(hub.enter(claim_of(kStore, {1})).numbers.front() == number);
  const auto code_of = [&](const std::function<void(Origin&)>& change) {
    Origin changed = good;
    changed.number = changed.holder = number + 1;
    change(changed);
    return hub.origins->restore({changed}).status().code();
  };
  CHECK(code_of([](Origin& each) { each.number = 0; }) == StatusCode::InvalidArgument);
  CHECK(code_of([](Origin& each) { each.store = "x"; }) == StatusCode::InvalidArgument);
  CHECK(code_of([](Origin& each) { each.run = ""; }) == StatusCode::InvalidArgument);
  CHECK(code_of([](Origin& each) { each.store_before = "1"; }) == StatusCode::InvalidArgument);
  CHECK(code_of([](Origin& each) { each.holder = 77; }) == StatusCode::InvalidArgument);
  CHECK(hub.origins->list().size() == 1);
  CHECK(code_of([](Origin&) {}) == StatusCode::Ok);
}

TEST_CASE("origins: who says nothing of itself that is right is told so") {
  for (const std::string& text :
       {std::string(), kStore, kStore + " ", kStore + " 12", kStore + "0 " + run(1),
        kStore + " " + run(1) + " x", "X" + kStore.substr(1) + " " + run(1)}) {
    CHECK_MESSAGE(parse_origin(text).status().code() == StatusCode::InvalidArgument, text);
  }
  std::string many = kStore;
  for (std::size_t i = 0; i < OriginClaim::kRunsMax; ++i) many += " " + run(static_cast<int>(i));
  const auto claim = parse_origin(many);
  REQUIRE(claim.ok());
  CHECK(claim->store == kStore);
  CHECK(claim->runs.size() == OriginClaim::kRunsMax);
  CHECK_FALSE(parse_origin(many + " " + run(0)).ok());
}

// What was written once is read for good.
TEST_CASE("origins: a record is as it is documented") {
  const Origin origin{.number = 3,
                      .store = kStore,
                      .run = run(12),
                      .store_before = kOtherStore,
                      .holder = 2,
                      .is_second = true,
                      .since_ns = 5,
                      .by = "board"};
  const Bytes golden(
      "\x01\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\0\0\0\0\0\0\0\x12"
      "\xff\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\0\0\0\x02\x01"
      "\0\0\0\0\0\0\0\x05"
      "board",
      1 + 16 + 8 + 16 + 4 + 1 + 8 + 5);
  CHECK(encode_origin(origin) == golden);
  const auto read = decode_origin(3, golden);
  REQUIRE(read.ok());
  CHECK(read->store == kStore);
  CHECK(read->run == run(12));
  CHECK(read->store_before == kOtherStore);
  CHECK(read->holder == 2);
  CHECK(read->is_second);
  CHECK_FALSE(read->is_restored);
  CHECK(read->since_ns == 5);
  CHECK(read->by == "board");
  CHECK(decode_origin(3, golden.substr(0, 50)).status().code() == StatusCode::Corruption);
  Origin restored = origin;
  restored.is_restored = true;
  Bytes second_version = golden;
  second_version[0] = 2;
  second_version[1 + 16 + 8 + 16 + 4] = 3;
  CHECK(encode_origin(restored) == second_version);
  CHECK(decode_origin(3, second_version)->is_restored);
  CHECK(decode_origin(3, second_version)->is_second);
  Bytes newer = golden;
  newer[0] = 3;
  CHECK(decode_origin(3, newer).status().code() == StatusCode::Unsupported);
}

}  // namespace edgecase::ingest
