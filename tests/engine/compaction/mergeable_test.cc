// Runs that damage touches are left out of what may be merged, and a merge that fails over damage
// is no failure of the lane.
#include "compaction/mergeable.h"

#include "engine/compaction/source_fixture.h"

namespace edgecase::engine {

TEST_CASE("without damage the current version is mergeable as it is") {
  test::SourceFixture has;
  has.flush(0, 10);
  Mergeable mergeable(has.host);
  CHECK(mergeable.of(has.versions->current()) == has.versions->current());
}

TEST_CASE("a run with a damaged table, or a damaged value file, is left out until it is whole") {
  test::SourceFixture has;
  has.flush(0, 10);
  has.flush(20, 30);
  const auto version = has.versions->current();
  REQUIRE(version->level0.size() == 2);
  const TablePointer damaged = version->level0.front();
  for (const FileNumber lost : {damaged->number, damaged->value_files.begin()->file_number}) {
    CAPTURE(lost);
    Mergeable mergeable(has.host);
    has.host.lost = {lost};
    const auto left = mergeable.of(version);
    REQUIRE(left->level0.size() == 1);
    CHECK(left->level0.front()->number != damaged->number);
    CHECK(left->set_apart.size() == 1);
    CHECK(mergeable.of(version) == left);  // made once
    has.host.lost.clear();
    CHECK(mergeable.of(version) == version);
  }
}

TEST_CASE("another version, or more damage, is looked at anew") {
  test::SourceFixture has;
  has.flush(0, 10);
  has.flush(20, 30);
  Mergeable mergeable(has.host);
  const auto version = has.versions->current();
  has.host.lost = {version->level0[0]->number};
  CHECK(mergeable.of(version)->level0.size() == 1);
  has.host.lost.insert(version->level0[1]->number);
  CHECK(mergeable.of(version)->level0.empty());
  has.flush(40, 50);
  CHECK(mergeable.of(has.versions->current())->level0.size() == 1);
}

TEST_CASE("only failures that damage can explain set runs apart, and only if some is found") {
  test::SourceFixture has;
  has.flush(0, 10);
  Mergeable mergeable(has.host);
  const std::vector<TablePointer> tables = has.versions->current()->level0;
  struct Case {
    Status failure;
    bool may_be_damage;
  };
  for (const Case& each :
       {Case{corruption("x"), true}, Case{io_error("x"), true}, Case{unavailable("x"), true},
        Case{out_of_space("x"), false}, Case{busy("x"), false}}) {
    CAPTURE(each.failure.to_string());
    has.host.finds_damage = true;
    CHECK(mergeable.sets_apart(each.failure, tables) == each.may_be_damage);
    has.host.finds_damage = false;
    CHECK_FALSE(mergeable.sets_apart(each.failure, tables));
  }
  CHECK(has.host.looked_at == tables.size());
}

}  // namespace edgecase::engine
