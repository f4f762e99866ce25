// Small files are what they were or what they are to be, never a part of either.
#include "file/whole_file.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

Status replace(FileSystem& disk, ByteView content) {
  return replace_whole_file(disk, "/m", "/m/NAME.new", "/m/NAME", content);
}

}  // namespace

TEST_CASE("a whole file reads back, up to the size that it may have") {
  test::MemoryFileSystem disk{{"/m"}};
  CHECK(read_whole_file(disk, "/m/NAME", 64).status().code() == StatusCode::NotFound);
  REQUIRE(replace(disk, "").ok());
  CHECK(read_whole_file(disk, "/m/NAME", 64)->empty());
  const Bytes content(64, 'x');
  REQUIRE(replace(disk, content).ok());
  CHECK(*read_whole_file(disk, "/m/NAME", 64) == content);
  CHECK(read_whole_file(disk, "/m/NAME", 63).status().code() == StatusCode::Corruption);
  CHECK_FALSE(disk.exists("/m/NAME.new"));
}

TEST_CASE("what an attempt before left behind is no obstacle") {
  test::MemoryFileSystem disk{{"/m"}};
  disk.set_contents("/m/NAME.new", ByteView("half of so"));
  REQUIRE(replace(disk, "all").ok());
  CHECK(*read_whole_file(disk, "/m/NAME", 64) == "all");
}

TEST_CASE("a file that cannot be replaced stays as it was") {
  using test::Operation;
  for (const Operation operation : {Operation::CreateFile, Operation::Append, Operation::Sync,
                                    Operation::Rename, Operation::Remove}) {
    CAPTURE(static_cast<int>(operation));
    test::MemoryFileSystem disk{{"/m"}};
    REQUIRE(replace(disk, "before").ok());
    disk.set_contents("/m/NAME.new", ByteView("x"));
    disk.fail_nth(operation, 1, ENOSPC, test::FaultMode::Once);
    CHECK(replace(disk, "after").code() == StatusCode::OutOfSpace);
    CHECK(disk.faults() == 1);
    CHECK(*read_whole_file(disk, "/m/NAME", 64) == "before");
    REQUIRE(replace(disk, "after").ok());
    CHECK(*read_whole_file(disk, "/m/NAME", 64) == "after");
  }
}

TEST_CASE(
    "a power cut while a file is replaced leaves one of the two, and the new one once it is "
    "durable") {
  for (std::uint64_t nth = 1; nth < 20; ++nth) {
    test::MemoryFileSystem disk{{"/m"}};
    REQUIRE(replace(disk, "before").ok());
    disk.stop_at(nth);
    const bool done = replace(disk, "after").ok();
    const bool stopped = disk.stopped();
    disk.stop_at(test::MemoryFileSystem::kNever);
    disk.power_cut(nth, test::CutPolicy::Any);
    CAPTURE(nth);
    const auto content = read_whole_file(disk, "/m/NAME", 64);
    REQUIRE(content.ok());
    CHECK((*content == "after" || (*content == "before" && !done)));
    if (!stopped) return;
  }
  FAIL("it never ended");
}

}  // namespace edgecase::engine
