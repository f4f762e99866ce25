#include "core/identity.h"

#include <doctest/doctest.h>

#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr StoreId kStoreId{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};

}  // namespace

TEST_CASE("identity: version 1 is written and read byte for byte") {
  const Bytes bytes = encode_identity({kStoreId, DirectoryRole::Values});
  const Bytes head("ECIDENT1\x01\0\0\0\x02\0\0\0", 16);
  CHECK(bytes.size() == kIdentityBytes);
  CHECK(bytes.substr(0, 16) == head);
  CHECK(bytes.substr(16, 16) ==
        Bytes("\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff", 16));
  CHECK(bytes.substr(32) == Bytes("\xb0\x74\x82\xa8", 4));
  const auto identity = decode_identity(bytes, "IDENTITY");
  REQUIRE(identity.ok());
  CHECK(identity->store_id == kStoreId);
  CHECK(identity->role == DirectoryRole::Values);
  CHECK(to_text(kStoreId) == "000102030405060708090a0b0c0d0eff");
}

TEST_CASE("identity reports every flipped bit and every length") {
  const Bytes bytes = encode_identity({kStoreId, DirectoryRole::Metadata});
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      CHECK(decode_identity(flipped, "IDENTITY").status().code() == StatusCode::Corruption);
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(decode_identity(bytes.substr(0, size), "I").status().code() == StatusCode::Corruption);
  CHECK(decode_identity(bytes + "x", "I").status().code() == StatusCode::Corruption);
  Bytes newer = bytes + "more of a later format";
  newer[8] = 2;
  CHECK(decode_identity(newer, "I").status().code() == StatusCode::Unsupported);
}

TEST_CASE("identity tells why a values directory is not the one") {
  test::MemoryFileSystem disk({"/v"});
  CHECK(check_values_identity(disk, "/v", kStoreId).code() == StatusCode::Unavailable);
  REQUIRE(write_identity(disk, "/v", {kStoreId, DirectoryRole::Values}).ok());
  CHECK(check_values_identity(disk, "/v", kStoreId).ok());
  CHECK(check_values_identity(disk, "/v", StoreId{7}).code() == StatusCode::Unavailable);
  REQUIRE(write_identity(disk, "/v", {kStoreId, DirectoryRole::Metadata}).ok());
  CHECK(check_values_identity(disk, "/v", kStoreId).code() == StatusCode::Unavailable);
  disk.power_cut(1, test::CutPolicy::None);
  CHECK(read_identity(disk, "/v")->has_value());
}

TEST_CASE("identity tells whether the metadata drive still answers as the store's") {
  test::MemoryFileSystem disk({"/m"});
  CHECK(check_metadata_identity(disk, "/m", kStoreId).code() == StatusCode::Unavailable);
  REQUIRE(write_identity(disk, "/m", {kStoreId, DirectoryRole::Metadata}).ok());
  CHECK(check_metadata_identity(disk, "/m", kStoreId).ok());
  CHECK(check_metadata_identity(disk, "/m", StoreId{7}).code() == StatusCode::Unavailable);
  disk.fail_nth(test::Operation::Read, 1, EIO, test::FaultMode::Sticky, "/m");
  CHECK(check_metadata_identity(disk, "/m", kStoreId).code() == StatusCode::IoError);
}

}  // namespace edgecase::engine
