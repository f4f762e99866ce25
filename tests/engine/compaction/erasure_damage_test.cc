#include "compaction/erasure_source.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace edgecase::engine {
namespace {

Bytes key(const char* text) {
  return make_full_key(1, text);
}

RangeDelete erased(const char* lower, const char* upper, SequenceNumber sequence) {
  return {key(lower), key(upper), sequence, true};
}

}  // namespace

TEST_CASE("erasure damage: of lost keys those remain that no newer range erased") {
  using Parts = std::vector<std::pair<Bytes, Bytes>>;  // first, and the key that last is before
  struct Case {
    const char* what;
    std::vector<RangeDelete> ranges;
    Parts want;
  };
  // Keys from "d" to "m" are lost, the newest of them of sequence 10.
  const LostKeys lost{key("d"), key("m"), {5, 50, 1}};
  const Case cases[] = {
      {"no range", {}, {{key("d"), {}}}},
      {"a range that is older than what may be there", {erased("a", "z", 10)}, {{key("d"), {}}}},
      {"a range beside", {erased("a", "d", 11), erased("n", "z", 11)}, {{key("d"), {}}}},
      {"a range of all", {erased("a", "z", 11)}, {}},
      {"the beginning", {erased("a", "f", 11)}, {{key("f"), {}}}},
      {"the end", {erased("f", "z", 11)}, {{key("d"), key("f")}}},
      {"the middle", {erased("f", "h", 11)}, {{key("d"), key("f")}, {key("h"), {}}}},
      {"two in the middle",
       {erased("f", "g", 11), erased("h", "i", 12)},
       {{key("d"), key("f")}, {key("g"), key("h")}, {key("i"), {}}}},
      {"an older one beside a newer one",
       {erased("e", "g", 3), erased("h", "i", 12)},
       {{key("d"), key("h")}, {key("i"), {}}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const std::vector<LostKeys> left = without_erased(lost, c.ranges, 10);
    REQUIRE(left.size() == c.want.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      CHECK(left[i].first == c.want[i].first);
      CHECK(left[i].totals.entries == lost.totals.entries);  // about
      if (c.want[i].second.empty()) {
        CHECK(left[i].last == lost.last);
      } else {
        CHECK(left[i].last < c.want[i].second);
        CHECK(left[i].last > left[i].first);
      }
    }
  }
}

}  // namespace edgecase::engine
