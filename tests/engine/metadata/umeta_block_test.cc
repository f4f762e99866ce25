#include "metadata/umeta_block.h"

#include <doctest/doctest.h>

#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

constexpr std::uint64_t kFile = 9;
constexpr std::uint64_t kOffset = 4242;

struct OwnedRecord {
  Bytes first;
  Bytes last;
  UMetaRecord record;
};

OwnedRecord group(const Bytes& first, const Bytes& last, ValuePointer pointer,
                  std::uint64_t entries = 3) {
  OwnedRecord owned{first, last, {}};
  owned.record.type = ItemType::PlainGroup;
  owned.record.entries = entries;
  owned.record.deletes = 1;
  owned.record.sequence_min = 5;
  owned.record.sequence_max = UINT64_MAX;
  owned.record.pointer = pointer;
  return owned;
}

OwnedRecord single(const Bytes& key, ValuePointer pointer) {
  OwnedRecord owned = group(key, key, pointer, 1);
  owned.record.type = ItemType::Single;
  owned.record.deletes = 0;
  owned.record.sequence_min = owned.record.sequence_max = 8;
  return owned;
}

std::vector<OwnedRecord> some_records() {
  std::vector<OwnedRecord> records = {
      group(make_full_key(1, ""), make_full_key(1, "ab"), {7, 96, 100}),
      group(make_full_key(1, "abc"), make_full_key(1, "abd"), {7, 196, 50}),
      single(make_full_key(1, "b"), {7, 1000, 5'000'000}),
      single(make_full_key(1, Bytes(1024, 'c')), {8, 96, 17}),
      group(make_full_key(2, Bytes(1000, 'd')), make_full_key(3, Bytes(1024, '\xff')),
            {7, UINT64_MAX / 4, UINT32_MAX}),
      group(make_full_key(4, "x"), make_full_key(4, "x"), {7, 0, 1}, 1),
  };
  records[1].record.pages = "what the value layer says of pages";
  records[5].record.type = ItemType::SeriesGroup;
  records[5].record.numbers = "what is known of numbers";
  for (OwnedRecord& owned : records) {
    owned.record.first = owned.first;
    owned.record.last = owned.last;
  }
  return records;
}

Bytes encoded(const std::vector<OwnedRecord>& records) {
  UMetaBlockBuilder builder;
  for (const OwnedRecord& owned : records) {
    EntryView entry;
    entry.full_key = owned.first;
    Bytes filter;
    append_item_filter(filter, owned.record.type, owned.record.pointer.size_bytes,
                       std::span(&entry, 1));
    UMetaRecord record = owned.record;
    record.filter = filter;
    builder.add(record);
  }
  return Bytes(builder.finish(kFile, kOffset));
}

using Begin = std::optional<UMetaBlock> (*)(Bytes);
constexpr Begin kBegins[] = {UMetaBlock::parse, UMetaBlock::begin};

// Nothing when the block is malformed.
std::optional<UMetaCursor> opened(Bytes bytes, Begin begin = UMetaBlock::parse) {
  std::optional<UMetaBlock> block = begin(std::move(bytes));
  if (!block) return std::nullopt;
  std::optional<UMetaCursor> cursor(std::in_place);
  cursor->open(std::make_shared<const UMetaBlock>(*std::move(block)));
  return cursor;
}

std::size_t found(UMetaCursor& cursor, ByteView key) {
  return cursor.find(key) ? cursor.index() : cursor.size();
}

TEST_CASE("records come back as they were") {
  const auto records = some_records();
  for (const Begin begin : kBegins) {
    auto block = opened(encoded(records), begin);
    REQUIRE(block.has_value());
    REQUIRE(block->size() == records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
      CAPTURE(i);
      REQUIRE(block->select(i));
      const UMetaRecord& got = block->record();
      const UMetaRecord& want = records[i].record;
      CHECK(got.type == want.type);
      CHECK(got.first == want.first);
      CHECK(got.last == want.last);
      CHECK(got.entries == want.entries);
      CHECK(got.deletes == want.deletes);
      CHECK(got.sequence_min == want.sequence_min);
      CHECK(got.sequence_max == want.sequence_max);
      CHECK(got.pointer == want.pointer);
      CHECK(got.pages == want.pages);
      CHECK(got.numbers == want.numbers);
      CHECK(found(*block, want.last) == i);
      CHECK(found(*block, want.first) == i);
      CHECK(found(*block, Bytes(want.last) + '\0') == i + 1);
    }
    CHECK(found(*block, "") == 0);
    for (const std::size_t i : {0u, 1u, 4u}) {
      REQUIRE(block->select(i));
      const Bytes filter(block->record().filter);
      REQUIRE(!filter.empty());
      CHECK(filter_may_contain(filter, *filter_hash(ItemType::PlainGroup, records[i].first)));
      CHECK_FALSE(filter_may_contain(filter, *filter_hash(ItemType::PlainGroup, "another")));
    }
    REQUIRE(block->select(2));
    CHECK(block->record().filter.empty());
  }
}

TEST_CASE("any record is found from any other") {
  constexpr std::size_t kRecords = 60;
  std::vector<OwnedRecord> records;
  for (std::size_t i = 0; i < kRecords; ++i) {
    // Keys of which eight bytes behind the common ones tell nothing, and ever longer ones.
    const Bytes first = make_full_key(3, "key of many " + std::to_string(100 + i));
    const ValuePointer pointer{i / 25, 1000 * i, 900};
    records.push_back(i % 3 == 0 ? single(first + Bytes(10 * i, 'x'), pointer)
                                 : group(first, first + Bytes(i, 'z'), pointer));
  }
  for (OwnedRecord& owned : records) {
    owned.record.first = owned.first;
    owned.record.last = owned.last;
  }
  for (const Begin begin : kBegins) {
    auto block = opened(encoded(records), begin);
    REQUIRE(block.has_value());
    const auto stands_at = [&](std::size_t i) {
      REQUIRE(block->index() == i);
      CHECK(block->record().first == records[i].first);
      CHECK(block->record().last == records[i].last);
      CHECK(block->record().pointer == records[i].record.pointer);
      CHECK(block->record().filter.empty() == (records[i].record.type == ItemType::Single));
    };
    for (std::size_t from = 0; from < kRecords; ++from)
      for (std::size_t to = 0; to < kRecords; ++to) {
        REQUIRE(block->select(from));
        REQUIRE(block->select(to));
        stands_at(to);
        REQUIRE(block->select(from));
        REQUIRE(block->find(records[to].last));
        stands_at(to);
      }
    CHECK_FALSE(block->find(make_full_key(3, "l")));
    CHECK(block->index() == block->size());
    REQUIRE(block->next());
    stands_at(0);
    // Wherever it is moved to, its views go along.
    REQUIRE(block->select(7));
    UMetaCursor moved = *std::move(block);
    CHECK(moved.record().first == records[7].first);
    REQUIRE(moved.select(9));
    CHECK(moved.record().last == records[9].last);
  }
}

TEST_CASE("a block takes little more memory than it has bytes") {
  std::vector<OwnedRecord> records;
  for (std::uint64_t i = 0; i < 300; ++i)
    records.push_back(
        single(make_full_key(1, "a key of " + std::to_string(1000 + i)), {7, 4096 * i, 4000}));
  for (OwnedRecord& owned : records) owned.record.first = owned.record.last = owned.first;
  const Bytes bytes = encoded(records);
  const auto block = UMetaBlock::parse(bytes);
  REQUIRE(block.has_value());
  // Eight bytes of each key, and what it takes to begin at every fourth.
  CHECK(block->memory_bytes() < bytes.size() + 300 * 24);
}

TEST_CASE("a record and its filter go from block to block bit for bit") {
  const Bytes bytes = encoded(some_records());
  for (const Begin begin : kBegins) {
    auto block = opened(bytes, begin);
    REQUIRE(block.has_value());
    UMetaBlockBuilder builder;
    while (block->next()) builder.add(block->record());
    CHECK(builder.finish(kFile, kOffset) == bytes);
  }
}

TEST_CASE("a series group of one series needs no filter") {
  const Bytes first = make_full_key(1, "prefix12345678");
  const Bytes last = make_full_key(1, "prefix12345679");
  const Bytes other = make_full_key(1, "prefiy12345679");
  std::vector<EntryView> entries = {{first, 1, EntryKind::Put, ""}, {last, 2, EntryKind::Put, ""}};
  Bytes filter;
  append_item_filter(filter, ItemType::SeriesGroup, 100, entries);
  CHECK(filter.empty());
  entries.push_back({other, 3, EntryKind::Put, ""});
  append_item_filter(filter, ItemType::SeriesGroup, 100, entries);
  CHECK(filter_may_contain(filter, *filter_hash(ItemType::SeriesGroup, first)));
  CHECK(filter_may_contain(filter, *filter_hash(ItemType::SeriesGroup, other)));
}

TEST_CASE("where the entries of a group are large its filter is finer") {
  std::vector<EntryView> different;
  std::vector<Bytes> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(make_full_key(1, "key " + std::to_string(i)));
  for (const Bytes& key : keys) different.push_back({key, 1, EntryKind::Put, ""});
  Bytes usual;
  append_item_filter(usual, ItemType::PlainGroup, 20 * 256 - 1, different);
  CHECK(usual.size() == filter_bytes(20, kUsualFilter));
  Bytes fine;
  append_item_filter(fine, ItemType::PlainGroup, 20 * 256, different);
  CHECK(fine.size() == filter_bytes(20, kFineFilter));
  for (const Bytes& key : keys)
    CHECK(filter_may_contain(fine, *filter_hash(ItemType::PlainGroup, key)));
}

TEST_CASE("series filters know prefixes, single items need none") {
  const Bytes key = make_full_key(1, "prefix12345678");
  CHECK(filter_hash(ItemType::SeriesGroup, key) ==
        filter_hash(ItemType::SeriesGroup, make_full_key(1, "prefixabcdefgh")));
  CHECK(filter_hash(ItemType::SeriesGroup, key) !=
        filter_hash(ItemType::SeriesGroup, make_full_key(1, "Prefix12345678")));
  CHECK(filter_hash(ItemType::SeriesGroup, make_full_key(1, "short")) !=
        filter_hash(ItemType::SeriesGroup, make_full_key(1, "shirt")));
  CHECK(filter_hash(ItemType::PlainGroup, key) !=
        filter_hash(ItemType::PlainGroup, make_full_key(1, "prefixabcdefgh")));
  CHECK_FALSE(filter_hash(ItemType::Single, key).has_value());
}

// What locate() says of `key` is what the cursor finds out by reading keys.
UMetaBlock::Sought located(UMetaCursor& cursor, ByteView key) {
  UMetaPlace place;
  const UMetaBlock::Sought sought = cursor.block().locate(key, place);
  const bool is_there = cursor.find(key);
  if (sought == UMetaBlock::Sought::Unknown) return sought;
  REQUIRE(is_there);
  const UMetaRecord& record = cursor.record();
  if (sought == UMetaBlock::Sought::Nowhere) {
    CHECK(key < record.first);
    return sought;
  }
  CHECK(place.record.type == record.type);
  CHECK(place.record.pointer == record.pointer);
  CHECK(place.record.entries == record.entries);
  CHECK(place.record.deletes == record.deletes);
  CHECK(place.record.sequence_max == record.sequence_max);
  CHECK(place.record.filter == record.filter);
  CHECK(place.record.pages == record.pages);
  if (record.type == ItemType::Single) {
    CHECK(key == record.first);
  } else {
    CHECK(place.shared == shared_bytes(record.first, record.last));
  }
  return sought;
}

TEST_CASE("a key is located as it is found") {
  auto block = opened(encoded(some_records()));
  REQUIRE(block.has_value());
  for (const OwnedRecord& owned : some_records()) {
    for (const Bytes& key : {owned.first, owned.last}) {
      CHECK(located(*block, key) != UMetaBlock::Sought::Nowhere);
      located(*block, key + '\0');
      located(*block, key.substr(0, key.size() - 1));
      Bytes next = key;
      ++next.back();
      located(*block, next);
    }
  }
  CHECK(located(*block, make_full_key(9, "behind all")) == UMetaBlock::Sought::Unknown);
}

TEST_CASE("keys of random blocks are located as they are found, nearly all without reading keys") {
  const std::uint64_t seed = test::test_seed(11);
  CAPTURE(seed);
  SeededRandom random(seed);
  std::size_t asked = 0;
  std::size_t unknown = 0;
  for (int round = 0; round < 200; ++round) {
    const bool are_long = round % 4 == 0;  // longer than a head beyond what all begin with
    std::set<Bytes> keys;
    while (keys.size() < 120) {
      Bytes key = make_full_key(1, round % 2 == 0 ? "store/" : "");
      for (std::size_t i = 0, size = 1 + random.below(are_long ? 20 : 8); i < size; ++i)
        key += static_cast<char>(random.below(12) == 0 ? 0 : 'a' + random.below(6));
      keys.insert(std::move(key));
    }
    std::vector<OwnedRecord> records;
    ValuePointer pointer{7, 96, 0};
    for (auto key = keys.begin(); key != keys.end(); ++key) {
      pointer.size_bytes = static_cast<std::uint32_t>(1 + random.below(100'000));
      const Bytes& first = *key;
      if (random.below(3) == 0) {
        records.push_back(single(first, pointer));
      } else {
        for (std::uint64_t more = random.below(4); more > 0 && std::next(key) != keys.end(); --more)
          ++key;
        records.push_back(group(first, *key, pointer));
      }
      pointer.offset_bytes += pointer.size_bytes;
      if (random.below(10) == 0) pointer = {pointer.file_number + 1, 96, 0};
    }
    for (OwnedRecord& owned : records) {
      owned.record.first = owned.first;
      owned.record.last = owned.last;
    }
    auto block = opened(encoded(records));
    REQUIRE(block.has_value());
    for (const Bytes& key : keys) {
      ++asked;
      const auto sought = located(*block, key);
      CHECK(sought != UMetaBlock::Sought::Nowhere);
      if (sought == UMetaBlock::Sought::Unknown) ++unknown;
      located(*block, key + 'x');
      if (key.size() > 5) located(*block, key.substr(0, key.size() - 1));
    }
  }
  CHECK(unknown < asked / 5);
}

TEST_CASE("a damaged, cut or misplaced block is refused") {
  const Bytes bytes = encoded(some_records());
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    CAPTURE(byte);
    Bytes flipped = bytes;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    CHECK_FALSE(UMetaBlock::checksum_matches(flipped, kFile, kOffset));
    CHECK_FALSE(UMetaBlock::checksum_matches(bytes.substr(0, byte), kFile, kOffset));
  }
  CHECK_FALSE(UMetaBlock::checksum_matches(bytes, kFile + 1, kOffset));
  CHECK_FALSE(UMetaBlock::checksum_matches(bytes, kFile, kOffset + 1));
}

TEST_CASE("damage behind a right checksum is refused or read within its bounds") {
  const Bytes bytes = encoded(some_records());
  std::size_t refused = 0;
  for (std::size_t byte = 4; byte < bytes.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      CAPTURE(byte);
      CAPTURE(bit);
      Bytes flipped = bytes;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      auto block = opened(flipped);
      // Whoever walks along comes to what is malformed, or reads the same.
      auto walked = opened(std::move(flipped), UMetaBlock::begin);
      std::size_t records = 0;
      while (walked && walked->next()) {
        REQUIRE(walked->record().first <= walked->record().last);
        ++records;
      }
      CHECK(block.has_value() == (walked && records == walked->size()));
      if (!block) {
        ++refused;
        if (walked) CHECK_FALSE(walked->select(walked->size() - 1));
        if (walked) CHECK_FALSE(walked->find(make_full_key(UINT32_MAX, "\xff\xff")));
        continue;
      }
      while (block->next()) REQUIRE(block->record().first <= block->record().last);
      block->find(make_full_key(1, "b"));
      UMetaPlace place;
      for (const OwnedRecord& owned : some_records()) {
        if (block->block().locate(owned.last, place) != UMetaBlock::Sought::Here) continue;
        CHECK(place.record.filter.size() + place.record.pages.size() <= bytes.size());
      }
    }
  CHECK(refused > 100);
}

}  // namespace
}  // namespace edgecase::engine
