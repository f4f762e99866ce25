// What edits make of a version: runs, bytes that live, and edits that do not fit.
#include "version/version.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace edgecase::engine {
namespace {

Bytes key_of(NamespaceId id, const char* key) {
  return make_full_key(id, key);
}

VersionEdit named(NamespaceId id) {
  VersionEdit edit;
  NamespaceInfo info;
  info.id = id;
  info.name = "space" + std::to_string(id);
  edit.namespaces.push_back(info);
  edit.namespace_id_limit = id + 1;
  return edit;
}

// One value file a table, of the same number + 100, of which the table points to `bytes`.
struct Wanted {
  FileNumber number = 0;
  std::uint8_t level = 1;
  FileNumber run = 0;
  const char* smallest = "a";
  const char* largest = "z";
  SequenceNumber sequence = 0;
  std::uint64_t bytes = 60;
};

VersionEdit added(const std::vector<Wanted>& tables) {
  VersionEdit edit;
  edit.file_number_limit = 1'000;
  for (const Wanted& each : tables) {
    ValueFileMetadata file;
    file.number = each.number + 100;
    file.namespace_id = 1;
    file.size_bytes = 100;
    file.item_count = 1;
    edit.added_value_files.push_back(file);
    TableMetadata table;
    table.number = each.number;
    table.level = each.level;
    table.run = each.level == 0 ? each.number : each.run;
    table.namespace_id = each.level == 0 ? 0 : 1;
    table.size_bytes = 50;
    table.entry_count = 1;
    table.item_count = 1;
    table.sequence_min = table.sequence_max = each.sequence;
    table.smallest = key_of(1, each.smallest);
    table.largest = key_of(1, each.largest);
    table.value_files = {{each.number + 100, each.bytes}};
    edit.added_tables.push_back(table);
  }
  return edit;
}

struct State {
  State() { apply(named(1)); }
  void apply(const VersionEdit& edit) {
    const Status applied = state.apply(edit);
    INFO(applied.to_string());
    REQUIRE(applied.ok());
  }
  const Version& version() const { return *state.version; }

  VersionState state;
};

}  // namespace

TEST_CASE("version: tables of a run stand in key order, and runs by their newest sequence") {
  State has;
  has.apply(added({{1, 1, 9, "m", "p", 10}, {2, 1, 9, "a", "c", 11}, {3, 1, 8, "b", "n", 30}}));
  REQUIRE(has.version().trees.at(1).size() == 2);
  const Run& newer = has.version().trees.at(1)[0];
  const Run& older = has.version().trees.at(1)[1];
  CHECK(newer.number == 8);
  CHECK(older.number == 9);
  REQUIRE(older.tables.size() == 2);
  CHECK(older.tables[0]->number == 2);
  CHECK(older.tables[1]->number == 1);
  CHECK(older.sequence_min == 10);
  CHECK(older.sequence_max == 11);
  CHECK(older.item_bytes == 120);
  CHECK(has.version().tables.front()->number == 3);
}

TEST_CASE("version: a run leads to the one table that may hold a key") {
  State has;
  has.apply(added({{1, 1, 9, "b", "d", 10}, {2, 1, 9, "h", "k", 11}}));
  const Run& run = has.version().trees.at(1).front();
  struct Case {
    const char* key;
    FileNumber want;  // 0: none
  };
  for (const Case& each : {Case{"a", 0}, Case{"b", 1}, Case{"c", 1}, Case{"d", 1}, Case{"e", 0},
                           Case{"h", 2}, Case{"k", 2}, Case{"l", 0}}) {
    CAPTURE(each.key);
    const TablePointer* const found = run.find(key_of(1, each.key));
    CHECK((found == nullptr ? 0 : (*found)->number) == each.want);
  }
}

TEST_CASE("version: level 0 keeps each table by itself, the newest first") {
  State has;
  has.apply(added({{1, 0, 0, "a", "z", 5}, {2, 0, 0, "a", "z", 7}}));
  has.apply(added({{3, 0, 0, "a", "z", 6}}));
  REQUIRE(has.version().level0.size() == 3);
  CHECK(has.version().level0[0]->number == 2);
  CHECK(has.version().level0[1]->number == 3);
  CHECK(has.version().level0[2]->number == 1);
  CHECK_FALSE(has.version().trees.contains(1));
}

TEST_CASE("version: bytes of a value file live as long as a table points to them") {
  State has;
  has.apply(added({{1, 1, 9, "a", "c", 1, 60}, {2, 1, 9, "d", "f", 2, 40}}));
  CHECK(has.version().value_bytes() == 200);
  CHECK(has.version().live_bytes.at(101) == 60);
  CHECK(has.version().live_bytes.at(102) == 40);
  VersionEdit removal;
  removal.removed_tables = {1};
  removal.removed_value_files = {101};
  has.apply(removal);
  CHECK(has.version().value_bytes() == 100);
  CHECK(has.version().tables.size() == 1);
  CHECK(has.version().live_bytes.find(101) == has.version().live_bytes.end());
}

TEST_CASE("version: an edit that does not fit is corruption, and changes nothing") {
  struct Case {
    std::string what;
    std::function<VersionEdit()> edit;
  };
  const Case cases[] = {
      {"a table that is there already",
       [] {
         return added({{1, 1, 9, "x", "y", 50}});
       }},
      {"a table that is not there is removed",
       [] {
         VersionEdit edit;
         edit.removed_tables = {77};
         return edit;
       }},
      {"a value file that is not there is removed",
       [] {
         VersionEdit edit;
         edit.removed_value_files = {77};
         return edit;
       }},
      {"a table overlaps another of its run",
       [] {
         return added({{5, 1, 9, "b", "q", 50}});
       }},
      {"a table points into a file that is not there",
       [] {
         VersionEdit edit = added({{5, 1, 9, "x", "y", 50}});
         edit.added_value_files.clear();
         return edit;
       }},
      {"a file to which a table points is removed",
       [] {
         VersionEdit edit;
         edit.removed_value_files = {101};
         return edit;
       }},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    State has;
    has.apply(added({{1, 1, 9, "a", "c", 10}}));
    const auto before = has.state.version;
    CHECK(has.state.apply(each.edit()).code() == StatusCode::Corruption);
    CHECK(has.state.version == before);
  }
}

TEST_CASE("version: the snapshot of a state makes the same state, by edits or by replay") {
  State has;
  has.apply(added({{1, 1, 9, "m", "p", 10}, {2, 1, 9, "a", "c", 11}, {3, 0, 0, "b", "n", 30}}));
  VersionEdit more;
  more.flushed_sequence = 30;
  more.oldest_wal_segment = 4;
  has.apply(more);
  const VersionEdit snapshot = has.state.snapshot();
  VersionState copy;
  REQUIRE(copy.apply(snapshot).ok());
  CHECK(copy.snapshot().encode() == snapshot.encode());
  VersionReplay replay;
  REQUIRE(replay.apply(snapshot).ok());
  auto replayed = replay.finish();
  REQUIRE(replayed.ok());
  CHECK(replayed->snapshot().encode() == snapshot.encode());
  CHECK(replayed->version->trees.at(1).front().tables.size() == 2);
  CHECK(replayed->version->live_bytes.at(101) == 60);
}

TEST_CASE("version: damage sets apart the whole run for merges, the table alone for its own run") {
  State has;
  has.apply(added({{1, 1, 9, "a", "c", 10}, {2, 1, 9, "d", "f", 11}, {3, 1, 8, "a", "z", 30}}));
  for (const FileNumber lost : {FileNumber{1}, FileNumber{101}}) {
    CAPTURE(lost);
    const Version runs = without_runs(has.version(), {lost});
    CHECK(runs.tables.size() == 1);
    CHECK(runs.set_apart.size() == 2);
    CHECK(runs.trees.at(1).size() == 1);
    const Version tables = without_tables(has.version(), {lost});
    CHECK(tables.tables.size() == 2);
    CHECK(tables.trees.at(1).size() == 2);
    CHECK(is_damaged(*has.version().trees.at(1)[1].tables[0], {lost}));
    CHECK_FALSE(is_damaged(*has.version().trees.at(1)[1].tables[1], {lost}));
  }
}

TEST_CASE("version: more range deletes may wait in a store with more memory, within bounds") {
  CHECK(range_deletes_max(0) == kRangeDeletesMaxLeast);
  CHECK(range_deletes_max(128u << 20) == 16'384);
  CHECK(range_deletes_max(UINT64_MAX) == kRangeDeletesMaxMost);
}

}  // namespace edgecase::engine
