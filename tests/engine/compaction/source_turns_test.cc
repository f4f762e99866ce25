// Whose turn it is: by urgency, by the order of the sources, and among what is due by who was last.
#include "compaction/source_turns.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace edgecase::engine {
namespace {

struct FakeSource final : WorkSource {
  Urgency urgency() override { return says; }
  Result<Offer> next(const LaneView&) override { return Offer::none(); }
  bool frees_more_than(std::uint64_t written_bytes) override { return frees > written_bytes; }

  Urgency says = Urgency::None;
  std::uint64_t frees = 0;
};

using Sources = std::vector<WorkSource*>;

struct FourSources {
  FakeSource a, b, c, d;
  const std::array<WorkSource*, 4> order{&a, &b, &c, &d};
  SourceTurns turns{order};

  void all_say(Urgency urgency) {
    for (FakeSource* source : {&a, &b, &c, &d}) source->says = urgency;
  }
};

}  // namespace

TEST_CASE("sources are asked by urgency, those of one urgency in their order") {
  FourSources has;
  CHECK(has.turns.of(Urgency::Useful).empty());
  has.a.says = has.d.says = Urgency::Useful;
  has.b.says = Urgency::Awaited;
  has.c.says = Urgency::Due;
  CHECK(has.turns.of(Urgency::Awaited) == Sources{&has.b});
  CHECK(has.turns.of(Urgency::Due) == Sources{&has.c});
  CHECK(has.turns.of(Urgency::Useful) == Sources{&has.a, &has.d});
}

TEST_CASE("sources that are due take turns, and none waits for more than all others once") {
  FourSources has;
  has.all_say(Urgency::Due);
  CHECK(has.turns.of(Urgency::Due) == Sources{&has.a, &has.b, &has.c, &has.d});
  std::vector<WorkSource*> served;
  for (int turn = 0; turn < 8; ++turn) {
    served.push_back(has.turns.of(Urgency::Due).front());
    has.turns.note_turn(*served.back());
  }
  CHECK(served == Sources{&has.a, &has.b, &has.c, &has.d, &has.a, &has.b, &has.c, &has.d});

  // The last that had a turn is due no more: the order begins anew, nobody is left out.
  has.d.says = Urgency::None;
  CHECK(has.turns.of(Urgency::Due) == Sources{&has.a, &has.b, &has.c});

  has.turns.note_turn(has.b);
  CHECK(has.turns.of(Urgency::Due) == Sources{&has.c, &has.a, &has.b});
  has.turns.begin_anew();
  CHECK(has.turns.of(Urgency::Due) == Sources{&has.a, &has.b, &has.c});
}

TEST_CASE("useful sources take no turns: the first comes first each time") {
  FourSources has;
  has.all_say(Urgency::Useful);
  has.turns.note_turn(has.b);
  CHECK(has.turns.of(Urgency::Useful) == Sources{&has.a, &has.b, &has.c, &has.d});
}

TEST_CASE("a merge makes way for a source before its own that frees more than it has written") {
  FourSources has;
  CHECK_FALSE(has.turns.has_sooner(has.c, 0));
  has.d.frees = 1000;  // behind it
  has.c.frees = 1000;  // its own
  CHECK_FALSE(has.turns.has_sooner(has.c, 0));
  has.b.frees = 10;
  CHECK(has.turns.has_sooner(has.c, 9));
  CHECK_FALSE(has.turns.has_sooner(has.c, 10));
  CHECK_FALSE(has.turns.has_sooner(has.a, 0));  // nothing comes before the first
}

TEST_CASE("what writes nothing makes way only where somebody waits for a source before it") {
  FourSources has;
  has.a.says = Urgency::Due;
  has.d.says = Urgency::Awaited;
  CHECK_FALSE(has.turns.has_awaited_before(has.c));
  has.b.says = Urgency::Awaited;
  CHECK(has.turns.has_awaited_before(has.c));
  CHECK_FALSE(has.turns.has_awaited_before(has.b));
}

}  // namespace edgecase::engine
