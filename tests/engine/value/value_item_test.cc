#include "value/value_item.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kFile = 17;
constexpr std::uint64_t kOffset = 4'096;

// An item that is whole but for its checksum.
Bytes item_of(ByteView contents) {
  Bytes item(kItemHeadBytes, '\0');
  item[kItemChecksumBytes] = static_cast<char>(ItemType::Single);
  return item.append(contents);
}

// A key ring, and the cipher of a file by it.
struct Sealed {
  Sealed() {
    REQUIRE(disk.create_directory("/m/store").ok());
    SecretKey master;
    master.fill(7);
    ring = *KeyRing::create(disk, "/m/store", {1, 2, 3}, {master}, random);
    cipher = std::make_unique<FileCipher>(*ring, ring->random().salt(), FileRole{"values", kFile});
  }

  test::MemoryFileSystem disk{{"/m"}};
  SeededRandom random{3};
  std::unique_ptr<KeyRing> ring;
  std::unique_ptr<FileCipher> cipher;
};

}  // namespace

TEST_CASE("value item: its checksum holds in its place alone, and covers what belongs behind it") {
  Bytes item = item_of("contents");
  place_checksums(item, kFile, kOffset);
  CHECK(checksums_match(item, kFile, kOffset));
  CHECK_FALSE(checksums_match(item, kFile, kOffset + 1));
  CHECK_FALSE(checksums_match(item, kFile + 1, kOffset));
  for (std::size_t bit = 0; bit < 8 * item.size(); ++bit) {
    CAPTURE(bit);
    Bytes damaged = item;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(checksums_match(damaged, kFile, kOffset));
  }
  Bytes begin = item_of("con");
  place_checksums(begin, kFile, kOffset, "tents");
  CHECK(begin + "tents" == item);
}

TEST_CASE("value item: what is sealed opens in its place as it was, and shows nothing before") {
  const Sealed sealed;
  PartCipher cipher = sealed.cipher->sealer(kDatabaseKey);
  Bytes room;
  for (const std::size_t size : {1u, 100u, 70'000u}) {
    CAPTURE(size);
    const Bytes item = item_of(Bytes(size, 'v'));
    Bytes bytes(seal_item(room, item, "the end", cipher, kFile, kOffset));
    CHECK(bytes.size() == item.size() + 7 + kItemSealBytes);
    CHECK(bytes.find("the end") == Bytes::npos);
    CHECK(checksums_match(bytes, kFile, kOffset));
    REQUIRE(open_sealed_item(bytes, *sealed.cipher, kFile, kOffset).none());
    CHECK(bytes.substr(kItemChecksumBytes) == (item + "the end").substr(kItemChecksumBytes));
  }
}

TEST_CASE("value item: sealed in pieces it is, byte for byte, what it is sealed at once") {
  const Sealed sealed;
  PartCipher cipher = sealed.cipher->sealer(kDatabaseKey);
  Bytes room;
  for (const std::size_t size : {1u, 1'000u, 200'000u}) {
    CAPTURE(size);
    const Bytes item = item_of(Bytes(size, 'v'));
    Bytes pieces;
    REQUIRE(seal_item_in_pieces(item, "the end", cipher, kFile, kOffset, [&](ByteView piece) {
              pieces += piece;
              return ok();
            }).ok());
    CHECK(pieces == seal_item(room, item, "the end", cipher, kFile, kOffset));
  }
  const Status failed = seal_item_in_pieces(item_of("v"), {}, cipher, kFile, kOffset,
                                            [](ByteView) { return io_error("the drive is away"); });
  CHECK(failed.code() == StatusCode::IoError);
}

TEST_CASE("value item: sealed bytes that are changed, cut or elsewhere do not open") {
  const Sealed sealed;
  PartCipher cipher = sealed.cipher->sealer(kDatabaseKey);
  Bytes room;
  const Bytes whole(seal_item(room, item_of("contents"), {}, cipher, kFile, kOffset));
  const auto problem = [&](Bytes bytes, std::uint64_t offset) {
    return open_sealed_item(bytes, *sealed.cipher, kFile, offset);
  };
  REQUIRE(problem(whole, kOffset).none());
  CHECK(problem(whole, kOffset + 1).damage != nullptr);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(problem(whole.substr(0, size), kOffset).none());
  }
  // By whoever knows how checksums are made: the seal tells.
  Bytes moved = whole;
  const std::uint64_t elsewhere = kOffset + 512;
  place_checksums(moved, kFile, elsewhere);
  CHECK(problem(moved, elsewhere).opened == Opened::Changed);
  Bytes changed = whole;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  place_checksums(changed, kFile, kOffset);
  CHECK(problem(changed, kOffset).opened == Opened::Changed);
  // Under a key that is no more.
  Bytes other = whole;
  other[kKeyIdAt] = 9;
  place_checksums(other, kFile, kOffset);
  CHECK(problem(other, kOffset).opened == Opened::Destroyed);
}

TEST_CASE("value item: a value in memory comes in pieces of the usual size, then nothing") {
  const auto bytes = std::make_shared<const Bytes>(2 * kLargeValuePieceBytes + 5, 'v');
  MemoryValue value(*bytes, 12, bytes);
  CHECK(value.size_bytes() == bytes->size());
  CHECK(value.sequence() == 12);
  for (const std::size_t want :
       {kLargeValuePieceBytes, kLargeValuePieceBytes, std::size_t{5}, std::size_t{0}}) {
    const auto piece = value.next_piece();
    REQUIRE(piece.ok());
    CHECK(piece->size() == want);
  }
  CHECK(value.size_bytes() == bytes->size());
}

}  // namespace edgecase::engine
