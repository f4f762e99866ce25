// A cursor over one run of several tables: where it begins, where it goes, and what it reads.
#include "table/table_cursor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/table/table_test_store.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;

Bytes key_of(std::uint64_t i) {
  Bytes key = std::to_string(i);
  return make_full_key(1, Bytes(6 - key.size(), '0') + key);
}

constexpr std::uint64_t kLargeBytes = 40'000;  // lies alone

// Three tables with every other key of 300 each; every fiftieth value lies alone.
struct RunStore : test::TableTestStore {
  RunStore() {
    options.group_bytes = 512;
    options.compress = false;
    SequenceNumber sequence = 0;
    for (std::uint64_t begin = 0; begin < 900; begin += 300) {
      std::vector<OwnedEntry> entries;
      for (std::uint64_t i = begin; i < begin + 300; i += 2) {
        const bool removes = i % 14 == 0;
        const Bytes value = removes        ? Bytes()
                            : i % 100 == 6 ? Bytes(kLargeBytes, 'l')
                                           : std::to_string(i) + Bytes(60, 'v');
        model[key_of(i)] = value;
        entries.push_back(
            {key_of(i), ++sequence, removes ? EntryKind::Delete : EntryKind::Put, value});
      }
      next_number += 10;
      REQUIRE(write(std::move(entries)).ok());
      for (const auto& table : tables)
        if (table->kind == TableKind::Groups) run.push_back(table);
      for (const auto& file : output.value_files) {
        files.add_value_file(file);
        paths[file.number] = path_of(file);
      }
    }
  }

  // All of it within the bounds, by next(); checks each entry beside the model.
  std::vector<Bytes> walk(const TableCursorOptions& with) {
    TableCursor cursor;
    cursor.open(files, run, with);
    std::vector<Bytes> seen;
    for (; cursor.valid(); cursor.next()) {
      seen.emplace_back(cursor.full_key());
      REQUIRE(cursor.load().ok());
      const Bytes& want = model.at(seen.back());
      REQUIRE(cursor.value() == want);
      REQUIRE(cursor.kind() == (want.empty() ? EntryKind::Delete : EntryKind::Put));
    }
    REQUIRE(cursor.status().ok());
    return seen;
  }
  // What should come: keys of groups within the bounds.
  std::vector<Bytes> want(ByteView lower, ByteView upper, Direction direction) const {
    std::vector<Bytes> keys;
    for (const auto& [key, value] : model)
      if (value.size() != kLargeBytes && key >= lower && (upper.empty() || key < upper))
        keys.push_back(key);
    if (direction == Direction::Reverse) std::reverse(keys.begin(), keys.end());
    return keys;
  }

  std::map<Bytes, Bytes> model;
  std::map<FileNumber, std::string> paths;  // of value files
  std::vector<std::shared_ptr<const TableMetadata>> run;
  TableFiles files{disk, "/m", "/v", store_id, {}, nullptr};
};

}  // namespace

TEST_CASE("table cursor: it yields all between two keys, in either direction, over all tables") {
  RunStore store;
  REQUIRE(store.run.size() == 3);
  const std::uint64_t seed = test::test_seed(3);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    CAPTURE(static_cast<int>(direction));
    for (int round = 0; round < 60; ++round) {
      const Bytes lower = round % 5 == 0 ? Bytes() : key_of(random.below(920));
      const Bytes upper = round % 4 == 0 ? Bytes() : key_of(random.below(920));
      TableCursorOptions with;
      with.lower = lower;
      with.upper = upper;
      with.direction = direction;
      with.fill_cache = round % 2 == 0;
      CAPTURE(lower);
      CAPTURE(upper);
      REQUIRE(store.walk(with) == store.want(lower, upper, direction));
    }
  }
}

TEST_CASE("table cursor: a seek goes on from the key, forward, and back in the other direction") {
  RunStore store;
  const std::uint64_t seed = test::test_seed(4);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
    CAPTURE(static_cast<int>(direction));
    const std::vector<Bytes> all = store.want("", "", direction);
    TableCursorOptions with;
    with.direction = direction;
    TableCursor cursor;
    cursor.open(store.files, store.run, with);
    std::size_t at = 0;
    while (at < all.size()) {
      REQUIRE(cursor.valid());
      REQUIRE(cursor.full_key() == ByteView(all[at]));
      if (random.below(3) == 0) {
        cursor.next();
        ++at;
        continue;
      }
      // To a key somewhere ahead, which is there or not.
      const std::uint64_t ahead = random.below(60);
      const std::uint64_t from = std::stoull(all[at].substr(all[at].size() - 6));
      const std::uint64_t to = direction == Direction::Forward ? from + ahead
                               : from > ahead                  ? from - ahead
                                                               : 0;
      const Bytes target = key_of(to);
      cursor.seek(target);
      while (at < all.size() &&
             (direction == Direction::Forward ? all[at] < target : all[at] > target))
        ++at;
    }
    CHECK_FALSE(cursor.valid());
    CHECK(cursor.status().ok());
  }
}

TEST_CASE("table cursor: entries that are loaded together may be passed over together") {
  RunStore store;
  TableCursor cursor;
  cursor.open(store.files, store.run, {});
  const std::vector<Bytes> all = store.want("", "", Direction::Forward);
  std::size_t at = 0, together = 0;
  while (cursor.valid()) {
    REQUIRE(cursor.load().ok());
    const auto loaded = cursor.loaded_run();
    if (loaded.empty()) {
      REQUIRE(cursor.full_key() == ByteView(all[at]));
      cursor.next();
      ++at;
      continue;
    }
    together = std::max(together, loaded.size());
    for (std::size_t i = 0; i < loaded.size(); ++i)
      REQUIRE(loaded[i].full_key == ByteView(all[at + i]));
    cursor.skip(loaded.size());
    at += loaded.size();
  }
  CHECK(at == all.size());
  CHECK(together > 1);
}

TEST_CASE(
    "table cursor: opened again it forgets the bounds before, and reads no more than it must") {
  RunStore store;
  TableCursor cursor;
  const Bytes lower = key_of(100), upper = key_of(110);
  TableCursorOptions narrow;
  narrow.lower = lower;
  narrow.upper = upper;
  cursor.open(store.files, store.run, narrow);
  CHECK(cursor.full_key() == ByteView(lower));
  cursor.close();
  cursor.open(store.files, store.run, {});
  CHECK(cursor.full_key() == ByteView(key_of(0)));
  // The first key of a record is told by the record.
  const std::uint64_t reads = store.files.counters().value_reads.load();
  for (int i = 0; i < 10; ++i) cursor.open(store.files, store.run, {});
  CHECK(store.files.counters().value_reads.load() == reads);
}

TEST_CASE("table cursor: damage ends it with an error that names the keys it cannot tell of") {
  RunStore store;
  const auto& damaged = store.run[1];
  const FileNumber number = damaged->value_files.begin()->file_number;
  const std::string& path = store.paths.at(number);
  REQUIRE(store.disk.exists(path));
  // In every item of the table: its large values lie between its groups.
  const std::uint64_t size = *store.disk.file_size(path);
  for (std::uint64_t byte = 128; byte + 512 < size; byte += 32) store.disk.flip_bit(path, byte, 3);
  TableCursor cursor;
  cursor.open(store.files, store.run, {});
  std::size_t seen = 0;
  while (cursor.valid() && cursor.load().ok()) {
    REQUIRE(cursor.value() == ByteView(store.model.at(Bytes(cursor.full_key()))));
    ++seen;
    cursor.next();
  }
  CHECK(cursor.status().code() == StatusCode::Corruption);
  CHECK(seen >= 120);  // all of the table before
  Bytes first, last;
  REQUIRE(cursor.damaged_keys(first, last));
  CHECK(first <= last);
  CHECK(first >= damaged->smallest);
  CHECK(last <= damaged->largest);
}

}  // namespace edgecase::engine
