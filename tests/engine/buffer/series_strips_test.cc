#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/entry.h"
#include "buffer/memtable.h"

namespace edgecase::engine {
namespace {

using StripRows = std::vector<std::pair<Bytes, Bytes>>;

// A key of a series: what it begins with, then the ordinal, big-endian.
Bytes strip_key(ByteView series, std::uint64_t ordinal) {
  Bytes key(series);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
  return key;
}

Bytes tagged_number(std::int64_t value) {
  Bytes bytes(1, kIntegerTag);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

// Strips with the memory that they lie in.
struct StripPart {
  Arena arena;
  SeriesStrips strips{arena};

  bool put(ByteView series, std::uint64_t ordinal, SequenceNumber sequence, ByteView value) {
    return strips.add({EntryKind::Put, 1, strip_key(series, ordinal), value, {}}, sequence);
  }
  bool put(ByteView series, std::uint64_t ordinal, SequenceNumber sequence) {
    return put(series, ordinal, sequence, tagged_number(static_cast<std::int64_t>(sequence)));
  }
  std::optional<FoundEntry> get(ByteView series, std::uint64_t ordinal,
                                SequenceNumber visible) const {
    return strips.get(make_full_key(1, strip_key(series, ordinal)), visible);
  }
  StripRows rows(ByteView lower, ByteView upper, Direction direction, SequenceNumber visible,
                 SequenceNumber newer_than = 0) const {
    StripRows rows;
    const auto cursor = strips.cursor(nullptr, lower, upper, direction, visible, newer_than);
    for (; cursor != nullptr && cursor->valid(); cursor->next()) {
      REQUIRE(cursor->load().ok());
      rows.emplace_back(cursor->full_key(), cursor->value());
    }
    return rows;
  }
};

constexpr ByteView kOneSeries = "series-a";
constexpr ByteView kOtherSeries = "series-b";
constexpr SequenceNumber kAllVisible = 1'000'000;

}  // namespace

TEST_CASE("strips: what comes in order is there, of each kind of value, as it came") {
  StripPart part;
  const Bytes text(300, 't');
  CHECK(part.put(kOneSeries, 1, 1, tagged_number(-7)));
  CHECK(part.put(kOneSeries, 2, 2, "text of its own"));
  CHECK(part.strips.add({EntryKind::Put, 1, strip_key(kOneSeries, 3), "cut ", "in two"}, 3));
  CHECK(part.put(kOneSeries, 4, 4, text));
  CHECK(part.strips.add({EntryKind::Delete, 1, strip_key(kOneSeries, 5), {}, {}}, 5));
  CHECK(part.get(kOneSeries, 1, kAllVisible)->value == tagged_number(-7));
  CHECK(part.get(kOneSeries, 2, kAllVisible)->value == "text of its own");
  CHECK(part.get(kOneSeries, 3, kAllVisible)->value == "cut in two");
  CHECK(part.get(kOneSeries, 4, kAllVisible)->value == text);
  CHECK(part.get(kOneSeries, 5, kAllVisible)->kind == EntryKind::Delete);
  CHECK(part.get(kOneSeries, 5, kAllVisible)->sequence == 5);
  CHECK_FALSE(part.get(kOneSeries, 6, kAllVisible).has_value());
  CHECK_FALSE(part.get(kOtherSeries, 1, kAllVisible).has_value());
  CHECK_FALSE(part.get(kOneSeries, 4, 3).has_value());  // not visible yet
}

TEST_CASE("strips: what is late goes to the next lane, and what is late for the last is refused") {
  StripPart part;
  SequenceNumber sequence = 0;
  for (std::uint64_t lane = 0; lane < kStripLanes; ++lane) {
    CAPTURE(lane);
    CHECK(part.put(kOneSeries, 100, ++sequence));
    CHECK(part.put(kOneSeries, 200, ++sequence));
  }
  CHECK_FALSE(part.put(kOneSeries, 200, ++sequence));
  CHECK_FALSE(part.put(kOneSeries, 150, ++sequence));
  CHECK(part.put(kOneSeries, 201, ++sequence));
  // The newest of a key is in the last lane that has it, the one before where that is not visible.
  CHECK(part.get(kOneSeries, 100, kAllVisible)->sequence == 2 * kStripLanes - 1);
  CHECK(part.get(kOneSeries, 100, 4)->sequence == 3);
  CHECK(part.get(kOneSeries, 200, 2)->sequence == 2);
  CHECK_FALSE(part.get(kOneSeries, 150, kAllVisible).has_value());
}

TEST_CASE("strips: a key that is too short, too long or of another length is for no strip") {
  StripPart part;
  CHECK_FALSE(part.strips.add({EntryKind::Put, 1, "short", "v", {}}, 1));
  CHECK_FALSE(part.put("longer than two words", 1, 1));
  CHECK(part.put(kOneSeries, 1, 1));
  CHECK_FALSE(part.put("other", 1, 2));
  CHECK(part.put(kOtherSeries, 1, 2));
}

TEST_CASE("strips: a cursor goes over lanes and series in the order of keys, either way") {
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
  CHECK(part.rows(make_full_key(1, ""), {}, Direction::Forward, kAllVisible) == want);
  StripRows back(want.rbegin(), want.rend());
  CHECK(part.rows(make_full_key(1, ""), {}, Direction::Reverse, kAllVisible) == back);
  // Bounds cut it, the upper one is not there.
  const StripRows some(want.begin() + 10, want.begin() + 200);
  CHECK(part.rows(want[10].first, want[200].first, Direction::Forward, kAllVisible) == some);
  CHECK(part.strips.cursor(nullptr, make_full_key(2, ""), {}, Direction::Forward, kAllVisible, 0) ==
        nullptr);
}

TEST_CASE("strips: of a key that came again a cursor shows what is visible and new enough") {
  StripPart part;
  REQUIRE(part.put(kOneSeries, 1, 1, "old"));
  REQUIRE(part.put(kOneSeries, 2, 2, "stays"));
  REQUIRE(part.put(kOneSeries, 1, 3, "new"));
  const Bytes one = make_full_key(1, strip_key(kOneSeries, 1)),
              two = make_full_key(1, strip_key(kOneSeries, 2));
  CHECK(part.rows(one, {}, Direction::Forward, kAllVisible) ==
        StripRows{{one, "new"}, {two, "stays"}});
  CHECK(part.rows(one, {}, Direction::Forward, 2) == StripRows{{one, "old"}, {two, "stays"}});
  CHECK(part.rows(one, {}, Direction::Forward, kAllVisible, 2) == StripRows{{one, "new"}});
  CHECK(part.rows(one, {}, Direction::Reverse, 1) == StripRows{{one, "old"}});
}

}  // namespace edgecase::engine
