#include "file/file_names.h"

#include <doctest/doctest.h>

#include <limits>

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
}  // namespace edgecase::engine
