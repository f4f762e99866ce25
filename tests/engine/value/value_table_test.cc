// Value tables: values that are items of their own, and packed; encrypted files are read back.
#include <map>

#include <doctest/doctest.h>

#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "engine/core/engine_fixture.h"
#include "engine/table/table_test_store.h"
#include "metadata/umeta_table.h"
#include "support/memory_file_system.h"
#include "value/value_table.h"

namespace edgecase::engine {
namespace {

using test::OwnedEntry;
using test::TableTestStore;

Bytes document_of(std::size_t size, int number) {
  Bytes text;
  for (int line = 0; text.size() < size; ++line)
    text += "{\"unit\":\"pump " + std::to_string(number) + "\",\"line\":" + std::to_string(line) +
            ",\"state\":\"running\"}\n";
  text.resize(size);
  return text;
}

Bytes picture_of(std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  Bytes bytes;
  while (bytes.size() < size) bytes.push_back(static_cast<char>(random.next()));
  return bytes;
}

// Around the threshold, and around what is packed at most.
std::vector<OwnedEntry> documents_and_pictures() {
  std::vector<OwnedEntry> entries;
  int number = 0;
  for (const std::size_t size :
       {std::size_t{300}, std::size_t{4096}, std::size_t{20'000},
        std::size_t{kPackedSingleMaxBytes}, std::size_t{kPackedSingleMaxBytes} + 1}) {
    for (const bool is_text : {true, false, true}) {
      ++number;
      const auto sequence = static_cast<SequenceNumber>(number);
      entries.push_back({make_full_key(1, "key" + std::to_string(100 + number)), sequence,
                         EntryKind::Put,
                         is_text ? document_of(size, number) : picture_of(size, sequence)});
    }
    ++number;
    entries.push_back({make_full_key(1, "key" + std::to_string(100 + number)),
                       static_cast<SequenceNumber>(number),
                       EntryKind::Delete,
                       {}});
  }
  return entries;
}

bool is_stored_packed(TableTestStore& store, const OwnedEntry& entry) {
  const auto& file = store.output.value_files.front();
  const auto reader = ValueTableReader::open_any(*store.disk.open_file(store.path_of(file)));
  REQUIRE(reader.ok());
  const auto summary = (*reader)->summary();
  REQUIRE(summary.ok());
  for (const ValuePointer& pointer : summary->items) {
    const auto item = (*reader)->read(pointer);
    REQUIRE(item.ok());
    if (item->type() != ItemType::Single) continue;
    Bytes room;
    const auto single = parse_single(item->contents(), room);
    REQUIRE(single.has_value());
    if (single->full_key != entry.full_key) continue;
    return item->contents().front() == static_cast<char>(SingleKind::PackedPut);
  }
  return false;
}

TEST_CASE("documents of their own are packed up to a size, pictures are not") {
  TableTestStore store;
  store.options.coalesce_threshold_bytes = 256;
  const auto entries = documents_and_pictures();
  REQUIRE(store.write(entries).ok());
  REQUIRE(store.output.value_files.size() == 1);
  REQUIRE(store.tables.size() == 2);
  const std::size_t values = store.tables[0]->kind == TableKind::Singles ? 0 : 1;
  const std::size_t deletes = 1 - values;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(i);
    const OwnedEntry& entry = entries[i];
    // Behind a picture one is passed over.
    const bool is_packed = i % 4 == 0 && entry.value.size() <= kPackedSingleMaxBytes;
    CHECK(is_stored_packed(store, entry) == is_packed);
    for (const bool fill_cache : {false, true, true, true}) {
      const auto& table = store.tables[entry.kind == EntryKind::Delete ? deletes : values];
      const auto got = store.cache->get(table, entry.full_key, fill_cache);
      REQUIRE(got.ok());
      REQUIRE(got->has_value());
      CHECK((*got)->kind == entry.kind);
      CHECK((*got)->value == entry.value);
      CHECK((*got)->sequence >= entry.sequence);
    }
  }
}

TEST_CASE("a packed value is read in pieces, too, and by cursors both ways") {
  TableTestStore store;
  store.options.coalesce_threshold_bytes = 256;
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < 6; ++i)
    entries.push_back({make_full_key(1, "key" + std::to_string(i)),
                       static_cast<SequenceNumber>(i + 1), EntryKind::Put,
                       document_of(10'000 + 10'000 * static_cast<std::size_t>(i), i)});
  REQUIRE(store.write(entries).ok());
  for (const OwnedEntry& entry : entries) REQUIRE(is_stored_packed(store, entry));
  for (const Direction direction : {Direction::Forward, Direction::Reverse})
    for (const std::uint64_t large : {kNoLargeValues, std::uint64_t{1000}}) {
      const auto cursor = store.cache->cursor(store.tables[0], "", "", direction, false, large);
      std::size_t seen = 0;
      for (; cursor->valid(); cursor->next(), ++seen) {
        const OwnedEntry& want =
            entries[direction == Direction::Forward ? seen : entries.size() - 1 - seen];
        REQUIRE(cursor->load().ok());
        CHECK(cursor->full_key() == want.full_key);
        if (large == kNoLargeValues) {
          CHECK(cursor->value() == want.value);
          continue;
        }
        const auto value = cursor->large_value();
        REQUIRE(value.ok());
        if (*value == nullptr) {
          CHECK(cursor->value() == want.value);
          continue;
        }
        CHECK((*value)->size_bytes() == want.value.size());
        CHECK((*value)->sequence() == want.sequence);
        Bytes read;
        for (auto piece = (*value)->next_piece();; piece = (*value)->next_piece()) {
          REQUIRE(piece.ok());
          if (piece->empty()) break;
          read += *piece;
        }
        CHECK(read == want.value);
      }
      REQUIRE(cursor->status().ok());
      CHECK(seen == entries.size());
    }
}

TEST_CASE("a damaged packed value is an error, whatever the checksum says") {
  const Bytes text = document_of(2000, 1);
  const Bytes key = make_full_key(1, "key");
  TableTestStore store;
  store.options.coalesce_threshold_bytes = 256;
  const std::vector<OwnedEntry> entries{{key, 7, EntryKind::Put, text}};
  REQUIRE(store.write(entries).ok());
  REQUIRE(is_stored_packed(store, entries[0]));
  const std::string path = store.path_of(store.output.value_files.front());
  const Bytes whole = store.disk.contents(path);
  const auto reader = ValueTableReader::open_any(*store.disk.open_file(path));
  REQUIRE(reader.ok());
  const auto summary = (*reader)->summary();
  REQUIRE(summary.ok());
  const ValuePointer pointer = summary->items.front();
  const auto item = (*reader)->read(pointer);
  REQUIRE(item.ok());
  const Bytes contents(item->contents());
  Bytes room;
  for (std::size_t size = 0; size < contents.size(); ++size)
    CHECK_FALSE(parse_single(ByteView(contents).substr(0, size), room).has_value());
  for (std::size_t byte = 0; byte < contents.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = contents;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const auto parsed = parse_single(flipped, room);
      if (parsed) CHECK(parsed->value.size() <= kPackedSingleMaxBytes);
    }
  for (std::size_t byte = 0; byte < pointer.size_bytes; ++byte) {
    CAPTURE(byte);
    Bytes damaged = whole;
    damaged[pointer.offset_bytes + byte] =
        static_cast<char>(damaged[pointer.offset_bytes + byte] ^ (1 << byte % 8));
    store.disk.set_contents(path, damaged);
    for (const bool fill_cache : {false, true}) {
      store.open_cache({});
      CHECK(store.cache->get(store.tables[0], key, fill_cache).status().code() ==
            StatusCode::Corruption);
    }
  }
}

TEST_CASE("packed values outlive merges, repairs and the drives' ends, encrypted or not") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    test::EngineFixture store;
    if (encrypted) store.options.encryption = MasterKeys{SecretKey{3}};
    REQUIRE(store.open().ok());
    const NamespaceId id = store.make_namespace("plant");
    std::map<Bytes, Bytes> model;
    SeededRandom random(20261128);
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 40; ++i) {
        const Bytes key = "key" + std::to_string(random.below(60));
        const std::size_t size = 100 + random.below(20'000);
        model[key] = random.below(3) == 0 ? picture_of(size, random.next()) : document_of(size, i);
        REQUIRE(store.put(id, key, model[key], Durability::Async).ok());
      }
      REQUIRE(store.engine->flush().ok());
    }
    REQUIRE(store.engine->compact({id}, {}).ok());
    store.executor.run_all();
    store.reopen();
    for (const auto& [key, value] : model) CHECK(store.get(id, key) == value);
    std::uint64_t user_bytes = 0;
    for (const auto& [key, value] : model) user_bytes += value.size();
    CHECK(store.engine->stats().values.live_bytes < user_bytes * 3 / 4);
  }
}

}  // namespace

namespace {

constexpr const char* kPath = "/m/table";
constexpr TableIdentity kIdentity{{1}, 7};

struct Drive {
  explicit Drive(bool encrypted) {
    if (!encrypted) return;
    SecretKey master;
    master.fill(3);
    auto made = KeyRing::create(disk, "/m", {1}, {master}, random);
    REQUIRE(made.ok());
    ring = *std::move(made);
  }

  // A value file whose drive changes a byte while it is written; `at` 0: it does not.
  Status write_values(std::uint64_t at) {
    ValueTableHead head;
    head.identity = kIdentity;
    head.namespace_id = 1;
    auto writer = ValueTableWriter::create(disk, kPath, head, ring.get());
    REQUIRE(writer.ok());
    const Bytes key = make_full_key(1, "device");
    const Bytes value(1000, 'v');
    const EntryView entry{key, 5, EntryKind::Put, value};
    for (int i = 0; i < 3; ++i) REQUIRE((*writer)->append_single(entry).ok());
    if (at != 0) disk.flip_bit(kPath, at, 3);
    return (*writer)->finish();
  }

  Status write_metadata(std::uint64_t at) {
    auto writer = UMetaWriter::create(disk, kPath, kIdentity, ring.get());
    REQUIRE(writer.ok());
    const std::uint64_t empty = disk.contents(kPath).size();
    // Until a block is there.
    for (std::uint64_t i = 0; disk.contents(kPath).size() == empty; ++i) {
      const Bytes key = make_full_key(1, std::to_string(1'000'000 + i));
      UMetaRecord record;
      record.first = record.last = key;
      record.sequence_min = record.sequence_max = 5;
      record.pointer = {3, 100 * i + 100, 100};
      REQUIRE((*writer)->add(record).ok());
    }
    if (at != 0) disk.flip_bit(kPath, at, 3);
    return (*writer)->finish();
  }

  test::MemoryFileSystem disk{{"/m"}};
  SeededRandom random{3};
  std::unique_ptr<KeyRing> ring;
};

}  // namespace

TEST_CASE("an encrypted file is given up where its first part does not open when it is read back") {
  CHECK(Drive(true).write_values(0).ok());
  CHECK(Drive(true).write_metadata(0).ok());
  for (const std::uint64_t at : {20u, 50u, 400u, 600u}) {
    CAPTURE(at);
    const Status values = Drive(true).write_values(at);
    CHECK_FALSE(values.ok());
    CAPTURE(values.to_string());
    const Status metadata = Drive(true).write_metadata(at);
    CHECK_FALSE(metadata.ok());
    CAPTURE(metadata.to_string());
    if (at < 100) continue;  // heads say more
    CHECK(values.code() == StatusCode::IoError);
    CHECK(values.message().find("what was sealed does not open") != std::string::npos);
    CHECK(metadata.code() == StatusCode::IoError);
  }
}

TEST_CASE("files in clear are not read back: whoever reads them sees") {
  Drive drive(false);
  CHECK(drive.write_values(400).ok());
  CHECK(drive.disk.operations(test::Operation::Read) == 0);
}

TEST_CASE("an encrypted file whose first item was erased meanwhile is as good as any") {
  Drive drive(true);
  const Bytes key = make_full_key(1, "device");
  drive.ring->retire(key, key + '\xff', 9);
  CHECK(drive.write_values(0).ok());
}

}  // namespace edgecase::engine
