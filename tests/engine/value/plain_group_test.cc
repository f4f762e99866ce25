#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "edgecase/machine.h"
#include "metadata/umeta_block.h"
#include "support/test_share.h"
#include "support/vector_cursor.h"
#include "value/group.h"
#include "value/value_format.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::views_of;

constexpr NamespaceId kPagedNamespace = 0x01020304;

struct Written {
  std::vector<OwnedEntry> entries;
  Bytes item;
  Bytes index;
};

Written written(std::vector<OwnedEntry> entries, SequenceColumn sequences,
                Packer* packer = nullptr) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.full_key < b.full_key; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.full_key == b.full_key; }),
                entries.end());
  Written group{std::move(entries), Bytes(kItemHeadBytes, '\0'), {}};
  append_group(group.item, GroupCodec::Plain, views_of(group.entries), sequences, packer);
  append_page_index(group.index, group.item, views_of(group.entries));
  return group;
}

Bytes prefixed_key(SeededRandom& random) {
  Bytes key(random.below(3) == 0 ? "a prefix that many keys share " : "");
  for (std::uint64_t n = random.below(6); n > 0; --n)
    key.push_back(static_cast<char>(random.below(4) * 85));
  return make_full_key(kPagedNamespace, key);
}

Written random_group(SeededRandom& random, SequenceColumn sequences, Packer* packer = nullptr) {
  std::vector<OwnedEntry> entries;
  const std::uint64_t value_max = std::uint64_t{1} << random.below(12);
  for (std::uint64_t n = 1 + random.below(300); n > 0; --n) {
    const bool is_delete = random.below(8) == 0;
    entries.push_back({prefixed_key(random), 1 + random.below(1u << 20),
                       is_delete ? EntryKind::Delete : EntryKind::Put,
                       is_delete ? Bytes() : Bytes(random.below(value_max), 'v')});
  }
  return written(std::move(entries), sequences, packer);
}

// As a get does.
bool look_up(const Written& group, ByteView key, SequenceNumber largest, EntryView& entry) {
  const ByteView item = group.item;
  const auto place = find_page(group.index, item.size(), group.entries.front().full_key,
                               group.entries.back().full_key, key);
  REQUIRE(place.has_value());
  REQUIRE(place->offset + place->size <= item.size());
  static Bytes room;
  ByteView page;
  REQUIRE(unpack_page(item.substr(place->offset, place->size), room, page));
  bool found = false;
  REQUIRE(find_in_page(page, user_key_of(key), largest, entry, found));
  return found;
}

TEST_CASE("a page index leads to each key's page and to no other key") {
  constexpr std::uint64_t kSeed = 20261122;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  std::size_t paged = 0;
  for (std::uint64_t round = 0; round < test::share_of(300); ++round) {
    CAPTURE(round);
    const auto sequences = round % 2 == 0 ? SequenceColumn::None : SequenceColumn::Written;
    Packer packer;
    const Written group = random_group(random, sequences, round % 4 < 2 ? nullptr : &packer);
    const auto pages = plain_pages(ByteView(group.item).substr(kItemHeadBytes));
    REQUIRE(pages.has_value());
    CHECK(group.index.empty() == (pages->size() == 1));
    if (group.index.empty()) continue;
    ++paged;
    std::vector<PagePlace> places;
    REQUIRE(list_pages(group.index, group.item.size(), places));
    REQUIRE(places.size() == pages->size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      CHECK(places[i].number == i);
      CHECK(places[i].offset == kItemHeadBytes + (*pages)[i].offset);
      CHECK(places[i].size == (*pages)[i].size);
    }
    for (const OwnedEntry& entry : group.entries) {
      const ByteView first = group.entries.front().full_key;
      const ByteView last = group.entries.back().full_key;
      const auto found = find_page(group.index, group.item.size(), first, last, entry.full_key);
      std::size_t number = SIZE_MAX;
      REQUIRE(
          list_pages(group.index, group.item.size(), first, last, entry.full_key, places, number));
      REQUIRE(found.has_value());
      CHECK(number == found->number);
      CHECK(places.size() == pages->size());
    }
    SequenceNumber largest = 0;
    for (const OwnedEntry& entry : group.entries) largest = std::max(largest, entry.sequence);
    for (const OwnedEntry& want : group.entries) {
      EntryView got;
      REQUIRE(look_up(group, want.full_key, largest, got));
      CHECK(got.kind == want.kind);
      CHECK(got.value == want.value);
      CHECK(got.sequence == (sequences == SequenceColumn::None ? largest : want.sequence));
    }
    for (int i = 0; i < 100; ++i) {
      const Bytes key = prefixed_key(random);
      if (key < group.entries.front().full_key || key > group.entries.back().full_key) continue;
      EntryView got;
      const auto there = std::ranges::find(group.entries, key, &OwnedEntry::full_key);
      CHECK(look_up(group, key, largest, got) == (there != group.entries.end()));
    }
  }
  CHECK(paged > 0);
}

TEST_CASE("pages are of one size, as far as entries let them") {
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 200; ++i) {
    entries.push_back({make_full_key(kPagedNamespace, "key" + std::to_string(1000 + i)), 1,
                       EntryKind::Put, Bytes(50, 'v')});
  }
  const Written group = written(entries, SequenceColumn::None);
  const auto pages = plain_pages(ByteView(group.item).substr(kItemHeadBytes));
  REQUIRE(pages.has_value());
  CHECK(pages->size() == 200 * 57 / kPlainPageBytes);
  for (const PlainPage& page : *pages) {
    CHECK(page.size > kPlainPageBytes * 2 / 3);
    CHECK(page.size < kPlainPageBytes * 4 / 3);
  }
}

TEST_CASE("the largest group has a page index within its limit") {
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 2000; ++i) {
    const Bytes number = std::to_string(10'000 + i);
    entries.push_back({make_full_key(kPagedNamespace, Bytes(1024 - number.size(), 'k') + number), 1,
                       EntryKind::Put, Bytes(50, 'v')});
    entries.back().full_key[kNamespacePrefixBytes] = static_cast<char>(i / 1000);
  }
  const Written group = written(entries, SequenceColumn::None);
  std::vector<PagePlace> places;
  REQUIRE(list_pages(group.index, group.item.size(), places));
  CHECK(places.size() == kPlainPagesMax);
  CHECK(group.index.size() > 40'000);
  CHECK(group.index.size() <= kPageIndexMaxBytes);
}

TEST_CASE("a damaged page index is refused or names places within the item") {
  constexpr std::uint64_t kSeed = 20261123;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  Written group = random_group(random, SequenceColumn::None);
  while (group.index.empty()) group = random_group(random, SequenceColumn::None);
  const auto check = [&](const Bytes& index) {
    std::vector<PagePlace> places;
    if (list_pages(index, group.item.size(), places)) {
      for (const PagePlace& place : places) {
        REQUIRE(place.offset < group.item.size());
        REQUIRE(place.size <= group.item.size() - place.offset);
        REQUIRE(place.size > kPageChecksumBytes);
      }
    }
    const auto place = find_page(index, group.item.size(), group.entries.front().full_key,
                                 group.entries.back().full_key, group.entries[1].full_key);
    if (place) REQUIRE(place->size <= group.item.size() - place->offset);
  };
  for (std::size_t size = 0; size < group.index.size(); ++size) check(group.index.substr(0, size));
  for (std::size_t byte = 0; byte < group.index.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = group.index;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      check(flipped);
    }
}

}  // namespace
}  // namespace edgecase::engine
