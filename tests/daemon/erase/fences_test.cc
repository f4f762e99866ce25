#include "erase/fences.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "erase/certificate.h"

namespace edgecase::erase {
namespace {

Pseudonyms pseudonyms() {
  return Pseudonyms(Bytes(auth::kPseudonymKeyBytes, 'k'));
}

void add(Fences& fences, const Pseudonym& pseudonym, TimeRange range) {
  auto fence = fences.with(pseudonym, 1, range);
  REQUIRE(fence.ok());
  fences.set(pseudonym, std::move(fence).value());
}

std::vector<bool> refused(const Fences& fences, const char* device, const char* sensor,
                          std::vector<std::optional<std::int64_t>> times) {
  std::vector<wire::Reading> readings;
  for (const auto& time : times)
    readings.push_back({"default", device, sensor, time, wire::Value::of_bool(true)});
  return fences.refused(readings);
}

}  // namespace

TEST_CASE("a fence refuses its series' or device's times, and nothing else") {
  Fences fences(1, pseudonyms());
  CHECK(refused(fences, "a", "x", {5}).empty());
  add(fences, pseudonyms().of_series("default", "a", "x"), {10, 20});
  add(fences, pseudonyms().of_device("default", "b"), {INT64_MIN, 100});
  CHECK(refused(fences, "a", "x", {9, 10, 19, 20, std::nullopt}) ==
        std::vector<bool>{false, true, true, false, false});
  CHECK(refused(fences, "a", "y", {10, 15}).empty());
  CHECK(refused(fences, "b", "any", {INT64_MIN, -1, 99, 100}) ==
        std::vector<bool>{true, true, true, false});
  CHECK(refused(fences, "c", "x", {15}).empty());
  fences.remove(pseudonyms().of_device("default", "b"));
  CHECK(refused(fences, "b", "any", {5}).empty());
}

TEST_CASE("ranges of one fence that touch are one, and too many are refused") {
  Fences fences(1, pseudonyms());
  const Pseudonym who = pseudonyms().of_device("default", "a");
  add(fences, who, {10, 20});
  add(fences, who, {30, 40});
  add(fences, who, {0, 5});
  CHECK(fences.with(who, 2, {20, 30})->ranges == std::vector<TimeRange>{{0, 5}, {10, 40}});
  CHECK(fences.with(who, 2, {15, 16})->ranges ==
        std::vector<TimeRange>{{0, 5}, {10, 20}, {30, 40}});
  CHECK(fences.with(who, 2, {INT64_MIN, 100})->ranges == std::vector<TimeRange>{{INT64_MIN, 100}});
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kRangesPerFenceMax) - 3; ++i)
    add(fences, who, {100 + 10 * i, 101 + 10 * i});
  CHECK(fences.with(who, 2, {50, 51}).status().code() == StatusCode::LimitReached);
  CHECK(fences.with(who, 2, {40, 51}).ok());
}

TEST_CASE("the fences set longest ago give way to new ones, and none that is set again") {
  Fences fences(1, pseudonyms());
  const auto numbered = [](std::size_t number) {
    Pseudonym pseudonym{};
    for (std::size_t i = 0; i < sizeof number; ++i)
      pseudonym[i] = static_cast<std::uint8_t>(number >> (8 * (sizeof number - 1 - i)));
    return pseudonym;
  };
  for (std::size_t i = 0; i < kFencesMax - 1; ++i) fences.set(numbered(i), {i + 1, {{0, 1}}});
  const Fence again{kFencesMax, {{0, 2}}};
  CHECK(fences.giving_way({{numbered(0), again}}).empty());
  CHECK(fences.giving_way({{numbered(0), again}, {numbered(kFencesMax), again}}).empty());
  const Fences::Planned planned{
      {numbered(0), again}, {numbered(kFencesMax), again}, {numbered(kFencesMax + 1), again}};
  CHECK(fences.giving_way(planned) == std::vector{numbered(1)});
}

TEST_CASE("a fence reads back from its record, and what is no record is refused") {
  Fences fences(1, pseudonyms());
  const Pseudonym who = pseudonyms().of_device("default", "a");
  CHECK(fences.load("F", "").code() == StatusCode::Corruption);
  const Bytes key = "F" + Bytes(auth::view_of(who));
  CHECK(fences.load(key, Bytes(9, '\1')).ok());
  for (const std::size_t size : {0u, 8u, 10u, 24u, 26u}) {
    CAPTURE(size);
    CHECK(fences.load(key, Bytes(size, '\1')).code() == StatusCode::Corruption);
  }
  CHECK(fences.load(key, Bytes(25, '\2')).code() == StatusCode::Unsupported);
}

TEST_CASE("a fence without an end holds the last instant of time, one that ends with it does not") {
  const Pseudonym who = pseudonyms().of_device("default", "a");
  struct Case {
    std::vector<TimeRange> ranges;
    bool holds_last, holds_before;
  };
  for (const Case& c : {
           Case{{{5, std::nullopt}}, true, true},
           Case{{{5, INT64_MAX}}, false, true},
           Case{{{INT64_MAX, std::nullopt}}, true, false},
           Case{{{5, 6}, {INT64_MAX, std::nullopt}}, true, false},
           Case{{{5, INT64_MAX - 1}}, false, false},
           Case{{TimeRange{}}, true, true},
       }) {
    CAPTURE(c.ranges.front().from_ns);
    Fences fences(1, pseudonyms());
    for (const TimeRange& range : c.ranges) add(fences, who, range);
    CHECK(fences.is_erased("default", "a", INT64_MAX) == c.holds_last);
    CHECK(fences.is_erased("default", "a", INT64_MAX - 1) == c.holds_before);
    CHECK(refused(fences, "a", "x", {INT64_MAX}) ==
          (c.holds_last ? std::vector<bool>{true} : std::vector<bool>{}));
    // As it reads back.
    const auto fence = fences.with(who, 2, c.ranges.front());
    REQUIRE(fence.ok());
    Fences again(1, pseudonyms());
    Bytes key(1, 'F');
    key += Bytes(auth::view_of(who));
    REQUIRE(again.load(key, encode_fence(*fence)).ok());
    CHECK(again.with(who, 2, c.ranges.front())->ranges == fence->ranges);
    CHECK(again.is_erased("default", "a", INT64_MAX) == c.holds_last);
    CHECK(again.is_erased("default", "a", INT64_MAX - 1) == c.holds_before);
  }
  Fences fences(1, pseudonyms());
  add(fences, who, {10, INT64_MAX});
  CHECK(fences.with(who, 2, {INT64_MAX, std::nullopt})->ranges ==
        std::vector<TimeRange>{{10, std::nullopt}});
  CHECK(fences.with(who, 2, {5, 7})->ranges == std::vector<TimeRange>{{5, 7}, {10, INT64_MAX}});
}

TEST_CASE("the gate closes when everybody is out, and nobody enters meanwhile") {
  Fences fences(1, pseudonyms());
  std::atomic<int> inside{0}, rounds{0};
  std::atomic<bool> stop{false}, wrong{false};
  const auto go_in = [&] {
    while (!stop) {
      const Fences::Pass pass = fences.enter();
      ++inside;
      ++rounds;
      --inside;
    }
  };
  std::thread first(go_in), second(go_in);
  for (int i = 0; i < 200; ++i) {
    const Fences::Closed closed = fences.close();
    const int before = rounds;
    if (inside != 0) wrong = true;
    std::this_thread::yield();
    if (rounds != before) wrong = true;
  }
  stop = true;
  first.join();
  second.join();
  CHECK_FALSE(wrong);
}

TEST_CASE("a certificate reads back as it was, and a malformed one is refused") {
  Certificate certificate;
  certificate.number = 7;
  certificate.state = ErasureState::Done;
  certificate.asked_ns = 1;
  certificate.gone_ns = 3;
  certificate.from_ns = -5;
  certificate.readings = 12;
  certificate.device_pseudonyms = {"ab"};
  const std::string record = encode_certificate(certificate);
  const auto read = decode_certificate(record);
  REQUIRE(read.ok());
  CHECK(encode_certificate(*read) == record);
  CHECK(read->from_ns == -5);
  CHECK_FALSE(read->to_ns);
  CHECK_FALSE(read->bytes);
  CHECK(decode_certificate("{}").status().code() == StatusCode::Corruption);
  CHECK(decode_certificate("").status().code() == StatusCode::Corruption);
  for (std::size_t size = 0; size < record.size(); ++size)
    CHECK_FALSE(decode_certificate(record.substr(0, size)).ok());
  std::string newer = record;
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":2");
  CHECK(decode_certificate(newer).status().code() == StatusCode::Unsupported);
}

}  // namespace edgecase::erase
