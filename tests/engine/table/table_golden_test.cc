// Tables of format version 1: what is on people's drives stays readable.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/coding.h"
#include "edgecase/machine.h"
#include "engine/table/table_test_store.h"
#include "metadata/number_summary.h"
#include "metadata/umeta_table.h"
#include "table/record_cursor.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes tagged(char tag, std::uint64_t bits) {
  Bytes value(1, tag);
  append_fixed64(value, bits);
  return value;
}

Bytes golden_real(double value) {
  return tagged(kFloatTag, std::bit_cast<std::uint64_t>(value));
}

constexpr std::uint64_t kStart = (1ull << 63) + 1'790'000'000'000'000'000;

// Every sort of item, column and layout that version 1 has.
std::vector<OwnedEntry> golden_entries() {
  std::vector<OwnedEntry> entries;
  SequenceNumber sequence = 100;
  const auto add = [&](NamespaceId id, ByteView key, EntryKind kind, Bytes value) {
    entries.push_back({make_full_key(id, key), ++sequence, kind, std::move(value)});
  };
  // A device: short keys, a regular column, byte planes, a dictionary, integers, text, all mixed.
  add(1, "", EntryKind::Put, "the empty key");
  add(1, "d", EntryKind::Delete, {});
  for (const char series : {'a', 'b', 'c', 'd', 'e', 'f'})
    for (std::uint64_t i = 0; i < 70; ++i) {
      Bytes key = Bytes("dev1") + Bytes(1, series);
      const std::uint64_t ordinal = kStart + (3 * i + i % 2) * 1'000'000;
      for (int shift = 56; shift >= 0; shift -= 8)
        key.push_back(static_cast<char>(ordinal >> shift));
      const double full = 20 + static_cast<double>(i * i) / 7;
      const double few = static_cast<double>(i % 4) / 3;
      switch (series) {
        case 'a':
          add(1, key, EntryKind::Put, golden_real(static_cast<double>(200 + i % 9) / 10));
          break;
        case 'b': add(1, key, EntryKind::Put, golden_real(full)); break;
        case 'c': add(1, key, EntryKind::Put, golden_real(few)); break;
        case 'd': add(1, key, EntryKind::Put, tagged(kIntegerTag, i * i * i)); break;
        case 'e': add(1, key, EntryKind::Put, Bytes(i % 2 == 0 ? "on" : "off")); break;
        default:
          add(1, key, i % 7 == 6 ? EntryKind::Delete : EntryKind::Put,
              i % 7 == 6   ? Bytes()
              : i % 7 == 3 ? tagged(kIntegerTag, 0 - i)
              : i % 7 == 5 ? Bytes(i, 't')
                           : golden_real(i == 14 ? -0.0 : 1.5));
      }
    }
  for (char c = 'a'; c < 'z'; ++c) {
    add(2, Bytes("shared prefix ") + c, EntryKind::Put, Bytes(120, c));
    add(2, Bytes("shared prefix ") + c + "x", c == 'k' ? EntryKind::Put : EntryKind::Delete,
        c == 'k' ? Bytes(300, 'K') : Bytes());
  }
  return entries;
}

// Text, alike enough to be packed in both codecs, beside what is not.
std::vector<OwnedEntry> packed_golden_entries() {
  std::vector<OwnedEntry> entries;
  SequenceNumber sequence = 100;
  SeededRandom random(1);
  for (const NamespaceId id : {1u, 2u})
    for (std::uint64_t i = 0; i < 90; ++i) {
      Bytes key = "dev1x";
      append_fixed64(key, 0);
      for (int byte = 0; byte < 8; ++byte)
        key[5 + static_cast<std::size_t>(byte)] =
            static_cast<char>((kStart + i * 1'000'000) >> (56 - 8 * byte));
      Bytes value = "{\"unit\":\"pump " + std::to_string(i * i % 97) + "\",\"state\":\"running\"}";
      if (i > 75)
        for (char& c : value) c = static_cast<char>(random.next());
      entries.push_back({make_full_key(id, key), ++sequence, EntryKind::Put, value});
    }
  return entries;
}

// One group a series: decimals, all bits, integers, what is mixed, a few.
std::vector<OwnedEntry> summarized_golden_entries() {
  std::vector<OwnedEntry> entries;
  SequenceNumber sequence = 100;
  for (const char series : {'a', 'b', 'c', 'd', 'e'})
    for (std::uint64_t i = 0; i < (series == 'e' ? 10 : 80); ++i) {
      // A scope for each: groups do not go beyond one.
      Bytes key = Bytes("dev") + series + "x";
      for (int shift = 56; shift >= 0; shift -= 8)
        key.push_back(static_cast<char>((kStart + i * 1'000'000) >> shift));
      const bool is_integer = series == 'c' || (series == 'd' && i % 2 == 0);
      const double number = series == 'b' ? static_cast<double>(i * i + 1) / 7
                                          : static_cast<double>(200 + i % 9) / 10;
      entries.push_back({make_full_key(1, key), ++sequence, EntryKind::Put,
                         is_integer ? tagged(kIntegerTag, 0 - i * i * i) : golden_real(number)});
    }
  entries.push_back({make_full_key(2, "a plain one"), ++sequence, EntryKind::Put, "v"});
  return entries;
}

struct GoldenTables {
  std::array<const char*, 2> value_tables;
  std::array<const char*, 2> metadata_tables;
};

constexpr GoldenTables kVersion1{
    {"value-table-v1-series.val", "value-table-v1-plain.val"},
    {"metadata-table-v1-groups.meta", "metadata-table-v1-singles.meta"}};
constexpr GoldenTables kVersion1Packed{
    {"value-table-v1-packed-series.val", "value-table-v1-packed-plain.val"},
    {"metadata-table-v1-packed-groups.meta", nullptr}};

// Groups that have a summary of their numbers, in every form, beside some that have none.
constexpr GoldenTables kVersion1Summaries{
    {"value-table-v1-summaries-series.val", "value-table-v1-summaries-plain.val"},
    {"metadata-table-v1-summaries.meta", nullptr}};

Bytes read_golden(const std::string& name) {
  std::ifstream file(std::string(EDGECASE_GOLDEN_DIRECTORY) + "/" + name, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void write_golden(const std::string& name, const Bytes& bytes) {
  std::ofstream file(std::string(EDGECASE_GOLDEN_DIRECTORY) + "/" + name, std::ios::binary);
  file << bytes;
}

void write_golden_tables(const GoldenTables& names, const std::vector<OwnedEntry>& entries,
                         bool compress) {
  TableTestStore store;
  store.options.compress = compress;
  store.options.coalesce_threshold_bytes = 256;
  store.options.group_bytes = 4096;
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 4};
  store.namespaces[2] = {Placement::Metadata, GroupCodec::Plain, 0};
  REQUIRE(store.write(entries).ok());
  for (std::size_t i = 0; i < 2; ++i) {
    write_golden(names.value_tables[i],
                 store.disk.contents(store.path_of(store.output.value_files.at(i))));
    if (names.metadata_tables[i] != nullptr)
      write_golden(names.metadata_tables[i],
                   store.disk.contents(store.path_of(store.output.tables.at(i))));
  }
}

// What a manifest would say of the golden files, from the files themselves: a later writer may
// choose other encodings.
void load_golden(TableTestStore& store, const GoldenTables& names) {
  store.output = TableOutput();
  store.tables.clear();
  for (std::size_t i = 0; i < 2; ++i) {
    const Bytes bytes = read_golden(names.value_tables[i]);
    store.disk.set_contents("/golden", bytes);
    const auto reader = ValueTableReader::open_any(*store.disk.open_file("/golden"));
    REQUIRE(reader.ok());
    ValueFileMetadata file;
    file.number = (*reader)->head().identity.file_number;
    file.namespace_id = (*reader)->head().namespace_id;
    file.placement = (*reader)->head().placement;
    file.size_bytes = bytes.size();
    store.output.value_files.push_back(file);
    store.disk.set_contents(store.path_of(file), bytes);
  }
  for (const char* const name : names.metadata_tables) {
    if (name == nullptr) continue;
    const Bytes bytes = read_golden(name);
    store.disk.set_contents("/golden", bytes);
    const auto reader = UMetaReader::open_any(*store.disk.open_file("/golden"));
    REQUIRE(reader.ok());
    TableMetadata table;
    table.number = (*reader)->identity().file_number;
    table.size_bytes = bytes.size();
    table.entry_count = (*reader)->properties().totals.entries;
    table.item_count = (*reader)->properties().totals.items;
    table.largest = (*reader)->blocks().back().last;
    store.disk.set_contents(store.path_of(table), bytes);
    store.tables.push_back(std::make_shared<const TableMetadata>(table));
  }
  store.open_cache({});
}

void check_golden(const GoldenTables& names, const std::vector<OwnedEntry>& entries,
                  bool compress) {
  if (std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr)
    write_golden_tables(names, entries, compress);
  TableTestStore store;
  load_golden(store, names);
  std::size_t found = 0;
  for (const OwnedEntry& entry : entries)
    for (const auto& table : store.tables) {
      const auto got = store.cache->get(table, entry.full_key, true);
      INFO(got.status().to_string());
      REQUIRE(got.ok());
      if (!got->has_value()) continue;
      ++found;
      CHECK((*got)->kind == entry.kind);
      CHECK((*got)->value == entry.value);
      CHECK((*got)->sequence >= entry.sequence);
    }
  CHECK(found == entries.size());
}

TEST_CASE("table: version 1 stays readable") {
  check_golden(kVersion1, golden_entries(), false);
}

TEST_CASE("table: version 1 with packed parts stays readable") {
  check_golden(kVersion1Packed, packed_golden_entries(), true);
}

TEST_CASE("table: version 1 with summaries of numbers stays readable") {
  check_golden(kVersion1Summaries, summarized_golden_entries(), false);
  TableTestStore store;
  load_golden(store, kVersion1Summaries);
  struct Want {
    bool is_there;
    NumberType type;
    std::uint64_t first, last, min, max, sum;
  };
  const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
  const auto whole = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
  const Want wants[] = {
      {true, NumberType::Float, bits(20), bits(20.7), bits(20), bits(20.8), 0},
      {true, NumberType::Float, bits(1.0 / 7), bits(6242.0 / 7), bits(1.0 / 7), bits(6242.0 / 7),
       0},
      {true, NumberType::Integer, 0, whole(-493'039), whole(-493'039), 0, whole(-9'985'600)},
      {false, {}, 0, 0, 0, 0, 0},
      {false, {}, 0, 0, 0, 0, 0}};
  std::size_t at = 0;
  for (RecordCursor records = store.cache->records({store.tables.front()}); records.valid();
       records.next_record()) {
    if (namespace_of(records.record().first) != 1) break;
    CAPTURE(at);
    REQUIRE(at < std::size(wants));
    const Want& want = wants[at++];
    NumberSummary got;
    REQUIRE(parse_number_summary(records.record().numbers, got) == want.is_there);
    if (!want.is_there) continue;
    CHECK(got.type == want.type);
    CHECK(got.first == want.first);
    CHECK(got.last == want.last);
    CHECK(got.min == want.min);
    CHECK(got.max == want.max);
    if (want.type == NumberType::Integer) {
      CHECK(got.sum == want.sum);
    } else {
      // Exact to more than a double can show.
      long double sum = 0;
      for (const OwnedEntry& entry : summarized_golden_entries()) {
        if (entry.full_key.substr(4, 4) != records.record().first.substr(4, 4)) continue;
        sum += std::bit_cast<double>(decode_fixed64(entry.value.data() + 1));
      }
      CHECK(std::bit_cast<double>(got.sum) == doctest::Approx(static_cast<double>(sum)));
      CHECK(got.sum_low != 0);
    }
  }
  CHECK(at == std::size(wants));
}

}  // namespace
}  // namespace edgecase::engine
