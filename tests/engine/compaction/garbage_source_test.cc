// Which bytes that nobody can read are freed, and from how many on.
#include "compaction/garbage_source.h"

#include <cmath>

#include "compaction/picker.h"
#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {
namespace {

struct Garbage : test::SourceFixture {
  Garbage() { value_bytes = 64u << 10; }  // single values: their records say what is superseded

  CompactorContext sources = context_of_sources();
  GarbageEstimate garbage{sources};
  WindowSource windows{sources, garbage};
  GarbageSource source{sources, garbage, windows};

  Offer next_offer(bool idle = false) {
    garbage.follow(*versions->current());
    auto offer = source.next(view(idle));
    REQUIRE(offer.ok());
    return *std::move(offer);
  }
  // All of level 0 into the tree, and the records of its runs into one: what is superseded is not
  // pointed to any more.
  void merge_records() {
    if (auto plan = pick_level0(*versions->current(), 1)) carry_out(*std::move(plan), source);
    if (auto plan = pick_singles(*versions->current(), 2, UINT64_MAX))
      carry_out(*std::move(plan), source);
  }
};

}  // namespace

TEST_CASE("the more garbage there is, the less of a table must be dead to be cleaned") {
  CHECK(std::isinf(cleaned_share_min(0)));
  CHECK(std::isinf(cleaned_share_min(kGarbageMin - 0.001)));
  double least = 1;
  for (const double garbage : {kGarbageMin, 0.15, 0.2, 0.25}) {
    CAPTURE(garbage);
    CHECK(cleaned_share_min(garbage) < least);
    least = cleaned_share_min(garbage);
  }
  CHECK(cleaned_share_min(0.3) == least);
  CHECK(cleaned_share_min(100) == least);
  CHECK(least > 0);
}

TEST_CASE("a file of which little lives is emptied, and then it is gone") {
  Garbage has;
  has.flush(0, 20);
  const FileNumber old = has.versions->current()->value_files.begin()->first;
  has.merge_records();
  CHECK(has.next_offer().kind == Offer::Kind::None);
  has.flush(0, 16);  // four fifths of it are superseded
  has.merge_records();
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK(offer.plan.mode == MergeMode::Relocate);
  CHECK(offer.plan.evacuated == std::set<FileNumber>{old});
  has.carry_out(std::move(offer.plan), has.source, &has.garbage);
  const auto version = has.versions->current();
  CHECK_FALSE(version->value_files.contains(old));
  CHECK(garbage_share(*version, 0) < 0.01);
  CHECK(has.next_offer().kind == Offer::Kind::None);
}

TEST_CASE("a file of which most lives stays, until there is quiet and little is enough") {
  Garbage has;
  has.flush(0, 20);
  has.merge_records();
  has.flush(0, 2);
  has.merge_records();
  CHECK(has.next_offer().kind == Offer::Kind::None);
  CHECK(has.garbage.idle_share() > 0.05);  // writers are not slowed for what is not worth it
  CHECK(pick_evacuation(*has.versions->current(), kQuietEvacuation).has_value());
}

TEST_CASE("tables that wait to be sampled come one at a time, and before anything is cleaned") {
  Garbage has;
  has.value_bytes = 100;
  has.flush(0, 500);
  has.merge_records();
  has.source.settle(*has.versions->current());
  REQUIRE(has.garbage.has_samples());
  CHECK(has.next_offer(true).kind == Offer::Kind::Step);
  CHECK_FALSE(has.garbage.has_samples());
  CHECK(has.next_offer(true).kind == Offer::Kind::None);
}

TEST_CASE("samples that wait are forgotten when the lane fails") {
  Garbage has;
  has.value_bytes = 100;
  has.flush(0, 500);
  has.merge_records();
  has.source.settle(*has.versions->current());
  REQUIRE(has.garbage.has_samples());
  has.source.interrupted(io_error("a drive is away"));
  CHECK_FALSE(has.garbage.has_samples());
}

}  // namespace edgecase::engine
