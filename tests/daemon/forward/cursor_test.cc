#include "forward/cursor.h"

#include <doctest/doctest.h>

#include <map>

#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::forward {
namespace {

Cursor with_backlog() {
  Cursor cursor(10);
  cursor.fresh_part(20, Place{3, "key"});
  cursor.fresh_done(30);
  cursor.fresh_part(40, std::nullopt);
  return cursor;
}

TEST_CASE("cursor: what is not there is told by ranges, and their ends are bounds") {
  Cursor cursor = with_backlog();
  CHECK(cursor.oldest() == 10);
  CHECK(cursor.fresh_after() == 40);
  REQUIRE(cursor.backlog().size() == 2);
  CHECK(cursor.backlog()[0] == Backlog{10, 20, Place{3, "key"}});
  CHECK(cursor.backlog()[1] == Backlog{30, 40, std::nullopt});
  CHECK(cursor.bounds() == std::vector<CommitPosition>{10, 20, 30, 40});
  CHECK(cursor.collapsed() == Cursor(10));
  cursor.backlog_done(0);
  CHECK(cursor.oldest() == 30);
  CHECK(cursor.bounds() == std::vector<CommitPosition>{30, 40});
}

TEST_CASE("cursor: more than there is room for becomes fewer ranges that hold no less") {
  Cursor cursor(0);
  // Gaps of 5, 1, 5, 5 between them.
  const CommitPosition ends[] = {10, 20, 30, 40, 50};
  const CommitPosition gaps[] = {5, 1, 5, 5};
  for (std::size_t i = 0; i < 5; ++i) {
    if (i > 0) cursor.fresh_done(cursor.fresh_after() + gaps[i - 1]);
    cursor.fresh_part(ends[i], Place{1, std::string(1, static_cast<char>('e' - i))});
  }
  REQUIRE(cursor.backlog().size() == Cursor::kBacklogMax);
  // The two with the least between them, as far as both were done.
  CHECK(cursor.backlog()[1] == Backlog{15, 30, Place{1, "c"}});
  CHECK(cursor.bounds().size() <= Cursor::kBoundsMax);
}

TEST_CASE("cursor: it is read back as it was written, and cut ones are refused") {
  for (const Cursor& cursor : {Cursor(), Cursor(7), with_backlog()}) {
    Bytes bytes;
    cursor.append_to(bytes);
    ByteView rest = bytes;
    const auto again = Cursor::take(rest);
    REQUIRE(again.ok());
    CHECK(*again == cursor);
    CHECK(rest.empty());
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      ByteView part = ByteView(bytes).substr(0, cut);
      CHECK(Cursor::take(part).status().code() == StatusCode::Corruption);
    }
  }
}

TEST_CASE("cursor: ranges out of order or beyond their number are refused") {
  Bytes bytes;
  with_backlog().append_to(bytes);
  bytes[8] = 5;  // ranges
  ByteView many = bytes;
  CHECK(Cursor::take(many).status().code() == StatusCode::Corruption);
  bytes[8] = 2;
  bytes[7] = 1;  // the fresh range begins before what waits ends
  ByteView early = bytes;
  CHECK(Cursor::take(early).status().code() == StatusCode::Corruption);
}

// A store of keys, each with the position of its newest commit, and a target that is sent to in
// batches of few, that fail, or are forgotten by a crash.
TEST_CASE("cursor: whatever fails, all arrives, and nothing older over something newer") {
  const std::uint64_t seed = test::test_seed(1);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 200; ++round) {
    std::map<Place, CommitPosition> store, target;
    CommitPosition now = 0;
    Cursor live, kept;
    bool never_older = true;
    const auto commit = [&] {
      for (std::uint64_t i = random.below(12); i > 0; --i)
        store[{static_cast<NamespaceId>(1 + random.below(2)),
               Bytes(1, static_cast<char>('a' + random.below(20)))}] = ++now;
    };
    // Reads up to `most` of a range and sends them; where it ended, unless that was the end.
    const auto send = [&](CommitPosition after, CommitPosition upto,
                          const std::optional<Place>& behind, std::size_t most,
                          std::optional<Place>& last) {
      std::size_t sent = 0;
      for (const auto& [place, position] : store) {
        if ((behind && !(*behind < place)) || position <= after || position > upto) continue;
        if (sent++ == most) return false;
        never_older = never_older && target[place] <= position;
        target[place] = position;
        last = place;
      }
      return true;
    };
    const auto fresh = [&] {
      const CommitPosition upto = now;
      std::optional<Place> last;
      const bool is_whole = send(live.fresh_after(), upto, {}, 1 + random.below(8), last);
      if (random.below(5) == 0) return;  // not answered
      if (is_whole) {
        live.fresh_done(upto);
      } else {
        live.fresh_part(upto, last);
      }
    };
    const auto backlog = [&] {
      if (live.backlog().empty()) return;
      const Backlog range = live.backlog().front();
      std::optional<Place> last;
      const bool is_whole = send(range.after, range.upto, range.done_to, 1 + random.below(8), last);
      if (random.below(5) == 0) return;
      if (is_whole) {
        live.backlog_done(0);
      } else {
        live.backlog_part(0, *last);
      }
    };
    for (int step = 0; step < 60; ++step) {
      switch (random.below(6)) {
        case 0:
        case 1: commit(); break;
        case 2: fresh(); break;
        case 3: backlog(); break;
        case 4: kept = live; break;
        default:
          if (random.below(8) == 0) live = random.below(2) == 0 ? kept : kept.collapsed();
      }
    }
    while (live.fresh_after() < now || !live.backlog().empty()) {
      fresh();
      backlog();
    }
    CHECK(never_older);
    CHECK(target == store);
  }
}

}  // namespace
}  // namespace edgecase::forward
