#include "table/table_writer.h"

#include <doctest/doctest.h>

#include <bit>
#include <cerrno>
#include <set>

#include "base/coding.h"
#include "base/hash.h"
#include "edgecase/machine.h"
#include "engine/table/table_test_store.h"

namespace edgecase::engine {
namespace {

using test::CutPolicy;
using test::FaultMode;
using test::Operation;
using test::OwnedEntry;
using test::TableTestStore;
using test::VectorCursor;

OwnedEntry put(NamespaceId id, ByteView key, Bytes value, SequenceNumber sequence = 1) {
  return {make_full_key(id, key), sequence, EntryKind::Put, std::move(value)};
}

Bytes ordinal_bytes(std::uint64_t ordinal) {
  Bytes bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(ordinal >> shift));
  return bytes;
}

Bytes real(double value) {
  Bytes bytes(1, kFloatTag);
  append_fixed64(bytes, std::bit_cast<std::uint64_t>(value));
  return bytes;
}

std::vector<OwnedEntry> some_entries() {
  std::vector<OwnedEntry> entries;
  for (const NamespaceId id : {1u, 2u, 3u})
    for (char c = 'a'; c <= 'z'; ++c) {
      entries.push_back(put(id, Bytes(1, c), Bytes(c == 'm' ? 5000 : 20, c)));
    }
  return entries;
}

std::size_t files_on(const TableTestStore& store) {
  return store.disk.durable_contents().size();
}

TEST_CASE("nothing in, nothing out") {
  TableTestStore store;
  REQUIRE(store.write({}).ok());
  CHECK(store.output.tables.empty());
  CHECK(store.output.value_files.empty());
  CHECK(files_on(store) == 0);
}

TEST_CASE("groups and large values go to tables of their own, a namespace to its own file") {
  TableTestStore store;
  store.namespaces[2].placement = Placement::Metadata;
  REQUIRE(store.write(some_entries()).ok());
  REQUIRE(store.output.tables.size() == 2);
  CHECK(store.output.tables[0].entry_count == 75);
  CHECK(store.output.tables[0].item_count == 3);
  CHECK(store.output.tables[1].entry_count == 3);
  CHECK(store.output.tables[1].item_count == 3);
  REQUIRE(store.output.value_files.size() == 3);
  std::uint64_t value_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  for (const ValueFileMetadata& file : store.output.value_files) {
    const Bytes contents = store.disk.contents(store.path_of(file));
    CHECK(contents.size() == file.size_bytes);
    CHECK(crc32c(contents) == file.checksum);
    CHECK(file.item_count == 2);
    CHECK((file.placement == Placement::Metadata) == (file.namespace_id == 2));
    (file.namespace_id == 2 ? metadata_bytes : value_bytes) += contents.size();
  }
  std::set<FileNumber> numbers;
  for (const TableMetadata& table : store.output.tables) {
    const Bytes contents = store.disk.contents(store.path_of(table));
    CHECK(contents.size() == table.size_bytes);
    CHECK(crc32c(contents) == table.checksum);
    CHECK(table.value_files.size() == 3);
    metadata_bytes += contents.size();
    numbers.insert(table.number);
  }
  CHECK(store.output.value_bytes == value_bytes);
  CHECK(store.output.metadata_bytes == metadata_bytes);
  CHECK(numbers.size() == 2);
}

TEST_CASE("everything is durable on return") {
  TableTestStore store;
  store.namespaces[2].placement = Placement::Metadata;
  REQUIRE(store.write(some_entries()).ok());
  CHECK(files_on(store) == 5);
  store.disk.power_cut(1, CutPolicy::None);
  store.open_cache({});
  for (const OwnedEntry& entry : some_entries()) {
    std::size_t found = 0;
    for (const auto& table : store.tables) {
      const auto got = store.cache->get(table, entry.full_key, true);
      REQUIRE(got.ok());
      if (got->has_value() && (*got)->value == entry.value) ++found;
    }
    CHECK(found == 1);
  }
}

TEST_CASE("a power cut at any operation leaves no metadata table without its values") {
  for (std::uint64_t nth = 1;; ++nth) {
    CAPTURE(nth);
    TableTestStore store;
    store.namespaces[2].placement = Placement::Metadata;
    store.disk.stop_at(nth);
    const bool written = store.write(some_entries()).ok();
    store.disk.power_cut(nth, CutPolicy::None);
    const auto durable = store.disk.durable_contents();
    std::size_t metadata_tables = 0;
    std::size_t value_tables = 0;
    for (const auto& [path, contents] : durable) {
      if (contents.empty()) continue;
      if (path.ends_with(".meta")) ++metadata_tables;
      if (path.ends_with(".val")) ++value_tables;
    }
    if (metadata_tables > 0) CHECK(value_tables == 3);
    if (written) break;
    REQUIRE(nth < 1000);
  }
}

TEST_CASE("all value tables are handed to the drive before the first is waited for") {
  for (std::uint64_t nth = 1;; ++nth) {
    CAPTURE(nth);
    REQUIRE(nth < 1000);
    TableTestStore store;
    store.disk.stop_at(nth);
    (void)store.write(some_entries()).ok();
    std::size_t whole = 0;
    bool durable = false;
    for (const auto& [path, contents] : store.disk.durable_contents()) {
      if (!path.ends_with(".val")) continue;
      durable = durable || !contents.empty();
      if (store.disk.contents(path).ends_with("ECVALUE1")) ++whole;
    }
    if (!durable) continue;
    CHECK(whole == 3);
    break;
  }
}

TEST_CASE("whatever fails, the error comes back and no file stays") {
  for (const Operation operation :
       {Operation::CreateFile, Operation::Append, Operation::Sync, Operation::SyncDirectory}) {
    for (std::uint64_t nth = 1;; ++nth) {
      CAPTURE(static_cast<int>(operation));
      CAPTURE(nth);
      TableTestStore store;
      store.namespaces[2].placement = Placement::Metadata;
      store.disk.fail_nth(operation, nth, nth % 2 == 0 ? ENOSPC : EIO, FaultMode::Once);
      const Status status = store.write(some_entries());
      if (store.disk.faults() == 0) {
        CHECK(status.ok());
        break;
      }
      CHECK(status.code() == (nth % 2 == 0 ? StatusCode::OutOfSpace : StatusCode::IoError));
      for (const char* directory : {"/m/tables", "/v"}) {
        const auto entries = store.disk.list_directory(directory);
        REQUIRE(entries.ok());
        CHECK(entries->empty());
      }
      REQUIRE(nth < 1000);
    }
  }
}

TEST_CASE("an error of the input comes back and no file stays") {
  TableTestStore store;
  VectorCursor input(some_entries());
  input.fail_at(40, corruption("input"));
  const auto output = write_tables(input, store.context());
  REQUIRE_FALSE(output.ok());
  CHECK(output.status().message() == "input");
  CHECK(store.disk.list_directory("/v")->empty());
  CHECK(store.disk.list_directory("/m/tables")->empty());
}

TEST_CASE("a file that is already there is neither overwritten nor removed") {
  TableTestStore store;
  const std::string path = "/v/000000000001.val";
  store.disk.set_contents(path, "precious");
  CHECK(store.write(some_entries()).code() == StatusCode::AlreadyExists);
  CHECK(store.disk.contents(path) == "precious");
}

// Readings of `series` sensors, one a second, one decimal, a random walk.
std::vector<OwnedEntry> sensor_entries(int series, std::uint64_t readings) {
  SeededRandom random(5);
  std::vector<OwnedEntry> entries;
  for (int s = 0; s < series; ++s) {
    std::int64_t tenths = 215;
    for (std::uint64_t i = 0; i < readings; ++i) {
      tenths += static_cast<std::int64_t>(random.below(7)) - 3;
      const std::uint64_t ordinal = (1ull << 63) + 1'790'000'000'000'000'000 + i * 1'000'000'000;
      const Bytes prefix{'\0', '\0', '\1', '\2', '\0', '\0', '\0', static_cast<char>(s)};
      entries.push_back(
          put(1, prefix + ordinal_bytes(ordinal), real(static_cast<double>(tenths) / 10), 1 + i));
    }
  }
  return entries;
}

double bytes_per_entry(const TableTestStore& store, std::size_t entries) {
  return static_cast<double>(store.output.value_bytes + store.output.metadata_bytes) /
         static_cast<double>(entries);
}

TEST_CASE("a reading of a regular sensor takes less than a byte") {
  TableTestStore store;
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 4};
  const auto entries = sensor_entries(1, 100'000);
  REQUIRE(store.write(entries).ok());
  const double all = bytes_per_entry(store, entries.size());
  const double metadata =
      static_cast<double>(store.output.metadata_bytes) / static_cast<double>(entries.size());
  MESSAGE("bytes a reading: " << all << ", of it metadata: " << metadata);
  CHECK(all <= 1.0);
  CHECK(metadata <= 0.1);
}

TEST_CASE("readings of many sensors of a device in one flush stay small") {
  TableTestStore store;
  store.namespaces[1] = {Placement::Values, GroupCodec::Series, 4};
  const auto entries = sensor_entries(100, 60);
  REQUIRE(store.write(entries).ok());
  const double all = bytes_per_entry(store, entries.size());
  MESSAGE("bytes a reading: " << all);
  CHECK(all <= 1.6);
}

TEST_CASE("metadata of 50-byte values is at most 3 % of the data") {
  TableTestStore store;
  SeededRandom random(6);
  std::vector<OwnedEntry> entries;
  for (std::uint64_t i = 0; i < 100'000; ++i)
    entries.push_back(put(1, "key-" + ordinal_bytes(i * 1000 + random.below(1000)) + "-key",
                          Bytes(50, static_cast<char>(random.next()))));
  REQUIRE(store.write(entries).ok());
  const double share = static_cast<double>(store.output.metadata_bytes) /
                       static_cast<double>(entries.size() * (16 + 50));
  MESSAGE("share of metadata: " << share);
  CHECK(share <= 0.03);
}

}  // namespace
}  // namespace edgecase::engine
