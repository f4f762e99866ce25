#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/buffer/strip_part.h"

namespace edgecase::engine {
namespace {

using StripRows = std::vector<std::pair<Bytes, Bytes>>;

StripRows rows_of(const StripPart& part, ByteView lower, ByteView upper, Direction direction,
                  SequenceNumber visible, SequenceNumber newer_than = 0) {
  StripRows rows;
  const auto cursor = part.strips.cursor(nullptr, lower, upper, direction, visible, newer_than);
  for (; cursor != nullptr && cursor->valid(); cursor->next()) {
    REQUIRE(cursor->load().ok());
    rows.emplace_back(cursor->full_key(), cursor->value());
  }
  return rows;
}

TEST_CASE("strip cursor: it goes over lanes and series in the order of keys, either way") {
  StripPart part;
  StripRows want;
  SequenceNumber sequence = 0;
  for (const ByteView series : {kOneSeries, kOtherSeries}) {
    // Two writers that take turns: what the second brings is late each time.
    for (std::uint64_t i = 0; i < 100; ++i) {
      REQUIRE(part.put(series, 1'000 + 2 * i, ++sequence));
      if (i % 3 == 0) REQUIRE(part.put(series, 500 + 2 * i + 1, ++sequence));
    }
  }
  for (const ByteView series : {kOneSeries, kOtherSeries}) {
    for (std::uint64_t ordinal = 500; ordinal < 1'300; ++ordinal) {
      const auto entry = part.get(series, ordinal, kAllVisible);
      if (entry) want.emplace_back(make_full_key(1, strip_key(series, ordinal)), entry->value);
    }
  }
  REQUIRE(want.size() == 2 * (100 + 34));
  CHECK(rows_of(part, make_full_key(1, ""), {}, Direction::Forward, kAllVisible) == want);
  StripRows back(want.rbegin(), want.rend());
  CHECK(rows_of(part, make_full_key(1, ""), {}, Direction::Reverse, kAllVisible) == back);
  // Bounds cut it, the upper one is not there.
  const StripRows some(want.begin() + 10, want.begin() + 200);
  CHECK(rows_of(part, want[10].first, want[200].first, Direction::Forward, kAllVisible) == some);
  CHECK(part.strips.cursor(nullptr, make_full_key(2, ""), {}, Direction::Forward, kAllVisible, 0) ==
        nullptr);
}

TEST_CASE("strip cursor: of a key that came again it shows what is visible and new enough") {
  StripPart part;
  REQUIRE(part.put(kOneSeries, 1, 1, "old"));
  REQUIRE(part.put(kOneSeries, 2, 2, "stays"));
  REQUIRE(part.put(kOneSeries, 1, 3, "new"));
  const Bytes one = make_full_key(1, strip_key(kOneSeries, 1)),
              two = make_full_key(1, strip_key(kOneSeries, 2));
  CHECK(rows_of(part, one, {}, Direction::Forward, kAllVisible) ==
        StripRows{{one, "new"}, {two, "stays"}});
  CHECK(rows_of(part, one, {}, Direction::Forward, 2) == StripRows{{one, "old"}, {two, "stays"}});
  CHECK(rows_of(part, one, {}, Direction::Forward, kAllVisible, 2) == StripRows{{one, "new"}});
  CHECK(rows_of(part, one, {}, Direction::Reverse, 1) == StripRows{{one, "old"}});
}

}  // namespace
}  // namespace edgecase::engine
