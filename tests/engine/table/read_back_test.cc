#include <doctest/doctest.h>

#include "crypto/key_ring.h"
#include "metadata/umeta_table.h"
#include "support/memory_file_system.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

constexpr const char* kPath = "/m/table";
constexpr TableIdentity kIdentity{{1}, 7};

struct Drive {
  explicit Drive(bool encrypted) {
    if (!encrypted) return;
    SecretKey master;
    master.fill(3);
    auto made = KeyRing::create(disk, "/m", {1}, {master}, random);
    REQUIRE(made.ok());
    ring = *std::move(made);
  }

  // A value file whose drive changes a byte while it is written; `at` 0: it does not.
  Status write_values(std::uint64_t at) {
    ValueTableHead head;
    head.identity = kIdentity;
    head.namespace_id = 1;
    auto writer = ValueTableWriter::create(disk, kPath, head, ring.get());
    REQUIRE(writer.ok());
    const Bytes key = make_full_key(1, "device");
    const Bytes value(1000, 'v');
    const EntryView entry{key, 5, EntryKind::Put, value};
    for (int i = 0; i < 3; ++i) REQUIRE((*writer)->append_single(entry).ok());
    if (at != 0) disk.flip_bit(kPath, at, 3);
    return (*writer)->finish();
  }

  Status write_metadata(std::uint64_t at) {
    auto writer = UMetaWriter::create(disk, kPath, kIdentity, ring.get());
    REQUIRE(writer.ok());
    const std::uint64_t empty = disk.contents(kPath).size();
    // Until a block is there.
    for (std::uint64_t i = 0; disk.contents(kPath).size() == empty; ++i) {
      const Bytes key = make_full_key(1, std::to_string(1'000'000 + i));
      UMetaRecord record;
      record.first = record.last = key;
      record.sequence_min = record.sequence_max = 5;
      record.pointer = {3, 100 * i + 100, 100};
      REQUIRE((*writer)->add(record).ok());
    }
    if (at != 0) disk.flip_bit(kPath, at, 3);
    return (*writer)->finish();
  }

  test::MemoryFileSystem disk{{"/m"}};
  SeededRandom random{3};
  std::unique_ptr<KeyRing> ring;
};

}  // namespace

TEST_CASE("an encrypted file is given up where its first part does not open when it is read back") {
  CHECK(Drive(true).write_values(0).ok());
  CHECK(Drive(true).write_metadata(0).ok());
  for (const std::uint64_t at : {20u, 50u, 400u, 600u}) {
    CAPTURE(at);
    const Status values = Drive(true).write_values(at);
    CHECK_FALSE(values.ok());
    CAPTURE(values.to_string());
    const Status metadata = Drive(true).write_metadata(at);
    CHECK_FALSE(metadata.ok());
    CAPTURE(metadata.to_string());
    if (at < 100) continue;  // heads say more
    CHECK(values.code() == StatusCode::IoError);
    CHECK(values.message().find("what was sealed does not open") != std::string::npos);
    CHECK(metadata.code() == StatusCode::IoError);
  }
}

TEST_CASE("files in clear are not read back: whoever reads them sees") {
  Drive drive(false);
  CHECK(drive.write_values(400).ok());
  CHECK(drive.disk.operations(test::Operation::Read) == 0);
}

TEST_CASE("an encrypted file whose first item was erased meanwhile is as good as any") {
  Drive drive(true);
  const Bytes key = make_full_key(1, "device");
  drive.ring->retire(key, key + '\xff', 9);
  CHECK(drive.write_values(0).ok());
}

}  // namespace edgecase::engine
