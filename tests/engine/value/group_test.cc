#include "value/group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "support/test_share.h"
#include "support/vector_cursor.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::views_of;

constexpr NamespaceId kNamespace = 0x01020304;

Bytes ordinal_key(ByteView prefix, std::uint64_t ordinal) {
  Bytes key(prefix);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(ordinal >> shift));
  return key;
}

Bytes number(char tag, std::uint64_t bits) {
  Bytes value(1, tag);
  append_fixed64(value, bits);
  return value;
}

Bytes real_value(double value) {
  return number(kFloatTag, std::bit_cast<std::uint64_t>(value));
}

OwnedEntry put(ByteView key, Bytes value, SequenceNumber sequence = 1) {
  return {make_full_key(kNamespace, key), sequence, EntryKind::Put, std::move(value)};
}

OwnedEntry removal(ByteView key, SequenceNumber sequence = 1) {
  return {make_full_key(kNamespace, key), sequence, EntryKind::Delete, {}};
}

Bytes encoded(GroupCodec codec, const std::vector<OwnedEntry>& entries, SequenceColumn sequences,
              Packer* packer = nullptr) {
  Bytes group;
  append_group(group, codec, views_of(entries), sequences, packer);
  return group;
}

void sort_unique(std::vector<OwnedEntry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.full_key < b.full_key; });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const auto& a, const auto& b) { return a.full_key == b.full_key; }),
                entries.end());
}

void check_entry(const EntryView& got, const OwnedEntry& want) {
  REQUIRE(got.full_key == want.full_key);
  REQUIRE(got.kind == want.kind);
  REQUIRE(got.value == want.value);
}

// Without marks, and with those that were made of it, if it is a series group.
std::vector<std::shared_ptr<const SeriesMarks>> marks_of(ItemType type, ByteView group) {
  if (type != ItemType::SeriesGroup) return {nullptr};
  return {nullptr, SeriesMarks::of(group)};
}

void check_group(GroupCodec codec, const std::vector<OwnedEntry>& entries, ByteView group,
                 SequenceColumn sequences) {
  SequenceNumber largest = 0;
  for (const OwnedEntry& entry : entries) largest = std::max(largest, entry.sequence);
  for (const auto& marks : marks_of(item_type_of(codec), group)) {
    GroupReader reader;
    REQUIRE(reader.open(item_type_of(codec), group, marks.get()));
    REQUIRE(reader.entry_count() == entries.size());
    const auto check_at = [&](std::size_t i) {
      REQUIRE(reader.move_to(i));
      check_entry(reader.entry(), entries[i]);
      CHECK(reader.entry().sequence ==
            (sequences == SequenceColumn::Written ? entries[i].sequence : largest));
    };
    for (std::size_t i = 0; i < entries.size(); ++i) check_at(i);
    for (std::size_t i = entries.size(); i-- > 0;) check_at(i);
    std::size_t index = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      // At the key, just before it, and just behind it.
      REQUIRE(reader.lower_bound(entries[i].full_key, index));
      CHECK(index == i);
      REQUIRE(reader.lower_bound(entries[i].full_key + Bytes(1, '\0'), index));
      CHECK(index == i + 1);
      Bytes before = entries[i].full_key;
      before.pop_back();
      const auto expected = std::partition_point(
          entries.begin(), entries.end(), [&](const auto& e) { return e.full_key < before; });
      REQUIRE(reader.lower_bound(before, index));
      CHECK(index == static_cast<std::size_t>(expected - entries.begin()));
    }
    REQUIRE(reader.lower_bound("", index));
    CHECK(index == 0);
    REQUIRE(reader.lower_bound(Bytes("\xff\xff\xff\xff\xff"), index));
    CHECK(index == entries.size());
  }
}

void check_round_trip(GroupCodec codec, std::vector<OwnedEntry> entries, Packer* packer) {
  sort_unique(entries);
  for (const SequenceColumn sequences : {SequenceColumn::None, SequenceColumn::Written})
    check_group(codec, entries, encoded(codec, entries, sequences, packer), sequences);
}

void check_both(const std::vector<OwnedEntry>& entries) {
  for (const GroupCodec codec : {GroupCodec::Plain, GroupCodec::Series}) {
    Packer packer;
    check_round_trip(codec, entries, nullptr);
    check_round_trip(codec, entries, &packer);
  }
}

TEST_CASE("groups of one entry come back as they were") {
  check_both({put("", "")});
  check_both({put("k", "v", 77)});
  check_both({removal("k", UINT64_MAX)});
  check_both({removal("")});
  check_both({put(ordinal_key("", 0), real_value(1.5))});
  check_both({put(ordinal_key("p", UINT64_MAX), real_value(std::nan("")))});
  check_both({put(Bytes(1024, '\xff'), Bytes(100000, 'v'))});
}

TEST_CASE("a regular sensor comes back as it was") {
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 700; ++i)
    entries.push_back(put(ordinal_key("boiler", (1ull << 63) + i * 1'000'000'000),
                          real_value(static_cast<double>(200 + i % 9) / 10), i + 1));
  check_both(entries);
}

TEST_CASE("ordinals at their limits come back as they were") {
  std::vector<OwnedEntry> entries;
  for (const std::uint64_t ordinal :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'000'000'000},
        (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, UINT64_MAX - 1, UINT64_MAX})
    for (const char* prefix : {"", "a", "aa", "b"})
      entries.push_back(put(ordinal_key(prefix, ordinal), real_value(0.5)));
  check_both(entries);
}

TEST_CASE("a column of mixed types comes back as it was") {
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Bytes key = ordinal_key("mixed", i * 10);
    switch (i / 30 % 6) {
      case 0: entries.push_back(put(key, real_value(static_cast<double>(i) / 10), i)); break;
      case 1: entries.push_back(put(key, number(kIntegerTag, i * i), i)); break;
      case 2: entries.push_back(put(key, "\x04text " + std::to_string(i % 3), i)); break;
      case 3:
        entries.push_back(put(key, Bytes("\x03", 1) + Bytes(1, static_cast<char>(i & 1)), i));
        break;
      case 4: entries.push_back(removal(key, i)); break;
      default:
        entries.push_back(i % 2 == 0 ? put(key, real_value(-0.0), i)
                                     : put(key, number(kIntegerTag, 0 - i), i));
    }
  }
  check_both(entries);
}

TEST_CASE("values that look like numbers and are none come back as they were") {
  std::vector<OwnedEntry> entries;
  std::uint64_t i = 0;
  for (const Bytes& value :
       {Bytes(), Bytes(1, kFloatTag), Bytes(8, kFloatTag), Bytes(10, kFloatTag),
        Bytes(9, kIntegerTag), Bytes(9, kFloatTag), Bytes(9, '\0'), Bytes(9, '\x09'),
        number(kIntegerTag, std::uint64_t{1} << 63), number(kFloatTag, UINT64_MAX)})
    entries.push_back(put(ordinal_key("odd", ++i), value));
  check_both(entries);
}

TEST_CASE("short keys between long ones come back as they were") {
  std::vector<OwnedEntry> entries;
  for (const char* key : {"", "a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abd", "b", "zzzzzzz",
                          "zzzzzzzz", "zzzzzzzzz"}) {
    entries.push_back(put(key, key));
    entries.push_back(put(Bytes(key) + "x", real_value(1)));
    entries.push_back(removal(ordinal_key(key, 5)));
    entries.push_back(put(ordinal_key(key, 6), real_value(2)));
  }
  check_both(entries);
}

TEST_CASE("a group of many series is read by its marks") {
  std::vector<OwnedEntry> entries;
  for (int series = 0; series < 300; ++series) {
    const Bytes name = "device " + std::to_string(series * 7919 % 1000) + "/temperature";
    for (std::uint64_t i = 0; i < 1 + static_cast<std::uint64_t>(series) % 4; ++i)
      entries.push_back(put(ordinal_key(name, i * 1'000'000'000), real_value(series + 0.5), i + 1));
    // Their runs begin no stretch.
    if (series % 3 == 0) entries.push_back(put("d" + std::to_string(series), "short"));
    if (series % 50 == 0) entries.push_back(removal(ordinal_key(name, 9'000'000'000)));
  }
  sort_unique(entries);
  const Bytes group = encoded(GroupCodec::Series, entries, SequenceColumn::Written);
  const auto marks = SeriesMarks::of(group);
  CHECK(marks->marks.size() > 8);
  CHECK(marks->memory_bytes() < group.size() / 4);
  check_both(entries);

  GroupReader reader;
  REQUIRE(reader.open(ItemType::SeriesGroup, group, marks.get()));
  std::size_t taken = 0;
  for (std::size_t index = 0; index < entries.size(); ++index) {
    REQUIRE(reader.move_to(index));
    const Bytes& key = entries[index].full_key;
    if (key.size() < 20 || entries[index].kind == EntryKind::Delete) continue;
    NumberColumns columns;
    std::vector<SequenceNumber> numbered;
    NumberRun run(ByteView(key).substr(0, key.size() - sizeof(std::uint64_t)), true, columns,
                  numbered);
    const std::size_t count = reader.add_numbers(index, Direction::Forward, {}, {}, run);
    REQUIRE(count > 0);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(columns.ordinals[i] == ordinal_in(entries[index + i].full_key));
    taken += count;
  }
  CHECK(taken > entries.size() / 2);
}

TEST_CASE("a group of few series has no marks") {
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 500; ++i)
    entries.push_back(put(ordinal_key(i < 250 ? "a" : "b", i), real_value(1)));
  const Bytes group = encoded(GroupCodec::Series, entries, SequenceColumn::None);
  CHECK(SeriesMarks::of(group)->marks.empty());
  CHECK(SeriesMarks::of(ByteView(group).substr(0, group.size() - 1))->marks.empty());
}

std::vector<OwnedEntry> log_of_a_day() {
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 300; ++i)
    entries.push_back(put(ordinal_key("log", i * 1'000'000'000 + i * i),
                          "{\"unit\":\"pump " + std::to_string(i * i % 97) +
                              "\",\"pressure\":" + std::to_string(i * 7 % 31) + ",\"ok\":true}",
                          i + 1));
  return entries;
}

TEST_CASE("text is packed, and comes back as it was") {
  const std::vector<OwnedEntry> entries = log_of_a_day();
  check_both(entries);
  for (const GroupCodec codec : {GroupCodec::Plain, GroupCodec::Series}) {
    Packer packer;
    const std::size_t raw = encoded(codec, entries, SequenceColumn::None).size();
    CHECK(encoded(codec, entries, SequenceColumn::None, &packer).size() < raw / 2);
  }
}

TEST_CASE("of a plain group the pages are packed that shrink") {
  SeededRandom random(20261128);
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 100; ++i) {
    Bytes value(200, 'v');
    if (i >= 50)
      for (char& c : value) c = static_cast<char>(random.next());
    entries.push_back(put("key" + std::to_string(1000 + i), value, 5));
  }
  check_both(entries);
  Packer packer;
  const Bytes group = encoded(GroupCodec::Plain, entries, SequenceColumn::None, &packer);
  const auto pages = plain_pages(group);
  REQUIRE(pages.has_value());
  CHECK(pages->size() == 100 * 207 / kPackedPageBytes);
  for (const PlainPage& page : *pages) {
    const bool is_packed = is_packed_page(ByteView(group).substr(page.offset, page.size));
    CHECK(is_packed == (page.first_entry < 50));
    CHECK((page.size < kPackedPageBytes / 2) == is_packed);
  }
}

OwnedEntry random_entry(SeededRandom& random) {
  Bytes key;
  switch (random.below(4)) {
    case 0: key = Bytes(random.below(12), static_cast<char>('a' + random.below(3))); break;
    case 1: key = ordinal_key(Bytes(random.below(3), 'p'), random.below(1000) * 1'000'000); break;
    case 2: key = ordinal_key("q", random.next()); break;
    default:
      for (std::uint64_t n = random.below(20); n > 0; --n)
        key.push_back(static_cast<char>(random.below(4) * 85));
  }
  const SequenceNumber sequence = random.below(1u << 20);
  switch (random.below(6)) {
    case 0: return removal(key, sequence);
    case 1: return put(key, real_value(static_cast<double>(random.below(1000)) / 100), sequence);
    case 2: return put(key, number(kIntegerTag, random.next() >> random.below(64)), sequence);
    case 3: return put(key, number(kFloatTag, random.next()), sequence);
    case 4: return put(key, Bytes(random.below(30), static_cast<char>(random.below(4))), sequence);
    default: return put(key, Bytes(1, static_cast<char>(random.below(2))), sequence);
  }
}

TEST_CASE("random groups come back as they were") {
  constexpr std::uint64_t kSeed = 20261103;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    std::vector<OwnedEntry> entries;
    for (std::uint64_t n = 1 + random.below(120); n > 0; --n)
      entries.push_back(random_entry(random));
    check_both(entries);
  }
}

// Walks all a reader lets it; a damaged group may answer anything, but from within its bounds.
void walk(ItemType type, ByteView group, const SeriesMarks* marks) {
  GroupReader reader;
  if (!reader.open(type, group, marks)) return;
  REQUIRE(reader.entry_count() <= kGroupEntriesMax);
  std::size_t index = 0;
  (void)reader.lower_bound(ordinal_key("mixed", 77), index);
  for (std::size_t i = 0; i < reader.entry_count() && reader.move_to(i); ++i) {
    std::size_t sum = 0;
    for (const char c : reader.entry().full_key) sum += static_cast<unsigned char>(c);
    for (const char c : reader.entry().value) sum += static_cast<unsigned char>(c);
    REQUIRE(sum < SIZE_MAX);
  }
}

void walk(ItemType type, ByteView group) {
  for (const auto& marks : marks_of(type, group)) walk(type, group, marks.get());
}

TEST_CASE("ordinals of one step that pass their limit are refused") {
  constexpr std::uint64_t kFirst = 0x1122334455667788, kStep = 1'000'003;
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 5; ++i)
    entries.push_back(put(ordinal_key("series", kFirst + i * kStep), real_value(21.5)));
  Bytes group = encoded(GroupCodec::Series, entries, SequenceColumn::None);
  Bytes first;
  append_fixed64(first, kFirst);
  const std::size_t at = group.find(first);
  REQUIRE(at != Bytes::npos);
  for (const std::uint64_t room : {4 * kStep, 4 * kStep - 1}) {
    Bytes moved;
    append_fixed64(moved, UINT64_MAX - room);
    group.replace(at, moved.size(), moved);
    GroupReader reader;
    REQUIRE(reader.open(ItemType::SeriesGroup, group));
    CHECK(reader.move_to(4) == (room == 4 * kStep));
  }
}

TEST_CASE("damaged groups are refused or read within their bounds") {
  constexpr std::uint64_t kSeed = 20261104;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::vector<OwnedEntry> entries;
    for (int i = 0; i < 40; ++i) entries.push_back(random_entry(random));
    for (std::uint64_t i = 0; i < 40; ++i)
      entries.push_back(
          put(ordinal_key("mixed", i * 10), i % 7 == 0 ? Bytes(40, 'x') : real_value(0.5)));
    // Enough for marks.
    for (char i = 0; i < 40; ++i) entries.push_back(put(ordinal_key("of" + Bytes(1, i), 1), "x"));
    sort_unique(entries);
    for (const GroupCodec codec : {GroupCodec::Plain, GroupCodec::Series}) {
      Packer packer;
      const Bytes group =
          encoded(codec, entries, SequenceColumn::Written, round % 2 == 0 ? nullptr : &packer);
      for (std::size_t size = 0; size < group.size(); ++size)
        walk(item_type_of(codec), Bytes(group, 0, size));
      for (std::size_t byte = round % test::share_step(); byte < group.size();
           byte += test::share_step())
        for (int bit = 0; bit < 8; ++bit) {
          Bytes flipped = group;
          flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
          walk(item_type_of(codec), flipped);
        }
    }
  }
}

}  // namespace
}  // namespace edgecase::engine
