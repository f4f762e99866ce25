#include "audit/page.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "daemon/audit/store_sealer.h"
#include "support/memory_file_system.h"
#include "support/test_share.h"
#include "wire/reading.h"

namespace edgecase::audit {
namespace {

using Sequences = std::vector<std::uint64_t>;

// Spare pages of a store in clear, or of an encrypted one.
struct Room {
  explicit Room(Sealer* store_sealer = nullptr) : sealer(store_sealer) {}

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
  SparePages create() {
    auto pages = SparePages::create(disk, kDirectory, sealer);
    REQUIRE(pages.ok());
    return std::move(pages).value();
  }
  Result<SparePages> open() { return SparePages::open(disk, kDirectory, sealer); }
  SparePages opened() {
    auto pages = open();
    REQUIRE(pages.ok());
    return std::move(pages).value();
  }
  // Records 7, then 8 and 9. Returns how many bytes they take.
  std::size_t fill() {
    SparePages pages = create();
    REQUIRE(pages.append(7, page(7, 1)).ok());
    REQUIRE(pages.append(9, page(8, 2)).ok());
    return contents().find_last_not_of('\0') + 1;
  }
  Bytes contents() const {
    Bytes bytes = disk.contents(kPath);
    REQUIRE(bytes.size() == kSpareBytes);
    return bytes;
  }
  // Zeros behind them.
  void put(Bytes bytes) {
    bytes.resize(kSpareBytes, '\0');
    disk.set_contents(kPath, bytes);
  }
  Sequences found() {
    const SparePages pages = opened();
    Sequences sequences;
    for (const Record& record : pages.found()) {
      sequences.push_back(record.sequence);
      CHECK(record.count == record.sequence);
      CHECK(record.actor == "uid 1000");
    }
    return sequences;
  }

  static constexpr const char* kDirectory = "/m";
  static constexpr const char* kPath = "/m/AUDIT-SPARE";
  Sealer* sealer;
  edgecase::test::MemoryFileSystem disk{{"/m"}};
};

const Bytes kZeros(kSpareBytes, '\0');

// The head of a frame in an encrypted store holds nothing but its length.
constexpr std::size_t kFrameHeadBytes = 4;

}  // namespace

TEST_CASE("spare pages: what was appended is found, and after that what follows") {
  const test::StoreSealer store;
  for (Sealer* const sealer : {static_cast<Sealer*>(nullptr), store.get()}) {
    CAPTURE(sealer != nullptr);
    Room room(sealer);
    CHECK(room.open().status().code() == StatusCode::NotFound);
    room.fill();
    CHECK(room.found() == Sequences{7, 8, 9});
    SparePages pages = room.opened();
    CHECK(pages.dropped_bytes() == 0);
    REQUIRE(pages.append(10, room.page(10, 1)).ok());
    CHECK(room.found() == Sequences{7, 8, 9, 10});
    REQUIRE(pages.clear().ok());
    CHECK(pages.empty());
    CHECK(room.found().empty());
    CHECK((room.contents() == kZeros));
    REQUIRE(pages.append(11, room.page(11, 1)).ok());
    CHECK(room.found() == Sequences{11});
  }
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

// Pieces themselves: tests/engine/core/encrypted_golden_test.cc.
TEST_CASE("spare pages: in an encrypted store the same bytes, each frame sealed at its place") {
  const test::StoreSealer store;
  Room clear, room(store.get());
  const std::size_t clear_bytes = clear.fill(), bytes = room.fill();
  CHECK(bytes == clear_bytes + 2 * Sealer::kOverheadBytes);
  Bytes opened;
  for (std::size_t at = 0; at < bytes;) {
    const Bytes frame = room.contents().substr(at);
    CHECK(frame[0] == '\x80');
    const std::size_t size = wire::read_big_endian(frame.substr(1, 3));
    const auto content = store.get()->open("audit spare", at, frame.substr(kFrameHeadBytes, size));
    REQUIRE(content);
    opened += Bytes{0, 0, 0, static_cast<char>(content->size() - 8)} + *content;
    at += kFrameHeadBytes + size;
  }
  CHECK((opened == clear.contents().substr(0, clear_bytes)));
}

TEST_CASE("spare pages: nothing in an encrypted store's can be read, and no two are alike") {
  const test::StoreSealer store;
  Room room(store.get());
  const std::size_t size = room.fill();
  const Bytes first = room.contents();
  for (const char* text : {"uid 1000", "query", "*/*"}) CHECK(first.find(text) == Bytes::npos);
  // The same at the same place, after it was cleared, and in a file made anew.
  SparePages pages = room.opened();
  REQUIRE(pages.clear().ok());
  REQUIRE(pages.append(7, room.page(7, 1)).ok());
  REQUIRE(pages.append(9, room.page(8, 2)).ok());
  const Bytes second = room.contents();
  REQUIRE(room.disk.remove_file(Room::kPath).ok());
  room.fill();
  const Bytes third = room.contents();
  const auto begin = first.begin() + kFrameHeadBytes;
  CHECK_FALSE(std::equal(begin, begin + 24, second.begin() + kFrameHeadBytes));
  CHECK_FALSE(std::equal(begin, begin + 24, third.begin() + kFrameHeadBytes));
  std::size_t alike = 0;
  for (std::size_t i = 0; i < size; ++i) alike += first[i] == second[i] && first[i] == third[i];
  // Heads, and a byte in 65,536.
  CHECK(alike < 2 * kFrameHeadBytes + 8);
}

TEST_CASE("spare pages: one that was cut short by a drive is written again under another salt") {
  const test::StoreSealer store;
  Room room(store.get());
  SparePages pages = room.create();
  room.disk.fail_nth(edgecase::test::Operation::LogSync, 1, EIO, edgecase::test::FaultMode::Once);
  CHECK_FALSE(pages.append(7, room.page(7, 1)).ok());
  const Bytes refused = room.contents();
  REQUIRE(pages.append(7, room.page(7, 1)).ok());
  CHECK(refused.substr(kFrameHeadBytes, 24) != room.contents().substr(kFrameHeadBytes, 24));
  CHECK(room.found() == Sequences{7});
}

TEST_CASE("spare pages: those of an encrypted store open when its master key has changed") {
  test::StoreSealer store;
  Room room(store.get());
  room.fill();
  store.change_master_key();
  room.sealer = store.get();
  CHECK(room.found() == Sequences{7, 8, 9});
  SparePages pages = room.opened();
  REQUIRE(pages.append(10, room.page(10, 1)).ok());
  CHECK(room.found() == Sequences{7, 8, 9, 10});
}

TEST_CASE("spare pages: those of another store, and of the other kind, are none, and go") {
  const test::StoreSealer store, other(2);
  struct Case {
    Sealer* written;
    Sealer* read;
  };
  for (const Case& c :
       {Case{store.get(), other.get()}, Case{store.get(), nullptr}, Case{nullptr, store.get()}}) {
    CAPTURE(c.written != nullptr);
    CAPTURE(c.read != nullptr);
    Room room(c.written);
    const std::size_t size = room.fill();
    room.sealer = c.read;
    SparePages pages = room.opened();
    CHECK(pages.found().empty());
    CHECK(pages.dropped_bytes() == size);
    CHECK(pages.empty());
    CHECK((room.contents() == kZeros));
    REQUIRE(pages.append(7, room.page(7, 1)).ok());
    CHECK(room.found() == Sequences{7});
  }
}

TEST_CASE("spare pages: a page that is damaged or cut short is none, nor are those behind it") {
  const test::StoreSealer store;
  for (Sealer* const sealer : {static_cast<Sealer*>(nullptr), store.get()}) {
    CAPTURE(sealer != nullptr);
    Room room(sealer);
    const std::size_t size = room.fill();
    const Bytes whole = room.contents().substr(0, size);
    const std::size_t first_bytes = kFrameHeadBytes + 8 + 32 + room.page(7, 1).size() +
                                    (sealer != nullptr ? Sealer::kOverheadBytes : 0);
    const auto check = [&](const Bytes& bytes, std::size_t at) {
      room.put(bytes);
      CHECK(room.found() == (at < first_bytes ? Sequences{} : Sequences{7}));
      // What is whole stays, and nothing else.
      CHECK((room.contents().substr(0, size) ==
             (at < first_bytes ? Bytes() : whole.substr(0, first_bytes)) +
                 Bytes(at < first_bytes ? size : size - first_bytes, '\0')));
    };
    for (std::size_t at = 0; at < size; at += edgecase::test::share_step()) {
      CAPTURE(at);
      for (std::size_t bit = 0; bit < 8; ++bit) {
        if (sealer == nullptr && bit != at % 8) continue;
        Bytes bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
        check(bytes, at);
      }
      // A cut may have taken what is zero as it is.
      const Bytes cut = whole.substr(0, at) + Bytes(size - at, '\0');
      if (cut != whole) check(cut, at);
    }
  }
}

TEST_CASE("spare pages: what is overwritten when it is cleared is gone, wherever that was cut") {
  Room room;
  const std::size_t size = room.fill();
  const Bytes whole = room.contents().substr(0, size);
  room.put(Bytes(size / 2, '\0') + whole.substr(size / 2));
  CHECK(room.found().empty());
  CHECK((room.contents() == kZeros));

  // The drive takes nothing when it is opened, and does later.
  room.put(whole.substr(0, size - 5) + Bytes(100, 'x'));
  room.disk.fail_nth(edgecase::test::Operation::LogWrite, 1, EIO, edgecase::test::FaultMode::Once);
  SparePages pages = room.opened();
  CHECK(pages.found().size() == 1);
  CHECK(pages.dropped_bytes() > 0);
  CHECK_FALSE(pages.empty());
  REQUIRE(pages.clear().ok());
  CHECK((room.contents() == kZeros));
}

TEST_CASE("spare pages: a file whose making was cut short is none, and is made anew") {
  Room room;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{100}, kSpareBytes - 1}) {
    CAPTURE(size);
    room.disk.set_contents(Room::kPath, Bytes(size, '\0'));
    CHECK(room.open().status().code() == StatusCode::NotFound);
    CHECK_FALSE(room.disk.exists(Room::kPath));
    room.create();
    CHECK(room.found().empty());
    REQUIRE(room.disk.remove_file(Room::kPath).ok());
  }
}

TEST_CASE("spare pages: the file is bounded" * doctest::test_suite("bulk")) {
  const test::StoreSealer store;
  for (Sealer* const sealer : {static_cast<Sealer*>(nullptr), store.get()}) {
    CAPTURE(sealer != nullptr);
    Room room(sealer);
    SparePages pages = room.create();
    Status status;
    std::uint64_t sequence = 0;
    while (status.ok()) {
      sequence += kPageRecordsMax;
      status = pages.append(sequence, room.page(sequence - kPageRecordsMax + 1, kPageRecordsMax));
    }
    CHECK(status.code() == StatusCode::OutOfSpace);
    CHECK(room.found().size() == sequence - kPageRecordsMax);
  }
}

}  // namespace edgecase::audit
