// What a set of range deletes covers, beside a list that is asked one by one.
#include "base/range_deletes.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

RangeDelete range(const char* lower, const char* upper, SequenceNumber sequence,
                  bool erases = false) {
  RangeDelete made = make_range_delete(1, lower, upper, sequence);
  made.erases = erases;
  return made;
}

Bytes key(const char* text) {
  return make_full_key(1, text);
}

Bytes number_key(std::uint64_t i) {
  return make_full_key(
      1, std::string{static_cast<char>('a' + i / 10), static_cast<char>('0' + i % 10)});
}

}  // namespace

TEST_CASE("range deletes: lower bounds are covered, upper bounds are not") {
  const std::vector<RangeDelete> list = {range("b", "d", 5)};
  const RangeDeletes deletes(list);
  struct Case {
    const char* key;
    SequenceNumber want;
  };
  for (const Case& each :
       {Case{"a", 0}, Case{"b", 5}, Case{"c", 5}, Case{"czz", 5}, Case{"d", 0}}) {
    CAPTURE(each.key);
    CHECK(deletes.covering(key(each.key), 100) == each.want);
  }
  CHECK(deletes.covering(key("c"), 4) == 0);  // not visible yet
  CHECK(deletes.covering(make_full_key(2, "c"), 100) == 0);
}

TEST_CASE("range deletes: one that is unbounded ends with its namespace") {
  const std::vector<RangeDelete> list = {range("b", "", 5)};
  const RangeDeletes deletes(list);
  CHECK(deletes.covering(key("zzz"), 100) == 5);
  CHECK(deletes.covering(make_full_key(2, ""), 100) == 0);
}

TEST_CASE("range deletes: of several that cover a key the newest visible one is meant") {
  const std::vector<RangeDelete> list = {range("a", "z", 3), range("c", "f", 9),
                                         range("b", "d", 6)};
  const RangeDeletes deletes(list);
  CHECK(deletes.covering(key("c"), 100) == 9);
  CHECK(deletes.covering(key("c"), 8) == 6);
  CHECK(deletes.covering(key("c"), 5) == 3);
  CHECK(deletes.covering(key("c"), 2) == 0);
  CHECK(deletes.covering(key("g"), 100) == 3);
}

TEST_CASE("range deletes: a stretch is covered when no key of it is left out") {
  const std::vector<RangeDelete> list = {range("b", "d", 5), range("d", "f", 7),
                                         range("h", "k", 9)};
  const RangeDeletes deletes(list);
  CHECK(deletes.covers(key("b"), key("e"), 4));
  CHECK_FALSE(deletes.covers(key("b"), key("e"), 5));  // of one half only the newer
  CHECK_FALSE(deletes.covers(key("b"), key("h"), 1));  // a gap between
  CHECK_FALSE(deletes.covers(key("a"), key("c"), 1));
  CHECK(deletes.touches(key("a"), key("b"), 4));
  CHECK_FALSE(deletes.touches(key("f"), key("g"), 1));
  CHECK_FALSE(deletes.touches(key("a"), key("b"), 5));
}

TEST_CASE("range deletes: their newest parts are disjoint, in order, and answer the same") {
  const std::uint64_t seed = test::test_seed(7);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<RangeDelete> list;
    for (std::uint64_t count = random.below(12); count > 0; --count) {
      const std::uint64_t from = random.below(100);
      RangeDelete each{number_key(from), number_key(from + 1 + random.below(40)),
                       1 + random.below(30), random.below(2) == 0};
      list.push_back(each);
    }
    const RangeDeletes deletes(list);
    const std::vector<RangeDelete> newest = deletes.newest();
    for (std::size_t i = 0; i + 1 < newest.size(); ++i)
      CHECK(newest[i].upper <= newest[i + 1].lower);
    const RangeDeletes again(newest);
    std::size_t hint = 0;
    for (std::uint64_t i = 0; i < 140; ++i) {
      const Bytes at = number_key(i);
      const SequenceNumber visible = random.below(40);
      SequenceNumber want = 0, want_newest = 0;
      for (const RangeDelete& each : list) {
        if (at < each.lower || at >= each.upper) continue;
        want_newest = std::max(want_newest, each.sequence);
        if (each.sequence <= visible) want = std::max(want, each.sequence);
      }
      REQUIRE(deletes.covering(at, visible) == want);
      REQUIRE(deletes.covering(at, visible, hint) == want);
      REQUIRE(again.covering(at, UINT64_MAX) == want_newest);
      REQUIRE(deletes.touches(at, at, visible) == (want_newest > visible));
      REQUIRE(deletes.covers(at, at, visible) == (want_newest > visible));
    }
  }
}

TEST_CASE(
    "range deletes: those that meet a stretch, and those that erase, are a part of the list") {
  const std::vector<RangeDelete> list = {range("a", "c", 1), range("d", "f", 2, true),
                                         range("h", "k", 3, true)};
  CHECK(meeting(list, key("b"), key("d")).size() == 2);
  CHECK(meeting(list, key("c"), key("c")).empty());
  CHECK(meeting(list, key("f"), key("h")).size() == 1);
  CHECK(meeting(list, key("l"), key("z")).empty());
  const std::vector<RangeDelete> erasing = erasures_among(list);
  REQUIRE(erasing.size() == 2);
  CHECK(erasing.front() == list[1]);
}

}  // namespace edgecase::engine
