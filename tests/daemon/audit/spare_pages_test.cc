#include "audit/spare_pages.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "audit/page.h"
#include "support/temp_directory.h"

namespace edgecase::audit {
namespace {

struct Room {
  edgecase::test::TempDirectory directory;
  FileSystem& files = posix_file_system();

  Bytes page(std::uint64_t first, std::size_t count) const {
    std::vector<Draft> drafts;
    for (std::size_t i = 0; i < count; ++i) {
      Record record;
      record.operation = "query";
      record.actor = "uid 1000";
      record.selector = "*/*";
      record.count = first + i;
      record.targets = {{42, 1}};
      drafts.push_back(draft_of(record));
      drafts.back().time_ns = 1'763'647'200'000'000'000 + static_cast<std::int64_t>(first + i);
    }
    std::vector<const Draft*> pointers;
    for (const Draft& draft : drafts) pointers.push_back(&draft);
    return encode_page(pointers);
  }
  // Records 7, then 8 and 9. Returns how many bytes they take.
  std::size_t fill() const {
    auto pages = SparePages::create(files, directory.path());
    REQUIRE(pages.ok());
    REQUIRE(pages->append(7, page(7, 1)).ok());
    REQUIRE(pages->append(9, page(8, 2)).ok());
    const Bytes bytes = contents();
    return bytes.find_last_not_of('\0') + 1;
  }
  Bytes contents() const {
    const auto file = files.open_file(path());
    REQUIRE(file.ok());
    Bytes bytes(kSpareBytes, '\0');
    REQUIRE((*file)->read(0, bytes.size(), bytes.data()).value() == kSpareBytes);
    return bytes;
  }
  void overwrite(ByteView bytes) const {
    const auto file = files.open_log_file(path());
    REQUIRE(file.ok());
    REQUIRE((*file)->write(0, bytes).ok());
  }
  std::vector<std::uint64_t> found() const {
    const auto pages = SparePages::open(files, directory.path());
    REQUIRE(pages.ok());
    std::vector<std::uint64_t> sequences;
    for (const Record& record : pages->found()) {
      sequences.push_back(record.sequence);
      CHECK(record.count == record.sequence);
      CHECK(record.actor == "uid 1000");
    }
    return sequences;
  }
  std::string path() const { return directory.path() + "/" + kSpareFileName; }
};

using Sequences = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("spare pages: what was appended is found, and after that what follows") {
  Room room;
  CHECK(SparePages::open(room.files, room.directory.path()).status().code() ==
        StatusCode::NotFound);
  room.fill();
  CHECK(room.found() == Sequences{7, 8, 9});
  auto pages = SparePages::open(room.files, room.directory.path());
  REQUIRE(pages.ok());
  REQUIRE(pages->append(10, room.page(10, 1)).ok());
  CHECK(room.found() == Sequences{7, 8, 9, 10});
  REQUIRE(pages->clear().ok());
  CHECK(room.found().empty());
  CHECK((room.contents() == Bytes(kSpareBytes, '\0')));
}

TEST_CASE("spare pages: the bytes of version 1") {
  Room room;
  const std::size_t size = room.fill();
  CHECK(auth::hex_text(room.contents().substr(0, size)) ==
        "0000005300000000000000075feb4ede250ccf415e9aa277baf176015a0fdaaeca603312ae24a83f"
        "0d0c43e601011879bbc8c11cc007000120000571756572790875696420313030300000032a2f2a00"
        "01000000000000002a000100070001000000590000000000000009a5265945f91de2b997328fe924"
        "0da13f8b4508d4a1c7a3e991fe9f673907a25201021879bbc8c11cc0080201200005717565727908"
        "75696420313030300000032a2f2a0001000000000000002a000100080001000102090001");
}

TEST_CASE("spare pages: a page that is damaged or cut short is none, nor are those behind it") {
  Room room;
  const std::size_t size = room.fill();
  const Bytes whole = room.contents().substr(0, size);
  const std::size_t first_bytes = 4 + 8 + 32 + room.page(7, 1).size();
  for (std::size_t at = 0; at < size; ++at) {
    CAPTURE(at);
    const Sequences wanted = at < first_bytes ? Sequences{} : Sequences{7};
    Bytes bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << at % 8);
    room.overwrite(bytes);
    CHECK(room.found() == wanted);
    bytes = whole.substr(0, at) + Bytes(size - at, '\0');
    // A cut may have taken what is zero as it is.
    if (bytes == whole) continue;
    room.overwrite(bytes);
    CHECK(room.found() == wanted);
  }
}

TEST_CASE("spare pages: a file whose making was cut short is none, and is made anew") {
  Room room;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{100}, kSpareBytes - 1}) {
    CAPTURE(size);
    edgecase::test::write_file(room.path(), Bytes(size, '\0'));
    CHECK(SparePages::open(room.files, room.directory.path()).status().code() ==
          StatusCode::NotFound);
    REQUIRE(SparePages::create(room.files, room.directory.path()).ok());
    CHECK(room.found().empty());
    REQUIRE(room.files.remove_file(room.path()).ok());
  }
}

TEST_CASE("spare pages: the file is bounded") {
  Room room;
  auto pages = SparePages::create(room.files, room.directory.path());
  REQUIRE(pages.ok());
  Status status;
  std::uint64_t sequence = 0;
  while (status.ok()) {
    sequence += kPageRecordsMax;
    status = pages->append(sequence, room.page(sequence - kPageRecordsMax + 1, kPageRecordsMax));
  }
  CHECK(status.code() == StatusCode::OutOfSpace);
  CHECK(room.found().size() == sequence - kPageRecordsMax);
}

}  // namespace edgecase::audit
