#include "compaction/due_sources.h"
#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {

// compact() as the lane sees it: what is merged for a request, when it is done, and who is told.

namespace {

struct Requests : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  RequestSource source{sources};

  Offer next_offer() {
    auto offer = source.next(view());
    REQUIRE(offer.ok());
    return *std::move(offer);
  }
  // Carries out what it offers until it has no more; returns how many merges that were.
  std::size_t serve() {
    for (std::size_t merges = 0;; ++merges) {
      REQUIRE(merges < 20);
      Offer offer = next_offer();
      if (offer.kind == Offer::Kind::None) return merges;
      carry_out(std::move(offer.plan), source);
    }
  }
  std::size_t runs() const {
    const auto& trees = versions->current()->trees;
    return trees.contains(1) ? trees.at(1).size() : 0;
  }
};

}  // namespace

TEST_CASE("a request is due until it is served, and a request for nothing is done at once") {
  Requests has;
  CHECK(has.source.urgency() == Urgency::None);
  CHECK(has.next_offer().kind == Offer::Kind::None);
  const auto request = has.source.add({1}, {}, {});
  CHECK(has.source.urgency() == Urgency::Due);
  CHECK(has.serve() == 0);
  CHECK(has.source.urgency() == Urgency::None);
  CHECK(has.source.wait(*request).ok());
}

TEST_CASE("a request takes level 0 into the tree, and makes one run of it") {
  Requests has;
  for (int i = 0; i < 3; ++i) has.flush(i, 300, 3);
  const auto request = has.source.add({1}, {}, {});
  CHECK(has.serve() >= 2);
  CHECK(has.source.wait(*request).ok());
  CHECK(has.versions->current()->level0.empty());
  CHECK(has.runs() == 1);
}

TEST_CASE("what is flushed after a request does not prolong it") {
  Requests has;
  has.flush(0, 200, 2);
  has.flush(1, 200, 2);
  const auto request = has.source.add({1}, {}, {});
  std::size_t merges = 0;
  for (;; ++merges) {
    REQUIRE(merges < 20);  // each merge is followed by another flush: it must end all the same
    Offer offer = has.next_offer();
    if (offer.kind == Offer::Kind::None) break;
    has.carry_out(std::move(offer.plan), has.source);
    has.flush(0, 200, 2);
  }
  CHECK(has.source.wait(*request).ok());
  CHECK(has.versions->current()->level0.size() == merges);
}

TEST_CASE("requests are served in the order in which they came") {
  Requests has;
  has.flush(0, 200, 2);
  has.flush(1, 200, 2);
  const auto first = has.source.add({1}, {}, {});
  const auto second = has.source.add({1}, {}, {});
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  CHECK_FALSE(first->done);
  has.carry_out(std::move(offer.plan), has.source);
  has.source.interrupted(io_error("a drive is away"));
  CHECK(first->done);
  CHECK_FALSE(second->done);
  CHECK(has.source.wait(*first).code() == StatusCode::IoError);
  has.serve();
  CHECK(has.source.wait(*second).ok());
  CHECK(has.runs() == 1);
}

TEST_CASE("a request whose merge made way begins again, and leaves nothing out") {
  Requests has;
  has.flush(0, 200, 2);
  has.flush(1, 200, 2);
  const auto request = has.source.add({1}, {}, {});
  has.carry_out_next(has.source);  // level 0
  REQUIRE(has.runs() >= 1);
  Offer offer = has.next_offer();
  REQUIRE(offer.kind == Offer::Kind::Merge);
  has.source.discarded();
  has.serve();
  CHECK(has.source.wait(*request).ok());
  CHECK(has.runs() == 1);
}

TEST_CASE("a request that is interrupted before it is begun goes on waiting") {
  Requests has;
  has.flush(0, 200);
  const auto request = has.source.add({1}, {}, {});
  has.source.interrupted(io_error("a drive is away"));
  CHECK_FALSE(request->done);
  has.serve();
  CHECK(has.source.wait(*request).ok());
}

}  // namespace edgecase::engine
