#include "core/drives.h"

#include <cstring>

#include <doctest/doctest.h>

#include "engine/core/engine_fixture.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kDriveBytes = 16u << 20;
constexpr std::uint64_t kKeptBytes = 1u << 20;
constexpr std::uint64_t kMemtableBytes = 64u << 10;

struct SmallDrives : test::EngineFixture {
  SmallDrives() {
    options.memtable_bytes = kMemtableBytes;
    options.keep_free_bytes = 100u << 20;  // a sixteenth of these
    disk.set_capacity("/m", kDriveBytes);
    disk.set_capacity("/v", kDriveBytes);
    REQUIRE(open().ok());
    id = make_namespace("plant");
  }
  // What cannot be compressed, so that it takes room.
  Status write_next() {
    Bytes value(1024, '\0');
    for (std::size_t at = 0; at < value.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t bytes = random.next();
      std::memcpy(&value[at], &bytes, sizeof bytes);
    }
    const Status status = put(id, "k" + std::to_string(100'000 + written), value);
    if (status.ok()) ++written;
    return status;
  }
  Status fill() {
    for (int i = 0; i < 20'000; ++i) {
      if (const Status status = write_next(); !status.ok()) return status;
    }
    return ok();
  }
  std::uint64_t free_bytes(const std::string& root) {
    return disk.space(root + "/store")->free_bytes;
  }
  void pass(std::int64_t ns) {
    clock.advance(ns);
    executor.advance(ns);
    executor.run_all();
  }

  NamespaceId id = 0;
  int written = 0;
};

}  // namespace

TEST_CASE("free space: writes leave some of it, and go on when there is more") {
  SmallDrives store;
  const Status refused = store.fill();
  CHECK(refused.code() == StatusCode::OutOfSpace);
  CHECK(refused.message().find("/v/store") != std::string::npos);
  CHECK(store.free_bytes("/v") < kKeptBytes);
  CHECK(store.free_bytes("/v") > kKeptBytes - 4 * kMemtableBytes);
  CHECK(store.engine->stats().refused.code() == StatusCode::OutOfSpace);
  CHECK(store.engine->stats().values.degraded.code() == StatusCode::OutOfSpace);
  CHECK(store.engine->stats().metadata.degraded.ok());
  REQUIRE(store.listener.degraded.size() == 1);
  CHECK(store.listener.degraded[0].starts_with("values: "));
  // What was taken is there, and goes to the drive all the same.
  CHECK(store.get(store.id, "k100000").size() == 1024);
  CHECK(store.engine->flush().ok());

  SUBCASE("somebody else gives room back: without a write, a little more than is kept") {
    const std::uint64_t used_bytes = store.disk.used_bytes("/v");
    store.disk.set_capacity("/v", used_bytes + kKeptBytes + kKeptBytes / 16);
    store.pass(kLookForSpaceNs);
    CHECK_FALSE(store.engine->stats().values.degraded.ok());
    store.disk.set_capacity("/v", used_bytes + kKeptBytes + kKeptBytes / 4);
    store.pass(kLookForSpaceNs);
    CHECK(store.engine->stats().values.degraded.ok());
    CHECK(store.engine->stats().refused.ok());
    CHECK(store.write_next().ok());
    CHECK(store.listener.resumed == std::vector<std::string>{"values"});
  }
  SUBCASE("what is erased makes room") {
    WriteBatch batch;
    batch.erase_range(store.id, "k", "k102000");
    REQUIRE(store.engine->write(batch, Durability::Sync).ok());
    REQUIRE(store.engine->erase().ok());
    store.pass(kLookForSpaceNs);
    CHECK(store.write_next().ok());
    CHECK(store.listener.resumed == std::vector<std::string>{"values"});
  }
  SUBCASE("the store's own notes are taken, alone") {
    const NamespaceId notes = store.make_namespace("_notes", {.placement = Placement::Metadata});
    CHECK(store.put(notes, "a", "b").ok());
    WriteBatch both;
    both.put(notes, "c", "d");
    both.put(store.id, "c", "d");
    CHECK(store.engine->write(both, Durability::Sync).code() == StatusCode::OutOfSpace);
  }
  SUBCASE("who is committed beside a note that is taken is refused all the same") {
    struct Noting final : CommitCompanion {
      explicit Noting(NamespaceId where) : notes(where) {}
      void add_to(WriteBatch& batch) override { batch.put(notes, "a", "b"); }
      void committed(const Status& status) override { noted = status; }
      NamespaceId notes;
      Status noted = busy("not yet");
    };
    Noting noting(store.make_namespace("_notes", {.placement = Placement::Metadata}));
    store.engine->set_commit_companion(&noting);
    CHECK(store.write_next().code() == StatusCode::OutOfSpace);
    CHECK(noting.noted.ok());
    store.engine->set_commit_companion(nullptr);
  }
  SUBCASE("the next process finds it so") {
    store.reopen();
    CHECK(store.write_next().code() == StatusCode::OutOfSpace);
    CHECK(store.get(store.id, "k100000").size() == 1024);
  }
}

TEST_CASE("free space: the metadata drive's counts, too") {
  SmallDrives store;
  store.disk.set_contents("/m/other", Bytes(store.free_bytes("/m") - kKeptBytes / 2, 'x'));
  REQUIRE(store.write_next().ok());  // nobody has looked
  REQUIRE(store.engine->flush().ok());
  const Status refused = store.write_next();
  CHECK(refused.code() == StatusCode::OutOfSpace);
  CHECK(refused.message().find("/m/store") != std::string::npos);
  CHECK_FALSE(store.engine->stats().metadata.degraded.ok());
}

TEST_CASE("free space: with nothing to be kept a drive is filled") {
  SmallDrives store;
  store.options.keep_free_bytes = 0;
  store.reopen();
  CHECK_FALSE(store.fill().ok());
  CHECK(store.free_bytes("/v") < kKeptBytes / 2);
}

// Room that is kept on each drive for what must be written when it is full.

namespace {

constexpr std::uint64_t kReserveBytes = 64u << 10;

struct Reserved {
  test::MemoryFileSystem disk{{"/m", "/v"}};
  SpaceReserve reserve{disk, {"/m/RESERVE", "/v/RESERVE"}, kReserveBytes};
};

}  // namespace

TEST_CASE("a reserve takes its room once on each drive, and gives all of it back") {
  Reserved has;
  const std::uint64_t empty_bytes = has.disk.used_bytes("/m");
  CHECK_FALSE(has.reserve.release());
  CHECK(has.reserve.fill());
  CHECK(has.reserve.fill());
  CHECK(*has.disk.file_size("/m/RESERVE") == kReserveBytes);
  CHECK(*has.disk.file_size("/v/RESERVE") == kReserveBytes);
  CHECK(has.disk.used_bytes("/m") >= empty_bytes + kReserveBytes);
  CHECK(has.reserve.release());
  CHECK(has.disk.used_bytes("/m") == empty_bytes);
  CHECK_FALSE(has.disk.exists("/v/RESERVE"));
  CHECK_FALSE(has.reserve.release());
}

TEST_CASE("a drive without room takes nothing for it, and does not keep the other from it") {
  Reserved has;
  has.disk.set_capacity("/m", kReserveBytes / 2);
  const std::uint64_t before = has.disk.used_bytes("/m");
  CHECK_FALSE(has.reserve.fill());
  CHECK(has.disk.used_bytes("/m") == before);
  CHECK(has.disk.exists("/v/RESERVE"));
  has.disk.set_capacity("/m", 0);
  CHECK(has.reserve.fill());
}

TEST_CASE("a reserve of another size, from another configuration, is made anew") {
  Reserved has;
  REQUIRE(has.reserve.fill());
  SpaceReserve larger(has.disk, {"/m/RESERVE"}, 2 * kReserveBytes);
  CHECK(larger.fill());
  CHECK(*has.disk.file_size("/m/RESERVE") == 2 * kReserveBytes);
}

TEST_CASE("a reserve of nothing makes no files") {
  test::MemoryFileSystem disk{{"/m"}};
  SpaceReserve none(disk, {"/m/RESERVE"}, 0);
  CHECK(none.fill());
  CHECK_FALSE(disk.exists("/m/RESERVE"));
}

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
