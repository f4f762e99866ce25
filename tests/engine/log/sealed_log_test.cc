#include <doctest/doctest.h>

#include <vector>

#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "log/log.h"
#include "log/log_format.h"
#include "support/memory_file_system.h"
#include "support/test_seed.h"

namespace edgecase::engine {
namespace {

constexpr const char* kPath = "/m/log";

SecretKey some_key() {
  SecretKey key;
  key.fill(7);
  return key;
}

Bytes some_bytes(Random& random, std::size_t size) {
  Bytes bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

}  // namespace

TEST_CASE("a sealed log gives back records of parts of any sizes, and shows nothing of them") {
  const std::uint64_t seed = test::test_seed(20'261);
  CAPTURE(seed);
  SeededRandom random(seed);
  test::MemoryFileSystem disk{{"/m"}};
  auto keys = KeyRing::create(disk, "/m", {1}, {some_key()}, random);
  REQUIRE(keys.ok());
  auto file = disk.create_log_file(kPath, 16u << 20);
  REQUIRE(file.ok());
  LogIdentity identity;
  identity.store_id = {1};
  identity.number = 4;
  auto writer = LogWriter::create(*std::move(file), identity, keys->get());
  REQUIRE(writer.ok());

  std::vector<std::vector<Bytes>> records;
  // Sizes around blocks, around what is written at once, and around pieces of what is not.
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 33u, 65'471u, 65'472u, 65'473u, 65'487u,
                                 65'488u, 65'489u, 65'535u, 65'536u, 65'537u, 131'072u, 200'001u})
    records.push_back({some_bytes(random, size)});
  for (int i = 0; i < 60; ++i) {
    std::vector<Bytes> parts(random.below(6));
    const std::uint64_t most = i % 2 == 0 ? 40 : 90'000;
    for (Bytes& part : parts) part = some_bytes(random, random.below(most));
    records.push_back(std::move(parts));
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::vector<ByteView> parts(records[i].begin(), records[i].end());
    REQUIRE((*writer)->append(i, parts).ok());
  }
  REQUIRE((*writer)->sync().ok());

  const auto read = disk.open_file(kPath);
  REQUIRE(read.ok());
  Bytes stored((*read)->size_bytes(), '\0');
  REQUIRE((*read)->read(0, stored.size(), stored.data()).ok());
  auto again = disk.open_file(kPath);
  REQUIRE(again.ok());
  auto reader = LogReader::open(*std::move(again), keys->get());
  REQUIRE(reader.ok());
  for (std::size_t i = 0; i < records.size(); ++i) {
    CAPTURE(i);
    Bytes whole;
    for (const Bytes& part : records[i]) whole += part;
    CAPTURE(whole.size());
    const auto record = (*reader)->next();
    REQUIRE(record.ok());
    REQUIRE(record->has_value());
    CHECK((*record)->sequence == i);
    CHECK((*record)->payload == whole);
    if (whole.size() >= 16) CHECK(stored.find(whole.substr(whole.size() - 16)) == Bytes::npos);
  }
  const auto end = (*reader)->next();
  REQUIRE(end.ok());
  CHECK_FALSE(end->has_value());
}

}  // namespace edgecase::engine
