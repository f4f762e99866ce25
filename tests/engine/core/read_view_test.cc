#include "core/read_view.h"

#include <doctest/doctest.h>

#include <memory>

#include "engine/version/some_edits.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

using test_edits::added_file;

std::shared_ptr<Memtable> memtable_with(SequenceNumber sequence) {
  auto memtable = std::make_shared<Memtable>();
  memtable->add(1, "key", sequence, EntryKind::Put, "value");
  return memtable;
}

RangeDelete erased(ByteView lower, ByteView upper, SequenceNumber sequence) {
  RangeDelete made = make_range_delete(1, lower, upper, sequence);
  made.erases = true;
  return made;
}

struct Viewed {
  test::MemoryFileSystem disk{{"/m"}};
  std::unique_ptr<VersionSet> versions = *VersionSet::create(disk, "/m", test_edits::kStoreId);
  std::shared_ptr<Memtable> first = memtable_with(1);
  Views views{*versions, first};
};

}  // namespace

TEST_CASE("views: a memtable that is turned over is visible whole, until tables hold it") {
  Viewed viewed;
  Views& views = viewed.views;
  CHECK(views.now().visible == 0);
  views.rotate(memtable_with(3), 2);
  CHECK(views.now().visible == 2);
  CHECK(views.immutable_count() == 1);
  CHECK(views.immutable_bytes() == viewed.first->memory_bytes());
  CHECK(views.oldest_immutable() == viewed.first);

  const VisibleView before = views.now();
  REQUIRE(viewed.versions->apply(added_file(1)).ok());
  CHECK(views.now().view->version->value_files.empty());  // not published yet
  views.retire_oldest();
  CHECK(views.immutable_count() == 0);
  CHECK(views.oldest_immutable() == nullptr);
  CHECK(views.now().view->version->value_files.size() == 1);
  CHECK(before.view->immutables.size() == 1);  // who took a view before keeps it
}

TEST_CASE("views: memtables that only readers keep are counted") {
  Viewed viewed;
  Views& views = viewed.views;
  std::optional<VisibleView> reader = views.now();
  views.rotate(memtable_with(3), 2);
  viewed.first = nullptr;
  CHECK(views.kept_memtables().empty());  // it is not written out
  views.retire_oldest();
  CHECK(views.kept_memtables().size() == 1);
  CHECK(views.kept_memtable_bytes() > 0);
  reader.reset();
  CHECK(views.kept_memtables().empty());
  CHECK(views.kept_memtable_bytes() == 0);
}

TEST_CASE("views: a published version is the one that is current then") {
  Viewed viewed;
  REQUIRE(viewed.versions->apply(added_file(1)).ok());
  REQUIRE(viewed.versions->apply(added_file(2)).ok());
  viewed.views.publish();
  CHECK(viewed.views.now().view->version->value_files.size() == 2);
}

TEST_CASE("views: erased ranges are hidden until they are forgotten") {
  Viewed viewed;
  Views& views = viewed.views;
  CHECK(views.erased() == nullptr);
  CHECK_FALSE(views.has_erased());
  views.hide_for_good(erased("a", "c", 5));
  views.hide_for_good(erased("x", "y", 9));
  CHECK(views.has_erased());
  CHECK(views.erased()->covering(make_full_key(1, "b"), UINT64_MAX) == 5);
  CHECK(views.erased()->covering(make_full_key(1, "d"), UINT64_MAX) == 0);
  views.forget_erased(5);
  CHECK(views.erased()->covering(make_full_key(1, "b"), UINT64_MAX) == 0);
  CHECK(views.erased_ranges().size() == 1);
  views.forget_erased(9);
  CHECK_FALSE(views.has_erased());
}

TEST_CASE("views: the same range erased again and again takes the room of a few") {
  Viewed viewed;
  constexpr SequenceNumber kTimes = 5'000;
  for (SequenceNumber i = 1; i <= kTimes; ++i) viewed.views.hide_for_good(erased("a", "c", i));
  CHECK(viewed.views.erased_ranges().size() < 1'100);
  CHECK(viewed.views.erased()->covering(make_full_key(1, "b"), UINT64_MAX) == kTimes);
}

}  // namespace edgecase::engine
