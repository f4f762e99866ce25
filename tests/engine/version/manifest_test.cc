#include "version/version.h"

#include <cerrno>

#include <doctest/doctest.h>

#include "edgecase/machine.h"
#include "file/file_names.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

VersionEdit full_edit() {
  VersionEdit edit;
  edit.format_version = 1;
  edit.file_number_limit = 70'000;
  edit.namespace_id_limit = 4;
  edit.namespaces.push_back({2, "default", {Placement::Values, GroupCodec::Series, 16}});
  edit.namespaces.push_back({3, "catalog", {Placement::Metadata, GroupCodec::Plain, 0}});
  ValueFileMetadata file;
  file.number = 12;
  file.namespace_id = 2;
  file.size_bytes = 123'456;
  file.item_count = 99;
  file.checksum = 0xdeadbeef;
  edit.added_value_files.push_back(file);
  file.number = 15;
  file.rule_epoch = 3;
  file.bucket = bucket_of(-5, std::int64_t{1} << 40);
  file.expiry_min_ns = -1;
  file.expiry_max_ns = 3;
  file.item_bytes = 120'000;
  file.time_min_ns = -1;
  edit.added_value_files.push_back(file);
  edit.removed_value_files = {7};
  TableMetadata table;
  table.number = 13;
  table.size_bytes = 4096;
  table.entry_count = 1000;
  table.delete_count = 3;
  table.item_count = 10;
  table.checksum = 0x01020304;
  table.sequence_min = 5;
  table.sequence_max = 1004;
  table.purged_sequence = 1003;
  table.rule_epoch = 2;
  table.smallest = make_full_key(2, "a");
  table.largest = make_full_key(3, Bytes("\0\xff", 2));
  table.value_files = {{12, 5000}, {300, 1}};
  edit.added_tables.push_back(table);
  table.number = 14;
  table.level = 2;
  table.kind = TableKind::Singles;
  table.namespace_id = 3;
  table.run = 11;
  table.value_files = {};
  edit.added_tables.push_back(table);
  edit.removed_tables = {8, 9};
  edit.flushed_sequence = 1004;
  edit.oldest_wal_segment = 6;
  edit.expiry_mark_ns = -300;
  edit.rule_changes.push_back({2, "d", 5});
  edit.rule_changes.push_back({2, {}, std::nullopt});
  edit.scopes.push_back({make_full_key(3, "e"), kRetentionForever, 77, 3});
  return edit;
}

// The bytes of full_edit(), version 1. They never change: stores on people's drives have them.
constexpr unsigned char kGolden[] = {
    0x01, 0x01, 0x02, 0xf0, 0xa2, 0x04, 0x03, 0x04, 0x04, 0x02, 0x07, 0x64, 0x65, 0x66, 0x61, 0x75,
    0x6c, 0x74, 0x00, 0x01, 0x10, 0x04, 0x03, 0x07, 0x63, 0x61, 0x74, 0x61, 0x6c, 0x6f, 0x67, 0x01,
    0x00, 0x00, 0x05, 0x0c, 0x02, 0x00, 0xc0, 0xc4, 0x07, 0x63, 0xef, 0xbe, 0xad, 0xde, 0x00, 0x00,
    0x00, 0x00, 0x05, 0x0f, 0x02, 0x00, 0xc0, 0xc4, 0x07, 0x63, 0xef, 0xbe, 0xad, 0xde, 0xc0, 0xa9,
    0x07, 0x03, 0x02, 0x24, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x01, 0x06, 0x06, 0x07, 0x07, 0x00,
    0x00, 0x0d, 0x80, 0x20, 0xe8, 0x07, 0x03, 0x0a, 0x04, 0x03, 0x02, 0x01, 0x05, 0xec, 0x07, 0xeb,
    0x07, 0x02, 0x05, 0x00, 0x00, 0x00, 0x02, 0x61, 0x06, 0x00, 0x00, 0x00, 0x03, 0x00, 0xff, 0x02,
    0x0c, 0x88, 0x27, 0xac, 0x02, 0x01, 0x07, 0x02, 0x01, 0x0e, 0x03, 0x0b, 0x80, 0x20, 0xe8, 0x07,
    0x03, 0x0a, 0x04, 0x03, 0x02, 0x01, 0x05, 0xec, 0x07, 0xeb, 0x07, 0x02, 0x05, 0x00, 0x00, 0x00,
    0x02, 0x61, 0x06, 0x00, 0x00, 0x00, 0x03, 0x00, 0xff, 0x00, 0x08, 0x08, 0x08, 0x09, 0x09, 0xec,
    0x07, 0x0a, 0x06, 0x0d, 0xd7, 0x04, 0x0e, 0x05, 0x00, 0x00, 0x00, 0x02, 0x64, 0x06, 0x0e, 0x04,
    0x00, 0x00, 0x00, 0x02, 0x00, 0x0f, 0x05, 0x00, 0x00, 0x00, 0x03, 0x65, 0x80, 0x80, 0x80, 0x80,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x4d, 0x03};

Bytes golden() {
  return Bytes(reinterpret_cast<const char*>(kGolden), sizeof kGolden);
}

}  // namespace

// What is pending of erasures, and what is done. They never change either.
constexpr unsigned char kErasureGolden[] = {0x11, 0xac, 0x02, 0x10, 0x05, 0x00, 0x00, 0x00, 0x02,
                                            0x61, 0x05, 0x00, 0x00, 0x00, 0x02, 0x62, 0xad, 0x02};

TEST_CASE("for how long a leap of the clock was held comes back") {
  VersionEdit edit;
  edit.held_ns = 300;
  const Bytes encoded = edit.encode();
  CHECK(encoded == "\x16\xac\x02");
  CHECK(VersionEdit::decode(encoded)->held_ns == 300);
  CHECK(VersionEdit::decode(encoded.substr(0, 2)).status().code() == StatusCode::Corruption);
  CHECK_FALSE(VersionEdit::decode({})->held_ns.has_value());
}

TEST_CASE("an edit says which rules are of scopes that are new") {
  VersionEdit edit;
  edit.rule_changes = {{2, "d", 5}, {2, "n", 6, true}, {2, "d", std::nullopt}};
  const auto read = VersionEdit::decode(edit.encode());
  REQUIRE(read.ok());
  CHECK(read->rule_changes == edit.rule_changes);
}

TEST_CASE("an edit says which erased ranges are pending, and up to where none is") {
  VersionEdit edit;
  edit.erased_sequence = 300;
  edit.erasures.push_back(make_range_delete(2, "a", "b", 301));
  const ByteView golden(reinterpret_cast<const char*>(kErasureGolden), sizeof kErasureGolden);
  CHECK(edit.encode() == golden);
  const auto decoded = VersionEdit::decode(golden);
  REQUIRE(decoded.ok());
  CHECK(decoded->erased_sequence == 300);
  CHECK((decoded->erasures == edit.erasures));
  for (std::size_t bytes = 0; bytes < golden.size(); ++bytes) {
    CAPTURE(bytes);
    if (bytes != 0 && bytes != 3)
      CHECK(VersionEdit::decode(golden.substr(0, bytes)).status().code() == StatusCode::Corruption);
  }
}

// What was evicted of a namespace; and a value file with its latest time, -2.
constexpr unsigned char kEvictionGolden[] = {0x05, 0x0c, 0x02, 0x00, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00,
                                             0x14, 0x03, 0x13, 0x02, 0xd7, 0x04};

TEST_CASE("an edit says what was evicted, and what the latest time of a value file is") {
  VersionEdit edit;
  ValueFileMetadata file;
  file.number = 12;
  file.namespace_id = 2;
  file.time_min_ns = -3;
  file.time_max_ns = -2;
  edit.added_value_files.push_back(file);
  edit.given_up.push_back({2, -300});
  const ByteView golden(reinterpret_cast<const char*>(kEvictionGolden), sizeof kEvictionGolden);
  CHECK(edit.encode() == golden);
  const auto decoded = VersionEdit::decode(golden);
  REQUIRE(decoded.ok());
  CHECK((decoded->given_up == edit.given_up));
  REQUIRE(decoded->added_value_files.size() == 1);
  CHECK(decoded->added_value_files[0].time_min_ns == -3);
  CHECK(decoded->added_value_files[0].time_max_ns == -2);
  // A time of no file, and cut short anywhere but between fields.
  CHECK(VersionEdit::decode(golden.substr(14, 2)).status().code() == StatusCode::Corruption);
  for (std::size_t bytes = 0; bytes < golden.size(); ++bytes) {
    CAPTURE(bytes);
    if (bytes != 0 && bytes != 14 && bytes != 16)
      CHECK(VersionEdit::decode(golden.substr(0, bytes)).status().code() == StatusCode::Corruption);
  }
}

// A table of entries that were gathered apart.
constexpr unsigned char kLifeGolden[] = {
    0x07, 0x00, 0x00, 0x0d, 0x80, 0x20, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x05, 0x05, 0x00,
    0x00, 0x05, 0x00, 0x00, 0x00, 0x02, 0x61, 0x05, 0x00, 0x00, 0x00, 0x02, 0x61, 0x00, 0x15, 0x03};

TEST_CASE("an edit says of which life class a table is") {
  VersionEdit edit;
  TableMetadata table;
  table.number = 13;
  table.size_bytes = 4096;
  table.entry_count = 1;
  table.item_count = 1;
  table.sequence_min = table.sequence_max = 5;
  table.smallest = table.largest = make_full_key(2, "a");
  table.life = 3;
  edit.added_tables.push_back(table);
  const ByteView golden(reinterpret_cast<const char*>(kLifeGolden), sizeof kLifeGolden);
  CHECK(edit.encode() == golden);
  const auto decoded = VersionEdit::decode(golden);
  REQUIRE(decoded.ok());
  REQUIRE(decoded->added_tables.size() == 1);
  CHECK(decoded->added_tables[0].life == 3);
  // A purged sequence without a table; one that only a newer version knows; cut short anywhere but
  // between fields.
  CHECK(VersionEdit::decode(golden.substr(30)).status().code() == StatusCode::Corruption);
  Bytes newer(golden);
  newer.back() = 11;
  CHECK(VersionEdit::decode(newer).status().code() == StatusCode::Unsupported);
  for (std::size_t bytes = 1; bytes < golden.size(); ++bytes) {
    CAPTURE(bytes);
    if (bytes != 30)
      CHECK(VersionEdit::decode(golden.substr(0, bytes)).status().code() == StatusCode::Corruption);
  }
}

TEST_CASE("version edit: version 1 is written and read byte for byte") {
  CHECK(full_edit().encode() == golden());
  const auto edit = VersionEdit::decode(golden());
  REQUIRE(edit.ok());
  CHECK(edit->encode() == golden());
  CHECK(edit->namespaces[0].name == "default");
  CHECK(edit->namespaces[0].options.scope_bytes == 16);
  CHECK(edit->added_tables[0].largest == make_full_key(3, Bytes("\0\xff", 2)));
  CHECK(edit->added_tables[0].value_files == ValueFileUses{{12, 5000}, {300, 1}});
  CHECK(edit->added_tables[0].run == 13);
  CHECK(edit->added_tables[1].level == 2);
  CHECK(edit->added_tables[1].kind == TableKind::Singles);
  CHECK(edit->added_tables[1].namespace_id == 3);
  CHECK(edit->added_tables[1].run == 11);
  CHECK(edit->added_value_files[0].checksum == 0xdeadbeef);
  CHECK(*edit->oldest_wal_segment == 6);
  CHECK(edit->added_value_files[1].bucket == bucket_of(-5, std::int64_t{1} << 40));
  CHECK(edit->added_value_files[1].time_min_ns == -1);
  CHECK(edit->added_value_files[1].expiry_min_ns == -1);
  CHECK(edit->added_value_files[1].expiry_max_ns == 3);
  CHECK(edit->added_value_files[0].expiry_max_ns == kNeverNs);
  CHECK(edit->added_value_files[0].time_min_ns == kNeverNs);
  CHECK(edit->added_tables[1].purged_sequence == 1003);
  CHECK(*edit->expiry_mark_ns == -300);
  CHECK(edit->rule_changes == full_edit().rule_changes);
  CHECK(edit->scopes == full_edit().scopes);
  CHECK(VersionEdit::decode("").ok());
}

TEST_CASE("version edit cut short never reads as the whole") {
  for (std::size_t size = 0; size < golden().size(); ++size) {
    CAPTURE(size);
    const auto edit = VersionEdit::decode(golden().substr(0, size));
    if (edit.ok()) {
      CHECK(edit->encode() != golden());
    } else {
      CHECK(edit.status().code() == StatusCode::Corruption);
    }
  }
}

TEST_CASE("version edit refuses what only a newer version writes") {
  struct Case {
    const char* what;
    Bytes bytes;
  };
  for (const Case& c :
       {Case{"tag", "\x7f\x01"}, Case{"tag 0", Bytes(1, '\0')}, Case{"format", "\x01\x02"},
        Case{"placement", Bytes("\x04\x01\x01x\x02\0\0", 7)},
        Case{"codec", Bytes("\x04\x01\x01x\0\x02\0", 7)}, Case{"level", Bytes("\x07\x07", 2)},
        Case{"kind", Bytes("\x07\x01\x02", 3)}}) {
    CAPTURE(c.what);
    CHECK(VersionEdit::decode(c.bytes).status().code() == StatusCode::Unsupported);
  }
}

TEST_CASE("version edit decodes any bytes without harm") {
  SeededRandom random(3);
  for (std::size_t at = 0; at < golden().size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = golden();
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto edit = VersionEdit::decode(flipped);
      if (!edit.ok())
        CHECK((edit.status().code() == StatusCode::Corruption ||
               edit.status().code() == StatusCode::Unsupported));
    }
  }
  for (int round = 0; round < 20'000; ++round) {
    Bytes noise(random.below(60), '\0');
    for (char& byte : noise)
      byte = static_cast<char>(random.below(3) == 0 ? random.below(256) : random.below(11));
    static_cast<void>(VersionEdit::decode(noise).ok());
  }
}

// CURRENT and its copy: which manifest is the store's, whatever a cut or damage leaves of the two.

namespace {

struct Names {
  Result<std::uint64_t> find() {
    damage = ok();
    return find_current(disk, "/m", damage);
  }

  test::MemoryFileSystem disk{{"/m"}};
  Status damage;
  const std::string current = current_path("/m");
  const std::string copy = current_copy_path("/m");
};

}  // namespace

TEST_CASE("CURRENT: a store that was never begun has none") {
  Names names;
  CHECK(names.find().status().code() == StatusCode::NotFound);
  CHECK(names.damage.ok());
}

TEST_CASE("CURRENT names the manifest that was written last, and so does its copy") {
  Names names;
  for (const std::uint64_t number : {7u, 8u, 4'000'000'000u}) {
    CAPTURE(number);
    REQUIRE(write_current(names.disk, "/m", number).ok());
    CHECK(*names.find() == number);
    CHECK(names.damage.ok());
    CHECK(*read_current(names.disk, names.copy) == number);
  }
}

TEST_CASE("CURRENT: where it is lost or damaged its copy stands in, and that is told") {
  for (const bool lost : {true, false}) {
    CAPTURE(lost);
    Names names;
    REQUIRE(write_current(names.disk, "/m", 7).ok());
    if (lost) {
      REQUIRE(names.disk.remove_file(names.current).ok());
    } else {
      names.disk.flip_bit(names.current, 2, 1);
    }
    CHECK(*names.find() == 7);
    CHECK(names.damage.code() == StatusCode::Corruption);
  }
}

TEST_CASE("CURRENT: without a whole copy its own damage is the answer") {
  for (const char* content : {"", "MANIFEST-7", "MANIFEST-x\n", "LOCK\n", "MANIFEST-000007\n\n",
                              "a name that is far longer than that of any manifest could ever be, "
                              "cut or not\n"}) {
    CAPTURE(content);
    Names names;
    names.disk.set_contents(names.current, ByteView(content));
    CHECK(names.find().status().code() == StatusCode::Corruption);
    names.disk.set_contents(names.copy, ByteView("LOCK\n"));
    CHECK(names.find().status().code() == StatusCode::Corruption);
  }
}

TEST_CASE("CURRENT: a drive that cannot be read is no store without a manifest") {
  Names names;
  REQUIRE(write_current(names.disk, "/m", 7).ok());
  names.disk.fail_nth(test::Operation::OpenFile, 1, EIO, test::FaultMode::Once);
  CHECK(names.find().status().code() == StatusCode::IoError);
}

TEST_CASE("CURRENT: a cut at any operation leaves the manifest before or the one after") {
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    Names names;
    REQUIRE(write_current(names.disk, "/m", 7).ok());
    names.disk.stop_at(nth);
    const bool written = write_current(names.disk, "/m", 8).ok();
    const bool stopped = names.disk.stopped();
    names.disk.stop_at(test::MemoryFileSystem::kNever);
    if (!stopped) return;
    names.disk.power_cut(nth, test::CutPolicy::Any);
    const auto found = names.find();
    CAPTURE(nth);
    REQUIRE(found.ok());
    CHECK((*found == 8 || (*found == 7 && !written)));
  }
  FAIL("it never ended");
}

}  // namespace edgecase::engine
