#include "file/table_file.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

constexpr TableFormat kFormat{"ECTESTS1", 4, kFeaturePacked};
const std::string kPath = "/m/1.val";

TableHead some_head() {
  TableHead head;
  head.identity.store_id = {1, 2, 3};
  head.identity.file_number = 17;
  return head;
}

struct Disk {
  test::MemoryFileSystem files{{"/m"}};

  std::unique_ptr<RandomAccessFile> holding(const Bytes& bytes) {
    files.set_contents(kPath, bytes);
    return std::move(files.open_file(kPath)).value();
  }
};

// A whole table: head, contents, three sections, tail.
Bytes whole_table() {
  Bytes bytes;
  append_table_head(bytes, kFormat, some_head());
  bytes += "contents";
  const std::uint64_t at = bytes.size();
  const Bytes sections = "firstsecond, longerthird";
  bytes += sections;
  append_table_tail(bytes, kFormat, 17, {at, at + 5, at + 19}, sections);
  return bytes;
}

}  // namespace

TEST_CASE("table file: a head says whose file it is, and whether it is encrypted") {
  Disk disk;
  for (const bool is_sealed : {false, true}) {
    CAPTURE(is_sealed);
    TableHead head = some_head();
    if (is_sealed) head.salt.emplace().fill(9);
    Bytes bytes;
    append_table_head(bytes, kFormat, head);
    CHECK(bytes.size() == head.size_bytes());
    const auto read = check_table_head(*disk.holding(bytes), kFormat, head.identity);
    REQUIRE(read.ok());
    CHECK(read->identity.store_id == head.identity.store_id);
    CHECK(read->identity.file_number == 17);
    CHECK(read->salt == head.salt);
  }
}

TEST_CASE("table file: another store, file, version or need is told apart") {
  Disk disk;
  Bytes bytes;
  append_table_head(bytes, kFormat, some_head());
  TableIdentity identity = some_head().identity;
  identity.store_id[0] = 77;
  const auto code = [&](const Bytes& head, const TableFormat& format, const TableIdentity& who) {
    return check_table_head(*disk.holding(head), format, who).status().code();
  };
  CHECK(code(bytes, kFormat, identity) == StatusCode::Unavailable);
  identity = some_head().identity;
  identity.file_number = 18;
  CHECK(code(bytes, kFormat, identity) == StatusCode::Corruption);
  identity = some_head().identity;
  CHECK(code(bytes, {"ECOTHER1", 4, 0}, identity) == StatusCode::Corruption);
  CHECK(code(bytes, {kFormat.magic, 5, kFeaturePacked}, identity) == StatusCode::Unsupported);
  CHECK(code(bytes, {kFormat.magic, 4, 0}, identity) == StatusCode::Unsupported);
  CHECK(code(bytes.substr(0, 20), kFormat, identity) == StatusCode::Corruption);
}

TEST_CASE("table file: a flipped bit of a head is damage, wherever it is") {
  Disk disk;
  TableHead head = some_head();
  head.salt.emplace().fill(9);
  Bytes bytes;
  append_table_head(bytes, kFormat, head);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    CAPTURE(bit);
    Bytes damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK(read_table_head(*disk.holding(damaged), kFormat).status().code() ==
          StatusCode::Corruption);
  }
}

TEST_CASE("table file: sections come back by their places") {
  Disk disk;
  const auto sections = read_table_sections(*disk.holding(whole_table()), kFormat, 17);
  REQUIRE(sections.ok());
  CHECK(sections->section(0) == "first");
  CHECK(sections->section(1) == "second, longer");
  CHECK(sections->section(2) == "third");
  CHECK(read_table_sections(*disk.holding(whole_table()), kFormat, 18).status().code() ==
        StatusCode::Corruption);
}

TEST_CASE("table file: a tail or section with a flipped bit, or a file that is cut, is damaged") {
  Disk disk;
  const Bytes bytes = whole_table();
  const std::size_t sections_at = kTableHeadBytes + 8;
  for (std::size_t bit = 8 * sections_at; bit < 8 * bytes.size(); ++bit) {
    CAPTURE(bit);
    Bytes damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK(read_table_sections(*disk.holding(damaged), kFormat, 17).status().code() ==
          StatusCode::Corruption);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(read_table_sections(*disk.holding(bytes.substr(0, size)), kFormat, 17).ok());
  }
}

TEST_CASE("table file: sections that lie about their places are refused") {
  Disk disk;
  const std::uint64_t at = kTableHeadBytes + 8;
  struct Case {
    std::array<std::uint64_t, 3> offsets;
  };
  for (const Case& c : {Case{{at, at + 30, at + 19}}, Case{{at, at + 5, at + 4'000}},
                        Case{{0, at + 5, at + 19}}, Case{{at + 6, at + 5, at + 19}}}) {
    CAPTURE(c.offsets[0]);
    CAPTURE(c.offsets[2]);
    Bytes bytes = whole_table().substr(0, at + 24);
    append_table_tail(bytes, kFormat, 17, c.offsets, ByteView(bytes).substr(at));
    CHECK(read_table_sections(*disk.holding(bytes), kFormat, 17).status().code() ==
          StatusCode::Corruption);
  }
}

TEST_CASE("table file: a checksum holds in its place in its file alone") {
  const std::uint32_t here = placed_crc32c(17, 4'096, "bytes");
  CHECK(placed_crc32c(17, 4'096, "bytes") == here);
  CHECK(placed_crc32c(18, 4'096, "bytes") != here);
  CHECK(placed_crc32c(17, 4'097, "bytes") != here);
  CHECK(placed_crc32c(17, 4'096, "bytez") != here);
  CHECK(crc32c("bytes") != here);
}

}  // namespace edgecase::engine
