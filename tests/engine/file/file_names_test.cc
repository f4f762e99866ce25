#include "file/file_names.h"

#include <cerrno>
#include <limits>

#include <doctest/doctest.h>

#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

TEST_CASE("paths lie where the map of the engine says") {
  CHECK(identity_path("m") == "m/IDENTITY");
  CHECK(lock_path("m/") == "m/LOCK");
  CHECK(current_path("/m") == "/m/CURRENT");
  CHECK(manifest_path("m", 7) == "m/MANIFEST-000000000007");
  CHECK(wal_slot_path("m", 3) == "m/wal/slot-03.log");
  CHECK(wal_slot_path("m", 123) == "m/wal/slot-123.log");
  CHECK(metadata_table_path("m", 12) == "m/tables/000000000012.meta");
  CHECK(value_table_path("m", "v", Placement::Values, 12) == "v/000000000012.val");
  CHECK(value_table_path("m", "v", Placement::Metadata, 12) == "m/tables/000000000012.val");
}

TEST_CASE("parse_file_name takes back every name that is written") {
  const std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{99},
                                std::uint64_t{1'000'000'000'000}, largest}) {
    CAPTURE(n);
    struct Case {
      std::string path;
      FileType type;
    };
    for (const Case& c :
         {Case{manifest_path("", n), FileType::Manifest},
          Case{wal_slot_path("", n).substr(4), FileType::WalSlot},
          Case{metadata_table_path("", n).substr(7), FileType::MetadataTable},
          Case{value_table_path("", "", Placement::Values, n), FileType::ValueTable}}) {
      CAPTURE(c.path);
      const auto parsed = parse_file_name(c.path);
      REQUIRE(parsed.has_value());
      CHECK(parsed->type == c.type);
      CHECK(parsed->number == n);
    }
  }
  CHECK(parse_file_name("CURRENT")->type == FileType::Current);
  CHECK(parse_file_name("CURRENT.new")->type == FileType::CurrentNew);
  CHECK(parse_file_name("IDENTITY")->type == FileType::Identity);
  CHECK(parse_file_name("IDENTITY.new")->type == FileType::IdentityNew);
  CHECK(parse_file_name("LOCK")->type == FileType::Lock);
  CHECK(parse_file_name("RESERVE")->type == FileType::Reserve);
}

TEST_CASE("parse_file_name refuses what a store never writes") {
  for (const char* name : {"",
                           ".",
                           "..",
                           "current",
                           "MANIFEST-",
                           "MANIFEST-7",
                           "MANIFEST-0000000000007",
                           "7.meta",
                           ".meta",
                           ".val",
                           "000000000012.val.tmp",
                           "000000000012",
                           "00000000001x.val",
                           "-00000000001.val",
                           "+00000000001.val",
                           " 00000000001.val",
                           "99999999999999999999999.val",
                           "slot-1.log",
                           "slot-001.log",
                           "slot-.log",
                           "lost+found"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_file_name(name).has_value());
  }
}

}  // namespace

// Small files are what they were or what they are to be, never a part of either.

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
