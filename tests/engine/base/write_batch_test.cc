#include "edgecase/write_batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/entry.h"
#include "edgecase/machine.h"
#include "edgecase/options.h"
#include "support/test_seed.h"

using namespace edgecase;
using namespace edgecase::engine;

namespace {

struct OwnedBatchEntry {
  EntryKind kind;
  NamespaceId namespace_id;
  Bytes key;
  Bytes value;

  bool operator==(const OwnedBatchEntry&) const = default;
};

struct Read {
  std::vector<OwnedBatchEntry> entries;
  Status status;
};

// Reads all entries of encoded bytes, or of a batch.
template <typename Batch>
Read read_all(const Batch& encoded) {
  Read read;
  WriteBatchReader reader(encoded);
  while (const auto* entry = reader.next()) {
    read.entries.push_back({entry->kind, entry->namespace_id, Bytes(entry->key),
                            Bytes(entry->value).append(entry->end)});
  }
  read.status = reader.status();
  return read;
}

}  // namespace

TEST_CASE("write batch: what went in comes out in order") {
  WriteBatch batch;
  batch.put(1, "key", "value");
  batch.put(4'000'000'000, "", Bytes(300, 'x'));
  batch.remove(7, "gone");
  CHECK(batch.count() == 3);
  CHECK_FALSE(batch.over_limit());
  const Read read = read_all(batch.encoded());
  CHECK(read.status.ok());
  REQUIRE(read.entries.size() == 3);
  CHECK(read.entries[0].kind == EntryKind::Put);
  CHECK(read.entries[0].namespace_id == 1);
  CHECK(read.entries[0].key == "key");
  CHECK(read.entries[0].value == "value");
  CHECK(read.entries[1].namespace_id == 4'000'000'000);
  CHECK(read.entries[1].key.empty());
  CHECK(read.entries[1].value.size() == 300);
  CHECK(read.entries[2].kind == EntryKind::Delete);
  CHECK(read.entries[2].key == "gone");
  batch.clear();
  CHECK(batch.count() == 0);
  CHECK(batch.encoded().empty());
}

TEST_CASE("write batch: the encoding is the documented one") {
  WriteBatch batch;
  batch.put(300, "k", "vw");
  batch.remove(1, "d");
  CHECK(batch.encoded() == ByteView("\x01\xac\x02\x01k\x02vw\x02\x01\x01"
                                    "d",
                                    12));
}

TEST_CASE("write batch: ranges are deleted or erased, each with its documented encoding") {
  for (const bool erased : {false, true}) {
    CAPTURE(erased);
    WriteBatch batch;
    if (erased) {
      batch.erase_range(3, "b", "cd");
    } else {
      batch.remove_range(3, "b", "cd");
    }
    const unsigned char kind = erased ? 5 : 4;
    const Bytes wanted{static_cast<char>(kind), 3, 1, 'b', 2, 'c', 'd'};
    CHECK(batch.encoded() == wanted);
    CHECK(batch.range_deletes() == 1);
    const Read read = read_all(batch.encoded());
    REQUIRE(read.entries.size() == 1);
    CHECK(read.entries[0].kind == (erased ? EntryKind::EraseRange : EntryKind::DeleteRange));
    CHECK(read.entries[0].value == "cd");
  }
}

TEST_CASE("write batch: of a key like the one before only the bytes that differ are written") {
  WriteBatch batch;
  batch.put(300, "key-0-end", "v");
  const std::size_t first_bytes = batch.encoded().size();
  batch.put(300, "key-1-end", "w");
  CHECK(batch.encoded().substr(first_bytes) == ByteView("\x03\x04\x01"
                                                        "1\x01w",
                                                        6));
  batch.put(300, "key-1-end", "");
  batch.put(300, "key-1-eng", "");
  batch.put(300, "Key-1-eng", "");
  batch.put(300, "key-1-eng-", "");  // longer
  batch.put(301, "key-1-ens-", "");  // another namespace
  batch.remove(301, "key-1-ens-");   // deletes are always whole
  batch.put(301, "kex-1-ent-", "z");
  const Read read = read_all(batch.encoded());
  CHECK(read.status.ok());
  const std::vector<OwnedBatchEntry> wanted = {
      {EntryKind::Put, 300, "key-0-end", "v"},  {EntryKind::Put, 300, "key-1-end", "w"},
      {EntryKind::Put, 300, "key-1-end", ""},   {EntryKind::Put, 300, "key-1-eng", ""},
      {EntryKind::Put, 300, "Key-1-eng", ""},   {EntryKind::Put, 300, "key-1-eng-", ""},
      {EntryKind::Put, 301, "key-1-ens-", ""},  {EntryKind::Delete, 301, "key-1-ens-", ""},
      {EntryKind::Put, 301, "kex-1-ent-", "z"},
  };
  CHECK(read.entries == wanted);
}

TEST_CASE("write batch: keys of two words may differ in any of their bytes, or in none") {
  SeededRandom random(3);
  WriteBatch batch;
  std::vector<OwnedBatchEntry> wanted;
  std::string key(16, 'k');
  std::size_t expected_bytes = 0;
  for (std::size_t begin = 0; begin <= key.size(); ++begin) {
    for (std::size_t end = begin; end <= key.size(); ++end) {
      // The first and the last of the bytes differ, those between may.
      for (std::size_t at = begin; at < end; ++at) {
        const bool must = at == begin || at + 1 == end;
        key[at] = static_cast<char>(key[at] + (must ? 1 : static_cast<int>(random.below(2))));
      }
      const std::string value(random.below(2) == 0 ? 9 : random.below(20), 'v');
      batch.put(7, key, value);
      wanted.push_back({EntryKind::Put, 7, key, value});
      const bool is_first = wanted.size() == 1;
      expected_bytes += (is_first ? 3 + key.size() : 3 + end - begin) + 1 + value.size();
    }
  }
  CHECK(batch.encoded_bytes() == expected_bytes);
  const Read read = read_all(batch.encoded());
  CHECK(read.status.ok());
  CHECK(read.entries == wanted);
}

TEST_CASE("write batch: any keys and values come back, and count whole against the limit") {
  const std::uint64_t seed = test::test_seed(12);
  CAPTURE(seed);
  SeededRandom random(seed);
  WriteBatch batch;
  for (int round = 0; round < 200; ++round) {
    batch.clear();
    std::vector<OwnedBatchEntry> wanted;
    std::size_t whole_bytes = 0;
    for (std::uint64_t i = random.below(50); i > 0; --i) {
      Bytes key(
          wanted.empty() || random.below(10) == 0 ? random.below(140) : wanted.back().key.size(),
          'k');
      for (std::uint64_t changes = random.below(4); changes > 0 && !key.empty(); --changes) {
        key[random.below(key.size())] = static_cast<char>(random.below(256));
      }
      const bool is_put = random.below(10) != 0;
      const NamespaceId id = random.below(10) == 0 ? 200 : 1;
      wanted.push_back({is_put ? EntryKind::Put : EntryKind::Delete, id, key,
                        Bytes(is_put ? random.below(20) : 0, 'v')});
      const OwnedBatchEntry& entry = wanted.back();
      WriteBatch alone;
      if (is_put) {
        batch.put(id, entry.key, entry.value);
        alone.put(id, entry.key, entry.value);
      } else {
        batch.remove(id, entry.key);
        alone.remove(id, entry.key);
      }
      whole_bytes += alone.encoded().size();
    }
    const Read read = read_all(batch.encoded());
    REQUIRE(read.status.ok());
    REQUIRE(read.entries == wanted);
    CHECK(batch.size_bytes() == whole_bytes);
    CHECK(batch.encoded().size() <= whole_bytes);
  }
}

TEST_CASE("write batch: of one entry it is known where it lies, as the reader finds it") {
  WriteBatch batch;
  for (const NamespaceId id : {1u, 200u, 4'000'000'000u}) {
    for (const std::size_t key_bytes : {0u, 1u, 16u, 127u, 128u, 300u}) {
      for (const std::size_t value_bytes : {0u, 9u, 127u, 128u, 20'000u}) {
        const Bytes key(key_bytes, 'k');
        const Bytes value(value_bytes, 'v');
        // What it held before is no part of it.
        batch.put(id, Bytes(key_bytes, 'o'), Bytes(9, 'o'));
        batch.clear();
        batch.put(id, key, ByteView(value).substr(0, value_bytes / 3),
                  ByteView(value).substr(value_bytes / 3));
        const BatchEntry put = batch.only_entry();
        CHECK(OwnedBatchEntry{put.kind, put.namespace_id, Bytes(put.key), Bytes(put.value)} ==
              read_all(batch).entries.front());
        CHECK(put.value == value);
        batch.clear();
        batch.remove(id, key);
        const BatchEntry removed = batch.only_entry();
        CHECK(removed.kind == EntryKind::Delete);
        CHECK(removed.namespace_id == id);
        CHECK(removed.key == key);
        CHECK(removed.value.empty());
        batch.clear();
      }
    }
  }
}

TEST_CASE("write batch reader: a near put needs a key before it that has those bytes") {
  CHECK(read_all(ByteView("\x03\x00\x00\x00", 4)).status.code() == StatusCode::Corruption);
  const Bytes first("\x01\x01\x02kk\x00", 6);
  CHECK(read_all(first + Bytes("\x03\x01\x01j\x00", 5)).status.ok());
  CHECK_FALSE(read_all(first + Bytes("\x03\x02\x01j\x00", 5)).status.ok());
  CHECK_FALSE(read_all(first + Bytes("\x03\x00\x03jjj\x00", 7)).status.ok());
  const Bytes long_key = Bytes("\x01\x01\x80\x01", 4) + Bytes(128, 'k') + Bytes(1, '\0');
  CHECK(read_all(long_key).status.ok());
  CHECK_FALSE(read_all(long_key + Bytes("\x03\x00\x00\x00", 4)).status.ok());
}

TEST_CASE("write batch: a key or value over its limit marks the batch") {
  WriteBatch batch;
  batch.put(1, Bytes(kKeySizeMaxBytes, 'k'), "v");
  CHECK_FALSE(batch.over_limit());
  batch.put(1, Bytes(kKeySizeMaxBytes + 1, 'k'), "v");
  CHECK(batch.over_limit());
  batch.clear();
  CHECK_FALSE(batch.over_limit());
  batch.remove(1, Bytes(kKeySizeMaxBytes + 1, 'k'));
  CHECK(batch.over_limit());
  batch.clear();
  batch.put(1, "k", Bytes(kValueSizeMaxBytes + 1, 'v'));
  CHECK(batch.over_limit());
  CHECK(batch.count() == 0);
}

TEST_CASE("write batch reader: a cut inside an entry is corruption, between entries the end") {
  WriteBatch batch;
  std::vector<std::size_t> ends{0};
  for (int i = 0; i < 4; ++i) {
    batch.put(static_cast<NamespaceId>(i / 2), "key" + std::to_string(i), Bytes(10, 'v'));
    ends.push_back(batch.encoded().size());
  }
  for (std::size_t size = 0; size <= batch.encoded().size(); ++size) {
    CAPTURE(size);
    const std::vector<char> exact(batch.encoded().begin(),
                                  batch.encoded().begin() + static_cast<std::ptrdiff_t>(size));
    const Read read = read_all(ByteView(exact.data(), exact.size()));
    const bool whole = std::count(ends.begin(), ends.end(), size) == 1;
    CHECK(read.status.ok() == whole);
    if (!whole) CHECK(read.status.code() == StatusCode::Corruption);
  }
}

TEST_CASE("write batch reader: any bytes are read within their bounds") {
  const std::uint64_t seed = test::test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> bytes(random.below(40));
    for (char& byte : bytes) byte = static_cast<char>(random.below(5));
    const Read read = read_all(ByteView(bytes.data(), bytes.size()));
    CHECK(read.entries.size() <= bytes.size());
  }
}

TEST_CASE(
    "write batch: one that borrows is read, and reads when put together, as one that copies") {
  const std::uint64_t seed = test::test_seed(5);
  CAPTURE(seed);
  SeededRandom random(seed);
  for (int round = 0; round < 200; ++round) {
    WriteBatch copies, borrows;
    std::vector<Bytes> ends;
    ends.reserve(8);
    for (std::uint64_t left = random.below(8); left > 0; --left) {
      const Bytes key = "key" + std::to_string(random.below(100));
      const Bytes begin(random.below(3), 'b');
      const bool is_large = random.below(3) == 0;
      const Bytes& end =
          ends.emplace_back((is_large ? WriteBatch::kBorrowedMinBytes : 0) + random.below(5), 'e');
      copies.put(1, key, begin + end);
      borrows.put(1, key, begin, end);
      if (random.below(4) == 0) {
        copies.remove(2, key);
        borrows.remove(2, key);
      }
    }
    Bytes whole;
    std::size_t at = 0;
    for (const auto& [place, end] : borrows.borrowed()) {
      CHECK(end.size() >= WriteBatch::kBorrowedMinBytes);
      whole.append(borrows.encoded().substr(at, place - at)).append(end);
      at = place;
    }
    whole.append(borrows.encoded().substr(at));
    CHECK(whole == copies.encoded());
    CHECK(borrows.encoded_bytes() == copies.encoded_bytes());
    CHECK(borrows.size_bytes() == copies.size_bytes());
    CHECK(borrows.count() == copies.count());
    CHECK(read_all(borrows).entries == read_all(copies).entries);
    borrows.clear();
    CHECK(borrows.encoded_bytes() == 0);
    CHECK(borrows.borrowed().empty());
  }
}
