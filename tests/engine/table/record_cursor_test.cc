#include "table/record_cursor.h"

#include <doctest/doctest.h>

#include <vector>

#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

constexpr int kRecordedEntries = 1'000;

Bytes record_key(int i) {
  const Bytes digits = std::to_string(i);
  return make_full_key(1, Bytes(6 - digits.size(), '0') + digits);
}

// Keys of even numbers.
void fill_records(TableTestStore& store, std::uint32_t group_bytes) {
  store.options.group_bytes = group_bytes;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < kRecordedEntries; ++i)
    entries.push_back({record_key(i * 2), static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       Bytes(100, static_cast<char>('a' + i % 26))});
  REQUIRE(store.write(std::move(entries)).ok());
}

}  // namespace

TEST_CASE("record cursor: it walks records unread, and the entries of an item that it opens") {
  TableTestStore store;
  fill_records(store, 1'000);
  const auto& counters = store.cache->counters();
  RecordCursor cursor = store.cache->records({store.tables[0]});
  int next = 0;
  for (bool opens = false; cursor.valid(); opens = !opens) {
    CHECK(cursor.key() == record_key(2 * next));
    CHECK_FALSE(cursor.is_open());
    if (!opens) {
      next += static_cast<int>(cursor.record().entries);
      const std::uint64_t reads = counters.value_reads;
      cursor.next_record();
      CHECK(counters.value_reads == reads);
      continue;
    }
    REQUIRE(cursor.open_item().ok());
    for (; cursor.valid() && cursor.is_open(); cursor.next_entry(), ++next) {
      REQUIRE(cursor.entry().full_key == record_key(2 * next));
      // Entries of a group share the largest sequence.
      REQUIRE(cursor.entry().sequence >= static_cast<SequenceNumber>(next + 1));
      REQUIRE(cursor.entry().value == Bytes(100, static_cast<char>('a' + next % 26)));
    }
  }
  CHECK(cursor.status().ok());
  CHECK(next == kRecordedEntries);
}

TEST_CASE("record cursor: a seek goes on to the record that may hold the key, or to the end") {
  TableTestStore store;
  fill_records(store, 1'000);
  RecordCursor cursor = store.cache->records({store.tables[0]}, record_key(301));
  for (int i = 301; i < 2 * kRecordedEntries - 2; i += 7) {
    CAPTURE(i);
    cursor.seek_record(record_key(i));
    REQUIRE(cursor.valid());
    CHECK(cursor.record().last >= record_key(i));
    CHECK(cursor.record().first <= record_key(i + 1));
  }
  CHECK(store.cache->counters().value_reads == 0);
  cursor.seek_record(record_key(2 * kRecordedEntries));
  CHECK_FALSE(cursor.valid());
  CHECK(cursor.status().ok());
}

TEST_CASE(
    "record cursor: one that looks for a key reads one page of its group, once for its "
    "neighbours") {
  TableTestStore store;
  fill_records(store, 16'000);
  const auto& counters = store.cache->counters();
  RecordCursor cursor = store.cache->records({store.tables[0]});
  std::uint64_t found = 0;
  for (int i = 0; i < 2000; ++i) {
    const Bytes key = record_key(i);
    const SoughtKey sought(key);
    const auto newer = cursor.supersedes(sought, 0);
    REQUIRE(newer.ok());
    CHECK(*newer == (i % 2 == 0));
    CHECK_FALSE(*cursor.supersedes(sought, 1000));
    if (*newer) ++found;
  }
  CHECK(found == 1000);
  CHECK(counters.value_reads < 100);
  CHECK(counters.value_bytes_read < 130'000);  // each page once
  RecordCursor other = store.cache->records({store.tables[0]});
  const auto before = counters.value_bytes_read.load();
  const Bytes key = record_key(1000);
  REQUIRE(*other.supersedes(SoughtKey(key), 0));
  CHECK(counters.value_bytes_read < before + 2'000);
}

}  // namespace edgecase::engine
