// Small tables, damaged at every bit and cut at every length: what is read is an error or exactly
// what was written.
#include <doctest/doctest.h>

#include <bit>

#include "base/coding.h"
#include "engine/table/table_test_store.h"
#include "file/table_file.h"
#include "metadata/umeta_table.h"
#include "table/record_cursor.h"
#include "value/group.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes real_number(double value) {
  Bytes bytes(1, kFloatTag);
  append_fixed64(bytes, std::bit_cast<std::uint64_t>(value));
  return bytes;
}

std::vector<OwnedEntry> few_entries() {
  std::vector<OwnedEntry> entries;
  SequenceNumber sequence = 0;
  for (const NamespaceId id : {1u, 2u})
    for (const char* series : {"a", "b"})
      for (char i = 0; i < 6; ++i) {
        const Bytes key = Bytes(series) + Bytes(7, '\0') + Bytes(1, i);
        OwnedEntry entry{make_full_key(id, key), ++sequence, EntryKind::Put,
                         real_number(20 + i * 0.1)};
        if (i == 2) entry.value = "text";
        if (i == 3) entry.kind = EntryKind::Delete, entry.value.clear();
        if (i == 4) entry.value = Bytes(70, 'L');
        entries.push_back(std::move(entry));
      }
  return entries;
}

void fill_few(TableTestStore& store) {
  store.options.coalesce_threshold_bytes = 64;
  store.options.group_bytes = 80;
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 1};
  store.namespaces[2] = {Placement::Metadata, GroupCodec::Plain, 0};
  REQUIRE(store.write(few_entries()).ok());
}

// Two plain groups of a few pages each.
std::vector<OwnedEntry> paged_entries() {
  std::vector<OwnedEntry> entries;
  for (char i = 0; i < 9; ++i)
    entries.push_back({make_full_key(1, Bytes("key ") + static_cast<char>('a' + i)),
                       static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       Bytes(560, static_cast<char>('A' + i))});
  return entries;
}

std::vector<OwnedEntry> fill_few_pages(TableTestStore& store, bool compress = false) {
  store.options.group_bytes = 3100;
  store.options.compress = compress;
  auto entries = paged_entries();
  REQUIRE(store.write(entries).ok());
  REQUIRE(store.tables.size() == 1);
  REQUIRE(store.tables[0]->item_count == 2);
  return entries;
}

struct Read {
  std::size_t right = 0;
  std::size_t errors = 0;
};

bool acceptable(const Status& status) {
  return status.code() == StatusCode::Corruption || status.code() == StatusCode::Unsupported ||
         status.code() == StatusCode::Unavailable;
}

// Reads everything in every way; fails the test on anything that was never written.
Read read_all(TableTestStore& store, const std::vector<OwnedEntry>& entries) {
  Read read;
  store.open_cache({});
  for (const auto& table : store.tables) {
    for (const OwnedEntry& entry : entries) {
      const auto got = store.cache->get(table, entry.full_key, false);
      if (!got.ok()) {
        REQUIRE(acceptable(got.status()));
        ++read.errors;
      } else if (got->has_value()) {
        REQUIRE((*got)->kind == entry.kind);
        REQUIRE((*got)->value == entry.value);
        ++read.right;
      }
    }
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
      std::size_t entries_seen = 0;
      const auto cursor = store.cache->cursor(table, "", "", direction, false);
      for (; cursor->valid(); cursor->next()) {
        if (!cursor->load().ok()) break;
        ++entries_seen;
        const auto want = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
          return entry.full_key == cursor->full_key();
        });
        REQUIRE(want != entries.end());
        REQUIRE(cursor->kind() == want->kind);
        REQUIRE(cursor->value() == want->value);
      }
      if (!cursor->status().ok()) {
        REQUIRE(acceptable(cursor->status()));
        ++read.errors;
      } else {
        REQUIRE(entries_seen == table->entry_count);
        ++read.right;
      }
    }
    RecordCursor records = store.cache->records({table});
    while (records.valid()) records.next_record();
    if (!records.status().ok()) REQUIRE(acceptable(records.status()));
  }
  return read;
}

std::vector<std::string> paths_of(const TableTestStore& store) {
  std::vector<std::string> paths;
  for (const auto& file : store.output.value_files) paths.push_back(store.path_of(file));
  for (const auto& table : store.output.tables) paths.push_back(store.path_of(table));
  return paths;
}

// Every byte of every file, one bit of it.
void check_flips(TableTestStore& store, const std::vector<OwnedEntry>& entries) {
  const Read whole = read_all(store, entries);
  REQUIRE(whole.errors == 0);
  REQUIRE(whole.right == entries.size() + 2 * store.tables.size());
  for (const std::string& path : paths_of(store)) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    for (std::size_t byte = 0; byte < original.size(); ++byte) {
      CAPTURE(byte);
      Bytes damaged = original;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
      store.disk.set_contents(path, damaged);
      const Read read = read_all(store, entries);
      // Nothing is taken for missing: an entry that is not found is told as an error.
      CHECK((read.errors > 0 || read.right == whole.right));
    }
    store.disk.set_contents(path, original);
  }
}

// Cuts a value table: the items before the cut are read.
void check_cuts(TableTestStore& store, const std::vector<OwnedEntry>& entries) {
  const Read whole = read_all(store, entries);
  for (const std::string& path : paths_of(store)) {
    CAPTURE(path);
    const Bytes original = store.disk.contents(path);
    for (std::size_t size = 0; size < original.size(); ++size) {
      CAPTURE(size);
      store.disk.set_contents(path, original.substr(0, size));
      const Read read = read_all(store, entries);
      CHECK((read.errors > 0 || (path.ends_with(".val") && read.right == whole.right)));
    }
    store.disk.set_contents(path, original + "x");
    const Read longer = read_all(store, entries);
    CHECK((longer.errors > 0 || (path.ends_with(".val") && longer.right == whole.right)));
    store.disk.set_contents(path, original);
  }
}

TEST_CASE("a bit flipped anywhere in a table is an error or does no harm") {
  TableTestStore store;
  fill_few(store);
  REQUIRE(store.output.tables.size() == 2);
  REQUIRE(store.output.value_files.size() == 2);
  check_flips(store, few_entries());
}

TEST_CASE("a bit flipped anywhere in groups of pages is an error or does no harm") {
  TableTestStore store;
  check_flips(store, fill_few_pages(store));
}

TEST_CASE("a bit flipped anywhere in packed groups is an error or does no harm") {
  TableTestStore store;
  check_flips(store, fill_few_pages(store, true));
}

TEST_CASE("a table cut at any length is an error") {
  TableTestStore store;
  fill_few(store);
  check_cuts(store, few_entries());
}

TEST_CASE("groups of pages cut at any length are an error") {
  TableTestStore store;
  check_cuts(store, fill_few_pages(store));
  TableTestStore packed;
  check_cuts(packed, fill_few_pages(packed, true));
}

TEST_CASE(
    "whoever walks along records is told of one that is malformed, whatever the checksum says") {
  TableTestStore store;
  fill_few(store);
  std::size_t told = 0;
  for (const auto& table : store.tables) {
    const std::string path = store.path_of(*table);
    const Bytes original = store.disk.contents(path);
    const auto reader = UMetaReader::open_any(*store.disk.open_file(path));
    REQUIRE(reader.ok());
    REQUIRE((*reader)->blocks().size() == 1);
    const auto& block = (*reader)->blocks().front();
    for (std::size_t byte = 4; byte < block.size; ++byte) {
      CAPTURE(byte);
      Bytes damaged = original;
      char* const begin = damaged.data() + block.offset;
      begin[byte] = static_cast<char>(begin[byte] ^ (1 << byte % 8));
      encode_fixed32(
          begin, placed_crc32c(table->number, block.offset, ByteView(begin, block.size).substr(4)));
      store.disk.set_contents(path, damaged);
      store.open_cache({});
      // Step by step, and in one stride.
      RecordCursor steps = store.cache->records({table});
      std::size_t records = 0;
      for (; steps.valid(); steps.next_record()) ++records;
      RecordCursor stride = store.cache->records({table}, table->largest);
      if (UMetaBlock::parse(Bytes(begin, block.size))) {
        CHECK(steps.status().ok());
        CHECK(records == table->item_count);
        continue;
      }
      ++told;
      CHECK(steps.status().code() == StatusCode::Corruption);
      CHECK((stride.valid() || stride.status().code() == StatusCode::Corruption));
    }
    store.disk.set_contents(path, original);
  }
  CHECK(told > 50);
}

TEST_CASE("a packed page that lies about its size is an error, whatever the checksum says") {
  TableTestStore store;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 40; ++i)
    entries.push_back({make_full_key(1, "key " + std::to_string(100 + i)),
                       static_cast<SequenceNumber>(i + 1), EntryKind::Put, Bytes(300, 'v')});
  REQUIRE(store.write(entries).ok());
  const auto& file = store.output.value_files[0];
  const std::string path = store.path_of(file);
  Bytes bytes = store.disk.contents(path);
  const auto reader = ValueTableReader::open_any(*store.disk.open_file(path));
  REQUIRE(reader.ok());
  const auto summary = (*reader)->summary();
  REQUIRE(summary.ok());
  const ValuePointer& item = summary->items[0];
  const std::size_t group = item.offset_bytes + kItemHeadBytes;
  const auto pages = plain_pages(ByteView(bytes).substr(group, item.size_bytes - kItemHeadBytes));
  REQUIRE(pages.has_value());
  REQUIRE(pages->size() > 2);
  const PlainPage& page = (*pages)[1];
  char* const begin = bytes.data() + group + page.offset;
  REQUIRE(is_packed_page({begin, page.size}));
  ++begin[kPageChecksumBytes + 1];
  encode_fixed32(begin, placed_crc32c(file.number, group + page.offset,
                                      ByteView(begin, page.size).substr(kPageChecksumBytes)));
  store.disk.set_contents(path, bytes);
  store.open_cache({});
  const auto get = [&](std::size_t entry) {
    return store.cache->get(store.tables[0], entries[entry].full_key, true).status().code();
  };
  CHECK(get(0) == StatusCode::Ok);
  CHECK(get(page.first_entry) == StatusCode::Corruption);
  const auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
  std::size_t seen = 0;
  for (; cursor->valid() && cursor->load().ok(); cursor->next()) ++seen;
  CHECK(cursor->status().code() == StatusCode::Corruption);
  CHECK(seen <= page.first_entry);
}

TEST_CASE("a page is told from another one, also from the same place in another group") {
  TableTestStore store;
  const auto entries = fill_few_pages(store);
  const auto& file = store.output.value_files[0];
  const std::string path = store.path_of(file);
  const Bytes original = store.disk.contents(path);
  const auto reader = ValueTableReader::open_any(*store.disk.open_file(path));
  REQUIRE(reader.ok());
  const auto summary = (*reader)->summary();
  REQUIRE(summary.ok());
  const ValuePointer& item = summary->items[0];
  const auto pages = plain_pages(ByteView(original).substr(item.offset_bytes + kItemHeadBytes,
                                                           item.size_bytes - kItemHeadBytes));
  REQUIRE(pages.has_value());
  REQUIRE(pages->size() == 2);
  for (const std::size_t from : {0u, 1u}) {
    CAPTURE(from);
    // What stands in a page's place is as long, sound where it came from, and none of its entries.
    const PlainPage& to = (*pages)[1 - from];
    const std::size_t begin = item.offset_bytes + kItemHeadBytes + to.offset;
    Bytes moved = original;
    const PlainPage& source = (*pages)[from];
    const std::size_t size = std::min(to.size, source.size);
    moved.replace(begin, size, original, item.offset_bytes + kItemHeadBytes + source.offset, size);
    store.disk.set_contents(path, moved);
    store.open_cache({});
    const Bytes& key = entries[to.first_entry].full_key;
    CHECK(store.cache->get(store.tables[0], key, true).status().code() == StatusCode::Corruption);
    const Bytes& other = entries[source.first_entry].full_key;
    CHECK((*store.cache->get(store.tables[0], other, true)).has_value());
  }
}

TEST_CASE("errors name the file and the byte") {
  TableTestStore store;
  fill_few(store);
  const auto& file = store.output.value_files[0];
  const std::string path = store.path_of(file);
  store.disk.flip_bit(path, 100, 3);
  // The first item is the large value: its group was still open.
  const auto got = store.cache->get(store.tables[1], few_entries()[4].full_key, true);
  REQUIRE_FALSE(got.ok());
  CHECK(got.status().code() == StatusCode::Corruption);
  CHECK(got.status().message() == path + " at byte 96: wrong checksum of an item");
}

}  // namespace
}  // namespace edgecase::engine
