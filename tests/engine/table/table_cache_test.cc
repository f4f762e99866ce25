#include "table/table_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <span>
#include <thread>

#include "engine/table/table_test_store.h"
#include "table/record_cursor.h"
#include "table/table_cursor.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes key_of(int i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

// 1000 entries of 100 bytes, ten or so a group.
void fill(TableTestStore& store, std::uint32_t group_bytes = 1000) {
  store.options.group_bytes = group_bytes;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 1000; ++i)
    entries.push_back({key_of(i * 2), static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       Bytes(100, static_cast<char>('a' + i % 26))});
  REQUIRE(store.write(std::move(entries)).ok());
}

TEST_CASE("a lookup reads one item, and only when the filter lets it") {
  TableTestStore store;
  fill(store);
  const auto& counters = store.cache->counters();
  REQUIRE((*store.cache->get(store.tables[0], key_of(500), true)).has_value());
  CHECK(counters.value_reads == 1);
  CHECK(counters.value_bytes_read < 1400);
  REQUIRE((*store.cache->get(store.tables[0], key_of(500), true)).has_value());
  CHECK(counters.value_reads == 1);

  int absent_reads = 0;
  for (int i = 1; i < 2000; i += 2) {
    const auto before = counters.value_reads.load() + counters.cache_hits.load();
    const auto negatives = counters.filter_negatives.load();
    CHECK_FALSE((*store.cache->get(store.tables[0], key_of(i), true)).has_value());
    const bool between_items = counters.filter_probes.load() == 0;
    if (!between_items && counters.filter_negatives.load() == negatives &&
        counters.value_reads.load() + counters.cache_hits.load() > before + 1)
      ++absent_reads;
  }
  CHECK(absent_reads < 50);
}

TEST_CASE("a cursor that is not asked for contents reads no item") {
  TableTestStore store;
  fill(store);
  const auto& counters = store.cache->counters();
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    const auto cursor = store.cache->cursor(store.tables[0], "", "", direction, true);
    REQUIRE(cursor->valid());
    CHECK(cursor->full_key() == (direction == Direction::Forward ? key_of(0) : key_of(1998)));
  }
  RecordCursor records = store.cache->records({store.tables[0]}, key_of(300));
  while (records.valid()) records.next_record();
  CHECK(records.status().ok());
  CHECK(counters.value_reads == 0);
  const auto inside =
      store.cache->cursor(store.tables[0], key_of(301), "", Direction::Forward, true);
  REQUIRE(inside->valid());
  CHECK(inside->full_key() == key_of(302));
  CHECK(counters.value_reads <= 1);
}

TEST_CASE("the cache and the open files stay within their limits") {
  TableTestStore store;
  fill(store);
  std::vector<std::shared_ptr<const TableMetadata>> tables;
  std::vector<ValueFileMetadata> files;
  for (int i = 0; i < 6; ++i) {
    fill(store);
    tables.push_back(store.tables[0]);
    files.push_back(store.output.value_files[0]);
  }
  constexpr std::uint64_t kBytes = 20u << 10;
  store.open_cache({kBytes, 4});
  for (const auto& file : files) store.cache->add_value_file(file);
  for (int round = 0; round < 3; ++round)
    for (const auto& table : tables)
      for (int i = 0; i < 2000; i += 37) {
        for (int again = 0; again < 2; ++again)
          REQUIRE(store.cache->get(table, key_of(i), true).ok());
        REQUIRE(store.cache->used_bytes() <= kBytes);
      }
  CHECK(store.cache->counters().cache_hits > 0);
}

TEST_CASE("what was read once is not read again while it fits") {
  TableTestStore store;
  fill(store);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 2000; i += 2)
      REQUIRE((*store.cache->get(store.tables[0], key_of(i), true)).has_value());
  CHECK(store.cache->counters().value_reads == store.tables[0]->item_count);
  store.cache->forget(store.tables[0]->number);
  store.cache->forget(store.output.value_files[0].number);
  CHECK(store.cache->used_bytes() == 0);
}

TEST_CASE("scans that do not fill the cache leave it as it is") {
  TableTestStore store;
  fill(store);
  const auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
  const std::uint64_t before = store.cache->used_bytes();
  std::size_t seen = 0;
  for (; cursor->valid(); cursor->next()) {
    REQUIRE(cursor->load().ok());
    ++seen;
  }
  CHECK(seen == 1000);
  CHECK(store.cache->used_bytes() == before);
}

TEST_CASE("scans that follow each other read a block of records once, kept or not") {
  TableTestStore store;
  fill(store);
  const auto scan_all = [&] {
    const std::uint64_t before = store.cache->counters().metadata_block_loads;
    for (int i = 0; i < 2000; i += 2) {
      const auto cursor =
          store.cache->cursor(store.tables[0], key_of(i), key_of(i + 2), Direction::Forward, false);
      REQUIRE(cursor->valid());
    }
    return store.cache->counters().metadata_block_loads - before;
  };
  const std::uint64_t loads = scan_all();
  CHECK(loads > 0);
  CHECK(loads < 20);
  store.cache->forget(store.tables[0]->number);
  CHECK(scan_all() == loads);  // nothing of a file that is gone stays
}

std::uint64_t reads(const TableTestStore& store) {
  return store.disk.operations(test::Operation::Read);
}

std::size_t count_loaded(EntryCursor& cursor) {
  std::size_t seen = 0;
  for (; cursor.valid() && cursor.load().ok(); cursor.next()) {
    REQUIRE(cursor.full_key() == key_of(static_cast<int>(2 * seen)));
    ++seen;
  }
  return seen;
}

TEST_CASE("a cursor that goes on reads several items at once, and gives each its own bytes") {
  TableTestStore store;
  fill(store);
  const std::uint64_t before = reads(store);
  const auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
  CHECK(count_loaded(*cursor) == 1000);
  CHECK(cursor->status().ok());
  CHECK(store.tables[0]->item_count > 90);
  CHECK(reads(store) - before < 30);
  CHECK(store.cache->counters().value_reads < 30);
}

// Groups of several pages, and entries of as many sizes as there are kinds of varints.
std::vector<OwnedEntry> fill_pages(TableTestStore& store) {
  store.options.group_bytes = 16 << 10;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 1000; ++i) {
    const bool is_delete = i % 31 == 30;
    entries.push_back({key_of(i * 2), static_cast<SequenceNumber>(i + 1),
                       is_delete ? EntryKind::Delete : EntryKind::Put,
                       is_delete ? Bytes() : Bytes(static_cast<std::size_t>(i * i % 300), 'v')});
  }
  REQUIRE(store.write(entries).ok());
  return entries;
}

TEST_CASE("a cold get that finds its key reads one page of one group") {
  TableTestStore store;
  const auto entries = fill_pages(store);
  REQUIRE(store.tables[0]->item_count < 15);
  for (const OwnedEntry& entry : entries) {
    CAPTURE(entry.full_key);
    store.open_cache({});
    // Opening the table is not the get's.
    REQUIRE(store.cache->records({store.tables[0]}, entry.full_key).valid());
    const auto& counters = store.cache->counters();
    const std::uint64_t opening = reads(store);
    const auto got = store.cache->get(store.tables[0], entry.full_key, true);
    REQUIRE(got.ok());
    REQUIRE(got->has_value());
    CHECK((*got)->kind == entry.kind);
    CHECK((*got)->value == entry.value);
    CHECK(counters.value_reads == 1);
    CHECK(counters.value_bytes_read <= 2 * kPlainPageBytes);
    // Beside the page the block of its record, and the heads of the file that is opened.
    CHECK(reads(store) - opening <= 5);
  }
}

TEST_CASE("a cursor over mapped tables reads the page it comes to, and more if it goes on") {
  TableTestStore store;
  const auto entries = fill_pages(store);
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    TableCache::Limits limits;
    limits.map_files = true;
    store.open_cache(limits);
    const auto& counters = store.cache->counters();
    const std::size_t at = entries.size() / 2;
    const Bytes& key = entries[at].full_key;
    const bool forward = direction == Direction::Forward;
    const auto cursor = store.cache->cursor(store.tables[0], forward ? ByteView(key) : ByteView(),
                                            forward ? ByteView() : ByteView(key), direction, true);
    REQUIRE(cursor->valid());
    REQUIRE(cursor->load().ok());
    CHECK(cursor->full_key() == entries[forward ? at : at - 1].full_key);
    CHECK(counters.value_bytes_read <= 2 * kPlainPageBytes);
    for (std::size_t i = 0; i < at; ++i, cursor->next()) {
      REQUIRE(cursor->valid());
      REQUIRE(cursor->load().ok());
      const OwnedEntry& entry = entries[forward ? at + i : at - 1 - i];
      REQUIRE(cursor->full_key() == entry.full_key);
      REQUIRE(cursor->kind() == entry.kind);
      REQUIRE(cursor->value() == entry.value);
    }
    if (forward) CHECK(counters.value_reads < 20);
  }
}

TEST_CASE("cursors over pages go both ways, and read a group at once") {
  TableTestStore store;
  const auto entries = fill_pages(store);
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    store.open_cache({});
    const std::uint64_t before = reads(store);
    const auto cursor = store.cache->cursor(store.tables[0], "", "", direction, true);
    for (std::size_t i = 0; i < entries.size(); ++i, cursor->next()) {
      REQUIRE(cursor->valid());
      REQUIRE(cursor->load().ok());
      const bool forward = direction == Direction::Forward;
      const OwnedEntry& entry = entries[forward ? i : entries.size() - 1 - i];
      REQUIRE(cursor->full_key() == entry.full_key);
      REQUIRE(cursor->kind() == entry.kind);
      REQUIRE(cursor->value() == entry.value);
    }
    CHECK_FALSE(cursor->valid());
    CHECK(store.cache->counters().value_reads <= store.tables[0]->item_count);
    CHECK(reads(store) - before < 30);
  }
}

TEST_CASE("a seek between two pages comes to the entries on both sides") {
  TableTestStore store;
  const auto entries = fill_pages(store);
  const auto up = store.cache->cursor(store.tables[0], "", "", Direction::Forward, true);
  const auto down = store.cache->cursor(store.tables[0], "", "", Direction::Reverse, true);
  for (int i = 0; i + 1 < 1000; ++i) {
    CAPTURE(i);
    up->seek(key_of(2 * i + 1));
    REQUIRE(up->valid());
    CHECK(up->full_key() == key_of(2 * i + 2));
    down->seek(key_of(2 * i + 1));
    REQUIRE(down->valid());
    CHECK(down->full_key() == key_of(2 * i));
    down->seek(key_of(2 * i + 2));
    REQUIRE(down->valid());
    CHECK(down->full_key() == key_of(2 * i + 2));
  }
}

TEST_CASE("where several items cannot be read at once, each is read by itself") {
  TableTestStore store;
  fill(store);
  auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
  std::uint64_t whole = reads(store);
  REQUIRE(count_loaded(*cursor) == 1000);
  whole = reads(store) - whole;
  for (std::uint64_t nth = 4; nth <= whole; ++nth) {
    CAPTURE(nth);
    cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
    store.disk.fail_nth(test::Operation::Read, nth, EIO, test::FaultMode::Once);
    const std::size_t seen = count_loaded(*cursor);
    // A failure while a single item or a block is read ends the cursor; it never skips anything.
    if (cursor->status().ok()) {
      CHECK(seen == 1000);
    } else {
      CHECK(cursor->status().code() == StatusCode::IoError);
    }
    store.disk.clear_faults();
  }
  // The last one is a read of many items.
  CHECK(cursor->status().ok());
}

TEST_CASE("a damaged item spoils none of those that were read with it") {
  TableTestStore store;
  fill(store);
  const auto& file = store.output.value_files[0];
  store.disk.flip_bit(store.path_of(file), file.size_bytes * 2 / 3, 3);
  store.open_cache({});
  const auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Forward, false);
  const std::size_t seen = count_loaded(*cursor);
  CHECK(cursor->status().code() == StatusCode::Corruption);
  CHECK(seen > 600);
  CHECK(seen < 700);
  const auto behind = store.cache->cursor(store.tables[0], key_of(2 * static_cast<int>(seen) + 40),
                                          "", Direction::Forward, false);
  for (; behind->valid() && behind->load().ok(); behind->next()) {
  }
  CHECK(behind->status().ok());
}

TEST_CASE("a run holds what the cursor would come to, up to its bound") {
  TableTestStore store;
  fill(store);
  const Bytes upper = key_of(1501);
  const auto runs =
      store.cache->cursor(store.tables[0], key_of(7), upper, Direction::Forward, true);
  const auto steps =
      store.cache->cursor(store.tables[0], key_of(7), upper, Direction::Forward, true);
  std::size_t longest = 0;
  while (runs->valid()) {
    REQUIRE(runs->load().ok());
    const std::span<const EntryView> run = runs->loaded_run();
    REQUIRE(!run.empty());
    longest = std::max(longest, run.size());
    for (const EntryView& entry : run) {
      REQUIRE(steps->valid());
      REQUIRE(steps->load().ok());
      REQUIRE(entry.full_key == steps->full_key());
      REQUIRE(entry.sequence == steps->sequence());
      REQUIRE(entry.kind == steps->kind());
      REQUIRE(entry.value == steps->value());
      steps->next();
    }
    runs->skip(run.size());
  }
  CHECK_FALSE(steps->valid());
  CHECK(longest > 5);
}

TEST_CASE("a cursor over a run goes through its tables, whatever it was lent for before") {
  TableTestStore store;
  std::vector<std::shared_ptr<const TableMetadata>> run;
  std::vector<OwnedEntry> entries;
  for (int part = 0; part < 3; ++part) {
    std::vector<OwnedEntry> of_part;
    for (int i = 0; i < 300; ++i) {
      const Bytes value(static_cast<std::size_t>(i % 100), static_cast<char>('a' + part));
      of_part.push_back({key_of(1000 * part + 2 * i), 1, EntryKind::Put, value});
    }
    entries.insert(entries.end(), of_part.begin(), of_part.end());
    REQUIRE(store.write(of_part).ok());
    REQUIRE(store.tables.size() == 1);
    run.push_back(store.tables[0]);
  }
  SeededRandom random(5);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    LentCursors cursors = store.cache->lend_cursors();
    const Bytes lower =
        random.below(4) == 0 ? Bytes() : key_of(static_cast<int>(random.below(3000)));
    const Bytes upper =
        random.below(4) == 0 ? Bytes() : key_of(static_cast<int>(random.below(3000)));
    const bool forward = random.below(2) == 0;
    const Direction direction = forward ? Direction::Forward : Direction::Reverse;
    TableCursor& cursor = cursors.open(run, {lower, upper, direction, random.below(2) == 0});
    std::vector<const OwnedEntry*> want;
    for (const OwnedEntry& entry : entries) {
      if (entry.full_key >= lower && (upper.empty() || entry.full_key < upper))
        want.push_back(&entry);
    }
    if (!forward) std::reverse(want.begin(), want.end());
    std::size_t at = 0;
    for (std::uint64_t left = random.below(700); left > 0 && cursor.valid(); --left) {
      REQUIRE(at < want.size());
      REQUIRE(cursor.full_key() == want[at]->full_key);
      if (random.below(2) == 0) {
        REQUIRE(cursor.load().ok());
        REQUIRE(cursor.value() == want[at]->value);
        const std::span<const EntryView> ahead = cursor.loaded_run();
        for (std::size_t i = 0; i < ahead.size(); ++i)
          REQUIRE(ahead[i].full_key == want[at + i]->full_key);
      }
      cursor.next();
      ++at;
      if (random.below(30) != 0) continue;
      const Bytes target = key_of(static_cast<int>(random.below(3000)));
      cursor.seek(target);
      at = 0;
      while (at < want.size() &&
             (forward ? want[at]->full_key < target : want[at]->full_key > target))
        ++at;
    }
    REQUIRE(cursor.status().ok());
    CHECK(cursor.valid() == (at < want.size()));
  }
}

TEST_CASE("a cursor lives on when the cache is gone and the files are unlinked") {
  TableTestStore store;
  fill(store);
  auto cursor = store.cache->cursor(store.tables[0], "", "", Direction::Reverse, true);
  REQUIRE(cursor->load().ok());
  REQUIRE(store.disk.remove_file(store.path_of(store.output.value_files[0])).ok());
  REQUIRE(store.disk.remove_file(store.path_of(store.output.tables[0])).ok());
  store.cache.reset();
  std::size_t seen = 0;
  for (; cursor->valid(); cursor->next(), ++seen) REQUIRE(cursor->load().ok());
  CHECK(cursor->status().ok());
  CHECK(seen == 1000);
}

TEST_CASE("many threads read one cache") {
  TableTestStore store;
  fill(store);
  store.open_cache({16u << 10, 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const int n = (i * 7 + t * 131) % 1000;
        const auto got = store.cache->get(store.tables[0], key_of(2 * n), i % 3 != 0);
        if (!got.ok() || !got->has_value() ||
            (*got)->value != Bytes(100, static_cast<char>('a' + n % 26)))
          ++wrong;
        const auto cursor =
            store.cache->cursor(store.tables[0], key_of(2 * n), "",
                                i % 2 == 0 ? Direction::Forward : Direction::Reverse, i % 5 == 0);
        if (!cursor->valid() || !cursor->load().ok()) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace edgecase::engine
