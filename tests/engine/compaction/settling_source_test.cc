// What is done once writes rest, and that it comes to an end.
#include "compaction/settling_source.h"

#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {
namespace {

struct Settling : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  WindowSource windows{sources, garbage};
  GarbageSource cleaning{sources, garbage, windows};
  SettlingSource source{cleaning};

  Offer::Kind next_kind(bool idle) {
    auto offer = source.next(view(idle));
    REQUIRE(offer.ok());
    return offer->kind;
  }
};

}  // namespace

TEST_CASE("under load nothing is settled: it waits for quiet") {
  Settling has;
  has.flush(0, 100);
  CHECK(has.next_kind(false) == Offer::Kind::Waits);
}

TEST_CASE("in quiet one table of level 0 is enough, and a store that is settled comes to rest") {
  Settling has;
  CHECK(has.next_kind(true) == Offer::Kind::None);
  has.flush(0, 100);
  has.carry_out_next(has.source, true, &has.garbage);
  CHECK(has.versions->current()->level0.empty());
  CHECK(has.next_kind(true) == Offer::Kind::Step);  // all tables are to be sampled once more
  CHECK(has.garbage.has_samples());
  CHECK(has.next_kind(true) == Offer::Kind::None);
  has.flush(100, 200);
  CHECK(has.next_kind(true) == Offer::Kind::Merge);
}

TEST_CASE("in quiet what a range delete covers goes, under load many do not wait") {
  for (const bool idle : {true, false}) {
    CAPTURE(idle);
    Settling has;
    has.flush(0, 1000);
    has.carry_out_next(has.source, true, &has.garbage);
    const auto cover = [&](int i) {
      has.flush(0, 0, 1, make_range_delete(1, test::key_of(i), test::key_of(i) + "x", 0));
    };
    cover(1);
    CHECK((has.next_kind(idle) == Offer::Kind::Merge) == idle);
    for (int i = 3; i < 300 * 2; i += 2) cover(i);
    REQUIRE(has.versions->current()->range_delete_list.size() >= 256);
    CHECK(has.next_kind(idle) == Offer::Kind::Merge);
  }
}

}  // namespace edgecase::engine
