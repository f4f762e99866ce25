#include <doctest/doctest.h>

#include <string>

#include "engine/buffer/strip_part.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
