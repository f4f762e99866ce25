#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "compaction/work_source.h"
#include "engine/compaction/source_fixture.h"
#include "file/file_names.h"

namespace edgecase::engine {

// Whose turn it is: by urgency, by the order of the sources, and among what is due by who was last.

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

// Runs that damage touches are left out of what may be merged, and a merge that fails over damage
// is no failure of the lane.

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

// Files that no version names any more go between merges, and those of a failed edit stay.

namespace {

struct Removing : test::SourceFixture {
  CompactorContext sources = context_of_sources();
  Removals removals{sources};

  void remove_all_tables() {
    VersionEdit edit;
    for (const TablePointer& table : versions->current()->tables)
      edit.removed_tables.push_back(table->number);
    remove_unused_value_files(*versions->current(), edit);
    REQUIRE(versions->apply(edit).ok());
  }
  void step_until_done(bool beside_merges) {
    for (int i = 0; i < 100 && removals.has_waiting(); ++i) removals.step(beside_merges);
  }
};

}  // namespace

TEST_CASE("removals: files of a version that somebody reads stay until that goes") {
  Removing has;
  has.flush(0, 50);
  const std::string table = has.path_of(has.output.tables.front());
  const std::string values = has.path_of(has.output.value_files.front());
  auto reader = has.versions->current();
  has.remove_all_tables();
  has.removals.collect();
  has.step_until_done(false);
  CHECK(has.disk.exists(table));
  CHECK(has.disk.exists(values));
  reader.reset();
  has.removals.collect();
  has.step_until_done(false);
  CHECK_FALSE(has.disk.exists(table));
  CHECK_FALSE(has.disk.exists(values));
  CHECK(has.remover.overwritten_bytes() > 0);
}

TEST_CASE("removals: what has expired is hurried until its bytes are gone, its names come after") {
  Removing has;
  has.flush(0, 50);
  const std::string values = has.path_of(has.output.value_files.front());
  has.remove_all_tables();
  has.removals.collect();
  has.removals.hurry();
  CHECK(has.removals.is_hurried());
  for (int i = 0; i < 100 && has.removals.is_hurried(); ++i) has.removals.step(true);
  CHECK_FALSE(has.removals.is_hurried());
  CHECK(has.disk.exists(values));
  CHECK(has.disk.contents(values).find_first_not_of('\0') == Bytes::npos);
  has.step_until_done(false);
  CHECK_FALSE(has.disk.exists(values));
}

TEST_CASE("removals: files of an edit that failed stay until an edit succeeds") {
  Removing has;
  has.take_numbers();
  REQUIRE(has.write({{make_full_key(1, "a"), 1, EntryKind::Put, Bytes(100, 'v')}}).ok());
  const std::string table = has.path_of(has.output.tables.front());
  CHECK_FALSE(has.removals.has_kept());
  has.removals.keep(has.output);
  CHECK(has.removals.has_kept());
  has.removals.collect();
  has.step_until_done(false);
  CHECK(has.disk.exists(table));
  has.removals.remove_kept();
  CHECK_FALSE(has.removals.has_kept());
  has.step_until_done(false);
  CHECK_FALSE(has.disk.exists(table));
}

}  // namespace edgecase::engine
