#include "erase/fences.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "erase/erase_service.h"
#include "wire/tiers.h"

namespace edgecase::erase {
namespace {

Pseudonyms pseudonyms() {
  return Pseudonyms(Bytes(auth::kPseudonymKeyBytes, 'k'));
}

FencedRange of_erasure(std::uint64_t number, TimeRange times, FenceKind kind = FenceKind::Lasting) {
  return {times, number, 0, kind};
}

void add(Fences& fences, const Pseudonym& pseudonym, TimeRange range) {
  auto fence = fences.with(pseudonym, of_erasure(1, range));
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

TEST_CASE("a fence refuses windows that hold a time of its own") {
  Fences fences(1, pseudonyms());
  add(fences, pseudonyms().of_series("default", "a", "x"), {14, 16});
  std::vector<bool> found;
  for (const std::int64_t begin : {0, 4, 5, 10, 15, 16, 20}) {
    const wire::Window window{.begin_ns = begin, .every_ns = 10};
    wire::Reading reading{"default", "a", "x", begin, {}};
    reading.window = &window;
    found.push_back(!fences.refused({&reading, 1}).empty());
  }
  CHECK(found == std::vector<bool>{false, false, true, true, true, false, false});
}

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

TEST_CASE("ranges of one fence stay apart until there are too many, and then are refused") {
  Fences fences(1, pseudonyms());
  const Pseudonym who = pseudonyms().of_device("default", "a");
  add(fences, who, {10, 20});
  add(fences, who, {30, 40});
  add(fences, who, {0, 5});
  const auto times_with = [&](TimeRange more) {
    const Fence fence = fences.with(who, of_erasure(2, more)).value();
    std::vector<TimeRange> times;
    for (const FencedRange& each : fence.ranges) times.push_back(each.times);
    return times;
  };
  CHECK(times_with({20, 30}) == std::vector<TimeRange>{{0, 5}, {10, 20}, {20, 30}, {30, 40}});
  CHECK(times_with({5, 25}) == std::vector<TimeRange>{{0, 5}, {5, 25}, {30, 40}});
  CHECK(times_with({INT64_MIN, 100}) == std::vector<TimeRange>{{INT64_MIN, 100}});
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kRangesPerFenceMax) - 3; ++i)
    add(fences, who, {100 + 10 * i, 101 + 10 * i});
  CHECK(fences.with(who, of_erasure(2, {50, 51})).status().code() == StatusCode::LimitReached);
  const auto joined = fences.with(who, of_erasure(2, {40, 51}));
  REQUIRE(joined.ok());
  CHECK(joined->ranges.at(2) == of_erasure(2, {30, 51}));
}

TEST_CASE("a fence of copies lets what is new in, and refuses copies of what was there before") {
  Fences fences(1, pseudonyms());
  const Pseudonym who = pseudonyms().of_series("default", "a", "x");
  fences.set(who, {{{{10, 20}, 7, 100, FenceKind::Copies}}});
  CHECK(refused(fences, "a", "x", {10, 15}).empty());
  struct Case {
    bool comes_again;
    Copied copied;
    std::vector<bool> refused;
  };
  for (const Case& c : {Case{true, {}, {true, false}}, Case{false, {true, 99}, {true, false}},
                        Case{false, {true, 100}, {true, false}}, Case{false, {true, 101}, {}},
                        Case{false, {true, INT64_MIN}, {true, false}}, Case{true, {true, 101}, {}},
                        Case{false, {}, {}}}) {
    CAPTURE(c.comes_again);
    CAPTURE(c.copied.as_of_ns);
    std::vector<wire::Reading> readings;
    for (const std::int64_t time_ns : {15, 20}) {
      readings.push_back({"default", "a", "x", time_ns, wire::Value::of_bool(true)});
      readings.back().comes_again = c.comes_again;
    }
    CHECK(fences.refused(readings, c.copied) == c.refused);
  }
  // Beside a lasting one, each holds for itself.
  auto both = fences.with(who, of_erasure(8, {12, 14}));
  REQUIRE(both.ok());
  fences.set(who, *both);
  CHECK(both->ranges.size() == 2);
  CHECK(refused(fences, "a", "x", {10, 12, 15}) == std::vector<bool>{false, true, false});
}

TEST_CASE("fences are listed from the newest erasure on, and lifted by its number") {
  Fences fences(1, pseudonyms());
  const Pseudonym a = pseudonyms().of_device("default", "a");
  const Pseudonym b = pseudonyms().of_device("default", "b");
  fences.set(a, {{of_erasure(1, {0, 5}), of_erasure(3, {10, 15})}});
  fences.set(b, {{of_erasure(2, {0, 9})}});
  const auto numbers = [&](std::size_t limit) {
    std::vector<std::uint64_t> listed;
    for (const Fences::Listed& each : fences.list(limit).ranges)
      listed.push_back(each.range.erasure);
    return listed;
  };
  CHECK(numbers(10) == std::vector<std::uint64_t>{3, 2, 1});
  CHECK(numbers(2) == std::vector<std::uint64_t>{3, 2});
  CHECK(fences.list(2).more == 1);
  CHECK(fences.list(0).more == 3);
  CHECK(fences.without(9).empty());
  const Fences::Planned without_3 = fences.without(3);
  REQUIRE(without_3.size() == 1);
  CHECK(without_3.front().first == a);
  CHECK(without_3.front().second.ranges == std::vector{of_erasure(1, {0, 5})});
  CHECK(fences.without(2).front().second.ranges.empty());
}

TEST_CASE("the fences set longest ago give way to new ones, and none that is set again") {
  Fences fences(1, pseudonyms());
  const auto numbered = [](std::size_t number) {
    Pseudonym pseudonym{};
    for (std::size_t i = 0; i < sizeof number; ++i)
      pseudonym[i] = static_cast<std::uint8_t>(number >> (8 * (sizeof number - 1 - i)));
    return pseudonym;
  };
  for (std::size_t i = 0; i < kFencesMax - 1; ++i)
    fences.set(numbered(i), {{of_erasure(i + 1, {0, 1})}});
  const Fence again{{of_erasure(kFencesMax, {0, 2})}};
  CHECK(fences.giving_way({{numbered(0), again}}).empty());
  CHECK(fences.giving_way({{numbered(0), again}, {numbered(kFencesMax), again}}).empty());
  const Fences::Planned planned{
      {numbered(0), again}, {numbered(kFencesMax), again}, {numbered(kFencesMax + 1), again}};
  CHECK(fences.giving_way(planned) == std::vector{numbered(1)});
  // One against copies alone is younger, and goes first.
  fences.set(numbered(9), {{of_erasure(kFencesMax, {0, 1}, FenceKind::Copies)}});
  CHECK(fences.giving_way(planned) == std::vector{numbered(9)});
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
  CHECK(fences.load(key, Bytes(25, '\4')).code() == StatusCode::Unsupported);
  for (const std::size_t size : {2u, 33u, 35u}) {
    CAPTURE(size);
    CHECK(fences.load(key, Bytes(size, '\2')).code() == StatusCode::Corruption);
  }
  CHECK(fences.load(key, "\2\4" + Bytes(32, '\0')).code() == StatusCode::Unsupported);
  CHECK(fences.load(key, "\2\3" + Bytes(32, '\0')).ok());
}

// Records as version 0.1 wrote them, and as they are written: fixed for good.
TEST_CASE("a fence of version 1 is read, and version 2 stays as it is") {
  const Pseudonym who = pseudonyms().of_device("default", "a");
  const Bytes key = "F" + Bytes(auth::view_of(who));
  const auto number = [](std::uint8_t last) { return Bytes(7, '\0') + static_cast<char>(last); };
  const Bytes last_instant = "\x7f" + Bytes(7, '\xff');
  Fences fences(1, pseudonyms());
  REQUIRE(fences
              .load(key, "\1" + number(7) + number(5) + number(9) + number(20) + last_instant +
                             last_instant + last_instant)
              .ok());
  CHECK(refused(fences, "a", "x", {4, 5, 9, 20, INT64_MAX}) ==
        std::vector<bool>{false, true, false, true, true});
  REQUIRE(fences.list(9).ranges.size() == 2);
  CHECK(fences.list(9).ranges.front().range == of_erasure(7, {5, 9}));
  CHECK(encode_fence({{{{5, 9}, 7, 3, FenceKind::Copies}, of_erasure(8, {20, std::nullopt})}}) ==
        "\2\1" + number(7) + number(3) + number(5) + number(9) + "\2" + number(8) + number(0) +
            number(20) + last_instant);
}

TEST_CASE("a fence of a device that is gone keeps whose its name is") {
  const Pseudonym who = pseudonyms().of_device("default", "a");
  const Bytes key = "F" + Bytes(auth::view_of(who));
  Fence fence{{of_erasure(8, {20, std::nullopt})}, 5};
  const Bytes golden = Bytes("\3\0\0\0\5\2", 6) + Bytes(7, '\0') + "\x08" + Bytes(8, '\0') +
                       Bytes(7, '\0') + "\x14" + "\x7f" + Bytes(7, '\xff');
  CHECK(encode_fence(fence) == golden);
  Fences fences(1, pseudonyms());
  CHECK(fences.owner("default", "a") == catalog::kNoOrigin);
  REQUIRE(fences.load(key, golden).ok());
  CHECK(fences.owner("default", "a") == 5);
  CHECK(fences.owner("default", "b") == catalog::kNoOrigin);
  CHECK(fences.load(key, golden.substr(0, 3)).code() == StatusCode::Corruption);
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
    const auto fence = fences.with(who, of_erasure(1, c.ranges.front()));
    REQUIRE(fence.ok());
    Fences again(1, pseudonyms());
    Bytes key(1, 'F');
    key += Bytes(auth::view_of(who));
    REQUIRE(again.load(key, encode_fence(*fence)).ok());
    CHECK(again.with(who, of_erasure(1, c.ranges.front()))->ranges == fence->ranges);
    CHECK(again.is_erased("default", "a", INT64_MAX) == c.holds_last);
    CHECK(again.is_erased("default", "a", INT64_MAX - 1) == c.holds_before);
  }
  Fences fences(1, pseudonyms());
  add(fences, who, {10, INT64_MAX});
  CHECK(fences.with(who, of_erasure(2, {10, std::nullopt}))->ranges ==
        std::vector{of_erasure(2, {10, std::nullopt})});
  CHECK(fences.with(who, of_erasure(2, {5, 7}))->ranges ==
        std::vector{of_erasure(2, {5, 7}), of_erasure(1, {10, INT64_MAX})});
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
