#include "version/version_set.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "engine/version/some_edits.h"
#include "file/file_names.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using test::FaultMode;
using test::MemoryFileSystem;
using test::Operation;
using test_edits::added_file;
using test_edits::kStoreId;

std::size_t files_after_reopen(MemoryFileSystem& disk) {
  const auto set = VersionSet::recover(disk, "/m", kStoreId);
  INFO(set.status().to_string());
  REQUIRE(set.ok());
  return (*set)->current()->value_files.size();
}

std::map<FileNumber, std::uint64_t> live_of(const Version& version) {
  return {version.live_bytes.begin(), version.live_bytes.end()};
}

}  // namespace

TEST_CASE("version set keeps every edit, over many manifests" * doctest::test_suite("bulk")) {
  MemoryFileSystem disk({"/m"});
  auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  const std::uint64_t first = (*set)->manifest_number();
  const Bytes name(100, 'n');
  constexpr FileNumber kFiles = 3000;
  VersionEdit limit;
  limit.file_number_limit = 1 << 20;
  REQUIRE((*set)->apply(limit).ok());
  for (FileNumber i = 1; i <= kFiles; ++i) {
    VersionEdit edit = added_file(i);
    TableMetadata table;
    table.number = i + kFiles;
    table.sequence_min = table.sequence_max = i;
    table.smallest = table.largest = make_full_key(1, Bytes(900, 'k'));
    if (i % 2 == 0) table.value_files = {{i, 1}};
    if (i % 20 == 0) edit.added_tables.push_back(table);
    REQUIRE((*set)->apply(edit).ok());
    if (i % 500 != 0) continue;
    set = VersionSet::recover(disk, "/m", kStoreId);  // its next edit begins a new manifest
    REQUIRE(set.ok());
  }
  CHECK((*set)->manifest_number() > first + 4);
  CHECK((*set)->current()->tables.front()->sequence_max == kFiles);
  disk.power_cut(1, test::CutPolicy::None);
  CHECK(files_after_reopen(disk) == kFiles);
}

TEST_CASE("version set starts a new manifest when the old one is full") {
  MemoryFileSystem disk({"/m"});
  auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  // Each edit adds and removes: the state stays small, the log grows.
  for (FileNumber i = 1; i <= 30'000; ++i) {
    VersionEdit edit = added_file(i);
    if (i > 1) edit.removed_value_files.push_back(i - 1);
    REQUIRE((*set)->apply(edit).ok());
  }
  CHECK((*set)->manifest_number() > 1);
  CHECK_FALSE(disk.exists(manifest_path("/m", 1)));
  set = not_found("closed");
  CHECK(files_after_reopen(disk) == 1);
}

TEST_CASE("version set changes nothing on opening, and a new manifest is begun by the first edit") {
  MemoryFileSystem disk({"/m"});
  {
    auto set = VersionSet::create(disk, "/m", kStoreId);
    REQUIRE(set.ok());
    CHECK(*(*set)->create_namespace("a", {}) == 1);
  }
  const auto before = disk.durable_contents();
  auto set = VersionSet::recover(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  CHECK(disk.durable_contents() == before);
  CHECK((*set)->has_namespace(1));
  CHECK_FALSE((*set)->has_namespace(2));
  CHECK(*(*set)->create_namespace("b", {}) == 2);
  CHECK((*set)->manifest_number() == 2);
}

TEST_CASE(
    "version set: namespaces have numbers up to a greatest, and a manifest that goes beyond is "
    "refused") {
  MemoryFileSystem disk({"/m"});
  auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  VersionEdit edit;
  edit.namespace_id_limit = kNamespaceIdMax;
  REQUIRE((*set)->apply(edit).ok());
  CHECK(*(*set)->create_namespace("last", {}) == kNamespaceIdMax);
  CHECK((*set)->create_namespace("one more", {}).status().code() == StatusCode::LimitReached);
  edit.namespace_id_limit = kNamespaceIdMax + 2;
  CHECK_FALSE((*set)->apply(edit).ok());
}

TEST_CASE("version set gives file numbers out once, also over crashes") {
  MemoryFileSystem disk({"/m"});
  FileNumber last = 0;
  for (int life = 0; life < 5; ++life) {
    auto set = life == 0 ? VersionSet::create(disk, "/m", kStoreId)
                         : VersionSet::recover(disk, "/m", kStoreId);
    REQUIRE(set.ok());
    FileNumberBlock block;
    REQUIRE(block.reserve(**set, 10).ok());
    const auto others = (*set)->take_file_numbers(1);
    REQUIRE(others.ok());
    for (int i = 0; i < 10; ++i) {
      const FileNumber number = block.take();
      CHECK(number != *others);
      CHECK(number > last);
      last = number;
    }
    disk.power_cut(static_cast<std::uint64_t>(life), test::CutPolicy::None);
  }
}

TEST_CASE("version set survives a failure at every operation of an edit") {
  for (std::uint64_t nth = 1; nth <= 30; ++nth) {
    for (const FaultMode mode : {FaultMode::Once, FaultMode::Sticky}) {
      CAPTURE(nth);
      CAPTURE(static_cast<int>(mode));
      MemoryFileSystem disk({"/m"});
      auto set = VersionSet::create(disk, "/m", kStoreId);
      REQUIRE(set.ok());
      REQUIRE((*set)->apply(added_file(1)).ok());
      disk.fail_nth(Operation::Any, nth, EIO, mode);
      std::size_t sure = 1;
      std::size_t tried = 1;
      for (FileNumber i = 2; i <= 4; ++i) {
        ++tried;
        if ((*set)->apply(added_file(i)).ok()) ++sure;
      }
      disk.clear_faults();
      const bool healed = (*set)->apply(added_file(9)).ok();
      CHECK(healed);
      CHECK((*set)->current()->value_files.size() == sure + 1);
      disk.power_cut(nth, test::CutPolicy::None);
      CHECK(files_after_reopen(disk) == sure + 1);
      CHECK(tried == 4);
    }
  }
}

TEST_CASE("version set reports a CURRENT or manifest that cannot be") {
  MemoryFileSystem disk({"/m"});
  REQUIRE(VersionSet::create(disk, "/m", kStoreId).ok());
  const Bytes current = disk.contents("/m/CURRENT");
  CHECK(current == manifest_name(1) + "\n");
  const auto code = [&] { return VersionSet::recover(disk, "/m", kStoreId).status().code(); };
  CHECK(code() == StatusCode::Ok);
  CHECK(VersionSet::recover(disk, "/m", StoreId{9}).status().code() == StatusCode::Unavailable);
  for (const Bytes& wrong : {Bytes(), Bytes("MANIFEST-1\n"), manifest_name(1), Bytes(100, 'x'),
                             manifest_name(7) + "\n"}) {
    CAPTURE(wrong);
    // Its copy stands in, but for a name that is one.
    disk.set_contents("/m/CURRENT", wrong);
    disk.set_contents("/m/CURRENT.copy", current);
    CHECK((code() == StatusCode::Ok) == (wrong != manifest_name(7) + "\n"));
    disk.set_contents("/m/CURRENT.copy", wrong);
    CHECK(code() == StatusCode::Corruption);
  }
  disk.set_contents("/m/CURRENT", current);
  CHECK(code() == StatusCode::Ok);
  disk.set_contents(manifest_path("/m", 1), Bytes(8192, '\0'));
  CHECK(code() == StatusCode::Corruption);
}

TEST_CASE("version state refuses an edit that does not fit") {
  VersionState state;
  REQUIRE(state.apply(added_file(1)).ok());
  CHECK(state.apply(added_file(1)).code() == StatusCode::Corruption);
  VersionEdit edit;
  edit.removed_value_files = {2};
  CHECK(state.apply(edit).code() == StatusCode::Corruption);
  edit = {};
  edit.removed_tables = {2};
  CHECK(state.apply(edit).code() == StatusCode::Corruption);
  edit = {};
  edit.namespaces.push_back({1, "beyond the limit", {}});
  CHECK(state.apply(edit).code() == StatusCode::Corruption);
  edit = {};
  edit.flushed_sequence = 5;
  REQUIRE(state.apply(edit).ok());
  edit.flushed_sequence = 4;
  CHECK(state.apply(edit).code() == StatusCode::Corruption);
}

namespace {

TableMetadata table_of(FileNumber number, std::uint8_t level, FileNumber run, const Bytes& smallest,
                       const Bytes& largest, SequenceNumber sequence) {
  TableMetadata table;
  table.number = number;
  table.level = level;
  table.run = run;
  table.namespace_id = level == 0 ? 0 : 1;
  table.smallest = make_full_key(1, smallest);
  table.largest = make_full_key(1, largest);
  table.sequence_min = table.sequence_max = sequence;
  return table;
}

}  // namespace

TEST_CASE("version arranges tables in level 0 and, a tree a namespace, in runs") {
  VersionState state;
  VersionEdit edit = added_file(1);
  for (TableMetadata table : {table_of(2, 0, 2, "a", "z", 9), table_of(3, 1, 3, "m", "p", 5),
                              table_of(4, 1, 3, "a", "c", 8), table_of(5, 2, 5, "a", "z", 1)}) {
    table.value_files = {{1, 10}};
    edit.added_tables.push_back(table);
  }
  REQUIRE(state.apply(edit).ok());
  const Version& version = *state.version;
  REQUIRE(version.level0.size() == 1);
  CHECK(version.live_bytes.at(1) == 40);
  const Tree& tree = version.trees.at(1);
  REQUIRE(tree.size() == 2);
  CHECK(tree[0].number == 3);
  CHECK(tree[0].sequence_max == 8);
  CHECK(tree[0].sequence_min == 5);
  CHECK(tree[0].item_bytes == 20);
  REQUIRE(tree[0].tables.size() == 2);
  CHECK(tree[0].tables[0]->number == 4);
  const auto found = [&](const Bytes& key) -> FileNumber {
    const TablePointer* table = tree[0].find(make_full_key(1, key));
    return table != nullptr ? (*table)->number : 0;
  };
  CHECK(found("a") == 4);
  CHECK(found("c") == 4);
  CHECK(found("d") == 0);
  CHECK(found("n") == 3);
  CHECK(found("q") == 0);

  VersionState copy;
  REQUIRE(copy.apply(state.snapshot()).ok());
  CHECK(copy.version->trees.at(1).size() == 2);

  VersionEdit moved;
  moved.removed_tables = {2, 3, 4};
  remove_unused_value_files(version, moved);
  CHECK(moved.removed_value_files.empty());
  moved.removed_tables.push_back(5);
  remove_unused_value_files(version, moved);
  CHECK(moved.removed_value_files == std::vector<FileNumber>{1});
}

TEST_CASE("version refuses runs that overlap, mix levels or namespaces, and dangling tables") {
  const auto code = [](const TableMetadata& a, const TableMetadata& b) {
    VersionState state;
    VersionEdit edit;
    edit.added_tables = {a, b};
    return state.apply(edit).code();
  };
  const TableMetadata table = table_of(1, 1, 1, "a", "c", 1);
  CHECK(code(table, table_of(2, 1, 1, "d", "e", 1)) == StatusCode::Ok);
  CHECK(code(table, table_of(2, 1, 1, "c", "e", 1)) == StatusCode::Corruption);
  CHECK(code(table, table_of(2, 2, 1, "d", "e", 1)) == StatusCode::Corruption);
  TableMetadata other = table_of(2, 1, 1, "d", "e", 1);
  other.namespace_id = 2;
  CHECK(code(table, other) == StatusCode::Corruption);
  other = table_of(2, 1, 1, "d", "e", 1);
  other.kind = TableKind::Singles;
  CHECK(code(table, other) == StatusCode::Corruption);
  other = table_of(2, 1, 1, "d", "e", 1);
  other.value_files = {{9, 1}};
  CHECK(code(table, other) == StatusCode::Corruption);
}

TEST_CASE(
    "version counts the bytes of each value file that tables point to, edit by edit or replayed") {
  const std::uint64_t seed = test::test_seed(20'261'128);
  CAPTURE(seed);
  SeededRandom random(seed);
  VersionState state;
  VersionReplay replay;
  FileNumber next = 1;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    VersionEdit edit;
    const auto& tables = state.version->tables;
    for (const TablePointer& table : tables)
      if (random.below(4) == 0) edit.removed_tables.push_back(table->number);
    for (std::uint64_t i = random.below(3); i > 0; --i)
      edit.added_value_files.push_back(added_file(next++).added_value_files.front());
    std::vector<FileNumber> files;
    for (const auto& [number, bytes] : state.version->live_bytes) files.push_back(number);
    for (const ValueFileMetadata& file : edit.added_value_files) files.push_back(file.number);
    for (std::uint64_t i = random.below(4); i > 0 && !files.empty(); --i) {
      const auto level = static_cast<std::uint8_t>(random.below(2));
      const Bytes key(1, static_cast<char>('a' + random.below(26)));
      TableMetadata table = table_of(next, level, next, key, key + "z", random.below(50));
      ++next;
      for (const FileNumber file : files)
        if (random.below(3) == 0) table.value_files.push_back({file, 1 + random.below(9)});
      edit.added_tables.push_back(std::move(table));
    }
    if (random.below(8) == 0) {
      const Bytes key = make_full_key(1, Bytes(1, static_cast<char>('a' + random.below(26))));
      edit.range_deletes = {{key, key + "y", random.below(60)}};
    }
    remove_unused_value_files(*state.version, edit);
    REQUIRE(replay.apply(edit).ok());
    const std::size_t files_before = state.version->value_files.size();
    REQUIRE(state.apply(edit).ok());
    const Version& version = *state.version;
    CHECK(version.value_files.size() ==
          files_before + edit.added_value_files.size() - edit.removed_value_files.size());
    std::map<FileNumber, std::uint64_t> live;
    SequenceNumber newest = UINT64_MAX;
    for (const TablePointer& table : version.tables) {
      for (const ValueFileUse& use : table->value_files) live[use.file_number] += use.bytes;
      CHECK(std::exchange(newest, table->sequence_max) >= table->sequence_max);
    }
    REQUIRE(live_of(version) == live);
    for (const auto& [number, bytes] : live) REQUIRE(version.value_files.contains(number));
    for (const FileNumber number : edit.removed_value_files) CHECK_FALSE(live.contains(number));
    VersionState copy;
    REQUIRE(copy.apply(state.snapshot()).ok());
    CHECK(live_of(*copy.version) == live);
    const auto replayed = VersionReplay(replay).finish();
    REQUIRE(replayed.ok());
    REQUIRE(replayed->snapshot().encode() == state.snapshot().encode());
    REQUIRE(live_of(*replayed->version) == live);
    CHECK(replayed->version->level0.size() == version.level0.size());
    CHECK(replayed->version->trees.size() == version.trees.size());
  }
}

TEST_CASE("version refuses edits whose value files are still pointed into, or by nothing") {
  VersionState state;
  VersionEdit edit = added_file(1);
  TableMetadata table = table_of(2, 1, 2, "a", "z", 9);
  table.value_files = {{1, 10}};
  edit.added_tables = {table};
  REQUIRE(state.apply(edit).ok());
  VersionEdit removed;
  removed.removed_value_files = {1};
  CHECK(state.apply(removed).code() == StatusCode::Corruption);
  CHECK(state.version->live_bytes.at(1) == 10);
  removed.removed_tables = {2};
  CHECK(state.apply(removed).ok());
  CHECK(state.version->live_bytes.empty());

  edit.added_tables.front().value_files = {{1, 0}};
  CHECK(VersionState().apply(edit).code() == StatusCode::Corruption);
}

TEST_CASE("version forgets what tables of level 0 pointed to in a dropped namespace") {
  VersionEdit edit = added_file(1);
  edit.added_value_files.push_back(added_file(2).added_value_files.front());
  edit.namespace_id_limit = 3;
  edit.namespaces = {{1, "kept", {}}, {2, "dropped", {}}};
  TableMetadata shared = table_of(3, 0, 3, "a", "z", 9);
  shared.value_files = {{1, 10}, {2, 20}};
  TableMetadata own = table_of(4, 1, 4, "a", "z", 5);
  own.value_files = {{2, 5}};
  edit.added_tables = {shared, own};
  VersionEdit drop;
  drop.dropped_namespaces = {2};
  drop.removed_tables = {4};
  drop.removed_value_files = {2};
  VersionState state;
  VersionReplay replay;
  for (const VersionEdit& each : {edit, drop}) {
    REQUIRE(state.apply(each).ok());
    REQUIRE(replay.apply(each).ok());
  }
  const auto replayed = replay.finish();
  REQUIRE(replayed.ok());
  for (const Version* version : {state.version.get(), replayed->version.get()}) {
    CHECK(live_of(*version) == std::map<FileNumber, std::uint64_t>{{1, 10}});
    REQUIRE(version->level0.size() == 1);
    CHECK(version->level0.front()->value_files.size() == 1);
    CHECK(version->trees.empty());
  }
}

TEST_CASE("version set hands out a removed file when the last version that names it is gone") {
  MemoryFileSystem disk({"/m"});
  auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  REQUIRE((*set)->apply(added_file(1)).ok());
  auto oldest = (*set)->current();
  REQUIRE((*set)->apply(added_file(2)).ok());
  auto reader = (*set)->current();
  VersionEdit edit;
  edit.removed_value_files = {1};
  REQUIRE((*set)->apply(edit).ok());
  edit.removed_value_files = {2};
  REQUIRE((*set)->apply(edit).ok());
  CHECK((*set)->take_obsolete_files().empty());
  CHECK((*set)->has_obsolete_files());
  reader.reset();
  auto files = (*set)->take_obsolete_files();  // the oldest names the first file alone
  REQUIRE(files.size() == 1);
  CHECK(files[0].number == 2);
  CHECK((*set)->has_obsolete_files());
  oldest.reset();
  files = (*set)->take_obsolete_files();
  REQUIRE(files.size() == 1);
  CHECK(files[0].number == 1);
  CHECK(files[0].kind == ObsoleteFile::Kind::Values);
  CHECK_FALSE((*set)->has_obsolete_files());
  CHECK((*set)->take_obsolete_files().empty());
}

TEST_CASE("version set tells what its lists take in memory, where that is much") {
  constexpr std::uint64_t kMebibyte = 1u << 20;
  MemoryFileSystem disk({"/m"});
  const auto set = VersionSet::create(disk, "/m", kStoreId);
  REQUIRE(set.ok());
  CHECK((*set)->memory_bytes() == 0);
  VersionEdit edit;
  edit.file_number_limit = 1 << 20;
  TableMetadata table = table_of(100'000, 1, 100'000, "a", "z", 9);
  for (FileNumber number = 1; number <= 20'000; ++number) {
    edit.added_value_files.push_back(added_file(number).added_value_files.front());
    table.value_files.push_back({number, 10'000});
  }
  edit.added_tables = {table};
  REQUIRE((*set)->apply(edit).ok());
  const std::uint64_t bytes = (*set)->memory_bytes();
  CHECK(bytes % kMebibyte == 0);
  CHECK(bytes >= 20'000 * sizeof(ValueFileMetadata) / kMebibyte * kMebibyte);
  CHECK(bytes < 20'000 * (sizeof(ValueFileMetadata) + 48));

  VersionEdit removed;
  removed.removed_tables = {table.number};
  for (const ValueFileMetadata& file : edit.added_value_files)
    if (file.number > 1000) removed.removed_value_files.push_back(file.number);
  REQUIRE((*set)->apply(removed).ok());
  CHECK((*set)->memory_bytes() == 0);
}

}  // namespace edgecase::engine
