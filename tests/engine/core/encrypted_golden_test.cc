// Whole encrypted stores: what is on people's drives stays readable with its key. The first has a
// log of version 2, the second one of version 4. EDGECASE_WRITE_GOLDEN=1 writes the last one anew.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "engine/core/engine_fixture.h"
#include "file/file_names.h"

namespace edgecase::engine {
namespace {

constexpr const char* kFirstGolden = EDGECASE_GOLDEN_DIRECTORY "/encrypted-store-v1.bin";
constexpr const char* kGolden = EDGECASE_GOLDEN_DIRECTORY "/encrypted-store-v2.bin";
// What the second store sealed for a file beside it.
constexpr const char* kGoldenPiece = EDGECASE_GOLDEN_DIRECTORY "/sealed-piece-v1.bin";
constexpr std::size_t kGoldenMaxBytes = 1u << 20;

MasterKeys golden_keys() {
  MasterKeys keys;
  for (std::size_t i = 0; i < keys.current.size(); ++i)
    keys.current[i] = static_cast<std::uint8_t>(3 * i + 1);
  return keys;
}

struct GoldenStore : test::EngineFixture {
  GoldenStore() {
    options.encryption = golden_keys();
    options.coalesce_threshold_bytes = 400;
    options.group_bytes = 16384;
  }

  static std::map<Bytes, Bytes> expected() {
    std::map<Bytes, Bytes> contents;
    for (int i = 100; i < 160; ++i)
      contents["device" + std::to_string(i % 3) + std::to_string(i)] = Bytes(100, 'v');
    contents["device0-large"] = Bytes(1000, 'L');
    contents["device1-late"] = "in the log";
    return contents;
  }

  void fill() {
    REQUIRE(open().ok());
    const NamespaceId id = make_namespace("plant", {Placement::Values, GroupCodec::Plain, 7});
    for (const auto& [key, value] : expected())
      if (key != "device1-late") REQUIRE(put(id, key, value).ok());
    REQUIRE(put(id, "device9", "erased").ok());
    REQUIRE(engine->flush().ok());
    WriteBatch batch;
    batch.erase_range(id, "device9", "device:");
    REQUIRE(engine->write(batch, Durability::Sync).ok());
    REQUIRE(engine->erase().ok());
    REQUIRE(put(id, "device1-late", "in the log").ok());
    close();
  }
};

// A line with path, size and bytes up to the last that is not zero, then these.
Bytes packed(const std::map<std::string, Bytes>& files) {
  Bytes out;
  for (const auto& [path, bytes] : files) {
    const std::size_t end = bytes.find_last_not_of('\0') + 1;
    out += path + " " + std::to_string(bytes.size()) + " " + std::to_string(end) + "\n";
    out.append(bytes, 0, end);
  }
  return out;
}

void unpack(const Bytes& bytes, test::MemoryFileSystem& disk) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t line = bytes.find('\n', at);
    REQUIRE(line != Bytes::npos);
    std::istringstream words(bytes.substr(at, line - at));
    std::string path;
    std::size_t size = 0;
    std::size_t end = 0;
    words >> path >> size >> end;
    REQUIRE_FALSE(words.fail());
    Bytes contents = bytes.substr(line + 1, end);
    contents.resize(size, '\0');
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      REQUIRE(disk.create_directory(path.substr(0, slash)).ok());
    disk.set_contents(path, std::move(contents));
    at = line + 1 + end;
  }
}

bool is_written_anew() {
  return std::getenv("EDGECASE_WRITE_GOLDEN") != nullptr;
}

void write_file(const char* path, ByteView bytes) {
  (void)posix_file_system().remove_file(path);
  const auto out = posix_file_system().create_file(path);
  REQUIRE(out.ok());
  REQUIRE((*out)->append(bytes).ok());
  REQUIRE((*out)->sync().ok());
}

Bytes read_golden(const char* path) {
  auto golden = read_whole_file(posix_file_system(), path, kGoldenMaxBytes);
  REQUIRE(golden.ok());
  return std::move(golden).value();
}

void open_golden(GoldenStore& store, const char* path) {
  unpack(read_golden(path), store.disk);
  const Status opened = store.open();
  INFO(opened.to_string());
  REQUIRE(opened.ok());
}

}  // namespace

TEST_CASE("an encrypted store of any version is read with its key") {
  if (is_written_anew()) {
    GoldenStore store;
    store.fill();
    write_file(kGolden, packed(store.disk.durable_contents()));
  }
  for (const char* const path : {kFirstGolden, kGolden}) {
    CAPTURE(path);
    GoldenStore store;
    open_golden(store, path);
    const auto info = store.engine->find_namespace("plant");
    REQUIRE(info.ok());
    std::map<Bytes, Bytes> found;
    auto scan = store.engine->scan(info->id, {}, {});
    REQUIRE(scan.ok());
    for (; (*scan)->valid(); (*scan)->next()) found.emplace((*scan)->key(), (*scan)->value());
    CHECK((*scan)->status().ok());
    CHECK(found == GoldenStore::expected());
    CHECK(store.engine->stats().encryption.scope_keys == 3);
  }
}

TEST_CASE("what an encrypted store sealed for a file beside it is read") {
  GoldenStore store;
  open_golden(store, kGolden);
  Sealer& sealer = *store.engine->sealer();
  if (is_written_anew()) write_file(kGoldenPiece, sealer.seal("golden", 4096, "beside the store"));
  CHECK(sealer.open("golden", 4096, read_golden(kGoldenPiece)) == "beside the store");
}

}  // namespace edgecase::engine
