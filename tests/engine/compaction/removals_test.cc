// Files that no version names any more go between merges, and those of a failed edit stay.
#include "compaction/removals.h"

#include "engine/compaction/source_fixture.h"
#include "file/file_names.h"

namespace edgecase::engine {
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
