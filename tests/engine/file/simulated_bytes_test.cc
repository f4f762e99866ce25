// What simulated drives hold, and how it is searched, against what is simple.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "edgecase/machine.h"
#include "support/needle_set.h"
#include "support/sparse_bytes.h"
#include "support/test_seed.h"
#include "support/write_once.h"

using namespace edgecase;
using namespace edgecase::test;

namespace {

constexpr std::uint64_t kFileMaxBytes = 300;

void write_simply(Bytes& bytes, std::uint64_t offset, ByteView written) {
  if (written.empty()) return;
  bytes.resize(std::max<std::size_t>(bytes.size(), offset + written.size()), '\0');
  bytes.replace(offset, written.size(), written);
}

Bytes draw_bytes(SeededRandom& random) {
  Bytes bytes(random.below(100), random.below(2) == 0 ? '\0' : 'x');
  if (!bytes.empty() && random.below(3) == 0) bytes[random.below(bytes.size())] = 'y';
  return bytes;
}

Bytes read_all(const SparseBytes& sparse, std::uint64_t offset, std::size_t size) {
  Bytes read(size, '?');
  read.resize(sparse.read(offset, size, read.data()));
  return read;
}

}  // namespace

TEST_CASE("simulated bytes: those of which zeros are only counted are those of a plain string") {
  const std::uint64_t seed = test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int life = 0; life < 200; ++life) {
    SparseBytes sparse;
    Bytes plain;
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t offset = random.below(kFileMaxBytes);
      const Bytes bytes = draw_bytes(random);
      switch (random.below(4)) {
        case 0:
          sparse.resize(offset);
          plain.resize(offset, '\0');
          break;
        case 1: {
          const SparseBytes part = sparse.part(offset, bytes.size());
          const Bytes whole = offset < plain.size() ? plain.substr(offset, bytes.size()) : Bytes();
          REQUIRE(part.whole() == whole);
          sparse.write(offset / 2, part);
          write_simply(plain, offset / 2, whole);
          break;
        }
        default:
          sparse.write(offset, bytes);
          write_simply(plain, offset, bytes);
          break;
      }
      REQUIRE(sparse.size() == plain.size());
      REQUIRE(sparse.whole() == plain);
      REQUIRE(sparse.is_zero() == (plain.find_first_not_of('\0') == Bytes::npos));
      REQUIRE(read_all(sparse, offset, 50) ==
              (offset < plain.size() ? plain.substr(offset, 50) : Bytes()));
    }
  }
}

TEST_CASE("simulated bytes: a needle is found wherever it lies, and no other") {
  NeedleSet needles;
  needles.add("first needle");
  needles.add("the second needle of all");
  const std::vector<Bytes> sought{"first needle", "the second needle of all"};
  for (std::size_t which = 0; which < sought.size(); ++which) {
    for (std::size_t at = 0; at < 40; ++at) {
      for (const std::size_t behind : {std::size_t{0}, std::size_t{9}}) {
        Bytes hay = Bytes(at, 'f') + sought[which] + Bytes(behind, 'e');
        CHECK(needles.in(hay));
        CHECK(needles.in(hay, 1) == (which == 1));
        CHECK_FALSE(needles.in(hay, 2));
        hay[at + sought[which].size() - 1] = '.';
        CHECK_FALSE(needles.in(hay));
      }
    }
  }
  CHECK_FALSE(needles.in(""));
  CHECK_FALSE(NeedleSet().in("first needle"));
}

TEST_CASE("write once: other bytes at a place are noticed, until a log begins anew") {
  const auto broken = std::make_shared<std::string>();
  const auto head = [](char number, char salt) {
    Bytes bytes = "ECLOG\r\n";
    bytes.resize(4096);
    bytes[32] = number;
    bytes[64] = salt;
    return bytes;
  };
  WriteOnce table("table", broken);
  table.note(0, "abc");
  table.note(3, "def");
  table.note(1, "bcd");                 // the same
  table.note(0, Bytes(6, '\0'));        // overwritten with zeros
  table.note(0, Bytes(6, '\0') + "g");  // and on behind them
  CHECK(broken->empty());
  table.note(2, "x");  // sealed anew where zeros are
  CHECK(*broken == "table was given other bytes at 2 under the same salt");

  broken->clear();
  WriteOnce log("log", broken);
  log.note(0, head(1, 'a'));
  log.note(4096, "record");
  log.note(0, head(2, 'b'));
  log.note(4096, "RECORD");
  CHECK(broken->empty());
  // The second copy of a log, which becomes what the first is.
  log.note(8192, head(2, 'c'));
  log.note(12288, "second");
  log.note(8192, head(2, 'b') + "RECORD");
  CHECK(broken->empty());
  SUBCASE("within the second copy") {
    log.note(8192 + 4096, "SECOND");
  }
  SUBCASE("within the first, whatever became of the second") {
    log.note(4096, "record");
  }
  SUBCASE("within one use") {
    log.note(4097, "record");
  }
  SUBCASE("in one that takes up an earlier number and salt") {
    log.note(0, head(1, 'a'));
    log.note(4096, "record");
  }
  CHECK(*broken != "");
}
