// Any bytes as a file of a key ring, and as what is sealed in one: it opens whole or not at all,
// and what opened comes back from the file it is written to.
//
// The first byte says what the rest is: 0 a file, 1 a copy whose length and checksum are put right,
// else entries, which are sealed into a file that opens.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/coding.h"
#include "base/hash.h"
#include "crypto/key_ring.h"
#include "edgecase/machine.h"
#include "file/file_names.h"
#include "fuzz/fuzz_targets.h"
#include "support/memory_file_system.h"

namespace edgecase::engine {
namespace {

using test::demand;

constexpr const char* kDirectory = "/m";
constexpr StoreId kStoreId{1};
constexpr std::uint64_t kGeneration = 1;

SecretKey some_key(std::uint8_t byte) {
  SecretKey key;
  key.fill(byte);
  return key;
}

Bytes twice(ByteView half) {
  return Bytes(half) + Bytes(half);
}

Bytes mended(ByteView copy) {
  Bytes bytes(copy);
  if (bytes.size() < 20) return bytes;
  encode_fixed32(bytes.data() + 12, static_cast<std::uint32_t>(bytes.size()));
  const std::size_t end = bytes.size() - 4;
  encode_fixed32(bytes.data() + end, crc32c(ByteView(bytes).substr(0, end)));
  return twice(bytes);
}

void open_ring(const Bytes& file) {
  test::MemoryFileSystem disk{{kDirectory}};
  SeededRandom random(1);
  const std::string path = key_ring_path(kDirectory, kGeneration);
  disk.set_contents(path, file);
  const auto look = look_at_key_ring(disk, path);
  const MasterKeys master{some_key('m'), some_key('p')};
  const auto ring = KeyRing::open(disk, kDirectory, kStoreId, master, random);
  if (!ring.ok()) return;
  demand(look.ok() && look->store_id == kStoreId);
  const std::size_t size = (*ring)->size();
  demand((*ring)->write_again([](NamespaceId) { return true; }).ok());
  const auto again = KeyRing::open(disk, kDirectory, kStoreId, {some_key('m')}, random);
  demand(again.ok() && (*again)->size() == size);
}

}  // namespace
}  // namespace edgecase::engine

namespace edgecase::test {

void take_key_ring(std::string_view data) {
  using namespace engine;
  if (data.empty()) return;
  const ByteView rest = data.substr(1);
  if (data[0] == 0) return open_ring(Bytes(rest));
  if (data[0] == 1) return open_ring(mended(rest));
  SeededRandom source(1);
  SecretRandom random(source);
  open_ring(
      encode_key_ring_file({kStoreId, kGeneration}, some_key('m'), some_key('d'), rest, random));
}

}  // namespace edgecase::test
