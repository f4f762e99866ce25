// When what flushes brought goes into the trees.
#include "compaction/arrival_source.h"

#include "compaction/picker.h"
#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {
namespace {

struct Arrivals : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  ArrivalSource source{garbage};

  // The first offer that is not a look at what arrives.
  Offer next_offer() {
    for (int i = 0; i < 8; ++i) {
      auto offer = source.next(view());
      REQUIRE(offer.ok());
      if (offer->kind != Offer::Kind::Step) return *std::move(offer);
    }
    FAIL("it looks at the same table again and again");
    return {};
  }
};

}  // namespace

TEST_CASE("level 0 is sunk from its fourth table on, by its records alone") {
  Arrivals has;
  CHECK(has.next_offer().kind == Offer::Kind::None);
  for (std::size_t i = 1; i < kLevel0TablesMax; ++i) {
    has.flush(0, 100);
    CHECK(has.next_offer().kind == Offer::Kind::None);
  }
  has.flush(0, 100);
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Sink);
  CHECK(offer.plan.groups.size() == kLevel0TablesMax);
  const std::size_t files = has.versions->current()->value_files.size();
  has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  CHECK(has.versions->current()->level0.empty());
  CHECK(has.versions->current()->value_files.size() == files);  // no value was written again
  CHECK(has.next_offer().kind == Offer::Kind::None);
}

TEST_CASE("records of single values are merged once the smaller runs have a share of the largest") {
  Arrivals has;
  has.value_bytes = 64u << 10;  // more than the coalesce threshold
  const auto sink = [&] {
    Offer offer = has.next_offer();
    REQUIRE(offer.kind == Offer::Kind::Merge);
    has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  };
  has.flush(0, 40);
  sink();
  REQUIRE(has.versions->current()->trees.at(1).size() == 1);
  // A fortieth of what is there waits in level 0 for others.
  has.flush(0, 1);
  CHECK(has.next_offer().kind == Offer::Kind::None);
  has.flush(1, 4);
  sink();
  REQUIRE(has.versions->current()->trees.at(1).size() == 2);
  const Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Sink);
  CHECK(offer.plan.singles.size() == 2);
}

}  // namespace edgecase::engine
